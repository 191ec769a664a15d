// SPDX-License-Identifier: GPL-2.0-only
/* What a known sender has in a party of its own. See apart.h. */
#include "apart.h"
#include "credit.h"

/* The sender @owner; NULL: not known, or too many are at work. */
static struct ss_sender *apart_find(struct ss_parties *all, u64 owner,
				    u64 now_ns)
{
	u32 first = (u32)owner, i; /* hosts count */
	struct ss_sender *sender, *oldest = NULL;
	struct ss_party *party;

	if (owner == SS_OWNER_NONE)
		return NULL;
	for (i = 0; i < NR_SENDERS; i++) {
		sender = &all->senders.sender[(first + i) % NR_SENDERS];
		if (sender->owner == owner)
			return sender;
		if (ss_apart_is_idle(all, sender) &&
		    (!oldest || sender->came_ns < oldest->came_ns))
			oldest = sender;
	}
	if (!oldest)
		return NULL;
	party = ss_party_of_sender(all, oldest);
	ss_party_init(party);
	*ss_party_reader(all, party) = (struct ss_reader){};
	party->debt_at_ns = now_ns;
	*oldest = (struct ss_sender){ .owner = owner };
	return oldest;
}

/* Has @sender, from which a read comes, several at once? */
static bool apart_has_several(const struct ss_policy *policy,
			      struct ss_sender *sender, bool is_idle)
{
	sender->nr_alone = is_idle ? sender->nr_alone + 1 : 0;
	if (sender->nr_alone >= policy->value[STREAM_THRESHOLD])
		sender->several = false;
	else if (!is_idle)
		sender->several = true;
	return sender->several;
}

struct ss_party *ss_apart_party(struct ss_policy *policy,
				struct ss_party *party, struct ss_request *rq,
				u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_sender *sender;
	struct ss_party *own;
	bool is_idle;

	/* Members of an array have an order each. */
	if (all->takes_turns || all->trial.inner)
		return party;
	sender = apart_find(all, rq->owner, now_ns);
	if (!sender)
		return party;
	rq->sender = sender;
	sender->came_ns = now_ns;
	own = ss_party_of_sender(all, sender);
	is_idle = ss_apart_is_idle(all, sender);
	if (ss_party_weight(rq) != USUAL)
		return own;
	if (rq->direction == SS_READ &&
	    apart_has_several(policy, sender, is_idle))
		return own;
	return is_idle && ss_credit_paid_ns(policy, own, now_ns) <= now_ns ?
		       own :
		       party;
}
