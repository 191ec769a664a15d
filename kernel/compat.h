/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The block layer as the newest kernel has it, and under its names, on every
 * kernel from 6.1 on: the only file here that asks for a version. What
 * distributions' headers leave out comes from private.h, made for the kernel
 * that is built for.
 *
 * The series for mainline Linux is made without this file: HAVE_... is true
 * there, COMPAT_WRAP_...() nothing and COMPAT_...(x) x.
 */
#ifndef STREAMSCHED_COMPAT_H
#define STREAMSCHED_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/slab.h>
#include <linux/version.h>

/* 6.13 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define hrtimer_setup(timer, handler, clock, mode)                             \
	do {                                                                   \
		hrtimer_init(timer, clock, mode);                              \
		(timer)->function = handler;                                   \
	} while (0)
#endif

/* 7.0 */
#ifndef kmalloc_obj
#define kmalloc_obj(obj, gfp) kmalloc(sizeof(obj), gfp)
#define kvmalloc_obj(obj) kvmalloc(sizeof(obj), GFP_KERNEL)
#endif

/* ---- for the scheduler ---- */
#ifdef COMPAT_SCHEDULER

struct blk_mq_alloc_data;
#include "private.h"

#include <linux/sbitmap.h>

/* 6.4: flags instead of a bool. */
#ifndef HAVE_BLK_INSERT_T
typedef unsigned int blk_insert_t;
#define BLK_MQ_INSERT_AT_HEAD 1
#define COMPAT_WRAP_INSERT(insert)                                             \
	static void compat_##insert(struct blk_mq_hw_ctx *hctx,                \
				    struct list_head *list, bool at_head)      \
	{                                                                      \
		insert(hctx, list, at_head ? BLK_MQ_INSERT_AT_HEAD : 0);       \
	}
#define COMPAT_INSERT(insert) compat_##insert
#else
#ifndef BLK_MQ_INSERT_AT_HEAD
#define BLK_MQ_INSERT_AT_HEAD ((__force blk_insert_t)0x01)
#endif
#define COMPAT_WRAP_INSERT(insert)
#define COMPAT_INSERT(insert) insert
#endif

/* 6.17: the block layer allocates the elevator_queue. */
#ifdef HAVE_ELEVATOR_ALLOC
static inline int compat_init_with(
	struct request_queue *q, struct elevator_type *type,
	int (*init)(struct request_queue *, struct elevator_queue *))
{
	struct elevator_queue *eq = elevator_alloc(q, type);
	int ret;

	if (!eq)
		return -ENOMEM;
	ret = init(q, eq);
	if (ret)
		kobject_put(&eq->kobj);
	else
		q->elevator = eq;
	return ret;
}

#define COMPAT_WRAP_INIT(init)                                                 \
	static int compat_##init(struct request_queue *q,                      \
				 struct elevator_type *type)                   \
	{                                                                      \
		return compat_init_with(q, type, init);                        \
	}
#define COMPAT_INIT(init) compat_##init
#else
#define COMPAT_WRAP_INIT(init)
#define COMPAT_INIT(init) init
#endif

/* 6.18: depth_updated is told of the queue, not of each hardware queue. */
#define COMPAT_WRAP_DEPTH(updated)                                             \
	static void __maybe_unused compat_##updated(                           \
		struct blk_mq_hw_ctx *hctx)                                    \
	{                                                                      \
		updated(hctx->queue);                                          \
	}
#define COMPAT_DEPTH(updated)                                                  \
	_Generic(((struct elevator_mq_ops *)NULL)->depth_updated,              \
		void (*)(struct blk_mq_hw_ctx *): compat_##updated,            \
		void (*)(struct request_queue *): updated)

/* The table of sysfs files became const. */
#define COMPAT_ATTRS(attrs)                                                    \
	((typeof_member(struct elevator_type, elevator_attrs))(attrs))

/* 6.18 */
#if defined(blk_queue_nonrot) && !defined(blk_queue_rot)
#define blk_queue_rot(q) (!blk_queue_nonrot(q))
#endif

/*
 * 6.15: a queue's scheduler changes under a lock of its own, and from 6.16 on
 * its files in debugfs go only after it. Whoever reads one must not wait for
 * the lock: in between, who held it waited for those who read. And who sets a
 * scheduler does not hold the lock of the disk's ranges any more.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define HAVE_ELEVATOR_LOCK
#endif

/* Whether another request or bio may be joined to @rq. */
static inline bool compat_rq_mergeable(const struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
	case REQ_OP_DISCARD:
		return !(rq->cmd_flags & REQ_NOMERGE_FLAGS) &&
		       !(rq->rq_flags & RQF_NOMERGE_FLAGS);
	default:
		return false;
	}
}
#define rq_mergeable compat_rq_mergeable

/*
 * Only what is linked into the kernel may name a tracepoint that is not
 * exported, but a module may find it. Its probe's type is checked all the same.
 */
