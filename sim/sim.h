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

#include "../core/policy.h"
#include "../core/workload.h"
#include "../disk/hdd_params.h"
#include "trace.h"

#include <linux/types.h>

/* What a process does. */
enum sim_rw {
	SIM_RW_READ = 1, /* bit 0: reads */
	SIM_RW_WRITE = 2, /* bit 1: writes */
	SIM_RW_RANDOM = 4, /* bit 2: at random positions */
};

/* Where the blocks of a random job lie. */
enum sim_places {
	SIM_PLACES_UNIFORM,
	SIM_PLACES_TABLE, /* by weight: sim_set_places() */
	SIM_PLACES_NORMAL, /* the mean of twelve uniform ones */
};

/* How owners are shown to the scheduler. */
enum sim_owners {
	SIM_OWNERS_PROCESS, /* each process its own */
	SIM_OWNERS_GROUP, /* one per group, as a host sees its VMs */
	SIM_OWNERS_NONE, /* all the same unknown one */
};

#define SIM_MAX_SPLITS 16
#define SIM_MAX_POOLS 64
#define SIM_MAX_THREADS 64
#define SIM_MAX_TRACES 256
/* Of several traces a number stands above its owners, pids of up to 22 bits. */
#define SIM_OWNER_BITS 24
#define SIM_READAHEAD_SAME 0xffffffffU /* as struct sim_config says */

/* Which of several files is next. */
enum sim_files {
	SIM_FILES_ROUND, /* each that is open in turn */
	SIM_FILES_SEQUENTIAL, /* one after the other */
	SIM_FILES_RANDOM,
};

/* Whom the end of one process ends, as exitall and exit_what of fio say. */
enum sim_exits {
	SIM_EXITS_NOBODY,
	SIM_EXITS_GROUP, /* those with its exit_group */
	SIM_EXITS_RUNNING, /* those that have begun, and to count too */
	SIM_EXITS_ALL,
};

/* One process. Bytes and positions are multiples of 512. */
struct sim_job {
	char name[64];
	u32 section; /* index of the job file's section it is a clone of */
	u32 group; /* what SIM_OWNERS_GROUP tells apart */
	u32 rw; /* SIM_RW_ bits */
	u32 read_pct; /* for mixed jobs, 0..100 */
	u64 offset; /* first byte of its region on the disk */
	u64 size; /* bytes in its region */
	u64 io_bytes; /* transfer this much, then stop */
	/* Block sizes: one entry, or several with weights that sum to 100. */
	u32 nr_splits[2]; /* for reads, for writes */
	u32 split_bytes[2][SIM_MAX_SPLITS];
	u32 split_pct[2][SIM_MAX_SPLITS];
	/* A range instead: uniform in [min, max] by multiples of align. */
	u32 range_min[2];
	u32 range_max[2]; /* 0: no range, use the split */
	u32 align_bytes; /* alignment of random positions */
	s64 seq_skip; /* bytes skipped after each sequential block */
	bool direct;
	bool norandommap;
	bool drops_pages; /* of its region, before each pass over it */
	u32 iodepth; /* requests kept in flight; 1 for buffered jobs */
	u64 thinktime_ns;
	u32 thinktime_blocks; /* think after this many blocks, at least 1 */
	u64 startdelay_ns;
	u64 runtime_ns; /* 0: no limit */
	bool time_based; /* begin again until runtime is over */
	u32 fsync_blocks; /* fsync after this many writes, 0: never */
	bool end_fsync;
	u64 seed;
	u32 stage; /* a stage starts when all before it are done */
	u64 zone_size; /* zonemode=strided: 0 none */
	u64 zone_range;
	u64 zone_skip;
	/* Of a random job's blocks: so many of 100 go on where it is. */
	u32 in_order_pct[2];
	u32 random_every; /* only every so many goes elsewhere; 0: as 1 */
	bool stays; /* the others are the same one again */
	bool sizes_by_order; /* the split of reads is for them, not for reads */
	u32 places; /* enum sim_places: where random blocks are */
	bool scattered; /* what lies together there does not on the disk */
	bool scattered_alike; /* ... and all processes share what is popular */
	u64 places_shift; /* units of align_bytes, in a circle */
	u64 normal_spread; /* the same; added on both sides of the mean */
	u64 rate[2]; /* at most so many bytes/s, 0: no limit */
	u32 rate_unit[2]; /* its smallest block */
	bool rate_poisson;
	bool rate_forgives; /* what was not done while thinking */
	bool offload; /* before it waits for its rate, nothing need be done */
	u64 ramp_ns; /* statistics begin so late */
	char wait_for[64]; /* a name: start when all of that job are done */
	/*
	 * Several files, one behind the other: each file_stride bytes, of which
	 * file_size are used. Then size is that of all together.
	 */
	u32 nr_files; /* 0 or 1: the region is one */
	u64 file_stride;
	u64 file_size;
	u32 open_files; /* at once, at least 1 */
	u32 file_service; /* enum sim_files */
	u32 file_service_blocks; /* before another one has its turn */
	u32 exits; /* enum sim_exits: when it is done, who is too */
	u32 exit_group;

