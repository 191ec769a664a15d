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
 * - Answers (answer.h): where no stream is held, whoever was just served may
 *   come back at once with a nearer request than the inner policy's choice.
 */
#include "answer.h"
#include "policies.h"
#include "sched.h"
#include "trial.h"

#include <linux/kernel.h>
#include <linux/math64.h>

enum {
	STREAM_THRESHOLD,
	STREAM_TIME_SLICE,
	STREAM_WAIT_TARGET,
	STREAM_TOLERANCE,
	STREAM_BACKWARD,
	STREAM_ANSWER,
	STREAM_TUNABLES,
};

#define SLICE_AUTO 0
#define ANSWER_AUTO U64_MAX

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
};

/* Streams remembered at once: those in rotation and recent candidates. */
#define NR_STREAMS 256

/* Scores by length of stream: threshold, twice that, four times, ... */
#define NR_SCORES 6
/* The score forgets by 1/SCORE_MEMORY at each outcome. */
#define SCORE_MEMORY 64
/*
 * Waiting must have won this many times what it lost. More than once: what it
 * wins is an estimate by the curve, what it loses is a time that passed.
 */
#define SCORE_FACTOR 2
/* And so many children must have come for each time that none did. */
#define SCORE_CHILDREN 1
/*
 * Of the time spent waiting for a child that came, this part counts as lost:
 * the others' processes would have been thinking while they were served.
 */
#define SCORE_IDLE 6
/* What the curve's estimates came to: a mean of about this many. */
#define TRUTH_MEMORY 16
/* One that took longer than this many thousandths of it met something else. */
#define TRUTH_MOST 4000
/* Below this many the curve is not believed; it is no exact thing. */
#define TRUTH_DOUBT 500
/* The device's time per request: a running mean of about this many. */
#define BUSY_MEMORY 16

/* A round of turns leaves this part of a switch as slack. */
#define SWITCH_SHARE 4

/*
 * For so long after a read, or a member of an established stream, was
 * dispatched, at most so many writes that nobody waits for are in the device at
 * once. Any read: a reader that waits for a full queue of them each time takes
 * seconds to become a stream.
 */
#define ASYNC_APART (500 * SS_MSEC)
#define ASYNC_BESIDE 4
/*
 * A turn beside nothing else lasts for so many slices: Linux 2.6's
 * anticipatory scheduler read for 500 ms and wrote for 125 ms by turns.
 */
#define ASYNC_SLICES 4

/* With the inner policy alone, turns may last for this many slices. */
#define ALONE_SLICES 16

/*
 * For so long in its turn a stream may grow to lengths of which nothing is
 * known. Not longer: those that are new, too, wait meanwhile.
 */
#define GROWING (200 * SS_MSEC)

/* A turn of answers, with stream_time_slice=auto: wait_target by 1 + this. */
#define ANSWER_TURNS 3

/*
 * A child is a jump if positioning to it costs so many times what it ever cost
 * between members, and this part of a random one's.
 */
#define JUMP_FACTOR 2
#define JUMP_SHARE 4

/*
 * With this bit a request's expected_ns is where the head was, of which what
 * positioning should take is found when it is asked for.
 */
#define EXPECTED_LATER (1ULL << 63)

/* So much more than twice the curve's time makes a child doubtful. */
#define CHILD_DOUBT_NS (2 * SS_MSEC)

enum stream_state {
	STREAM_FREE,
	STREAM_PENDING, /* its last member waits to be dispatched */
	STREAM_IN_FLIGHT, /* its last member is in the device */
	STREAM_COMPLETED, /* its last member is done: a child is awaited */
};

struct stream {
	struct list_head node; /* on free, parents or waiting */
	u64 end_sector; /* where the last member ends */
	u64 completed_ns; /* when the last member was done */
	u64 patience_ns; /* how long a child may take; see set_patience() */
	u64 broken_ns; /* until when a child is awaited; else U64_MAX */
	struct ss_request *last; /* last member, until it is completed */
	u32 size; /* members so far */
	u8 state; /* enum stream_state */
	u8 rank; /* which score it has, by its size; see set_size() */
	bool supposed; /* nothing was pending: service_ns is the mean */
	u8 instead_direction; /* of what would be done instead of waiting */
	u32 instead_sectors; /* its length */
	u32 nr_pending; /* members on the list */
	u32 nr_in_flight; /* members in the device */
	u32 life; /* how many streams this was before */
	u64 service_ns; /* what positioning to it would cost */
	u64 widest_ns; /* positioning between members, the most; not jumps */
	struct list_head members; /* its pending requests, oldest first */
	u64 before_end_sector; /* as end_sector, of the member before */
	u64 before_completed_ns; /* 0: was not completed when this one came */
};

/* How waiting ended, had the head always been held; old outcomes fade. */
struct score {
	u64 won_ns;
	u64 lost_ns;
	u32 children; /* how often, in thousandths */
	u32 misses;
};

/* All of the policy's run-time state; its settings are its tunables. */
struct stream_state_all {
	struct list_head free;
	struct list_head parents; /* in flight or completed */
	struct list_head waiting; /* last member pending */
	struct list_head age; /* all pending requests, oldest first */
	struct stream *held; /* whose turn it is; NULL: nobody's */
	u64 slice_start_ns;
	bool holding; /* the disk is kept idle for held's child */
	bool supposed; /* a stream's service_ns may be the mean */
	bool new_turn; /* answers have just made a stream of held */
	bool away; /* a request that was late took the head from held */
	u32 threshold; /* members of an established stream */
	u32 second_chance_size; /* members for one: threshold and tolerance */
	u32 next_rank_size[NR_SCORES]; /* members for the next rank */
	struct score score[NR_SCORES];
	const struct ss_request *first_of_turn; /* in flight; NULL: done */
	/* What far requests took, of what the curve said, in thousandths. */
	u32 truth[SS_DIRECTIONS];
	/* Of held streams' later requests, running means: */
	u64 child_took_ns; /* positioning */
	u64 child_expected_ns; /* the same by the curve */
	u64 turn_took_ns; /* positioning of this turn's requests, sum */
	u64 turn_expected_ns; /* of its first one, by the curve */
	u64 turn_behind_ns; /* this turn's requests were late by, for writes */
	u64 switch_ns; /* time of a turn's first request, running mean */
	u64 next_broken_ns; /* no completed stream is broken before */
	u64 busy_ns; /* device's time per request, several in it; 0 unknown */
	u64 last_completion_ns;
	u64 async_ns; /* the device last had what nobody waits for */
	u64 apart_until_ns; /* somebody reads: few writes in the device */
	u64 oldest_served_ns; /* the oldest request was dispatched, or none */
	struct ss_answer answer; /* to the request that was just done */
	struct ss_request *answered; /* the answer, if it shall go first */
	const struct ss_request *went_first; /* so it did, and is in flight */
	u64 run_ns; /* when the last request went that was no such answer */
	struct ss_trial trial; /* of the inner policy alone */
	struct stream stream[NR_STREAMS];
};

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

/* What moving @nr_sectors takes, once the head is there. */
static u64 transfer_ns(const struct ss_sched *sched, u64 nr_sectors)
{
	return div_u64(sched->curve.transfer_ps * nr_sectors, 1000);
}

/*
 * The inner policy alone decides. What is seen then says nothing about how
 * waiting would end: scores and running means stay as they are.
 */
