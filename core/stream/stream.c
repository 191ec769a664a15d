// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy `stream`: its calls and its tunables.
 *
 * Requests that go on from each other make a stream, and a stream of some
 * members is a party with a queue of its own. All other sync requests are the
 * inner policy's and together one more party, the rest; async ones are the
 * last. One party has the disk at a time, for a slice. If it has nothing to do
 * the head waits for it as long as that has paid. Head time is charged to the
 * party that uses it, and an idle party with credit interrupts.
 *
 * A file knows those further down only:
 *
 *	stream.c	the calls
 *	check.c		assertions of debug builds
 *	trial.c		turns, or the inner policy alone
 *	choose.c	which request is next
 *	turn.c		whose turn it is, how long, what it costs
 *	answer.c	the reader just served goes on at its place
 *	apart.c		what senders have apart from the rest
 *	elsewhere.c	a stream goes on at another place
 *	credit.c	who has used less than its part
 *	wait.c		how long the head stays for an idle party
 *	party.c		queues, and who is due first
 *	streams.c	which requests go on from each other
 *	senders.c	how many the rest are
 *	areas.c		who may have sent what is in no stream
 *	think.c		an estimator of think times
 *	places.c	an index of places
 */
#include "../policies.h"
#include "../sorted.h"
#include "answer.h"
#include "apart.h"
#include "check.h"
#include "choose.h"
#include "credit.h"
#include "elsewhere.h"
#include "party.h"
#include "trial.h"
#include "turn.h"
#include "wait.h"

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
		.help = "cost of a backward seek, of an equal forward one (FAST 2011, section 3.2)",
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

/*
 * The party of @rq, which has just arrived. A stream that takes turns from now
 * on may have begun in the rest's turn, and then goes on in it.
 */
static struct ss_party *stream_party(struct ss_policy *policy,
				     struct ss_request *rq, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_party *party;
	struct ss_stream *s;
	bool was = false, goes_on = false;

	rq->stream = NULL;
	rq->sender = NULL;
	if (ss_is_flat(policy))
		return ss_party_rest(all);
	if (!ss_request_is_awaited(rq))
		return all->trial.inner ? ss_party_rest(all) :
					  &all->party[PARTY_ASYNC];
	s = ss_streams_find(&all->streams, policy, rq, all->answer.together_ns,
			    now_ns);
	if (s)
		ss_elsewhere_goes_on(policy, s, rq);
	else
		s = ss_elsewhere_find(policy, rq);
	if (s) {
		/* It is the answer of the reader that was at its end last. */
		goes_on = all->answer.open && !all->answer.last &&
			  all->answer.sector ==
				  ss_streams_end(&all->streams, s);
		ss_streams_used(&all->streams, s);
		s->size += s->size < U32_MAX;
		s = ss_streams_goes_on(&all->streams, &policy->sched->curve, s,
				       ss_request_end(rq), all->has_weights,
				       now_ns);
		if (!s->nr_open)
			ss_wait_ends(policy, ss_party_of_stream(all, s),
				     now_ns);
		s->nr_open++;
		rq->stream = s;
		was = s->established;
	}
	party = ss_party_assign(policy, rq, now_ns);
	party = ss_apart_party(policy, party, rq, now_ns);
	if (!was && ss_party_stream(all, party))
		ss_turn_established(policy, party, goes_on);
	return party;
}

static void stream_arrived(struct ss_policy *policy, struct ss_request *rq,
			   u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_decision instead = ss_nothing();
	struct ss_party *party;
	bool idle, contended, sender_idle;

	ss_trial_time_passes(policy, now_ns);
	INIT_LIST_HEAD(&rq->age_node);
	party = stream_party(policy, rq, now_ns);
	idle = ss_party_is_idle(party);
	sender_idle = !rq->sender || ss_sender_is_idle(all, rq->sender);
	contended = ss_party_others_work(policy, party);
	if (idle && ss_party_is_rest(all, party))
		ss_wait_ends(policy, party, now_ns);
	if (party == all->turn.party && party != ss_party_rest(all)) {
		all->answer.open = false; /* it goes on by itself */
	} else if (!ss_party_is_async(all, party)) {
		if (all->answer.open && !all->answer.last)
			instead = ss_choose_instead(policy, now_ns);
		ss_answer_arrived(policy, party, rq, instead, now_ns);
	}
	ss_party_add(policy, party, rq, now_ns);
	ss_credit_caches(policy, party, rq, now_ns);
	if (idle && sender_idle && contended)
		ss_credit_arrived(policy, party, rq, now_ns);
	ss_turn_note_holding(policy, now_ns);
}

