// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy: its calls and its tunables. What they mean is said in party.h.
 */
#include "../policies.h"
#include "../sorted.h"
#include "party.h"

static const struct ss_tunable stream_tunables[] = {
	[STREAM_THRESHOLD] = {
		.name = "stream_threshold",
		.unit = SS_UNIT_NONE,
		.initial = 4,
		.min = 2,
		.max = 1000,
		.help = "requests that make a stream (FAST 2011, section 2.2)",
	},
	[STREAM_WAIT_TARGET] = {
		.name = "wait_target",
		.unit = SS_UNIT_NS,
		.initial = 500 * SS_MSEC,
		.min = 10 * SS_MSEC,
		.max = 60 * SS_SEC,
		.help = "how long a request should wait at most; slices follow from it",
	},
	[STREAM_BACKWARD] = {
		.name = "backward_cost",
		.unit = SS_UNIT_PERCENT,
		.initial = 150,
		.min = 100,
		.max = 1000,
		.help = "what positioning backward costs, of the same distance forward (FAST 2011, section 3.2)",
	},
};

/* What the versions of 2026 before turns had. */
static const struct ss_replaced stream_replaced[] = {
	{ "stream_time_slice",
	  "slices follow from wait_target, which is to be set instead" },
	{ "answer_time", "how long the head waits is learned" },
	{ "tolerance_factor", "how long the head waits is learned" },
	{ "trials", "the comparison with the inner policy is always on" },
	{},
};

static void stream_tuned(struct ss_policy *policy, u64 now_ns)
{
	(void)now_ns;
	ss_curve_set_backward(&policy->sched->curve,
			      (u32)policy->value[STREAM_BACKWARD]);
}

static void stream_init(struct ss_policy *policy)
{
	ss_party_init_all(policy);
	stream_tuned(policy, 0);
}

static void stream_arrived(struct ss_policy *policy, struct ss_request *rq,
			   u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *party;
	bool idle;

	ss_trial_time_passes(policy, now_ns);
	party = ss_party_find(policy, rq, now_ns);
	idle = is_idle(party);

	if (idle && is_rest(all, party))
		ss_pause_ends(policy, party, now_ns);
	if (idle && others_work(policy, party))
		ss_credit_arrived(policy, party, now_ns);
	if (party == all->turn && party != &all->rest)
		all->answer.open = false; /* it goes on by itself */
	else if (party != &all->async)
		ss_answer_arrived(policy, party, rq, now_ns);
	ss_party_add(policy, party, rq, now_ns);
	ss_turn_note_holding(policy, now_ns);
}

static struct ss_decision stream_choose(const struct ss_policy *policy,
					u64 now_ns,
					const struct ss_request *skip)
{
	if (!policy->sched->nr_pending)
		return ss_nothing();
	return ss_turn_choose(policy, now_ns, skip);
}

static void stream_dispatched(struct ss_policy *policy, struct ss_request *rq,
			      u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *party = party_of(all, rq);

	ss_turn_dispatched(policy, party, rq, now_ns);
	ss_answer_dispatched(policy, rq, now_ns);
	ss_party_take(policy, rq, false, now_ns);
	party->nr_in_flight++;
	party->sent++;
	party->sent_sectors += rq->nr_sectors;
	ss_party_becomes_parent(policy, rq);
}

static void stream_completed(struct ss_policy *policy, struct ss_request *rq,
			     u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *party = party_of(all, rq);

	if (!rq->party && policy->inner->ops->completed)
		policy->inner->ops->completed(policy->inner, rq, now_ns);
	party->nr_in_flight--;
	ss_turn_completed(policy, party, rq, now_ns);
	ss_answer_completed(policy, rq, now_ns);
	ss_trial_done(policy, rq);
	if (ss_party_closes(rq))
		ss_pause_begins(all, rq->stream, now_ns);
	if (is_rest(all, party) && is_idle(party))
		ss_pause_begins(all, party, now_ns);
	ss_trial_time_passes(policy, now_ns);
	ss_turn_note_holding(policy, now_ns);
}

