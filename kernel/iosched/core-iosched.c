// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler in the block layer: what the block layer does becomes events
 * of sched.h, and what the scheduler decides is done.
 *
 * - One lock for a queue, whatever the number of hardware queues: there is
 *   one head. It is taken with interrupts off, completions come in from there;
 *   what sends requests is called with interrupts on, as bfq relies on, too.
 * - The state of a request lives in an array indexed by the scheduler's tag;
 *   nothing is allocated for a request.
 * - While the head is held the queue says that it has no work, and goes on by
 *   the next arrival, completion or the timer.
 * - A disk with two actuators is two disks that share the drive's tags: each
 *   range of sectors has schedulers of its own, which are asked in turn.
 * - Priority classes are strict: one struct ss_sched for each. A lower class
 *   is asked only when the higher ones have nothing pending or in flight and
 *   their next request is not expected soon (busy_until()). prio_aging_expire
 *   bounds how long a request of a lower class is put off. Within a class
 *   levels and cgroups are weights (weight_of()).
 */
#include "core-iosched.h"

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/ioprio.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <trace/events/block.h>

static enum iosched_class class_of(u16 ioprio)
{
	switch (IOPRIO_PRIO_CLASS(ioprio)) {
	case IOPRIO_CLASS_RT:
		return IOSCHED_CLASS_RT;
	case IOPRIO_CLASS_IDLE:
		return IOSCHED_CLASS_IDLE;
	default:
		return IOSCHED_CLASS_BE;
	}
}

/* What is known of @rq; NULL when it did not come by insert_requests(). */
static struct iosched_rq *slot_of(struct request *rq)
{
	return rq->elv.priv[0];
}

static struct ss_sched *sched_of(struct iosched_data *sd,
				 const struct iosched_rq *slot)
{
	return sd->head[slot->head].class[slot->class].sched;
}

static struct iosched_head *head_of(struct iosched_data *sd, u64 sector)
{
	return &sd->head[ss_heads_of(&sd->heads, sector)];
}

/* Are both of one struct ss_sched? */
static bool is_together(const struct iosched_rq *a, const struct iosched_rq *b)
{
	return a->head == b->head && a->class == b->class;
}

/* ---- leaving and entering the scheduler ---- */

/* @rq can no longer be merged with; it is taken off its list. */
static void leave_lists(struct iosched_data *sd, struct request *rq)
{
	struct request_queue *q = sd->queue;

	list_del_init(&rq->queuelist);
	elv_rqhash_del(q, rq);
	if (q->last_merge == rq)
		q->last_merge = NULL;
}

/* Those of request.h of a read or a write with @opf. */
static u8 flags_of(blk_opf_t opf)
{
	u8 flags = op_is_sync(opf) ? SS_SYNC : 0;

	if (opf & REQ_META)
		flags |= SS_META;
	/*
	 * So ext4 reads the maps of its groups ahead. What XFS reads ahead has
	 * no REQ_PRIO, and what is read ahead of a file is no metadata: for
	 * either somebody comes soon.
	 */
	if (!(~opf & (REQ_META | REQ_PRIO | REQ_RAHEAD)))
		flags |= SS_AHEAD;
	return flags;
}

/*
 * Is it a direct write of the kernel's own? A loop device's worker sends what
 * others write so, and so does who serves a disk to another machine. The
 * journals of ext4 and XFS look alike but for REQ_META: who calls fsync() waits
 * for these.
 */
static bool is_handed_on(blk_opf_t opf)
{
	return op_is_write(opf) && !(~opf & (REQ_SYNC | REQ_IDLE)) &&
	       !(opf & REQ_META) && current->flags & PF_KTHREAD;
}

/* All that a read or a write tells of request.h. */
static u8 flags_with_origin(blk_opf_t opf)
{
	return flags_of(opf) | (is_handed_on(opf) ? SS_HANDED_ON : 0);
}

static u8 all_flags_of(const struct request *rq)
{
	/* A discard is waited for too, but moves no head. */
	if (req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE)
		return 0;
	return flags_with_origin(rq->cmd_flags);
}

/*
 * @class gets a sync request. The time since its last sync completion is a
 * sample of its think time, the mean over all its processes. A sample counts as
 * twice the longest wait at most, so that one long pause does not end waiting.
 */
static void note_think_time(struct iosched_class_data *class, u64 now_ns)
{
	u64 most_ns = 2 * class->sched->curve.mean_random_ns;
	u64 think_ns;

	if (!class->served_ns)
		return;
	think_ns = min_t(u64, now_ns - class->served_ns, most_ns);
	class->served_ns = 0;
	class->think_ns += (think_ns >> IOSCHED_THINK_SHIFT) -
			   (class->think_ns >> IOSCHED_THINK_SHIFT);
}

