/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Credit: head time is charged to the party that uses it.
 *
 * A party's debt grows by the head time it uses, switches included, and falls
 * by its equal part of all time. A party that was idle and whose debt is paid
 * is light: it is due at once, interrupts the turn, and is charged for both
 * ways. A party that always has something pending never is, and one whose next
 * request comes sooner than a switch takes is better waited for in its turn.
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

#endif
