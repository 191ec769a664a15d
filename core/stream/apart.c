// SPDX-License-Identifier: GPL-2.0-only
/* What a sender has in a party of its own. See apart.h. */
#include "apart.h"
#include "credit.h"

/* The sender @owner, @new or not; NULL: not known, or too many are at work. */
static struct ss_sender *apart_find(struct ss_parties *all, u64 owner, bool new,
				    u64 now_ns)
{
	u32 first = (u32)owner, i; /* hosts count */
	struct ss_sender *sender, *oldest = NULL;
	struct ss_party *party;

	if (owner == SS_OWNER_NONE)
		return NULL;
	/* It has few places: of many senders most are looked up in vain. */
	for (i = 0; i < NR_SENDERS / 8; i++) {
		sender = &all->senders.sender[(first + i) % NR_SENDERS];
		if (sender->owner == owner)
			return sender;
		/* Who wrote last may be about to flush. */
		if (ss_sender_is_idle(all, sender) &&
		    sender != all->turn.wrote_sender &&
		    (!oldest || sender->came_ns < oldest->came_ns))
			oldest = sender;
	}
	if (!oldest || !new)
		return NULL;
	party = ss_party_of_sender(all, oldest);
	ss_party_init(party);
	*ss_party_reader(all, party) = (struct ss_reader){};
	party->debt_at_ns = now_ns;
	*oldest = (struct ss_sender){ .owner = owner };
	return oldest;
}

static u32 apart_outstanding(struct ss_parties *all,
			     const struct ss_sender *sender)
{
	const struct ss_party *own = ss_party_of_sender(all, sender);

	return sender->nr_rest + own->nr_pending + own->nr_in_flight;
}

/* Has any sender at most half as many outstanding as @sender with one more? */
static bool apart_is_deeper(struct ss_parties *all,
			    const struct ss_sender *sender)
{
	u32 nr = apart_outstanding(all, sender) + 1, other, i;

	for (i = 0; i < NR_SENDERS; i++) {
		other = apart_outstanding(all, &all->senders.sender[i]);
		if (other && 2 * other <= nr)
			return true;
	}
	return false;
}

/* Has @sender more reads at once than others? Not after some came alone. */
static bool apart_has_several(const struct ss_policy *policy,
			      struct ss_sender *sender, bool is_idle)
{
	sender->nr_alone = is_idle ? sender->nr_alone + 1 : 0;
	if (sender->nr_alone >= policy->value[STREAM_THRESHOLD])
		sender->several = false;
	else if (!is_idle && !sender->several)
		sender->several = apart_is_deeper(policy->state, sender);
	return sender->several;
}

struct ss_party *ss_apart_party(struct ss_policy *policy,
				struct ss_party *party, struct ss_request *rq,
				u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_sender *sender;
	struct ss_party *own;
	bool in_rest = ss_party_is_rest(all, party), is_idle;
	u64 owner = rq->owner;

	/* Where weights are in use they say who is who. */
	if (in_rest && owner == SS_OWNER_NONE && !all->has_weights &&
	    !ss_established(rq))
		owner = ss_areas_owner(
			&all->areas, rq,
			ss_streams_place_sectors(&policy->sched->curve));
	/* Members of an array have an order each, and are told who it is. */
	if (all->takes_turns) {
		rq->owner = owner;
		return party;
	}
	sender = apart_find(all, owner, in_rest, now_ns);
	if (!sender)
		return party;
	sender->came_ns = now_ns;
	if (!in_rest) {
		sender->nr_streamless = 0;
		return party;
	}
	rq->sender = sender;
	sender->nr_streamless++;
	if (all->trial.inner)
		return party;
	own = ss_party_of_sender(all, sender);
	is_idle = ss_sender_is_idle(all, sender);
	if (ss_party_weight(rq) != USUAL ||
	    (rq->direction == SS_READ &&
	     apart_has_several(policy, sender, is_idle)))
		return own;
	if (is_idle &&
	    sender->nr_streamless >= policy->value[STREAM_THRESHOLD] &&
	    ss_credit_paid_ns(policy, own, now_ns) <= now_ns)
		return own;
	return party;
}
