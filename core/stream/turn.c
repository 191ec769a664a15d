// SPDX-License-Identifier: GPL-2.0-only
/* Whose turn it is. See turn.h. */
#include "turn.h"
#include "answer.h"
#include "credit.h"
#include "wait.h"

/* A slice is at least so many switches, or the disk only switches. */
#define LEAST_SWITCHES 2

static void turn_mean(u64 *mean, u64 value)
{
	if (!*mean)
		*mean = value;
	*mean += div_s64((s64)(value - *mean), SS_MEAN_OF);
}

/* ---- how long it lasts ---- */

u64 ss_turn_slice_ns(const struct ss_policy *policy, u32 weight, u32 nr_others,
		     u32 others_weight)
{
	const struct ss_parties *all = policy->state;
	u64 target_ns = policy->value[STREAM_WAIT_TARGET];
	u64 switches_ns = (1 + nr_others) * all->switch_ns;
	u64 work_ns = target_ns - min_t(u64, target_ns, switches_ns);

	/* Everybody has the way there, and work by weight. */
	work_ns = div_u64(work_ns * weight, max_t(u32, others_weight, 1));
	return all->switch_ns +
	       max_t(u64, work_ns, (LEAST_SWITCHES - 1) * all->switch_ns);
}

/* The least weight of those that want the disk and of @turn. */
static u32 turn_least_weight(const struct ss_parties *all,
			     const struct ss_party *turn)
{
	struct rb_node *node;
	u32 least = turn->weight;

	if (!all->has_weights)
		return USUAL;
	for (node = rb_first_cached(&all->due); node; node = rb_next(node))
		least = min_t(
			u32, least,
			rb_entry(node, struct ss_party, due_node)->weight);
	return least;
}

/*
 * How long the turn of @party lasts. The party of least weight waits for all
 * others' turns. In its first turn a stream shares the disk with each reader of
 * the rest, as it did when it was one.
 */
static u64 turn_lasts_ns(const struct ss_policy *policy,
			 const struct ss_party *party)
{
	const struct ss_parties *all = policy->state;
	u32 rest = all->party[PARTY_REST].nr_pending;
	u32 nr = all->nr_ready - (party->nr_pending > 0), more = 0, others;

	if (!ss_party_is_rest(all, party) && !party->had_turn && rest)
		more = rest - 1;
	others = ss_party_weights(all) + more * USUAL;
	others -= min_t(u32, others, turn_least_weight(all, party));
	return ss_turn_slice_ns(policy, party->weight, nr + more, others);
}

bool ss_turn_is_over(const struct ss_policy *policy,
		     const struct ss_party *party, u64 now_ns)
{
	const struct ss_parties *all = policy->state;
	const struct ss_party *first = all->first_due;
	u64 ends_ns = now_ns +
		      1000ULL * party->nr_in_flight * party->service_us;
	u64 own_due_ns = SS_FOREVER;

	/* In its turn the rest may itself have a request that is due before. */
	if (party == &all->party[PARTY_REST] && party->nr_pending)
		own_due_ns = ss_party_rest_due_ns(policy);
	if (!ss_party_others_wait(all, party))
		return false;
	/* A turn computed for fewer parties is too long for a later one. */
	if (first && !first->light && first->due_ns <= ends_ns &&
	    first->due_ns <= own_due_ns)
		return ends_ns >=
		       all->turn.began_ns + LEAST_SWITCHES * all->switch_ns;
	return ends_ns >= all->turn.began_ns + turn_lasts_ns(policy, party);
}

/* ---- whose it is ---- */

static void turn_tell(const struct ss_policy *policy, enum ss_event event,
		      const struct ss_party *party)
{
	struct ss_parties *all = policy->state;
	const struct ss_stream *s = ss_party_stream(all, party);

	ss_sched_tell(policy->sched, event,
		      s ? ss_streams_end(&all->streams, s) : 0,
		      s ? s->size : 0);
}

/* Whoever has the turn, or goes on in it, is kept as a stream. */
static void turn_keeps(struct ss_parties *all, const struct ss_party *party,
		       bool kept)
{
	struct ss_stream *s = party ? ss_party_stream(all, party) : NULL;

	if (s)
		s->kept = kept;
}

/* From now on it is the turn of @party, and of @back after it if not NULL. */
static void turn_is_of(struct ss_parties *all, struct ss_party *party,
		       struct ss_party *back)
{
	struct ss_turn *turn = &all->turn;
	struct ss_party *before = turn->party;

	turn_keeps(all, before, false);
	turn_keeps(all, turn->back, false);
	turn->party = party;
	turn->back = back;
	turn_keeps(all, party, true);
	turn_keeps(all, back, true);
	ss_party_leaves(all, party);
	if (before && before != party && before->nr_pending)
		ss_party_queues(all, before);
}

/*
 * The turn of @party ends, is interrupted or moves on: its next one is to be
 * due. Who has not had all of a turn goes on waiting.
 */
