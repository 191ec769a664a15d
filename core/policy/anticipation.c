// SPDX-License-Identifier: GPL-2.0-only
/*
 * The anticipatory scheduler, and what others make of it; see anticipation.h
 * for what it does. The behaviour is that of Linux 2.6.31 block/as-iosched.c.
 *
 * What Linux changes while it looks for a request is here a plan, made from
 * the state alone: choose() answers with it, the next event carries it out.
 * Linux counts in jiffies of 1 ms, this file in ns; a jiffy remains as the
 * step in which a distance is called close.
 *
 * Linux looks for a request when the driver has room. The policy cannot see
 * that; it supposes room when the disk has held more requests before.
 */
#include "anticipation.h"
#include "../sched.h"
#include "../sorted.h"

#include <linux/bug.h>
#include <linux/kernel.h>
#include <linux/string.h>

/* Close without cooperation; it doubles with each tick from the second on. */
#define AS_CLOSE_ALONE_SECTORS 64
/* How long closeness grows; later any request is close. */
#define AS_CLOSE_GROWTH_NS (20 * AS_JIFFY_NS)
/* Backwards up to here the elevator goes, at a cost as for twice the way. */
#define AS_BACK_SECTORS (1024 * 1024)
#define AS_BACK_PENALTY 2
/* A request's share of a write batch's time, for a first guess of its size. */
#define AS_WRITE_GUESS_NS (10 * AS_JIFFY_NS)
#define AS_WRITE_BATCH_MIN 2
/* No batch gets this long; it keeps the doubling within its type. */
#define AS_WRITE_BATCH_MAX (1 << 20)
/* Probabilities are in 1/256. */
#define AS_HALF (SS_MEAN_ONE / 2)

const struct ss_tunable ss_as_tunables[] = {
	[AS_ANTIC_EXPIRE] = { "antic_expire", SS_UNIT_NS, 6 * SS_MSEC, 0,
			      1 * SS_SEC,
			      .help = "how long to wait for a process's next request, 0 = never (Linux anticipatory, HZ=1000)" },
	[AS_READ_EXPIRE] = { "read_expire", SS_UNIT_NS, 125 * SS_MSEC,
			     1 * SS_MSEC, 60 * SS_SEC,
			     .help = "age at which a sync request goes first, looked at once in as long (Linux anticipatory)" },
	[AS_READ_BATCH_EXPIRE] = { "read_batch_expire", SS_UNIT_NS,
				   500 * SS_MSEC, 0, 60 * SS_SEC,
				   .help = "time for sync requests before waiting async ones get theirs (Linux anticipatory)" },
	[AS_WRITE_EXPIRE] = { "write_expire", SS_UNIT_NS, 250 * SS_MSEC,
			      1 * SS_MSEC, 600 * SS_SEC,
			      .help = "age at which an async request goes first, looked at once in as long (Linux anticipatory)" },
	[AS_WRITE_BATCH_EXPIRE] = { "write_batch_expire", SS_UNIT_NS,
				    125 * SS_MSEC, 0, 60 * SS_SEC,
				    .help = "time for async requests before waiting sync ones get theirs (Linux anticipatory)" },
	[AS_COOPERATION] = { "cooperation", SS_UNIT_BOOL, 1, 0, 1,
			     .help = "1: others may go on where a process has exited (Linux 2.6.31), 0: who has exited is not waited for (Linux 2.6.12)" },
	[AS_GROUP_DISTANCE] = { "group_distance", SS_UNIT_SECTORS,
				AS_CLOSE_SECTORS, 0, 1 << 30,
				.help = "so far ahead of a group's last request, or half as far behind, a process joins it; as close is for Linux anticipatory" },
};

static const u32 as_expire[AS_KINDS] = { AS_WRITE_EXPIRE, AS_READ_EXPIRE };

static const u32 as_batch_expire[AS_KINDS] = { AS_WRITE_BATCH_EXPIRE,
					       AS_READ_BATCH_EXPIRE };