static void stream_dispatched(struct ss_policy *policy, struct ss_request *rq,
			      u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_party *party = ss_party_of(all, rq);

	ss_turn_dispatched(policy, party, rq, now_ns);
	if (!rq->cached)
		ss_answer_dispatched(policy, rq, now_ns);
	ss_party_take(policy, rq, false, now_ns);
	party->nr_in_flight++;
	party->sent++;
	party->sent_sectors += rq->nr_sectors;
	/* Others may go on from it. */
	if (!rq->stream && ss_request_is_awaited(rq) && !ss_is_flat(policy))
		ss_streams_begin(&all->streams, rq);
}

static void stream_completed(struct ss_policy *policy, struct ss_request *rq,
			     u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_party *party = ss_party_of(all, rq);
	struct ss_stream *s = rq->stream;
	struct ss_sender *sender = rq->sender ?: ss_party_sender(all, party);

	if (!rq->party && policy->inner->ops->completed)
		policy->inner->ops->completed(policy->inner, rq, now_ns);
	party->nr_in_flight--;
	ss_turn_completed(policy, party, rq, now_ns);
	ss_answer_completed(policy, rq, now_ns);
	if (ss_party_is_rest(all, party) && !ss_established(rq))
		ss_areas_completed(&all->areas, rq);
	if (party == ss_party_rest(all))
		ss_nearest_completed(&all->senders.nearest, rq);
	if (sender)
		ss_nearest_completed(&sender->nearest, rq);
	ss_trial_done(policy, rq);
	ss_party_rest_loses(all, rq);
	if (s && ss_streams_closes(s))
		ss_wait_begins(all, ss_party_of_stream(all, s), now_ns);
	if (ss_party_is_rest(all, party) && ss_party_is_idle(party))
		ss_wait_begins(all, party, now_ns);
	ss_trial_time_passes(policy, now_ns);
	ss_turn_note_holding(policy, now_ns);
}

static void stream_merged(struct ss_policy *policy, struct ss_request *rq,
			  u64 old_sector, u64 now_ns)
{
	struct ss_policy *inner = policy->inner;
	struct ss_parties *all = policy->state;
	const struct ss_stream *s = rq->stream;

	if (rq->party) {
		if (rq->sector != old_sector)
			ss_sorted_moved(&ss_party_of(all, rq)->sorted, rq);
	} else if (inner->ops->merged) {
		inner->ops->merged(inner, rq, old_sector, now_ns);
	}
	/* Elsewhere others have gone on from it, or its stream is behind. */
	if (s && rq->sector == old_sector &&
	    ss_streams_end(&all->streams, s) - rq->sector < rq->nr_sectors)
		ss_streams_ends_at(&all->streams, s, ss_request_end(rq));
}

/* Write-back that an fsync() waits for is write-back no longer. */
static void stream_awaited(struct ss_policy *policy, struct ss_request *rq,
			   const struct ss_request *part, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_party *rest = ss_party_rest(all);
	bool idle = ss_party_is_idle(rest) &&
		    ss_party_others_work(policy, rest);

	(void)part;
	if (rq->direction == SS_READ)
		rq->flags &= (u8)~SS_AHEAD;
	else
		rq->flags |= SS_SYNC;
	if (!ss_party_is_async(all, ss_party_of(all, rq)))
		return;
	ss_party_move(policy, rq, rest, now_ns);
	if (idle)
		ss_credit_arrived(policy, rest, rq, now_ns);
}

