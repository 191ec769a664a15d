// SPDX-License-Identifier: GPL-2.0-only
/*
 * cfq: each process has its queue, and the disk for a slice of time.
 *
 * Axboe's Completely Fair Queuing, described in Love, "Kernel Korner: I/O
 * Schedulers", Linux Journal 2004; time slices and idling came later. The
 * behaviour here is that of Linux 2.6.31 block/cfq-iosched.c; 2.6.32 differs.
 *
 * Sync requests stand in a queue per process, async ones of all processes
 * in one queue. Queues take turns. A queue's slice begins when its first
 * request completes; within it the queue is served in the order of an
 * elevator. When a sync queue runs dry before its slice is over, the disk
 * idles for up to slice_idle for the process's next request, unless the
 * process thinks too long, or another queue has a request close by.
 *
 * A request carries no I/O priority, so that all queues are best effort at
 * the default priority; the classes real time and idle do not occur.
 *
 * What Linux changes while it looks for a request is here a plan, made from
 * the state alone: choose() answers with it, the next event carries it out.
 * Linux looks for a request when the driver has room. The policy cannot see
 * that; it supposes room when the disk has held more requests before.
 */
#include "owner_table.h"
#include "../policies.h"
#include "../sched.h"
#include "../sorted.h"

#include <linux/bug.h>
#include <linux/kernel.h>
#include <linux/string.h>

/* One timer tick of the kernel that is modelled, HZ = 1000. */
#define CFQ_JIFFY_NS SS_MSEC
/* A process that seeks is waited for no longer. */
#define CFQ_SEEKY_IDLE_NS (2 * SS_MSEC)
/* Seeks longer than this on average, 4 MiB, make a process seeky. */
#define CFQ_SEEKY_SECTORS 8192
/* A mean is trusted beyond this weight: from the third sample. */
#define CFQ_TRUSTED_SAMPLES 80
/* Best effort priorities are 0 to 7; requests have the default one. */
#define CFQ_PRIORITY 4
#define CFQ_PRIORITIES 8
/* One step of priority is worth a fifth of the slice. */
#define CFQ_SLICE_SCALE 5
/* A queue that is alone may send so many quanta. */
#define CFQ_ALONE_QUANTA 4
/* A disk that holds this many requests at a time is one that queues. */
#define CFQ_DEEP 5
/* Busy moments that are looked at to tell. */
#define CFQ_DEPTH_SAMPLES 50
/* Sorts before all times: next in turn. */
#define CFQ_FRONT S64_MIN

enum {
	CFQ_QUANTUM,
	CFQ_FIFO_EXPIRE_SYNC,
	CFQ_FIFO_EXPIRE_ASYNC,
	CFQ_BACK_SEEK_MAX,
	CFQ_BACK_SEEK_PENALTY,
	CFQ_SLICE_SYNC,
	CFQ_SLICE_ASYNC,
	CFQ_SLICE_ASYNC_RQ,
	CFQ_SLICE_IDLE,
};

static const struct ss_tunable cfq_tunables[] = {
	[CFQ_QUANTUM] = { "quantum", SS_UNIT_NONE, 4, 1, 1000,
			  .help = "requests of one queue at the disk, four times as many if it is alone (Linux CFQ)" },
	[CFQ_FIFO_EXPIRE_SYNC] = { "fifo_expire_sync", SS_UNIT_NS,
				   125 * SS_MSEC, 1 * SS_MSEC, 60 * SS_SEC,
				   .help = "age at which a sync request opens its queue's slice (Linux CFQ)" },
	[CFQ_FIFO_EXPIRE_ASYNC] = { "fifo_expire_async", SS_UNIT_NS,
				    250 * SS_MSEC, 1 * SS_MSEC, 600 * SS_SEC,
				    .help = "age at which an async request opens its queue's slice (Linux CFQ)" },
	[CFQ_BACK_SEEK_MAX] = { "back_seek_max", SS_UNIT_SECTORS, 32768, 0,
				1ULL << 40,
				.help = "how far the elevator goes backwards (Linux CFQ, there in KiB)" },
	[CFQ_BACK_SEEK_PENALTY] = { "back_seek_penalty", SS_UNIT_NONE, 2, 1,
				    1000,
				    .help = "what a sector backwards costs, in sectors forward (Linux CFQ)" },
	[CFQ_SLICE_SYNC] = { "slice_sync", SS_UNIT_NS, 100 * SS_MSEC,
			     1 * SS_MSEC, 10 * SS_SEC,
			     .help = "a sync queue's time at the disk (Linux CFQ)" },
	[CFQ_SLICE_ASYNC] = { "slice_async", SS_UNIT_NS, 40 * SS_MSEC,
			      1 * SS_MSEC, 10 * SS_SEC,
			      .help = "the async queue's time at the disk (Linux CFQ)" },
	[CFQ_SLICE_ASYNC_RQ] = { "slice_async_rq", SS_UNIT_NONE, 2, 1, 1000,
				 .help = "an eighth of the async queue's requests in one slice while others wait (Linux CFQ)" },
	[CFQ_SLICE_IDLE] = { "slice_idle", SS_UNIT_NS, 8 * SS_MSEC, 0,
			     1 * SS_SEC,
			     .help = "how long to wait for a process's next request, 0 = never (Linux CFQ)" },
};