/*
 * Is it md that checks, copies or reshapes an array? Its thread for that sends
 * what RAID 1 and 10 read so, and nothing else; Linux tells it by no flag. The
 * thread is named after the array, md127_resync, and a name is cut at 15
 * characters. "_re" is enough to know it by: the array's other threads are
 * called after its level, _raid1 or _raid10.
 */
static bool is_resync(void)
{
	const char *work = strrchr(current->comm, '_');
	size_t left = work ? strlen(work) : 0;

	if (!(current->flags & PF_KTHREAD) || left < strlen("_re") ||
	    strncmp(current->comm, "md", 2))
		return false;
	if (strlen(current->comm) < TASK_COMM_LEN - 1)
		return !strcmp(work, "_resync") || !strcmp(work, "_reshape");
	return !strncmp(work, "_resync", left) ||
	       !strncmp(work, "_reshape", left);
}

/*
 * The level of a journal is the file system's own choice (ext4: 3) and the same
 * on every machine: nobody there has given weights.
 */
static u32 level_of(struct request *rq)
{
	u16 ioprio = req_get_ioprio(rq);

	if (IOPRIO_PRIO_CLASS(ioprio) == IOPRIO_CLASS_NONE ||
	    (op_is_write(req_op(rq)) && (rq->cmd_flags & REQ_META)))
		return IOPRIO_BE_NORM;
	return IOPRIO_PRIO_DATA(ioprio) & (IOPRIO_NR_LEVELS - 1);
}

/*
 * Within a class eight levels share as bfq has it, 4 being the usual one: a
 * share falls evenly with them. It is divided once, last.
 */
static u32 weight_of(const struct iosched_data *sd, struct request *rq)
{
	u32 share = is_resync() ? sd->background_weight : 100;
	u64 weight = sd->weight ? sd->weight(sd, rq) : 100;

	weight = div_u64(weight * (IOPRIO_NR_LEVELS - level_of(rq)) * share,
			 (IOPRIO_NR_LEVELS - IOPRIO_BE_NORM) * 100);
	return max_t(u32, weight, 1);
}

static void count_pending(struct iosched_data *sd,
			  const struct iosched_rq *slot, s32 more)
{
	sd->head[slot->head].nr_pending += more;
	WRITE_ONCE(sd->nr_pending, sd->nr_pending + more);
}

static void become_pending(struct iosched_data *sd, struct iosched_rq *slot,
			   struct request *rq, u64 now_ns)
{
	struct request_queue *q = sd->queue;
	struct iosched_head *head = head_of(sd, blk_rq_pos(rq));
	enum req_op op = req_op(rq);
	struct ss_request *ss = &slot->ss;
	struct iosched_class_data *class;

	ss->sector = blk_rq_pos(rq);
	ss->nr_sectors = blk_rq_sectors(rq);
	ss->direction = op_is_write(op) ? SS_WRITE : SS_READ;
	ss->flags = all_flags_of(rq);
	if (sd->placed && rq->bio && rq->bio->bi_end_io == sd->placed)
		ss->flags |= SS_PLACING;
	ss->owner = sd->owner ? sd->owner(rq) : SS_OWNER_NONE;
	ss->weight = weight_of(sd, rq);
	slot->rq = rq;
	slot->class = class_of(req_get_ioprio(rq));
	slot->head = head - sd->head;
	slot->state = IOSCHED_RQ_PENDING;
	slot->epoch = sd->epoch;
	class = &head->class[slot->class];
	list_add_tail(&rq->queuelist, &class->pending);
	count_pending(sd, slot, 1);
	if (ss_request_is_awaited(ss))
		note_think_time(class, now_ns);
	ss_sched_arrived(class->sched, ss, now_ns);
	if (rq_mergeable(rq)) {
		elv_rqhash_add(q, rq);
		if (!q->last_merge)
			q->last_merge = rq;
	}
}

static void insert_one(struct iosched_data *sd, struct request *rq,
		       bool at_head, u64 *now_ns, struct list_head *free)
{
	struct iosched_hctx *sh = rq->mq_hctx->sched_data;
	struct iosched_rq *slot = slot_of(rq);

	if (blk_mq_sched_try_insert_merge(sd->queue, rq, free)) {
		/* That was told at a later time: none may be told before it. */
		*now_ns = iosched_now_ns();
		return;
	}
	trace_block_rq_insert(rq);
	/*
	 * What comes back from the driver has had its turn, and what is no
	 * transfer, or has no tag of the scheduler's, no place here: these go
	 * at once.
	 */
	if (at_head || slot || !blk_rq_sectors(rq) || rq->internal_tag < 0 ||
	    WARN_ON_ONCE(rq->internal_tag >= sh->nr_slots)) {
		if (slot)
			slot->state = IOSCHED_RQ_APART;
		if (at_head)
			list_add(&rq->queuelist, &sd->apart);
		else
			list_add_tail(&rq->queuelist, &sd->apart);
		return;
	}
	slot = &sh->slot[rq->internal_tag];
	rq->elv.priv[0] = slot;
	become_pending(sd, slot, rq, *now_ns);
}

