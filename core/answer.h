/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers: a request that comes just after another was done.
 *
 * Whoever waited for a request often has its next one ready as soon as that
 * is done: a thread that reads one random block after the other, a client
 * that keeps so many requests outstanding. When the device is then empty, a
 * policy that sends its next request in the same instant chooses without the
 * newcomer, one of n instead of one of n + 1: with few readers a longer way.
 * To look for the answer first costs microseconds where it comes at once.
 *
 * Whether it is worth it is seen by trying: what the inner policy's choice
 * costs by the curve without the answer, less what is done costs with it,
 * against the time that passed. Where an answer went first, that is what it
 * really took: a drive with writes in its cache may leave at every gap. Where
 * it is not worth it, it is tried now and then.
 */
#ifndef SS_ANSWER_H
#define SS_ANSWER_H

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/types.h>

/* Outcomes that tell enough; the score forgets by 1/ANSWER_MEMORY at each. */
#define ANSWER_FEW 16
#define ANSWER_MEMORY 64
/* Where looking does not pay it is tried once in so many times. */
#define ANSWER_PROBE 32
/* It must have won this many times what it lost: the one is an estimate. */
#define ANSWER_FACTOR 2
/* How long is looked for one: this part of a random request's time, ... */
#define ANSWER_SHARE 32
/* ... and of what positioning to the choice at hand takes. */
#define ANSWER_CHOICE_SHARE 8
/* One that goes first is to win more than this part of what choices cost. */
#define ANSWER_MARGIN 5

struct ss_answer {
	bool open; /* the disk is idle for one */
	u64 since_ns; /* since when, if open */
	u64 until_ns; /* and until when at most */
	u64 choice_ns; /* what would have been chosen costs this */
	u64 mean_choice_ns; /* and such have, as a running mean */
	u64 first_most_ns; /* below this it pays that the last one went first */
	u64 won_ns;
	u64 lost_ns;
	s64 first_won_ns; /* by answers that went first */
	u32 nr_seen; /* outcomes, up to ANSWER_FEW */
	u32 nr_passed; /* times not looked for one since the last try */
};

/*
 * Has it won more than it lost? What one position cost says little, for the
 * surface turns meanwhile; so of answers that went first the sum counts.
 */
static inline bool ss_answer_pays(const struct ss_answer *answer)
{
	u64 won_ns = answer->won_ns, lost_ns = answer->lost_ns;

	if (answer->first_won_ns > 0)
		won_ns += answer->first_won_ns;
	else
		lost_ns -= answer->first_won_ns;
	return won_ns > ANSWER_FACTOR * lost_ns;
}

/* A request is done, the device empty: is it to be looked for an answer? */
static inline bool ss_answer_due(struct ss_answer *answer)
{
	if (answer->nr_seen < ANSWER_FEW || ss_answer_pays(answer))
		return true;
	if (++answer->nr_passed < ANSWER_PROBE)
		return false;
	answer->nr_passed = 0;
	return true;
}

/* It is, for @most_ns or less; the policy's choice costs @choice_ns. */
static inline void ss_answer_open(struct ss_answer *answer, u64 choice_ns,
				  u64 most_ns, u64 now_ns)
{
	if (choice_ns / ANSWER_CHOICE_SHARE < most_ns)
		most_ns = choice_ns / ANSWER_CHOICE_SHARE;
	answer->open = most_ns > 0;
	answer->since_ns = now_ns;
	answer->until_ns = now_ns + most_ns;
	answer->choice_ns = choice_ns;
	answer->mean_choice_ns += div_s64((s64)choice_ns -
						  (s64)answer->mean_choice_ns,
					  (s32)answer->nr_seen + 1);
}

/*
 * What may an answer cost that goes first, before what is @straight_ns away
 * now, and @on_ns from the answer? Left for later it will cost what choices do:
 * little, where many requests are pending and an elevator comes by.
 */
static inline u64 ss_answer_most_ns(const struct ss_answer *answer,
				    u64 straight_ns, u64 on_ns)
{
	u64 most_ns = straight_ns + answer->mean_choice_ns;

	return most_ns - min_t(u64, most_ns, on_ns);
}

/*
 * It came or it did not. What is to be done now costs @now_choice_ns by the
 * curve; U64_MAX: that will be seen, see ss_answer_done().
 */
static inline void ss_answer_close(struct ss_answer *answer, u64 now_choice_ns,
				   u64 now_ns)
{
	answer->open = false;
	answer->won_ns -= answer->won_ns / ANSWER_MEMORY;
	answer->lost_ns -= answer->lost_ns / ANSWER_MEMORY;
	answer->first_won_ns -= answer->first_won_ns / ANSWER_MEMORY;
	answer->lost_ns += now_ns - answer->since_ns;
	if (now_choice_ns < answer->choice_ns)
		answer->won_ns += answer->choice_ns - now_choice_ns;
	answer->nr_seen += answer->nr_seen < ANSWER_FEW;
}

/* The answer went first, and positioning to it took @took_ns. */
static inline void ss_answer_done(struct ss_answer *answer, u64 took_ns)
{
	answer->first_won_ns += (s64)answer->first_most_ns - (s64)took_ns;
}

#endif