static bool is_alone(const struct stream_state_all *all)
{
	return ss_trial_is_alone(&all->trial);
}

/* Positioning costs the same everywhere: there is nothing to wait for. */
static bool is_flat(const struct ss_policy *policy)
{
	return policy->sched->curve.flat;
}

static struct ss_policy *inner_of(const struct ss_policy *policy)
{
	return policy->inner;
}

static bool is_established(const struct stream_state_all *all,
			   const struct stream *s)
{
	return s->size >= all->threshold;
}

/* Long enough for a second chance (Figure 2, expiration of the timer). */
static bool has_second_chance(const struct stream_state_all *all,
			      const struct stream *s)
{
	return s->size >= all->second_chance_size;
}

/*
 * How long after its completion the last member may still get a child. To be
 * set anew with service_ns, and with the size of a parent.
 */
static void set_patience(const struct ss_policy *policy, struct stream *s)
{
	const struct stream_state_all *all = policy->state;
	/* Multiplied also without one, which no processor can foresee. */
	u64 percent = 100 + policy->value[STREAM_TOLERANCE] *
				    has_second_chance(all, s);

	s->patience_ns = div_u64(s->service_ns * percent, 100);
}

static u64 waited_ns(const struct stream *s, u64 now_ns)
{
	return s->state == STREAM_COMPLETED ? now_ns - s->completed_ns : 0;
}

static bool is_broken(const struct stream *s, u64 now_ns)
{
	return now_ns >= s->broken_ns;
}

/* ---- scores: does waiting for streams of this length pay? ---- */

/* What depends on the threshold and is needed at each event. */
static void set_sizes(const struct ss_policy *policy)
{
	struct stream_state_all *all = policy->state;
	u64 threshold = policy->value[STREAM_THRESHOLD];
	u64 most = threshold * (100 + policy->value[STREAM_TOLERANCE]);
	u32 rank;

	all->threshold = (u32)threshold;
	all->second_chance_size = (u32)div_u64(most + 99, 100);
	for (rank = 0; rank < NR_SCORES - 1; rank++)
		all->next_rank_size[rank] = (u32)threshold << (rank + 1);
	all->next_rank_size[rank] = U32_MAX;
}

/* @s has so many members now. */
static void set_size(const struct stream_state_all *all, struct stream *s,
		     u32 size)
{
	s->size = size;
	s->rank = 0;
	while (size >= all->next_rank_size[s->rank])
		s->rank++;
}

/* A child came, or none did: what waiting won, or cost. */
static noinline void score_add(const struct ss_policy *policy,
			       const struct stream *s, u64 won_ns, u64 lost_ns)
{
	struct stream_state_all *all = policy->state;
	struct score *score = &all->score[s->rank];

	if (is_alone(all))
		return;
	score->won_ns += won_ns - score->won_ns / SCORE_MEMORY;
	score->lost_ns += lost_ns - score->lost_ns / SCORE_MEMORY;
	score->children -= score->children / SCORE_MEMORY;
	score->misses -= score->misses / SCORE_MEMORY;
	if (won_ns)
		score->children += 1000;
	else
		score->misses += 1000;
}

/*
 * A child of @nr_sectors came that cost @cost_ns, of which @wait_ns was
 * waiting. What would have been done instead may have moved more in its time:
 * readahead windows that were not waited for merge into longer requests. That
 * counts up to twice the child's length.
 */
static noinline void score_child(const struct ss_policy *policy,
				 const struct stream *s, u32 nr_sectors,
				 u64 cost_ns, u64 wait_ns)
{
	const struct stream_state_all *all = policy->state;
	u64 moving_ns = transfer_ns(policy->sched, nr_sectors);
	/* While it is waited for, the drive reads ahead into its cache. */
	u64 own_ns = cost_ns - wait_ns + max_t(u64, wait_ns, moving_ns);
	u64 instead_ns = s->service_ns;
	u32 truth = all->truth[s->instead_direction];
	u64 sectors;

	/* A drive that writes out its cache in every gap makes them dear. */
	if (all->child_took_ns > 2 * all->child_expected_ns + CHILD_DOUBT_NS)
		own_ns += all->child_took_ns - all->child_expected_ns;
	if (truth < TRUTH_DOUBT)
		instead_ns = div_u64(instead_ns * truth, 1000);
	if (s->instead_sectors > nr_sectors) {
		sectors = min_t(u64, s->instead_sectors, 2ULL * nr_sectors);
		instead_ns += transfer_ns(policy->sched, sectors);
		instead_ns = div64_u64(instead_ns * nr_sectors, sectors);
	} else {
		instead_ns += moving_ns;
	}
	if (own_ns < instead_ns)
		score_add(policy, s, instead_ns - own_ns, wait_ns / SCORE_IDLE);
	else
		score_add(policy, s, 0, own_ns - instead_ns);
}

static bool is_unknown(const struct score *score)
{
	return !score->won_ns && !score->lost_ns;
}

static bool waiting_pays(const struct ss_policy *policy, const struct stream *s,
			 u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	const struct score *score = &all->score[s->rank];

	/*
	 * Nothing known yet: with the device otherwise empty trying is cheap,
	 * but to empty it of other commands for a guess is not. Unless only
	 * writes are kept waiting, or it is the turn of this stream that grew,
	 * and the device has hardly anything else: there, as it was with
	 * shorter ones.
	 */
	if (is_unknown(score) && sched->nr_in_flight <= 1)
		return true;
	while (is_unknown(score) && score > all->score &&
	       ((s == all->held && sched->nr_in_flight - s->nr_in_flight <= 1 &&
		 now_ns < all->slice_start_ns + GROWING) ||
		sched->nr_pending_dir[SS_READ] <= s->nr_pending))
		score--;
	if (is_unknown(score))
		return false;
	if (score->misses > score->children / SCORE_CHILDREN)
		return false;
	return score->won_ns >= SCORE_FACTOR * score->lost_ns;
}

/* ---- the table of streams ---- */

/* The pending requests of @s are nobody's. */
static noinline void let_go(struct stream *s)
{
	while (!list_empty(&s->members)) {
		struct ss_request *rq = list_first_entry(&s->members,
							 struct ss_request,
							 member_node);

		list_del(&rq->member_node);
		rq->stream = NULL;
	}
	s->nr_pending = 0;
}

static void stream_free(struct stream_state_all *all, struct stream *s)
{
	if (s->nr_pending)
		let_go(s);
	if (all->held == s) {
		all->held = NULL;
		all->holding = false;
	}
	s->state = STREAM_FREE;
	s->last = NULL;
	s->nr_in_flight = 0;
	s->life++;
	/* First out again: its memory is still in the processor's cache. */
	list_move(&s->node, &all->free);
}

/*
 * A stream for @rq alone, whose caller takes it from the list of free ones;
 * NULL when the table is full of better ones.
 */
static struct stream *stream_new(const struct ss_policy *policy,
				 struct ss_request *rq)
{
	struct stream_state_all *all = policy->state;
	struct stream *s;

	if (list_empty(&all->free)) {
		list_for_each_entry(s, &all->parents, node)
			if (s->state == STREAM_COMPLETED && s != all->held &&
			    !is_established(all, s))
				break;
		if (&s->node == &all->parents)
			return NULL;
		stream_free(all, s);
	}
	s = list_first_entry(&all->free, struct stream, node);
	s->last = rq;
	s->end_sector = ss_request_end(rq);
	set_size(all, s, rq->stream_size);
	s->widest_ns = 0;
	s->state = STREAM_PENDING;
	rq->stream = s;
	return s;
}