static void iosched_insert_requests(struct blk_mq_hw_ctx *hctx,
				    struct list_head *list, blk_insert_t flags)
{
	struct iosched_data *sd = hctx->queue->elevator->elevator_data;
	bool at_head = flags & BLK_MQ_INSERT_AT_HEAD;
	LIST_HEAD(free);
	u64 now_ns;

	spin_lock_irq(&sd->lock);
	/* They come together: the clock is asked once if none is merged. */
	now_ns = iosched_now_ns();
	while (!list_empty(list)) {
		struct request *rq = list_first_entry(list, struct request,
						      queuelist);

		list_del_init(&rq->queuelist);
		insert_one(sd, rq, at_head, &now_ns, &free);
	}
	/* The block layer asks for the next request after this. */
	WRITE_ONCE(sd->waiting, false);
	spin_unlock_irq(&sd->lock);

	while (!list_empty(&free)) {
		struct request *rq = list_first_entry(&free, struct request,
						      queuelist);

		list_del_init(&rq->queuelist);
		blk_mq_free_request(rq);
	}
}

/* ---- choosing ---- */

/*
 * Until when lower classes wait for @class, which has nothing pending; 0: they
 * need not. While it has requests in flight, until the next completion. Then
 * for its think time: a process that was just served often sends its next
 * request at once, and a lower request in between would cost it a seek. So the
 * wait is at most what a random seek costs, and there is none if the class
 * thinks longer than that or seeks are free.
 */
static u64 busy_until(const struct iosched_data *sd,
		      const struct iosched_class_data *class)
{
	const struct ss_curve *curve = &class->sched->curve;

	if (class->sched->nr_in_flight)
		return SS_FOREVER;
	if (!class->served_ns || sd->seeks_free || curve->flat ||
	    class->think_ns > curve->mean_random_ns)
		return 0;
	return class->served_ns + curve->mean_random_ns;
}

/*
 * A request of a class below @highest that has been put off for too long, or
 * NULL; *@until_ns becomes earlier if one will be before that.
 */
static struct iosched_rq *aged(const struct iosched_data *sd,
			       const struct iosched_head *head, int highest,
			       u64 now_ns, u64 *until_ns)
{
	int i;

	for (i = highest + 1; i < IOSCHED_CLASSES; i++) {
		struct iosched_rq *oldest;
		u64 due_ns;

		if (list_empty(&head->class[i].pending))
			continue;
		oldest = slot_of(list_first_entry(&head->class[i].pending,
						  struct request, queuelist));
		due_ns = oldest->ss.arrival_ns + sd->prio_aging_ns;
		if (now_ns >= due_ns)
			return oldest;
		*until_ns = min_t(u64, *until_ns, due_ns);
	}
	return NULL;
}

static struct ss_decision choose_at(struct iosched_data *sd,
				    const struct iosched_head *head, u64 now_ns)
{
	const struct iosched_class_data *class = head->class;
	u64 until_ns = SS_FOREVER, busy_ns = 0;
	struct ss_decision decision;
	struct iosched_rq *late;
	int i;

	/* The highest class with something pending, or that others wait for. */
	for (i = 0; i < IOSCHED_CLASSES; i++) {
		if (!list_empty(&class[i].pending))
			break;
		busy_ns = busy_until(sd, &class[i]);
		if (busy_ns > now_ns)
			break;
	}
	if (i == IOSCHED_CLASSES)
		return ss_nothing();
	/* Mostly there is no other class that this one could put off. */
	if (class[i].sched->nr_pending == head->nr_pending)
		return ss_sched_choose(class[i].sched, now_ns);
	late = aged(sd, head, i, now_ns, &until_ns);
	if (late) {
		sd->aged++;
		return ss_dispatch(&late->ss);
	}
	if (list_empty(&class[i].pending))
		return ss_wait(min_t(u64, busy_ns, until_ns));
	decision = ss_sched_choose(class[i].sched, now_ns);
	if (decision.verdict == SS_WAIT)
		decision.until_ns = min_t(u64, decision.until_ns, until_ns);
	return decision;
}

static struct ss_decision choose(struct iosched_data *sd, u64 now_ns)
{
	u64 until_ns = SS_FOREVER;
	u32 i;

	for (i = 0; i < sd->heads.nr; i++) {
		const struct iosched_head *head =
			&sd->head[ss_heads_at(&sd->heads, i)];
		struct ss_decision decision;

		if (!head->nr_pending)
			continue;
		decision = choose_at(sd, head, now_ns);
		if (decision.verdict == SS_DISPATCH)
			return decision;
		until_ns = min_t(u64, until_ns, decision.until_ns);
	}
	return ss_wait(until_ns);
}

