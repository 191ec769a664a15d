// SPDX-License-Identifier: GPL-2.0-only
/*
 * ss: stream scheduling to the letter of Xu and Jiang (FAST 2011: section 2.1,
 * Figure 2, section 3.2), but where that is open or cannot be kept. Frozen.
 * 1. Section 3.2 takes the request dispatched last for the one completed, so
 *    that procedure runs at dispatch. But R's times count from its completion,
 *    as in Figure 2: else its own service uses up the wait (par-read 1.17x).
 * 2. If nothing is pending there is no selected_pending_request. A random
 *    request's positioning stands for it until a request is pending.
 * 3. Figure 2 leaves out stream_time_slice. When it is over the disk does not
 *    wait, and passes over the stream's child if others are pending.
 * 4. Figure 2 dispatches any established stream's child. Here it is that of the
 *    stream being served: else the others would take the disk back at once.
 */
#include "../policies.h"
#include "../sched.h"
#include "inner.h"

#include <linux/kernel.h>

#define NR_PARENTS 64 /* beyond it the earliest deadline is given up */
enum { THRESHOLD, TIME_SLICE, TOLERANCE, BACKWARD };
static const struct ss_tunable ss_tunables[] = {
	[THRESHOLD] = { "stream_threshold", SS_UNIT_NONE, 4, 1, 1000,
			.help = "members from which on a stream is established (paper 3.2)" },
	[TIME_SLICE] = { "stream_time_slice", SS_UNIT_NS, 124 * SS_MSEC,
			 1 * SS_MSEC, 60 * SS_SEC,
			 .help = "how long one stream is served while others are pending (paper 3.2)" },
	[TOLERANCE] = { "tolerance_factor", SS_UNIT_PERCENT, 50, 0, 1000,
			.help = "a stream this much longer than the threshold is waited for this much longer, once (paper 2.1)" },
	[BACKWARD] = { "backward_cost", SS_UNIT_PERCENT, 150, 100, 1000,
		       .help = "cost of a backward distance, of the same one forward (paper 3.2)" },
};

struct parent { /* R, a parent-to-be */
	struct list_head node; /* in queue_of_parent_to_be, or free */
	struct ss_request *rq; /* NULL once it has completed */
	u64 position; /* where its data end, and the head will be */
	u64 completion_ns;
	u64 service_ns; /* of selected_pending_request */
	u64 deadline_ns; /* SS_FOREVER before it has completed */
	u32 stream_size;
	bool nothing_pending; /* since it was dispatched */
	bool second_chance; /* had; no other one, even if the threshold falls */
};

struct ss_state {
	struct list_head queue_of_parent_to_be, free;
	struct parent *timer; /* whose timer is active, until its deadline */
	struct ss_request *child; /* pending, of the one whose timer was */
	bool idle; /* is the disk, because of the timer? For the counters. */
	u64 slice_end_ns;
	struct parent parent[NR_PARENTS];
};

static u64 calculate_service_time(const struct ss_policy *p, u64 from, u64 to)
{
	return ss_curve_service_ns(&p->sched->curve, from, to);
}

static void take_out(struct ss_state *ss, struct parent *r)
{
	if (r == ss->timer)
		ss->timer = NULL;
	r->rq = NULL;
	list_move(&r->node, &ss->free);
}

static void set_deadline(struct ss_state *ss, struct parent *r)
{
	struct parent *later;

	r->deadline_ns = r->rq ? SS_FOREVER : r->completion_ns + r->service_ns;
	list_del(&r->node);
	list_for_each_entry(later, &ss->queue_of_parent_to_be, node)
		if (later->deadline_ns > r->deadline_ns)
			break;
	list_add_tail(&r->node, &later->node);
}

