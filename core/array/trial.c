// SPDX-License-Identifier: GPL-2.0-only
/*
 * Heads together or apart: which moves more? See trial.h.
 *
 * It begins apart, long enough for a first measure. Then turns are allowed,
 * and after a while with turns the two are compared. What won goes on for a
 * period, which doubles with every equal result; then the other is measured
 * again.
 */
#include "trial.h"
#include "../tunable.h"

#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

/* Measured apart at first; the streams have only begun. */
#define FIRST_NS (100 * SS_MSEC)
/* Measured before a comparison: a few turns. */
#define SAMPLE_NS (300 * SS_MSEC)
/* Older measures fade. */
#define MEMORY_NS SS_SEC
/*
 * What a trial may lose. To bring five heads there one after the other takes
 * two thirds of it.
 */
#define STAKE_NS (90 * SS_MSEC)
/* How long a first result is believed, and any one at most. */
#define PERIOD_NS (5 * SS_SEC)
#define PERIOD_MOST_NS (160 * SS_SEC)
/* Turns, which go on being measured, are believed so many times as long. */
#define TURNS_PERIODS 4

void ss_array_trial_init(struct ss_array_trial *trial)
{
	*trial = (struct ss_array_trial){ .left_ns = FIRST_NS };
	trial->period_ns = PERIOD_NS;
}

/* In sectors per second. */
static u64 rate(const struct ss_array_rate *rate)
{
	return div64_u64(rate->sectors * SS_SEC, max_t(u64, rate->ns, 1));
}

static void keep_recent(struct ss_array_rate *rate)
{
	if (rate->ns <= MEMORY_NS)
		return;
	rate->ns /= 2;
	rate->sectors /= 2;
}

static void fade(struct ss_array_rate *rate)
{
	rate->sectors /= 4;
	rate->ns /= 4;
}

static void compare(struct ss_array_trial *trial)
{
	u64 together = rate(&trial->together), apart = rate(&trial->apart);

	trial->judged = true;
	trial->checked = false;
	trial->verdicts++;
	trial->left_ns = trial->period_ns;
	trial->period_ns = min_t(u64, 2 * trial->period_ns, PERIOD_MOST_NS);
	if (together >= apart) {
		trial->left_ns *= TURNS_PERIODS;
		return;
	}
	trial->refusals++;
	trial->allowed = false;
	fade(&trial->apart);
}

/*
 * A trial has lost its stake when what it moved would have taken that much
 * less apart: it does not go on to its end.
 */
static bool is_lost(const struct ss_array_trial *trial)
{
	u64 apart_ns = mul_u64_u64_div_u64(trial->together.sectors,
					   trial->apart.ns,
					   max_t(u64, trial->apart.sectors, 1));

	return trial->together.ns > apart_ns + STAKE_NS;
}

/*
 * Apart won, but it does less now than turns did. What streams do apart varies
 * much: at first the drives read ahead for all of them, and may meet one after
 * the other; later one comes in the way of all others.
 */
static bool is_regretted(const struct ss_array_trial *trial)
{
	return !trial->allowed && !trial->checked && trial->verdicts &&
	       trial->apart.ns >= SAMPLE_NS &&
	       rate(&trial->apart) < rate(&trial->together);
}

/*
 * The period is over: the other way gets its chance. How much the array does
 * with turns is known when it is the turn of apart: after that it need not be
 * measured anew, with the first turns' losses in it.
 */
static void other_way(struct ss_array_trial *trial)
{
	if (trial->allowed) {
		trial->allowed = false;
		trial->checked = true;
		fade(&trial->apart);
		trial->left_ns = SAMPLE_NS;
		return;
	}
	trial->allowed = true;
	if (trial->checked) {
		compare(trial);
		return;
	}
	trial->judged = false;
	fade(&trial->together);
	trial->left_ns = U64_MAX;
}

void ss_array_trial_event(struct ss_array_trial *trial, u64 now_ns, bool busy,
			  bool together)
{
	u64 passed_ns = now_ns - trial->last_ns;

	trial->last_ns = now_ns;
	if (!busy)
		return;
	if (together)
		trial->together.ns += passed_ns;
	else
		trial->apart.ns += passed_ns;
	keep_recent(&trial->apart);
	keep_recent(&trial->together);
	if (trial->allowed && !trial->judged) {
		if (trial->together.ns >= SAMPLE_NS || is_lost(trial))
			compare(trial);
		return;
	}
	/* With nobody to bring heads together for, nothing is compared. */
	if (trial->allowed && !together)
		return;
	/* What won may become worse with what the array is asked for. */
	if (trial->allowed && trial->together.ns >= SAMPLE_NS &&
	    rate(&trial->together) < rate(&trial->apart)) {
		compare(trial);
		return;
	}
	if (is_regretted(trial))
		trial->left_ns = 0;
	if (passed_ns < trial->left_ns)
		trial->left_ns -= passed_ns;
	else
		other_way(trial);
}

void ss_array_trial_moved(struct ss_array_trial *trial, u32 nr_sectors,
			  bool together)
{
	if (together)
		trial->together.sectors += nr_sectors;
	else
		trial->apart.sectors += nr_sectors;
}
