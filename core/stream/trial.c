// SPDX-License-Identifier: GPL-2.0-only
/* Turns or the inner policy alone. See trial.h. */
#include "trial.h"
#include "answer.h"
#include "turn.h"

/* How often it is tried at first; half: costs more, double: learns later. */
#define TRIAL_FIRST_NS SS_SEC
/* So often doubled while trials end alike. */
#define TRIAL_DOUBLED 3
/*
 * The drive's cache fills for so long, and the measured part is twice as long.
 * These three parts and the way back are within the target.
 */
#define TRIAL_PART_NS (125 * SS_MSEC)
/* The way to a request is dear from this part of a switch on. */
#define TRIAL_DEAR 4
/* A gain below this part may be chance. */
#define TRIAL_GAIN 8
/*
 * A party that has lost this part has clearly less. It is one of so many
 * requests: who would have had fewer may have lost it by chance.
 */
#define TRIAL_LOSS 4

enum { OWN, INNER };

/* What is done in @part is counted anew. */
static void trial_begin(struct ss_policy *policy, enum ss_trial_part part,
			u64 lasts_ns, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_trial *trial = &all->trial;
	u32 which = trial->inner ? INNER : OWN, i;

	trial->part = part;
	trial->since_ns = now_ns;
	trial->until_ns = now_ns + lasts_ns;
	trial->held_ns = 0;
	trial->busy_ns = 0;
	trial->done_before = policy->sched->counters.completions;
	trial->sectors[which] = 0;
	for (i = 0; i < NR_PARTIES; i++) {
		all->party[i].done[which] = 0;
		if (which == OWN)
			all->party[i].nr_done = 0;
	}
}

/* Sectors per second of @done in the last window of @which. */
static u64 trial_rate(const struct ss_trial *trial, u64 done, u32 which)
{
	return mul_u64_u64_div_u64(done, SS_SEC, trial->window_ns[which]);
}

/* Has the inner policy served @party, which still asks, clearly less? */
static bool trial_has_lost(struct ss_parties *all, const struct ss_party *party,
			   u64 now_ns)
{
	const struct ss_stream *s = ss_party_stream(all, party);
	const u64 *window_ns = all->trial.window_ns;
	u64 own = trial_rate(&all->trial, party->done[OWN], OWN);
	u64 inner = trial_rate(&all->trial, party->done[INNER], INNER);
	/* So many requests it would have had. */
	u64 nr = mul_u64_u64_div_u64(party->nr_done, window_ns[INNER],
				     window_ns[OWN]);
	bool asks = !s || s->nr_open ||
		    now_ns - s->reader.idle_since_ns <=
			    ss_think_longest_ns(all->switch_ns);

	return asks && min_t(u64, party->nr_done, nr) >= TRIAL_LOSS &&
	       inner < own - own / TRIAL_LOSS;
}

/* Sectors per second that the disk served in the last window of @which. */
static u64 trial_total(const struct ss_parties *all, u32 which)
{
	return trial_rate(&all->trial, all->trial.sectors[which], which);
}

static bool trial_inner_wins(struct ss_parties *all, u64 now_ns)
{
	u64 own = trial_total(all, OWN);
	u32 i;

	for (i = 0; i < NR_PARTIES; i++)
		if (trial_has_lost(all, &all->party[i], now_ns))
			return false;
	return trial_total(all, INNER) > own + own / TRIAL_GAIN;
}

/* All that is pending becomes the inner policy's. */
static void trial_give_all(struct ss_policy *policy, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_request *rq, *next;

	all->trial.inner = true;
	list_for_each_entry_safe(rq, next, &all->age_own, age_node)
		ss_party_move(policy, rq, ss_party_rest(all), now_ns);
	ss_turn_is_rests(all);
	ss_answer_ends(policy, now_ns);
}

/* What is pending of streams is theirs again, and write-back its own. */
static void trial_take_back(struct ss_policy *policy, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_request *rq, *next;

	all->trial.inner = false;
	list_for_each_entry_safe(rq, next, &all->age, age_node) {
		const struct ss_stream *s = ss_established(rq);

		if (!ss_request_is_awaited(rq))
			ss_party_move(policy, rq, &all->party[PARTY_ASYNC],
				      now_ns);
		else if (s)
			ss_party_move(policy, rq, ss_party_of_stream(all, s),
				      now_ns);
	}
}