/* @s is completed and may be broken at another time than before. */
static void note_patience(struct stream_state_all *all, struct stream *s)
{
	s->broken_ns = s->completed_ns + s->patience_ns;
	all->next_broken_ns = min_t(u64, all->next_broken_ns, s->broken_ns);
}

/* Forget the streams that got no child in time; find the next to get none. */
static void look_for_broken(const struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct list_head *at = all->parents.next, *next;
	u64 next_broken_ns = U64_MAX;

	for (; at != &all->parents; at = next) {
		struct stream *s = list_entry(at, struct stream, node);

		next = at->next;
		if (is_broken(s, now_ns)) {
			if (is_established(all, s))
				score_add(policy, s, 0, s->patience_ns);
			stream_free(all, s);
		} else {
			next_broken_ns = min_t(u64, next_broken_ns,
					       s->broken_ns);
		}
	}
	all->next_broken_ns = next_broken_ns;
}

static inline void drop_broken(const struct ss_policy *policy, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;

	if (now_ns >= all->next_broken_ns)
		look_for_broken(policy, now_ns);
}

/* What the inner policy would do instead of waiting costs @service_ns. */
static inline void set_instead(const struct ss_policy *policy, struct stream *s,
			       u64 service_ns, u32 nr_sectors, u8 direction)
{
	s->service_ns = service_ns;
	s->instead_sectors = nr_sectors;
	s->instead_direction = direction;
	set_patience(policy, s);
}

/* The same, while a child may be awaited already. */
static void change_instead(const struct ss_policy *policy, struct stream *s,
			   u64 service_ns, const struct ss_request *instead)
{
	set_instead(policy, s, service_ns, instead->nr_sectors,
		    instead->direction);
	if (s->state == STREAM_COMPLETED)
		note_patience(policy->state, s);
}

/* The last member has just been dispatched: it becomes a parent-to-be. */
static void become_parent(const struct ss_policy *policy, struct stream *s,
			  u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	struct ss_policy *inner = inner_of(policy);
	struct ss_decision choice = ss_nothing();
	u64 service_ns = sched->curve.mean_random_ns;
	u32 nr_sectors = 0;
	u8 direction = SS_READ;

	list_move_tail(&s->node, &all->parents);
	if (sched->nr_pending)
		choice = inner->ops->choose(inner, now_ns, NULL);
	s->state = STREAM_IN_FLIGHT;
	s->broken_ns = U64_MAX;
	s->supposed = choice.verdict != SS_DISPATCH;
	if (s->supposed) {
		all->supposed = true;
	} else {
		service_ns = ss_curve_service_ns(&sched->curve, s->end_sector,
						 choice.rq->sector);
		nr_sectors = choice.rq->nr_sectors;
		direction = choice.rq->direction;
	}
	if (sched->nr_in_flight > 1 && all->busy_ns)
		service_ns = min_t(u64, service_ns, all->busy_ns);
	set_instead(policy, s, service_ns, nr_sectors, direction);
}

/* ---- arrival: whose child is it? ---- */

/*
 * May a request at @sector be a child of @s? This is asked of every parent,
 * mostly in vain, and no processor can foresee the answer: so it is found by
 * little calculation.
 */
static inline bool may_be_child(const struct ss_sched *sched,
				const struct stream *s, u64 sector, u64 now_ns)
{
	u64 distance = ss_distance(s->end_sector, sector);
	/* None is broken now; in the device, it is not yet waited for. */
	u64 left_ns = min_t(u64, s->patience_ns, s->broken_ns - now_ns);

	return ss_curve_least_ns(&sched->curve, distance) < left_ns;
}

/*
 * Would a child at @gap_ns be a jump? With several commands in the device even
 * a far request costs little beside another far one, so anybody's request that
 * comes before the stream's own next one is its child by the paper's rule, and
 * takes it along. A reader of small files jumps too; but it goes on there.
 */
static bool is_jump(const struct ss_policy *policy, const struct stream *s,
		    u64 gap_ns)
{
	u64 random_ns = policy->sched->curve.mean_random_ns;

	return s->size > 1 && gap_ns > JUMP_FACTOR * s->widest_ns &&
	       gap_ns > random_ns / JUMP_SHARE;
}

/*
 * Has @s a child so far away? With nothing else in the device by the paper's
 * rule. Else not before its reader has what it waits for.
 */
static bool may_jump(const struct ss_policy *policy, const struct stream *s)
{
	return policy->sched->nr_in_flight <= 1 || s->state == STREAM_COMPLETED;
}

/* Is it, when it may be? At *@cost_ns, its waiting included. */
static inline bool is_child(const struct ss_policy *policy,
			    const struct stream *s, u64 sector, u64 now_ns,
			    u64 *cost_ns)
{
	const struct ss_curve *curve = &policy->sched->curve;
	u64 child_ns = ss_curve_service_ns(curve, s->end_sector, sector);

	*cost_ns = waited_ns(s, now_ns) + child_ns;
	if (*cost_ns >= s->patience_ns)
		return false;
	/* A second chance is one to come later, not to be farther away. */
	if (child_ns >= s->service_ns &&
	    ss_distance(s->end_sector, sector) >
		    ss_curve_reach_sectors(curve, s->service_ns))
		return false;
	return may_jump(policy, s) || !is_jump(policy, s, child_ns);
}

/* The nearest of several parents that @rq may be a child of, or NULL. */
static noinline struct stream *nearest_parent(const struct ss_policy *policy,
					      const struct ss_request *rq,
					      u64 now_ns, u64 *cost_ns)
{
	const struct stream_state_all *all = policy->state;
	struct stream *s, *best = NULL;
	u64 child_ns;

	*cost_ns = U64_MAX;
	list_for_each_entry(s, &all->parents, node)
		if (may_be_child(policy->sched, s, rq->sector, now_ns) &&
		    is_child(policy, s, rq->sector, now_ns, &child_ns) &&
		    child_ns < *cost_ns) {
			*cost_ns = child_ns;
			best = s;
		}
	return best;
}

/* The stream whose child @rq is, at *@cost_ns, or NULL. */
static inline struct stream *find_parent(const struct ss_policy *policy,
					 const struct ss_request *rq,
					 u64 now_ns, u64 *cost_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	struct stream *s, *found = NULL;
	u64 sector = rq->sector;
	u32 nr = 0;

	list_for_each_entry(s, &all->parents, node) {
		bool may_be = may_be_child(sched, s, sector, now_ns);

		nr += may_be;
		found = may_be ? s : found;
	}
	/* Asked last, for it differs from one request to the next. */
	if (!nr || !ss_request_is_sync(rq))
		return NULL;
	if (nr > 1)
		return nearest_parent(policy, rq, now_ns, cost_ns);
	return is_child(policy, found, sector, now_ns, cost_ns) ? found : NULL;
}