/* What there is to do now, and all that doing it changes. */
struct as_plan {
	struct ss_decision decision;
	enum as_kind kind; /* of the batch */
	bool turn; /* the batch ends, one of @kind begins */
	bool looked; /* for expired requests of @kind */
	bool by_age; /* that is why it goes */
	bool unopposed; /* sync requests only: the batch starts anew */
	bool judged; /* whether to wait has been judged, with ... */
	enum as_reason reason; /* ... this result */
	bool anticipate; /* a wait begins */
};

static enum as_kind as_kind_of(const struct ss_request *rq)
{
	return ss_request_is_sync(rq) ? AS_SYNC : AS_ASYNC;
}

static struct ss_request *as_oldest(const struct as_state *as,
				    enum as_kind kind)
{
	if (list_empty(&as->fifo[kind]))
		return NULL;
	return list_first_entry(&as->fifo[kind], struct ss_request, fifo_node);
}

/*
 * How far the elevator is from @sector, backwards at its price. False when it
 * is too far behind: that is for the next sweep.
 */
static bool as_ahead(u64 head_sector, u64 sector, u64 *distance)
{
	if (sector >= head_sector) {
		*distance = sector - head_sector;
		return true;
	}
	*distance = (head_sector - sector) * AS_BACK_PENALTY;
	return head_sector - sector <= AS_BACK_SECTORS;
}

/* Which of two requests of one kind the elevator takes; either may be NULL. */
static struct ss_request *as_better(const struct as_state *as,
				    struct ss_request *a, struct ss_request *b)
{
	bool a_ahead, b_ahead;
	u64 head_sector, a_far, b_far;

	if (!a || a == b)
		return b;
	if (!b)
		return a;
	head_sector = as->last_sector[as_kind_of(a)];
	a_ahead = as_ahead(head_sector, a->sector, &a_far);
	b_ahead = as_ahead(head_sector, b->sector, &b_far);
	return ss_sorted_better(a, a_ahead, a_far, b, b_ahead, b_far);
}

/* Where the elevator goes on after @rq, which is still in its tree. */
static struct ss_request *as_after(const struct as_state *as,
				   const struct ss_request *rq)
{
	struct ss_request *next = ss_sorted_next(rq);

	if (!next) {
		next = ss_sorted_first(&as->sorted[as_kind_of(rq)]);
		if (next == rq)
			next = NULL;
	}
	return as_better(as, next, ss_sorted_prev(rq));
}

static u32 as_rise(u32 probability)
{
	return (7 * probability + SS_MEAN_ONE) / 8;
}

static u32 as_fall(u32 probability)
{
	return 7 * probability / 8;
}

static bool as_waiting(const struct as_state *as)
{
	return as->antic == AS_WAIT_DISK || as->antic == AS_WAIT_NEXT;
}

/* Until when to wait for the awaited one, whose request has completed. */
static u64 as_patience_ends(const struct ss_policy *policy)
{
	const struct as_state *as = policy->state;

	return as->awaited_done_ns + policy->value[AS_ANTIC_EXPIRE];
}

/* Whether @rq is so near that it may stand for one of the awaited process. */
static bool as_is_close(const struct ss_policy *policy,
			const struct ss_request *rq, u64 now_ns)
{
	const struct as_state *as = policy->state;
	bool together = policy->value[AS_COOPERATION];
	u64 reach = together ? AS_CLOSE_SECTORS : AS_CLOSE_ALONE_SECTORS;
	u64 last = as->last_sector[as->kind], delay_ns = 0, usual;

	if (as->antic != AS_OFF && as->awaited_done)
		delay_ns = now_ns - as->awaited_done_ns;
	if (delay_ns >= AS_JIFFY_NS) {
		if (delay_ns > AS_CLOSE_GROWTH_NS ||
		    delay_ns > policy->value[AS_ANTIC_EXPIRE])
			return true;
		reach <<= div_u64(delay_ns, AS_JIFFY_NS) - !together;
	}
	if (last <= rq->sector + reach / 2 && rq->sector <= last + reach)
		return true;
	usual = as->awaited->past.seek_sectors.samples ?
			as->awaited->past.seek_sectors.mean :
			as->new_seek_sectors;
	return ss_sectors_between(last, rq->sector) < usual;
}

