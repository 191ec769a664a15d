// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: makes a work-conserving policy wait where waiting pays, without
 * knowing who sent a request.
 *
 * Xu and Jiang, "Stream scheduling" (FAST 2011), sections 2.1 and 3.2 and
 * Figure 2; where the paper is silent, the seven rules of this project's
 * architecture document.
 *
 * A request R that has been dispatched is a parent-to-be. A request that
 * arrives is its child if waiting for it and then serving it costs less than
 * what the inner policy would have done instead:
 *
 *	wait(child) + S(R.end -> child) < S(R.end -> inner's choice)
 *
 * Parent, child, child's child ... are a stream; all that is remembered of it
 * is its last member and its length. From stream_threshold members on it is
 * established: when its last member was also the last request dispatched, the
 * head is held there for the next child, for at most the right-hand side. One
 * stream is served for stream_time_slice; then, if others are pending, its
 * own pending child is passed over once.
 *
 * What this file adds to the paper:
 *
 * - A request that continues a pending one (several outstanding requests of
 *   one reader) extends its stream at once, having waited 0.
 * - Only requests that somebody waits for form streams: an asynchronous write
 *   tells nothing about when the next will come.
 * - With several commands in the device the cost of "instead" is also bounded
 *   by the time the device was seen to need for a request: a drive that
 *   reorders 32 commands pays far less than the curve for each.
 * - A score of how waiting would have ended, by length of stream, kept whether
 *   or not the head was held. Where waiting has not paid it is not held, so a
 *   workload that looks like streams and is none costs little.
 * - What far requests really took, against the curve: where the drive answers
 *   them from its cache, waiting is not credited with what the curve says.
 * - Trials (trial.h): now and then the inner policy has the disk to itself,
 *   and keeps it where the disk served no less that way.
 * - stream_time_slice=auto: the slice follows from wait_target and from how
 *   many streams take turns.
 * - Jumps: with other commands in the device, a request much farther from a
 *   stream than its members were from each other is no child of it before its
 *   last member is done.
 * - With such a slice, what is of no stream has a turn of its own, too
 *   (stream_share.c).
 * - Answers (answer.h): where no stream is held, whoever was just served may
 *   come back at once with a nearer request than the inner policy's choice.
 * - With stream_time_slice=auto a turn is a place's: where its stream has no
 *   child, whoever is nearer than the inner policy's choice goes on in it; a
 *   step in the stream's own place may be farther than what would be done
 *   instead, where going on has cost less; and a child is awaited for as long
 *   as that has paid, by when children came.
 */
#include "policies.h"
#include "stream.h"

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

static const struct ss_tunable stream_tunables[] = {
	[STREAM_THRESHOLD] = {
		.name = "stream_threshold",
		.unit = SS_UNIT_NONE,
		.initial = 4,
		.min = 1,
		.max = 1000,
		.help = "members from which on a stream is waited for (paper 3.2)",
	},
	[STREAM_TIME_SLICE] = {
		.name = "stream_time_slice",
		.unit = SS_UNIT_NS,
		.initial = 124 * SS_MSEC,
		.min = 1 * SS_MSEC,
		.max = 60 * SS_SEC,
		.word = "auto",
		.word_value = SLICE_AUTO,
		.word_serves = true,
		.help = "how long one stream is served while others are pending (paper 3.2); auto: from wait_target",
	},
	[STREAM_WAIT_TARGET] = {
		.name = "wait_target",
		.unit = SS_UNIT_NS,
		.initial = 500 * SS_MSEC,
		.min = 10 * SS_MSEC,
		.max = 60 * SS_SEC,
		.help = "with stream_time_slice=auto: the longest wait to aim for",
	},
	[STREAM_TOLERANCE] = {
		.name = "tolerance_factor",
		.unit = SS_UNIT_PERCENT,
		.initial = 50,
		.min = 0,
		.max = 1000,
		.help = "a stream this much longer than the threshold is waited for this much longer, once (paper 2.1)",
	},
	[STREAM_BACKWARD] = {
		.name = "backward_cost",
		.unit = SS_UNIT_PERCENT,
		.initial = 150,
		.min = 100,
		.max = 1000,
		.help = "cost of a backward distance, of the same one forward (paper 3.2)",
	},
	[STREAM_ANSWER] = {
		.name = "answer_time",
		.unit = SS_UNIT_NS,
		.initial = ANSWER_AUTO,
		.min = 0,
		.max = 10 * SS_MSEC,
		.word = "auto",
		.word_value = ANSWER_AUTO,
		.help = "with no stream held, an empty disk waits at most so long for the next read of whoever was just served; auto: a 32nd of a random one's time with stream_time_slice=auto, else 0",
	},
	[STREAM_TRIALS] = {
		.name = "trials",
		.unit = SS_UNIT_BOOL,
		.initial = 1,
		.min = 0,
		.max = 1,
		.help = "now and then the inner policy has the disk to itself, and keeps it where that serves more",
	},
};

/* The device's time per request: a running mean of about this many. */
#define BUSY_MEMORY 16

/* A running mean over about @memory samples; the first one sets it. */
static void mean_add(u64 *mean, u64 sample, u32 memory)
{
	if (!*mean)
		*mean = sample;
	else if (sample > *mean)
		*mean += div_u64(sample - *mean, memory);
	else
		*mean -= div_u64(*mean - sample, memory);
}

/* What depends on the threshold and is needed at each event. */
static void set_sizes(const struct ss_policy *policy)
{
	struct stream_state_all *all = policy->state;
	u64 threshold = policy->value[STREAM_THRESHOLD];
	u64 most = threshold * (100 + policy->value[STREAM_TOLERANCE]);
	u32 rank;

	all->threshold = (u32)threshold;
	all->second_chance_size = (u32)div_u64(most + 99, 100);
	all->patience[false] = ss_ratio_of(1, 1);
	all->patience[true] = ss_ratio_of(100 + policy->value[STREAM_TOLERANCE],
					  100);
	for (rank = 0; rank < NR_SCORES - 1; rank++)
		all->next_rank_size[rank] = (u32)threshold << (rank + 1);
	all->next_rank_size[rank] = U32_MAX;
}

static void stream_tuned(struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	bool aimed;
	u32 i;

	ss_curve_set_backward(&policy->sched->curve,
			      (u32)policy->value[STREAM_BACKWARD]);
	set_sizes(policy);
	for (i = 0; i < NR_STREAMS; i++) {
		set_size(all, &all->stream[i], all->stream[i].size);
		set_patience(all, &all->stream[i]);
		if (all->stream[i].state == STREAM_COMPLETED)
			note_patience(all, &all->stream[i]);
	}
	all->alone_turn_ns = policy->value[STREAM_WAIT_TARGET];
	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO)
		all->alone_turn_ns = ALONE_SLICES *
				     policy->value[STREAM_TIME_SLICE];
	all->next_broken_ns = 0;
	all->share.open = false;
	all->share.idle_ns = 0;
	aimed = policy->value[STREAM_TIME_SLICE] == SLICE_AUTO;
	policy->sched->wait_target_ns =
		aimed ? policy->value[STREAM_WAIT_TARGET] : 0;
	if (is_alone(all) &&
	    (aimed != all->trial.aimed || !policy->value[STREAM_TRIALS]))
		trial_change(&all->trial, false, now_ns);
	if (aimed != all->trial.aimed)
		ss_trial_aim(&all->trial, aimed);
}