static void turn_leaves(struct ss_policy *policy, struct ss_party *party,
			bool interrupted, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	const struct ss_request *rq = ss_sorted_first(&party->sorted);
	bool in_part = interrupted || all->turn.moved;
	u64 since_ns = in_part && rq ? rq->arrival_ns : now_ns;

	party->due_ns = party == ss_party_rest(all) && party->nr_pending ?
				ss_party_rest_due_ns(policy) :
				since_ns + policy->value[STREAM_WAIT_TARGET];
}

/* In the middle of a turn it is that of @party. */
static void turn_moves(struct ss_policy *policy, struct ss_party *party,
		       u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_turn *turn = &all->turn;

	turn_leaves(policy, turn->party, false, now_ns);
	turn_is_of(all, party, party == turn->back ? NULL : turn->back);
	turn->moved = true;
}

/* @party has used the head, for @sender if that is known. */
static void turn_charges(const struct ss_policy *policy, struct ss_party *party,
			 const struct ss_sender *sender, u64 used_ns,
			 u64 now_ns)
{
	ss_credit_charge(policy, party, used_ns, now_ns);
	if (sender)
		ss_credit_owes(policy,
			       ss_party_of_sender(policy->state, sender),
			       used_ns, now_ns);
}

/* The head goes there for a light party and will come back. */
static struct ss_party *turn_interrupts(struct ss_policy *policy,
					struct ss_party *party,
					const struct ss_request *rq, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_turn *turn = &all->turn;
	u64 way;

	if (!turn->back) {
		turn->back_used_ns = now_ns - turn->began_ns;
		turn->back_sector = rq->from_sector;
	}
	way = ss_distance(ss_request_end(rq), turn->back_sector);
	turn_charges(policy, party, rq->sender,
		     ss_curve_look_up(&policy->sched->curve, way), now_ns);
	return turn->back ?: turn->party;
}

/* @rq of @party, whose turn it was not, goes to the disk. */
static void turn_passes(struct ss_policy *policy, struct ss_party *party,
			const struct ss_request *rq, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_turn *turn = &all->turn;
	struct ss_party *before = turn->party, *back = NULL;

	if (turn->holding) {
		policy->sched->counters.timeouts++;
		turn_tell(policy, SS_EVENT_TIMEOUT, before);
		turn->holding = false;
		turn->left = ss_party_reader(all, before);
	}
	if (rq == all->answer.rq) {
		/* The turn's place is served on. */
		turn_moves(policy, party, now_ns);
		return;
	}
	ss_answer_ends(policy, now_ns);
	if (party != turn->back && before && party->light &&
	    party->due_ns <= now_ns && !ss_turn_is_over(policy, before, now_ns))
		back = turn_interrupts(policy, party, rq, now_ns);
	turn->began_ns = now_ns;
	if (party == turn->back)
		turn->began_ns -= turn->back_used_ns;
	if (before) {
		turn_leaves(policy, before, back, now_ns);
		before->had_turn = true;
		policy->sched->counters.slices_ended++;
		turn_tell(policy, SS_EVENT_SLICE_ENDED, before);
	}
	turn_is_of(all, party, back);
	turn->moved = false;
	turn->first = rq;
}

bool ss_turn_behind(const struct ss_policy *policy, const struct ss_request *rq)
{
	struct ss_parties *all = policy->state;
	u64 far = all->turn.front_sector - rq->sector;

	return !all->takes_turns && all->turn.party && far &&
	       far <= ss_streams_place_sectors(&policy->sched->curve) &&
	       ss_party_stream(all, all->turn.party);
}

void ss_turn_established(struct ss_policy *policy, struct ss_party *party,
			 bool goes_on)
{
	struct ss_parties *all = policy->state;
	struct ss_party *rest = ss_party_rest(all);

	/* It began in this turn, and the turn is its own from now on. */
	if (all->turn.party != rest || !(goes_on || ss_party_is_idle(rest)))
		return;
	/* If others wait it began with the rest's turn, else the reader's. */
	if (!ss_party_others_wait(all, rest))
		all->turn.began_ns = all->answer.began_ns;
	turn_moves(policy, party, policy->sched->now_ns);
}

void ss_turn_is_rests(struct ss_parties *all)
{
	turn_is_of(all, ss_party_rest(all), NULL);
	all->turn.holding = false;
}

/* ---- what it costs ---- */

void ss_turn_dispatched(struct ss_policy *policy, struct ss_party *party,
			struct ss_request *rq, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_turn *turn = &all->turn;

	if (now_ns >= ss_turn_stuck_at_ns(policy) &&
	    ss_turn_nr_moving(policy) > 1) {
		turn->nr_stuck = policy->sched->nr_in_flight - 1;
		turn->stuck_ns = now_ns;
	}
	if (policy->sched->nr_in_flight == 1) {
		/* The head was kept idle for the turn's party. */
		if (turn->party && turn->holding) {
			all->trial.held_ns += now_ns - turn->charged_ns;
			ss_credit_charge(policy, turn->party,
					 now_ns - turn->charged_ns, now_ns);
		}
		turn->charged_ns = now_ns;
	}
	rq->cached = rq == all->cached && party != turn->party;
	if (party != turn->party && !rq->cached)
		turn_passes(policy, party, rq, now_ns);
	party->light = false;
	rq->behind = !rq->cached && ss_turn_behind(policy, rq);
	if (rq->cached)
		return;
	turn->nr_behind += rq->behind;
	if (!rq->behind)
		turn->front_sector = ss_request_end(rq);
}