/* Should the awaited process be waited for, when @rq (or NULL) could go? */
static enum as_reason as_judge(const struct ss_policy *policy,
			       const struct ss_request *rq, u64 now_ns)
{
	const struct as_state *as = policy->state;
	const struct as_owner *awaited = as->awaited;
	u64 antic_ns = policy->value[AS_ANTIC_EXPIRE], think_ns;
	/* What is known of those that go on where others exited, if they do. */
	u32 no_coop = policy->value[AS_COOPERATION] ? as->exit_no_coop :
						      SS_MEAN_ONE;

	if (rq && rq->queue == awaited)
		return AS_SAME;
	if (as->awaited_done && now_ns >= as_patience_ends(policy))
		return AS_LATE;
	/*
	 * Linux asks for requests on their way to the driver, too. Here there
	 * are none: what was sent is at the disk, and a request at the disk is
	 * no reason (it is what AS_WAIT_DISK waits for).
	 */
	if (awaited->nr_pending)
		return AS_BUSY;
	if (as->groups && rq && as->groups->is_mate(policy, rq))
		return AS_MATE;
	if (as->groups && as->groups->knows(policy, &think_ns)) {
		if (think_ns <= antic_ns)
			return AS_HOLD;
		if (!awaited->past.think_ns.samples)
			return AS_THINKS;
	}
	if (awaited->past.gone && !policy->value[AS_COOPERATION])
		return AS_EXITED;
	if (rq && ss_request_is_sync(rq) && as_is_close(policy, rq, now_ns))
		return AS_CLOSE;
	if (awaited->past.gone && no_coop > AS_HALF)
		return AS_EXITED;
	if (!awaited->past.think_ns.samples) {
		if (as->new_think_ns > antic_ns ||
		    as->exit_prob * no_coop > AS_HALF * SS_MEAN_ONE)
			return AS_NEWCOMER;
	} else if (awaited->past.think_ns.mean > antic_ns) {
		return AS_THINKS;
	}
	return AS_HOLD;
}

/* A newcomer's first value, into the mean that is for them all. */
static void as_learn_new(u64 *total, u64 *mean, u64 value)
{
	*total = (7 * *total + SS_MEAN_ONE * value) / 8;
	*mean = *total / SS_MEAN_ONE;
}

static void as_learn_think(struct as_state *as, struct as_owner *owner,
			   u64 think_ns)
{
	if (!owner->past.think_ns.samples) {
		as_learn_new(&as->new_think_total, &as->new_think_ns, think_ns);
		as->exit_prob = as_fall(as->exit_prob);
	}
	ss_mean_add(&owner->past.think_ns, think_ns);
}

static void as_learn_seek(struct as_state *as, struct as_owner *owner,
			  u64 sectors)
{
	if (!owner->past.seek_sectors.samples)
		as_learn_new(&as->new_seek_total, &as->new_seek_sectors,
			     sectors);
	ss_mean_add_seek(&owner->past.seek_sectors, sectors);
}

/* @rq has come, from @owner or as if from it. */
static void as_learn_request(struct as_state *as, struct as_owner *owner,
			     const struct ss_request *rq, u64 now_ns)
{
	u64 think_ns = 0;

	if (!ss_request_is_sync(rq))
		return;
	if (owner->past.began || owner->past.served) {
		if (owner->past.served && !owner->nr_pending &&
		    !owner->nr_at_disk)
			think_ns = min_t(u64, now_ns - owner->past.last_done_ns,
					 AS_THINK_MAX_NS);
		as_learn_think(as, owner, think_ns);
		as_learn_seek(as, owner,
			      ss_sectors_between(owner->past.last_end_sector,
						 rq->sector));
	}
	owner->past.last_end_sector = ss_request_end(rq);
	owner->past.began = true;
}

/* What having judged @rq teaches. */
static void as_learn_judged(struct ss_policy *policy, enum as_reason reason,
			    const struct ss_request *rq, u64 now_ns)
{
	struct as_state *as = policy->state;
	struct as_owner *awaited = as->awaited;

	if (reason < AS_CLOSE)
		return;
	if (awaited->past.gone && !awaited->past.think_ns.samples)
		as->exit_prob = as_rise(as->exit_prob);
	if (reason != AS_CLOSE)
		return;
	if (!policy->value[AS_COOPERATION]) {
		/* Its think time begins anew; nothing else is learned. */
		awaited->past.last_done_ns = now_ns;
		return;
	}
	if (awaited->past.gone)
		as->exit_no_coop = as_fall(as->exit_no_coop);
	as_learn_request(as, awaited, rq, now_ns);
}

