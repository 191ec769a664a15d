// SPDX-License-Identifier: GPL-2.0-only
/* The estimator of think times. See think.h. */
#include "think.h"

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

/* Below so many samples a wait is as long as a switch. */
#define THINK_FEW 4
/* So many deviations beyond the mean nearly all requests have come. */
#define THINK_DEVIATIONS 4
/* What the ledger remembers at most, in switches, either way. */
#define LEDGER_SWITCHES 8

static u32 think_us(u64 ns)
{
	return (u32)div_u64(min_t(u64, ns, S32_MAX * 1000ULL), 1000);
}

static u32 think_towards(u32 mean, u32 value)
{
	return (u32)((s32)mean + ((s32)value - (s32)mean) / SS_MEAN_OF);
}

u64 ss_think_limit_ns(const struct ss_think *think, u64 switch_ns)
{
	/* Think times that have not differed yet will. */
	u64 more_us = max_t(u64, think->mean_us,
			    (u64)THINK_DEVIATIONS * think->deviation_us);
	u64 limit_ns = 1000ULL * (think->mean_us + more_us);

	if (think->nr < THINK_FEW)
		return switch_ns;
	limit_ns = max_t(u64, limit_ns, switch_ns / SS_THINK_LEAST);
	return min_t(u64, limit_ns, ss_think_longest_ns(switch_ns));
}

void ss_think_note(struct ss_think *think, u64 think_ns, u64 switch_ns)
{
	u64 longest_ns = ss_think_longest_ns(switch_ns);
	u32 us = think_us(min_t(u64, think_ns, longest_ns)), off_us;

	/* What it did before its first requests is no think time. */
	if (!think->nr)
		think->mean_us = us;
	if (!think->nr && think_ns > longest_ns)
		return;
	off_us = us > think->mean_us ? us - think->mean_us :
				       think->mean_us - us;
	think->mean_us = think_towards(think->mean_us, us);
	think->deviation_us = think_towards(think->deviation_us, off_us);
	think->nr += think->nr < THINK_FEW;
}

bool ss_think_tell(struct ss_think *think, u64 think_ns, s64 saves_ns,
		   u64 switch_ns)
{
	u64 limit_ns = ss_think_limit_ns(think, switch_ns);
	s64 won_ns = think_ns <= limit_ns ? saves_ns - (s64)think_ns :
					    -(s64)limit_ns;
	s64 most_us = think_us(LEDGER_SWITCHES * switch_ns);
	s64 ledger_us = think->ledger_us + div_s64(won_ns, 1000);

	ledger_us = min_t(s64, most_us, ledger_us);
	think->ledger_us = (s32)max_t(s64, -most_us, ledger_us);
	/*
	 * What may have come because of something else tells no think time. It
	 * is noted where waits do not pay, so that this is learned anew.
	 */
	if (!think->left || think->ledger_us < 0)
		ss_think_note(think, think_ns, switch_ns);
	return won_ns > 0;
}
