/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files about processes share.
 *
 *	process.c	the loop: wants a block, waits for it, thinks
 *	process_block.c	which block: direction, size, position
 *	process_files.c	in which of its files, if it has several
 *	process_place.c	positions that are not uniform: zipf, zones, ...
 *	process_pace.c	when: rates, pauses, statistics after a ramp
 */
#ifndef SIM_PROCESS_STATE_H
#define SIM_PROCESS_STATE_H

#include "cache.h"
#include "job.h"

#define NO_THREAD U32_MAX

enum process_step {
	STEP_NEXT, /* choose the next block */
	STEP_PAGES, /* in a buffered read or write */
	STEP_SYNC, /* an fsync is due */
	STEP_BARRIER, /* wait for the others */
	STEP_STALL, /* until the disk serves somebody else */
	STEP_DONE,
};

/* What is done with the file. */
enum file_step {
	FILE_WHOLE, /* read or written from end to end */
	FILE_LAST_READ, /* to be appended to: its last page is read */
	FILE_LAST_WRITTEN, /* and written, then what is new */
};

#define PPM 1000000U

/* A direct block under way. */
struct slot {
	u32 bios_left;
	u8 direction;
	u32 bytes;
	u32 thread;
	u64 start_ns;
};

/* Positions by weight: a share of 2^64 each, uniform within. */
struct place_table {
	u32 nr;
	u64 *end_unit;
	u64 *below; /* a random number below this means here, or before */
};

/* All processes, and what they share. */
struct sim_processes {
	const struct sim_config *config;
	struct sim_clock *clock;
	struct sim_block *block;
	struct sim_array *array;
	struct sim_cache *cache;
	struct sim_process **process;
	u32 nr, size;
	u32 running; /* not done, of this stage, in the foreground */
	u64 nr_new_owners; /* processes that came after the first ones */
	u64 pool_busy[SIM_MAX_POOLS]; /* a bit for each thread */
	u64 pool_seed;
	u32 stage;
	u64 first_start_ns, last_end_ns;
};

struct sim_process {
	struct sim_job job;
	struct sim_processes *all;
	struct sim_clock *clock;
	u32 index;
	enum process_step step;
	bool asleep; /* until somebody calls back */
	bool timed; /* a timer will run it */
	u64 seed;
	u64 begin_ns, end_ns;
	u64 cpu_ns; /* ahead of the clock by this much */

	/* Where it is in its region. */
	u64 issued; /* bytes of this pass */
	bool begins_pass; /* with the next block */
	u64 position[2]; /* next sequential block, by direction */
	u64 zone_start, zone_bytes;
	u64 *map; /* random blocks already used */
	u64 map_units, map_used;
	u64 file_at, file_end; /* what is left of this file */
	u64 files; /* begun so far */
	enum file_step file_step;
	u64 *group_filled; /* bytes of its part of each group's free space */
	/* Of several files, as fio has them, the one that the above is of. */
	struct job_file *file;
	u32 file_at_work, next_file;
	u32 files_open, files_done;
	u32 service_left; /* blocks before another file has its turn */
	u32 in_order; /* blocks since the last random position */
	u64 last_start[2]; /* where the last block began, by direction */
	struct place_table places[2]; /* by direction; empty: none */

	/* When the next one may be sent, by direction: rates. */
	u64 rate_from_ns; /* ... counted from here */
	u64 rate_bytes[2]; /* sent since, and what was forgiven */
	u64 rate_poisson_ns
		[2]; /* the same as time, when it is left to chance */
	u64 rate_next_ns[2];
	bool direction_chosen; /* of the next block, below */
	u8 next_direction;

	/* The current block. */
	u8 direction;
	u32 bytes;
	u64 start_ns;
	u64 page, end_page;
	struct readahead ra;

	struct slot *slot;
	u32 in_flight;
	u32 blocks_to_think, writes_to_sync;
	bool all_synced; /* what comes is the sync of all, not its own */
	bool one_synced; /* ... of one of its files */

	/* Who it is, and with whom. */
	u64 owner;
	u32 thread; /* of the pool, doing this block; NO_THREAD */
	u32 blocks_to_barrier; /* since the last one */
	bool at_barrier;
	bool has_turn;
	u32 blocks_to_stall;
	u64 stall_dispatches, stall_end_ns;

	bool started;
	bool ended; /* by the end of another one: it begins nothing more */
	bool ramping; /* what it does is not yet counted */
	u64 moved[2], blocks[2];
	struct histogram latency[2], wait;
};

/* The process's own time: the clock, and what it has run ahead of it. */
static inline u64 own_time(const struct sim_process *p)
{
	return p->clock->now_ns + p->cpu_ns;
}

static inline u64 region_end(const struct sim_process *p)
{
	return p->job.offset + p->job.size;
}

/* Of a map of random blocks. */
static inline u64 map_bytes(const struct sim_process *p)
{
	return (p->map_units + 63) / 64 * sizeof(u64);
}

/* The file that it works at: its region, if it has only that. */
static inline u64 file_begin(const struct sim_process *p)
{
	return p->job.offset + p->file_at_work * p->job.file_stride;
}

static inline u64 file_limit(const struct sim_process *p)
{
	return p->job.nr_files > 1 ? file_begin(p) + p->job.file_size :
				     region_end(p);
}

/* ---- process_block.c ---- */

u8 process_choose_direction(struct sim_process *p);
/* Choose length and position, which is the answer. */
u64 process_next_block(struct sim_process *p);
/* The next block of the file, all of it in one direction. */
u64 process_next_in_file(struct sim_process *p);
/* Open the next file. */
void process_next_file(struct sim_process *p);
/* The next step of appending. False: there is none. */
bool process_append_more(struct sim_process *p);

/* ---- process_files.c ---- */

/* Readahead begins anew, at the file that is worked at. */
void process_open_file(struct sim_process *p);

/* Of a process with several: */
void process_new_files(struct sim_process *p);
void process_free_files(struct sim_process *p);
/* All of them from the beginning. */
void process_begin_files(struct sim_process *p);
/* Work at the one that the next block is in. */
void process_choose_file(struct sim_process *p, u8 dir);
/* The one that an fsync is of: to fio that is a turn like a block's. */
void process_choose_synced(struct sim_process *p);

/* ---- process_place.c ---- */

/* As sim_set_places() says. */
int process_set_places(struct sim_process *p, u32 direction,
		       const u64 *end_unit, const u64 *below, u32 nr);
/* One of @units, as the job's distribution has it. */
u64 process_place(struct sim_process *p, u8 direction, u64 units);

/* ---- process_pace.c ---- */

/* Its rates count from now on. */
void process_pace_from(struct sim_process *p, u64 now_ns);
/* When the next block may be sent; 0: now, U64_MAX: one must be done first. */
u64 process_pace(struct sim_process *p);
void process_pace_sent(struct sim_process *p);
/* After a block: is it time to think? Until when? 0: no. */
u64 process_think_until(struct sim_process *p, u8 direction, u64 now_ns);
/* Statistics begin when its ramp is over, if it has one. */
void process_ramp(struct sim_process *p);

#endif