static bool as_batch_over(const struct as_state *as, u64 now_ns)
{
	if (as->turning || as->opening)
		return false;
	return now_ns > as->batch_end_ns ||
	       (as->kind == AS_ASYNC && !as->write_left);
}

/* Look for an expired request of the plan's kind, unless lately done. */
static struct ss_request *as_look_for_expired(const struct ss_policy *policy,
					      struct as_plan *plan, u64 now_ns)
{
	const struct as_state *as = policy->state;
	struct ss_request *oldest = as_oldest(as, plan->kind);

	if (plan->looked || now_ns - as->looked_ns[plan->kind] <
				    policy->value[as_expire[plan->kind]])
		return NULL;
	plan->looked = true;
	if (!oldest || now_ns <= oldest->expires_ns)
		return NULL;
	plan->by_age = true;
	return oldest;
}

/* Go on with the batch; false when it has nothing to go on with. */
static bool as_plan_batch(const struct ss_policy *policy, struct as_plan *plan,
			  bool finished, u64 now_ns)
{
	const struct as_state *as = policy->state;
	struct ss_request *rq = as->next[as->kind];
	struct ss_request *expired = NULL;

	if (as->kind == AS_SYNC && policy->value[AS_ANTIC_EXPIRE]) {
		expired = as_look_for_expired(policy, plan, now_ns);
		if (!expired && as->awaited && !finished) {
			plan->judged = true;
			plan->reason = as_judge(policy, rq, now_ns);
		}
		if (plan->judged && plan->reason == AS_HOLD) {
			plan->anticipate = true;
			plan->decision = ss_wait(
				as->awaited_done ? as_patience_ends(policy) :
						   SS_FOREVER);
			return true;
		}
	}
	if (!rq)
		return false;
	if (!expired) {
		plan->unopposed = as_oldest(as, AS_SYNC) &&
				  !as_oldest(as, AS_ASYNC);
		expired = as_look_for_expired(policy, plan, now_ns);
	}
	plan->decision = ss_dispatch(expired ? expired : rq);
	return true;
}

/* The other kind's turn: when the disk has nothing left of this batch's. */
static void as_plan_turn(const struct as_state *as, struct as_plan *plan)
{
	plan->kind = as->kind == AS_SYNC ? AS_ASYNC : AS_SYNC;
	plan->turn = true;
	if (as->nr_at_disk)
		plan->decision = ss_wait(SS_FOREVER);
	else
		plan->decision = ss_dispatch(as_oldest(as, plan->kind));
}

static struct as_plan as_plan(const struct ss_policy *policy, u64 now_ns)
{
	const struct as_state *as = policy->state;
	struct as_plan plan = { .decision = ss_nothing(), .kind = as->kind };
	bool finished = as->antic == AS_FINISHED;
	bool sync = as_oldest(as, AS_SYNC), async = as_oldest(as, AS_ASYNC);

	if (!sync && !async)
		return plan;
	if (as->turning || as->antic == AS_WAIT_DISK) {
		plan.decision = ss_wait(SS_FOREVER);
		return plan;
	}
	if (as->antic == AS_WAIT_NEXT) {
		if (now_ns < as->wait_end_ns) {
			plan.decision = ss_wait(as->wait_end_ns);
			return plan;
		}
		finished = true;
	}
	if (sync && async && as_batch_over(as, now_ns))
		as_plan_turn(as, &plan);
	else if (!as_plan_batch(policy, &plan, finished, now_ns))
		as_plan_turn(as, &plan);
	return plan;
}

