/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiting: how long the head stays for a party that has nothing to do.
 *
 * Each party has an estimator of its think time (think.h). That of a stream
 * which is new says little: one that formed by chance never sends another
 * request. So the head waits for it once waiting would have paid.
 */
#ifndef SS_WAIT_H
#define SS_WAIT_H

#include "party.h"

/* @party has become idle. */
static inline void ss_wait_begins(struct ss_parties *all,
				  const struct ss_party *party, u64 now_ns)
{
	struct ss_reader *reader = ss_party_reader(all, party);

	reader->idle_since_ns = now_ns;
	reader->contended = ss_party_others_wait(all, party);
	reader->think.left = false;
}

/* The idle @party has a request again. */
void ss_wait_ends(struct ss_policy *policy, const struct ss_party *party,
		  u64 now_ns);

/* Until when the head waits for the idle @party; 0: it does not. */
u64 ss_wait_until_ns(const struct ss_policy *policy,
		     const struct ss_party *party);

#endif
