// SPDX-License-Identifier: GPL-2.0-only
/* The reader just served goes on at its place. See answer.h. */
#include "answer.h"
#include "wait.h"

/* What serving @rq costs from where the reader just served was. */
static u64 answer_cost_ns(const struct ss_policy *policy,
			  const struct ss_request *rq)
{
	const struct ss_parties *all = policy->state;

	return ss_curve_between(&policy->sched->curve, all->answer.sector,
				rq->sector);
}

/* With several of the rest at once the drive may do better than by distance. */
static u64 answer_instead_ns(const struct ss_policy *policy,
			     const struct ss_request *rq)
{
	const struct ss_parties *all = policy->state;
	u64 together_ns = rq->party ? 0 : all->answer.together_ns;

	return min_t(u64, answer_cost_ns(policy, rq),
		     together_ns ?: SS_FOREVER);
}

static void answer_is_lost(struct ss_parties *all, u64 now_ns)
{
	ss_think_tell(&all->answer.think, now_ns - all->answer.since_ns, 0,
		      all->switch_ns);
}

void ss_answer_arrived(struct ss_policy *policy, const struct ss_party *party,
		       struct ss_request *rq, struct ss_decision instead,
		       u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_answer *answer = &all->answer;
	bool in_rest = party == ss_party_rest(all) && all->turn.party == party;
	u64 instead_ns = answer->instead_ns;
	bool won;

	if (!answer->open)
		return;
	answer->open = false;
	if (!answer->last) {
		if (instead.verdict != SS_DISPATCH)
			return;
		instead_ns = answer_instead_ns(policy, instead.rq);
	}
	won = ss_think_tell(&answer->think, now_ns - answer->since_ns,
			    (s64)(instead_ns - answer_cost_ns(policy, rq)),
			    all->switch_ns);
	/* On the whole they pay: a reader of the rest has its slice. */
	if (!answer->last && (won || in_rest))
		answer->rq = rq;
}

void ss_answer_dispatched(struct ss_policy *policy, const struct ss_request *rq,
			  u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_answer *answer = &all->answer;

	if (rq != answer->rq && all->turn.party == ss_party_rest(all))
		answer->began_ns = now_ns;
	if (answer->open)
		answer->instead_ns = answer_instead_ns(policy, rq);
	answer->rq = NULL;
	answer->last = rq;
}

void ss_answer_completed(struct ss_policy *policy, const struct ss_request *rq,
			 u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_answer *answer = &all->answer;
	const struct ss_party *turn = all->turn.party;

	if (rq != answer->last)
		return;
	/* The reader served before it has sent nothing all the time. */
	if (answer->open)
		answer_is_lost(all, now_ns);
	answer->last = NULL;
	answer->sector = ss_request_end(rq);
	answer->since_ns = now_ns;
	answer->open = all->nr_ready &&
		       (turn == ss_party_rest(all) || !turn->nr_pending);
}

bool ss_answer_pays(const struct ss_parties *all)
{
	return !all->takes_turns &&
	       (all->answer.last || all->answer.since_ns) &&
	       ss_think_pays(&all->answer.think);
}

u64 ss_answer_until_ns(const struct ss_parties *all)
{
	const struct ss_answer *answer = &all->answer;

	if (!answer->open || !ss_answer_pays(all))
		return 0;
	return answer->since_ns +
	       ss_think_limit_ns(&answer->think, all->switch_ns);
}

void ss_answer_ends(struct ss_policy *policy, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_answer *answer = &all->answer;
	u64 until_ns = ss_answer_until_ns(all);

	/* The head has waited in vain for it, and for nothing else. */
	if (until_ns && now_ns >= until_ns &&
	    ss_wait_until_ns(policy, all->turn.party) < until_ns)
		answer_is_lost(all, now_ns);
	answer->began_ns = now_ns;
	answer->open = false;
	answer->rq = NULL;
	answer->last = NULL;
	answer->since_ns = 0;
}

struct ss_decision ss_answer_choose(const struct ss_policy *policy,
				    bool slice_is_over, u64 now_ns)
{
	const struct ss_parties *all = policy->state;
	const struct ss_answer *answer = &all->answer;
	struct ss_request *oldest;

	if (slice_is_over) {
		oldest = ss_party_next(policy, &all->party[PARTY_REST]);
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
