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
	/* Until it is seen, what an area has at once is mostly of several. */
	if (owner >> 62 == 1)
		oldest->nearest = (struct ss_nearest){ .own = SENDERS_SOME,
						       .before = SENDERS_SOME };
	return oldest;
}

static u32 apart_outstanding(struct ss_parties *all,
			     const struct ss_sender *sender)
{
	const struct ss_party *own = ss_party_of_sender(all, sender);

	return sender->nr_rest + own->nr_pending + own->nr_in_flight;
}

/* Does each of those whom @sender serves have more at once than some other? */
static bool apart_has_several(struct ss_parties *all, struct ss_sender *sender)
{
	u32 nr = apart_outstanding(all, sender) + 1, of_other;
	u32 each = 100 * nr / ss_nearest_percent(&sender->nearest, nr);
	const struct ss_sender *other = all->senders.sender;

	if (each < 2)
		sender->several = false;
	for (; !sender->several && other < &all->senders.sender[NR_SENDERS];
	     other++) {
		of_other = apart_outstanding(all, other);
		sender->several = other != sender && of_other &&
				  2 * of_other <= each;
	}
	return sender->several;
}

struct ss_party *ss_apart_party(struct ss_policy *policy,
				struct ss_party *party, struct ss_request *rq,
				u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_sender *sender;
	struct ss_party *own;
	bool in_rest = ss_party_is_rest(all, party);
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
	/* All that is not known and has one other weight is one sender's. */
	if (owner == SS_OWNER_NONE && ss_party_weight(rq) != USUAL)
		owner = 1ULL << 61 | rq->weight;
	sender = apart_find(all, owner, in_rest, now_ns);
	if (!sender)
		return party;
	sender->came_ns = now_ns;
	if (!in_rest) {
		sender->nr_streamless = 0;
		return party;
	}
	own = ss_party_of_sender(all, sender);
	ss_nearest_arrived(&sender->nearest, rq,
			   sender->several ? &all->age_own : &all->age,
			   sender->several ? (const void *)own : sender);
	rq->sender = sender;
	sender->nr_streamless++;
	if (all->trial.inner)
		return party;
	if (ss_party_weight(rq) != USUAL ||
	    (rq->direction == SS_READ && apart_has_several(all, sender)) ||
	    (ss_sender_is_idle(all, sender) &&
	     sender->nr_streamless >= policy->value[STREAM_THRESHOLD] &&
	     ss_credit_paid_ns(policy, own, now_ns) <= now_ns))
		return own;
	return party;
}