static void count_wait(struct iosched_data *sd, const struct ss_request *ss)
{
	u64 waited_ns = ss->dispatch_ns - ss->arrival_ns;
	u64 steps = waited_ns >> IOSCHED_WAITS_SHIFT;

	sd->wait_ns[ss->direction] += waited_ns;
	sd->wait_histogram[ss->direction]
			  [min_t(u32, fls64(steps), IOSCHED_WAITS - 1)]++;
}

/* @slot's request goes to the driver, and why. */
static struct request *take(struct iosched_data *sd, struct iosched_rq *slot,
			    enum ss_why why, u64 now_ns)
{
	struct iosched_head *head = &sd->head[slot->head];
	int i;

	leave_lists(sd, slot->rq);
	count_pending(sd, slot, -1);
	ss_heads_sent(&sd->heads, slot->head);
	slot->state = IOSCHED_RQ_IN_FLIGHT;
	if (sd->queue->nr_hw_queues > 1)
		sd->sent = slot->rq;
	if (slot->ss.direction == SS_WRITE)
		sd->wrote = &head->class[slot->class];
	ss_sched_dispatched(sched_of(sd, slot), &slot->ss, why, now_ns);
	count_wait(sd, &slot->ss);
	for (i = 0; i < IOSCHED_CLASSES; i++)
		if (i != slot->class)
			ss_sched_head_taken(head->class[i].sched,
					    ss_request_end(&slot->ss));
	return slot->rq;
}

/*
 * The block layer takes requests until it gets none, then hands them to the
 * driver, each hardware queue's together. To keep them in their order, it gets
 * none where the next is another queue's; then it asks again. It has to be told
 * once only, and need not where the driver has had the last one by now.
 */
static bool ends_batch(struct iosched_data *sd, const struct request *next)
{
	struct request *sent = sd->sent;

	sd->sent = NULL;
	return sent && sent->mq_hctx != next->mq_hctx &&
	       !blk_mq_request_started(sent);
}

static void wait_until(struct iosched_data *sd, u64 until_ns)
{
	WRITE_ONCE(sd->waiting, true);
	if (until_ns == SS_FOREVER || until_ns == sd->timer_ns)
		return;
	sd->timer_ns = until_ns;
	hrtimer_start(&sd->timer, ns_to_ktime(until_ns), HRTIMER_MODE_ABS);
}

static struct request *iosched_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct iosched_data *sd = hctx->queue->elevator->elevator_data;
	struct request *rq = NULL;

	spin_lock_irq(&sd->lock);
	if (!list_empty(&sd->apart)) {
		rq = list_first_entry(&sd->apart, struct request, queuelist);
		list_del_init(&rq->queuelist);
	} else if (sd->nr_pending) {
		u64 now_ns = iosched_now_ns();
		struct ss_decision decision = choose(sd, now_ns);

		if (decision.verdict == SS_DISPATCH) {
			struct iosched_rq *slot = container_of(
				decision.rq, struct iosched_rq, ss);

			if (!ends_batch(sd, slot->rq))
				rq = take(sd, slot, decision.why, now_ns);
		} else {
			wait_until(sd, decision.until_ns);
		}
	}
	spin_unlock_irq(&sd->lock);
	return rq;
}

static bool iosched_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct iosched_data *sd = hctx->queue->elevator->elevator_data;

	return !list_empty_careful(&sd->apart) ||
	       (READ_ONCE(sd->nr_pending) && !READ_ONCE(sd->waiting));
}

static enum hrtimer_restart iosched_timer(struct hrtimer *timer)
{
	struct iosched_data *sd = container_of(timer, struct iosched_data,
					       timer);
	unsigned long irq;

	spin_lock_irqsave(&sd->lock, irq);
	sd->timer_ns = SS_FOREVER;
	WRITE_ONCE(sd->waiting, false);
	spin_unlock_irqrestore(&sd->lock, irq);
	blk_mq_run_hw_queues(sd->queue, true);
	return HRTIMER_NORESTART;
}

void iosched_kick(struct iosched_data *sd)
{
	unsigned long irq;

	spin_lock_irqsave(&sd->lock, irq);
	WRITE_ONCE(sd->waiting, false);
	spin_unlock_irqrestore(&sd->lock, irq);
	blk_mq_run_hw_queues(sd->queue, true);
}

void iosched_kick_locked(struct iosched_data *sd)
{
	lockdep_assert_held(&sd->lock);
	if (sd->waiting)
		wait_until(sd, iosched_now_ns());
}

/* ---- the rest of a request's life ---- */

void iosched_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
}

/*
 * When something of @sched is done. The clock is not asked where nobody wants
 * to know: no class, no policy, and the disk does not begin to idle.
 */
static u64 completion_ns(const struct iosched_data *sd,
			 const struct ss_sched *sched,
			 const struct ss_request *ss)
{
	if (!sd->seeks_free || sched->policy[0].ops->completed ||
	    sched->coordinator || sched->alone == ss ||
	    (sched->nr_in_flight == 1 && sched->nr_pending))
		return iosched_now_ns();
	return sched->now_ns;
}

