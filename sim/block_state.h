/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the block layer share: bios, requests, disks.
 *
 *	block.c		bios, merging, the scheduler, the disk
 *	block_note.c	what is remembered of requests
 *	block_switch.c	a disk's scheduler, and the one after it
 */
#ifndef SIM_BLOCK_STATE_H
#define SIM_BLOCK_STATE_H

#include "../core/sched.h"
#include "../core/places.h"
#include "../disk/hdd_drive.h"
#include "clock.h"
#include "common.h"
#include "config.h"
#include "histogram.h"
#include "result.h"

/*
 * One piece of work for the disk, as its sender sees it. Several may be
 * merged into one request. @done is called once it has completed.
 */
struct sim_bio {
	struct sim_bio *next; /* in its request, in a queue, in the pool */
	u64 sector;
	u32 nr_sectors;
	u8 direction; /* SS_READ or SS_WRITE */
	u8 flags; /* SS_SYNC, SS_META */
	bool flush; /* not data: empty the disk's write cache */
	u32 job; /* who it is for; the cache's own number for write-back */
	u32 disk; /* which one it is for; sim_submit() sets it */
	u64 wanted_ns; /* when its sender sent it */
	void (*done)(struct sim_bio *bio);
	void *context; /* the sender's */
	u64 context_number;
};

/* A request: what the scheduler and the disk see. */
struct sim_request {
	struct ss_request rq;
	struct hdd_cmd cmd;
	struct sim_bio *first_bio, *last_bio;
	struct list_head pending_node; /* on its disk's list until dispatched */
	u32 party; /* as the log has it */
	enum ss_why why;
	struct sim_request *next_free;
};

#define SIM_PLACES SS_PLACES /* streams of a policy */

/*
 * A disk and its scheduler: all of the storage, or a member of the array. Of
 * all the storage stream has one for each of two actuators, as in the kernel.
 */
struct sim_disk {
	struct ss_sched sched[SS_HEADS]; /* by actuator */
	u32 party[SS_HEADS][SIM_PLACES]; /* which stream has the place */
	struct ss_heads heads;
	struct hdd_drive *drive;
	bool failed;
	u64 wake_ns; /* ask the scheduler again then */
	bool ask; /* something happened since it was asked */
	struct list_head pending; /* requests */
	u32 held_requests[SS_DIRECTIONS]; /* scheduler's and disk's together */
	struct sim_bio *blocked_first[SS_DIRECTIONS];
	struct sim_bio *blocked_last[SS_DIRECTIONS];
	struct sim_bio *flush_first, *flush_last;
	u32 last_job; /* of the last request that the disk served */
	u64 busy_from_ns;
	/* Of the scheduler's idle time, when the disk was flushing. */
	u64 flush_idle_ns, flush_counted_ns;
	/* The scheduler that comes when all is drained; empty: none does. */
	char next_policy[64];
	u64 drain_from_ns;
	struct ss_counters past; /* what schedulers before this one counted */
};

/* What the block layer asks and tells of those who send. */
struct sim_senders {
	void *context;
	/* Who a scheduler is told that @job is; the weight in percent. */
	u64 (*owner)(void *context, u32 job, u32 *weight);
	void (*waited)(void *context, u32 job, u64 wait_ns);
};

/* What it tells an array whose members work together; NULL: there is none. */
struct sim_members {
	void *context;
	/* The head of @disk may be wanted somewhere. */
	void (*place)(void *context, struct sim_disk *disk);
	/* The scheduler of @disk ends, and another one begins. */
	void (*leave)(void *context, struct sim_disk *disk);
	void (*join)(void *context, struct sim_disk *disk);
};

/* What sim_tune() has set, also for the schedulers that come later. */
struct sim_tuned {
	char name[32];
	u64 value;
};

#define SIM_MAX_TUNED 64

struct sim_block {
	const struct sim_config *config;
	struct sim_clock *clock;
	struct sim_disk *disk;
	u32 nr_disks;
	struct sim_senders senders;
	struct sim_members members;
	struct sim_tuned tuned[SIM_MAX_TUNED];
	u32 nr_tuned;
	struct sim_bio *free_bio;
	struct sim_request *free_request;
	void *slabs;
	u64 dispatches; /* commands sent to disks */
	u64 changes, draining_ns; /* of schedulers */
	struct sim_result sums; /* of disks, and the most pending; no more */
	struct histogram wait, service, response;
	struct sim_log_row *log;
	u64 log_rows, log_capacity;
	bool log_grows;
	u32 nr_streams; /* numbered in the log */
};

/* All schedulers there are; the loop cannot be left by break. */
#define sim_for_each_sched(block, one)                                         \
	for (u32 disk_ = 0; disk_ < (block)->nr_disks; disk_++)                \
		for (struct ss_sched *one = (block)->disk[disk_].sched;        \
		     one < (block)->disk[disk_].sched +                        \
				   (block)->disk[disk_].heads.nr;              \
		     one++)

/* The scheduler that has @sector. */
static inline struct ss_sched *sim_block_sched(struct sim_disk *disk,
					       u64 sector)
{
	return &disk->sched[ss_heads_of(&disk->heads, sector)];
}

/* Requests that wait to be chosen. */
static inline u32 sim_block_pending(const struct sim_disk *disk)
{
	u32 i, nr = 0;

	for (i = 0; i < disk->heads.nr; i++)
		nr += disk->sched[i].nr_pending;
	return nr;
}

#endif
