// SPDX-License-Identifier: GPL-2.0-only
/*
 * cscan: one-way elevator. Serves pending requests in ascending order of
 * position, then returns to the lowest. No ageing: a request waits at most
 * for one sweep of those pending and of those that arrive ahead of the head.
 */
#include "../policies.h"
#include "../sched.h"
#include "../sorted.h"

struct cscan_state {
	struct rb_root sorted;
};

static void cscan_init(struct ss_policy *policy)
{
	struct cscan_state *cscan = policy->state;

	cscan->sorted = RB_ROOT;
}

static void cscan_arrived(struct ss_policy *policy, struct ss_request *rq,
			  u64 now_ns)
{
	struct cscan_state *cscan = policy->state;

	(void)now_ns;
	ss_sorted_add(&cscan->sorted, rq);
}

static struct ss_decision cscan_choose(const struct ss_policy *policy,
				       u64 now_ns,
				       const struct ss_request *skip)
{
	const struct cscan_state *cscan = policy->state;
	struct ss_request *rq;

	(void)now_ns;
	rq = ss_sorted_round(&cscan->sorted, policy->sched->head_sector, skip);
	return rq ? ss_dispatch(rq) : ss_nothing();
}

static void cscan_merged(struct ss_policy *policy, struct ss_request *rq,
			 u64 old_sector, u64 now_ns)
{
	struct cscan_state *cscan = policy->state;

	(void)now_ns;
	if (rq->sector != old_sector)
		ss_sorted_moved(&cscan->sorted, rq);
}

static void cscan_gone(struct ss_policy *policy, struct ss_request *rq,
		       u64 now_ns)
{
	struct cscan_state *cscan = policy->state;

	(void)now_ns;
	ss_sorted_del(&cscan->sorted, rq);
}

const struct ss_policy_ops ss_cscan_ops = {
	.name = "cscan",
	.help = "one-way elevator: ascending positions, then back to the lowest",
	.flags = SS_WORK_CONSERVING,
	.state_bytes = sizeof(struct cscan_state),
	.init = cscan_init,
	.arrived = cscan_arrived,
	.choose = cscan_choose,
	.dispatched = cscan_gone,
	.merged = cscan_merged,
	.removed = cscan_gone,
};
