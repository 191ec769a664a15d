// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns: whose it is, how long it lasts and what it costs.
 */
#include "party.h"

/* A slice is at least so many switches, or the disk only switches. */
#define LEAST_SWITCHES 2
/* Means of about so many requests. */
#define MEMORY 8

static void mean_add(u64 *mean, u64 value)
{
	if (!*mean)
		*mean = value;
	*mean += div_s64((s64)(value - *mean), MEMORY);
}

u64 ss_turn_slice_ns(const struct ss_policy *policy, u32 weight, u32 nr_others,
		     u32 others_weight)
{
	const struct parties *all = policy->state;
	u64 target_ns = policy->value[STREAM_WAIT_TARGET];
	u64 switches_ns = (1 + nr_others) * all->switch_ns;
	u64 work_ns = target_ns - min_t(u64, target_ns, switches_ns);

	/* Everybody has the way there, and work by weight. */
	work_ns = div_u64(work_ns * weight, max_t(u32, others_weight, 1));
	return all->switch_ns +
	       max_t(u64, work_ns, (LEAST_SWITCHES - 1) * all->switch_ns);
}

/* The least weight of those that want the disk and of @turn. */
static u32 least_weight(const struct parties *all, const struct party *turn)
{
	const struct party *party;
	u32 least = turn->weight;

	if (least == USUAL && all->ready_weight == all->nr_ready * USUAL)
		return least;
	list_for_each_entry(party, &all->ready, ready)
		least = min_t(u32, least, party->weight);
	return least;
}

/*
 * How long the turn of @party lasts. The lightest waits longest, for all others
 * but itself. In its first turn a stream shares the disk with each reader of
 * the rest, as it did when it was one.
 */
static u64 slice_ns(const struct ss_policy *policy, const struct party *party)
{
	const struct parties *all = policy->state;
	u32 nr = all->nr_ready - (party->nr_pending > 0), more = 0;

	if (!is_rest(all, party) && !party->had_turn && all->rest.nr_pending)
		more = all->rest.nr_pending - 1;
	return ss_turn_slice_ns(policy, party->weight, nr + more,
				weight_sum(all) + more * USUAL -
					least_weight(all, party));
}

bool ss_turn_is_over(const struct ss_policy *policy, const struct party *party,
		     u64 now_ns)
{
	const struct parties *all = policy->state;
	u64 ends_ns = now_ns + party->nr_in_flight * party->service_ns;

	if (!others_wait(all, party))
		return false;
	/* Who came while fewer took turns would wait for too long. */
	if (ends_ns >= all->late_ns)
		return ends_ns >=
		       all->began_ns + LEAST_SWITCHES * all->switch_ns;
	return ends_ns >= all->began_ns + slice_ns(policy, party);
}

static void tell(const struct ss_policy *policy, enum ss_event event,
		 const struct party *party)
{
	ss_sched_tell(policy->sched, event, party->end_sector, party->size);
}

void ss_turn_note_late(const struct ss_policy *policy)
{
	struct parties *all = policy->state;

	all->late_ns = ss_turn_oldest_ns(all, all->turn);
	if (all->late_ns != SS_FOREVER)
		all->late_ns += policy->value[STREAM_WAIT_TARGET];
}

/* The head goes there for a light party and will come back. */
static void interrupts(struct ss_policy *policy, struct party *party,
		       const struct ss_request *rq, u64 now_ns)
{
	struct parties *all = policy->state;
	const struct ss_curve *curve = &policy->sched->curve;

	if (!all->back) {
		all->back = all->turn;
		all->back_used_ns = now_ns - all->began_ns;
		all->back_sector = rq->from_sector;
	}
	ss_credit_charge(policy, party,
			 ss_curve_look_up(curve, ss_distance(ss_request_end(rq),
							     all->back_sector)),
			 now_ns);
}