int compat_trace(const char *event, void *probe, bool listen);
#define compat_trace_checked(event, probe, listen)                             \
	(check_trace_callback_type_##event(probe),                             \
	 compat_trace(#event, probe, listen))
#define compat_register_trace_block_rq_issue(probe, data)                      \
	compat_trace_checked(block_rq_issue, probe, true)
#define compat_unregister_trace_block_rq_issue(probe, data)                    \
	compat_trace_checked(block_rq_issue, probe, false)
#define compat_register_trace_block_rq_complete(probe, data)                   \
	compat_trace_checked(block_rq_complete, probe, true)
#define compat_unregister_trace_block_rq_complete(probe, data)                 \
	compat_trace_checked(block_rq_complete, probe, false)
#define COMPAT_TRACE(call) compat_##call

/*
 * How many tags a request with a shallow depth may take used to be said for
 * each word of the tags' bitmap, and came to be said for all of them; stable
 * kernels took the change over, so it is found out by trying.
 */
extern bool compat_shallow_is_total;
int compat_init(void);

/* What limit_depth has to set for @depth of the scheduler's tags. */
static inline u32 compat_shallow_depth(struct blk_mq_hw_ctx *hctx, u32 depth)
{
	const struct sbitmap *sb = &hctx->sched_tags->bitmap_tags.sb;
	u32 word = 1U << sb->shift;

	if (compat_shallow_is_total || sb->depth <= word)
		return depth;
	return max_t(u32, (u64)word * depth / sb->depth, 1);
}
/* It is kept beside the depth: limit_depth may not know the hctx. */
#define COMPAT_SHALLOW(depth) depth##_shallow

/* 7.0: queue/async_depth */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define HAVE_ASYNC_DEPTH
#endif

#endif

/* ---- for hdd-emu ---- */
#ifdef COMPAT_DISK

/* 6.5: open() is given the disk instead of one of its block devices. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
typedef unsigned int __bitwise blk_mode_t;
#define COMPAT_WRAP_OPEN(open)                                                 \
	static int compat_##open(struct block_device *bdev, fmode_t mode)      \
	{                                                                      \
		return open(bdev->bd_disk, 0);                                 \
	}
#define COMPAT_OPEN(open) compat_##open
#else
#define COMPAT_WRAP_OPEN(open)
#define COMPAT_OPEN(open) open
#endif

/* 6.14: merging goes without saying. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define COMPAT_MQ_F_SHOULD_MERGE BLK_MQ_F_SHOULD_MERGE
#else
#define COMPAT_MQ_F_SHOULD_MERGE 0
#endif

/* What a disk is to the block layer: some of struct queue_limits. */
struct compat_limits {
	u32 logical_block_size;
	u32 physical_block_size;
	u32 max_hw_sectors;
	u32 max_segments;
	u32 max_discard_sectors;
	u32 discard_granularity;
	u32 max_write_zeroes_sectors;
	bool write_cache; /* with FUA */
	bool rotational;
};

/*
 * 6.9: limits are given when the disk is made; 6.11: features, too, and a disk
 * rotates only when that is said.
 */
static inline struct gendisk *compat_alloc_disk(struct blk_mq_tag_set *tags,
						const struct compat_limits *lim,
						void *queuedata)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	struct gendisk *disk = blk_mq_alloc_disk(tags, queuedata);
	struct request_queue *q;

	if (IS_ERR(disk))
		return disk;
	q = disk->queue;
	blk_queue_logical_block_size(q, lim->logical_block_size);
	blk_queue_physical_block_size(q, lim->physical_block_size);
	blk_queue_max_hw_sectors(q, lim->max_hw_sectors);
	blk_queue_max_segments(q, (unsigned short)lim->max_segments);
	blk_queue_max_discard_sectors(q, lim->max_discard_sectors);
	q->limits.discard_granularity = lim->discard_granularity;
	blk_queue_max_write_zeroes_sectors(q, lim->max_write_zeroes_sectors);
#else
	struct queue_limits limits = {
		.logical_block_size = lim->logical_block_size,
		.physical_block_size = lim->physical_block_size,
		.max_hw_sectors = lim->max_hw_sectors,
		.max_segments = (unsigned short)lim->max_segments,
		.max_hw_discard_sectors = lim->max_discard_sectors,
		.discard_granularity = lim->discard_granularity,
		.max_write_zeroes_sectors = lim->max_write_zeroes_sectors,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
		.features = (lim->write_cache ?
				     BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA :
				     0) |
			    (lim->rotational ? BLK_FEAT_ROTATIONAL : 0),
#endif
	};
	struct gendisk *disk = blk_mq_alloc_disk(tags, &limits, queuedata);

	if (IS_ERR(disk))
		return disk;
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	blk_queue_write_cache(disk->queue, lim->write_cache, lim->write_cache);
	if (!lim->rotational)
		blk_queue_flag_set(QUEUE_FLAG_NONROT, disk->queue);
#endif
	return disk;
}

#endif
#endif