static void set_service_time(struct ss_policy *policy, struct parent *r,
			     u64 now_ns)
{
	struct ss_decision selected = ss_inner_choose(policy, now_ns, NULL);

	r->second_chance = false;
	r->service_ns = policy->sched->curve.mean_random_ns;
	r->nothing_pending = selected.verdict != SS_DISPATCH;
	if (!r->nothing_pending)
		r->service_ns = calculate_service_time(policy, r->position,
						       selected.rq->sector);
	set_deadline(policy->state, r);
}

/* Procedure invoked upon completion of request R: see 1. */
static void upon_completion(struct ss_policy *policy, struct ss_request *rq,
			    u64 now_ns)
{
	struct ss_state *ss = policy->state;
	struct parent *r;

	if (list_empty(&ss->free))
		take_out(ss, list_first_entry(&ss->queue_of_parent_to_be,
					      struct parent, node));
	r = list_first_entry(&ss->free, struct parent, node);
	r->rq = rq;
	rq->stream = r;
	r->position = ss_request_end(rq);
	r->stream_size = rq->stream_size;
	set_service_time(policy, r, now_ns);
	ss->timer = r->stream_size >= policy->value[THRESHOLD] ? r : NULL;
}

/* Procedure invoked upon arrival of request new_R */
static void upon_arrival(struct ss_policy *policy, struct ss_request *new_r,
			 u64 now_ns)
{
	struct ss_state *ss = policy->state;
	struct parent *r, *next;

	new_r->stream_size = 1;
	list_for_each_entry_safe(r, next, &ss->queue_of_parent_to_be, node) {
		u64 cost_ns = r->rq ? 0 : now_ns - r->completion_ns;

		if (r->deadline_ns < now_ns) {
			take_out(ss, r);
			continue;
		}
		cost_ns += calculate_service_time(policy, r->position,
						  new_r->sector);
		if (cost_ns >= r->service_ns)
			continue;
		new_r->stream_size = r->stream_size + 1;
		if (r == ss->timer)
			ss->child = new_r;
		take_out(ss, r);
		break;
	}
	list_for_each_entry_safe(r, next, &ss->queue_of_parent_to_be, node)
		if (r->nothing_pending)
			set_service_time(policy, r, now_ns);
	policy->sched->counters.hits += ss->idle && ss->child == new_r;
}

/* What service_time is, or would be after a second chance if R has one. */
static u64 tolerated_ns(const struct ss_policy *policy, const struct parent *r)
{
	u64 percent = 100 + policy->value[TOLERANCE];

	if (r->second_chance ||
	    100ULL * r->stream_size < percent * policy->value[THRESHOLD])
		return r->service_ns;
	return div_u64(r->service_ns * percent, 100);
}

/* Procedure invoked upon expiration of request R's timer */
static void upon_expiration(struct ss_policy *policy, struct parent *r)
{
	struct ss_state *ss = policy->state;
	u64 longer_ns = tolerated_ns(policy, r);

	if (longer_ns > r->service_ns) {
		policy->sched->counters.second_chances += ss->idle;
		r->service_ns = longer_ns;
		r->stream_size = (u32)policy->value[THRESHOLD];
		r->second_chance = true;
		set_deadline(ss, r);
	} else {
		take_out(ss, r);
	}
}

static struct ss_decision ss_choose(const struct ss_policy *policy, u64 now_ns,
				    const struct ss_request *skip)
{
	const struct ss_state *ss = policy->state;
	const struct parent *r = ss->timer;
	struct ss_decision selected;
	u64 until_ns = min_t(u64, ss->slice_end_ns,
			     ss_inner_next_expiry(policy, now_ns));

	if (ss_inner_expired(policy, now_ns))
		return ss_dispatch(ss_inner_expired(policy, now_ns));
	if (ss->child && now_ns < ss->slice_end_ns)
		return ss_dispatch(ss->child);
	selected = ss_inner_choose(policy, now_ns,
				   ss->child ? ss->child : skip);
	if (selected.verdict != SS_DISPATCH)
		return ss->child ? ss_dispatch(ss->child) : selected;
	if (r && !r->rq)
		until_ns = min_t(u64, until_ns,
				 r->completion_ns + tolerated_ns(policy, r));
	return r && now_ns < until_ns ? ss_wait(until_ns) : selected;
}