/* @rq of @party, whose turn it was not, goes to the disk. */
static void pass(struct ss_policy *policy, struct party *party,
		 const struct ss_request *rq, u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *before = all->turn;

	if (all->holding) {
		policy->sched->counters.timeouts++;
		tell(policy, SS_EVENT_TIMEOUT, before);
		ss_pause_in_vain(policy, before);
		all->holding = false;
	}
	if (rq == all->answer.rq) {
		/* The turn's place is served on. */
		all->turn = party;
		if (party == all->back)
			all->back = NULL;
		return;
	}
	ss_answer_ends(all, now_ns);
	if (party == all->back) {
		all->began_ns = now_ns - all->back_used_ns;
		all->back = NULL;
	} else if (before && party->light_at_ns <= now_ns &&
		   !ss_turn_is_over(policy, before, now_ns)) {
		interrupts(policy, party, rq, now_ns);
		all->began_ns = now_ns;
	} else {
		all->began_ns = now_ns;
		if (all->back)
			all->back->turn_ended_ns = now_ns;
		all->back = NULL;
	}
	if (before) {
		before->turn_ended_ns = now_ns;
		before->had_turn = true;
		policy->sched->counters.slices_ended++;
		tell(policy, SS_EVENT_SLICE_ENDED, before);
	}
	all->turn = party;
	all->first = rq;
	ss_turn_note_late(policy);
}

void ss_turn_dispatched(struct ss_policy *policy, struct party *party,
			const struct ss_request *rq, u64 now_ns)
{
	struct parties *all = policy->state;

	if (now_ns >= stuck_at_ns(policy) && nr_moving(policy) > 1) {
		all->nr_stuck = policy->sched->nr_in_flight - 1;
		all->stuck_ns = now_ns;
	}
	if (policy->sched->nr_in_flight == 1) {
		/* The head was kept idle for the turn's party. */
		if (all->turn && all->holding)
			all->trial.held_ns += now_ns - all->charged_ns;
		if (all->turn && all->holding)
			ss_credit_charge(policy, all->turn,
					 now_ns - all->charged_ns, now_ns);
		all->charged_ns = now_ns;
	}
	if (party != all->turn)
		pass(policy, party, rq, now_ns);
	ss_credit_clear(all, party);
}

/* What the first request of a turn took is what a switch costs. */
static void note_switch(struct ss_policy *policy, const struct ss_request *rq,
			u64 now_ns)
{
	struct parties *all = policy->state;
	const struct ss_curve *curve = &policy->sched->curve;
	u64 most_ns = 2 * curve->mean_random_ns, took_ns, moving_ns;

	all->first = NULL;
	if (rq->direction == SS_WRITE)
		return;
	moving_ns = div_u64(rq->nr_sectors * curve->transfer_ps, 1000);
	took_ns = now_ns - rq->dispatch_ns;
	took_ns -= min_t(u64, took_ns, moving_ns);
	/* Who is farther away than others has no shorter slice for it. */
	all->began_ns += min_t(u64, took_ns, most_ns) - all->switch_ns;
	took_ns = max_t(u64, took_ns, curve->mean_random_ns / 2);
	mean_add(&all->switch_ns, min_t(u64, took_ns, most_ns));
}

void ss_turn_completed(struct ss_policy *policy, struct party *party,
		       const struct ss_request *rq, u64 now_ns)
{
	struct parties *all = policy->state;
	u64 since_ns = max_t(u64, all->charged_ns, rq->dispatch_ns);

	if (all->nr_stuck && rq->dispatch_ns < all->stuck_ns)
		all->nr_stuck--;
	mean_add(&party->service_ns, now_ns - since_ns);
	if (party == &all->rest && party->nr_in_flight)
		mean_add(&all->answer.together_ns, now_ns - since_ns);
	ss_credit_charge(policy, party, now_ns - since_ns, now_ns);
	all->charged_ns = now_ns;
	if (rq == all->first)
		note_switch(policy, rq, now_ns);
}

void ss_turn_note_holding(const struct ss_policy *policy, u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *turn = all->turn;

	if (!turn || policy->sched->nr_in_flight)
		return;
	if (all->holding) {
		if (turn->nr_pending) {
			policy->sched->counters.hits++;
			tell(policy, SS_EVENT_HIT, turn);
			all->trial.held_ns += now_ns - all->charged_ns;
			ss_credit_charge(policy, turn, now_ns - all->charged_ns,
					 now_ns);
			all->charged_ns = now_ns;
			all->holding = false;
		}
		return;
	}
	if (!turn->nr_pending && others_wait(all, turn) &&
	    now_ns < ss_pause_until_ns(policy, turn) &&
	    !ss_turn_is_over(policy, turn, now_ns)) {
		all->holding = true;
		policy->sched->counters.waits++;
		tell(policy, SS_EVENT_HELD, turn);
	}
}