/* What a process has done so far. */
struct cfq_past {
	bool gone; /* it has exited */
	u64 last_end_sector; /* of its last request, 0 = none yet */
	u64 last_done_ns; /* when its last sync request completed */
	struct ss_mean think_ns; /* from a completion to its next request */
	struct ss_mean seek_sectors; /* from a request's end to its next */
};

struct cfq_owner;

/* Requests that stand together. */
struct cfq_queue {
	struct cfq_owner *owner; /* NULL: the async queue */
	struct rb_root sorted;
	struct list_head fifo;
	struct ss_request *next; /* where its elevator goes on */
	u32 nr_meta; /* pending metadata requests */
	u32 nr_at_disk;

	/* Its turn. */
	bool in_turn; /* in cfq_state.turns: it has pending requests */
	bool in_near; /* in cfq_state.near; not if another is at the sector */
	struct rb_node turn_node;
	struct rb_node near_node;
	s64 turn_key; /* about when its turn is */
	s64 left_ns; /* of its last slice, negative if that took too long */

	/* Its slice. */
	u64 slice_end_ns;
	u32 slice_sent;
	bool slice_new; /* nothing has completed in it yet */
	bool looked; /* for an expired request, once in a slice */
	bool has_idled; /* the disk was kept idle for it in this slice */
	bool must_send; /* what it idled for has come */
	bool worth_idling;
	bool jumped; /* has had a turn for being close */
};

struct cfq_owner {
	struct ss_owner
		base; /* pinned by requests, its slice, as last_sender */
	struct cfq_queue queue;
	struct cfq_past past;
};

struct cfq_state {
	struct rb_root turns; /* queues with requests, by turn_key */
	struct rb_root near; /* the same, by where they go on */
	struct cfq_queue async;
	u32 nr_busy; /* queues in turns */

	struct cfq_queue *active; /* whose slice it is */
	struct cfq_owner *sender; /* of the first request in this slice */
	bool idling; /* until idle_end_ns at most */
	bool held; /* others had requests pending meanwhile */
	u64 idle_end_ns;

	u64 head_sector; /* the end of the last request sent */
	u32 nr_pending;
	u32 nr_at_disk;
	u32 nr_sync_at_disk;
	u32 most_at_disk;

	/* Does the disk queue? Supposed until found otherwise. */
	bool deep;
	u32 depth_samples;
	u32 depth_peak;

	struct ss_owner_table table;
	struct cfq_owner shared;
	struct cfq_owner owner[SS_OWNERS];
};

/* What there is to do now, and all that doing it changes. */
struct cfq_plan {
	struct ss_decision decision;
	struct cfq_queue *queue; /* whose slice it is to be */
	bool change; /* that slice is a new one */
	bool near; /* it comes out of turn, for being close */
	bool idle; /* waiting is idling */
	bool looked; /* for an expired request of @queue */
	bool by_age; /* that is why it goes */
};

static bool cfq_is_sync(const struct cfq_queue *queue)
{
	return queue->owner;
}

static struct cfq_owner *cfq_owner_of(const struct ss_request *rq)
{
	return rq->queue;
}

static struct cfq_queue *cfq_queue_of(struct cfq_state *cfq,
				      const struct ss_request *rq)
{
	return ss_request_is_sync(rq) ? &cfq_owner_of(rq)->queue : &cfq->async;
}

static bool cfq_trusted(const struct ss_mean *mean)
{
	return mean->samples > CFQ_TRUSTED_SAMPLES;
}

/* A slice as long as @priority makes it. */
static u64 cfq_slice_ns(const struct ss_policy *policy, bool sync, u32 priority)
{
	u64 base = policy->value[sync ? CFQ_SLICE_SYNC : CFQ_SLICE_ASYNC];

	/* Steps above the default one; none are below it here. */
	return base +
	       div_u64(base, CFQ_SLICE_SCALE) * (CFQ_PRIORITY - priority);
}

