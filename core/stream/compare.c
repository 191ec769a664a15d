// SPDX-License-Identifier: GPL-2.0-only
/*
 * Comparison: does the drive do better by itself?
 *
 * A drive with many commands orders them by positioning time, which no curve
 * tells beforehand. So where it would get several of the rest's requests at
 * once the inner policy has them all for a while, now and then, and keeps them
 * if the disk then served as many. What a comparison has lost is made up
 * before the next one.
 */
#include "party.h"

/* A comparison may lose this part of the time. Half: slow to see a change. */
#define LOST_PART 50
/* Answers are to serve more by this part: a slice favours quick readers. */
#define MORE_PART 16
/* After so many requests at half the rate it is clear. */
#define CLEAR 16

/* Requests of the rest per second, times 2^20 per ns. */
static u64 rate(const struct trial *trial, bool alone)
{
	return trial->time_ns[alone] ? div64_u64((u64)trial->nr[alone] << 40,
						 trial->time_ns[alone]) :
				       0;
}

static void begin(struct trial *trial, bool alone)
{
	trial->alone = alone;
	trial->nr[alone] = 0;
	trial->time_ns[alone] = 0;
	trial->done_ns = 0;
}

/* Both have had a while: the better one goes on. */
static void decide(struct trial *trial, u64 now_ns)
{
	u64 answers = rate(trial, false), alone = rate(trial, true);
	bool better = alone + div_u64(alone, MORE_PART) >= answers;
	u64 worse = better ? answers : alone, best = better ? alone : answers;
	u64 lost_ns = 0;

	if (best)
		lost_ns = div64_u64(trial->time_ns[!better] *
					    ((best - min_t(u64, best, worse)) >>
					     8),
				    max_t(u64, best >> 8, 1));
	trial->trying = false;
	trial->next_ns = now_ns + max_t(u64, LOST_PART * lost_ns,
					LOST_PART * trial->time_ns[better] / 4);
	begin(trial, better);
}

void ss_trial_done(const struct ss_policy *policy, u64 now_ns)
{
	struct parties *all = policy->state;
	struct trial *trial = &all->trial;
	u64 epoch_ns = policy->value[TURNS_WAIT_TARGET];
	bool alone = trial->alone;

	trial->nr_probed += trial->nr_probed < PROBES && all->rest.nr_pending;
	if (all->turn != &all->rest || all->back)
		trial->done_ns = 0;
	else if (trial->done_ns) {
		trial->nr[alone]++;
		trial->time_ns[alone] += now_ns - trial->done_ns;
	}
	if (all->turn == &all->rest && !all->back)
		trial->done_ns = is_idle(&all->rest) ? 0 : now_ns;
	if (trial->trying && (trial->time_ns[alone] >= epoch_ns ||
			      (trial->nr[alone] >= CLEAR &&
			       2 * rate(trial, alone) < rate(trial, !alone)))) {
		decide(trial, now_ns);
	} else if (!trial->trying && trial->time_ns[alone] >= epoch_ns) {
		if (now_ns >= trial->next_ns && trial->several) {
			trial->trying = true;
			begin(trial, !alone);
		} else {
			/* The latest only. */
			trial->nr[alone] /= 2;
			trial->time_ns[alone] /= 2;
		}
	}
}
