// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: whose child is a request?
 *
 * By the paper's inequality (2.1) the child of a parent-to-be, or else the
 * next member of a stream whose last one is still pending.
 */
#include "stream.h"

#include <linux/kernel.h>
#include <linux/limits.h>

/*
 * A child is a jump if positioning to it costs so many times what it ever cost
 * between members, and this part of a random one's.
 */
#define JUMP_FACTOR 2
#define JUMP_SHARE 4
/* So often it is tried to wait for longer than was in vain. */
#define VAIN 2
/* What a stream's steps cost is a mean of about this many. */
#define STEP_MEMORY 8

/*
 * A flood of writes that were handed on is looked for where each has so many
 * sectors or less, among so many requests, the newest ones; it lasts for so
 * long.
 */
#define FLOOD_SECTORS 256
#define FLOOD_OF 64
#define FLOOD_LASTS (1 * SS_SEC)

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

/*
 * What a child of @s at @sector costs, its waiting included. Of requests that
 * arrive no processor can foresee whose children they are: so this is
 * calculated for every parent, without a branch, and only the nearest one is
 * looked at.
 */
static inline u64 child_cost_ns(const struct ss_policy *policy,
				const struct stream *s, u64 sector, u64 now_ns)
{
	return waited_ns(s, now_ns) +
	       ss_curve_between(&policy->sched->curve, s->end_sector, sector);
}

/* At a cost that @s has the patience for: is one at @sector its child? */
static inline bool is_child(const struct ss_policy *policy,
			    const struct stream *s, u64 sector, u64 cost_ns,
			    u64 now_ns)
{
	const struct ss_curve *curve = &policy->sched->curve;
	u64 child_ns = cost_ns - waited_ns(s, now_ns);

	/* A second chance is one to come later, not to be farther away. */
	if (child_ns >= s->service_ns &&
	    ss_distance(s->end_sector, sector) >
		    ss_curve_reach_sectors(curve, s->service_ns))
		return false;
	return may_jump(policy, s) || !is_jump(policy, s, child_ns);
}

/*
 * The parent that the disk was last busy with, if it ends where @rq begins:
 * mostly the child's. With nothing in the device none has waited for less, and
 * so none is nearer.
 */
static inline struct stream *last_parent(const struct ss_policy *policy,
					 const struct ss_request *rq,
					 u64 now_ns, u64 *cost_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	struct stream *s = list_last_entry(&all->parents, struct stream, node);

	if (list_empty(&all->parents) || s->end_sector != rq->sector ||
	    s->state != STREAM_COMPLETED ||
	    s->completed_ns != all->last_completion_ns || sched->nr_in_flight ||
	    !ss_request_is_awaited(rq))
		return NULL;
	*cost_ns = now_ns - s->completed_ns + sched->curve.point[0].time_ns;
	return *cost_ns < s->patience_ns ? s : NULL;
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
	list_for_each_entry(s, &all->parents, node) {
		child_ns = child_cost_ns(policy, s, rq->sector, now_ns);
		if (child_ns < s->patience_ns && child_ns < *cost_ns &&
		    is_child(policy, s, rq->sector, child_ns, now_ns)) {
			*cost_ns = child_ns;
			best = s;
		}
	}
	return best;
}

/*
 * One of all parents, or NULL. Those that got no child in time are forgotten on
 * the way.
 */
static inline struct stream *any_parent(const struct ss_policy *policy,
					const struct ss_request *rq, u64 now_ns,
					u64 *cost_ns)
{
	struct stream_state_all *all = policy->state;
	struct list_head *at = all->parents.next, *next;
	u64 next_broken_ns = U64_MAX, sector = rq->sector;
	u64 best_ns = U64_MAX, child_ns;
	struct stream *best = NULL;
	u32 nr = 0;

	for (; at != &all->parents; at = next) {
		struct stream *s = list_entry(at, struct stream, node);
		bool may_be;

		next = at->next;
		if (is_broken(s, now_ns)) {
			stream_breaks(policy, s);
			continue;
		}
		next_broken_ns = min_t(u64, next_broken_ns, s->broken_ns);
		if (ss_distance(s->end_sector, sector) >= s->reach_sectors)
			continue;
		child_ns = child_cost_ns(policy, s, sector, now_ns);
		may_be = child_ns < s->patience_ns;
		nr += may_be;
		may_be &= child_ns < best_ns;
		best = may_be ? s : best;
		best_ns = may_be ? child_ns : best_ns;
	}
	all->next_broken_ns = next_broken_ns;
	/* Asked last, for it differs from one request to the next. */
	if (!nr || !ss_request_is_awaited(rq))
		return NULL;
	*cost_ns = best_ns;
	if (is_child(policy, best, sector, best_ns, now_ns))
		return best;
	return nr > 1 ? nearest_parent(policy, rq, now_ns, cost_ns) : NULL;
}

