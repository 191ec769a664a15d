/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of stream (stream*.c) share; nobody else includes this. Times
 * are in ns, positions and lengths in sectors of 512 bytes.
 */
#ifndef SS_STREAM_H
#define SS_STREAM_H

#include "answer.h"
#include "policy.h"
#include "request.h"
#include "sched.h"
#include "trial.h"

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/types.h>

enum {
	STREAM_THRESHOLD,
	STREAM_TIME_SLICE,
	STREAM_WAIT_TARGET,
	STREAM_TOLERANCE,
	STREAM_BACKWARD,
	STREAM_ANSWER,
	STREAM_TRIALS,
	STREAM_TUNABLES,
};

#define SLICE_AUTO 0
#define ANSWER_AUTO U64_MAX

/* Streams remembered at once: those in rotation and recent candidates. */
#define NR_STREAMS 256
/* Scores by length of stream: threshold, twice that, four times, ... */
#define NR_SCORES 6
/*
 * When children came: in so many spans after their parent was done, each twice
 * as long as all before it and all but the last ended.
 */
#define NR_SPANS 10
/* Below this many the curve is not believed; it is no exact thing. */
#define TRUTH_DOUBT 500
/*
 * For so long after a read, or a member of an established stream, was
 * dispatched, at most so many writes that nobody waits for are in the device at
 * once. Any read: a reader that waits for a full queue of them each time takes
 * seconds to become a stream.
 */
#define ASYNC_APART (500 * SS_MSEC)
/*
 * So many writes that nobody waits for may be in the device beside a reader,
 * and may go before the next read of somebody who reads on, or before a write
 * that somebody waits for.
 */
#define ASYNC_BESIDE 4
/* More writes at once than a disk takes are no longer single ones. */
#define FLOOD 32
/* Where all are late, a turn lasts for so many times what a switch takes. */
#define LATE_SWITCHES 2
/* Beyond its place by this part of it may be its next member. */
#define PLACE_SHARE 4
/* With the inner policy alone, turns may last for this many slices. */
#define ALONE_SLICES 16
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
	u64 reach_sectors; /* none is as far as this; U64_MAX: not known */
	u64 broken_ns; /* until when a child is awaited; else U64_MAX */
	struct ss_request *last; /* last member, until it is completed */
	u32 size; /* members so far */
	u8 state; /* enum stream_state */
	u8 rank; /* which score it has, by its size; see set_size() */
	u8 nr_vain; /* waits in vain after which a child came all the same */
	bool vain; /* since its last member it was waited for in vain */
	bool supposed; /* nothing was pending: service_ns is the mean */
	u8 instead_direction; /* of what would be done instead of waiting */
	u32 instead_sectors; /* its length */
	u32 nr_pending; /* members on the list */
	u32 nr_in_flight; /* members in the device */
	u32 life; /* how many streams this was before */
	u64 service_ns; /* what positioning to it would cost */
	u64 widest_ns; /* positioning between members, the most; not jumps */
	u64 slowest_ns; /* the longest that a member was waited for */
	u64 kept_ns; /* the same, but for those after a wait in vain */
	u64 step_ns; /* positioning and waiting between members, running mean */
	u64 low_sector; /* its place: where its members were */
	u64 high_sector;
	struct list_head members; /* its pending requests, oldest first */
	u64 before_end_sector; /* as end_sector, of the member before */
	u64 before_completed_ns; /* 0: was not completed when this one came */
	u32 share_nr; /* the turn of others in which it was established */
};

/* How waiting ended, had the head always been held; old outcomes fade. */
struct score {
	u64 won_ns;
	u64 lost_ns;
	u32 children; /* how often, in thousandths */
	u32 misses;
	/* When it ended, for how long to wait; numbers in sixteenths: */
	u64 enough_ns; /* after so long waiting more loses; or U64_MAX */
	u32 nr_seen; /* outcomes since that was found */
	u32 missed; /* no child came in time */
	u64 missed_ns; /* waiting for these, sum */
	u32 came[NR_SPANS];
	s64 came_won_ns[NR_SPANS]; /* less what was lost */
};

/* The turn of all that are no streams; see stream_share.c. */
struct stream_share {
	bool open;
	u32 nr; /* turns so far; 0 before the first */
	u64 until_ns; /* its end at the latest */
	u64 least_ns; /* not before, where these are late, too */
	u64 idle_ns; /* since when the next request is awaited; 0: it is not */
	u64 enough_ns; /* and how long at most */
	u32 nr_idle; /* how often it was */
	u64 worth_ns; /* what positioning elsewhere would cost */
	struct score score; /* when they came; the spans only */
};

