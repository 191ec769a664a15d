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
 * inner policy's choice takes, or as long as that has paid, by when they came;
 * if none comes their turn is over, so that this is lost once in a turn at
 * most. As in CFQ, where all who seek have one slice together.
 *
 * Where these are late, too, their turn lasts as long as a stream's then does,
 * for which late_end_ns() of stream_turn.c has the reason.
 *
 * A stream that is established in that turn is of it.
 *
 * On the members of an array that brings heads together such a turn is the
 * array's, and begins there (array_turn.c).
 */
#include "stream.h"

#include <linux/kernel.h>
#include <linux/limits.h>

/* So often the next one is awaited as if nothing were known. */
#define SHARE_PROBE 8

/* May @rq go in this turn? Somebody waits for it, and it is of no other. */
static bool is_of_others(const struct stream_state_all *all,
			 const struct ss_request *rq)
{
	const struct stream *s = rq->stream;

	return ss_request_is_awaited(rq) &&
	       (!s || !is_established(all, s) || s->share_nr == all->share.nr);
}

/* The oldest pending request that may go in this turn, or NULL. */
static struct ss_request *oldest_of_others(const struct stream_state_all *all)
{
	struct ss_request *rq;

	list_for_each_entry(rq, &all->age, age_node)
		if (is_of_others(all, rq))
			return rq;
	return NULL;
}

/* @rq or the oldest one of @streams that waits for the turn's end; or NULL. */
static struct ss_request *older_of(const struct stream_state_all *all,
				   const struct list_head *streams,
				   struct ss_request *rq)
{
	const struct stream *s;
	struct ss_request *first;

	list_for_each_entry(s, streams, node) {
		if (!s->nr_pending)
			continue;
		first = list_first_entry(&s->members, struct ss_request,
					 member_node);
		if (!is_of_others(all, first) &&
		    (!rq || first->arrival_ns < rq->arrival_ns))
			rq = first;
	}
	return rq;
}

/* Not by age: a thousand may be pending, and none of a stream. */
static struct ss_request *oldest_of_streams(const struct stream_state_all *all)
{
	/* A later member may have gone before: then it is a parent's. */
	return older_of(all, &all->parents, older_of(all, &all->waiting, NULL));
}

void ss_stream_share_begin(const struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;

	/* Where heads are brought together the array says whose turn it is. */
	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO ||
	    is_led(policy->sched, now_ns))
		return;
	all->share.open = true;
	all->share.nr++;
	/* Where no stream is left, it shall not keep write-back waiting. */
	all->share.until_ns = now_ns + policy->value[STREAM_WAIT_TARGET];
	all->share.least_ns = now_ns + LATE_SWITCHES * all->switch_ns;
}

void ss_stream_share_arrived(const struct ss_policy *policy,
			     const struct ss_request *rq, u64 now_ns)
{
	struct stream_state_all *all = policy->state;

	if (!is_of_others(all, rq))
		return;
	if (all->share.idle_ns && all->share.worth_ns)
		ss_stream_span_add(
			&all->share.score, now_ns - all->share.idle_ns,
			(s64)all->share.worth_ns -
				(s64)ss_sched_cost_ns(policy->sched, rq));
	all->share.idle_ns = 0;
}

void ss_stream_share_dispatched(struct stream_state_all *all,
				const struct ss_request *rq, u64 now_ns)
{
	/* None came; an old write that goes before that ends nobody's turn. */
	bool in_vain = all->share.idle_ns || ss_request_is_awaited(rq);

	if (all->share.idle_ns && all->share.worth_ns)
		ss_stream_span_miss(&all->share.score, all->share.worth_ns);
	all->share.idle_ns = 0;
	if ((in_vain && !is_of_others(all, rq)) ||
	    now_ns >= all->share.until_ns)
		all->share.open = false;
}

void ss_stream_share_completed(const struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_policy *inner = inner_of(policy);
	struct ss_decision choice;

	if (policy->sched->nr_in_flight || oldest_of_others(all))
		return;
	all->share.idle_ns = now_ns;
	/* To wait costs nothing with nobody else there, and tells nothing. */
	choice = inner->ops->choose(inner, now_ns, NULL);
	all->share.worth_ns = 0;
	if (choice.verdict != SS_DISPATCH)
		return;
	all->share.worth_ns = ss_sched_cost_ns(policy->sched, choice.rq);
	/* Whoever comes later than that paid is never seen else. */
	all->share.enough_ns = ++all->share.nr_idle % SHARE_PROBE ?
				       all->share.score.enough_ns :
				       U64_MAX;
}

/* When @next, a request of a stream, ends this turn. */
static u64 share_end_ns(const struct ss_policy *policy,
			const struct ss_request *next, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_request *own;
	u64 end_ns = next->arrival_ns + ss_stream_target_ns(policy);

	if (now_ns < end_ns || now_ns >= all->share.least_ns)
		return end_ns;
	own = oldest_of_others(all);
	if (!own ||
	    now_ns < own->arrival_ns + policy->value[STREAM_WAIT_TARGET])
		return end_ns;
	return all->share.least_ns;
}

struct ss_decision ss_stream_share_choose(const struct ss_policy *policy,
					  u64 now_ns,
					  const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_policy *inner = inner_of(policy);
	struct ss_request *rq, *next = oldest_of_streams(all);
	struct ss_decision choice;
	u64 end_ns = SS_FOREVER, until_ns;

	if (next)
		end_ns = share_end_ns(policy, next, now_ns);
	if (now_ns >= end_ns && next != skip)
		return ss_dispatch(next);
	if (now_ns >= all->share.until_ns)
		return ss_nothing();
	end_ns = min_t(u64, end_ns, all->share.until_ns);
	choice = ss_stream_answer_choose(policy, now_ns, skip);
	if (choice.verdict == SS_WAIT ||
	    (choice.verdict == SS_DISPATCH && is_of_others(all, choice.rq)))
		return choice;
	choice = inner->ops->choose(inner, now_ns, skip);
	if (choice.verdict != SS_DISPATCH || is_of_others(all, choice.rq))
		return choice;
	rq = oldest_of_others(all);
	if (rq && rq != skip)
		return ss_dispatch(rq);
	if (policy->sched->nr_in_flight)
		return ss_wait(end_ns);
	until_ns = all->share.idle_ns +
		   min_t(u64, ss_sched_cost_ns(policy->sched, choice.rq),
			 all->share.enough_ns);
	until_ns = min_t(u64, until_ns, end_ns);
	if (!all->share.idle_ns || now_ns >= until_ns)
		return ss_nothing();
	return ss_wait(until_ns);
}
