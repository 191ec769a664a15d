/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns: whose it is, how long it lasts and what it costs. No other file
 * writes struct ss_turn.
 *
 * A turn begins with a request of another party, and ends for one of a few
 * reasons. A light party interrupts a turn, which goes on afterwards. All head
 * time is charged here (credit.c).
 */
#ifndef SS_TURN_H
#define SS_TURN_H

#include "party.h"

/*
 * How many in flight have to be waited for. A command that has not come back
 * for long (the drive or what is behind it may be trying again) holds nobody.
 */
static inline u32 ss_turn_nr_moving(const struct ss_policy *policy)
{
	const struct ss_parties *all = policy->state;
	u32 nr = policy->sched->nr_in_flight;

	return nr - min_t(u32, nr, all->turn.nr_stuck);
}

/* Until when they are waited for. */
static inline u64 ss_turn_stuck_at_ns(const struct ss_policy *policy)
{
	const struct ss_parties *all = policy->state;

	return all->turn.charged_ns + policy->value[STREAM_WAIT_TARGET];
}

/* Is the drive at work for the turn's party, on a flush that this asked for? */
static inline bool ss_turn_is_flushing(const struct ss_parties *all)
{
	return all->turn.nr_flushes && all->turn.wrote == all->turn.party;
}

/* How long a turn of @weight lasts while others wait, and what these weigh. */
u64 ss_turn_slice_ns(const struct ss_policy *policy, u32 weight, u32 nr_others,
		     u32 others_weight);

/* Is the turn of @party over? */
bool ss_turn_is_over(const struct ss_policy *policy,
		     const struct ss_party *party, u64 now_ns);

/* @party has been found in the rest's turn: it may be its turn from now on. */
void ss_turn_established(struct ss_policy *policy, struct ss_party *party,
			 bool goes_on);

/* The rest has everything, and the turn. */
void ss_turn_is_rests(struct ss_parties *all);

/*
 * Is it a stream's turn, and beyond @rq what was sent farthest at its place?
 * Never on a member of an array.
 */
bool ss_turn_behind(const struct ss_policy *policy,
		    const struct ss_request *rq);

/* @rq of @party goes to the disk: a turn may begin with it. */
void ss_turn_dispatched(struct ss_policy *policy, struct ss_party *party,
			struct ss_request *rq, u64 now_ns);

/*
 * A flush of the drive's cache @begins, or has ended: its time is of the party
 * that wrote last.
 */
void ss_turn_flushes(struct ss_policy *policy, bool begins, u64 now_ns);

/* @rq of @party is done. */
void ss_turn_completed(struct ss_policy *policy, struct ss_party *party,
		       const struct ss_request *rq, u64 now_ns);

/* Counts waits: is the head idle for the turn's party by now? */
void ss_turn_note_holding(struct ss_policy *policy, u64 now_ns);

#endif