/*
 * All of the policy's run-time state; its settings are its tunables. What each
 * request looks at comes first, on few lines of the processor's cache.
 */
struct stream_state_all {
	struct list_head free;
	struct list_head parents; /* in flight or completed */
	struct list_head waiting; /* last member pending */
	struct list_head age; /* all pending requests, oldest first */
	u64 next_broken_ns; /* no completed stream is broken before */
	u64 last_completion_ns;
	u64 async_ns; /* the device last had what nobody waits for */
	u64 apart_until_ns; /* somebody reads: few writes in the device */
	u64 flood_until_ns; /* what is handed on is write-back */
	u64 oldest_served_ns; /* the oldest request was dispatched, or none */
	u64 run_ns; /* when the last request went that was no answer */
	u64 busy_ns; /* device's time per request, several in it; 0 unknown */
	u64 alone_turn_ns; /* with the inner policy alone a turn may last */
	struct stream *held; /* whose turn it is; NULL: nobody's */
	u64 slice_start_ns;
	const struct ss_request *first_of_turn; /* in flight; NULL: done */
	/*
	 * Nobody's turn: held, answered and went_first are NULL, neither an
	 * answer nor the share of others is open, and no turn is to be ended.
	 * So it is mostly, and then this is all that has to be looked at.
	 */
	bool quiet;
	bool holding; /* the disk is kept idle for held's child */
	bool supposed; /* a stream's service_ns may be the mean */
	bool new_turn; /* answers have just made a stream of held */
	bool turn_late; /* its first request had waited beyond the target */
	bool turn_full; /* it began with others in the device, not one only */
	bool away; /* a request that was late took the head from held */
	u32 nr_async; /* writes that nobody waits for, since the last read */
	u32 nr_passing; /* and since the last write that somebody waits for */
	u32 threshold; /* members of an established stream */
	u32 second_chance_size; /* members for one: threshold and tolerance */
	struct ss_ratio patience[2]; /* to service_ns; with a second chance */
	u32 next_rank_size[NR_SCORES]; /* members for the next rank */
	/* What far requests took, of what the curve said, in thousandths. */
	u32 truth[SS_DIRECTIONS];
	/* Of held streams' later requests, running means: */
	u64 child_took_ns; /* positioning */
	u64 child_expected_ns; /* the same by the curve */
	u64 turn_took_ns; /* positioning of this turn's requests, sum */
	u64 turn_expected_ns; /* of its first one, by the curve */
	u64 turn_behind_ns; /* this turn's requests were late by, for writes */
	u64 switch_ns; /* time of a turn's first request, running mean */
	u64 way_ns; /* the same, where the device was not full before it */
	struct ss_trial trial; /* of the inner policy alone */
	struct ss_answer answer; /* to the request that was just done */
	struct ss_request *answered; /* the answer, if it shall go first */
	const struct ss_request *went_first; /* so it did, and is in flight */
	struct stream_share share;
	struct score score[NR_SCORES];
	struct stream stream[NR_STREAMS];
};

/* ---- stream_table.c ---- */

/* The pending requests of @s are nobody's. */
void ss_stream_let_go(struct stream *s);

/* No stream is free: frees one, unless the table is full of better ones. */
bool ss_stream_make_room(const struct ss_policy *policy);

/* Forget the streams that got no child in time; find the next to get none. */
void ss_stream_look_for_broken(const struct ss_policy *policy, u64 now_ns);

/*
 * The held stream need not be waited for longer than the inner policy's
 * choice is worth by now.
 */
void ss_stream_reconsider(const struct ss_policy *policy, u64 now_ns);

/*
 * The last member of @s, pending until now, is taken back. If it became part
 * of another request, that one stands for it. Else the one before is the last
 * again, if it is pending or had completed.
 */
void ss_stream_tip_removed(const struct ss_policy *policy, struct stream *s,
			   const struct ss_request *rq);

/* ---- stream_parent.c ---- */

/* The policy's arrived(): whose child is @rq? */
void ss_stream_arrived(struct ss_policy *policy, struct ss_request *rq,
		       u64 now_ns);