static void stream_init(struct ss_policy *policy)
{
	struct stream_state_all *all = policy->state;
	u32 i;

	all->truth[SS_READ] = 1000;
	all->truth[SS_WRITE] = 1000;
	INIT_LIST_HEAD(&all->free);
	INIT_LIST_HEAD(&all->parents);
	INIT_LIST_HEAD(&all->waiting);
	INIT_LIST_HEAD(&all->age);
	ss_trial_init(&all->trial);
	for (i = 0; i < NR_SCORES; i++)
		all->score[i].enough_ns = U64_MAX;
	all->share.score.enough_ns = U64_MAX;
	all->share.enough_ns = U64_MAX;
	for (i = 0; i < NR_STREAMS; i++) {
		INIT_LIST_HEAD(&all->stream[i].members);
		list_add_tail(&all->stream[i].node, &all->free);
	}
	stream_tuned(policy, 0);
}

static struct ss_decision stream_choose(const struct ss_policy *policy,
					u64 now_ns,
					const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_policy *inner = inner_of(policy);

	if (policy->sched->nr_async_in_flight >= ASYNC_BESIDE &&
	    !is_flat(policy))
		return ss_stream_choose_apart(policy, now_ns, skip);
	if ((!all->quiet && (all->held || all->share.open || all->answer.open ||
			     all->answered)) ||
	    (is_alone(all) &&
	     now_ns >= all->oldest_served_ns + all->alone_turn_ns))
		return ss_stream_turn_choice(policy, now_ns, skip);
	/* Nobody's turn, and nobody starves. */
	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO)
		return inner->ops->choose(inner, now_ns, skip);
	return ss_stream_inner_choice(policy, now_ns, skip);
}

