// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting: how long the head stays for a party that has nothing to do.
 *
 * One estimator for each party: the mean pause before its next request and the
 * pauses' deviation. And a ledger: a wait that ended with the request has won
 * a switch less the pause, one in vain has lost its length. It is kept whether
 * or not the head waited, so that a party that has changed is waited for again.
 */
#include "party.h"

/* Means of about so many pauses. Half: noisy; double: follows changes late. */
#define PAUSE_MEMORY 8
/* Below so many samples a wait is as long as a switch. */
#define PAUSE_FEW 4
/* So many deviations beyond the mean nearly all pauses have ended. */
#define PAUSE_DEVIATIONS 4
/* What the ledger remembers at most, in switches, either way. */
#define LEDGER_SWITCHES 8

/* A pause that is longer tells only that it was too long. */
static u64 longest_ns(const struct parties *all)
{
	return all->switch_ns + all->switch_ns / 2;
}

u64 ss_pause_limit_ns(const struct parties *all, const struct pause *pause)
{
	u64 deviation_ns;

	if (pause->nr < PAUSE_FEW)
		return all->switch_ns;
	/* Pauses that have not differed yet will. */
	deviation_ns = max_t(u64, pause->deviation_ns,
			     pause->mean_ns / PAUSE_DEVIATIONS);
	return min_t(u64, longest_ns(all),
		     pause->mean_ns + PAUSE_DEVIATIONS * deviation_ns);
}

static void note(struct pause *pause, u64 pause_ns)
{
	u64 off_ns;

	if (!pause->nr)
		pause->mean_ns = pause_ns;
	off_ns = pause_ns > pause->mean_ns ? pause_ns - pause->mean_ns :
					     pause->mean_ns - pause_ns;
	pause->mean_ns += div_s64((s64)(pause_ns - pause->mean_ns),
				  PAUSE_MEMORY);
	pause->deviation_ns += div_s64((s64)(off_ns - pause->deviation_ns),
				       PAUSE_MEMORY);
	pause->nr += pause->nr < PAUSE_FEW;
}

static void book(const struct parties *all, struct pause *pause, s64 won_ns)
{
	s64 most_ns = (s64)(LEDGER_SWITCHES * all->switch_ns);

	pause->ledger_ns += won_ns;
	pause->ledger_ns = min_t(s64, most_ns, pause->ledger_ns);
	pause->ledger_ns = max_t(s64, -most_ns, pause->ledger_ns);
}

bool ss_pause_note(const struct ss_policy *policy, struct pause *pause,
		   u64 pause_ns, s64 saves_ns)
{
	const struct parties *all = policy->state;
	u64 limit = ss_pause_limit_ns(all, pause);
	s64 won_ns = -(s64)limit;

	if (pause_ns <= limit)
		won_ns = saves_ns - (s64)pause_ns;
	book(all, pause, won_ns);
	note(pause, min_t(u64, pause_ns, 2 * longest_ns(all)));
	return won_ns > 0;
}

void ss_pause_ends(const struct ss_policy *policy, struct party *party,
		   u64 now_ns)
{
	struct parties *all = policy->state;
	u64 pause_ns = now_ns - party->idle_since_ns;
	bool contended = party->contended || others_work(policy, party);

	if (contended && ss_party_is_young(policy, party) &&
	    party->established &&
	    pause_ns <= ss_pause_limit_ns(all, &party->pause))
		book(all, &all->young, (s64)all->switch_ns - (s64)pause_ns);
	if (contended)
		ss_pause_note(policy, &party->pause, pause_ns,
			      (s64)all->switch_ns);
	else
		note(&party->pause, min_t(u64, pause_ns, 2 * longest_ns(all)));
}

void ss_pause_in_vain(const struct ss_policy *policy, const struct party *party)
{
	struct parties *all = policy->state;

	if (ss_party_is_young(policy, party))
		book(all, &all->young,
		     -(s64)ss_pause_limit_ns(all, &party->pause));
}

u64 ss_pause_until_ns(const struct ss_policy *policy, const struct party *party)
{
	const struct parties *all = policy->state;

	if (!party->idle_since_ns || party == &all->async ||
	    !ss_pause_pays(&party->pause) ||
	    (ss_party_is_young(policy, party) && !ss_pause_pays(&all->young)))
		return 0;
	return party->idle_since_ns + ss_pause_limit_ns(all, &party->pause);
}
