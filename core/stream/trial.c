// SPDX-License-Identifier: GPL-2.0-only
/*
 * The comparison: does the inner policy serve more, and nobody less?
 *
 * While the head waits for three quarters of the time, a drive whose cache
 * works for several at once might serve the others meanwhile. So the inner
 * policy has everything for a moment, now and then, and keeps it where the
 * disk served more that way and no party clearly less. Then turns are tried
 * now and then.
 */
#include "party.h"

/* How often it is tried at first; half: costs more, double: learns later. */
#define TRIAL_FIRST_NS SS_SEC
/* So often doubled while trials end alike. */
#define TRIAL_DOUBLED 3
/* The drive's cache fills for so long; the measured part is twice as long. */
#define TRIAL_PART_NS (125 * SS_MSEC)
/* A gain below this part may be chance. */
#define TRIAL_GAIN 8
/* A party that has lost this part has clearly less. */
#define TRIAL_LOSS 4

enum { OWN, INNER };

static void begin(struct parties *all, enum trial_part part, u64 lasts_ns,
		  u64 now_ns)
{
	struct trial *trial = &all->trial;

	trial->part = part;
	trial->since_ns = now_ns;
	trial->until_ns = now_ns + lasts_ns;
	trial->held_ns = 0;
}

static void forget_done(struct parties *all, u32 which)
{
	u32 i;

	for (i = 0; i < NR_STREAMS; i++)
		all->stream[i].done[which] = 0;
	all->rest.done[which] = 0;
}

/* Sectors per second of @done in the last window of @which. */
static u64 rate(const struct trial *trial, u64 done, u32 which)
{
	return mul_u64_u64_div_u64(done, SS_SEC, trial->window_ns[which]);
}

/* Has the inner policy served @party clearly less? */
static bool has_lost(const struct trial *trial, const struct party *party)
{
	u64 own = rate(trial, party->done[OWN], OWN);

	return rate(trial, party->done[INNER], INNER) < own - own / TRIAL_LOSS;
}

/* What the disk served in the last window of @which, in sectors per second. */
static u64 total(const struct parties *all, u32 which)
{
	u64 done = all->rest.done[which];
	u32 i;

	for (i = 0; i < NR_STREAMS; i++)
		done += all->stream[i].done[which];
	return rate(&all->trial, done, which);
}

static bool inner_serves_more(const struct parties *all)
{
	u64 own = total(all, OWN);
	u32 i;

	if (has_lost(&all->trial, &all->rest))
		return false;
	for (i = 0; i < NR_STREAMS; i++)
		if (has_lost(&all->trial, &all->stream[i]))
			return false;
	return total(all, INNER) > own + own / TRIAL_GAIN;
}

/* All that is pending becomes the inner policy's. */
static void give_all(struct ss_policy *policy, u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *party, *next;

	all->trial.inner = true;
	list_for_each_entry_safe(party, next, &all->ready, ready)
		while (party != &all->rest && party->nr_pending)
			ss_party_move(policy,
				      list_first_entry(&party->age,
						       struct ss_request,
						       age_node),
				      &all->rest, now_ns);
	all->turn = &all->rest;
	all->back = NULL;
	all->holding = false;
	ss_answer_ends(all, now_ns);
}

/* What is pending of streams is theirs again. */
static void take_back(struct ss_policy *policy, u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *party;

	all->trial.inner = false;
	ss_party_has_members(policy, &all->async, now_ns);
	list_for_each_entry(party, &all->known, node)
		ss_party_has_members(policy, party, now_ns);
}

static void judge(struct ss_policy *policy, u64 now_ns)
{
	struct parties *all = policy->state;
	struct trial *trial = &all->trial;
	bool wins = inner_serves_more(all);

	trial->alike = wins == trial->won ? trial->alike + 1 : 0;
	trial->alike = min_t(u32, trial->alike, TRIAL_DOUBLED);
	trial->won = wins;
	if (wins && !trial->inner)
		give_all(policy, now_ns);
	else if (!wins && trial->inner)
		take_back(policy, now_ns);
	forget_done(all, OWN);
	forget_done(all, INNER);
	begin(all, wins ? TRIAL_INNER : TRIAL_OWN,
	      TRIAL_FIRST_NS << trial->alike, now_ns);
}

void ss_stream_set_apart(struct ss_policy *policy, bool apart, u64 now_ns)
{
	struct parties *all = policy->state;

	if (apart && !all->trial.inner)
		give_all(policy, now_ns);
	else if (!apart && all->trial.inner)
		take_back(policy, now_ns);
}

void ss_trial_time_passes(struct ss_policy *policy, u64 now_ns)
{
	struct parties *all = policy->state;
	struct trial *trial = &all->trial;
	u64 lasted_ns = now_ns - trial->since_ns;

	/* The inner policy knows no weights. */
	if (trial->inner && all->has_weights && !all->takes_turns) {
		take_back(policy, now_ns);
		begin(all, TRIAL_OWN, TRIAL_FIRST_NS, now_ns);
	}
	/* Of parts somebody else compares. */
	if (now_ns < trial->until_ns || all->takes_turns)
		return;
	switch (trial->part) {
	case TRIAL_OWN:
		if (all->has_weights || 4 * trial->held_ns <= 3 * lasted_ns) {
			all->has_weights = false;
			forget_done(all, OWN);
			begin(all, TRIAL_OWN, TRIAL_FIRST_NS << trial->alike,
			      now_ns);
			break;
		}
		trial->window_ns[OWN] = lasted_ns;
		forget_done(all, INNER);
		give_all(policy, now_ns);
		begin(all, TRIAL_SETTLES, TRIAL_PART_NS, now_ns);
		break;
	case TRIAL_SETTLES:
		/* Even so a winner serves half as much; else it ends here. */
		trial->window_ns[INNER] = lasted_ns;
		if (2 * total(all, INNER) < total(all, OWN)) {
			judge(policy, now_ns);
			break;
		}
		forget_done(all, INNER);
		begin(all, TRIAL_MEASURES, 2 * TRIAL_PART_NS, now_ns);
		break;
	case TRIAL_MEASURES:
		trial->window_ns[INNER] = lasted_ns;
		judge(policy, now_ns);
		break;
	case TRIAL_INNER:
		trial->window_ns[INNER] = lasted_ns;
		take_back(policy, now_ns);
		begin(all, TRIAL_CHECKS, 2 * policy->value[STREAM_WAIT_TARGET],
		      now_ns);
		break;
	case TRIAL_CHECKS:
		trial->window_ns[OWN] = lasted_ns;
		judge(policy, now_ns);
		break;
	}
}

void ss_trial_done(struct ss_policy *policy, const struct ss_request *rq)
{
	struct parties *all = policy->state;
	struct party *party = rq->stream;

	if (!party || !party->established)
		party = &all->rest;
	party->done[all->trial.inner ? INNER : OWN] += rq->nr_sectors;
}