/* Begin a batch of the other kind. */
static void as_turn(struct ss_policy *policy, u64 now_ns)
{
	struct as_state *as = policy->state;

	policy->sched->counters.slices_ended++;
	if (as->kind == AS_SYNC) {
		as->kind = AS_ASYNC;
		as->opening = false;
		as->write_left = as->write_batch;
		as->write_slack = false;
	} else {
		as->kind = AS_SYNC;
	}
	as->looked_ns[as->kind] = now_ns;
}

/*
 * The disk has finished the last batch: this one's time begins. As in 2.6.31
 * this forgets when an async batch began, so that it counts as fast; only one
 * that was over before its turn ended is really timed.
 */
static void as_turned(struct ss_policy *policy, u64 now_ns)
{
	struct as_state *as = policy->state;

	as->turning = false;
	as->batch_end_ns = now_ns + policy->value[as_batch_expire[as->kind]];
	if (as->kind == AS_SYNC)
		as->opening = true;
}

static void as_wait_next(const struct ss_policy *policy)
{
	struct as_state *as = policy->state;

	as->antic = AS_WAIT_NEXT;
	as->wait_end_ns = as_patience_ends(policy);
}

/* First in every event: a wait may have ended since the last one. */
static void as_catch_up(struct ss_policy *policy, u64 now_ns)
{
	struct as_state *as = policy->state;

	if (as->antic != AS_WAIT_NEXT || now_ns < as->wait_end_ns)
		return;
	as->antic = AS_FINISHED;
	policy->sched->counters.timeouts++;
	if (!as->awaited->past.think_ns.samples)
		as->exit_prob = as_rise(as->exit_prob);
	if (as->awaited->past.gone)
		as->exit_no_coop = as_rise(as->exit_no_coop);
}

/* Linux notes this whenever it looks for a request. */
static void as_note_slack(struct as_state *as)
{
	if (as->kind == AS_ASYNC && !as_oldest(as, AS_SYNC) &&
	    (!as->write_left || !as_oldest(as, AS_ASYNC)))
		as->write_slack = true;
}

/* Last in every event: if the disk would ask now and is to wait, so be it. */
static void as_settle(struct ss_policy *policy, u64 now_ns)
{
	struct as_state *as = policy->state;
	struct as_plan plan;

	if (as->nr_at_disk && as->nr_at_disk >= as->most_at_disk)
		return;
	plan = as_plan(policy, now_ns);
	if (plan.decision.verdict != SS_WAIT)
		return;
	if (plan.looked)
		as->looked_ns[plan.kind] = now_ns;
	if (plan.turn) {
		if (plan.judged)
			as_learn_judged(policy, plan.reason, as->next[AS_SYNC],
					now_ns);
		as_turn(policy, now_ns);
		as->turning = true;
	} else if (plan.anticipate) {
		as_learn_judged(policy, plan.reason, NULL, now_ns);
		if (as->awaited_done)
			as_wait_next(policy);
		else
			as->antic = AS_WAIT_DISK;
		policy->sched->counters.waits++;
	}
}

/* The size of the async batch, from the time that the last one took. */
static void as_size_write_batch(const struct ss_policy *policy, u64 now_ns)
{
	struct as_state *as = policy->state;
	u64 aim_ns = policy->value[AS_WRITE_BATCH_EXPIRE], took_ns = 0;

	if (now_ns + aim_ns > as->batch_end_ns)
		took_ns = now_ns + aim_ns - as->batch_end_ns;
	if (took_ns > aim_ns && !as->write_slack) {
		if (took_ns > 3 * aim_ns)
			as->write_batch /= 2;
		else
			as->write_batch--;
	} else if (took_ns < aim_ns && !as->write_left) {
		if (aim_ns > 3 * took_ns)
			as->write_batch *= 2;
		else
			as->write_batch++;
	}
	as->write_batch = max_t(u32, as->write_batch, 1);
	as->write_batch = min_t(u32, as->write_batch, AS_WRITE_BATCH_MAX);
}

static void as_await(struct as_state *as, struct as_owner *owner)
{
	if (owner)
		ss_owner_pin(&owner->base);
	if (as->awaited)
		ss_owner_unpin(&as->table, &as->awaited->base);
	as->awaited = owner;
	as->awaited_done = false;
}