	/* What fio has no word for. */

	/* Work file by file: of these lengths, with weights that sum to 100. */
	u32 nr_file_splits; /* 0: the region is one file */
	u32 file_bytes[SIM_MAX_SPLITS];
	u32 file_pct[SIM_MAX_SPLITS];
	/*
	 * At random: files lie in the beginning of groups, as file systems have
	 * them. What is written is new, and goes into its group's free space.
	 */
	u64 group_bytes; /* 0: anywhere, and a file is written where it lies */
	u64 group_files_bytes; /* of each group, for files */
	/* Of what is written: so many of 100 are added to a file instead. */
	u32 append_pct;
	u32 append_bytes; /* after its last page has been read and rewritten */
	/* In order: so many files lie together, the next ones elsewhere. */
	u32 directory_files; /* 0: all lie together */
	/* A process for each file, this long after the last one has gone. */
	bool new_process;
	u64 spawn_ns;
	/* After so many blocks wait until all of the same number have come. */
	u32 barrier; /* 0: none */
	u32 barrier_blocks;
	bool turns; /* of these only one goes on at a time, then the next */
	/* Blocks are done by whichever thread of this pool is free. */
	u32 pool; /* below SIM_MAX_POOLS; 0: none */
	u32 pool_threads; /* at most SIM_MAX_THREADS */
	/* Every so many blocks, think until the disk serves somebody else. */
	u32 stall_blocks; /* 0: never; else at most thinktime_ns at a time */
	u32 readahead_pages; /* its largest window; SIM_READAHEAD_SAME */
	u32 first_window_pages; /* of a file; 0: as Linux since 2.6.23 */
	bool maps; /* of the file lie between its data, as in ext2 and ext3 */
	bool end_sync; /* the last one to end writes all back, as sync(2) */
	bool background; /* goes on until all others are done */
};

struct sim_config {
	char policy[64]; /* "stream:deadline" */
	u32 owners; /* enum sim_owners */
	u32 queue_depth; /* of the device, 1..32 */
	u32 nr_requests; /* the scheduler's, as in Linux */
	u32 max_request_sectors; /* merging stops there */
	u64 cache_bytes; /* page cache */
	u32 dirty_pct; /* of it: with more dirty, writers sleep */
	u32 readahead_pages; /* largest window, 4 KiB pages; 0: no readahead */
	u64 page_copy_ns; /* CPU time for one page of a buffered read */
	u64 wake_ns; /* from a completion until its sender runs again */
	bool wrap; /* fold trace positions beyond the disk */
	bool closed; /* replay by dependency, not by time stamp */
	bool one_owner; /* replay only the requests of this owner: */
	u64 the_owner;
	u64 stop_ns; /* end of the world, 0: none */
};

#define SIM_NO_MEMBER 0xffffffffU

/* How disks are put together; see core/array/geometry.h. */
struct sim_array_config {
	u32 level; /* enum ss_array_level */
	u32 layout; /* enum ss_array_layout; of RAID 5, 6 and 10 */
	u32 chunk_sectors;
	bool coordinated; /* members under stream help each other */
	u32 failed_member; /* SIM_NO_MEMBER: none fails */
	u64 fail_at_ns; /* 0: it is missing from the start */
};

/* A distribution of times, in ns. */
struct sim_times {
	u64 count;
	u64 mean_ns;
	u64 stddev_ns; /* of a sample */
	u64 p50_ns;
	u64 p99_ns;
	u64 p999_ns;
	u64 min_ns;
	u64 max_ns;
};

