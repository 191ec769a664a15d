/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy of policy.h as a blk-mq scheduler.
 *
 * One struct iosched_data for each request queue that uses it, the first part
 * of the module's own. It holds a struct ss_sched for each I/O priority class
 * of each actuator, and the lock under which all of them are called.
 */
#ifndef CORE_IOSCHED_H
#define CORE_IOSCHED_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/spinlock.h>

#ifndef SS_MAINLINE
#define COMPAT_SCHEDULER
#include "compat.h"
#else
#include "../blk.h"
#include "../blk-mq.h"
#include "../blk-mq-debugfs.h"
#include "../blk-mq-sched.h"
#include "../elevator.h"
#endif
#include "sched.h"

/* The priority classes, in the order in which they are served. */
enum iosched_class {
	IOSCHED_CLASS_RT,
	IOSCHED_CLASS_BE, /* and requests without a priority */
	IOSCHED_CLASS_IDLE,
	IOSCHED_CLASSES
};

/* Waits from arrival to dispatch, by powers of two from 64 us on. */
#define IOSCHED_WAITS 18
#define IOSCHED_WAITS_SHIFT 16

enum iosched_rq_state {
	IOSCHED_RQ_NEW, /* not (or no longer) of the scheduler */
	IOSCHED_RQ_PENDING,
	IOSCHED_RQ_IN_FLIGHT, /* sent by the scheduler's choice */
	IOSCHED_RQ_APART, /* goes, or went, without being asked for */
};

/* What the scheduler knows of one of its tags; lives as long as the tag. */
struct iosched_rq {
	struct ss_request ss;
	struct request *rq;
	u8 state; /* enum iosched_rq_state */
	u8 class; /* enum iosched_class */
	u8 head; /* the actuator's number */
	u32 epoch; /* of the schedulers that know it */
};

/* One hardware queue's. */
struct iosched_hctx {
	u32 nr_slots;
	struct iosched_rq *slot; /* by the number of the scheduler's tag */
	/* Who was told that a flush is under way; NULL: none is, or nobody. */
	struct iosched_class_data *flushing;
	u32 flush_epoch;
};

struct iosched_class_data {
	struct ss_sched *sched;
	struct list_head pending; /* requests, in order of arrival */
	u64 served_ns; /* last sync completion; 0: a sync request came since */
	u64 think_ns; /* from such a completion to the next sync request */
};

/* An actuator: what others do neither delays it nor moves its head. */
struct iosched_head {
	struct iosched_class_data class[IOSCHED_CLASSES];
	u32 nr_pending; /* in all classes */
};

struct iosched_data {
	struct request_queue *queue;
	spinlock_t lock; /* taken with interrupts off */
	struct iosched_head head[SS_HEADS];
	struct ss_heads heads;
	struct list_head apart; /* requests to be sent first */
	u32 nr_pending; /* at all actuators */
	u32 epoch; /* counts restarts; what was sent before is not known */

	/* Who sent @rq, or SS_OWNER_NONE. Optional. */
	u64 (*owner)(const struct request *rq);
	/* Its cgroup's weight, in percent of the usual. Optional. */
	u32 (*weight)(const struct iosched_data *sd, const struct request *rq);
	/* How bios end that only bring the head somewhere; NULL: none do. */
	bio_end_io_t *placed;
	/* A struct ss_sched begins: set it up. Optional; it is locked. */
	void (*begin)(struct iosched_data *sd, struct ss_sched *sched,
		      u64 now_ns);

	struct iosched_class_data *wrote; /* of the write that was sent last */
	/* The last one sent, of several hardware queues; NULL: told enough. */
	struct request *sent;
	bool waiting; /* nothing may be sent until something happens */
	u64 timer_ns; /* when the timer goes off; SS_FOREVER: never */
	struct hrtimer timer;

	u64 prio_aging_ns; /* how long a lower class may be put off */
	u32 background_weight; /* of md's resync, in percent of others' */
	bool seeks_free; /* no class gains from waiting out its think time */
	/* Scheduler tags for writes that somebody waits for, and for others. */
	u32 depth; /* of which these two may be taken */
	u32 write_depth, async_depth;
#ifndef SS_MAINLINE
	/* The same as older kernels' tags want it said. */
	u32 write_depth_shallow, async_depth_shallow;
#endif

	u64 wait_histogram[SS_DIRECTIONS][IOSCHED_WAITS];
	u64 wait_ns[SS_DIRECTIONS]; /* the sum */
	u64 aged; /* sent by age, past a higher class */
	u64 returned; /* requeued by the driver */
	u64 flushes; /* of what was written, that have ended */
};

/* A sample changes the mean think time by an eighth. */
#define IOSCHED_THINK_SHIFT 3

#define IOSCHED_PRIO_AGING_NS (10 * SS_SEC)
/* A check that is left a tenth is done in a night. */
#define IOSCHED_BACKGROUND_WEIGHT 10

static inline u64 iosched_now_ns(void)
{
	return ktime_get_ns();
}

/* All classes of all actuators of @sd; the loop cannot be left by break. */
#define iosched_for_each_class(sd, one)                                        \
	for (u32 head_ = 0; head_ < (sd)->heads.nr; head_++)                   \
		for (struct iosched_class_data *one = (sd)->head[head_].class; \
		     one < (sd)->head[head_].class + IOSCHED_CLASSES; one++)

/* Of the first actuator, and requests without a priority. */
static inline struct ss_sched *iosched_usual(const struct iosched_data *sd)
{
	return sd->head[0].class[IOSCHED_CLASS_BE].sched;
}

/* All of an elevator_type's operations but init_sched and exit_sched. */
extern const struct elevator_mq_ops iosched_ops;

/*
 * Empty and zeroed @sd becomes that of @q, with one actuator: before the first
 * restart, up to which there may be made two of it.
 */
void iosched_prepare(struct iosched_data *sd, struct request_queue *q);

/*
 * Begin (anew) with @spec, as in "stream:deadline", keeping all pending
 * requests. -EINVAL with the reason in @why (at least 160 bytes) when there is
 * no such policy, -ENOMEM; nothing is changed then.
 */
int iosched_restart(struct iosched_data *sd, const char *spec, char *why,
		    size_t why_bytes);

/* @eq is to work with @sd, which has been prepared and started. */
void iosched_start(struct elevator_queue *eq, struct iosched_data *sd);

/* Nothing is pending any more: free what belongs to @sd, but not itself. */
void iosched_stop(struct iosched_data *sd);

/* Something changed that may let a held queue go on. */
void iosched_kick(struct iosched_data *sd);

/* The same where sd->lock is held, or locks of the block layer. */
void iosched_kick_locked(struct iosched_data *sd);

/* @rq's life in the scheduler begins, and ends. */
void iosched_prepare_request(struct request *rq);
void iosched_finish_request(struct request *rq);

/* What people know @sched of @sd by: its class and, of the second, its head. */
const char *iosched_name_of(const struct iosched_data *sd,
			    const struct ss_sched *sched);

/*
 * core-flush.c: hear of flushes on all queues of this module, and no longer.
 * Where the kernel cannot tell, that is said and all else works.
 */
void iosched_flushes_listen(void);
void iosched_flushes_ignore(void);

/* core-debugfs.c */
#ifdef CONFIG_BLK_DEBUG_FS
extern const struct blk_mq_debugfs_attr iosched_debugfs_attrs[];
#endif

#endif