/* The stream of a pending request that @rq continues, or NULL. */
static struct stream *find_pending_parent(const struct ss_policy *policy,
					  const struct ss_request *rq)
{
	struct ss_request *before = ss_sched_pending_before(policy->sched,
							    rq->sector);
	struct stream *s;

	if (!before || !ss_request_is_sync(before) || !ss_request_is_sync(rq))
		return NULL;
	s = before->stream;
	if (s)
		return s->last == before ? s : NULL;
	s = stream_new(policy, before);
	if (s) {
		list_add_tail(&before->member_node, &s->members);
		s->nr_pending = 1;
	}
	return s;
}

static inline void extend(const struct ss_policy *policy, struct stream *s,
			  struct ss_request *rq)
{
	struct stream_state_all *all = policy->state;

	s->before_end_sector = s->end_sector;
	s->before_completed_ns = s->state == STREAM_COMPLETED ?
					 s->completed_ns :
					 0;
	s->size = min_t(u32, s->size + 1, U32_MAX / 4);
	s->rank += s->size >= all->next_rank_size[s->rank];
	s->last = rq;
	s->end_sector = ss_request_end(rq);
	if (s->size == policy->value[STREAM_THRESHOLD])
		ss_sched_tell(policy->sched, SS_EVENT_ESTABLISHED,
			      s->end_sector, s->size);
	s->state = STREAM_PENDING;
	s->broken_ns = U64_MAX;
	s->nr_pending++;
	list_move_tail(&s->node, &all->waiting);
	list_add_tail(&rq->member_node, &s->members);
	rq->stream = s;
	rq->stream_size = s->size;
}

/*
 * The held stream need not be waited for longer than the inner policy's
 * choice is worth by now.
 */
static noinline void reconsider(const struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_policy *inner = inner_of(policy);
	struct stream *s = all->held;
	struct ss_decision choice;
	u64 service_ns;

	if (!s || s->state == STREAM_PENDING || !policy->sched->nr_pending)
		return;
	choice = inner->ops->choose(inner, now_ns, NULL);
	if (choice.verdict != SS_DISPATCH)
		return;
	service_ns = ss_curve_service_ns(&policy->sched->curve, s->end_sector,
					 choice.rq->sector);
	if (service_ns < s->service_ns)
		change_instead(policy, s, service_ns, choice.rq);
}

/* What was supposed of @s is known now: @rq would be served instead. */
static noinline void instead_came(const struct ss_policy *policy,
				  struct stream *s, const struct ss_request *rq)
{
	u64 service_ns = ss_curve_service_ns(&policy->sched->curve,
					     s->end_sector, rq->sector);

	s->supposed = false;
	change_instead(policy, s, service_ns, rq);
}

/*
 * @rq is no child of these: where nothing was pending, it is what would be
 * served instead.
 */
static inline void alternative_came(const struct ss_policy *policy,
				    const struct ss_request *rq)
{
	struct stream_state_all *all = policy->state;
	struct stream *s;

	all->supposed = false;
	list_for_each_entry(s, &all->parents, node)
		if (s->supposed)
			instead_came(policy, s, rq);
}

/* ---- the slice ---- */

/* Pending requests that are not @s's own. */
static u32 nr_others(const struct ss_policy *policy, const struct stream *s)
{
	return policy->sched->nr_pending - s->nr_pending;
}

static struct ss_request *oldest_other(const struct stream_state_all *all,
				       const struct stream *s)
{
	struct ss_request *rq;

	list_for_each_entry(rq, &all->age, age_node)
		if (rq->stream != s)
			return rq;
	return NULL;
}

/*
 * As oldest_other(), of those that somebody waits for: wait_target is theirs.
 * Write-back piles up until nobody can wait for it, and then all of it is old;
 * what may become of it is the inner policy's to say, when a turn has ended.
 */
static struct ss_request *oldest_awaited(const struct stream_state_all *all,
					 const struct stream *s)
{
	struct ss_request *rq;

	list_for_each_entry(rq, &all->age, age_node)
		if (rq->stream != s && ss_request_is_sync(rq))
			return rq;
	return NULL;
}

/*
 * How many take turns with @s: established streams with pending requests,
 * and all other pending requests together as one more.
 */
static u32 nr_in_turn(const struct ss_policy *policy, const struct stream *held)
{
	const struct stream_state_all *all = policy->state;
	const struct stream *s;
	u32 nr = 0, members = 0;

	list_for_each_entry(s, &all->waiting, node)
		if (s != held && s->nr_pending && is_established(all, s)) {
			nr++;
			members += s->nr_pending;
		}
	return nr + (nr_others(policy, held) > members);
}

/* Pending reads that are not @s's own, each as the host sent it. */
static u32 nr_other_reads(const struct ss_policy *policy,
			  const struct stream *s)
{
	u32 nr = policy->sched->nr_pending_dir[SS_READ];

	return nr - min_t(u32, nr, s->nr_pending);
}

static u64 slice_ns(const struct ss_policy *policy, const struct stream *s)
{
	const struct stream_state_all *all = policy->state;
	u64 slice = policy->value[STREAM_TIME_SLICE], target;
	u32 nr;

	if (slice != SLICE_AUTO)
		return slice;
	/*
	 * A turn ends with the request that is under way at its end. So that
	 * these do not add up over a round, part of a switch is left over.
	 */
	target = policy->value[STREAM_WAIT_TARGET];
	target -= min_t(u64, target / 2, all->switch_ns / SWITCH_SHARE);
	nr = nr_in_turn(policy, s);
	/*
	 * When answers have just made a stream of this one, the others may be
	 * some too; together as one all would have waited too long at its end.
	 */
	if (all->new_turn)
		nr = max_t(u32, nr, nr_other_reads(policy, s));
	return div_u64(target, max_t(u32, nr, 1));
}

/*
 * When the held stream must let others go on; they are pending. Beside what
 * nobody waits for, a turn lasts for ASYNC_SLICES of the paper's slices, and
 * does not pay for the drive's work on writes.
 */
static u64 slice_end_ns(const struct ss_policy *policy, const struct stream *s)
{
	const struct stream_state_all *all = policy->state;
	u64 slice = slice_ns(policy, s), end = all->slice_start_ns + slice;
	const struct ss_request *oldest = oldest_awaited(all, s);
	bool target = policy->value[STREAM_TIME_SLICE] == SLICE_AUTO;

	if (!oldest) {
		if (!target)
			end += (ASYNC_SLICES - 1) * slice;
		return end + min_t(u64, all->turn_behind_ns, slice);
	}
	if (!target)
		return end;
	return min_t(u64, end,
		     oldest->arrival_ns + policy->value[STREAM_WAIT_TARGET]);
}

/*
 * Does @rq read on right behind the turn's first request, which is in the
 * device? Of what takes one seek a drive that orders its commands may begin
 * with the middle, and seek again; so the rest goes when the head is there.
 */
static bool is_behind_first(const struct ss_policy *policy,
			    const struct ss_request *rq)
{
	const struct stream_state_all *all = policy->state;

	return all->first_of_turn && rq->direction == SS_READ &&
	       rq->sector == policy->sched->head_sector;
}

