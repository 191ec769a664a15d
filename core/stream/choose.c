// SPDX-License-Identifier: GPL-2.0-only
/* Which request is next. See choose.h. */
#include "choose.h"
#include "answer.h"
#include "turn.h"
#include "wait.h"

/* Others of the rest share its slice with the reader just served. */
static bool choose_reader_is_over(const struct ss_policy *policy, u64 now_ns)
{
	const struct ss_parties *all = policy->state;
	const struct ss_party *rest = &all->party[PARTY_REST];
	u32 others = rest->nr_pending - (all->answer.rq ? 1 : 0);
	u32 weights = ss_party_weights(all) - rest->weight + others * USUAL;

	return others &&
	       now_ns >= all->answer.began_ns +
				 ss_turn_slice_ns(policy, USUAL,
						  all->nr_ready - 1 + others,
						  weights);
}

/* Until when the rest, which has one pending, waits for what the drive has. */
static u64 choose_rest_until_ns(const struct ss_policy *policy)
{
	const struct ss_parties *all = policy->state;
	u64 stuck_at_ns = ss_turn_stuck_at_ns(policy);

	if (ss_turn_nr_moving(policy))
		return stuck_at_ns;
	/* One flush after another holds nobody beyond the target. */
	return ss_turn_is_flushing(all) ?
		       min_t(u64, stuck_at_ns, ss_party_rest_due_ns(policy)) :
		       0;
}

/* No request of a party passes by its @oldest that came the target after it. */
static bool choose_passes(const struct ss_policy *policy,
			  const struct ss_request *rq,
			  const struct ss_request *oldest)
{
	return rq->arrival_ns >
	       oldest->arrival_ns + policy->value[STREAM_WAIT_TARGET];
}

/* A request of the rest, which has one pending. */
static struct ss_decision choose_of_rest(const struct ss_policy *policy,
					 u64 now_ns)
{
	const struct ss_parties *all = policy->state;
	struct ss_decision decision = ss_nothing();
	u64 until_ns = choose_rest_until_ns(policy);
	bool begins = all->turn.party != &all->party[PARTY_REST];
	struct ss_request *oldest;

	if (!begins && ss_answer_pays(all)) {
		if (now_ns < until_ns)
			return ss_because(ss_wait(until_ns), SS_WHY_DRAIN);
		decision = ss_answer_choose(
			policy, choose_reader_is_over(policy, now_ns), now_ns);
	}
	if (decision.verdict != SS_NOTHING)
		return decision;
	decision = policy->inner->ops->choose(policy->inner, now_ns, NULL);
	oldest = list_first_entry(&all->age, struct ss_request, age_node);
	/* Its order begins anew in each turn, so it might never reach some. */
	if (begins && decision.verdict == SS_DISPATCH &&
	    choose_passes(policy, decision.rq, oldest))
		return ss_because(ss_dispatch(oldest), SS_WHY_OLDEST);
	return decision;
}

/*
 * A request of the queue of @party, which has one pending. At one place the
 * request that is farthest behind is next, so that its readers stay together.
 */
static struct ss_request *choose_own(const struct ss_policy *policy,
				     const struct ss_party *party)
{
	struct ss_parties *all = policy->state;
	struct ss_request *behind = ss_sorted_first(&party->sorted);
	struct ss_request *rq = ss_party_next(policy, party), *oldest;

	if (ss_distance(behind->sector, rq->sector) <=
	    ss_streams_place_sectors(&policy->sched->curve))
		rq = behind;
	oldest = list_first_entry(&all->age_own, struct ss_request, age_node);
	if (ss_party_of(all, oldest) == party &&
	    choose_passes(policy, rq, oldest))
		return oldest;
	return rq;
}

/* A request of @party, which has one pending, with nothing of others inside. */
static struct ss_decision choose_of(const struct ss_policy *policy,
				    const struct ss_party *party, u64 now_ns)
{
	const struct ss_parties *all = policy->state;
	u64 stuck_at_ns = ss_turn_stuck_at_ns(policy);
	struct ss_request *rq;

	if (ss_turn_nr_moving(policy) > party->nr_in_flight &&
	    now_ns < stuck_at_ns)
		return ss_because(ss_wait(stuck_at_ns), SS_WHY_DRAIN);
	if (party == ss_party_rest(policy->state))
		return choose_of_rest(policy, now_ns);
	rq = choose_own(policy, party);
	/* Readers of one place stay together: the one in front waits. */
	if (all->turn.nr_behind && now_ns < stuck_at_ns &&
	    !ss_turn_behind(policy, rq))
		return ss_because(ss_wait(stuck_at_ns), SS_WHY_DRAIN);
	return ss_because(ss_dispatch(rq), SS_WHY_OWN);
}

