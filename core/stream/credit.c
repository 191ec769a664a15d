// SPDX-License-Identifier: GPL-2.0-only
/* Who has used less than its part. See credit.h. */
#include "credit.h"
#include "wait.h"

/* How many share the disk with @party, itself included, by weight. */
static u32 credit_weights(const struct ss_parties *all,
			  const struct ss_party *party)
{
	bool counted = party->nr_pending || party == all->turn.party;

	return ss_party_weights(all) + (counted ? 0 : party->weight);
}

static void credit_pay(const struct ss_parties *all, struct ss_party *party,
		       u64 now_ns)
{
	u64 paid_ns = div_u64(now_ns - party->debt_at_ns,
			      credit_weights(all, party)) *
		      party->weight;

	party->debt_at_ns = now_ns;
	party->debt_us -= (u32)min_t(u64, div_u64(paid_ns, 1000),
				     party->debt_us);
}

struct ss_party *ss_credit_of(struct ss_parties *all, struct ss_party *party,
			      const struct ss_sender *sender)
{
	if (sender)
		return ss_party_of_sender(all, sender);
	return party == ss_party_rest(all) ? &all->party[PARTY_ASYNC] : party;
}

void ss_credit_charge(const struct ss_policy *policy, struct ss_party *party,
		      u64 used_ns, u64 now_ns)
{
	party->used_ns += used_ns;
	ss_credit_owes(policy, party, used_ns, now_ns);
}

void ss_credit_owes(const struct ss_policy *policy, struct ss_party *party,
		    u64 used_ns, u64 now_ns)
{
	credit_pay(policy->state, party, now_ns);
	party->was_paid = !party->debt_us;
	used_ns = min_t(u64, 1000ULL * party->debt_us + used_ns,
			policy->value[STREAM_WAIT_TARGET]);
	party->debt_us = (u32)div_u64(used_ns, 1000);
}

u64 ss_credit_paid_ns(const struct ss_policy *policy, struct ss_party *party,
		      u64 now_ns)
{
	const struct ss_parties *all = policy->state;
	u64 pays_ns;

	credit_pay(all, party, now_ns);
	/* By when the head is there the debt is to be paid. */
	pays_ns = div_u64(1000ULL * party->debt_us * credit_weights(all, party),
			  party->weight);
	return now_ns + pays_ns - min_t(u64, pays_ns, all->switch_ns);
}

void ss_credit_arrived(const struct ss_policy *policy, struct ss_party *party,
		       const struct ss_request *rq, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	u64 paid_ns;

	if (party == all->turn.party || ss_party_is_async(all, party) ||
	    now_ns < ss_wait_until_ns(policy, party))
		return;
	paid_ns = ss_credit_paid_ns(policy, party, now_ns);
	if (rq->sender)
		paid_ns = max_t(
			u64, paid_ns,
			ss_credit_paid_ns(policy,
					  ss_party_of_sender(all, rq->sender),
					  now_ns));
	if (paid_ns >= party->due_ns)
		return;
	party->light = true;
	ss_party_is_due(all, party, paid_ns);
}

void ss_credit_caches(const struct ss_policy *policy, struct ss_party *party,
		      struct ss_request *rq, u64 now_ns)
{
	struct ss_parties *all = policy->state;

	if (rq->direction == SS_READ || !ss_request_is_awaited(rq) ||
	    !all->caches || all->cached)
		return;
	party = ss_credit_of(all, party, rq->sender);
	credit_pay(all, party, now_ns);
	if (party->flushes && (!party->debt_us || party->was_paid))
		all->cached = rq;
}