/* The request that must go because of its age (rule 4), or NULL. */
static inline struct ss_request *overdue(const struct ss_policy *policy,
					 u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_policy *inner = inner_of(policy);
	struct ss_request *rq;

	if (!inner->ops->expired)
		return NULL;
	rq = inner->ops->expired(inner, now_ns);
	/*
	 * Write-back comes faster than any disk writes, and then all of it is
	 * late. As in Linux, where a batch is not ended for it, no turn is.
	 */
	if (rq && !ss_request_is_sync(rq) && all->held && !is_alone(all) &&
	    now_ns < slice_end_ns(policy, all->held))
		return NULL;
	/* It is next, and sent now it would be served no sooner. */
	if (rq && all->held && rq->stream == all->held && !is_alone(all) &&
	    is_behind_first(policy, rq))
		return NULL;
	/* With a target of its own, the framework knows better what is late. */
	if (rq && policy->value[STREAM_TIME_SLICE] == SLICE_AUTO &&
	    ss_request_is_sync(rq) &&
	    now_ns < rq->arrival_ns + policy->value[STREAM_WAIT_TARGET])
		return NULL;
	return rq;
}

/*
 * The slice is over: the inner policy's choice among the others, unless the
 * oldest would then wait for longer than its turn may take (rule 5).
 */
static struct ss_request *next_turn(const struct ss_policy *policy,
				    const struct stream *s, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_policy *inner = inner_of(policy);
	bool target = policy->value[STREAM_TIME_SLICE] == SLICE_AUTO;
	struct ss_request *oldest = target ? oldest_awaited(all, s) :
					     oldest_other(all, s);
	struct ss_request *own = NULL;
	struct ss_decision choice;
	u64 patience;

	/*
	 * With a target, whoever has used up half of it is next: in a steady
	 * rotation that is always the oldest, so the order is the one in which
	 * the inner policy first chose them.
	 */
	if (target)
		patience = policy->value[STREAM_WAIT_TARGET] / 2;
	else
		patience = slice_ns(policy, s) *
			   (max_t(u32, nr_in_turn(policy, s), 1) - 1);
	if (s->nr_pending)
		own = list_first_entry(&s->members, struct ss_request,
				       member_node);
	if (oldest && now_ns > oldest->arrival_ns + patience)
		return oldest;
	choice = inner->ops->choose(inner, now_ns, own);
	if (choice.verdict == SS_DISPATCH && choice.rq->stream != s)
		return choice.rq;
	return oldest ? oldest : oldest_other(all, s);
}

/* With the inner policy alone a turn may last for this long. */
static u64 alone_turn_ns(const struct ss_policy *policy)
{
	return ALONE_SLICES * policy->value[STREAM_TIME_SLICE];
}

/*
 * With the inner policy alone: the oldest request, if none was the oldest when
 * it was dispatched for the time of a long turn (rule 5), or NULL.
 */
static struct ss_request *starving(const struct ss_policy *policy, u64 now_ns,
				   const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	u64 turn_ns = alone_turn_ns(policy);
	struct ss_request *oldest;

	if (now_ns < all->oldest_served_ns + turn_ns)
		return NULL;
	oldest = list_first_entry(&all->age, struct ss_request, age_node);
	if (oldest == skip || now_ns < oldest->arrival_ns + turn_ns)
		return NULL;
	/* What is late goes first; the inner policy knows which (rule 4). */
	return overdue(policy, now_ns) ? NULL : oldest;
}

/* ---- the policy interface ---- */

static void stream_tuned(struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	u32 i;

	policy->sched->curve.backward_pct = policy->value[STREAM_BACKWARD];
	set_sizes(policy);
	for (i = 0; i < NR_STREAMS; i++) {
		set_size(all, &all->stream[i], all->stream[i].size);
		set_patience(policy, &all->stream[i]);
		if (all->stream[i].state == STREAM_COMPLETED)
			note_patience(all, &all->stream[i]);
	}
	all->next_broken_ns = 0;
	if (policy->value[STREAM_TIME_SLICE] == SLICE_AUTO && is_alone(all))
		trial_change(&all->trial, false, now_ns);
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
	for (i = 0; i < NR_STREAMS; i++) {
		INIT_LIST_HEAD(&all->stream[i].members);
		list_add_tail(&all->stream[i].node, &all->free);
	}
	stream_tuned(policy, 0);
}

/* Wait, but not beyond the time when a request must go because of its age. */
static struct ss_decision wait_until(const struct ss_policy *policy,
				     u64 until_ns, u64 now_ns)
{
	const struct ss_policy *inner = inner_of(policy);
	u64 expiry_ns = SS_FOREVER;

	if (inner->ops->next_expiry)
		expiry_ns = inner->ops->next_expiry(inner);
	/* One that has passed and was not obeyed: overdue() says why. */
	if (expiry_ns > now_ns)
		until_ns = min_t(u64, until_ns, expiry_ns);
	return ss_wait(until_ns);
}

/*
 * Which request goes while it is the turn of @s, or until when the head stays;
 * nothing when the inner policy shall decide.
 */
static struct ss_decision held_choose(const struct ss_policy *policy,
				      const struct stream *s, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	struct ss_request *late, *own = NULL;
	u64 until_ns = SS_FOREVER;

	if (!waiting_pays(policy, s, now_ns))
		return ss_nothing();
	if (s->nr_pending)
		own = list_first_entry(&s->members, struct ss_request,
				       member_node);
	late = overdue(policy, now_ns);
	if (late)
		return ss_dispatch(late);

	if (nr_others(policy, s)) {
		until_ns = slice_end_ns(policy, s);
		if (now_ns >= until_ns)
			return ss_dispatch(next_turn(policy, s, now_ns));
	}
	if (own && is_behind_first(policy, own))
		return ss_wait(until_ns);
	if (own)
		return ss_dispatch(own);
	/* Without a child by then, the turn is over. */
	if (all->away)
		return policy->sched->nr_in_flight ? ss_wait(until_ns) :
						     ss_nothing();
	if (s->state == STREAM_IN_FLIGHT)
		return ss_wait(until_ns);
	if (is_broken(s, now_ns))
		return ss_nothing();
	return ss_wait(min_t(u64, until_ns, s->broken_ns));
}

static noinline struct ss_decision turn_choice(const struct ss_policy *policy,
					       u64 now_ns,
					       const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_policy *inner = inner_of(policy);
	struct ss_decision decision;
	struct ss_request *late;

	if (all->held && !is_flat(policy) && !is_alone(all)) {
		decision = held_choose(policy, all->held, now_ns);
		if (decision.verdict == SS_DISPATCH)
			return decision;
		if (decision.verdict == SS_WAIT)
			return wait_until(policy, decision.until_ns, now_ns);
	} else if (is_alone(all) && !is_flat(policy)) {
		late = starving(policy, now_ns, skip);
		if (late)
			return ss_dispatch(late);
	}
	if (all->answer.open && now_ns < all->answer.until_ns &&
	    !overdue(policy, now_ns))
		return wait_until(policy, all->answer.until_ns, now_ns);
	if (all->answered && all->answered != skip && !overdue(policy, now_ns))
		return ss_dispatch(all->answered);
	return inner->ops->choose(inner, now_ns, skip);
}

/* ---- answers (answer.h) ---- */

/* How long an answer is looked for; 0: it is not. */
static u64 answer_ns(const struct ss_policy *policy)
{
	if (policy->value[STREAM_ANSWER] != ANSWER_AUTO)
		return policy->value[STREAM_ANSWER];
	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO)
		return 0;
	return policy->sched->curve.mean_random_ns / ANSWER_SHARE;
}

