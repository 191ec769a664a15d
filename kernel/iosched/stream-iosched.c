// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: a blk-mq I/O scheduler that finds streams of requests by arrival
 * time and position alone, and keeps the head where waiting pays.
 *
 * What it does is said in party.h, what policies are in policy.h;
 * core-iosched.c is between them and the block layer. This file registers the
 * elevator.
 */
#include "stream-array.h"
#include "stream-iosched.h"

#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/cgroup.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>

static void stream_begin(struct iosched_data *io, struct ss_sched *sched,
			 u64 now_ns)
{
	struct stream_data *sd = container_of(io, struct stream_data, io);

	stream_trace(sched);
	sched->host = io;
	/* The inner policy alone: positioning is free, nothing to learn. */
	io->seeks_free = sched->nr_policies == 1;
	if (io->seeks_free)
		sched->curve.learning = false;
	stream_settings_apply(sd, sched, now_ns);
	if (sched == iosched_usual(io))
		stream_array_renew(sd);
}

int stream_restart(struct stream_data *sd, bool plain, char *why,
		   size_t why_bytes)
{
#ifndef SS_MAINLINE
	const char *spec = sd->spec + (plain ? strlen("stream:") : 0);
#else
	const char *spec = plain ? "deadline" : "stream:deadline";
#endif
	int ret = iosched_restart(&sd->io, spec, why, why_bytes);

	if (!ret)
		sd->plain = plain;
	return ret;
}

/* Of owners that are cgroups; processes have smaller numbers. */
#define CGROUPS BIT_ULL(63)

/*
 * Who sends @rq: its cgroup, if that is not the root, or the process that runs
 * now. Nobody, if that is a thread of the kernel, which sends for others, as
 * behind loop and dm-crypt.
 */
static u64 owner_of(const struct request *rq)
{
	struct cgroup_subsys_state *css;

	css = rq->bio ? bio_blkcg_css(rq->bio) : NULL;
	if (css && cgroup_parent(css->cgroup))
		return CGROUPS | cgroup_id(css->cgroup);
	if (!in_task() || (current->flags & PF_KTHREAD))
		return SS_OWNER_NONE;
	return (u64)current->tgid;
}

/*
 * Has the disk two actuators, the first of which serves all sectors before
 * *@second_sector? Who sets a scheduler does not hold the ranges' lock and
 * must not wait for it. Where they change at that moment, as when a drive gets
 * other firmware, it is a disk with one.
 */
static bool two_ranges(struct request_queue *q, u64 *second_sector)
{
	const struct blk_independent_access_range *range;
	struct gendisk *disk = q->disk;
	bool two = false;

#ifdef HAVE_ELEVATOR_LOCK
	if (!mutex_trylock(&q->sysfs_lock))
		return false;
#endif
	if (disk && disk->ia_ranges && disk->ia_ranges->nr_ia_ranges == 2) {
		range = disk->ia_ranges->ia_range;
		*second_sector = range[1].sector;
		two = !range[0].sector && range[1].sector;
	}
#ifdef HAVE_ELEVATOR_LOCK
	mutex_unlock(&q->sysfs_lock);
#endif
	return two;
}

static int stream_init_sched(struct request_queue *q, struct elevator_queue *eq)
{
	struct stream_data *sd;
	char why[160];
	int ret;

	if (blk_queue_is_zoned(q)) {
		pr_err("stream: %s: refused: a zoned disk is written zone by zone, and stream does not know of zones; choose mq-deadline\n",
		       q->disk ? q->disk->disk_name : "?");
		return -EOPNOTSUPP;
	}
	sd = kvzalloc_node(sizeof(*sd), GFP_NOIO, q->node);
	if (!sd)
		return -ENOMEM;
	iosched_prepare(&sd->io, q);
	sd->io.begin = stream_begin;
	sd->io.owner = owner_of;
	if (two_ranges(q, &sd->io.heads.second_sector))
		sd->io.heads.nr = SS_HEADS;
	stream_weights_begin(sd);
	stream_settings_default(sd);
	/* Where positioning is free, waiting for it never pays. */
	ret = stream_restart(sd, !blk_queue_rot(q), why, sizeof(why));
	if (ret) {
		kvfree(sd);
		return ret;
	}
	iosched_start(eq, &sd->io);
	stream_array_join(sd);
	return 0;
}

static void stream_exit_sched(struct elevator_queue *eq)
{
	struct stream_data *sd = stream_data_of(eq);

	stream_array_leave(sd);
	iosched_stop(&sd->io);
	stream_weights_end(sd);
	kvfree(sd);
}

COMPAT_WRAP_INIT(stream_init_sched)

static struct elevator_type stream_elevator = {
	.elevator_attrs = COMPAT_ATTRS(stream_attrs),
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = iosched_debugfs_attrs,
#endif
	.elevator_name = "stream",
	.elevator_owner = THIS_MODULE,
};
MODULE_ALIAS("stream-iosched");

static int __init stream_init(void)
{
	int ret = stream_settings_init();

	if (!ret)
		ret = compat_init();
	if (!ret)
		ret = stream_array_register();
	if (ret)
		return ret;
	stream_elevator.ops = iosched_ops;
	stream_elevator.ops.init_sched = COMPAT_INIT(stream_init_sched);
	stream_elevator.ops.exit_sched = stream_exit_sched;
	iosched_flushes_listen();
	ret = elv_register(&stream_elevator);
	if (ret) {
		iosched_flushes_ignore();
		stream_array_unregister();
	}
	return ret;
}

static void __exit stream_exit(void)
{
	elv_unregister(&stream_elevator);
	iosched_flushes_ignore();
	stream_array_unregister();
}

module_init(stream_init);
module_exit(stream_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION(
	"stream I/O scheduler: waits for streams without knowing who sends");
