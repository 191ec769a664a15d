/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The block layer as the newest kernel has it, on every kernel from 6.1 on:
 * the only file here that asks for a version. What distributions' headers
 * leave out comes from private.h, made for the kernel that is built for.
 */
#ifndef STREAMSCHED_COMPAT_H
#define STREAMSCHED_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/version.h>

/* 6.13 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define compat_hrtimer_setup(timer, handler, clock, mode)                      \
	do {                                                                   \
		hrtimer_init(timer, clock, mode);                              \
		(timer)->function = handler;                                   \
	} while (0)
#else
#define compat_hrtimer_setup hrtimer_setup
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
#define COMPAT_WRAP_INSERT                                                     \
	static void compat_insert_requests(struct blk_mq_hw_ctx *hctx,         \
					   struct list_head *list,             \
					   bool at_head)                       \
	{                                                                      \
		iosched_insert_requests(hctx, list,                            \
					at_head ? BLK_MQ_INSERT_AT_HEAD : 0);  \
	}
#define COMPAT_INSERT_REQUESTS compat_insert_requests
#else
#ifndef BLK_MQ_INSERT_AT_HEAD
#define BLK_MQ_INSERT_AT_HEAD ((__force blk_insert_t)0x01)
#endif
#define COMPAT_WRAP_INSERT
#define COMPAT_INSERT_REQUESTS iosched_insert_requests
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
#define COMPAT_INIT_SCHED(init) compat_##init
#else
#define COMPAT_WRAP_INIT(init)
#define COMPAT_INIT_SCHED(init) init
#endif

/* 6.18: depth_updated is told of the queue, not of each hardware queue. */
#define COMPAT_WRAP_DEPTH                                                      \
	static void __maybe_unused compat_depth_updated(                       \
		struct blk_mq_hw_ctx *hctx)                                    \
	{                                                                      \
		iosched_depth_updated(hctx->queue);                            \
	}
#define COMPAT_DEPTH_UPDATED                                                   \
	_Generic(((struct elevator_mq_ops *)NULL)->depth_updated,              \
		void (*)(struct blk_mq_hw_ctx *): compat_depth_updated,        \
		void (*)(struct request_queue *): iosched_depth_updated)

/* The table of sysfs files became const. */
#define COMPAT_ELEVATOR_ATTRS(attrs)                                           \
	((typeof_member(struct elevator_type, elevator_attrs))(attrs))

static inline bool compat_rotational(struct request_queue *q)
{
#ifdef blk_queue_nonrot
	return !blk_queue_nonrot(q);
#else
	return blk_queue_rot(q);
#endif
}

/*
 * 6.15: a queue's scheduler changes under a lock of its own, and from 6.16 on
 * its files in debugfs go only after it. Whoever reads one must not wait for
 * the lock: in between, who held it waited for those who read.
 */
static inline bool compat_elevator_trylock(struct request_queue *q)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
	return true;
#else
	return mutex_trylock(&q->elevator_lock);
#endif
}

static inline void compat_elevator_unlock(struct request_queue *q)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	mutex_unlock(&q->elevator_lock);
#endif
}

/*
 * Has the disk two actuators, the first of which serves all sectors before
 * *@second_sector? 6.15: who sets a scheduler does not hold the ranges' lock
 * any more, and must not wait for it. Where they change at that moment, as when
 * a drive gets other firmware, it is a disk with one.
 */
static inline bool compat_two_ranges(struct request_queue *q,
				     u64 *second_sector)
{
	const struct blk_independent_access_range *range;
	struct gendisk *disk = q->disk;
	bool two = false;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	if (!mutex_trylock(&q->sysfs_lock))
		return false;
#endif
	if (disk && disk->ia_ranges && disk->ia_ranges->nr_ia_ranges == 2) {
		range = disk->ia_ranges->ia_range;
		*second_sector = range[1].sector;
		two = !range[0].sector && range[1].sector;
	}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	mutex_unlock(&q->sysfs_lock);
#endif
	return two;
}

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

/* How many of the scheduler's tags there are to take. */
static inline u32 compat_sched_depth(struct blk_mq_hw_ctx *hctx)
{
	return hctx->sched_tags->bitmap_tags.sb.depth;
}

/*
 * Take no tag of @nr or more, as when nr_requests becomes less; false: none
 * could be.
 */
static inline bool compat_limit_tags(struct blk_mq_hw_ctx *hctx, u32 nr)
{
	u32 depth = nr - hctx->sched_tags->nr_reserved_tags;

	if (compat_sched_depth(hctx) <= depth)
		return false;
	sbitmap_queue_resize(&hctx->sched_tags->bitmap_tags, depth);
	return true;
}

/*
 * 7.0: queue/async_depth, how many of the tags asynchronous requests may take.
 * A scheduler sets what is usual for it; the kernel keeps the proportion when
 * nr_requests changes.
 */
static inline void compat_set_async_depth(struct request_queue *q, u32 usual)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
	q->async_depth = usual;
#endif
}

static inline u32 compat_async_depth(struct request_queue *q, u32 usual)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
	usual = q->async_depth;
#endif
	return usual;
}

/* Tell the tags the least shallow depth that there will be. */
static inline void compat_min_shallow_depth(struct blk_mq_hw_ctx *hctx,
					    u32 shallow)
{
	sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags,
					shallow);
}

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