static void stream_joins(struct ss_policy *policy, struct ss_request *rq,
			 const struct ss_request *next)
{
	struct ss_policy *inner = policy->inner;
	struct ss_parties *all = policy->state;
	struct ss_party *party = ss_party_of(all, rq);
	u64 due_ns = rq->arrival_ns + policy->value[STREAM_WAIT_TARGET];

	ss_older(rq->party ? &all->age_own : &all->age, rq, age_node);
	if (!rq->party && inner->ops->joins)
		inner->ops->joins(inner, rq, next);
	if (rq->party && !party->had_turn && due_ns < party->due_ns)
		ss_party_is_due(all, party, due_ns);
}

static void stream_removed(struct ss_policy *policy, struct ss_request *rq,
			   u64 now_ns)
{
	struct ss_stream *s = rq->stream;

	ss_party_take(policy, rq, true, now_ns);
	/* Its reader's think time goes on: nothing of it has been served. */
	if (s)
		ss_streams_closes(s);
	ss_turn_note_holding(policy, now_ns);
}

/* Who asked for a flush is at work in it, and thinks from its end on. */
static void stream_flushes(struct ss_policy *policy, bool begins, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	const struct ss_party *party = all->turn.wrote;

	ss_turn_flushes(policy, begins, now_ns);
	/* Where the turn has gone on its think time does, too. */
	if (!party || party != all->turn.party || all->turn.nr_flushes)
		return;
	/* The reader just served can send its next one from now on only. */
	if (all->answer.open)
		all->answer.since_ns = now_ns;
	if (!ss_party_is_idle(party))
		return;
	ss_wait_begins(all, party, now_ns);
	ss_turn_note_holding(policy, now_ns);
}

/* Behind the streams are the parties of what is in none. */
static bool stream_stream_at(const struct ss_policy *policy, u32 index,
			     u64 now_ns, struct ss_stream_info *info)
{
	struct ss_parties *all = policy->state;
	const struct ss_party *party = &all->party[index];
	const struct ss_stream *s = ss_party_stream(all, party);
	const struct ss_reader *reader;

	if (index >= NR_PARTIES)
		return false;
	reader = ss_party_reader(all, party);
	*info = (struct ss_stream_info){
		.kind = s		      ? "stream" :
			index == PARTY_ASYNC  ? "write-back" :
			index >= PARTY_SENDER ? "sender" :
						"rest",
		.end_sector = s ? ss_streams_end(&all->streams, s) : 0,
		.sent = party->sent,
		.sent_sectors = party->sent_sectors,
		.used_ns = party->used_ns,
		.paused_ns = s && s->nr_open ? 0 :
					       now_ns - reader->idle_since_ns,
		.size = s ? s->size : party->sent > 0,
		.nr_pending = party->nr_pending,
		.established = !s || s->established,
		.turn = party == all->turn.party,
	};
	if (ss_think_pays(&reader->think))
		info->limit_ns = ss_think_limit_ns(&reader->think,
						   all->switch_ns);
	return true;
}

static u32 stream_index_of(const struct ss_policy *policy,
			   const struct ss_request *rq)
{
	struct ss_parties *all = policy->state;

	return ss_party_index(all, ss_party_of(all, rq));
}

const struct ss_policy_ops ss_stream_ops = {
	.name = "stream",
	.help = "streams found in the requests take turns at the disk",
	.flags = SS_WRAPPER | SS_USES_OWNER | SS_WEIGHS_REQUESTS,
	.state_bytes = sizeof(struct ss_parties),
	.tunables = stream_tunables,
	.nr_tunables = STREAM_TUNABLES,
	.replaced = stream_replaced,
	.init = stream_init,
	.tuned = stream_tuned,
	.arrived = stream_arrived,
	.choose = ss_choose,
	.dispatched = stream_dispatched,
	.completed = stream_completed,
	.merged = stream_merged,
	.awaited = stream_awaited,
	.joins = stream_joins,
	.removed = stream_removed,
	.flushes = stream_flushes,
	.stream_at = stream_stream_at,
	.index_of = stream_index_of,
	.check = ss_check,
};
