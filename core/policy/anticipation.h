/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Anticipation: after a read, wait a moment for the same process's next one.
 *
 * Iyer and Druschel, "Anticipatory scheduling", SOSP 2001, found that a disk
 * which never waits is led from one process's region to another's and back.
 * Love, "Kernel Korner: I/O Schedulers", Linux Journal 2004, describes Linux's
 * version.
 *
 * Below is a one-way elevator with batches of reads and of writes that take
 * turns. Above it, each sync request that was sent makes its process the
 * awaited one. While others' requests stand ready, the disk is then held for
 * up to antic_expire after that request's completion, unless the process is
 * known to think for longer, or to be gone.
 *
 * The policy anticipatory is this and no more; cooperative also sees groups
 * of processes, through struct as_groups.
 */
#ifndef SS_ANTICIPATION_H
#define SS_ANTICIPATION_H

#include "owner_table.h"
#include "../policies.h"

/* One timer tick of the kernel that is modelled, HZ = 1000. */
#define AS_JIFFY_NS SS_MSEC
/* A longer think time counts as this: it must not shape the mean for long. */
#define AS_THINK_MAX_NS (19 * AS_JIFFY_NS)
/* A request this far ahead, or half as far behind, is close: 4 MiB. */
#define AS_CLOSE_SECTORS 8192

/* Linux calls them reads and writes; what counts is whether anyone waits. */
enum as_kind { AS_ASYNC, AS_SYNC, AS_KINDS };

enum {
	AS_ANTIC_EXPIRE,
	AS_READ_EXPIRE,
	AS_READ_BATCH_EXPIRE,
	AS_WRITE_EXPIRE,
	AS_WRITE_BATCH_EXPIRE,
	AS_COOPERATION,
	AS_TUNABLES, /* all of anticipatory's; cooperative's go on: */
	AS_GROUP_DISTANCE = AS_TUNABLES,
	AS_COOPERATIVE_TUNABLES,
};

/* What a policy adds that sees processes in groups. */
struct as_groups {
	/* @rq has come; its process, rq->queue, has learned from it. */
	void (*arrived)(struct ss_policy *policy, struct ss_request *rq,
			u64 now_ns);
	/* @rq is done, or else was taken back. */
	void (*left)(struct ss_policy *policy, struct ss_request *rq, bool done,
		     u64 now_ns);
	/* Is @rq as good as the awaited process's own, being of its group? */
	bool (*is_mate)(const struct ss_policy *policy,
			const struct ss_request *rq);
	/* Is it known of the awaited process's group how long it will take? */
	bool (*knows)(const struct ss_policy *policy, u64 *think_ns);
};

/* What a process has done so far. */
struct as_past {
	bool gone; /* it has exited ... */
	bool began; /* it has sent a sync request */
	bool served; /* a sync request of it has completed */
	u64 gone_ns; /* ... at this time */
	u64 last_end_sector; /* of its last sync request */
	u64 last_done_ns; /* when its last sync request completed */
	struct ss_mean think_ns; /* from a completion to its next request */
	struct ss_mean seek_sectors; /* from a request's end to its next */
	void *group; /* cooperative: where it belongs; NULL: nowhere yet */
};

struct as_owner {
	struct ss_owner base; /* pinned by each request and by being awaited */
	u32 nr_pending;
	u32 nr_at_disk;
	struct as_past past;
};

enum as_antic {
	AS_OFF,
	AS_WAIT_DISK, /* until the awaited one's request completes */
	AS_WAIT_NEXT, /* then, for its next one */
	AS_FINISHED, /* a wait has ended; the next request goes */
};

struct as_state {
	const struct as_groups *groups; /* NULL: process by process */
	struct rb_root sorted[AS_KINDS];
	struct list_head fifo[AS_KINDS];
	struct ss_request *next[AS_KINDS]; /* where the elevator goes on */
	u64 last_sector[AS_KINDS]; /* the end of the last one sent */

	/* Batches. */
	enum as_kind kind; /* of this batch */
	bool turning; /* the last batch's requests are still at the disk */
	bool opening; /* no request of this sync batch has completed yet */
	u64 batch_end_ns;
	u64 looked_ns[AS_KINDS]; /* when expiry was last looked at */
	u32 write_batch; /* requests in a full async batch */
	u32 write_left; /* how many this batch may still send */
	bool write_slack; /* this batch had no competition, do not time it */
	u32 nr_at_disk;
	u32 most_at_disk;

	/* Anticipation. */
	enum as_antic antic;
	struct as_owner *awaited; /* NULL after an async request */
	bool awaited_done; /* its request has completed ... */
	u64 awaited_done_ns; /* ... at this time */
	u64 wait_end_ns; /* of AS_WAIT_NEXT */

	/* What first requests of processes have been like. */
	u32 exit_prob; /* that a process exits while it is waited for */
	u32 exit_no_coop; /* that no other then comes close to it */
	u64 new_think_total;
	u64 new_think_ns;
	u64 new_seek_total;
	u64 new_seek_sectors;

	struct ss_owner_table table;
	struct as_owner shared;
	struct as_owner owner[SS_OWNERS];
};

/* Why the disk should not be held; the first that applies. */
enum as_reason {
	AS_SAME, /* this is a request of the awaited process */
	AS_LATE, /* the time is over */
	AS_BUSY, /* the awaited process has other requests pending */
	AS_MATE, /* a request of its group (cooperative) */
	AS_CLOSE, /* a close request, as good as the awaited one */
	AS_EXITED, /* and others seldom go on where a process stopped */
	AS_NEWCOMER, /* and newcomers think long, or just exit */
	AS_THINKS, /* for longer than we would wait */
	AS_HOLD, /* it should be held */
};

/* What follows is the anticipatory scheduler, for the tables of policies. */

extern const struct ss_tunable ss_as_tunables[AS_COOPERATIVE_TUNABLES];

void ss_as_init(struct ss_policy *policy);
void ss_as_arrived(struct ss_policy *policy, struct ss_request *rq, u64 now_ns);
struct ss_decision ss_as_choose(const struct ss_policy *policy, u64 now_ns,
				const struct ss_request *skip);
void ss_as_dispatched(struct ss_policy *policy, struct ss_request *rq,
		      u64 now_ns);
void ss_as_completed(struct ss_policy *policy, struct ss_request *rq,
		     u64 now_ns);
void ss_as_merged(struct ss_policy *policy, struct ss_request *rq,
		  u64 old_sector, u64 now_ns);
void ss_as_joins(struct ss_policy *policy, struct ss_request *rq,
		 const struct ss_request *next);
void ss_as_removed(struct ss_policy *policy, struct ss_request *rq, u64 now_ns);
void ss_as_owner_gone(struct ss_policy *policy, u64 id, u64 now_ns);

/* For struct ss_policy_ops: all calls but init. */
#define SS_AS_CALLS                                                            \
	.arrived = ss_as_arrived, .choose = ss_as_choose,                      \
	.dispatched = ss_as_dispatched, .completed = ss_as_completed,          \
	.merged = ss_as_merged, .joins = ss_as_joins,                          \
	.removed = ss_as_removed, .owner_gone = ss_as_owner_gone

#endif