static bool cfq_slice_over(const struct cfq_queue *queue, u64 now_ns)
{
	return !queue->slice_new && now_ns >= queue->slice_end_ns;
}

/* Requests that the async queue may send in a slice while others wait. */
static u64 cfq_async_slice_requests(const struct ss_policy *policy)
{
	return 2 * policy->value[CFQ_SLICE_ASYNC_RQ] *
	       (CFQ_PRIORITIES - CFQ_PRIORITY);
}

/*
 * How far the elevator is from @sector, backwards at its price. False when it
 * is too far behind: that is for the next sweep.
 */
static bool cfq_ahead(const struct ss_policy *policy, u64 sector, u64 *distance)
{
	const struct cfq_state *cfq = policy->state;
	u64 behind;

	if (sector >= cfq->head_sector) {
		*distance = sector - cfq->head_sector;
		return true;
	}
	behind = cfq->head_sector - sector;
	*distance = behind * policy->value[CFQ_BACK_SEEK_PENALTY];
	return behind <= policy->value[CFQ_BACK_SEEK_MAX];
}

/* Which of a queue's two requests is to go first; either may be NULL. */
static struct ss_request *cfq_better(const struct ss_policy *policy,
				     struct ss_request *a, struct ss_request *b)
{
	bool a_ahead, b_ahead;
	u64 a_far, b_far;

	if (!a || a == b)
		return b;
	if (!b)
		return a;
	if ((a->flags ^ b->flags) & SS_META)
		return a->flags & SS_META ? a : b;
	a_ahead = cfq_ahead(policy, a->sector, &a_far);
	b_ahead = cfq_ahead(policy, b->sector, &b_far);
	return ss_sorted_better(a, a_ahead, a_far, b, b_ahead, b_far);
}

/* Where @queue goes on after @rq, which is still in its tree. */
static struct ss_request *cfq_after(const struct ss_policy *policy,
				    const struct cfq_queue *queue,
				    const struct ss_request *rq)
{
	struct ss_request *next = ss_sorted_next(rq);

	if (!next) {
		next = ss_sorted_first(&queue->sorted);
		if (next == rq)
			next = NULL;
	}
	return cfq_better(policy, next, ss_sorted_prev(rq));
}

static struct cfq_queue *cfq_turn_entry(struct rb_node *node)
{
	return node ? rb_entry(node, struct cfq_queue, turn_node) : NULL;
}

static struct cfq_queue *cfq_near_entry(struct rb_node *node)
{
	return node ? rb_entry(node, struct cfq_queue, near_node) : NULL;
}

/*
 * When @queue's turn would be if it took its place now: the shorter its
 * slices, the later, lest it come more often instead.
 */
static s64 cfq_turn_key(const struct ss_policy *policy,
			const struct cfq_queue *queue, u64 now_ns)
{
	const struct cfq_state *cfq = policy->state;
	u64 shorter_ns = cfq_slice_ns(policy, true, 0) -
			 cfq_slice_ns(policy, cfq_is_sync(queue), CFQ_PRIORITY);

	/* In two's complement also right when async slices are the longer. */
	return (s64)((cfq->nr_busy - 1) * shorter_ns + now_ns) + queue->left_ns;
}

static void cfq_turns_del(struct cfq_state *cfq, struct cfq_queue *queue)
{
	rb_erase(&queue->turn_node, &cfq->turns);
	RB_CLEAR_NODE(&queue->turn_node);
}

