// SPDX-License-Identifier: GPL-2.0-only
/*
 * deadline: an ascending elevator in batches, with expiry times.
 *
 * As Linux 2.6.31 had it; today's mq-deadline decides alike within one priority
 * class. Requests of one direction are served ascending, up to fifo_batch of
 * them. Then comes a new batch: of reads if there are any, unless writes have
 * been passed over writes_starved times. It starts at the oldest request when
 * that has expired, when nothing lies ahead, or when the direction changes;
 * else it goes on where the last one ended.
 *
 * The wrapper around it may send other requests than the chosen ones. They
 * count in the current batch, so that a stream's slice is to waiting writes
 * what a read batch is, and the elevator goes on from where they are.
 */
#include "../policies.h"
#include "../sched.h"
#include "../sorted.h"

#include <linux/kernel.h>
#include <linux/limits.h>

enum {
	DEADLINE_READ_EXPIRE,
	DEADLINE_WRITE_EXPIRE,
	DEADLINE_WRITES_STARVED,
	DEADLINE_FIFO_BATCH,
	DEADLINE_BATCH_OVER_GAPS,
	DEADLINE_TUNABLES,
};

static const struct ss_tunable deadline_tunables[] = {
	[DEADLINE_READ_EXPIRE] = {
		.name = "read_expire",
		.unit = SS_UNIT_NS,
		.initial = 500 * SS_MSEC,
		.min = 1 * SS_MSEC,
		.max = 60 * SS_SEC,
		.help = "a read older than this starts the next batch (Linux deadline)",
	},
	[DEADLINE_WRITE_EXPIRE] = {
		.name = "write_expire",
		.unit = SS_UNIT_NS,
		.initial = 5 * SS_SEC,
		.min = 1 * SS_MSEC,
		.max = 600 * SS_SEC,
		.help = "a write older than this starts the next write batch (Linux deadline)",
	},
	[DEADLINE_WRITES_STARVED] = {
		.name = "writes_starved",
		.unit = SS_UNIT_NONE,
		.initial = 2,
		.min = 0,
		.max = 1000000,
		.help = "read batches that may be chosen over waiting writes (Linux deadline)",
	},
	[DEADLINE_FIFO_BATCH] = {
		.name = "fifo_batch",
		.unit = SS_UNIT_NONE,
		.initial = 16,
		.min = 1,
		.max = 1000000,
		.help = "requests in one batch (Linux deadline)",
	},
	[DEADLINE_BATCH_OVER_GAPS] = {
		.name = "batch_over_gaps",
		.unit = SS_UNIT_BOOL,
		.initial = 1,
		.min = 0,
		.max = 1,
		.help = "1: a batch goes on over gaps, the next one begins with the oldest request (Linux 2.6.31), 0: a gap ends it, the next one begins with the lowest (Linux 2.6.9)",
	},
};

struct deadline_state {
	struct rb_root sorted[SS_DIRECTIONS];
	struct list_head fifo[SS_DIRECTIONS];
	struct ss_request *next; /* where the batch goes on, NULL: nowhere */
	u32 batch_direction;
	u64 batched; /* requests of the current batch sent so far */
	u64 starved; /* read batches since the last write batch */
	u64 last_end_sector; /* of the last request sent */
};

static void deadline_init(struct ss_policy *policy)
{
	struct deadline_state *dl = policy->state;
	u32 dir;

	dl->batched = U64_MAX; /* there is no batch yet */
	for (dir = 0; dir < SS_DIRECTIONS; dir++) {
		dl->sorted[dir] = RB_ROOT;
		INIT_LIST_HEAD(&dl->fifo[dir]);
	}
}

