// SPDX-License-Identifier: GPL-2.0-only
/*
 * historic: the schedulers of Linux 2.4 and 2.6, and cooperative, as blk-mq
 * schedulers of a kernel of today, for comparisons under real programs.
 *
 * They decide by who sent a request. That is its task's io_context, as it was
 * in these kernels: each thread has its own unless it was cloned with
 * CLONE_IO, and the block layer's threads that send for others, as those of a
 * loop device do, are somebody by themselves. The block layer keeps a record
 * of ours for each io_context on each queue (struct io_cq), and tells when an
 * io_context goes, which ends all waiting for it.
 *
 * The policies are those of core/, with their defaults; core-iosched.c is
 * their host.
 */
#include "core-iosched.h"

#include <linux/atomic.h>
#include <linux/blkdev.h>
#include <linux/iocontext.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

/* One io_context on one queue. */
struct historic_icq {
	struct io_cq icq; /* the first */
	u64 owner; /* a number that no other one ever has */
};

static atomic64_t owners = ATOMIC64_INIT(SS_OWNER_NONE);

/* Below the queue's lock and the io_context's. */
static void historic_init_icq(struct io_cq *icq)
{
	struct historic_icq *ours = container_of(icq, struct historic_icq, icq);

	ours->owner = atomic64_inc_return(&owners);
}

/* The queue has its scheduler until all of its icqs are gone. */
static void historic_exit_icq(struct io_cq *icq)
{
	struct historic_icq *ours = container_of(icq, struct historic_icq, icq);
	struct iosched_data *sd = icq->q->elevator->elevator_data;
	unsigned long irq;

	spin_lock_irqsave(&sd->lock, irq);
	iosched_for_each_class(sd, class)
		ss_sched_owner_gone(class->sched, ours->owner,
				    iosched_now_ns());
	/* It may have been waited for. */
	iosched_kick_locked(sd);
	spin_unlock_irqrestore(&sd->lock, irq);
}

/* Called in the context of who sends @rq; without memory nobody does. */
static void historic_prepare_request(struct request *rq)
{
	iosched_prepare_request(rq);
	rq->elv.icq = ioc_find_get_icq(rq->q);
}

static void historic_finish_request(struct request *rq)
{
	iosched_finish_request(rq);
	if (rq->elv.icq) {
		put_io_context(rq->elv.icq->ioc);
		rq->elv.icq = NULL;
	}
}

static u64 owner_of(const struct request *rq)
{
	const struct io_cq *icq = rq->elv.icq;

	return icq ? container_of(icq, struct historic_icq, icq)->owner :
		     SS_OWNER_NONE;
}

/* mq-deadline answers to the name of deadline. */
static const struct {
	const char *elevator;
	const char *policy;
} historic[] = {
	{ "noop", "noop" },
	{ "linus", "linus" },
	{ "deadline-2.6", "deadline" },
	{ "anticipatory", "anticipatory" },
	{ "cfq", "cfq" },
	{ "cooperative", "cooperative" },
};

static const char *policy_of(const struct elevator_type *type)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(historic); i++)
		if (!strcmp(type->elevator_name, historic[i].elevator))
			return historic[i].policy;
	return "";
}

static int historic_init_sched(struct request_queue *q,
			       struct elevator_queue *eq)
{
	struct iosched_data *sd;
	char why[160];
	int ret;

	sd = kvzalloc_node(sizeof(*sd), GFP_NOIO, q->node);
	if (!sd)
		return -ENOMEM;
	iosched_prepare(sd, q);
	sd->owner = owner_of;
	ret = iosched_restart(sd, policy_of(eq->type), why, sizeof(why));
	if (ret) {
		pr_err("historic-iosched: %s: %s\n",
		       q->disk ? q->disk->disk_name : "?", why);
		kvfree(sd);
		return ret;
	}
	iosched_start(eq, sd);
	return 0;
}

static void historic_exit_sched(struct elevator_queue *eq)
{
	struct iosched_data *sd = eq->elevator_data;

	iosched_stop(sd);
	kvfree(sd);
}

COMPAT_WRAP_INIT(historic_init_sched)

static struct elevator_type elevator[ARRAY_SIZE(historic)];

static void fill(struct elevator_type *type, const char *name)
{
	type->ops = iosched_ops;
	type->ops.init_sched = COMPAT_INIT(historic_init_sched);
	type->ops.exit_sched = historic_exit_sched;
	type->ops.init_icq = historic_init_icq;
	type->ops.exit_icq = historic_exit_icq;
	type->ops.prepare_request = historic_prepare_request;
	type->ops.finish_request = historic_finish_request;
	type->icq_size = sizeof(struct historic_icq);
	type->icq_align = __alignof__(struct historic_icq);
#ifdef CONFIG_BLK_DEBUG_FS
	type->queue_debugfs_attrs = iosched_debugfs_attrs;
#endif
	type->elevator_name = name;
	type->elevator_owner = THIS_MODULE;
}

static int __init historic_init(void)
{
	int ret = compat_init(), i;

	for (i = 0; i < ARRAY_SIZE(historic) && !ret; i++) {
		fill(&elevator[i], historic[i].elevator);
		ret = elv_register(&elevator[i]);
		if (ret)
			while (i)
				elv_unregister(&elevator[--i]);
	}
	return ret;
}

static void __exit historic_exit(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(historic); i++)
		elv_unregister(&elevator[i]);
}

module_init(historic_init);
module_exit(historic_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("I/O schedulers of Linux 2.4 and 2.6, for comparisons");