/* Take @rq, pending until now, out. */
static void as_take(struct as_state *as, struct ss_request *rq)
{
	struct as_owner *owner = rq->queue;
	enum as_kind kind = as_kind_of(rq);

	if (as->next[kind] == rq)
		as->next[kind] = as_after(as, rq);
	list_del_init(&rq->fifo_node);
	ss_sorted_del(&as->sorted[kind], rq);
	BUG_ON(!owner->nr_pending);
	owner->nr_pending--;
}

static struct as_owner *as_owner_of(struct as_state *as, u64 id)
{
	struct as_owner *owner;
	bool fresh;

	owner = container_of(ss_owner_get(&as->table, id, &fresh),
			     struct as_owner, base);
	/* A number that comes back after an exit is another process's. */
	if (fresh || owner->past.gone)
		memset(&owner->past, 0, sizeof(owner->past));
	return owner;
}

void ss_as_init(struct ss_policy *policy)
{
	struct as_state *as = policy->state;
	u32 i;

	for (i = 0; i < AS_KINDS; i++) {
		as->sorted[i] = RB_ROOT;
		INIT_LIST_HEAD(&as->fifo[i]);
	}
	ss_owner_table_init(&as->table, &as->shared.base);
	for (i = 0; i < SS_OWNERS; i++)
		ss_owner_table_add(&as->table, &as->owner[i].base);
	/* As in 2.6.31 the first batch is async, with nothing left to send. */
	as->kind = AS_ASYNC;
	as->batch_end_ns = policy->value[AS_READ_BATCH_EXPIRE];
	as->write_batch = max_t(u32, AS_WRITE_BATCH_MIN,
				div_u64(policy->value[AS_WRITE_BATCH_EXPIRE],
					AS_WRITE_GUESS_NS));
}

void ss_as_arrived(struct ss_policy *policy, struct ss_request *rq, u64 now_ns)
{
	struct as_state *as = policy->state;
	enum as_kind kind = as_kind_of(rq);
	struct as_owner *owner;
	enum as_reason reason;

	as_catch_up(policy, now_ns);
	owner = as_owner_of(as, rq->owner);
	rq->queue = owner;
	as_learn_request(as, owner, rq, now_ns);
	if (as->groups)
		as->groups->arrived(policy, rq, now_ns);
	ss_owner_pin(&owner->base);
	owner->nr_pending++;
	rq->expires_ns = rq->arrival_ns + policy->value[as_expire[kind]];
	list_add_tail(&rq->fifo_node, &as->fifo[kind]);
	ss_sorted_add(&as->sorted[kind], rq);
	as->next[kind] = as_better(as, rq, as->next[kind]);

	if (as_waiting(as)) {
		reason = as_judge(policy, rq, now_ns);
		as_learn_judged(policy, reason, rq, now_ns);
		if (reason != AS_HOLD)
			as->antic = AS_FINISHED;
		if (reason == AS_SAME || reason == AS_MATE ||
		    reason == AS_CLOSE)
			policy->sched->counters.hits++;
	}
	as_settle(policy, now_ns);
}

struct ss_decision ss_as_choose(const struct ss_policy *policy, u64 now_ns,
				const struct ss_request *skip)
{
	struct as_plan plan = as_plan(policy, now_ns);

	/* Nothing wraps a policy that waits; only do not give out @skip. */
	if (skip && ss_dispatches(&plan.decision, skip))
		return ss_nothing();
	return plan.decision;
}

/* Carry out what the plan that chose @rq has found. */
static void as_carry_out(struct ss_policy *policy, const struct as_plan *plan,
			 u64 now_ns)
{
	struct as_state *as = policy->state;

	if (plan->judged)
		as_learn_judged(policy, plan->reason, as->next[AS_SYNC],
				now_ns);
	if (plan->turn) {
		as_turn(policy, now_ns);
		if (as->kind == AS_SYNC)
			as->opening = true;
		else
			as->batch_end_ns = now_ns +
					   policy->value[AS_WRITE_BATCH_EXPIRE];
	}
	if (plan->looked)
		as->looked_ns[plan->kind] = now_ns;
	if (plan->unopposed)
		as->batch_end_ns = now_ns + policy->value[AS_READ_BATCH_EXPIRE];
	if (plan->by_age)
		policy->sched->counters.expired++;
}

