// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers: a turn belongs to a place, and the reader just served goes on there.
 *
 * A reader whose requests are near each other, but no stream, sends its next
 * one soon after the last one was done: the first arrival then is the answer.
 * It has won what the choice instead costs, less the pause and the way to the
 * answer. While answers have won, the head waits for them when a stream has
 * nothing more in its turn, and in the rest's turn it serves one reader for a
 * slice; then the request that has waited longest is next.
 */
#include "party.h"

/* What serving @rq costs from where the reader just served was. */
static u64 cost_ns(const struct ss_policy *policy, const struct ss_request *rq)
{
	const struct parties *all = policy->state;

	return ss_curve_between(&policy->sched->curve, all->answer.sector,
				rq->sector);
}

/* With several of the rest at once the drive may do better than by distance. */
static u64 instead_cost_ns(const struct ss_policy *policy,
			   const struct ss_request *rq)
{
	const struct parties *all = policy->state;
	u64 together_ns = all->answer.together_ns;

	if (rq->party || !together_ns)
		return cost_ns(policy, rq);
	return min_t(u64, cost_ns(policy, rq), together_ns);
}

void ss_answer_arrived(const struct ss_policy *policy,
		       const struct party *party, struct ss_request *rq,
		       u64 now_ns)
{
	struct parties *all = policy->state;
	struct answer *answer = &all->answer;
	bool in_rest = party == &all->rest && all->turn == party;
	u64 instead_ns = answer->instead_ns;
	bool won;

	if (!answer->open)
		return;
	answer->open = false;
	if (!answer->last) {
		const struct ss_decision choice = ss_turn_instead(policy,
								  now_ns);

		if (choice.verdict != SS_DISPATCH)
			return;
		instead_ns = instead_cost_ns(policy, choice.rq);
	}
	won = ss_pause_note(policy, &answer->pause, now_ns - answer->since_ns,
			    (s64)instead_ns - (s64)cost_ns(policy, rq));
	/* On the whole they pay: a reader of the rest has its slice. */
	if (!answer->last && (won || in_rest))
		answer->rq = rq;
}

void ss_answer_dispatched(const struct ss_policy *policy,
			  const struct ss_request *rq, u64 now_ns)
{
	struct parties *all = policy->state;
	struct answer *answer = &all->answer;

	if (rq != answer->rq && all->turn == &all->rest)
		answer->began_ns = now_ns;
	if (answer->open)
		answer->instead_ns = instead_cost_ns(policy, rq);
	answer->rq = NULL;
	answer->last = rq;
}

void ss_answer_completed(const struct ss_policy *policy,
			 const struct ss_request *rq, u64 now_ns)
{
	struct parties *all = policy->state;
	struct answer *answer = &all->answer;

	if (rq != answer->last)
		return;
	/* The reader served before it has sent nothing all the time. */
	if (answer->open)
		ss_pause_note(policy, &answer->pause, now_ns - answer->since_ns,
			      0);
	answer->last = NULL;
	answer->sector = ss_request_end(rq);
	answer->since_ns = now_ns;
	answer->open = all->nr_ready &&
		       (all->turn == &all->rest || !all->turn->nr_pending);
}

void ss_answer_ends(struct parties *all, u64 now_ns)
{
	all->answer.began_ns = now_ns;
	all->answer.open = false;
	all->answer.rq = NULL;
	all->answer.last = NULL;
	all->answer.since_ns = 0;
}

/* Others of the rest share its slice with the reader. */
static bool slice_is_over(const struct ss_policy *policy, u64 now_ns)
{
	const struct parties *all = policy->state;
	u32 others = all->rest.nr_pending - (all->answer.rq ? 1 : 0);

	return others &&
	       now_ns >= all->answer.began_ns +
				 ss_turn_slice_ns(policy, USUAL,
						  all->nr_ready - 1 + others,
						  weight_sum(all) -
							  all->rest.weight +
							  others * USUAL);
}

bool ss_answer_pays(const struct parties *all)
{
	return !all->takes_turns &&
	       (all->answer.last || all->answer.since_ns) &&
	       ss_pause_pays(&all->answer.pause);
}

u64 ss_answer_until_ns(const struct parties *all)
{
	const struct answer *answer = &all->answer;

	if (!answer->open || !ss_answer_pays(all))
		return 0;
	return answer->since_ns + ss_pause_limit_ns(all, &answer->pause);
}

struct ss_decision ss_answer_choose(const struct ss_policy *policy, u64 now_ns)
{
	const struct parties *all = policy->state;
	const struct answer *answer = &all->answer;
	struct ss_request *oldest;

	if (!ss_answer_pays(all) || list_empty(&all->rest.age))
		return ss_nothing();
	oldest = list_first_entry(&all->rest.age, struct ss_request, age_node);
	if (nr_moving(policy) && now_ns < stuck_at_ns(policy))
		return ss_because(ss_wait(stuck_at_ns(policy)), SS_WHY_DRAIN);
	if (slice_is_over(policy, now_ns)) {
		if (oldest == answer->rq)
			oldest = list_next_entry(oldest, age_node);
		return ss_because(ss_dispatch(oldest), SS_WHY_OLDEST);
	}
	if (answer->rq)
		return ss_because(ss_dispatch(answer->rq), SS_WHY_ANSWER);
	if (now_ns < ss_answer_until_ns(all))
		return ss_because(ss_wait(ss_answer_until_ns(all)),
				  SS_WHY_PAUSE);
	return ss_nothing();
}
