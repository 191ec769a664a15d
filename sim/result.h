/* SPDX-License-Identifier: GPL-2.0-only */
/* What a simulation has found. */
#ifndef SIM_RESULT_H
#define SIM_RESULT_H

#include "../core/policy.h"

#include <linux/types.h>

/* What sim_run() ended with. */
enum sim_state {
	SIM_DONE,
	SIM_MORE, /* max_events reached */
	SIM_INPUT, /* feed more of the trace: trace_feed() */
	SIM_FAILED, /* sim_why() says it */
	SIM_PAUSED, /* the time of sim_pause_at() has come */
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
	struct sim_times wait; /* arrival to dispatch */
	struct sim_times service; /* disk's own time for the request */
	struct sim_times response; /* arrival to completion */
	u64 max_pending;
	/* From here on each is a sum since the start, of u64. */
	u64 disk_bytes[2]; /* what the disk moved */
	u64 disk_requests;
	u64 switches; /* requests after another process's */
	u64 switch_ns; /* positioning of those, sum */
	u64 position_ns; /* positioning of all requests, sum */
	u64 busy_ns; /* disk working */
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

/* In whose turn a request was dispatched. */
enum sim_party {
	SIM_PARTY_NONE, /* the policy has no parties */
	SIM_PARTY_REST,
	SIM_PARTY_WRITE_BACK,
	SIM_PARTY_SENDER, /* a known sender's, apart from the rest */
	SIM_PARTY_STREAM, /* the first stream; each later one has the next */
};

/* A request that a disk has served. Positions are the disk's, in sectors. */
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

#endif