/*
 * The last member has just been dispatched: it becomes a parent-to-be. What
 * would be done instead of waiting for its child is known if anything is
 * pending.
 */
static inline void become_parent(const struct ss_policy *policy,
				 struct stream *s, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	const struct ss_policy *inner = inner_of(policy);
	struct ss_decision choice = ss_nothing();
	u64 service_ns = sched->curve.mean_random_ns;
	u32 nr_sectors = 0;
	u8 direction = SS_READ;

	s->state = STREAM_IN_FLIGHT;
	s->broken_ns = U64_MAX;
	list_move_tail(&s->node, &all->parents);
	if (sched->nr_pending)
		choice = inner->ops->choose(inner, now_ns, NULL);
	s->supposed = choice.verdict != SS_DISPATCH;
	if (s->supposed) {
		all->supposed = true;
	} else {
		service_ns = ss_curve_between(&sched->curve, s->end_sector,
					      choice.rq->sector);
		nr_sectors = choice.rq->nr_sectors;
		direction = choice.rq->direction;
	}
	if (sched->nr_in_flight <= 1) {
		set_instead(all, s, service_ns, nr_sectors, direction);
		return;
	}
	/*
	 * With several in the device there are as many parents, and what
	 * arrives is too far from most. By the curve of now, as its patience.
	 */
	if (all->busy_ns)
		service_ns = min_t(u64, service_ns, all->busy_ns);
	set_instead(all, s, service_ns, nr_sectors, direction);
	s->reach_sectors = ss_curve_reach_sectors(&sched->curve,
						  s->patience_ns);
}

/*
 * Did @rq go because it was near? Asked as choose() was, with the head where it
 * was and @rq pending.
 */
static bool was_near(const struct ss_policy *policy,
		     const struct ss_request *rq, u64 now_ns)
{
	struct ss_sched *sched = policy->sched;
	u64 head_sector = sched->head_sector;
	bool near;

	sched->head_sector = rq->from_sector;
	sched->nr_pending++;
	sched->nr_pending_dir[rq->direction]++;
	near = ss_stream_near(policy, now_ns, NULL) == rq;
	sched->head_sector = head_sector;
	sched->nr_pending--;
	sched->nr_pending_dir[rq->direction]--;
	return near;
}

/* Before the inner policy is told that @rq goes, where it may be in a turn. */
static noinline struct stream_leave leaves_turn(const struct ss_policy *policy,
						struct ss_request *rq,
						u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct stream_leave how = { 0 };

	/* Of interest only where it would end a turn. */
	if (all->held && rq->stream != all->held) {
		how.late = overdue(policy, now_ns) == rq;
		if (rq != all->answered && policy->sched->nr_in_flight == 1) {
			how.in_place = !rq->stream &&
				       ss_stream_in_place(policy, now_ns) == rq;
			how.near = how.in_place || was_near(policy, rq, now_ns);
		}
	}
	if (all->answer.open)
		ss_answer_close(&all->answer, U64_MAX, now_ns);
	if (rq == all->answered) {
		all->went_first = rq;
	} else {
		all->went_first = NULL;
		all->run_ns = now_ns;
	}
	all->answered = NULL;
	return how;
}

/* And afterwards: whose turn is it now? @rq is of @s, or @s is NULL. */
static noinline void takes_turn(const struct ss_policy *policy,
				struct stream *s, const struct ss_request *rq,
				struct stream_leave how, u64 now_ns)
{
	struct stream_state_all *all = policy->state;

	if (all->share.open)
		ss_stream_share_dispatched(all, rq, now_ns);
	if (s && s == all->held) {
		all->away = false;
	} else if (all->held || all->turn_expected_ns ||
		   (s && is_established(all, s) && !is_alone(all))) {
		ss_stream_pass_turn(policy, s, rq, how, now_ns);
	} else {
		/* It was nobody's and is nobody's. */
		all->away = false;
		all->turn_took_ns = 0;
		all->first_of_turn = NULL;
	}
	all->holding = false;
	all->quiet = !all->held && !all->went_first && !all->share.open &&
		     !all->turn_expected_ns;
}