void ss_as_dispatched(struct ss_policy *policy, struct ss_request *rq,
		      u64 now_ns)
{
	struct as_state *as = policy->state;
	struct as_owner *owner = rq->queue;
	enum as_kind kind = as_kind_of(rq);
	struct as_plan plan;

	as_catch_up(policy, now_ns);
	as_note_slack(as);
	plan = as_plan(policy, now_ns);
	if (ss_dispatches(&plan.decision, rq)) {
		as_carry_out(policy, &plan, now_ns);
	} else if (kind != as->kind) {
		/* Chosen at an earlier time; it goes all the same. */
		as_turn(policy, now_ns);
		as_turned(policy, now_ns);
	}

	as->antic = AS_OFF;
	as->last_sector[kind] = ss_request_end(rq);
	as_await(as, kind == AS_SYNC ? owner : NULL);
	if (kind == AS_ASYNC && as->write_left)
		as->write_left--;
	as->next[kind] = as_after(as, rq);
	as_take(as, rq);
	owner->nr_at_disk++;
	as->nr_at_disk++;
	as->most_at_disk = max_t(u32, as->most_at_disk, as->nr_at_disk);
	as_settle(policy, now_ns);
}

void ss_as_completed(struct ss_policy *policy, struct ss_request *rq,
		     u64 now_ns)
{
	struct as_state *as = policy->state;
	struct as_owner *owner = rq->queue;
	enum as_kind kind = as_kind_of(rq);

	as_catch_up(policy, now_ns);
	if (as->turning && as->nr_at_disk == 1)
		as_turned(policy, now_ns);
	BUG_ON(!as->nr_at_disk || !owner->nr_at_disk);
	as->nr_at_disk--;
	owner->nr_at_disk--;
	if (as->opening && kind == as->kind) {
		as_size_write_batch(policy, now_ns);
		as->batch_end_ns = now_ns + policy->value[AS_READ_BATCH_EXPIRE];
		as->opening = false;
	}
	if (owner == as->awaited) {
		as->awaited_done_ns = now_ns;
		as->awaited_done = true;
		if (as->antic == AS_WAIT_DISK)
			as_wait_next(policy);
	}
	if (kind == AS_SYNC) {
		owner->past.served = true;
		owner->past.last_done_ns = now_ns;
	}
	if (as->groups)
		as->groups->left(policy, rq, true, now_ns);
	ss_owner_unpin(&as->table, &owner->base);
	as_note_slack(as);
	as_settle(policy, now_ns);
}

/* Joining requests is no news from a process; only the order may change. */
void ss_as_merged(struct ss_policy *policy, struct ss_request *rq,
		  u64 old_sector, u64 now_ns)
{
	struct as_state *as = policy->state;

	(void)now_ns;
	if (rq->sector != old_sector)
		ss_sorted_moved(&as->sorted[as_kind_of(rq)], rq);
}

void ss_as_joins(struct ss_policy *policy, struct ss_request *rq,
		 const struct ss_request *next)
{
	struct as_state *as = policy->state;

	(void)next;
	ss_older(&as->fifo[as_kind_of(rq)], rq, fifo_node);
}

void ss_as_removed(struct ss_policy *policy, struct ss_request *rq, u64 now_ns)
{
	struct as_state *as = policy->state;
	struct as_owner *owner = rq->queue;

	as_catch_up(policy, now_ns);
	as_take(as, rq);
	if (as->groups)
		as->groups->left(policy, rq, false, now_ns);
	ss_owner_unpin(&as->table, &owner->base);
	as_settle(policy, now_ns);
}

/* A wait goes on: another process may take up where this one stopped. */
void ss_as_owner_gone(struct ss_policy *policy, u64 id, u64 now_ns)
{
	struct as_state *as = policy->state;
	struct ss_owner *base;
	struct as_past *past;

	as_catch_up(policy, now_ns);
	base = ss_owner_find(&as->table, id);
	if (!base)
		return;
	past = &container_of(base, struct as_owner, base)->past;
	past->gone = true;
	past->gone_ns = now_ns;
}