/* @rq is with the driver no longer; @served: the disk has done it. */
static void leave_driver(struct request *rq, bool served)
{
	struct iosched_data *sd = rq->q->elevator->elevator_data;
	struct iosched_rq *slot = slot_of(rq);
	bool kick = false;
	unsigned long irq;

	if (!slot)
		return;
	spin_lock_irqsave(&sd->lock, irq);
	if (slot->state == IOSCHED_RQ_IN_FLIGHT && slot->epoch == sd->epoch) {
		struct ss_sched *sched = sched_of(sd, slot);
		u64 now_ns = completion_ns(sd, sched, &slot->ss);

		if (served) {
			if (ss_request_is_awaited(&slot->ss))
				sd->head[slot->head]
					.class[slot->class]
					.served_ns = now_ns;
			ss_sched_completed(sched, &slot->ss, now_ns);
		} else {
			ss_sched_returned(sched, &slot->ss, now_ns);
			sd->returned++;
		}
	}
	slot->state = IOSCHED_RQ_NEW;
	if (sd->sent == rq)
		sd->sent = NULL;
	if (sd->waiting) {
		WRITE_ONCE(sd->waiting, false);
		kick = true;
	}
	spin_unlock_irqrestore(&sd->lock, irq);
	if (kick)
		blk_mq_run_hw_queues(sd->queue, true);
}

void iosched_finish_request(struct request *rq)
{
	leave_driver(rq, true);
	rq->elv.priv[0] = NULL;
}

static void iosched_requeue_request(struct request *rq)
{
	/* It keeps its slot, by which insert_one() knows it again. */
	leave_driver(rq, false);
}

/* ---- merging ---- */

static bool iosched_allow_merge(struct request_queue *q, struct request *rq,
				struct bio *bio)
{
	const struct iosched_rq *slot = slot_of(rq);
	u8 differ = flags_of(rq->cmd_flags) ^ flags_of(bio->bi_opf);

	/* What somebody waits for and what nobody does go different ways. */
	if (differ & (SS_SYNC | SS_AHEAD))
		return false;
	/* A loop device's write does not merge with another writer's. */
	return !slot ||
	       !(slot->ss.flags & SS_HANDED_ON) == !is_handed_on(bio->bi_opf);
}

static int iosched_request_merge(struct request_queue *q, struct request **rq,
				 struct bio *bio)
{
	struct iosched_data *sd = q->elevator->elevator_data;
	struct iosched_head *head = head_of(sd, bio->bi_iter.bi_sector);
	struct ss_request *found;
	struct request *into;

	if (bio_op(bio) != REQ_OP_READ && bio_op(bio) != REQ_OP_WRITE)
		return ELEVATOR_NO_MERGE;
	/* The block layer has looked for one to put it behind. */
	found = ss_sched_find_front(head->class[class_of(bio->bi_ioprio)].sched,
				    bio_end_sector(bio),
				    bio_op(bio) == REQ_OP_WRITE ? SS_WRITE :
								  SS_READ,
				    flags_with_origin(bio->bi_opf));
	if (!found)
		return ELEVATOR_NO_MERGE;
	into = container_of(found, struct iosched_rq, ss)->rq;
	if (!rq_mergeable(into) || !elv_bio_merge_ok(into, bio))
		return ELEVATOR_NO_MERGE;
	*rq = into;
	return ELEVATOR_FRONT_MERGE;
}

static bool iosched_bio_merge(struct request_queue *q, struct bio *bio,
			      unsigned int nr_segs)
{
	struct iosched_data *sd = q->elevator->elevator_data;
	struct request *free = NULL;
	bool merged;

	/* A device that keeps up leaves nothing to merge with. */
	if (!READ_ONCE(sd->nr_pending))
		return false;
	spin_lock_irq(&sd->lock);
	merged = blk_mq_sched_try_merge(q, bio, nr_segs, &free);
	spin_unlock_irq(&sd->lock);
	if (free)
		blk_mq_free_request(free);
	return merged;
}

/* Pending @slot now reaches from @sector to @end, by what has @flags. */
static void grow(struct iosched_data *sd, struct iosched_rq *slot, u64 sector,
		 u64 end, u8 flags)
{
	struct ss_request *ss = &slot->ss;
	struct ss_request part = *ss;

	part.flags = flags;
	if (sector < ss->sector) {
		part.sector = sector;
		part.nr_sectors = ss->sector - sector;
		ss_sched_merged(sched_of(sd, slot), ss, &part,
				iosched_now_ns());
	}
	if (end > ss_request_end(ss)) {
		part.sector = ss_request_end(ss);
		part.nr_sectors = end - ss_request_end(ss);
		ss_sched_merged(sched_of(sd, slot), ss, &part,
				iosched_now_ns());
	}
}

