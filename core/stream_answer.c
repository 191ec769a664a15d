// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: when to look for an answer, and which one goes first. What an answer
 * is, and whether looking for it is worth it, see answer.h.
 */
#include "stream.h"

#include <linux/kernel.h>
#include <linux/math64.h>

/* A turn of answers, with stream_time_slice=auto: wait_target by 1 + this. */
#define ANSWER_TURNS 3

static bool is_awaited_read(const struct ss_request *rq)
{
	return rq->direction == SS_READ && ss_request_is_awaited(rq);
}

/* For so long answers may go first one after the other: a turn of theirs. */
static u64 answers_turn_ns(const struct ss_policy *policy)
{
	u32 nr = policy->sched->nr_pending_dir[SS_READ];

	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO)
		return policy->value[STREAM_TIME_SLICE];
	return div_u64(policy->value[STREAM_WAIT_TARGET],
		       1 + max_t(u32, nr, ANSWER_TURNS));
}

/*
 * What positioning to the inner policy's choice costs: what such have cost,
 * where that was much less than the curve says, or more.
 */
static u64 inner_cost_ns(const struct ss_policy *policy, u64 now_ns)
{
	const struct ss_policy *inner = inner_of(policy);
	const struct stream_state_all *all = policy->state;
	struct ss_decision choice = inner->ops->choose(inner, now_ns, NULL);
	u32 truth;

	if (choice.verdict != SS_DISPATCH)
		return 0;
	truth = all->truth[choice.rq->direction];
	if (truth >= TRUTH_DOUBT && truth < 1000)
		truth = 1000;
	return div_u64(ss_sched_cost_ns(policy->sched, choice.rq) * truth,
		       1000);
}

void ss_stream_answer_open(const struct ss_policy *policy,
			   const struct ss_request *rq, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	u64 most_ns = answer_ns(policy);

	if (!most_ns || all->share.idle_ns || sched->nr_in_flight ||
	    !sched->nr_pending || !is_awaited_read(rq) || is_alone(all) ||
	    is_flat(policy) || is_led(sched, now_ns) ||
	    !ss_answer_due(&all->answer))
		return;
	if (all->held &&
	    (ss_stream_turn_is_over(policy, now_ns) ||
	     ss_stream_held_choose(policy, all->held, now_ns).verdict !=
		     SS_NOTHING))
		return;
	all->quiet = false;
	ss_answer_open(&all->answer, inner_cost_ns(policy, now_ns), most_ns,
		       now_ns);
}

/*
 * Shall @rq, an answer, go before what is next without it? Then it costs less,
 * @own_ns, and the way there and on from there clearly less than both by
 * themselves. Without the last where a stream is next: after its turn the head
 * would have to come back. Up to how much it pays is told in @most_ns.
 */
static bool answer_is_better(const struct ss_policy *policy,
			     const struct ss_request *rq, u64 own_ns,
			     u64 *most_ns, u64 now_ns)
{
	const struct ss_policy *inner = inner_of(policy);
	const struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	u64 least_ns = div_u64(all->answer.mean_choice_ns, ANSWER_MARGIN);
	struct ss_decision next;

	if (own_ns >= *most_ns)
		return false;
	next = inner->ops->choose(inner, now_ns, rq);
	if (next.verdict != SS_DISPATCH ||
	    (next.rq->stream && is_established(all, next.rq->stream)))
		return true;
	*most_ns = ss_answer_most_ns(&all->answer,
				     ss_sched_cost_ns(sched, next.rq),
				     ss_curve_service_ns(&sched->curve,
							 ss_request_end(rq),
							 next.rq->sector));
	return own_ns + least_ns < *most_ns;
}

void ss_stream_answer_came(const struct ss_policy *policy,
			   struct ss_request *rq, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	u64 choice_ns, own_ns, most_ns;

	if (!all->answer.open || !is_awaited_read(rq))
		return;
	choice_ns = inner_cost_ns(policy, now_ns);
	most_ns = choice_ns;
	own_ns = ss_sched_cost_ns(policy->sched, rq);
	if (now_ns < all->run_ns + answers_turn_ns(policy) &&
	    answer_is_better(policy, rq, own_ns, &most_ns, now_ns)) {
		all->answered = rq;
		all->answer.first_most_ns = most_ns;
		choice_ns = U64_MAX;
	}
	ss_answer_close(&all->answer, choice_ns, now_ns);
}

struct ss_decision ss_stream_answer_choose(const struct ss_policy *policy,
					   u64 now_ns,
					   const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;

	if (all->answer.open && now_ns < all->answer.until_ns)
		return ss_wait(all->answer.until_ns);
	if (all->answered && all->answered != skip)
		return ss_dispatch(all->answered);
	return ss_nothing();
}

void ss_stream_answer_done(struct stream_state_all *all, u64 took_ns,
			   u64 moving_ns)
{
	all->went_first = NULL;
	ss_answer_done(&all->answer, took_ns - min_t(u64, took_ns, moving_ns));
}
