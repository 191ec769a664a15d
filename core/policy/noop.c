// SPDX-License-Identifier: GPL-2.0-only
/*
 * noop: first come, first served. Merging is the host's and sched.c's.
 *
 * Linux 2.6.31 block/noop-iosched.c; there a request is sorted in among those
 * already handed to the driver, which is the device queue's business here. And
 * of two pending requests that are joined the place of the later one stays,
 * so that a chain of joins can put a request off without end; here it is that
 * of the earlier one.
 */
#include "../policies.h"

struct noop_state {
	struct list_head fifo;
};

static void noop_init(struct ss_policy *policy)
{
	struct noop_state *noop = policy->state;

	INIT_LIST_HEAD(&noop->fifo);
}

static void noop_arrived(struct ss_policy *policy, struct ss_request *rq,
			 u64 now_ns)
{
	struct noop_state *noop = policy->state;

	(void)now_ns;
	ss_add_by_age(&noop->fifo, rq, fifo_node);
}

static struct ss_decision noop_choose(const struct ss_policy *policy,
				      u64 now_ns, const struct ss_request *skip)
{
	const struct noop_state *noop = policy->state;
	struct ss_request *rq = ss_first_but(&noop->fifo, skip);

	(void)now_ns;
	return rq ? ss_dispatch(rq) : ss_nothing();
}

static void noop_joins(struct ss_policy *policy, struct ss_request *rq,
		       const struct ss_request *next)
{
	struct noop_state *noop = policy->state;

	(void)next;
	ss_older(&noop->fifo, rq, fifo_node);
}

static void noop_gone(struct ss_policy *policy, struct ss_request *rq,
		      u64 now_ns)
{
	(void)policy;
	(void)now_ns;
	list_del_init(&rq->fifo_node);
}

const struct ss_policy_ops ss_noop_ops = {
	.name = "noop",
	.help = "first come, first served, with merging (Linux none/noop)",
	.flags = SS_WORK_CONSERVING,
	.state_bytes = sizeof(struct noop_state),
	.init = noop_init,
	.arrived = noop_arrived,
	.choose = noop_choose,
	.dispatched = noop_gone,
	.joins = noop_joins,
	.removed = noop_gone,
};