/* For so long answers may go first one after the other: a turn of theirs. */
static u64 answers_turn_ns(const struct ss_policy *policy)
{
	u32 nr = policy->sched->nr_pending_dir[SS_READ];

	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO)
		return policy->value[STREAM_TIME_SLICE];
	return div_u64(policy->value[STREAM_WAIT_TARGET],
		       1 + max_t(u32, nr, ANSWER_TURNS));
}

/*
 * What positioning to the inner policy's choice costs: what such have cost,
 * where that was much less than the curve says, or more.
 */
static u64 inner_cost_ns(const struct ss_policy *policy, u64 now_ns)
{
	const struct ss_policy *inner = inner_of(policy);
	const struct stream_state_all *all = policy->state;
	struct ss_decision choice = inner->ops->choose(inner, now_ns, NULL);
	u32 truth;

	if (choice.verdict != SS_DISPATCH)
		return 0;
	truth = all->truth[choice.rq->direction];
	if (truth >= TRUTH_DOUBT && truth < 1000)
		truth = 1000;
	return div_u64(ss_sched_cost_ns(policy->sched, choice.rq) * truth,
		       1000);
}

/* @rq is done. When the inner policy decides what is next, is it to wait? */
static void answer_open(const struct ss_policy *policy,
			const struct ss_request *rq, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	u64 most_ns = answer_ns(policy);

	if (!most_ns || sched->nr_in_flight || !sched->nr_pending ||
	    sched->coordinator || rq->direction != SS_READ || is_alone(all) ||
	    is_flat(policy) || !ss_answer_due(&all->answer))
		return;
	if (all->held &&
	    held_choose(policy, all->held, now_ns).verdict != SS_NOTHING)
		return;
	ss_answer_open(&all->answer, inner_cost_ns(policy, now_ns), most_ns,
		       now_ns);
}

/*
 * @rq came, or became part of a pending one. If it is nearer than what the
 * inner policy would choose it goes first, for the time of a slice in a row.
 */
static inline void answer_came(const struct ss_policy *policy,
			       struct ss_request *rq, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	u64 choice_ns, own_ns;

	if (!all->answer.open || rq->direction != SS_READ)
		return;
	choice_ns = inner_cost_ns(policy, now_ns);
	own_ns = ss_sched_cost_ns(policy->sched, rq);
	if (own_ns < choice_ns &&
	    now_ns < all->run_ns + answers_turn_ns(policy)) {
		all->answered = rq;
		all->answer.first_choice_ns = choice_ns;
		choice_ns = U64_MAX;
	}
	ss_answer_close(&all->answer, choice_ns, now_ns);
}

/*
 * While somebody reads, writes that nobody waits for go to the device a few
 * at a time: each one that is in it already, the next read has to wait for.
 */
static noinline struct ss_decision choose_apart(const struct ss_policy *policy,
						u64 now_ns,
						const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	struct ss_decision choice = turn_choice(policy, now_ns, skip);

	if (choice.verdict == SS_DISPATCH && !ss_request_is_sync(choice.rq) &&
	    now_ns < all->apart_until_ns && !is_alone(all) &&
	    !overdue(policy, now_ns))
		return ss_wait(SS_FOREVER);
	return choice;
}

static void answer_done(struct stream_state_all *all, u64 took_ns,
			u64 moving_ns)
{
	all->went_first = NULL;
	ss_answer_done(&all->answer, took_ns - min_t(u64, took_ns, moving_ns));
}

static struct ss_decision stream_choose(const struct ss_policy *policy,
					u64 now_ns,
					const struct ss_request *skip)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_policy *inner = inner_of(policy);

	if (policy->sched->nr_async_in_flight >= ASYNC_BESIDE)
		return choose_apart(policy, now_ns, skip);
	if (all->held || all->answer.open || all->answered ||
	    (is_alone(all) &&
	     now_ns >= all->oldest_served_ns + alone_turn_ns(policy)))
		return turn_choice(policy, now_ns, skip);
	/* Nobody's turn, and nobody starves: the inner policy decides. */
	return inner->ops->choose(inner, now_ns, skip);
}

/* After every event: has the disk begun to idle for the held stream? */
static inline void note_holding(const struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	const struct stream *s = all->held;
	bool holding;

	/* A coordinator of several disks counts by itself what it holds. */
	holding = s && s->state == STREAM_COMPLETED && !s->nr_pending &&
		  sched->nr_pending && !sched->nr_in_flight &&
		  !sched->coordinator && !is_flat(policy) && !is_alone(all) &&
		  held_choose(policy, s, now_ns).verdict == SS_WAIT;
	if (holding && !all->holding) {
		policy->sched->counters.waits++;
		ss_sched_tell(policy->sched, SS_EVENT_HELD, s->end_sector,
			      s->size);
	}
	all->holding = holding;
}

/* A child of @s is at @gap_ns from it. */
static inline void note_gap(const struct ss_policy *policy, struct stream *s,
			    u64 gap_ns)
{
	if (!is_jump(policy, s, gap_ns))
		s->widest_ns = max_t(u64, s->widest_ns, gap_ns);
}

/* @rq is the child of @parent, at a cost of @cost_ns. */
static void adopt(const struct ss_policy *policy, struct stream *parent,
		  struct ss_request *rq, u64 cost_ns, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_counters *counters = &policy->sched->counters;

	note_gap(policy, parent, cost_ns - waited_ns(parent, now_ns));
	if (is_established(all, parent)) {
		if (!is_alone(all))
			score_child(policy, parent, rq->nr_sectors, cost_ns,
				    waited_ns(parent, now_ns));
		if (cost_ns >= parent->service_ns) {
			set_size(all, parent, policy->value[STREAM_THRESHOLD]);
			if (all->holding && parent == all->held)
				counters->second_chances++;
		}
	}
	if (all->holding && parent == all->held) {
		counters->hits++;
		ss_sched_tell(policy->sched, SS_EVENT_HIT, rq->sector,
			      parent->size);
	}
	extend(policy, parent, rq);
}

/*
 * Does @rq go on where a stream ends that has its last member pending? Then
 * another parent, from which it is only a little less far than what would be
 * done instead, is none: that one's own child is taken from it. Only of reads:
 * what a writer gains by its turns, readers beside it lose.
 */
static bool continues_pending(const struct ss_policy *policy,
			      const struct ss_request *rq)
{
	const struct ss_request *before = ss_sched_pending_before(policy->sched,
								  rq->sector);
	const struct stream *s = before ? before->stream : NULL;

	return s && s->last == before && rq->direction == SS_READ;
}

static void stream_arrived(struct ss_policy *policy, struct ss_request *rq,
			   u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_policy *inner = inner_of(policy);
	struct stream *parent;
	u64 cost_ns;

	inner->ops->arrived(inner, rq, now_ns);
	ss_trial_arrived(&all->trial, policy->sched->curve.mean_random_ns,
			 now_ns);
	list_add_tail(&rq->age_node, &all->age);
	rq->stream = NULL;
	rq->stream_size = 1;
	if (is_flat(policy))
		return;
	drop_broken(policy, now_ns);
	parent = find_parent(policy, rq, now_ns, &cost_ns);
	if (parent && !(cost_ns > policy->sched->curve.mean_random_ns / 2 &&
			continues_pending(policy, rq))) {
		adopt(policy, parent, rq, cost_ns, now_ns);
	} else {
		parent = find_pending_parent(policy, rq);
		if (parent)
			extend(policy, parent, rq);
	}
	if (all->supposed)
		alternative_came(policy, rq);
	if (all->held && rq->stream != all->held)
		reconsider(policy, now_ns);
	if (all->answer.open)
		answer_came(policy, rq, now_ns);
	if (all->held)
		note_holding(policy, now_ns);
}

