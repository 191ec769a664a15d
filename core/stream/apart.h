/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Apart: what a sender whose host says who it is has in a party of its own.
 *
 * In the rest each request has as much of the disk as any other. So a sender
 * with several reads at once would have more than its part there, and one that
 * has used less would wait with all others: these are apart. All else is left
 * to the inner policy, which serves many together better than one by one.
 */
#ifndef SS_APART_H
#define SS_APART_H

#include "party.h"

/* Has @sender nothing pending or in flight, but in streams? */
static inline bool ss_apart_is_idle(struct ss_parties *all,
				    const struct ss_sender *sender)
{
	return !sender->nr_rest &&
	       ss_party_is_idle(ss_party_of_sender(all, sender));
}

/*
 * The party of @rq, which has just arrived and would else be of @party, the
 * rest or one of another weight. Its sender is noted in it.
 */
struct ss_party *ss_apart_party(struct ss_policy *policy,
				struct ss_party *party, struct ss_request *rq,
				u64 now_ns);

#endif