struct ss_decision ss_choose_instead(const struct ss_policy *policy, u64 now_ns)
{
	const struct ss_parties *all = policy->state;
	const struct ss_party *rest = &all->party[PARTY_REST];
	const struct ss_party *next = all->turn.party;

	if (next != rest || !next->nr_pending)
		next = all->first_due ?: next;
	if (!next || !next->nr_pending)
		return ss_nothing();
	if (next == rest)
		return policy->inner->ops->choose(policy->inner, now_ns, NULL);
	return choose_of(policy, next, now_ns);
}

/* What goes on in the turn of @turn, which is not over; SS_NOTHING: nothing. */
static struct ss_decision choose_in_turn(const struct ss_policy *policy,
					 const struct ss_party *turn,
					 u64 now_ns)
{
	const struct ss_parties *all = policy->state;
	u64 stuck_at_ns = ss_turn_stuck_at_ns(policy);
	u64 until_ns = max_t(u64, ss_wait_until_ns(policy, turn),
			     ss_answer_until_ns(all));

	if (turn->nr_pending)
		return choose_of(policy, turn, now_ns);
	if (((turn->nr_in_flight && ss_turn_nr_moving(policy)) ||
	     ss_turn_is_flushing(all)) &&
	    now_ns < stuck_at_ns)
		return ss_because(ss_wait(stuck_at_ns), SS_WHY_PAUSE);
	if (all->answer.rq && ss_answer_pays(all))
		return ss_because(ss_dispatch(all->answer.rq), SS_WHY_ANSWER);
	if (now_ns < until_ns)
		return ss_because(ss_wait(until_ns), SS_WHY_PAUSE);
	return ss_nothing();
}

/*
 * Has anybody waited for the target? A light party is due before that, the rest
 * in its own turn when its oldest request is.
 */
static bool choose_is_overdue(const struct ss_policy *policy, u64 now_ns)
{
	const struct ss_parties *all = policy->state;
	const struct ss_party *party;
	struct rb_node *node;

	for (node = rb_first_cached(&all->due); node; node = rb_next(node)) {
		party = rb_entry(node, struct ss_party, due_node);
		if (party->due_ns > now_ns)
			break;
		if (!party->light ||
		    now_ns - party->due_ns >= policy->value[STREAM_WAIT_TARGET])
			return true;
	}
	return all->party[PARTY_REST].nr_pending &&
	       ss_party_rest_due_ns(policy) <= now_ns;
}

struct ss_decision ss_choose(const struct ss_policy *policy, u64 now_ns,
			     const struct ss_request *skip)
{
	const struct ss_parties *all = policy->state;
	const struct ss_party *turn = all->turn.party, *first = all->first_due;
	const struct ss_party *next = first ?: turn;
	bool is_due = first && first->due_ns <= now_ns;
	struct ss_decision decision = ss_nothing();
	enum ss_why why = SS_WHY_OLDEST;

	if ((ss_is_flat(policy) || all->trial.inner) &&
	    all->nr_ready == !!all->party[PARTY_REST].nr_pending)
		return ss_because(policy->inner->ops->choose(policy->inner,
							     now_ns, skip),
				  SS_WHY_INNER);
	if (all->cached && !choose_is_overdue(policy, now_ns))
		return ss_because(ss_dispatch(all->cached), SS_WHY_LIGHT);
	if (is_due && first->light)
		why = SS_WHY_LIGHT;
	else if (turn && !ss_turn_is_over(policy, turn, now_ns))
		decision = choose_in_turn(policy, turn, now_ns);
	if (decision.verdict != SS_NOTHING)
		return decision;
	if (!is_due && all->turn.back && all->turn.back->nr_pending) {
		next = all->turn.back;
		why = SS_WHY_BACK;
	}
	decision = choose_of(policy, next, now_ns);
	/* Why its turn begins. */
	if (next != turn && decision.verdict == SS_DISPATCH)
		decision.why = why;
	return decision;
}