static void deadline_arrived(struct ss_policy *policy, struct ss_request *rq,
			     u64 now_ns)
{
	struct deadline_state *dl = policy->state;
	u32 dir = rq->direction;

	(void)now_ns;
	rq->expires_ns = rq->arrival_ns +
			 policy->value[dir == SS_READ ? DEADLINE_READ_EXPIRE :
							DEADLINE_WRITE_EXPIRE];
	ss_add_by_age(&dl->fifo[dir], rq, fifo_node);
	ss_sorted_add(&dl->sorted[dir], rq);
}

/*
 * Linux 2.6.9 (drivers/block/deadline-iosched.c) knew batches of contiguous
 * requests only: at a gap it asks again whose turn it is. Where 2.6.31 begins
 * with the oldest request it begins with the lowest, unless one has expired.
 * batch_over_gaps=0 is that.
 */
static bool deadline_minds_gaps(const struct ss_policy *policy)
{
	return !policy->value[DEADLINE_BATCH_OVER_GAPS];
}

/* Is there one before @rq that ends the batch? */
static bool deadline_gap(const struct ss_policy *policy,
			 const struct ss_request *rq)
{
	const struct deadline_state *dl = policy->state;

	return deadline_minds_gaps(policy) && rq->sector != dl->last_end_sector;
}

/* Where a batch of 2.6.9 begins that has nothing to go on with. */
static struct ss_request *deadline_lowest(const struct ss_policy *policy,
					  u32 direction,
					  const struct ss_request *skip)
{
	const struct deadline_state *dl = policy->state;
	struct ss_request *lowest = ss_sorted_first(&dl->sorted[direction]);

	return lowest == skip ? ss_sorted_next(lowest) : lowest;
}

/* May the current batch go on? */
static inline bool deadline_goes_on(const struct ss_policy *policy)
{
	const struct deadline_state *dl = policy->state;

	return dl->batched < policy->value[DEADLINE_FIFO_BATCH];
}

/* The batch does not go on with its next request: what then? */
static noinline struct ss_decision deadline_choose_other(
	const struct ss_policy *policy, u64 now_ns,
	const struct ss_request *skip)
{
	const struct deadline_state *dl = policy->state;
	struct ss_request *next = dl->next, *oldest[SS_DIRECTIONS];
	u32 dir = SS_READ;

	if (next && next == skip) {
		next = ss_sorted_next(next);
		if (next && deadline_goes_on(policy) &&
		    !deadline_gap(policy, next))
			return ss_dispatch(next);
	}
	oldest[SS_READ] = ss_first_but(&dl->fifo[SS_READ], skip);
	oldest[SS_WRITE] = ss_first_but(&dl->fifo[SS_WRITE], skip);
	if (!oldest[SS_READ] && !oldest[SS_WRITE])
		return ss_nothing();
	if (!oldest[SS_READ] ||
	    (oldest[SS_WRITE] &&
	     dl->starved >= policy->value[DEADLINE_WRITES_STARVED]))
		dir = SS_WRITE;
	if (now_ns >= oldest[dir]->expires_ns)
		return ss_dispatch(oldest[dir]);
	if (next && next->direction == dir)
		return ss_dispatch(next);
	if (deadline_minds_gaps(policy))
		return ss_dispatch(deadline_lowest(policy, dir, skip));
	return ss_dispatch(oldest[dir]);
}

static struct ss_decision deadline_choose(const struct ss_policy *policy,
					  u64 now_ns,
					  const struct ss_request *skip)
{
	const struct deadline_state *dl = policy->state;

	if (dl->next && dl->next != skip && deadline_goes_on(policy) &&
	    !deadline_gap(policy, dl->next))
		return ss_dispatch(dl->next);
	return deadline_choose_other(policy, now_ns, skip);
}

/* Take @rq out; the elevator, if it was to go on there, goes on behind it. */
static void deadline_take(struct deadline_state *dl, struct ss_request *rq)
{
	if (dl->next == rq)
		dl->next = ss_sorted_next(rq);
	list_del_init(&rq->fifo_node);
	ss_sorted_del(&dl->sorted[rq->direction], rq);
}

