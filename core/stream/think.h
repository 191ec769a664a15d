/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Think time: how long after a reader was served its next request comes, and
 * whether waiting for that pays.
 *
 * One estimator for whoever may be waited for: a party, the reader just served
 * (answer.c), a priority class of the kernel module. It has the mean think
 * time and its deviation. And a ledger: a wait that ended with the request has
 * won a switch less the think time, one in vain has lost its length. It is
 * kept whether or not the head waited, so that a reader that has changed is
 * waited for again. Times are in ns; @switch_ns is what a switch costs now.
 */
#ifndef SS_THINK_H
#define SS_THINK_H

#include <linux/types.h>

/* Means are of about so many. Half: noisy; double: follow changes late. */
#define SS_MEAN_OF 8
/*
 * No wait is shorter than this part of the switch that it may save. Half: late
 * requests cost more; double: more of them are missed.
 */
#define SS_THINK_LEAST 32

struct ss_think {
	u32 mean_us;
	u32 deviation_us;
	s32 ledger_us; /* what waits won less what they lost */
	u16 nr; /* samples, as far as they are counted */
	bool left; /* waited for in vain, and something else has been done */
};

/* No wait is longer; a longer think time tells only that it was too long. */
static inline u64 ss_think_longest_ns(u64 switch_ns)
{
	return switch_ns + switch_ns / 2;
}

/* How long to wait at most: nearly all requests have come by then. */
u64 ss_think_limit_ns(const struct ss_think *think, u64 switch_ns);

/* A request came after @think_ns. */
void ss_think_note(struct ss_think *think, u64 think_ns, u64 switch_ns);

/*
 * A request came after @think_ns, and serving it then saves @saves_ns: notes
 * that, and books what waiting won or would have. True if it won.
 */
bool ss_think_tell(struct ss_think *think, u64 think_ns, s64 saves_ns,
		   u64 switch_ns);

/* Has it paid to wait? */
static inline bool ss_think_pays(const struct ss_think *think)
{
	return think->ledger_us >= 0;
}

#endif