/* The policy's awaited(). */
void ss_stream_awaited(struct ss_policy *policy, struct ss_request *rq,
		       const struct ss_request *part, u64 now_ns);

/* ---- stream_score.c ---- */

/* No child of @s came in time. */
void ss_stream_score_miss(const struct ss_policy *policy,
			  const struct stream *s);

/*
 * A child of @nr_sectors came that cost @cost_ns, of which @wait_ns was
 * waiting. What would have been done instead may have moved more in its time:
 * readahead windows that were not waited for merge into longer requests. That
 * counts up to twice the child's length.
 */
void ss_stream_score_child(const struct ss_policy *policy,
			   const struct stream *s, u32 nr_sectors, u64 cost_ns,
			   u64 wait_ns);

/* What was awaited came after @wait_ns; or in @worth_ns it did not. */
void ss_stream_span_add(struct score *score, u64 wait_ns, s64 won_ns);
void ss_stream_span_miss(struct score *score, u64 worth_ns);

/*
 * Until when the head stays for a child of @s, which has completed: not longer
 * than it has paid, or than this stream's own members have taken.
 */
u64 ss_stream_hold_end_ns(const struct ss_policy *policy,
			  const struct stream *s);

/* Is the head to be held for a child of @s, by what such streams have won? */
bool ss_stream_waiting_pays(const struct ss_policy *policy,
			    const struct stream *s, u64 now_ns);

/*
 * A turn is over: its positioning counts as a whole. When its first request
 * came from the drive's cache, the next one paid.
 */
void ss_stream_turn_ends(const struct ss_policy *policy);

/*
 * The disk served @rq while the framework had it: what does that say of the
 * curve?
 */
void ss_stream_note_service(const struct ss_policy *policy,
			    const struct ss_request *rq, u64 took_ns,
			    u64 moving_ns);

/* ---- stream_turn.c ---- */

/*
 * @rq, if it must go because of its age (rule 4), or NULL. The inner policy
 * says that it has expired.
 */
struct ss_request *ss_stream_if_late(const struct ss_policy *policy,
				     struct ss_request *rq, u64 now_ns);

/* Has the held stream, if there is one, had its turn? Others are pending. */
bool ss_stream_turn_is_over(const struct ss_policy *policy, u64 now_ns);

/*
 * Which request goes while it is the turn of @s, or until when the head stays;
 * nothing when the inner policy shall decide.
 */
struct ss_decision ss_stream_held_choose(const struct ss_policy *policy,
					 const struct stream *s, u64 now_ns);

/*
 * The inner policy decides, but write-back does not keep one who reads on
 * waiting again and again.
 */
struct ss_decision ss_stream_inner_choice(const struct ss_policy *policy,
					  u64 now_ns,
					  const struct ss_request *skip);

/*
 * The turn's stream has no child yet, and its slice is not over: what is of no
 * stream, is pending in its place and costs no more than its steps do, the
 * waiting included; or NULL.
 */
struct ss_request *ss_stream_in_place(const struct ss_policy *policy,
				      u64 now_ns);

/*
 * The turn's stream has no child, and its slice is not over: what goes on in
 * its stead, being nearer than the inner policy's choice; or NULL.
 */
struct ss_request *ss_stream_near(const struct ss_policy *policy, u64 now_ns,
				  const struct ss_request *skip);

/*
 * What goes next, or until when the head stays, where the inner policy does not
 * decide from the first: a turn, a request that starves or an answer.
 */
struct ss_decision ss_stream_turn_choice(const struct ss_policy *policy,
					 u64 now_ns,
					 const struct ss_request *skip);

/*
 * While somebody reads, writes that nobody waits for go to the device a few
 * at a time: each one that is in it already, the next read has to wait for.
 */
struct ss_decision ss_stream_choose_apart(const struct ss_policy *policy,
					  u64 now_ns,
					  const struct ss_request *skip);

/* The disk has nothing to do and others wait: is it held for a child? */
void ss_stream_note_idle(const struct ss_policy *policy, u64 now_ns);

/* How a request goes that is not of the held stream. */
struct stream_leave {
	bool late; /* it was overdue */
	bool near; /* it goes on in the same turn */
	bool in_place; /* and that as one of the held stream */
};

/*
 * @rq goes out, which is not of the held stream: whose turn is it now? Of @s,
 * if it is of one.
 */