static void stream_dispatched(struct ss_policy *policy, struct ss_request *rq,
			      u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_policy *inner = inner_of(policy);
	bool awaited, awaited_read, established = false, quiet = all->quiet;
	u64 oldest_ns, apart_until_ns;
	u32 awaited_write;
	struct stream_leave how = { 0 };
	struct stream *s;

	if (quiet)
		all->run_ns = now_ns;
	else
		how = leaves_turn(policy, rq, now_ns);
	inner->ops->dispatched(inner, rq, now_ns);
	oldest_ns = all->oldest_served_ns;
	all->oldest_served_ns = all->age.next == &rq->age_node ? now_ns :
								 oldest_ns;
	list_del(&rq->age_node);
	awaited = ss_request_is_awaited(rq);
	s = rq->stream;
	if (s) {
		list_del(&rq->member_node);
		s->nr_pending--;
	} else if (awaited && !is_flat(policy)) {
		s = stream_new(policy, rq);
	}
	if (s) {
		s->nr_in_flight++;
		rq->stream_life = s->life;
		established = is_established(all, s);
	}
	/* Without a branch: no processor can foresee the direction. */
	awaited_read = awaited & (rq->direction == SS_READ);
	all->nr_async = awaited_read ? 0 : all->nr_async + !awaited;
	awaited_write = ss_request_is_awaited_write(rq);
	policy->sched->nr_awaited_writes -= awaited_write;
	all->nr_passing = awaited_write ? 0 : all->nr_passing + !awaited;
	apart_until_ns = all->apart_until_ns;
	all->apart_until_ns = (awaited_read | established) ?
				      now_ns + ASYNC_APART :
				      apart_until_ns;
	if (!quiet || (established && !is_alone(all)))
		takes_turn(policy, s, rq, how, now_ns);
	/* The head is behind @rq now, also if a later member went before. */
	if (s && (s->last == rq || !s->nr_pending)) {
		s->last = rq;
		s->end_sector = ss_request_end(rq);
		become_parent(policy, s, now_ns);
	}
	drop_broken(policy, now_ns);
}

/*
 * A write that the drive took into its cache: the head did not go there, and
 * staying for the next one saves nothing.
 */
static bool was_cached(const struct ss_policy *policy,
		       const struct ss_request *rq, u64 moving_ns, u64 now_ns)
{
	u64 most_ns = moving_ns + policy->sched->curve.mean_random_ns / 8;

	/* One condition: few are so fast, but any may be a write. */
	return (now_ns - rq->dispatch_ns < most_ns) &
	       (rq->direction == SS_WRITE);
}

/*
 * Is nothing to be tried? An array has a trial of its own, of all its members
 * together.
 */
static bool is_untried(const struct ss_policy *policy, u64 now_ns)
{
	return !policy->value[STREAM_TRIALS] || is_led(policy->sched, now_ns);
}

/*
 * @rq is done: what does that say of holding and of the inner policy alone?
 * Answers by themselves are no reason for a trial: they are looked for only
 * where that was seen to pay.
 */
static void note_trial(const struct ss_policy *policy,
		       const struct ss_request *rq, u64 moving_ns, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	bool decided = is_alone(all) || all->held || all->share.open;
	bool idle = !sched->nr_pending && !sched->nr_in_flight;

	if (is_untried(policy, now_ns)) {
		if (is_alone(all))
			trial_change(&all->trial, false, now_ns);
		all->trial.last_ns = now_ns;
		if (!is_led(sched, now_ns))
			all->trial.idle = idle;
		return;
	}
	all->trial.deep_ns = all->busy_ns || sched->nr_in_flight ?
				     sched->curve.mean_random_ns :
				     0;
	ss_trial_completed(&all->trial, rq, moving_ns, idle, decided, now_ns);
	if (is_alone(all)) {
		all->share.open = false;
		all->share.idle_ns = 0;
	}
	if (all->held && is_alone(all)) {
		ss_stream_turn_ends(policy);
		all->held = NULL;
		all->away = false;
	}
}

/*
 * @rq of @s is done. A reader sends nothing before it has all members: a drive
 * that orders its commands may have done the last one first. @cached: as
 * was_cached().
 */
