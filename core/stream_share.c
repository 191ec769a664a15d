// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: the turn of those that are no streams.
 *
 * With stream_time_slice=auto all requests of no stream are one party beside
 * the streams, and a slice is the shorter for it (slice_ns() of stream_turn.c).
 * But one of its requests takes milliseconds, and then the inner policy would
 * send the next of a stream, which is there already: whoever reads one small
 * file after the other, or at random, would have one request for each slice of
 * a reader beside him. So when a stream's slice is over and such a request
 * goes, it begins a turn: such requests go first until one of a stream has
 * waited for wait_target, which is as long a turn as a stream's. Where there is
 * none at the moment the next is awaited for as long as positioning to the
 * inner policy's choice takes; if none comes their turn is over, so that this
 * is lost once in a turn at most. As in CFQ, where all who seek have one slice
 * together.
 *
 * A stream that is established in that turn is of it.
 */
#include "stream.h"

#include <linux/kernel.h>

/* May @rq go in this turn? Somebody waits for it, and it is of no other. */
static bool is_of_others(const struct stream_state_all *all,
			 const struct ss_request *rq)
{
	const struct stream *s = rq->stream;

	return ss_request_is_sync(rq) &&
	       (!s || !is_established(all, s) || s->share_nr == all->share.nr);
}

/* The oldest pending request that somebody waits for and @others may send. */
static struct ss_request *oldest_of(const struct stream_state_all *all,
				    bool others)
{
	struct ss_request *rq;

	list_for_each_entry(rq, &all->age, age_node)
		if (ss_request_is_sync(rq) && is_of_others(all, rq) == others)
			return rq;
	return NULL;
}

void ss_stream_share_begin(const struct ss_policy *policy)
{
	struct stream_state_all *all = policy->state;

	/* Of an array's members the coordinator says whose turn it is. */
	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO ||
	    policy->sched->coordinator)
		return;
	all->share.open = true;
	all->share.nr++;
}

void ss_stream_share_arrived(struct stream_state_all *all,
			     const struct ss_request *rq)
{
	if (is_of_others(all, rq))
		all->share.idle_ns = 0;
}

void ss_stream_share_dispatched(struct stream_state_all *all,
				const struct ss_request *rq)
{
	all->share.idle_ns = 0;
	/* An old write that goes meanwhile ends nobody's turn. */
	if (ss_request_is_sync(rq) && !is_of_others(all, rq))
		all->share.open = false;
}

void ss_stream_share_completed(const struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;

	if (!policy->sched->nr_in_flight && !oldest_of(all, true))
		all->share.idle_ns = now_ns;
}

struct ss_decision ss_stream_share_choose(const struct ss_policy *policy,
					  u64 now_ns,
					  const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_policy *inner = inner_of(policy);
	struct ss_request *rq, *next = oldest_of(all, false);
	struct ss_decision choice;
	u64 end_ns = SS_FOREVER, until_ns;

	if (next)
		end_ns = next->arrival_ns + ss_stream_target_ns(policy);
	if (now_ns >= end_ns && next != skip)
		return ss_dispatch(next);
	choice = ss_stream_answer_choose(policy, now_ns, skip);
	if (choice.verdict == SS_WAIT ||
	    (choice.verdict == SS_DISPATCH && is_of_others(all, choice.rq)))
		return choice;
	choice = inner->ops->choose(inner, now_ns, skip);
	if (choice.verdict != SS_DISPATCH || is_of_others(all, choice.rq))
		return choice;
	rq = oldest_of(all, true);
	if (rq && rq != skip)
		return ss_dispatch(rq);
	if (policy->sched->nr_in_flight)
		return ss_wait(end_ns);
	until_ns = all->share.idle_ns +
		   ss_sched_cost_ns(policy->sched, choice.rq);
	until_ns = min_t(u64, until_ns, end_ns);
	if (!all->share.idle_ns || now_ns >= until_ns)
		return ss_nothing();
	return ss_wait(until_ns);
}