void ss_stream_pass_turn(const struct ss_policy *policy, struct stream *s,
			 const struct ss_request *rq, struct stream_leave how,
			 u64 now_ns);

/* With stream_time_slice=auto: the longest wait to aim for, less some slack. */
u64 ss_stream_target_ns(const struct ss_policy *policy);

/* ---- stream_share.c ---- */

/* The slice of a stream is over and a request of none goes: their turn. */
void ss_stream_share_begin(const struct ss_policy *policy, u64 now_ns);

/* In such a turn @rq came: was it awaited? */
void ss_stream_share_arrived(const struct ss_policy *policy,
			     const struct ss_request *rq, u64 now_ns);

/* In such a turn @rq goes out: is it over? */
void ss_stream_share_dispatched(struct stream_state_all *all,
				const struct ss_request *rq, u64 now_ns);

/* In such a turn a request is done: is the next to be awaited? */
void ss_stream_share_completed(const struct ss_policy *policy, u64 now_ns);

/*
 * In such a turn: what goes, or until when the next is awaited; at its end the
 * first of a stream. Nothing when the inner policy shall decide.
 */
struct ss_decision ss_stream_share_choose(const struct ss_policy *policy,
					  u64 now_ns,
					  const struct ss_request *skip);

/* ---- stream_answer.c ---- */

/* @rq is done. When the inner policy decides what is next, is it to wait? */
void ss_stream_answer_open(const struct ss_policy *policy,
			   const struct ss_request *rq, u64 now_ns);

/*
 * @rq came, or became part of a pending one. If it is nearer than what the
 * inner policy would choose it goes first, for the time of a slice in a row.
 */
void ss_stream_answer_came(const struct ss_policy *policy,
			   struct ss_request *rq, u64 now_ns);

/* An answer goes first, or is looked for until then; or nothing. */
struct ss_decision ss_stream_answer_choose(const struct ss_policy *policy,
					   u64 now_ns,
					   const struct ss_request *skip);

/* The answer that went first is done: it moved for @moving_ns of @took_ns. */
void ss_stream_answer_done(struct stream_state_all *all, u64 took_ns,
			   u64 moving_ns);

/* ---- small questions ---- */

/* What moving @nr_sectors takes, once the head is there. */
static inline u64 transfer_ns(const struct ss_sched *sched, u64 nr_sectors)
{
	return div_u64(sched->curve.transfer_ps * nr_sectors, 1000);
}

/*
 * The inner policy alone decides. What is seen then says nothing about how
 * waiting would end: scores and running means stay as they are.
 */
static inline bool is_alone(const struct stream_state_all *all)
{
	return ss_trial_is_alone(&all->trial);
}

/* Positioning costs the same everywhere: there is nothing to wait for. */
static inline bool is_flat(const struct ss_policy *policy)
{
	return policy->sched->curve.flat;
}

/* The disk is one of an array whose heads are brought together these days. */
static inline bool is_led(const struct ss_sched *sched, u64 now_ns)
{
	return sched->coordinator &&
	       sched->coordinator->ops->leads(sched->coordinator, now_ns);
}

static inline struct ss_policy *inner_of(const struct ss_policy *policy)
{
	return policy->inner;
}

static inline bool is_established(const struct stream_state_all *all,
				  const struct stream *s)
{
	return s->size >= all->threshold;
}

/* Long enough for a second chance (Figure 2, expiration of the timer). */
static inline bool has_second_chance(const struct stream_state_all *all,
				     const struct stream *s)
{
	return s->size >= all->second_chance_size;
}

/*
 * How long after its completion the last member may still get a child. To be
 * set anew with service_ns, and with the size of a parent.
 */
static inline void set_patience(const struct stream_state_all *all,
				struct stream *s)
{
	/* Looked up also without one, which no processor can foresee. */
	const struct ss_ratio *patience =
		&all->patience[has_second_chance(all, s)];

	s->patience_ns = ss_ratio_times(patience, s->service_ns);
	s->reach_sectors = U64_MAX;
}

/* Is @sector where the members of @s were, or a little beyond? */
static inline bool is_in_place(const struct stream *s, u64 sector)
{
	u64 slack = (s->high_sector - s->low_sector) / PLACE_SHARE;

	return sector + slack >= s->low_sector &&
	       sector <= s->high_sector + slack;
}

static inline u64 waited_ns(const struct stream *s, u64 now_ns)
{
	return s->state == STREAM_COMPLETED ? now_ns - s->completed_ns : 0;
}