static inline void member_completed(struct stream_state_all *all,
				    struct stream *s,
				    const struct ss_request *rq, bool cached,
				    u64 now_ns)
{
	s->nr_in_flight--;
	if (s->state != STREAM_IN_FLIGHT)
		return;
	if (s->last == rq) {
		s->last = NULL;
		if (cached) {
			stream_free(all, s);
			return;
		}
	}
	if (s->last || (s->nr_in_flight && rq->direction == SS_READ))
		return;
	s->state = STREAM_COMPLETED;
	s->completed_ns = now_ns;
	note_patience(all, s);
}

static noinline void completed(struct ss_policy *policy, struct ss_request *rq,
			       u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_policy *inner = inner_of(policy);
	struct stream *s = rq->stream;
	u64 moving_ns = transfer_ns(policy->sched, rq->nr_sectors), took_ns;

	if (inner->ops->completed)
		inner->ops->completed(inner, rq, now_ns);
	took_ns = now_ns - max_t(u64, all->last_completion_ns, rq->dispatch_ns);
	/* With others in it still, it was busy since the last one. */
	if (policy->sched->nr_in_flight && !is_alone(all))
		mean_add(&all->busy_ns, took_ns, BUSY_MEMORY);
	if (policy->sched->nr_async_in_flight || !ss_request_is_awaited(rq))
		all->async_ns = now_ns;
	if (!is_flat(policy)) {
		if (rq == all->went_first)
			ss_stream_answer_done(all, took_ns, moving_ns);
		if (!is_alone(all))
			ss_stream_note_service(policy, rq, took_ns, moving_ns);
		note_trial(policy, rq, moving_ns, now_ns);
	}
	if (rq == all->first_of_turn) {
		all->first_of_turn = NULL;
		mean_add(&all->switch_ns, now_ns - rq->dispatch_ns,
			 BUSY_MEMORY);
		if (!all->turn_full)
			mean_add(&all->way_ns, now_ns - rq->dispatch_ns,
				 BUSY_MEMORY);
	}
	all->last_completion_ns = now_ns;
	if (s && s->life == rq->stream_life)
		member_completed(all, s, rq,
				 was_cached(policy, rq, moving_ns, now_ns),
				 now_ns);
	if (all->share.open)
		ss_stream_share_completed(policy, now_ns);
	if (answer_ns(policy))
		ss_stream_answer_open(policy, rq, now_ns);
	note_holding(policy, now_ns);
}

/*
 * With the inner policy alone: is all that the completion of @rq tells what it
 * cost? So it is most of the time that the trial is settled.
 */
static inline bool tells_cost_only(const struct ss_policy *policy,
				   const struct ss_request *rq)
{
	const struct stream_state_all *all = policy->state;

	return !inner_of(policy)->ops->completed && !is_flat(policy) &&
	       !policy->sched->coordinator && rq != all->first_of_turn;
}

/* Then a new trial is begun last, and what it means is seen at the next one. */
static inline void completed_alone(const struct ss_policy *policy,
				   const struct ss_request *rq, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	struct stream *s = rq->stream;
	u64 moving_ns = transfer_ns(sched, rq->nr_sectors);
	bool due;

	all->last_completion_ns = now_ns;
	if (sched->nr_async_in_flight || !ss_request_is_awaited(rq))
		all->async_ns = now_ns;
	due = ss_trial_settled(&all->trial, rq, moving_ns,
			       !sched->nr_pending && !sched->nr_in_flight, true,
			       now_ns);
	if (s && s->life == rq->stream_life)
		member_completed(all, s, rq,
				 was_cached(policy, rq, moving_ns, now_ns),
				 now_ns);
	if (due)
		trial_due(&all->trial, now_ns);
}

static noinline void completed_any(struct ss_policy *policy,
				   struct ss_request *rq, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;

	if (is_alone(all) && all->trial.settled && tells_cost_only(policy, rq))
		completed_alone(policy, rq, now_ns);
	else
		completed(policy, rq, now_ns);
}

/* What is due according to ss_trial_plain(). */
static noinline void plain_due(struct ss_trial *trial, u64 now_ns)
{
	if (trial_knows_enough(trial, SS_TRIAL_ALONE))
		trial_forget(trial);
	if (trial->decided_ns > trial->until_ns)
		trial_due(trial, now_ns);
}

/*
 * As completed_alone() does it, but calls nothing where the trial is plain:
 * that is where the framework has to be cheap, for it does nothing else.
 */