static void trial_judge(struct ss_policy *policy, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_trial *trial = &all->trial;
	bool wins = trial_inner_wins(all, now_ns);

	trial->alike = wins == trial->won ? trial->alike + 1 : 0;
	trial->alike = min_t(u32, trial->alike, TRIAL_DOUBLED);
	trial->won = wins;
	policy->sched->nr_trials++;
	policy->sched->nr_trials_lost += wins;
	if (wins && !trial->inner)
		trial_give_all(policy, now_ns);
	else if (!wins && trial->inner)
		trial_take_back(policy, now_ns);
	trial_begin(policy, wins ? TRIAL_INNER : TRIAL_OWN,
		    TRIAL_FIRST_NS << trial->alike, now_ns);
}

/*
 * Turns spare the ways between requests. They may spare nothing where the head
 * waits for most of the time, or where the way to a request takes about as
 * long as a switch all the same. The inner policy knows no weights.
 */
static bool trial_is_worth(const struct ss_policy *policy, u64 lasted_ns)
{
	const struct ss_parties *all = policy->state;
	const struct ss_trial *trial = &all->trial;
	u64 done = policy->sched->counters.completions - trial->done_before;
	u64 moving_ns = div_u64(
		trial->sectors[OWN] * policy->sched->curve.transfer_ps, 1000);

	if (all->has_weights || !done)
		return false;
	/* In a turn parts may be idle that others could use. */
	if (all->more_parts) {
		moving_ns = div_u64(moving_ns, 1 + all->more_parts);
		if (moving_ns < lasted_ns)
			return true;
	}
	if (3 * trial->held_ns > 2 * lasted_ns)
		return true;
	/* Of the time in which it worked: an idle disk has no ways at all. */
	return TRIAL_DEAR * (trial->busy_ns -
			     min_t(u64, trial->busy_ns, moving_ns)) >=
	       done * all->switch_ns;
}

void ss_trial_time_passes(struct ss_policy *policy, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_trial *trial = &all->trial;
	u64 lasted_ns = now_ns - trial->since_ns;
	u64 target_ns = policy->value[STREAM_WAIT_TARGET];
	u64 part_ns = min_t(u64, TRIAL_PART_NS, target_ns / 4);

	/* The inner policy knows no weights. */
	if (trial->inner && all->has_weights) {
		trial_take_back(policy, now_ns);
		trial_begin(policy, TRIAL_OWN, TRIAL_FIRST_NS, now_ns);
	}
	if (now_ns < trial->until_ns)
		return;
	trial->window_ns[trial->inner ? INNER : OWN] = lasted_ns;
	switch (trial->part) {
	case TRIAL_OWN:
		if (!trial_is_worth(policy, lasted_ns)) {
			all->has_weights = false;
			trial_begin(policy, TRIAL_OWN,
				    TRIAL_FIRST_NS << trial->alike, now_ns);
			break;
		}
		trial_give_all(policy, now_ns);
		trial_begin(policy, TRIAL_SETTLES, part_ns, now_ns);
		break;
	case TRIAL_SETTLES:
		/* End it early if the inner policy serves less than half. */
		if (2 * trial_total(all, INNER) < trial_total(all, OWN))
			trial_judge(policy, now_ns);
		else
			trial_begin(policy, TRIAL_MEASURES, 2 * part_ns,
				    now_ns);
		break;
	case TRIAL_INNER:
		trial_take_back(policy, now_ns);
		trial_begin(policy, TRIAL_CHECKS, 2 * target_ns, now_ns);
		break;
	case TRIAL_MEASURES:
	case TRIAL_CHECKS:
		trial_judge(policy, now_ns);
		break;
	}
}

void ss_trial_done(struct ss_policy *policy, const struct ss_request *rq)
{
	struct ss_parties *all = policy->state;
	const struct ss_stream *s = ss_established(rq);
	struct ss_party *party = ss_party_rest(all);
	u32 which = all->trial.inner ? INNER : OWN;

	if (s)
		party = ss_party_of_stream(all, s);
	else if (rq->sender)
		party = ss_party_of_sender(all, rq->sender);
	else if (rq->party && ss_party_is_rest(all, rq->party))
		party = rq->party;
	party->done[which] += rq->nr_sectors;
	party->nr_done += which == OWN && party->nr_done < U16_MAX;
	all->trial.sectors[which] += rq->nr_sectors;
}
