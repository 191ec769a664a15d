// SPDX-License-Identifier: GPL-2.0-only
/*
 * Credit: head time is charged to the party that uses it.
 *
 * A party's debt grows by the head time it uses, switches included, and falls
 * by its equal part of all time. A party that was idle and whose debt is paid
 * is light: its request interrupts the turn at once, and is charged for both
 * ways. A party that always has something pending never is, and one whose next
 * request comes sooner than a switch takes is better waited for in its turn.
 */
#include "party.h"

/* How many share the disk with @party, itself included. */
static u32 nr_sharing(const struct parties *all, const struct party *party)
{
	if (party->nr_pending || party == all->turn)
		return weight_sum(all);
	return weight_sum(all) + party->weight;
}

static void pay(const struct parties *all, struct party *party, u64 now_ns)
{
	u64 paid_ns = div_u64(now_ns - party->debt_at_ns,
			      nr_sharing(all, party)) *
		      party->weight;

	party->debt_at_ns = now_ns;
	party->debt_ns -= min_t(u64, paid_ns, party->debt_ns);
}

void ss_credit_charge(const struct ss_policy *policy, struct party *party,
		      u64 used_ns, u64 now_ns)
{
	pay(policy->state, party, now_ns);
	party->used_ns += used_ns;
	party->debt_ns = min_t(u64, party->debt_ns + used_ns,
			       policy->value[STREAM_WAIT_TARGET]);
}

void ss_credit_arrived(const struct ss_policy *policy, struct party *party,
		       u64 now_ns)
{
	struct parties *all = policy->state;
	u64 paid_ns;

	if (party == all->turn || party == &all->async ||
	    now_ns < ss_pause_until_ns(policy, party))
		return;
	pay(all, party, now_ns);
	/* By when the head is there the debt is to be paid. */
	paid_ns = div_u64(party->debt_ns * nr_sharing(all, party),
			  party->weight);
	party->light_at_ns = now_ns + paid_ns -
			     min_t(u64, paid_ns, all->switch_ns);
	all->nr_light++;
}

void ss_credit_clear(struct parties *all, struct party *party)
{
	if (party->light_at_ns != SS_FOREVER)
		all->nr_light--;
	party->light_at_ns = SS_FOREVER;
}