static inline bool is_broken(const struct stream *s, u64 now_ns)
{
	return now_ns >= s->broken_ns;
}

/* @s is no more. */
static inline void stream_free(struct stream_state_all *all, struct stream *s)
{
	if (s->nr_pending)
		ss_stream_let_go(s);
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

/* @s got no child in time. */
static inline void stream_breaks(const struct ss_policy *policy,
				 struct stream *s)
{
	struct stream_state_all *all = policy->state;

	if (is_established(all, s))
		ss_stream_score_miss(policy, s);
	stream_free(all, s);
}

/* @s has so many members now. */
static inline void set_size(const struct stream_state_all *all,
			    struct stream *s, u32 size)
{
	s->size = size;
	s->rank = 0;
	while (size >= all->next_rank_size[s->rank])
		s->rank++;
}

/*
 * A stream for @rq alone, whose caller takes it from the list of free ones;
 * NULL when there is none.
 */
static inline struct stream *stream_new(const struct ss_policy *policy,
					struct ss_request *rq)
{
	struct stream_state_all *all = policy->state;
	struct stream *s;

	if (list_empty(&all->free) && !ss_stream_make_room(policy))
		return NULL;
	s = list_first_entry(&all->free, struct stream, node);
	s->last = rq;
	s->end_sector = ss_request_end(rq);
	set_size(all, s, rq->stream_size);
	s->widest_ns = 0;
	s->slowest_ns = 0;
	s->kept_ns = 0;
	s->step_ns = 0;
	s->low_sector = rq->sector;
	s->high_sector = s->end_sector;
	s->nr_vain = 0;
	s->vain = false;
	s->share_nr = 0;
	s->state = STREAM_PENDING;
	rq->stream = s;
	return s;
}

/* @s is completed and may be broken at another time than before. */
static inline void note_patience(struct stream_state_all *all, struct stream *s)
{
	s->broken_ns = s->completed_ns + s->patience_ns;
	all->next_broken_ns = min_t(u64, all->next_broken_ns, s->broken_ns);
}

static inline void drop_broken(const struct ss_policy *policy, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;

	if (now_ns >= all->next_broken_ns)
		ss_stream_look_for_broken(policy, now_ns);
}

/* What the inner policy would do instead of waiting costs @service_ns. */
static inline void set_instead(const struct stream_state_all *all,
			       struct stream *s, u64 service_ns, u32 nr_sectors,
			       u8 direction)
{
	s->service_ns = service_ns;
	s->instead_sectors = nr_sectors;
	s->instead_direction = direction;
	set_patience(all, s);
}

/* The request that must go because of its age (rule 4), or NULL. */
static inline struct ss_request *overdue(const struct ss_policy *policy,
					 u64 now_ns)
{
	const struct ss_policy *inner = inner_of(policy);
	struct ss_request *rq = NULL;

	if (inner->ops->expired)
		rq = inner->ops->expired(inner, now_ns);
	return rq ? ss_stream_if_late(policy, rq, now_ns) : NULL;
}

/* As set_instead(), while a child may be awaited already. */
static inline void change_instead(const struct ss_policy *policy,
				  struct stream *s, u64 service_ns,
				  const struct ss_request *instead)
{
	struct stream_state_all *all = policy->state;

	set_instead(all, s, service_ns, instead->nr_sectors,
		    instead->direction);
	if (s->state == STREAM_COMPLETED)
		note_patience(all, s);
}

/* Pending requests that are not @s's own. */
static inline u32 nr_others(const struct ss_policy *policy,
			    const struct stream *s)
{
	return policy->sched->nr_pending - s->nr_pending;
}

/* After every event: has the disk begun to idle for the held stream? */
static inline void note_holding(const struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	const struct stream *s = all->held;

	if (s && s->state == STREAM_COMPLETED && !s->nr_pending &&
	    sched->nr_pending && !sched->nr_in_flight)
		ss_stream_note_idle(policy, now_ns);
	else
		all->holding = false;
}

/* How long an answer is looked for; 0: it is not. */
static inline u64 answer_ns(const struct ss_policy *policy)
{
	if (policy->value[STREAM_ANSWER] != ANSWER_AUTO)
		return policy->value[STREAM_ANSWER];
	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO)
		return 0;
	return policy->sched->curve.mean_random_ns / ANSWER_SHARE;
}

#endif
