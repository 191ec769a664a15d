// SPDX-License-Identifier: GPL-2.0-only
/*
 * sptf: shortest positioning time first, by the service-time curve, with an
 * age limit.
 *
 * The curve never falls with distance, so only two requests can be nearest:
 * the first at or after the head and the last before it.
 */
#include "../policies.h"
#include "../sched.h"
#include "../sorted.h"

#include <linux/kernel.h>

enum { SPTF_AGE_LIMIT };

static const struct ss_tunable sptf_tunables[] = {
	[SPTF_AGE_LIMIT] = { "age_limit", SS_UNIT_NS, 500 * SS_MSEC,
			     1 * SS_MSEC, 60 * SS_SEC,
			     .help = "a request pending longer than this goes first; as deadline's read_expire" },
};

struct sptf_state {
	struct rb_root sorted;
	struct list_head fifo;
};

static void sptf_init(struct ss_policy *policy)
{
	struct sptf_state *sptf = policy->state;

	sptf->sorted = RB_ROOT;
	INIT_LIST_HEAD(&sptf->fifo);
}

static void sptf_arrived(struct ss_policy *policy, struct ss_request *rq,
			 u64 now_ns)
{
	struct sptf_state *sptf = policy->state;

	(void)now_ns;
	rq->expires_ns = rq->arrival_ns + policy->value[SPTF_AGE_LIMIT];
	ss_add_by_age(&sptf->fifo, rq, fifo_node);
	ss_sorted_add(&sptf->sorted, rq);
}

static struct ss_request *sptf_expired(const struct ss_policy *policy,
				       u64 now_ns)
{
	const struct sptf_state *sptf = policy->state;
	struct ss_request *oldest;

	if (list_empty(&sptf->fifo))
		return NULL;
	oldest = list_first_entry(&sptf->fifo, struct ss_request, fifo_node);
	return now_ns >= oldest->expires_ns ? oldest : NULL;
}

static struct ss_decision sptf_choose(const struct ss_policy *policy,
				      u64 now_ns, const struct ss_request *skip)
{
	const struct sptf_state *sptf = policy->state;
	struct ss_request *ahead, *behind;
	u64 head = policy->sched->head_sector;

	ahead = sptf_expired(policy, now_ns);
	if (ahead && ahead != skip)
		return ss_dispatch(ahead);
	ahead = ss_sorted_from(&sptf->sorted, head);
	behind = ahead ? ss_sorted_prev(ahead) :
			 ss_sorted_entry(rb_last(&sptf->sorted));
	if (ahead && ahead == skip)
		ahead = ss_sorted_next(ahead);
	if (behind && behind == skip)
		behind = ss_sorted_prev(behind);
	if (!ahead || !behind)
		return ahead  ? ss_dispatch(ahead) :
		       behind ? ss_dispatch(behind) :
				ss_nothing();
	return ss_dispatch(ss_sched_cost_ns(policy->sched, ahead) <=
					   ss_sched_cost_ns(policy->sched,
							    behind) ?
				   ahead :
				   behind);
}

static void sptf_merged(struct ss_policy *policy, struct ss_request *rq,
			u64 old_sector, u64 now_ns)
{
	struct sptf_state *sptf = policy->state;

	(void)now_ns;
	if (rq->sector != old_sector)
		ss_sorted_moved(&sptf->sorted, rq);
}

static void sptf_joins(struct ss_policy *policy, struct ss_request *rq,
		       const struct ss_request *next)
{
	struct sptf_state *sptf = policy->state;

	(void)next;
	ss_older(&sptf->fifo, rq, fifo_node);
}

static void sptf_gone(struct ss_policy *policy, struct ss_request *rq,
		      u64 now_ns)
{
	struct sptf_state *sptf = policy->state;

	(void)now_ns;
	list_del_init(&rq->fifo_node);
	ss_sorted_del(&sptf->sorted, rq);
}

static void sptf_dispatched(struct ss_policy *policy, struct ss_request *rq,
			    u64 now_ns)
{
	if (now_ns >= rq->expires_ns)
		policy->sched->counters.expired++;
	sptf_gone(policy, rq, now_ns);
}

static u64 sptf_next_expiry(const struct ss_policy *policy)
{
	const struct sptf_state *sptf = policy->state;

	if (list_empty(&sptf->fifo))
		return SS_FOREVER;
	return list_first_entry(&sptf->fifo, struct ss_request, fifo_node)
		->expires_ns;
}

const struct ss_policy_ops ss_sptf_ops = {
	.name = "sptf",
	.help = "shortest positioning time first by the curve, with an age limit",
	.flags = SS_WORK_CONSERVING,
	.state_bytes = sizeof(struct sptf_state),
	SS_TUNABLES(sptf_tunables),
	.init = sptf_init,
	.arrived = sptf_arrived,
	.choose = sptf_choose,
	.dispatched = sptf_dispatched,
	.merged = sptf_merged,
	.joins = sptf_joins,
	.removed = sptf_gone,
	.overdue = sptf_expired,
	.next_expiry = sptf_next_expiry,
};