/*
 * Positioning took @took_ns where the curve said @expected_ns. A drive that
 * answers far requests from its cache makes them cheap, and waiting must not
 * be credited with what the curve says of them.
 */
static void truth_add(const struct ss_policy *policy, u8 direction, u64 took_ns,
		      u64 expected_ns)
{
	struct stream_state_all *all = policy->state;
	u32 *truth = &all->truth[direction];
	u64 sample;

	if (expected_ns <= policy->sched->curve.mean_random_ns / 4)
		return;
	sample = min_t(u64, TRUTH_MOST, div64_u64(took_ns * 1000, expected_ns));
	*truth += (u32)sample / TRUTH_MEMORY;
	*truth -= *truth / TRUTH_MEMORY;
}

/*
 * A turn is over: its positioning counts as a whole. When its first request
 * came from the drive's cache, the next one paid.
 */
static void turn_ends(const struct ss_policy *policy)
{
	struct stream_state_all *all = policy->state;

	if (!is_alone(all))
		truth_add(policy, SS_READ, all->turn_took_ns,
			  all->turn_expected_ns);
	all->turn_took_ns = 0;
	all->turn_expected_ns = 0;
}

/*
 * @rq goes out, which is not of the held stream: whose turn is it now? Of @s,
 * if it is of one.
 */
static noinline void pass_turn(const struct ss_policy *policy, struct stream *s,
			       const struct ss_request *rq, bool because_late,
			       u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct stream *held = all->held;
	struct ss_counters *counters = &policy->sched->counters;

	if (held) {
		if (all->holding &&
		    now_ns >= held->completed_ns + held->patience_ns) {
			counters->timeouts++;
			ss_sched_tell(policy->sched, SS_EVENT_TIMEOUT,
				      held->end_sector, held->size);
			if (has_second_chance(all, held))
				counters->second_chances++;
		} else if (now_ns >=
			   all->slice_start_ns + slice_ns(policy, held)) {
			counters->slices_ended++;
			ss_sched_tell(policy->sched, SS_EVENT_SLICE_ENDED,
				      held->end_sector, held->size);
		}
	}
	/*
	 * A lone request that was late interrupts; a stream takes its turn.
	 * Where more are late the disk is overloaded, and the inner policy
	 * gets it to itself until a stream's member is its own choice.
	 */
	if (because_late && held && !(s && is_established(all, s)) &&
	    !overdue(policy, now_ns)) {
		all->away = true;
		return;
	}
	all->away = false;
	turn_ends(policy);
	all->held = s && is_established(all, s) && !is_alone(all) ? s : NULL;
	/* The answers that made a stream of it are of its turn. */
	all->slice_start_ns = all->went_first == rq ? all->run_ns : now_ns;
	all->new_turn = all->went_first == rq;
	all->turn_behind_ns = 0;
	all->first_of_turn = all->held ? rq : NULL;
}

/* As pass_turn(), where it was nobody's and is nobody's now. */
static inline void nobodys_turn(struct stream_state_all *all)
{
	all->away = false;
	all->turn_took_ns = 0;
	all->first_of_turn = NULL;
}

/* By the distance alone, without what makes backward ones dearer to choose. */
static u64 positioning_ns(const struct ss_sched *sched, u64 from_sector,
			  const struct ss_request *rq)
{
	u64 distance = ss_distance(from_sector, rq->sector);

	if (!distance)
		return sched->curve.point[0].time_ns;
	return ss_curve_distance_ns(&sched->curve, distance);
}

/*
 * What positioning to @rq, just dispatched, should take. With the inner policy
 * alone it is mostly not asked for: then it is put off.
 */
static u64 expected_ns(const struct ss_policy *policy,
		       const struct ss_request *rq)
{
	const struct ss_sched *sched = policy->sched;

	if (is_alone(policy->state) && !sched->coordinator)
		return EXPECTED_LATER | sched->left_sector;
	return positioning_ns(sched, sched->left_sector, rq);
}

static void stream_dispatched(struct ss_policy *policy, struct ss_request *rq,
			      u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_policy *inner = inner_of(policy);
	struct stream *s = rq->stream;
	/* Of interest only where it would end a turn. */
	bool late = all->held && s != all->held &&
		    overdue(policy, now_ns) == rq;
	bool established = false;
	u64 oldest_ns;

	if (all->answer.open)
		ss_answer_close(&all->answer, U64_MAX, now_ns);
	if (rq == all->answered) {
		all->went_first = rq;
	} else {
		all->went_first = NULL;
		all->run_ns = now_ns;
	}
	all->answered = NULL;
	rq->expected_ns = expected_ns(policy, rq);
	inner->ops->dispatched(inner, rq, now_ns);
	oldest_ns = all->oldest_served_ns;
	if (all->age.next == &rq->age_node)
		oldest_ns = now_ns;
	all->oldest_served_ns = oldest_ns;
	list_del(&rq->age_node);
	if (s) {
		list_del(&rq->member_node);
		s->nr_pending--;
	} else if (!is_flat(policy) && ss_request_is_sync(rq)) {
		s = stream_new(policy, rq);
	}
	if (s) {
		s->nr_in_flight++;
		rq->stream_life = s->life;
		established = is_established(all, s);
	}
	if (rq->direction == SS_READ || established)
		all->apart_until_ns = now_ns + ASYNC_APART;
	if (s && s == all->held)
		all->away = false;
	else if (all->held || (established && !is_alone(all)) ||
		 all->turn_expected_ns)
		pass_turn(policy, s, rq, late, now_ns);
	else
		nobodys_turn(all);
	all->holding = false;
	/* The head is behind @rq now, also if a later member went before. */
	if (s && (s->last == rq || !s->nr_pending)) {
		s->last = rq;
		s->end_sector = ss_request_end(rq);
		become_parent(policy, s, now_ns);
	}
	drop_broken(policy, now_ns);
}

/*
 * @rq is done after writes that nobody waits for. What it took longer than
 * positioning and its transfer, the drive needed to empty its cache of them:
 * that is time of theirs within this turn.
 */
static void note_behind(struct stream_state_all *all,
			const struct ss_request *rq, u64 took_ns, u64 moving_ns)
{
	u64 own_ns = rq->expected_ns + moving_ns;

	if (!all->async_ns || took_ns <= own_ns ||
	    rq->dispatch_ns > all->async_ns + ASYNC_APART)
		return;
	all->turn_behind_ns += took_ns - own_ns;
}

/*
 * The disk served @rq, of the stream whose turn it is, in @took_ns, of which it
 * moved data for @moving_ns. Did that agree with the curve?
 */
static void note_turn(struct stream_state_all *all, const struct ss_request *rq,
		      u64 took_ns, u64 moving_ns)
{
	u64 positioning_ns = took_ns - min_t(u64, took_ns, moving_ns);

	note_behind(all, rq, took_ns, moving_ns);
	all->turn_took_ns += positioning_ns;
	if (rq == all->first_of_turn) {
		all->turn_expected_ns = rq->expected_ns;
		return;
	}
	/* The drive was still busy with what it had before the turn. */
	if (rq->dispatch_ns < all->async_ns)
		return;
	all->child_took_ns += positioning_ns / TRUTH_MEMORY;
	all->child_took_ns -= all->child_took_ns / TRUTH_MEMORY;
	all->child_expected_ns += rq->expected_ns / TRUTH_MEMORY;
	all->child_expected_ns -= all->child_expected_ns / TRUTH_MEMORY;
}