struct sim_job_result {
	u64 bytes[2]; /* read, written by the process */
	u64 blocks[2];
	u64 start_ns;
	u64 end_ns;
	struct sim_times latency[2]; /* as the process sees it */
	struct sim_times response; /* the same, reads and writes together */
	struct sim_times wait; /* of its disk requests */
};

struct sim_result {
	u64 duration_ns; /* from the first start to the last end */
	u64 process_bytes[2]; /* what processes (or the trace) moved */
	u64 disk_bytes[2]; /* what the disk moved */
	u64 disk_requests;
	struct sim_times wait; /* arrival to dispatch */
	struct sim_times service; /* disk's own time for the request */
	struct sim_times response; /* arrival to completion */
	u64 switches; /* requests after another process's */
	u64 switch_ns; /* positioning of those, sum */
	u64 position_ns; /* positioning of all requests, sum */
	u64 busy_ns; /* disk working */
	u64 max_pending;
	/* struct ss_counters, by name */
	u64 dispatches;
	u64 merges;
	u64 seeks;
	u64 waits;
	u64 hits;
	u64 timeouts;
	u64 second_chances;
	u64 slices_ended;
	u64 expired;
	u64 idle_ns;
	u64 dispatched_by[SS_WHYS]; /* dispatches, by enum ss_why */
	u64 waited_ns_by[SS_WHYS]; /* of those, arrival to dispatch, sum */
	/* struct ss_array_counters, of a coordinated array */
	u64 array_turns;
	u64 array_slices_ended;
	u64 array_established;
};

/* What sim_run() ended with. */
enum sim_state {
	SIM_DONE,
	SIM_MORE, /* max_events reached */
	SIM_INPUT, /* feed more of the trace: sim_feed() */
	SIM_FAILED, /* sim_why() says it */
	SIM_PAUSED, /* the time of sim_pause_at() has come */
};

struct sim;

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

/* How far it has come: 0..1000000, and the virtual time. */
u32 sim_progress_ppm(const struct sim *sim);
u64 sim_now_ns(const struct sim *sim);
void sim_result(const struct sim *sim, struct sim_result *result);
u32 sim_nr_jobs(const struct sim *sim);
void sim_job_result(const struct sim *sim, u32 job,
		    struct sim_job_result *result);

/* One bucket of a histogram that is not empty. */
struct sim_bucket {
	u64 ns; /* the greatest time that it counts */
	u64 count;
};

enum sim_histogram {
	SIM_HISTOGRAM_WAIT,
	SIM_HISTOGRAM_SERVICE,
	SIM_HISTOGRAM_RESPONSE,
	SIM_HISTOGRAMS,
};

#define SIM_MAX_BUCKETS 4096

/*
 * The distribution @which of the disks' requests, or that of what process @job
 * saw of its reads and writes, by increasing time: how many buckets there are.
 */
u32 sim_histogram(const struct sim *sim, enum sim_histogram which,
		  struct sim_bucket buckets[SIM_MAX_BUCKETS]);
u32 sim_job_histogram(const struct sim *sim, u32 job,
		      struct sim_bucket buckets[SIM_MAX_BUCKETS]);

/* In whose turn a request was dispatched. */
enum sim_party {
	SIM_PARTY_NONE, /* the policy has no parties */
	SIM_PARTY_REST,
	SIM_PARTY_WRITE_BACK,
	SIM_PARTY_SENDER, /* a known sender's, apart from the rest */
	SIM_PARTY_STREAM, /* the first stream; each later one has the next */
};

/*
 * A log of the requests that the disks have served, in the order of their
 * completion. @capacity rows are kept, from the first one on; 0: all. Positions
 * are the disk's own, in sectors.
 */
struct sim_log_row {
	u64 arrival_ns; /* the oldest part of it was sent */
	u64 dispatch_ns; /* to the disk */
	u64 start_ns; /* the disk began to work on it */
	u64 complete_ns;
	u64 position_ns; /* of its service: seek, settling, rotation */
	u64 sector;
	u64 owner; /* as the scheduler was told */
	u32 nr_sectors;
	u32 job; /* the process of its first part; of a trace: its owner */
	u32 party; /* enum sim_party */
	u16 disk;
	u8 direction;
	u8 why; /* enum ss_why */
};
int sim_log(struct sim *sim, u64 capacity);
u64 sim_log_rows(const struct sim *sim, const struct sim_log_row **rows);
/* Forget the rows that there are now. */
void sim_log_clear(struct sim *sim);

#endif
