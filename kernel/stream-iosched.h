/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The blk-mq scheduler "stream": what its files share.
 *
 * One struct stream_data for each request queue that uses the scheduler. It
 * holds a scheduler of core/ for each I/O priority class, and the lock under
 * which all of them are called.
 */
#ifndef STREAM_IOSCHED_H
#define STREAM_IOSCHED_H

#define COMPAT_SCHEDULER
#include "compat.h"
#include "sched.h"

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

/* The priority classes, in the order in which they are served. */
enum stream_class {
	STREAM_CLASS_RT,
	STREAM_CLASS_BE, /* and requests without a priority */
	STREAM_CLASS_IDLE,
	STREAM_CLASSES
};

/* Tunables that one policy or another has; see stream-sysfs.c. */
#define STREAM_SETTINGS 24
#define STREAM_SPEC_BYTES 32
/* Waits from arrival to dispatch, by powers of two from 64 us on. */
#define STREAM_WAITS 18
#define STREAM_WAITS_SHIFT 16

enum stream_rq_state {
	STREAM_RQ_NEW, /* not (or no longer) of the scheduler */
	STREAM_RQ_PENDING,
	STREAM_RQ_IN_FLIGHT, /* sent by the scheduler's choice */
	STREAM_RQ_APART, /* goes, or went, without being asked for */
};

/* What the scheduler knows of one of its tags; lives as long as the tag. */
struct stream_rq {
	struct ss_request ss;
	struct request *rq;
	u8 state; /* enum stream_rq_state */
	u8 class; /* enum stream_class */
	u32 epoch; /* of the schedulers that know it */
};

/* One hardware queue's. */
struct stream_hctx {
	u32 nr_slots;
	struct stream_rq *slot; /* by the number of the scheduler's tag */
};

struct stream_class_data {
	struct ss_sched *sched;
	struct list_head pending; /* requests, in order of arrival */
};

struct stream_data {
	struct request_queue *queue;
	spinlock_t lock; /* taken with interrupts off */
	struct stream_class_data class[STREAM_CLASSES];
	struct list_head apart; /* requests to be sent first */
	u32 nr_pending; /* in all classes */
	u32 epoch; /* counts restarts; what was sent before is not known */

	bool waiting; /* nothing may be sent until something happens */
	u64 timer_ns; /* when the timer goes off; SS_FOREVER: never */
	struct hrtimer timer;

	/* As the member of an array, see stream-array.h. */
	struct list_head members_node;
	struct stream_array *array; /* NULL: of none */
	u32 array_index; /* which of its members */
	struct work_struct kick; /* the array wants it asked again */

	/* Settings, under the lock. */
	char inner[STREAM_SPEC_BYTES]; /* the inner policy's name */
	bool plain; /* the inner policy alone: positioning is free here */
	bool pinned; /* the service-time curve was written */
	u64 setting[STREAM_SETTINGS];
	u64 prio_aging_ns;
	u32 async_depth; /* scheduler tags for all but readers */
	u32 shallow_depth; /* the same as the tags want it said */

	u64 wait_histogram[SS_DIRECTIONS][STREAM_WAITS];
	u64 aged; /* sent by age, past a higher class */
	u64 returned; /* requeued by the driver */
};

#define STREAM_PRIO_AGING_NS (10 * SS_SEC)

/* The lock is held. */
static inline u64 stream_now_ns(void)
{
	return ktime_get_ns();
}

/*
 * Begin anew with the inner policy @inner, keeping settings and all pending
 * requests. -EINVAL with the reason in @why when there is no such policy,
 * -ENOMEM; nothing is changed then.
 */
int stream_restart(struct stream_data *sd, const char *inner, bool plain,
		   char *why, size_t why_bytes);

/* Something changed that may let a held queue go on. */
void stream_kick(struct stream_data *sd);

/* stream-sysfs.c */
extern const struct elv_fs_entry stream_attrs[];
int stream_settings_check(void);
void stream_settings_default(struct stream_data *sd);
void stream_settings_apply(struct stream_data *sd, struct ss_sched *sched,
			   u64 now_ns);

/* stream-debugfs.c */
#ifdef CONFIG_BLK_DEBUG_FS
extern const struct blk_mq_debugfs_attr stream_debugfs_attrs[];
#endif

#endif
