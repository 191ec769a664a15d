/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulator's interface: one disk under one scheduler, or an array of
 * them, fed by processes (closed loop) or by a trace, in virtual time.
 *
 * This header is read by the C compiler and by the Python package's binding
 * alike, so it holds plain declarations only.
 */
#ifndef SIM_H
#define SIM_H

#include "../core/workload.h"
#include "../disk/hdd_params.h"
#include "config.h"
#include "job.h"
#include "result.h"
#include "trace.h"

#include <linux/types.h>

struct sim;
struct sim_foreign;

/*
 * @nr_disks disks, put together as @array says; NULL: there is one. NULL on
 * failure, with one sentence in @why (at least 256 bytes).
 */
struct sim *sim_new(const struct sim_config *config,
		    const struct hdd_params *const *disks, u32 nr_disks,
		    const struct sim_array_config *array, char *why,
		    u64 why_bytes);
void sim_free(struct sim *sim);
/* The service-time curve of disk @disk; without one it is learned. */
int sim_set_curve(struct sim *sim, u32 disk, const u64 *distance_sectors,
		  const u64 *time_ns, u32 nr, char *why, u64 why_bytes);
u64 sim_capacity_sectors(const struct sim *sim);
/*
 * Of the present scheduler and of each that sim_switch() will bring. -ENOENT:
 * the present one has no such tunable.
 */
int sim_tune(struct sim *sim, const char *name, u64 value, char *why,
	     u64 why_bytes);
/*
 * A share of the disk, see ss_sched_weigh(); with hidden owners @owner is the
 * number of a group, from 1. -ENOSPC: more than 128 have one.
 */
int sim_weigh(struct sim *sim, u64 owner, u64 weight);
/* -1 when a pool is out of range. */
int sim_add_job(struct sim *sim, const struct sim_job *job);
/*
 * Where blocks of @direction of the job added last lie: @nr ranges that end at
 * @end_unit, in units of its align_bytes, each for random numbers below @below
 * and not below the one before; the last one is for all the rest.
 */
int sim_set_places(struct sim *sim, u32 direction, const u64 *end_unit,
		   const u64 *below, u32 nr);
/*
 * Replay what @reader gives (trace.h), @first_sector further on the disk. Of
 * several traces each begins at time 0. -1: there are SIM_MAX_TRACES, or no
 * memory.
 */
int sim_add_trace(struct sim *sim, struct trace_reader *reader,
		  u64 first_sector);
/* The number of the trace that SIM_INPUT asks for, or that SIM_FAILED is of. */
u32 sim_trace_at(const struct sim *sim);
enum sim_state sim_run(struct sim *sim, u64 max_events);
const char *sim_why(const struct sim *sim);
/*
 * Have sim_run() return SIM_PAUSED once, before the first event later than
 * @at_ns, with the clock at that time.
 */
void sim_pause_at(struct sim *sim, u64 at_ns);

/* What a chooser of schedulers can see from outside; sums since the start. */
struct sim_observation {
	u64 now_ns;
	struct ss_workload_totals arrived; /* as senders sent it */
	u64 completed; /* what senders sent, not requests made of it */
	u64 response_ns; /* of those, sum: over time it is how many there are */
	u64 bytes[2]; /* read, written by the disks */
	u64 switches; /* changes of the scheduler that are done */
	u64 draining_ns; /* time in which a change let nothing new begin */
};
void sim_observe(const struct sim *sim, struct sim_observation *observation);

/*
 * Change every disk's scheduler to @policy, as Linux does it (elevator_switch()
 * in block/elevator.c freezes the queue): nothing new is let in until all that
 * is pending or in the disk is done, then the new one begins, its tunables as
 * sim_tune() has set them, the others at their defaults. It keeps what is known
 * of the disk: the curve and where the head is. -1 with a sentence in @why for
 * what is no policy.
 */
int sim_switch(struct sim *sim, const char *policy, char *why, u64 why_bytes);

/* Disk @disk has this policy, as sim_foreign_begin() in foreign.h says. */
void sim_set_foreign(struct sim *sim, u32 disk, struct sim_foreign *foreign);

/* How far it has come: 0..1000000, and the virtual time. */
u32 sim_progress_ppm(const struct sim *sim);
u64 sim_now_ns(const struct sim *sim);
void sim_result(const struct sim *sim, struct sim_result *result);
u32 sim_nr_jobs(const struct sim *sim);
void sim_job_result(const struct sim *sim, u32 job,
		    struct sim_job_result *result);

/*
 * The distribution @which of the disks' requests, or that of what process @job
 * saw of its reads and writes, by increasing time: how many buckets there are.
 */
u32 sim_histogram(const struct sim *sim, enum sim_histogram which,
		  struct sim_bucket buckets[SIM_MAX_BUCKETS]);
u32 sim_job_histogram(const struct sim *sim, u32 job,
		      struct sim_bucket buckets[SIM_MAX_BUCKETS]);

/*
 * Keep a log of the requests that the disks have served, in the order of their
 * completion: @capacity rows, from the first one on; 0: all.
 */
int sim_log(struct sim *sim, u64 capacity);
u64 sim_log_rows(const struct sim *sim, const struct sim_log_row **rows);
/* Forget the rows that there are now. */
void sim_log_clear(struct sim *sim);

#endif