static void stream_merged(struct ss_policy *policy, struct ss_request *rq,
			  u64 old_sector, u64 now_ns)
{
	struct ss_policy *inner = policy->inner;
	struct parties *all = policy->state;
	struct party *s = rq->stream;

	if (rq->party) {
		if (rq->sector != old_sector)
			ss_sorted_moved(&party_of(all, rq)->sorted, rq);
	} else if (inner->ops->merged) {
		inner->ops->merged(inner, rq, old_sector, now_ns);
	}
	/* Write-back is no stream. */
	if (s && s != &all->async && rq->sector == old_sector)
		ss_party_ends_at(all, s, ss_request_end(rq));
}

/* Write-back that an fsync() waits for is write-back no longer. */
static void stream_awaited(struct ss_policy *policy, struct ss_request *rq,
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
	if (is_idle(&all->rest) && others_work(policy, &all->rest))
		ss_credit_arrived(policy, &all->rest, now_ns);
	ss_party_take(policy, rq, true, now_ns);
	rq->stream = NULL;
	ss_party_add(policy, &all->rest, rq, now_ns);
}

static void stream_joins(struct ss_policy *policy, struct ss_request *rq,
			 const struct ss_request *next)
{
	struct ss_policy *inner = policy->inner;
	struct party *party = party_of(policy->state, rq);

	if (!rq->party && inner->ops->joins)
		inner->ops->joins(inner, rq, next);
	ss_older(&party->age, rq, age_node);
}

static void stream_removed(struct ss_policy *policy, struct ss_request *rq,
			   u64 now_ns)
{
	ss_party_take(policy, rq, true, now_ns);
	/* Its reader's pause goes on: nothing of it has been served. */
	ss_party_closes(rq);
	ss_turn_note_holding(policy, now_ns);
}

/* Requests of the rest expire as they do for the inner policy. */
static struct ss_request *stream_expired(const struct ss_policy *policy,
					 u64 now_ns)
{
	const struct ss_policy *inner = policy->inner;

	return inner->ops->expired ? inner->ops->expired(inner, now_ns) : NULL;
}

static const struct party *party_at(const struct parties *all, u32 index)
{
	if (index < NR_STREAMS)
		return &all->stream[index];
	index -= NR_STREAMS;
	if (index < 2)
		return index ? &all->async : &all->rest;
	return index < 2 + NR_WEIGHED ? &all->weighed[index - 2] : NULL;
}

/* Behind the streams are the parties of what is in none. */
static bool stream_stream_at(const struct ss_policy *policy, u32 index,
			     u64 now_ns, struct ss_stream_info *info)
{
	const struct parties *all = policy->state;
	const struct party *party = party_at(all, index);
	bool stream = index < NR_STREAMS, pays;

	if (!party)
		return false;
	pays = ss_pause_pays(&party->pause);
	*info = (struct ss_stream_info){
		.kind = stream		     ? "stream" :
			party == &all->async ? "write-back" :
					       "rest",
		.end_sector = party->end_sector,
		.sent = party->sent,
		.sent_sectors = party->sent_sectors,
		.used_ns = party->used_ns,
		.paused_ns = party->nr_open ? 0 : now_ns - party->idle_since_ns,
		.limit_ns = pays ? ss_pause_limit_ns(all, &party->pause) : 0,
		.size = stream ? party->size : party->sent > 0,
		.nr_pending = party->nr_pending,
		.established = party->established || !stream,
		.turn = party == all->turn,
	};
	return true;
}

static u32 stream_index_of(const struct ss_policy *policy,
			   const struct ss_request *rq)
{
	const struct parties *all = policy->state;
	const struct party *party = rq->party ?: &all->rest;
	u32 index = 0;

	while (party_at(all, index) && party_at(all, index) != party)
		index++;
	return index;
}

const struct ss_policy_ops ss_stream_ops = {
	.name = "stream",
	.help = "streams found in the requests take turns at the disk",
	.flags = SS_WRAPPER | SS_WEIGHS_REQUESTS,
	.state_bytes = sizeof(struct parties),
	.tunables = stream_tunables,
	.nr_tunables = STREAM_TUNABLES,
	.replaced = stream_replaced,
	.init = stream_init,
	.tuned = stream_tuned,
	.arrived = stream_arrived,
	.choose = stream_choose,
	.dispatched = stream_dispatched,
	.completed = stream_completed,
	.merged = stream_merged,
	.awaited = stream_awaited,
	.joins = stream_joins,
	.removed = stream_removed,
	.expired = stream_expired,
	.stream_at = stream_stream_at,
	.index_of = stream_index_of,
};