/* The stream whose child @rq is, at *@cost_ns, or NULL. */
static inline struct stream *find_parent(const struct ss_policy *policy,
					 const struct ss_request *rq,
					 u64 now_ns, u64 *cost_ns)
{
	struct stream *s = last_parent(policy, rq, now_ns, cost_ns);

	if (!s)
		return any_parent(policy, rq, now_ns, cost_ns);
	drop_broken(policy, now_ns);
	return s;
}

/* The stream of a pending request that @rq continues, or NULL. */
static struct stream *find_pending_parent(const struct ss_policy *policy,
					  const struct ss_request *rq)
{
	struct ss_request *before = ss_sched_pending_before(policy->sched,
							    rq->sector);
	struct stream *s;

	if (!before || !ss_request_is_awaited(before) ||
	    !ss_request_is_awaited(rq))
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

/* A child of @s is at @gap_ns from it. */
static inline void note_gap(const struct ss_policy *policy, struct stream *s,
			    u64 gap_ns)
{
	if (!is_jump(policy, s, gap_ns))
		s->widest_ns = max_t(u64, s->widest_ns, gap_ns);
}

/*
 * A child of @s came after @wait_ns. If that was after a wait in vain it seems
 * that a longer one would have got it. But there are those who come when
 * somebody else is served, and for them no wait is long enough: so that is
 * tried VAIN times, until one comes later than ever without it.
 */
static inline void note_wait(struct stream *s, u64 wait_ns)
{
	if (!s->vain) {
		if (wait_ns > s->kept_ns) {
			s->kept_ns = wait_ns;
			s->nr_vain = 0;
		}
	} else if (s->nr_vain < VAIN) {
		s->nr_vain++;
	} else {
		s->slowest_ns = s->kept_ns;
		wait_ns = 0;
	}
	s->slowest_ns = max_t(u64, s->slowest_ns, wait_ns);
}

/* So much it cost to go on. */
static inline void note_step(struct stream *s, u64 cost_ns)
{
	if (!s->step_ns)
		s->step_ns = cost_ns;
	s->step_ns += cost_ns / STEP_MEMORY;
	s->step_ns -= s->step_ns / STEP_MEMORY;
}

/*
 * By the inequality @rq is nobody's child, for the alternative is nearer. With
 * stream_time_slice=auto it is one of the stream whose turn it is, at @cost_ns,
 * if the disk waits for that one, @rq is in its place, and to go on there costs
 * less on the average than the alternative. Else each step that is far for once
 * would end the turn of whoever reads at random, and the disk would go to and
 * fro for it.
 */
static struct stream *far_parent(const struct ss_policy *policy,
				 const struct ss_request *rq, u64 now_ns,
				 u64 *cost_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	struct stream *s = all->held;

	if (!s || s->state != STREAM_COMPLETED || all->away ||
	    s->completed_ns != all->last_completion_ns || sched->nr_in_flight ||
	    policy->value[STREAM_TIME_SLICE] != SLICE_AUTO || is_alone(all) ||
	    all->turn_full || sched->coordinator ||
	    !ss_request_is_awaited(rq) || !s->step_ns ||
	    s->step_ns >= s->service_ns || !is_in_place(s, rq->sector))
		return NULL;
	*cost_ns = now_ns - s->completed_ns +
		   ss_curve_between(&sched->curve, s->end_sector, rq->sector);
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
	s->size += s->size < U32_MAX / 4;
	s->rank += s->size >= all->next_rank_size[s->rank];
	s->last = rq;
	s->end_sector = ss_request_end(rq);
	s->low_sector = min_t(u64, s->low_sector, rq->sector);
	s->high_sector = max_t(u64, s->high_sector, s->end_sector);
	s->vain = false;
	if (s->size == all->threshold) {
		s->share_nr = all->share.open ? all->share.nr : 0;
		ss_sched_tell(policy->sched, SS_EVENT_ESTABLISHED,
			      s->end_sector, s->size);
	}
	s->state = STREAM_PENDING;
	s->broken_ns = U64_MAX;
	s->nr_pending++;
	list_move_tail(&s->node, &all->waiting);
	list_add_tail(&rq->member_node, &s->members);
	rq->stream = s;
	rq->stream_size = s->size;
}

/* @rq, to be added to @parent, is its child at a cost of @cost_ns. */
static inline void adopt(const struct ss_policy *policy, struct stream *parent,
			 struct ss_request *rq, u64 cost_ns, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_counters *counters = &policy->sched->counters;
	u64 wait_ns = waited_ns(parent, now_ns);

	note_gap(policy, parent, cost_ns - wait_ns);
	note_wait(parent, wait_ns);
	note_step(parent, cost_ns);
	if (is_established(all, parent)) {
		if (!is_alone(all))
			ss_stream_score_child(policy, parent, rq->nr_sectors,
					      cost_ns, wait_ns);
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
}

/* What was supposed of @s is known now: @rq would be served instead. */
static noinline void instead_came(const struct ss_policy *policy,
				  struct stream *s, const struct ss_request *rq)
{
	u64 service_ns = ss_curve_between(&policy->sched->curve, s->end_sector,
					  rq->sector);

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

/* Finds the stream of @rq, which has just arrived, if it is of one. */
static inline void join(const struct ss_policy *policy, struct ss_request *rq,
			u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct stream *parent;
	bool is_child;
	u64 cost_ns;

	parent = find_parent(policy, rq, now_ns, &cost_ns);
	is_child = parent &&
		   !(cost_ns > policy->sched->curve.mean_random_ns / 2 &&
		     continues_pending(policy, rq));
	if (!is_child) {
		parent = find_pending_parent(policy, rq);
		if (!parent) {
			parent = far_parent(policy, rq, now_ns, &cost_ns);
			is_child = parent;
		}
	}
	if (is_child)
		adopt(policy, parent, rq, cost_ns, now_ns);
	if (parent)
		extend(policy, parent, rq);
	if (all->supposed)
		alternative_came(policy, rq);
}

/* @rq came in a turn, or while an answer is looked for. */
static inline void came_in_turn(const struct ss_policy *policy,
				struct ss_request *rq, u64 now_ns)
{
	struct stream_state_all *all = policy->state;

	if (all->held && rq->stream != all->held)
		ss_stream_reconsider(policy, now_ns);
	if (all->answer.open)
		ss_stream_answer_came(policy, rq, now_ns);
	if (all->share.open)
		ss_stream_share_arrived(policy, rq, now_ns);
	if (all->held)
		note_holding(policy, now_ns);
}

/* Are there more writes handed on, with @rq, than somebody would wait for? */
static bool is_flood(const struct stream_state_all *all,
		     const struct ss_request *rq)
{
	const struct list_head *at = all->age.prev;
	u32 nr, weight = 1 + rq->nr_sectors / FLOOD_SECTORS;

	for (nr = 0; nr < FLOOD_OF && at != &all->age; nr++, at = at->prev) {
		rq = list_entry(at, struct ss_request, age_node);
		if (rq->flags & SS_HANDED_ON)
			weight += 1 + rq->nr_sectors / FLOOD_SECTORS;
	}
	return weight > FLOOD;
}

/*
 * A loop device writes directly what others write, and then each request looks
 * as if somebody waited for it. Of very many at once most are write-back; with
 * a target for waits all are taken for that, and those that come soon after.
 */
static noinline void note_handed_on(const struct ss_policy *policy,
				    struct ss_request *rq, u64 now_ns)
{
	struct stream_state_all *all = policy->state;

	if (is_flat(policy) || policy->value[STREAM_TIME_SLICE] != SLICE_AUTO)
		return;
	if (is_flood(all, rq))
		all->flood_until_ns = now_ns + FLOOD_LASTS;
	if (now_ns < all->flood_until_ns)
		rq->flags &= (u8)~SS_SYNC;
}

void ss_stream_awaited(struct ss_policy *policy, struct ss_request *rq,
		       const struct ss_request *part, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;

	/* Had it come by itself, nobody would be taken to wait for it. */
	if (part->flags & SS_HANDED_ON && now_ns < all->flood_until_ns)
		return;
	if (rq->direction == SS_READ)
		rq->flags &= (u8)~SS_AHEAD;
	else
		rq->flags |= SS_SYNC;
	policy->sched->nr_awaited_writes += ss_request_is_awaited_write(rq);
}

void ss_stream_arrived(struct ss_policy *policy, struct ss_request *rq,
		       u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_policy *inner = inner_of(policy);

	if (rq->flags & SS_HANDED_ON)
		note_handed_on(policy, rq, now_ns);
	policy->sched->nr_awaited_writes += ss_request_is_awaited_write(rq);
	inner->ops->arrived(inner, rq, now_ns);
	ss_trial_arrived(&all->trial, policy->sched->curve.mean_random_ns,
			 now_ns);
	list_add_tail(&rq->age_node, &all->age);
	rq->stream = NULL;
	rq->stream_size = 1;
	if (is_flat(policy))
		return;
	join(policy, rq, now_ns);
	if (!all->quiet)
		came_in_turn(policy, rq, now_ns);
}
