// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flushes of the drive's cache. The block layer sends them past its scheduler
 * and tells it nothing, so this listens where they are traced: when a request
 * is given to the driver, and when it ends. A hardware queue has one flush at a
 * time. It is of the class whose write was sent last.
 *
 * Tracing is with preemption off, where a real-time kernel may take no lock of
 * the scheduler's: there, as without tracepoints, flushes are not seen.
 */
#include "core-iosched.h"

#include <linux/blkdev.h>

#include <trace/events/block.h>

static bool listens;

/* Whose flush @rq is; NULL: it is none, or nobody here wants to know. */
static struct iosched_data *flush_of(const struct request *rq)
{
	const struct elevator_queue *eq = rq->q->elevator;
	struct iosched_data *sd;

	if (req_op(rq) != REQ_OP_FLUSH || !eq ||
	    eq->type->ops.insert_requests != iosched_ops.insert_requests)
		return NULL;
	sd = eq->elevator_data;
	return sd->seeks_free ? NULL : sd;
}

/*
 * @rq @begins or ends. What the driver has returned begins anew: it has not
 * ended in between.
 */
static void flush_is(const struct request *rq, bool begins)
{
	struct iosched_data *sd = flush_of(rq);
	struct iosched_hctx *sh;
	unsigned long irq;

	if (!sd)
		return;
	sh = rq->mq_hctx->sched_data;
	spin_lock_irqsave(&sd->lock, irq);
	if (!begins) {
		if (sh->flushing && sh->flush_epoch == sd->epoch)
			ss_sched_flushes(sh->flushing->sched, false,
					 iosched_now_ns());
		sd->flushes += !!sh->flushing;
		sh->flushing = NULL;
	} else if (sd->wrote && !sh->flushing) {
		sh->flushing = sd->wrote;
		sh->flush_epoch = sd->epoch;
		ss_sched_flushes(sd->wrote->sched, true, iosched_now_ns());
	}
	spin_unlock_irqrestore(&sd->lock, irq);
	if (!begins)
		iosched_kick(sd);
}

static void flush_begins(void *unused, struct request *rq)
{
	flush_is(rq, true);
}

static void flush_ends(void *unused, struct request *rq, blk_status_t error,
		       unsigned int nr_bytes)
{
	flush_is(rq, false);
}

void iosched_flushes_listen(void)
{
	int ret = IS_ENABLED(CONFIG_PREEMPT_RT) ? -EOPNOTSUPP : 0;

	if (!ret)
		ret = COMPAT_TRACE(register_trace_block_rq_issue)(flush_begins,
								  NULL);
	if (ret)
		goto deaf;
	ret = COMPAT_TRACE(register_trace_block_rq_complete)(flush_ends, NULL);
	listens = !ret;
	if (listens)
		return;
	COMPAT_TRACE(unregister_trace_block_rq_issue)(flush_begins, NULL);
deaf:
	pr_info("stream: flushes are not seen on this kernel, so nobody is charged for them (error %d)\n",
		ret);
}

void iosched_flushes_ignore(void)
{
	if (!listens)
		return;
	COMPAT_TRACE(unregister_trace_block_rq_issue)(flush_begins, NULL);
	COMPAT_TRACE(unregister_trace_block_rq_complete)(flush_ends, NULL);
	tracepoint_synchronize_unregister();
}