static bool is_pending(const struct iosched_rq *slot)
{
	return slot && slot->state == IOSCHED_RQ_PENDING;
}

static void iosched_request_merged(struct request_queue *q, struct request *rq,
				   enum elv_merge type)
{
	struct iosched_data *sd = q->elevator->elevator_data;
	struct iosched_rq *slot = slot_of(rq);

	lockdep_assert_held(&sd->lock);
	if (is_pending(slot))
		grow(sd, slot, blk_rq_pos(rq),
		     blk_rq_pos(rq) + blk_rq_sectors(rq), slot->ss.flags);
}

/*
 * @rq has taken in @next, which may be pending or just coming in. A bio that
 * was merged with one of them just before has not been reported by itself.
 */
static void iosched_requests_merged(struct request_queue *q, struct request *rq,
				    struct request *next)
{
	struct iosched_data *sd = q->elevator->elevator_data;
	struct iosched_rq *slot = slot_of(rq);
	struct iosched_rq *gone = slot_of(next);
	u8 flags;

	lockdep_assert_held(&sd->lock);
	if (!is_pending(gone)) {
		/* Here nobody has asked iosched_allow_merge(). */
		flags = all_flags_of(next);
	} else {
		flags = gone->ss.flags;
		grow(sd, gone, blk_rq_pos(next), 0, flags);
		/* Of two of one class the place by age is the older one's. */
		if (is_pending(slot) && is_together(slot, gone) &&
		    gone->ss.arrival_ns < slot->ss.arrival_ns)
			list_move(&rq->queuelist, &next->queuelist);
		leave_lists(sd, next);
		count_pending(sd, gone, -1);
		gone->state = IOSCHED_RQ_NEW;
		if (is_pending(slot) && is_together(slot, gone)) {
			grow(sd, slot, blk_rq_pos(rq), blk_rq_pos(next),
			     slot->ss.flags);
			ss_sched_joined(sched_of(sd, slot), &slot->ss,
					&gone->ss, iosched_now_ns());
		} else {
			ss_sched_removed(sched_of(sd, gone), &gone->ss,
					 iosched_now_ns());
		}
	}
	if (is_pending(slot))
		grow(sd, slot, blk_rq_pos(rq),
		     blk_rq_pos(rq) + blk_rq_sectors(rq), flags);
}

static struct request *iosched_former_request(struct request_queue *q,
					      struct request *rq)
{
	struct iosched_data *sd = q->elevator->elevator_data;
	struct iosched_rq *slot = slot_of(rq);
	struct ss_request *found;

	if (!is_pending(slot))
		return NULL;
	found = ss_sched_pending_before(sched_of(sd, slot), blk_rq_pos(rq));
	if (!found || found == &slot->ss ||
	    found->direction != slot->ss.direction ||
	    found->flags != slot->ss.flags)
		return NULL;
	return container_of(found, struct iosched_rq, ss)->rq;
}

static struct request *iosched_next_request(struct request_queue *q,
					    struct request *rq)
{
	struct iosched_data *sd = q->elevator->elevator_data;
	struct iosched_rq *slot = slot_of(rq);
	struct ss_request whole, *found;

	if (!is_pending(slot))
		return NULL;
	/* The core may not have been told yet how long it has become. */
	whole = slot->ss;
	whole.sector = blk_rq_pos(rq);
	whole.nr_sectors = blk_rq_sectors(rq);
	found = ss_sched_find_join(sched_of(sd, slot), &whole, U32_MAX);
	if (!found || found == &slot->ss)
		return NULL;
	return container_of(found, struct iosched_rq, ss)->rq;
}

const char *iosched_name_of(const struct iosched_data *sd,
			    const struct ss_sched *sched)
{
	static const char *const name[SS_HEADS][IOSCHED_CLASSES] = {
		{ "rt", "be", "idle" },
		{ "rt2", "be2", "idle2" },
	};
	u32 i;

	for (i = 0; i < SS_HEADS * IOSCHED_CLASSES - 1; i++)
		if (sd->head[i / IOSCHED_CLASSES]
			    .class[i % IOSCHED_CLASSES]
			    .sched == sched)
			break;
	return name[i / IOSCHED_CLASSES][i % IOSCHED_CLASSES];
}

/* ---- the queue's life ---- */

/* So many struct ss_sched there are at most. */
#define MAX_SCHEDS (SS_HEADS * IOSCHED_CLASSES)

static void free_scheds(struct ss_sched **sched)
{
	int i;

	for (i = 0; i < MAX_SCHEDS; i++)
		kvfree(sched[i]);
}

static u64 span_sectors(const struct iosched_data *sd)
{
	u64 span = sd->queue->disk ? get_capacity(sd->queue->disk) : 0;

	/* Not known yet: as good as any, the curve is learned. */
	return span ? div_u64(span, sd->heads.nr) : 1ULL << 31;
}