/* First in each event: timers that have expired since the last one. */
static void before(struct ss_policy *policy, u64 now_ns)
{
	struct ss_state *ss = policy->state;

	while (ss->timer && now_ns >= ss->timer->deadline_ns)
		upon_expiration(policy, ss->timer);
	policy->sched->counters.timeouts += ss->idle && !ss->timer;
}

/* Last in each event: does the disk begin to wait for a child? */
static void after(struct ss_policy *policy, u64 now_ns)
{
	struct ss_state *ss = policy->state;
	bool idle = !policy->sched->nr_in_flight &&
		    ss_choose(policy, now_ns, NULL).verdict == SS_WAIT;

	policy->sched->counters.waits += idle && !ss->idle;
	ss->idle = idle;
}

static void ss_init(struct ss_policy *policy)
{
	struct ss_state *ss = policy->state;
	u32 i;

	INIT_LIST_HEAD(&ss->queue_of_parent_to_be);
	INIT_LIST_HEAD(&ss->free);
	for (i = 0; i < NR_PARENTS; i++)
		list_add_tail(&ss->parent[i].node, &ss->free);
}

static void ss_tuned(struct ss_policy *policy, u64 now_ns)
{
	(void)now_ns;
	(void)now_ns;
	ss_curve_set_backward(&policy->sched->curve,
			      (u32)policy->value[BACKWARD]);
}

static void ss_arrived(struct ss_policy *policy, struct ss_request *rq,
		       u64 now_ns)
{
	before(policy, now_ns);
	policy->inner->ops->arrived(policy->inner, rq, now_ns);
	upon_arrival(policy, rq, now_ns);
	after(policy, now_ns);
}

static void ss_dispatched(struct ss_policy *policy, struct ss_request *rq,
			  u64 now_ns)
{
	struct ss_state *ss = policy->state;

	before(policy, now_ns);
	if (rq != ss->child) {
		policy->sched->counters.slices_ended +=
			(ss->timer || ss->child) && now_ns >= ss->slice_end_ns;
		ss->slice_end_ns = now_ns + policy->value[TIME_SLICE];
	}
	ss->child = NULL;
	policy->inner->ops->dispatched(policy->inner, rq, now_ns);
	upon_completion(policy, rq, now_ns);
	after(policy, now_ns);
}

static void ss_completed(struct ss_policy *policy, struct ss_request *rq,
			 u64 now_ns)
{
	struct parent *r = rq->stream;

	before(policy, now_ns);
	if (r->rq == rq) {
		r->rq = NULL;
		r->completion_ns = now_ns;
		set_deadline(policy->state, r);
	}
	ss_inner_completed(policy, rq, now_ns);
	after(policy, now_ns);
}

static void ss_removed(struct ss_policy *policy, struct ss_request *rq,
		       u64 now_ns)
{
	struct ss_state *ss = policy->state;

	before(policy, now_ns);
	if (rq == ss->child)
		ss->child = NULL;
	policy->inner->ops->removed(policy->inner, rq, now_ns);
	after(policy, now_ns);
}

const struct ss_policy_ops ss_ss_ops = {
	.name = "ss",
	.help = "stream scheduling as published (Xu and Jiang, FAST 2011, Figure 2)",
	.flags = SS_WRAPPER,
	.state_bytes = sizeof(struct ss_state),
	SS_TUNABLES(ss_tunables),
	.init = ss_init,
	.tuned = ss_tuned,
	.arrived = ss_arrived,
	.choose = ss_choose,
	.dispatched = ss_dispatched,
	.completed = ss_completed,
	.merged = ss_inner_merged,
	.joins = ss_inner_joins,
	.removed = ss_removed,
	.owner_gone = ss_inner_owner_gone,
};
