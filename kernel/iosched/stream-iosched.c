// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: a blk-mq I/O scheduler that finds streams of requests by arrival
 * time and position alone, and keeps the head where waiting pays.
 *
 * All deciding is done in core/, shared with the simulator and the network
 * server; core-iosched.c is their host in the block layer. This file makes a
 * module of both, whose senders of requests are not known.
 */
#include "stream-array.h"
#include "stream-iosched.h"

#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>

#define CREATE_TRACE_POINTS
#include "stream-trace.h"

static void tell(struct ss_sched *sched, enum ss_event event, u64 sector,
		 u32 size)
{
	const struct iosched_data *io = sched->host;
	dev_t dev = io->queue->disk ? disk_devt(io->queue->disk) : 0;

	switch (event) {
	case SS_EVENT_ESTABLISHED:
		trace_stream_established(dev, sector, size);
		break;
	case SS_EVENT_HELD:
		trace_stream_held(dev, sector, size);
		break;
	case SS_EVENT_HIT:
		trace_stream_hit(dev, sector, size);
		break;
	case SS_EVENT_TIMEOUT:
		trace_stream_timed_out(dev, sector, size);
		break;
	case SS_EVENT_SLICE_ENDED:
		trace_stream_slice_ended(dev, sector, size);
		break;
	}
}

static void chosen(struct ss_sched *sched, const struct ss_request *rq,
		   enum ss_why why)
{
	const struct iosched_data *io = sched->host;
	dev_t dev = io->queue->disk ? disk_devt(io->queue->disk) : 0;

	/* Finding the party takes time: only if somebody reads the event. */
	if (!trace_stream_choose_enabled())
		return;
	trace_stream_choose(dev, rq->sector, rq->nr_sectors,
			    rq->dispatch_ns - rq->arrival_ns, ss_why_name[why],
			    iosched_name_of(io, sched),
			    ss_sched_index_of(sched, rq));
}

static void stream_begin(struct iosched_data *io, struct ss_sched *sched,
			 u64 now_ns)
{
	struct stream_data *sd = container_of(io, struct stream_data, io);

	sched->tell = tell;
	sched->chosen = chosen;
	sched->host = io;
	/* The inner policy alone: positioning is free, nothing to learn. */
	io->seeks_free = sched->nr_policies == 1;
	if (io->seeks_free)
		sched->curve.learning = false;
	stream_settings_apply(sd, sched, now_ns);
	if (sched == iosched_usual(io))
		stream_array_renew(sd);
}

int stream_restart(struct stream_data *sd, const char *inner, bool plain,
		   char *why, size_t why_bytes)
{
	char spec[STREAM_SPEC_BYTES + 8];
	int ret;

	snprintf(spec, sizeof(spec), "%s%s", plain ? "" : "stream:", inner);
	ret = iosched_restart(&sd->io, spec, why, why_bytes);
	if (ret)
		return ret;
	strscpy(sd->inner, inner, sizeof(sd->inner));
	sd->plain = plain;
	return 0;
}

/* Of owners that are cgroups; processes have smaller numbers. */
#define CGROUPS (1ULL << 63)

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

static int stream_init_sched(struct request_queue *q, struct elevator_queue *eq)
{
	struct stream_data *sd;
	char why[160];
	int ret;

	/* Before 6.9 the block layer refuses it: stream lacks a feature. */
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
	if (compat_two_ranges(q, &sd->io.second_sector))
		sd->io.nr_heads = 2;
	stream_weights_begin(sd);
	stream_settings_default(sd);
	/* Where positioning is free, waiting for it never pays. */
	ret = stream_restart(sd, "deadline", !compat_rotational(q), why,
			     sizeof(why));
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
	.elevator_attrs = COMPAT_ELEVATOR_ATTRS(stream_attrs),
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
	stream_elevator.ops.init_sched = COMPAT_INIT_SCHED(stream_init_sched);
	stream_elevator.ops.exit_sched = stream_exit_sched;
	ret = elv_register(&stream_elevator);
	if (ret)
		stream_array_unregister();
	return ret;
}

static void __exit stream_exit(void)
{
	elv_unregister(&stream_elevator);
	stream_array_unregister();
}

module_init(stream_init);
module_exit(stream_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION(
	"stream I/O scheduler: waits for streams without knowing who sends");