static void stream_completed(struct ss_policy *policy, struct ss_request *rq,
			     u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	struct stream *s = rq->stream;
	u64 moving_ns = transfer_ns(sched, rq->nr_sectors);

	if (!all->trial.plain || !tells_cost_only(policy, rq) ||
	    was_cached(policy, rq, moving_ns, now_ns)) {
		completed_any(policy, rq, now_ns);
		return;
	}
	all->last_completion_ns = now_ns;
	if (sched->nr_async_in_flight || !ss_request_is_awaited(rq))
		all->async_ns = now_ns;
	if (s && s->life == rq->stream_life)
		member_completed(all, s, rq, false, now_ns);
	if (ss_trial_plain(&all->trial, rq, moving_ns,
			   !sched->nr_pending && !sched->nr_in_flight, now_ns))
		plain_due(&all->trial, now_ns);
}

static void stream_merged(struct ss_policy *policy, struct ss_request *rq,
			  u64 old_sector, u64 now_ns)
{
	struct ss_policy *inner = inner_of(policy);
	struct stream *s = rq->stream;

	if (inner->ops->merged)
		inner->ops->merged(inner, rq, old_sector, now_ns);
	if (s && s->last == rq)
		s->end_sector = ss_request_end(rq);
	ss_stream_reconsider(policy, now_ns);
	ss_stream_answer_came(policy, rq, now_ns);
	note_holding(policy, now_ns);
}

static void stream_joins(struct ss_policy *policy, struct ss_request *rq,
			 const struct ss_request *next)
{
	struct stream_state_all *all = policy->state;
	struct ss_policy *inner = inner_of(policy);
	struct stream *s = rq->stream;

	if (inner->ops->joins)
		inner->ops->joins(inner, rq, next);
	ss_older(&all->age, rq, age_node);
	if (s)
		ss_older(&s->members, rq, member_node);
}

static void stream_removed(struct ss_policy *policy, struct ss_request *rq,
			   u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_policy *inner = inner_of(policy);
	struct stream *s = rq->stream;

	inner->ops->removed(inner, rq, now_ns);
	list_del(&rq->age_node);
	policy->sched->nr_awaited_writes -= ss_request_is_awaited_write(rq);
	if (all->answered == rq)
		all->answered = NULL;
	if (s) {
		list_del(&rq->member_node);
		s->nr_pending--;
		rq->stream = NULL;
		if (s->last == rq)
			ss_stream_tip_removed(policy, s, rq);
	}
	ss_stream_reconsider(policy, now_ns);
	note_holding(policy, now_ns);
}

static struct ss_request *stream_expired(const struct ss_policy *policy,
					 u64 now_ns)
{
	return overdue(policy, now_ns);
}

static bool stream_stream_at(const struct ss_policy *policy, u32 index,
			     u64 now_ns, struct ss_stream_info *info)
{
	const struct stream_state_all *all = policy->state;
	const struct stream *s;

	if (index >= NR_STREAMS)
		return false;
	s = &all->stream[index];
	*info = (struct ss_stream_info){
		.end_sector = s->end_sector,
		.size = s->state == STREAM_FREE ? 0 : s->size,
		.nr_pending = s->nr_pending,
		.established = is_established(all, s),
		.held = s == all->held,
		.pending = s->state == STREAM_PENDING,
	};
	if (s->state == STREAM_COMPLETED)
		info->waited_ns = waited_ns(s, now_ns);
	if (s->state == STREAM_COMPLETED || s->state == STREAM_IN_FLIGHT)
		info->patience_ns = s->patience_ns;
	return true;
}

const struct ss_policy_ops ss_stream_ops = {
	.name = "stream",
	.help = "waits where waiting pays, by streams found in the requests alone",
	.flags = SS_WRAPPER,
	.state_bytes = sizeof(struct stream_state_all),
	.tunables = stream_tunables,
	.nr_tunables = STREAM_TUNABLES,
	.init = stream_init,
	.tuned = stream_tuned,
	.arrived = ss_stream_arrived,
	.choose = stream_choose,
	.dispatched = stream_dispatched,
	.completed = stream_completed,
	.merged = stream_merged,
	.awaited = ss_stream_awaited,
	.joins = stream_joins,
	.removed = stream_removed,
	.expired = stream_expired,
	.stream_at = stream_stream_at,
};