/* Take over what the old scheduler knows and has pending. */
static void take_over(struct iosched_data *sd, struct iosched_class_data *class,
		      struct ss_sched *fresh)
{
	struct ss_sched *old = class->sched;
	struct request *rq;
	u64 now_ns = iosched_now_ns();

	if (old) {
		fresh->curve = old->curve;
		fresh->head_sector = old->head_sector;
	}
	class->sched = fresh;
	if (sd->begin)
		sd->begin(sd, fresh, now_ns);
	list_for_each_entry(rq, &class->pending, queuelist) {
		struct iosched_rq *slot = slot_of(rq);

		slot->epoch = sd->epoch;
		ss_sched_taken_over(fresh, &slot->ss, now_ns);
	}
}

int iosched_restart(struct iosched_data *sd, const char *spec, char *why,
		    size_t why_bytes)
{
	struct ss_sched *fresh[MAX_SCHEDS] = {}, **next = fresh;
	unsigned long irq;
	unsigned int noio;
	u32 i;
	int ret = 0;

	/* The queue may be frozen: memory must be had without it. */
	noio = memalloc_noio_save();
	for (i = 0; i < sd->heads.nr * IOSCHED_CLASSES && !ret; i++) {
		fresh[i] = kvmalloc_obj(*fresh[i]);
		ret = fresh[i] ? ss_sched_init(fresh[i], spec, span_sectors(sd),
					       why, why_bytes) :
				 -ENOMEM;
		if (!fresh[i])
			strscpy(why, "out of memory", why_bytes);
	}
	memalloc_noio_restore(noio);
	if (ret) {
		free_scheds(fresh);
		return ret;
	}
	spin_lock_irqsave(&sd->lock, irq);
	sd->epoch++;
	iosched_for_each_class(sd, class) {
		struct ss_sched *old = class->sched;

		take_over(sd, class, *next);
		*next++ = old;
	}
	WRITE_ONCE(sd->waiting, false);
	spin_unlock_irqrestore(&sd->lock, irq);
	free_scheds(fresh);
	return 0;
}

void iosched_prepare(struct iosched_data *sd, struct request_queue *q)
{
	sd->queue = q;
	spin_lock_init(&sd->lock);
	sd->heads.nr = SS_HEADS;
	iosched_for_each_class(sd, class)
		INIT_LIST_HEAD(&class->pending);
	sd->heads.nr = 1;
	INIT_LIST_HEAD(&sd->apart);
	sd->timer_ns = SS_FOREVER;
	hrtimer_setup(&sd->timer, iosched_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
	sd->prio_aging_ns = IOSCHED_PRIO_AGING_NS;
	sd->background_weight = IOSCHED_BACKGROUND_WEIGHT;
}

void iosched_start(struct elevator_queue *eq, struct iosched_data *sd)
{
	eq->elevator_data = sd;
	/* Not the core but the scheduler sets it, and init_hctx needs it. */
	sd->queue->elevator = eq;
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, sd->queue);
}

void iosched_stop(struct iosched_data *sd)
{
	hrtimer_cancel(&sd->timer);
	WARN_ON_ONCE(!list_empty(&sd->apart));
	WARN_ON_ONCE(sd->nr_pending);
	iosched_for_each_class(sd, class) {
		WARN_ON_ONCE(!list_empty(&class->pending));
		kvfree(class->sched);
	}
}

static struct iosched_rq *alloc_slots(u32 nr, int node)
{
	unsigned int noio = memalloc_noio_save();
	struct iosched_rq *slot;

	slot = kvmalloc_node(array_size(nr, sizeof(*slot)),
			     GFP_KERNEL | __GFP_ZERO, node);
	memalloc_noio_restore(noio);
	return slot;
}

/* Have slots for all of @hctx's tags; false: no memory, nothing changed. */
static bool grow_slots(struct iosched_hctx *sh,
		       const struct blk_mq_hw_ctx *hctx)
{
	u32 nr_tags = hctx->sched_tags->nr_tags;
	struct iosched_rq *slot;

	if (nr_tags <= sh->nr_slots)
		return true;
	slot = alloc_slots(nr_tags, hctx->numa_node);
	if (!slot)
		return false;
	kvfree(sh->slot);
	sh->slot = slot;
	sh->nr_slots = nr_tags;
	return true;
}

/* A quarter of the tags stays for readers, an eighth for fsync(). */
static u32 usual_async_depth(u32 depth)
{
	return max_t(u32, depth - depth / 4 - depth / 8, 1);
}

/* How many of the scheduler's tags there are to take. */
static u32 sched_depth(struct blk_mq_hw_ctx *hctx)
{
	return hctx->sched_tags->bitmap_tags.sb.depth;
}

/*
 * Take no tag of @nr or more, as when nr_requests becomes less; false: none
 * could be.
 */
static bool limit_tags(struct blk_mq_hw_ctx *hctx, u32 nr)
{
	u32 depth = nr - hctx->sched_tags->nr_reserved_tags;

	if (sched_depth(hctx) <= depth)
		return false;
	sbitmap_queue_resize(&hctx->sched_tags->bitmap_tags, depth);
	return true;
}

