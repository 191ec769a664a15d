/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is an array faster with its members' heads brought together?
 *
 * By the paper's inequality it should be, for the streams that pass it; but
 * that compares estimates. Here the throughput is measured, with turns and
 * without, and the slower way is left for longer and longer. Trying costs
 * something, so it is done the more seldom the more often it has had the same
 * result.
 */
#ifndef SS_ARRAY_TRIAL_H
#define SS_ARRAY_TRIAL_H

#include <linux/types.h>

/* What the array moved, and in what time something was to be done. */
struct ss_array_rate {
	u64 sectors;
	u64 ns;
};

struct ss_array_trial {
	struct ss_array_rate apart;
	struct ss_array_rate together;
	u64 last_ns; /* of the last event */
	u64 left_ns; /* of busy time, until the other way is tried */
	u64 period_ns; /* how long the last result is believed */
	bool allowed; /* heads may be brought together */
	bool judged; /* this time together has been compared */
	bool checked; /* apart is measured, to see if together still wins */
	u64 verdicts; /* comparisons made, and */
	u64 refusals; /* ... that apart won */
};

void ss_array_trial_init(struct ss_array_trial *trial);

/*
 * Time has come to @now_ns; since the last event the array was @busy, and it
 * was anybody's turn or would soon be (@together).
 */
void ss_array_trial_event(struct ss_array_trial *trial, u64 now_ns, bool busy,
			  bool together);

/* A request of @nr_sectors is done. */
void ss_array_trial_moved(struct ss_array_trial *trial, u32 nr_sectors,
			  bool together);

#endif
