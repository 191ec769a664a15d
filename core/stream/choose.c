// SPDX-License-Identifier: GPL-2.0-only
/*
 * Choosing: which party goes on, and with which of its requests.
 */
#include "../sorted.h"
#include "party.h"

/* A request of @party, which has one pending, with nothing of others inside. */
static struct ss_decision send(const struct ss_policy *policy,
			       const struct party *party, u64 now_ns)
{
	const struct parties *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	struct ss_decision decision = ss_nothing();

	if (nr_moving(policy) > party->nr_in_flight &&
	    now_ns < stuck_at_ns(policy))
		return ss_because(ss_wait(stuck_at_ns(policy)), SS_WHY_DRAIN);
	if (party == &all->rest) {
		if (all->turn == party)
			decision = ss_answer_choose(policy, now_ns);
		if (decision.verdict != SS_NOTHING)
			return decision;
		return policy->inner->ops->choose(policy->inner, now_ns, NULL);
	}
	decision = ss_dispatch(ss_sorted_round(&party->sorted,
					       sched->head_sector, NULL));
	return ss_because(decision, SS_WHY_OWN);
}

/* The same where its turn begins; also why it does. */
static struct ss_decision begin(const struct ss_policy *policy,
				const struct party *party, enum ss_why why,
				u64 now_ns)
{
	struct ss_decision decision = send(policy, party, now_ns);

	if (decision.verdict == SS_DISPATCH)
		decision.why = why;
	return decision;
}

/* The light party that may interrupt, or NULL. */
static const struct party *light_party(const struct parties *all, u64 now_ns)
{
	const struct party *party, *best = NULL;

	if (!all->nr_light)
		return NULL;
	list_for_each_entry(party, &all->ready, ready)
		if (party->light_at_ns <= now_ns &&
		    (!best || party->light_at_ns < best->light_at_ns))
			best = party;
	return best;
}

/* Since when @party, which has something pending, has waited for a turn. */
static u64 waits_since_ns(const struct party *party)
{
	const struct ss_request *oldest;

	oldest = list_first_entry(&party->age, struct ss_request, age_node);
	return max_t(u64, oldest->arrival_ns, party->turn_ended_ns);
}

/* The party but @turn that has waited longest; @turn if there is no other. */
static const struct party *oldest_party(const struct parties *all,
					const struct party *turn)
{
	const struct party *party, *best = NULL;

	list_for_each_entry(party, &all->ready, ready) {
		if (party == turn)
			continue;
		if (!best || waits_since_ns(party) < waits_since_ns(best))
			best = party;
	}
	return best ? best : turn;
}

u64 ss_turn_oldest_ns(const struct parties *all, const struct party *turn)
{
	const struct party *oldest = oldest_party(all, turn);

	return oldest == turn ? SS_FOREVER : waits_since_ns(oldest);
}

struct ss_decision ss_turn_instead(const struct ss_policy *policy, u64 now_ns)
{
	const struct parties *all = policy->state;
	const struct ss_policy *inner = policy->inner;
	const struct party *next = all->turn;

	if (next != &all->rest || !next->nr_pending)
		next = oldest_party(all, next);
	if (!next || !next->nr_pending)
		return ss_nothing();
	if (next == &all->rest)
		return inner->ops->choose(inner, now_ns, NULL);
	return send(policy, next, now_ns);
}

struct ss_decision ss_turn_choose(const struct ss_policy *policy, u64 now_ns,
				  const struct ss_request *skip)
{
	const struct parties *all = policy->state;
	const struct party *turn = all->turn, *light, *next;
	const struct ss_policy *inner = policy->inner;

	if ((is_flat(policy) || all->trial.inner) &&
	    all->nr_ready == (all->rest.nr_pending > 0))
		return ss_because(inner->ops->choose(inner, now_ns, skip),
				  SS_WHY_INNER);
	light = light_party(all, now_ns);
	if (light && light != turn)
		return begin(policy, light, SS_WHY_LIGHT, now_ns);
	if (turn && !ss_turn_is_over(policy, turn, now_ns)) {
		u64 until_ns = max_t(u64, ss_pause_until_ns(policy, turn),
				     ss_answer_until_ns(all));

		if (turn->nr_pending)
			return send(policy, turn, now_ns);
		if (turn->nr_in_flight && nr_moving(policy) &&
		    now_ns < stuck_at_ns(policy))
			return ss_because(ss_wait(stuck_at_ns(policy)),
					  SS_WHY_PAUSE);
		if (all->answer.rq && ss_answer_pays(all))
			return ss_because(ss_dispatch(all->answer.rq),
					  SS_WHY_ANSWER);
		if (now_ns < until_ns)
			return ss_because(ss_wait(until_ns), SS_WHY_PAUSE);
	}
	if (all->back && all->back->nr_pending)
		return begin(policy, all->back, SS_WHY_BACK, now_ns);
	next = oldest_party(all, turn);
	return next == turn ? send(policy, turn, now_ns) :
			      begin(policy, next, SS_WHY_OLDEST, now_ns);
}