/* How long @rq, which is done, took beyond moving its data. */
static u64 turn_way_ns(const struct ss_policy *policy,
		       const struct ss_request *rq, u64 now_ns)
{
	u64 took_ns = now_ns - rq->dispatch_ns;
	u64 moving_ns = div_u64(
		rq->nr_sectors * policy->sched->curve.transfer_ps, 1000);

	return took_ns - min_t(u64, took_ns, moving_ns);
}

/* What the first request of a turn took is what a switch costs. */
static void turn_notes_switch(struct ss_policy *policy,
			      const struct ss_request *rq, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	const struct ss_curve *curve = &policy->sched->curve;
	u64 most_ns = 2 * curve->mean_random_ns, took_ns;

	all->turn.first = NULL;
	if (rq->direction == SS_WRITE)
		return;
	took_ns = turn_way_ns(policy, rq, now_ns);
	/* Who is farther away than others has no shorter slice for it. */
	all->turn.began_ns += min_t(u64, took_ns, most_ns) - all->switch_ns;
	took_ns = max_t(u64, took_ns, curve->mean_random_ns / 2);
	turn_mean(&all->switch_ns, min_t(u64, took_ns, most_ns));
}

void ss_turn_flushes(struct ss_policy *policy, bool begins, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_turn *turn = &all->turn;
	u64 from_ns = max_t(u64, turn->flush_ns, turn->charged_ns), took_ns;
	struct ss_party *owes;

	turn->flush_ns = begins && turn->nr_flushes ? turn->flush_ns : now_ns;
	turn->nr_flushes += begins ? 1 : -1;
	if (begins || !turn->wrote || now_ns <= from_ns)
		return;
	took_ns = now_ns - from_ns;
	ss_credit_charge(policy, turn->wrote, took_ns, now_ns);
	owes = ss_credit_of(all, turn->wrote, turn->wrote_sender);
	if (owes != turn->wrote)
		ss_credit_owes(policy, owes, took_ns, now_ns);
	owes->flushes = true;
	all->trial.busy_ns += took_ns;
	turn->charged_ns = now_ns;
}

void ss_turn_completed(struct ss_policy *policy, struct ss_party *party,
		       const struct ss_request *rq, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_turn *turn = &all->turn;
	u64 took_ns = now_ns - turn->charged_ns;
	u64 service_ns = 1000ULL * party->service_us;

	if (rq->direction == SS_WRITE && ss_request_is_awaited(rq)) {
		turn->wrote = party;
		turn->wrote_sender = rq->sender;
		all->caches = turn_way_ns(policy, rq, now_ns) <
			      all->switch_ns / SS_THINK_LEAST;
	}
	if (turn->nr_stuck && rq->dispatch_ns < turn->stuck_ns)
		turn->nr_stuck--;
	/* Of what others have at the drive too it takes nothing. */
	if (rq->cached && policy->sched->nr_in_flight)
		return;
	/* What that reader sends from now on may be because of this. */
	if (turn->left)
		turn->left->think.left = true;
	turn->left = NULL;
	/* What passed before it was sent is charged, but no service of it. */
	turn_mean(&service_ns, min_t(u64, took_ns, now_ns - rq->dispatch_ns));
	party->service_us = (u32)min_t(u64, div_u64(service_ns, 1000), U32_MAX);
	if (party == ss_party_rest(all) && party->nr_in_flight &&
	    !all->takes_turns)
		turn_mean(&all->answer.together_ns, took_ns);
	turn_charges(policy, party, rq->sender, took_ns, now_ns);
	all->trial.busy_ns += took_ns;
	turn->charged_ns = now_ns;
	turn->nr_behind -= rq->behind;
	if (rq == turn->first)
		turn_notes_switch(policy, rq, now_ns);
}

void ss_turn_note_holding(struct ss_policy *policy, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_turn *turn = &all->turn;
	struct ss_party *party = turn->party;

	if (!party || policy->sched->nr_in_flight)
		return;
	if (turn->holding && party->nr_pending) {
		policy->sched->counters.hits++;
		turn_tell(policy, SS_EVENT_HIT, party);
		all->trial.held_ns += now_ns - turn->charged_ns;
		ss_credit_charge(policy, party, now_ns - turn->charged_ns,
				 now_ns);
		turn->charged_ns = now_ns;
		turn->holding = false;
	} else if (!turn->holding && !party->nr_pending &&
		   ss_party_others_wait(all, party) &&
		   now_ns < max_t(u64, ss_wait_until_ns(policy, party),
				  ss_answer_until_ns(all)) &&
		   !ss_turn_is_over(policy, party, now_ns)) {
		turn->holding = true;
		policy->sched->counters.waits++;
		turn_tell(policy, SS_EVENT_HELD, party);
	}
}
