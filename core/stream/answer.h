/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers: a turn belongs to a place, and the reader just served goes on there.
 *
 * A reader whose requests are near each other, but no stream, sends its next
 * one soon after the last one was done: the first arrival then is the answer.
 * It has won what the choice instead costs, less the think time and the way to
 * the answer. While answers have won, the head waits for them when a stream
 * has nothing more in its turn, and in the rest's turn it serves one reader
 * for a slice; then the request that has waited longest is next.
 */
#ifndef SS_ANSWER_H
#define SS_ANSWER_H

#include "party.h"

/*
 * @rq comes to @party, which has it not yet: is it the answer? @instead is
 * what would be done without it, if nothing is on its way there already.
 */
void ss_answer_arrived(struct ss_policy *policy, const struct ss_party *party,
		       struct ss_request *rq, struct ss_decision instead,
		       u64 now_ns);
/* @rq, whose turn it is now, goes to the disk. */
void ss_answer_dispatched(struct ss_policy *policy, const struct ss_request *rq,
			  u64 now_ns);
/* @rq is done. */
void ss_answer_completed(struct ss_policy *policy, const struct ss_request *rq,
			 u64 now_ns);

/* The disk goes to another place. */
void ss_answer_ends(struct ss_policy *policy, u64 now_ns);

/* Have answers paid, and has somebody been served who may send one? */
bool ss_answer_pays(const struct ss_parties *all);
/* Until when the head waits for one; 0: it does not. */
u64 ss_answer_until_ns(const struct ss_parties *all);
/*
 * What answers say of the rest's turn, in which a reader's slice is over or
 * not; SS_NOTHING: the inner policy chooses.
 */
struct ss_decision ss_answer_choose(const struct ss_policy *policy,
				    bool slice_is_over, u64 now_ns);

#endif
