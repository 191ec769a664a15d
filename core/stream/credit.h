/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Credit: head time is charged to the party that uses it.
 *
 * A party's debt grows by the head time it uses, switches included, and falls
 * by its equal part of all time. A party that was idle and whose debt is paid
 * is light: it is due at once, interrupts the turn, and is charged for both
 * ways. A party that always has something pending never is, and one whose next
 * request comes sooner than a switch takes is better waited for in its turn.
 *
 * A write that somebody waits for needs no head where the drive's cache takes
 * it, only its flush does. It goes beside what others have at the drive, and
 * the turn goes on. That is for who flushes, and so pays, and owes nothing, or
 * only the last flush: the next write may come as soon as that is over.
 */
#ifndef SS_CREDIT_H
#define SS_CREDIT_H

#include "party.h"

/* @party has used @used_ns of the head's time. */
void ss_credit_charge(const struct ss_policy *policy, struct ss_party *party,
		      u64 used_ns, u64 now_ns);

/* @party owes @used_ns of the head's time, which is charged elsewhere. */
void ss_credit_owes(const struct ss_policy *policy, struct ss_party *party,
		    u64 used_ns, u64 now_ns);

/* By when has @party, had it a request now, paid for what it has used? */
u64 ss_credit_paid_ns(const struct ss_policy *policy, struct ss_party *party,
		      u64 now_ns);

/* @party, which was idle, has @rq: when is it due? */
void ss_credit_arrived(const struct ss_policy *policy, struct ss_party *party,
		       const struct ss_request *rq, u64 now_ns);

/*
 * Who owes for a flush of what @sender, if not NULL, has written in @party:
 * those in the rest whom nobody knows are one, and have the debt of write-back.
 */
struct ss_party *ss_credit_of(struct ss_parties *all, struct ss_party *party,
			      const struct ss_sender *sender);

/* @rq of @party, just arrived, is all->cached if it may go without the head. */
void ss_credit_caches(const struct ss_policy *policy, struct ss_party *party,
		      struct ss_request *rq, u64 now_ns);

#endif