/* Put @queue behind those whose key is not greater. */
static void cfq_turns_add(struct cfq_state *cfq, struct cfq_queue *queue,
			  s64 key)
{
	struct rb_node **link, *parent = NULL;

	if (!RB_EMPTY_NODE(&queue->turn_node)) {
		if (queue->turn_key == key)
			return;
		cfq_turns_del(cfq, queue);
	}
	link = &cfq->turns.rb_node;
	while (*link) {
		parent = *link;
		if (key < cfq_turn_entry(parent)->turn_key)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	queue->turn_key = key;
	rb_link_node(&queue->turn_node, parent, link);
	rb_insert_color(&queue->turn_node, &cfq->turns);
}

/* The place of @sector in the near tree: *@link is NULL if it is not there. */
static struct rb_node **cfq_near_find(struct rb_root *near, u64 sector,
				      struct rb_node **parent)
{
	struct rb_node **link = &near->rb_node;

	*parent = NULL;
	while (*link) {
		u64 at = cfq_near_entry(*link)->next->sector;

		if (sector == at)
			break;
		*parent = *link;
		link = sector < at ? &(*link)->rb_left : &(*link)->rb_right;
	}
	return link;
}

/* Take @queue out of the near tree; its next request is about to change. */
static void cfq_near_del(struct cfq_state *cfq, struct cfq_queue *queue)
{
	if (queue->in_near)
		rb_erase(&queue->near_node, &cfq->near);
	queue->in_near = false;
}

static void cfq_near_add(struct cfq_state *cfq, struct cfq_queue *queue)
{
	struct rb_node *parent, **link;

	if (!queue->next)
		return;
	link = cfq_near_find(&cfq->near, queue->next->sector, &parent);
	if (*link)
		return;
	rb_link_node(&queue->near_node, parent, link);
	rb_insert_color(&queue->near_node, &cfq->near);
	queue->in_near = true;
}

/* Where @queue goes on has changed. */
static void cfq_goes_on_at(struct cfq_state *cfq, struct cfq_queue *queue,
			   struct ss_request *next)
{
	cfq_near_del(cfq, queue);
	queue->next = next;
	cfq_near_add(cfq, queue);
}

/* @queue takes its place again, behind the others of its time. */
static void cfq_retake_turn(struct ss_policy *policy, struct cfq_queue *queue,
			    u64 now_ns)
{
	struct cfq_state *cfq = policy->state;

	if (!queue->in_turn)
		return;
	cfq_turns_add(cfq, queue, cfq_turn_key(policy, queue, now_ns));
	queue->left_ns = 0;
	cfq_goes_on_at(cfq, queue, queue->next);
}

/* Put @rq among the pending ones of its queue. */
static void cfq_add(struct ss_policy *policy, struct ss_request *rq, u64 now_ns)
{
	struct cfq_state *cfq = policy->state;
	struct cfq_queue *queue = cfq_queue_of(cfq, rq);
	struct ss_request *next;

	ss_sorted_add(&queue->sorted, rq);
	list_add_tail(&rq->fifo_node, &queue->fifo);
	cfq->nr_pending++;
	if (rq->flags & SS_META)
		queue->nr_meta++;
	if (!queue->in_turn) {
		queue->in_turn = true;
		cfq->nr_busy++;
		cfq_retake_turn(policy, queue, now_ns);
	}
	next = cfq_better(policy, queue->next, rq);
	if (next != queue->next)
		cfq_goes_on_at(cfq, queue, next);
}

/* Take @rq, pending until now, out. */
static void cfq_take(struct ss_policy *policy, struct ss_request *rq)
{
	struct cfq_state *cfq = policy->state;
	struct cfq_queue *queue = cfq_queue_of(cfq, rq);

	if (queue->next == rq)
		cfq_goes_on_at(cfq, queue, cfq_after(policy, queue, rq));
	list_del_init(&rq->fifo_node);
	ss_sorted_del(&queue->sorted, rq);
	BUG_ON(!cfq->nr_pending);
	cfq->nr_pending--;
	if (rq->flags & SS_META)
		queue->nr_meta--;
	if (queue->next)
		return;
	queue->in_turn = false;
	cfq_turns_del(cfq, queue);
	cfq->nr_busy--;
}

static void cfq_set_sender(struct cfq_state *cfq, struct cfq_owner *owner)
{
	if (owner)
		ss_owner_pin(&owner->base);
	if (cfq->sender)
		ss_owner_unpin(&cfq->table, &cfq->sender->base);
	cfq->sender = owner;
}

/*
 * The active queue's slice ends. With @note_left what is left of it, or how
 * far it went past its end, moves the next turn: as in 2.6.31 what is left
 * puts it off.
 */
static void cfq_end_slice(struct ss_policy *policy, bool note_left, u64 now_ns)
{
	struct cfq_state *cfq = policy->state;
	struct cfq_queue *queue = cfq->active;

	if (!queue)
		return;
	policy->sched->counters.slices_ended++;
	if (cfq->idling && cfq->held && now_ns >= cfq->idle_end_ns)
		policy->sched->counters.timeouts++;
	cfq->idling = false;
	queue->has_idled = false;
	if (note_left && !queue->slice_new)
		queue->left_ns = (s64)(queue->slice_end_ns - now_ns);
	cfq_retake_turn(policy, queue, now_ns);
	cfq->active = NULL;
	cfq_set_sender(cfq, NULL);
	if (queue->owner)
		ss_owner_unpin(&cfq->table, &queue->owner->base);
}

static void cfq_begin_slice(struct cfq_state *cfq, struct cfq_queue *queue)
{
	queue->slice_sent = 0;
	queue->slice_new = true;
	queue->looked = false;
	queue->has_idled = false;
	queue->must_send = false;
	cfq->active = queue;
	if (queue->owner)
		ss_owner_pin(&queue->owner->base);
}

/* Whether @rq is as near as the active process's own next one might be. */
static bool cfq_is_close(const struct cfq_state *cfq,
			 const struct ss_request *rq)
{
	const struct ss_mean *seek = &cfq->sender->past.seek_sectors;
	u64 reach = cfq_trusted(seek) ? seek->mean : CFQ_SEEKY_SECTORS;

	return ss_sectors_between(cfq->head_sector, rq->sector) <= reach;
}

/* A queue that goes on at the head or, as far as seen, nearest to it. */
static struct cfq_queue *cfq_nearest(const struct cfq_state *cfq)
{
	struct rb_root near = cfq->near;
	struct rb_node *parent, **link;
	struct cfq_queue *queue;

	link = cfq_near_find(&near, cfq->head_sector, &parent);
	if (*link)
		return cfq_near_entry(*link);
	if (!parent)
		return NULL;
	queue = cfq_near_entry(parent);
	if (cfq_is_close(cfq, queue->next))
		return queue;
	if (queue->next->sector < cfq->head_sector)
		queue = cfq_near_entry(rb_next(parent));
	else
		queue = cfq_near_entry(rb_prev(parent));
	return queue && cfq_is_close(cfq, queue->next) ? queue : NULL;
}

/* A queue that works where the active one, which is dry, has worked. */
static struct cfq_queue *cfq_cooperator(const struct cfq_state *cfq)
{
	struct cfq_queue *queue;

	if (!cfq->sender)
		return NULL;
	queue = cfq_nearest(cfq);
	return queue && !queue->jumped ? queue : NULL;
}

/* Who is first in turn once the active queue has taken its place again. */
static struct cfq_queue *cfq_first_after_active(const struct ss_policy *policy,
						u64 now_ns)
{
	const struct cfq_state *cfq = policy->state;
	struct rb_node *node = rb_first(&cfq->turns);
	struct cfq_queue *first = cfq_turn_entry(node);
	struct cfq_queue *active = cfq->active;
	s64 key;

	if (!active || !active->in_turn)
		return first;
	key = cfq_turn_key(policy, active, now_ns);
	if (key == active->turn_key)
		return first;
	if (first == active)
		first = cfq_turn_entry(rb_next(node));
	return !first || key < first->turn_key ? active : first;
}

/* Whose slice it is to be; false when the disk is to wait for the active. */
static bool cfq_plan_queue(const struct ss_policy *policy,
			   struct cfq_plan *plan, u64 now_ns)
{
	const struct cfq_state *cfq = policy->state;
	struct cfq_queue *active = cfq->active;

	plan->queue = active;
	if (active && (!cfq_slice_over(active, now_ns) || active->must_send)) {
		if (active->next)
			return true;
		plan->queue = cfq_cooperator(cfq);
		plan->near = plan->queue;
		plan->change = plan->near;
		if (plan->change)
			return true;
		plan->idle = cfq->idling && now_ns < cfq->idle_end_ns;
		if (plan->idle) {
			plan->decision = ss_wait(cfq->idle_end_ns);
			return false;
		}
		if (active->nr_at_disk && active->worth_idling) {
			plan->decision = ss_wait(SS_FOREVER);
			return false;
		}
	}
	plan->change = true;
	plan->queue = cfq_first_after_active(policy, now_ns);
	return true;
}

/* Whether @queue has as much at the disk as it may. */
static bool cfq_is_full(const struct ss_policy *policy,
			const struct cfq_queue *queue)
{
	const struct cfq_state *cfq = policy->state;
	u64 most = policy->value[CFQ_QUANTUM];

	if (cfq->nr_busy == 1)
		most *= CFQ_ALONE_QUANTA;
	return queue->nr_at_disk >= most;
}

static struct cfq_plan cfq_plan(const struct ss_policy *policy, u64 now_ns)
{
	const struct cfq_state *cfq = policy->state;
	struct cfq_plan plan = { .decision = ss_nothing() };
	struct ss_request *oldest;

	if (!cfq->nr_pending || !cfq_plan_queue(policy, &plan, now_ns))
		return plan;
	if ((!cfq_is_sync(plan.queue) && cfq->nr_sync_at_disk) ||
	    cfq_is_full(policy, plan.queue)) {
		plan.decision = ss_wait(SS_FOREVER);
		return plan;
	}
	plan.decision = ss_dispatch(plan.queue->next);
	plan.looked = plan.change || !plan.queue->looked;
	oldest = list_first_entry(&plan.queue->fifo, struct ss_request,
				  fifo_node);
	if (plan.looked && now_ns >= oldest->expires_ns) {
		plan.by_age = true;
		plan.decision = ss_dispatch(oldest);
	}
	return plan;
}

/* The slice becomes that of the plan's queue. */
static void cfq_change_queue(struct ss_policy *policy,
			     const struct cfq_plan *plan, u64 now_ns)
{
	struct cfq_state *cfq = policy->state;

	if (!plan->change)
		return;
	cfq_end_slice(policy, false, now_ns);
	/* Now the turns say by themselves what the plan has foreseen. */
	WARN_ON_ONCE(!plan->near &&
		     plan->queue != cfq_turn_entry(rb_first(&cfq->turns)));
	plan->queue->jumped = plan->near;
	cfq_begin_slice(cfq, plan->queue);
}

/* Last in every event: if the disk would ask now and is to wait, so be it. */
static void cfq_settle(struct ss_policy *policy, u64 now_ns)
{
	struct cfq_state *cfq = policy->state;
	struct cfq_plan plan;

	if (cfq->nr_at_disk && cfq->nr_at_disk >= cfq->most_at_disk)
		return;
	plan = cfq_plan(policy, now_ns);
	if (plan.decision.verdict != SS_WAIT)
		return;
	cfq_change_queue(policy, &plan, now_ns);
	if (plan.idle && !cfq->held) {
		cfq->held = true;
		policy->sched->counters.waits++;
	}
}

/* Keep the disk for the process that has had all its requests served. */
static void cfq_begin_idling(struct ss_policy *policy, u64 now_ns)
{
	struct cfq_state *cfq = policy->state;
	u64 idle_ns = policy->value[CFQ_SLICE_IDLE];
	const struct cfq_past *past;

	if (!idle_ns || !cfq->active->worth_idling || cfq->nr_at_disk)
		return;
	if (!cfq->sender || cfq->sender->past.gone)
		return;
	past = &cfq->sender->past;
	if (cfq_trusted(&past->seek_sectors) &&
	    past->seek_sectors.mean > CFQ_SEEKY_SECTORS)
		idle_ns = min_t(u64, idle_ns, CFQ_SEEKY_IDLE_NS);
	cfq->active->has_idled = true;
	cfq->idling = true;
	cfq->held = false;
	cfq->idle_end_ns = now_ns + idle_ns;
}

/* @rq has come: what it says of its process. */
static void cfq_learn_request(struct ss_policy *policy, struct cfq_past *past,
			      const struct ss_request *rq, u64 now_ns)
{
	u64 seek_sectors = 0;

	ss_mean_add(&past->think_ns, min_t(u64, now_ns - past->last_done_ns,
					   2 * policy->value[CFQ_SLICE_IDLE]));
	if (past->last_end_sector)
		seek_sectors = ss_sectors_between(past->last_end_sector,
						  rq->sector);
	ss_mean_add_seek(&past->seek_sectors, seek_sectors);
	past->last_end_sector = ss_request_end(rq);
}

/* Is the process of sync @queue one to idle for? */
static void cfq_weigh_idling(struct ss_policy *policy, struct cfq_queue *queue)
{
	struct cfq_state *cfq = policy->state;
	const struct cfq_past *past = &queue->owner->past;
	u64 idle_ns = policy->value[CFQ_SLICE_IDLE];

	if (!idle_ns ||
	    (cfq->deep && past->seek_sectors.mean > CFQ_SEEKY_SECTORS))
		queue->worth_idling = false;
	else if (cfq_trusted(&past->think_ns))
		queue->worth_idling = past->think_ns.mean <= idle_ns;
}

/* May @rq, just come to @queue, end the active queue's slice? */
static bool cfq_preempts(const struct cfq_state *cfq,
			 const struct cfq_queue *queue,
			 const struct ss_request *rq, u64 now_ns)
{
	const struct cfq_queue *active = cfq->active;

	if (!active || queue == active)
		return false;
	if (cfq_slice_over(active, now_ns))
		return true;
	if (cfq_is_sync(queue) && !cfq_is_sync(active))
		return true;
	if ((rq->flags & SS_META) && !active->nr_meta)
		return true;
	return cfq->sender && active->has_idled && cfq_is_close(cfq, rq);
}

/* Does the disk hold several requests at a time when there are many? */
static void cfq_learn_depth(struct cfq_state *cfq)
{
	cfq->depth_peak = max_t(u32, cfq->depth_peak, cfq->nr_at_disk);
	if (cfq->nr_pending <= CFQ_DEEP && cfq->nr_at_disk <= CFQ_DEEP)
		return;
	if (cfq->depth_samples++ < CFQ_DEPTH_SAMPLES)
		return;
	cfq->deep = cfq->depth_peak >= CFQ_DEEP;
	cfq->depth_samples = 0;
	cfq->depth_peak = 0;
}

static void cfq_init_queue(struct cfq_queue *queue, struct cfq_owner *owner)
{
	memset(queue, 0, sizeof(*queue));
	queue->owner = owner;
	queue->sorted = RB_ROOT;
	INIT_LIST_HEAD(&queue->fifo);
	RB_CLEAR_NODE(&queue->turn_node);
	queue->worth_idling = owner;
}

static struct cfq_owner *cfq_get_owner(struct cfq_state *cfq, u64 id,
				       u64 now_ns)
{
	struct cfq_owner *owner;
	bool fresh;

	owner = container_of(ss_owner_get(&cfq->table, id, &fresh),
			     struct cfq_owner, base);
	/* A number that comes back after an exit is another process's. */
	if (fresh || owner->past.gone) {
		memset(&owner->past, 0, sizeof(owner->past));
		owner->past.last_done_ns = now_ns;
	}
	if (fresh)
		cfq_init_queue(&owner->queue, owner);
	return owner;
}

static void cfq_init(struct ss_policy *policy)
{
	struct cfq_state *cfq = policy->state;
	u32 i;

	cfq->turns = RB_ROOT;
	cfq->near = RB_ROOT;
	cfq_init_queue(&cfq->async, NULL);
	cfq_init_queue(&cfq->shared.queue, &cfq->shared);
	ss_owner_table_init(&cfq->table, &cfq->shared.base);
	for (i = 0; i < SS_OWNERS; i++)
		ss_owner_table_add(&cfq->table, &cfq->owner[i].base);
	cfq->deep = true;
}

static void cfq_arrived(struct ss_policy *policy, struct ss_request *rq,
			u64 now_ns)
{
	struct cfq_state *cfq = policy->state;
	struct cfq_owner *owner = cfq_get_owner(cfq, rq->owner, now_ns);
	struct cfq_queue *queue;

	rq->queue = owner;
	ss_owner_pin(&owner->base);
	queue = cfq_queue_of(cfq, rq);
	rq->expires_ns =
		rq->arrival_ns +
		policy->value[cfq_is_sync(queue) ? CFQ_FIFO_EXPIRE_SYNC :
						   CFQ_FIFO_EXPIRE_ASYNC];
	cfq_add(policy, rq, now_ns);
	cfq_learn_request(policy, &owner->past, rq, now_ns);
	if (cfq_is_sync(queue))
		cfq_weigh_idling(policy, queue);

	if (queue == cfq->active && queue->has_idled) {
		if (cfq->idling && cfq->held && now_ns < cfq->idle_end_ns)
			policy->sched->counters.hits++;
		cfq->idling = false;
		queue->must_send = true;
	} else if (cfq_preempts(cfq, queue, rq, now_ns)) {
		cfq_end_slice(policy, true, now_ns);
		cfq_turns_add(cfq, queue, CFQ_FRONT);
	}
	cfq_settle(policy, now_ns);
}

static struct ss_decision cfq_choose(const struct ss_policy *policy, u64 now_ns,
				     const struct ss_request *skip)
{
	struct cfq_plan plan = cfq_plan(policy, now_ns);

	/* Nothing wraps a policy that waits; only do not give out @skip. */
	if (skip && ss_dispatches(&plan.decision, skip))
		return ss_nothing();
	return plan.decision;
}

static void cfq_dispatched(struct ss_policy *policy, struct ss_request *rq,
			   u64 now_ns)
{
	struct cfq_state *cfq = policy->state;
	struct cfq_queue *queue = cfq_queue_of(cfq, rq);
	struct cfq_plan plan = cfq_plan(policy, now_ns);

	if (ss_dispatches(&plan.decision, rq)) {
		cfq_change_queue(policy, &plan, now_ns);
		if (plan.looked)
			queue->looked = true;
		if (plan.by_age)
			policy->sched->counters.expired++;
	} else if (queue != cfq->active) {
		/* Chosen at an earlier time; it goes all the same. */
		cfq_end_slice(policy, false, now_ns);
		cfq_begin_slice(cfq, queue);
	}

	/* The elevator goes on from where the request before this one ended. */
	cfq_take(policy, rq);
	cfq->head_sector = ss_request_end(rq);
	queue->nr_at_disk++;
	cfq->nr_at_disk++;
	cfq->nr_sync_at_disk += cfq_is_sync(queue);
	cfq->most_at_disk = max_t(u32, cfq->most_at_disk, cfq->nr_at_disk);
	if (!cfq->sender)
		cfq_set_sender(cfq, cfq_owner_of(rq));
	queue->slice_sent++;
	queue->must_send = false;
	if (cfq->nr_busy > 1 && !cfq_is_sync(queue) &&
	    queue->slice_sent >= cfq_async_slice_requests(policy))
		cfq_end_slice(policy, false, now_ns);
	cfq_settle(policy, now_ns);
}

static void cfq_completed(struct ss_policy *policy, struct ss_request *rq,
			  u64 now_ns)
{
	struct cfq_state *cfq = policy->state;
	struct cfq_queue *queue = cfq_queue_of(cfq, rq);
	bool sync = cfq_is_sync(queue);

	cfq_learn_depth(cfq);
	BUG_ON(!cfq->nr_at_disk || !queue->nr_at_disk);
	cfq->nr_at_disk--;
	queue->nr_at_disk--;
	if (sync) {
		cfq->nr_sync_at_disk--;
		cfq_owner_of(rq)->past.last_done_ns = now_ns;
	}
	if (queue == cfq->active) {
		if (queue->slice_new) {
			queue->slice_new = false;
			queue->slice_end_ns = now_ns +
					      cfq_slice_ns(policy, sync,
							   CFQ_PRIORITY);
		}
		if (cfq_slice_over(queue, now_ns))
			cfq_end_slice(policy, true, now_ns);
		else if (sync && !queue->next && !cfq_cooperator(cfq))
			cfq_begin_idling(policy, now_ns);
	}
	ss_owner_unpin(&cfq->table, &cfq_owner_of(rq)->base);
	cfq_settle(policy, now_ns);
}

/* As in Linux: a process's sync requests stand in its own queue. */
static bool cfq_may_merge(const struct ss_policy *policy,
			  const struct ss_request *rq,
			  const struct ss_request *part)
{
	(void)policy;
	return !ss_request_is_sync(rq) || rq->owner == part->owner;
}

static void cfq_merged(struct ss_policy *policy, struct ss_request *rq,
		       u64 old_sector, u64 now_ns)
{
	struct cfq_state *cfq = policy->state;
	struct cfq_queue *queue = cfq_queue_of(cfq, rq);

	(void)now_ns;
	if (rq->sector == old_sector)
		return;
	cfq_near_del(cfq, queue);
	ss_sorted_moved(&queue->sorted, rq);
	queue->next = cfq_better(policy, queue->next, rq);
	cfq_near_add(cfq, queue);
}

static void cfq_joins(struct ss_policy *policy, struct ss_request *rq,
		      const struct ss_request *next)
{
	struct cfq_queue *queue = cfq_queue_of(policy->state, rq);

	(void)next;
	ss_older(&queue->fifo, rq, fifo_node);
}

static void cfq_removed(struct ss_policy *policy, struct ss_request *rq,
			u64 now_ns)
{
	struct cfq_state *cfq = policy->state;

	cfq_take(policy, rq);
	ss_owner_unpin(&cfq->table, &cfq_owner_of(rq)->base);
	cfq_settle(policy, now_ns);
}

/* Its slice, if it has one, is over: nobody is there to use it. */
static void cfq_owner_gone(struct ss_policy *policy, u64 id, u64 now_ns)
{
	struct cfq_state *cfq = policy->state;
	struct ss_owner *base = ss_owner_find(&cfq->table, id);
	struct cfq_owner *owner;

	if (!base)
		return;
	owner = container_of(base, struct cfq_owner, base);
	owner->past.gone = true;
	if (cfq->active == &owner->queue)
		cfq_end_slice(policy, false, now_ns);
	cfq_settle(policy, now_ns);
}

const struct ss_policy_ops ss_cfq_ops = {
	.name = "cfq",
	.help = "a queue and a slice of time for each process (Linux 2.6.31)",
	.flags = SS_USES_OWNER,
	.state_bytes = sizeof(struct cfq_state),
	SS_TUNABLES(cfq_tunables),
	.init = cfq_init,
	.arrived = cfq_arrived,
	.choose = cfq_choose,
	.dispatched = cfq_dispatched,
	.completed = cfq_completed,
	.may_merge = cfq_may_merge,
	.merged = cfq_merged,
	.joins = cfq_joins,
	.removed = cfq_removed,
	.owner_gone = cfq_owner_gone,
};