static void deadline_dispatched(struct ss_policy *policy, struct ss_request *rq,
				u64 now_ns)
{
	struct deadline_state *dl = policy->state;
	bool goes_on;

	goes_on = deadline_goes_on(policy) &&
		  rq->direction == dl->batch_direction &&
		  !deadline_gap(policy, rq) &&
		  (rq == dl->next ||
		   rq != deadline_choose(policy, now_ns, NULL).rq);
	if (!goes_on) {
		dl->batched = 0;
		/* 2.6.9 begins no batch at a gap: it asks each time then. */
		if (deadline_minds_gaps(policy) && rq == dl->next &&
		    now_ns < rq->expires_ns)
			dl->batched = policy->value[DEADLINE_FIFO_BATCH];
		if (rq->direction == SS_WRITE)
			dl->starved = 0;
		else if (!list_empty(&dl->fifo[SS_WRITE]))
			dl->starved++;
	}
	if (now_ns >= rq->expires_ns)
		policy->sched->counters.expired++;
	dl->batched++;
	dl->batch_direction = rq->direction;
	dl->last_end_sector = ss_request_end(rq);
	dl->next = ss_sorted_next(rq);
	deadline_take(dl, rq);
}

static void deadline_merged(struct ss_policy *policy, struct ss_request *rq,
			    u64 old_sector, u64 now_ns)
{
	struct deadline_state *dl = policy->state;

	(void)now_ns;
	if (rq->sector != old_sector)
		ss_sorted_moved(&dl->sorted[rq->direction], rq);
}

static void deadline_joins(struct ss_policy *policy, struct ss_request *rq,
			   const struct ss_request *next)
{
	struct deadline_state *dl = policy->state;

	(void)next;
	ss_older(&dl->fifo[rq->direction], rq, fifo_node);
}

static void deadline_removed(struct ss_policy *policy, struct ss_request *rq,
			     u64 now_ns)
{
	(void)now_ns;
	deadline_take(policy->state, rq);
}

/*
 * An expired read at once; an expired write when a write batch is due, as in
 * deadline itself: a long queue of old write-back must not shut out reads.
 */
static struct ss_request *deadline_expired(const struct ss_policy *policy,
					   u64 now_ns)
{
	const struct deadline_state *dl = policy->state;
	struct ss_request *read, *write;

	read = ss_first_but(&dl->fifo[SS_READ], NULL);
	if (read && now_ns >= read->expires_ns)
		return read;
	write = ss_first_but(&dl->fifo[SS_WRITE], NULL);
	if (write && now_ns >= write->expires_ns &&
	    (!read || dl->starved >= policy->value[DEADLINE_WRITES_STARVED]))
		return write;
	return NULL;
}

static u64 deadline_next_expiry(const struct ss_policy *policy)
{
	const struct deadline_state *dl = policy->state;
	u64 next_ns = SS_FOREVER;
	u32 dir;

	for (dir = 0; dir < SS_DIRECTIONS; dir++) {
		const struct ss_request *rq = ss_first_but(&dl->fifo[dir],
							   NULL);

		if (rq && rq->expires_ns > policy->sched->now_ns)
			next_ns = min_t(u64, next_ns, rq->expires_ns);
	}
	return next_ns;
}

const struct ss_policy_ops ss_deadline_ops = {
	.name = "deadline",
	.help = "ascending batches with expiry times (Linux deadline, mq-deadline)",
	.flags = SS_WORK_CONSERVING,
	.state_bytes = sizeof(struct deadline_state),
	.tunables = deadline_tunables,
	.nr_tunables = DEADLINE_TUNABLES,
	.init = deadline_init,
	.arrived = deadline_arrived,
	.choose = deadline_choose,
	.dispatched = deadline_dispatched,
	.merged = deadline_merged,
	.joins = deadline_joins,
	.removed = deadline_removed,
	.overdue = deadline_expired,
	.next_expiry = deadline_next_expiry,
};