/*
 * queue/async_depth, how many of the tags asynchronous requests may take. A
 * scheduler sets what is usual for it; the kernel keeps the proportion when
 * nr_requests changes.
 */
static void set_async_depth(struct request_queue *q, u32 usual)
{
#ifdef HAVE_ASYNC_DEPTH
	q->async_depth = usual;
#endif
}

static u32 async_depth(struct request_queue *q, u32 usual)
{
#ifdef HAVE_ASYNC_DEPTH
	usual = q->async_depth;
#endif
	return usual;
}

/*
 * The number of requests has changed; none is there now. The queue's own
 * number may not have been told yet, the tags have. This cannot fail: where
 * memory lacks, no more tags are used than there were, until the next change.
 * Also called where queue/async_depth has changed.
 */
static void iosched_depth_updated(struct request_queue *q)
{
	struct iosched_data *sd = q->elevator->elevator_data;
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i) {
		struct iosched_hctx *sh = hctx->sched_data;
		u32 depth;

		if (!hctx->sched_tags || !sh)
			continue;
		if (!grow_slots(sh, hctx) && limit_tags(hctx, sh->nr_slots))
			pr_err("%s: %s: nr_requests: out of memory, %u stay in use\n",
			       q->elevator->type->elevator_name,
			       q->disk ? q->disk->disk_name : "?",
			       sh->nr_slots);
		depth = sched_depth(hctx);
		/* The kernel's own proportion is rough for a few requests. */
		if (depth != sd->depth &&
		    (!sd->depth ||
		     sd->async_depth == usual_async_depth(sd->depth)))
			set_async_depth(q, usual_async_depth(depth));
		sd->depth = depth;
		sd->async_depth = async_depth(q, usual_async_depth(depth));
		sd->write_depth = min(sd->async_depth + depth / 8, depth);
		COMPAT_SHALLOW(sd->write_depth) = compat_shallow_depth(
			hctx, sd->write_depth);
		COMPAT_SHALLOW(sd->async_depth) = compat_shallow_depth(
			hctx, sd->async_depth);
		sbitmap_queue_min_shallow_depth(
			&hctx->sched_tags->bitmap_tags,
			COMPAT_SHALLOW(sd->async_depth));
	}
}

static int iosched_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct request_queue *q = hctx->queue;
	struct iosched_hctx *sh;

	sh = kzalloc_node(sizeof(*sh), GFP_NOIO, hctx->numa_node);
	if (!sh)
		return -ENOMEM;
	sh->nr_slots = hctx->sched_tags->nr_tags;
	sh->slot = alloc_slots(sh->nr_slots, hctx->numa_node);
	if (!sh->slot) {
		kfree(sh);
		return -ENOMEM;
	}
	hctx->sched_data = sh;
	iosched_depth_updated(q);
	return 0;
}

static void iosched_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct iosched_hctx *sh = hctx->sched_data;

	if (!sh)
		return;
	kvfree(sh->slot);
	kfree(sh);
	hctx->sched_data = NULL;
}

/*
 * Whoever has much to write, also with fsync(), must leave tags to readers: as
 * in mq-deadline, only a read that somebody waits for may take the last. And
 * what nobody waits for, or may not, leaves some to writes that somebody does.
 */
static void iosched_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct iosched_data *sd = data->q->elevator->elevator_data;
	bool awaited = op_is_sync(opf) && !(flags_of(opf) & SS_AHEAD);

	if (!op_is_write(opf) && awaited)
		return;
	data->shallow_depth =
		awaited && !is_handed_on(opf) ?
			READ_ONCE(COMPAT_SHALLOW(sd->write_depth)) :
			READ_ONCE(COMPAT_SHALLOW(sd->async_depth));
}

COMPAT_WRAP_INSERT(iosched_insert_requests)
COMPAT_WRAP_DEPTH(iosched_depth_updated)

const struct elevator_mq_ops iosched_ops = {
	.init_hctx = iosched_init_hctx,
	.exit_hctx = iosched_exit_hctx,
	.depth_updated = COMPAT_DEPTH(iosched_depth_updated),
	.limit_depth = iosched_limit_depth,
	.allow_merge = iosched_allow_merge,
	.bio_merge = iosched_bio_merge,
	.request_merge = iosched_request_merge,
	.request_merged = iosched_request_merged,
	.requests_merged = iosched_requests_merged,
	.former_request = iosched_former_request,
	.next_request = iosched_next_request,
	.prepare_request = iosched_prepare_request,
	.insert_requests = COMPAT_INSERT(iosched_insert_requests),
	.dispatch_request = iosched_dispatch_request,
	.has_work = iosched_has_work,
	.requeue_request = iosched_requeue_request,
	.finish_request = iosched_finish_request,
};