/*
 * The disk served @rq while the framework had it: what does that say of the
 * curve?
 */
static noinline void note_service(const struct ss_policy *policy,
				  struct ss_request *rq, u64 took_ns,
				  u64 moving_ns)
{
	struct stream_state_all *all = policy->state;

	if (unlikely(rq->expected_ns & EXPECTED_LATER))
		rq->expected_ns = positioning_ns(
			policy->sched, rq->expected_ns & ~EXPECTED_LATER, rq);
	if (all->held && rq->stream == all->held)
		note_turn(all, rq, took_ns, moving_ns);
	else
		truth_add(policy, rq->direction,
			  took_ns - min_t(u64, took_ns, moving_ns),
			  rq->expected_ns);
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
 * @rq is done: what does that say of holding and of the inner policy alone?
 * With a target for waits, that comes first, and nothing is tried.
 */
static void note_trial(const struct ss_policy *policy,
		       const struct ss_request *rq, u64 moving_ns, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	/* An array has a trial of its own, of all its members together. */
	bool is_led = sched->coordinator &&
		      sched->coordinator->ops->leads(sched->coordinator,
						     now_ns);

	if (is_led && is_alone(all))
		trial_change(&all->trial, false, now_ns);
	if (policy->value[STREAM_TIME_SLICE] == SLICE_AUTO || is_led) {
		all->trial.last_ns = now_ns;
		return;
	}
	ss_trial_completed(&all->trial, rq, moving_ns,
			   !sched->nr_pending && !sched->nr_in_flight, now_ns);
	if (all->held && is_alone(all)) {
		turn_ends(policy);
		all->held = NULL;
		all->away = false;
	}
}

/*
 * @rq of @s is done. A reader sends nothing before it has all members: a drive
 * that orders its commands may have done the last one first.
 */
static void member_completed(const struct ss_policy *policy, struct stream *s,
			     const struct ss_request *rq, u64 moving_ns,
			     u64 now_ns)
{
	s->nr_in_flight--;
	if (s->state != STREAM_IN_FLIGHT)
		return;
	if (s->last == rq) {
		s->last = NULL;
		if (was_cached(policy, rq, moving_ns, now_ns)) {
			stream_free(policy->state, s);
			return;
		}
	}
	if (s->last || (s->nr_in_flight && rq->direction == SS_READ))
		return;
	s->state = STREAM_COMPLETED;
	s->completed_ns = now_ns;
	note_patience(policy->state, s);
}

/*
 * Is all that a completion tells what it cost? So it is most of the time that
 * the inner policy has the disk to itself.
 */
static inline bool is_left_alone(const struct ss_policy *policy,
				 const struct ss_request *rq)
{
	const struct stream_state_all *all = policy->state;

	return is_alone(all) && all->trial.settled && !is_flat(policy) &&
	       !policy->sched->coordinator && rq != all->first_of_turn;
}

static inline void completed_alone(const struct ss_policy *policy,
				   const struct ss_request *rq, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	struct stream *s = rq->stream;
	u64 moving_ns = transfer_ns(sched, rq->nr_sectors);
	bool due;

	all->last_completion_ns = now_ns;
	if (sched->nr_async_in_flight || !ss_request_is_sync(rq))
		all->async_ns = now_ns;
	due = ss_trial_settled(&all->trial, rq, moving_ns,
			       !sched->nr_pending && !sched->nr_in_flight,
			       now_ns);
	if (s && s->life == rq->stream_life)
		member_completed(policy, s, rq, moving_ns, now_ns);
	if (due)
		trial_due(&all->trial, now_ns);
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
	if (policy->sched->nr_async_in_flight || !ss_request_is_sync(rq))
		all->async_ns = now_ns;
	if (!is_flat(policy)) {
		if (rq == all->went_first)
			answer_done(all, took_ns, moving_ns);
		if (!is_alone(all))
			note_service(policy, rq, took_ns, moving_ns);
		note_trial(policy, rq, moving_ns, now_ns);
	}
	if (rq == all->first_of_turn) {
		all->first_of_turn = NULL;
		mean_add(&all->switch_ns, now_ns - rq->dispatch_ns,
			 BUSY_MEMORY);
	}
	all->last_completion_ns = now_ns;
	if (s && s->life == rq->stream_life)
		member_completed(policy, s, rq, moving_ns, now_ns);
	answer_open(policy, rq, now_ns);
	note_holding(policy, now_ns);
}

static void stream_completed(struct ss_policy *policy, struct ss_request *rq,
			     u64 now_ns)
{
	if (!inner_of(policy)->ops->completed && is_left_alone(policy, rq))
		completed_alone(policy, rq, now_ns);
	else
		completed(policy, rq, now_ns);
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
	reconsider(policy, now_ns);
	answer_came(policy, rq, now_ns);
	note_holding(policy, now_ns);
}

/*
 * The last member of @s, pending until now, is taken back. If it became part
 * of another request, that one stands for it. Else the one before is the last
 * again, if it is pending or had completed.
 */
static void tip_removed(const struct ss_policy *policy, struct stream *s,
			const struct ss_request *rq)
{
	struct stream_state_all *all = policy->state;
	struct ss_request *heir = ss_sched_pending_before(policy->sched,
							  ss_request_end(rq));

	if (heir && !heir->stream && ss_request_is_sync(heir)) {
		heir->stream = s;
		heir->stream_size = rq->stream_size;
		list_add_tail(&heir->member_node, &s->members);
		s->nr_pending++;
	}
	if (s->nr_pending) {
		s->last = list_last_entry(&s->members, struct ss_request,
					  member_node);
		s->end_sector = ss_request_end(s->last);
		set_size(all, s, s->last->stream_size);
		s->before_completed_ns = 0;
	} else if (s->before_completed_ns) {
		s->last = NULL;
		s->state = STREAM_COMPLETED;
		s->end_sector = s->before_end_sector;
		s->completed_ns = s->before_completed_ns;
		set_size(all, s, s->size - 1);
		all->supposed |= s->supposed;
		set_patience(policy, s);
		list_move_tail(&s->node, &all->parents);
		note_patience(all, s);
	} else {
		stream_free(all, s);
	}
}

static void stream_removed(struct ss_policy *policy, struct ss_request *rq,
			   u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_policy *inner = inner_of(policy);
	struct stream *s = rq->stream;

	inner->ops->removed(inner, rq, now_ns);
	list_del(&rq->age_node);
	if (all->answered == rq)
		all->answered = NULL;
	if (s) {
		list_del(&rq->member_node);
		s->nr_pending--;
		rq->stream = NULL;
		if (s->last == rq)
			tip_removed(policy, s, rq);
	}
	reconsider(policy, now_ns);
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
	.arrived = stream_arrived,
	.choose = stream_choose,
	.dispatched = stream_dispatched,
	.completed = stream_completed,
	.merged = stream_merged,
	.removed = stream_removed,
	.expired = stream_expired,
	.stream_at = stream_stream_at,
};
