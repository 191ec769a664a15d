// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy: its calls and its tunables. What they mean is said in party.h.
 */
#include "../policies.h"
#include "../sorted.h"
#include "party.h"

static const struct ss_tunable turns_tunables[] = {
	[TURNS_THRESHOLD] = {
		.name = "stream_threshold",
		.unit = SS_UNIT_NONE,
		.initial = 4,
		.min = 2,
		.max = 1000,
		.help = "requests that make a stream (FAST 2011, section 2.2)",
	},
	[TURNS_WAIT_TARGET] = {
		.name = "wait_target",
		.unit = SS_UNIT_NS,
		.initial = 500 * SS_MSEC,
		.min = 10 * SS_MSEC,
		.max = 60 * SS_SEC,
		.help = "how long a request should wait at most; slices follow from it",
	},
	[TURNS_BACKWARD] = {
		.name = "backward_cost",
		.unit = SS_UNIT_PERCENT,
		.initial = 150,
		.min = 100,
		.max = 1000,
		.help = "what positioning backward costs, of the same distance forward (FAST 2011, section 3.2)",
	},
};

static void turns_tuned(struct ss_policy *policy, u64 now_ns)
{
	(void)now_ns;
	ss_curve_set_backward(&policy->sched->curve,
			      (u32)policy->value[TURNS_BACKWARD]);
}

static void turns_init(struct ss_policy *policy)
{
	ss_party_init_all(policy);
	turns_tuned(policy, 0);
}

static void turns_arrived(struct ss_policy *policy, struct ss_request *rq,
			  u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *party = ss_party_find(policy, rq, now_ns);
	bool idle = is_idle(party);

	if (idle && party == &all->rest)
		ss_pause_ends(policy, party, now_ns);
	if (idle && others_work(policy, party))
		ss_credit_arrived(policy, party, now_ns);
	if (party == all->turn && party != &all->rest)
		all->answer.open = false; /* it goes on by itself */
	else if (party == &all->rest)
		ss_answer_arrived(policy, rq, now_ns);
	ss_party_add(policy, party, rq, now_ns);
	ss_turn_note_holding(policy, now_ns);
}

static struct ss_decision turns_choose(const struct ss_policy *policy,
				       u64 now_ns,
				       const struct ss_request *skip)
{
	if (!policy->sched->nr_pending)
		return ss_nothing();
	return ss_turn_choose(policy, now_ns, skip);
}

static void turns_dispatched(struct ss_policy *policy, struct ss_request *rq,
			     u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *party = party_of(all, rq);

	ss_turn_dispatched(policy, party, rq, now_ns);
	ss_answer_dispatched(policy, rq, now_ns);
	ss_party_take(policy, rq, false, now_ns);
	party->nr_in_flight++;
	ss_party_becomes_parent(policy, rq);
}

static void turns_completed(struct ss_policy *policy, struct ss_request *rq,
			    u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *party = party_of(all, rq);

	if (rq->stream_size == IN_INNER && policy->inner->ops->completed)
		policy->inner->ops->completed(policy->inner, rq, now_ns);
	party->nr_in_flight--;
	ss_turn_completed(policy, party, rq, now_ns);
	ss_answer_completed(policy, rq, now_ns);
	if (ss_party_closes(rq))
		ss_pause_begins(all, rq->stream, now_ns);
	if (party == &all->rest && is_idle(party))
		ss_pause_begins(all, party, now_ns);
	ss_turn_note_holding(policy, now_ns);
}

static void turns_merged(struct ss_policy *policy, struct ss_request *rq,
			 u64 old_sector, u64 now_ns)
{
	struct ss_policy *inner = policy->inner;
	struct party *s = rq->stream;

	if (rq->stream_size == IN_PARTY) {
		if (rq->sector != old_sector)
			ss_sorted_moved(&s->sorted, rq);
	} else if (inner->ops->merged) {
		inner->ops->merged(inner, rq, old_sector, now_ns);
	}
	if (s && rq->sector == old_sector)
		s->end_sector = ss_request_end(rq);
}

/* Write-back that an fsync() waits for is write-back no longer. */
static void turns_awaited(struct ss_policy *policy, struct ss_request *rq,
			  const struct ss_request *part, u64 now_ns)
{
	struct parties *all = policy->state;
	bool back = party_of(all, rq) == &all->async;

	(void)part;
	if (rq->direction == SS_READ)
		rq->flags &= (u8)~SS_AHEAD;
	else
		rq->flags |= SS_SYNC;
	if (!back)
		return;
	ss_party_take(policy, rq, true, now_ns);
	rq->stream = NULL;
	ss_party_add(policy, &all->rest, rq, now_ns);
}

static void turns_joins(struct ss_policy *policy, struct ss_request *rq,
			const struct ss_request *next)
{
	struct ss_policy *inner = policy->inner;
	struct party *party = party_of(policy->state, rq);

	if (rq->stream_size == IN_INNER && inner->ops->joins)
		inner->ops->joins(inner, rq, next);
	ss_older(&party->age, rq, age_node);
}

static void turns_removed(struct ss_policy *policy, struct ss_request *rq,
			  u64 now_ns)
{
	ss_party_take(policy, rq, true, now_ns);
	/* Its reader's pause goes on: nothing of it has been served. */
	ss_party_closes(rq);
	ss_turn_note_holding(policy, now_ns);
}

const struct ss_policy_ops ss_turns_ops = {
	.name = "turns",
	.help = "streams found in the requests take turns at the disk",
	.flags = SS_WRAPPER,
	.state_bytes = sizeof(struct parties),
	.tunables = turns_tunables,
	.nr_tunables = TURNS_TUNABLES,
	.init = turns_init,
	.tuned = turns_tuned,
	.arrived = turns_arrived,
	.choose = turns_choose,
	.dispatched = turns_dispatched,
	.completed = turns_completed,
	.merged = turns_merged,
	.awaited = turns_awaited,
	.joins = turns_joins,
	.removed = turns_removed,
};
