/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the simulator's files share.
 *
 *	process*.c, replay.c	want blocks moved
 *	cache.c			page cache, readahead, write-back between them
 *				and the block layer
 *	array.c			from an array's bios to its members'
 *	block.c			bios, merging, the scheduler, the disk
 *	block_note.c		what is remembered of requests
 *	block_switch.c		a disk's scheduler, and the one after it
 *	sim.c			the clock, events, results
 */
#ifndef SIM_INTERNAL_H
#define SIM_INTERNAL_H

#include "../core/array/array.h"
#include "../core/places.h"
#include "../core/policies.h"
#include "../core/sched.h"
#include "../disk/hdd_drive.h"
#include "histogram.h"
#include "sim.h"

#define SECTOR_BYTES 512
#define PAGE_BYTES 4096
#define PAGE_SECTORS (PAGE_BYTES / SECTOR_BYTES)

struct sim_process;
struct sim_replay;
struct sim_sources;
struct sim_cache;

/* ---- block.c ---- */

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
	void (*done)(struct sim *sim, struct sim_bio *bio);
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

/*
 * Schedulers of a disk: one, but stream has one for each of two actuators, as
 * in the kernel. In an array it has one all the same.
 */
#define SIM_HEADS 2
#define SIM_PLACES SS_PLACES /* streams of a policy */

/* A disk and its scheduler: all of the storage, or a member of the array. */
struct sim_disk {
	struct ss_sched sched[SIM_HEADS]; /* by actuator */
	u32 party[SIM_HEADS][SIM_PLACES]; /* which stream has the place */
	u32 nr_heads; /* so many of them there are */
	u32 first_head; /* is asked first */
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

/* All schedulers there are; the loop cannot be left by break. */
#define sim_for_each_sched(sim, one)                                           \
	for (u32 disk_ = 0; disk_ < (sim)->nr_disks; disk_++)                  \
		for (struct ss_sched *one = (sim)->disk[disk_].sched;          \
		     one <                                                     \
		     (sim)->disk[disk_].sched + (sim)->disk[disk_].nr_heads;   \
		     one++)

struct sim_bio *sim_bio_new(struct sim *sim);
void sim_bio_free(struct sim *sim, struct sim_bio *bio);
/* A new bio for the storage: the array's, or the only disk's. */
void sim_submit(struct sim *sim, struct sim_bio *bio);
/* A bio for one disk, bio->disk. */
void sim_block_submit(struct sim *sim, struct sim_bio *bio);
/* Senders that can pause (a trace) ask before they send. */
bool sim_congested(const struct sim *sim);
void sim_block_kick(struct sim *sim, struct sim_disk *disk);
void sim_block_completions(struct sim *sim, struct sim_disk *disk);
/* All that waits for @disk is handed back, in order of its arrival. */
struct sim_bio *sim_block_take_back(struct sim *sim, struct sim_disk *disk);

/* Requests that wait to be chosen. */
u32 sim_block_pending(const struct sim_disk *disk);
/* The scheduler that has @sector. */
struct ss_sched *sim_block_sched(struct sim_disk *disk, u64 sector);
/* Those that slept for want of a request go on, in their order. */
void sim_block_unblock(struct sim *sim, struct sim_disk *disk);

/* ---- block_note.c ---- */

/* When the oldest part of @request was sent; joins do not order them. */
u64 sim_block_wanted_ns(const struct sim_request *request);
/* Whose turn it is once @rq, still pending, is dispatched: enum sim_party. */
u32 sim_block_party(struct sim *sim, struct sim_disk *disk,
		    const struct ss_request *rq);
/* @request is done: its row in the log, what it adds to the sums. */
void sim_block_note_log(struct sim *sim, const struct sim_request *request);
void sim_block_note(struct sim *sim, struct sim_disk *disk,
		    const struct sim_request *request);
/* While the disk flushed, requests pending did not wait for the scheduler. */
void sim_block_note_flush(const struct sim *sim, struct sim_disk *disk,
			  const struct hdd_cmd *flush);

/* ---- block_switch.c ---- */

/* @disk begins with @policy; nonzero on failure, with one sentence in @why. */
int sim_block_begin(const struct sim *sim, struct sim_disk *disk,
		    const char *policy, char *why, u64 why_bytes);
/* Let nothing new in, and begin with another scheduler when all is done. */
void sim_block_switch(struct sim *sim, struct sim_disk *disk,
		      const char *policy);
/* Once nothing is pending or under way, the scheduler is another one. */
void sim_block_change_when_drained(struct sim *sim, struct sim_disk *disk);

/* ---- array.c ---- */

struct sim_array;

/* NULL on failure, with one sentence in @why. */
struct sim_array *sim_array_new(struct sim *sim,
				const struct sim_array_config *config,
				char *why, u64 why_bytes);
void sim_array_free(struct sim_array *array);
void sim_array_submit(struct sim *sim, struct sim_bio *bio);
/* The scheduler of @disk ends, and another one begins. */
void sim_array_leave(struct sim *sim, struct sim_disk *disk);
void sim_array_join(struct sim *sim, struct sim_disk *disk);
u64 sim_array_capacity(const struct sim_array *array);
/* Something to be read of a member's disk only so that its head is there. */
void sim_array_place(struct sim *sim, struct sim_disk *disk);
void sim_array_result(struct sim_array *array, struct sim_result *result);

/* ---- sim.c ---- */

typedef void (*sim_timer_fn)(struct sim *sim, void *context);

void sim_timer(struct sim *sim, u64 at_ns, sim_timer_fn fn, void *context);
int sim_fail(struct sim *sim, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void *sim_alloc(size_t bytes);
/* What was until now is left out of the results. */
/* Room for more rows in a log that grows. */
void sim_log_grow(struct sim *sim);
void sim_begin_statistics(struct sim *sim, void *unused);

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014): small, fast, seedable. */
static inline u64 sim_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Uniform in [0, bound). */
static inline u64 sim_random_below(u64 *state, u64 bound)
{
	return (u64)((unsigned __int128)sim_random(state) * bound >> 64);
}

/* ---- cache.c ---- */

/* A reader's readahead window, in pages (Linux struct file_ra_state). */
struct readahead {
	u64 start;
	u32 size;
	u32 async_size;
	u64 previous; /* last page read, U64_MAX: none */
	u32 max; /* the largest window, 0: no readahead */
	u32 first; /* the first window, 0: by what is asked for */
	bool maps; /* blocks between the data say where these are */
	u64 file_page; /* where the file begins */
	u64 rest; /* what remains to be read when a map has come, ... */
	u64 rest_pages; /* ... so many; 0: nothing */
	u64 rest_mark;
};

enum cache_answer {
	CACHE_READY, /* the page is there */
	CACHE_BLOCKED, /* wait: sim_process_page_ready() will be called */
	CACHE_SENDS, /* I/O would be sent: ask again with @may_send */
};

struct sim_cache *sim_cache_new(struct sim *sim);
void sim_cache_free(struct sim_cache *cache);
/*
 * Read @page for @job, whose region ends before @end_page and whose system
 * call wants @wanted pages from here.
 */
enum cache_answer sim_cache_read(struct sim *sim, struct readahead *ra, u32 job,
				 u64 page, u32 wanted, u64 end_page,
				 bool may_send);
/*
 * Dirty @page; false: too much is dirty, and sim_process_page_ready() will be
 * called when it no longer is.
 */
bool sim_cache_write(struct sim *sim, u32 job, u64 page);
/* The pages of a range that are read in and clean leave the cache. */
void sim_cache_drop(struct sim *sim, u64 first_page, u64 end_page);
/*
 * Write out [first, end); sim_process_synced() when all is on the disk. With
 * SS_SYNC in @flags the writes are waited for by @job (fsync), without they
 * are nobody's (sync).
 */
void sim_cache_sync(struct sim *sim, u32 job, u64 first_page, u64 end_page,
		    u8 flags);

/* ---- process*.c ---- */

struct sim_process *sim_process_new(const struct sim *sim,
				    const struct sim_job *job, u32 index);
void sim_process_free(struct sim_process *process);
/* It, if it does not wait for another one; also a second time. */
void sim_process_start(struct sim *sim, struct sim_process *process);
int sim_process_places(struct sim_process *process, u32 direction,
		       const u64 *end_unit, const u64 *below, u32 nr);
/* What it does counts from then on; U64_MAX: it has not started. */
u64 sim_process_counts_from(const struct sim_process *process);
void sim_process_page_ready(struct sim *sim, struct sim_process *process);
void sim_process_synced(struct sim *sim, struct sim_process *process);
/* Add what the process saw of its reads and writes to @response. */
void sim_process_response(const struct sim_process *process,
			  struct histogram *response);
void sim_process_result(const struct sim_process *process,
			struct sim_job_result *result);
/* How far it is, in millionths: by bytes or by time, whichever ends it. */
u64 sim_process_ppm(const struct sim *sim, const struct sim_process *process);
const struct sim_job *sim_process_job(const struct sim_process *process);
void sim_process_note_wait(struct sim_process *process, u64 wait_ns);
/* Who a scheduler that tells processes apart is told it is, just now. */
u64 sim_process_owner(const struct sim_process *process);

/* ---- sources.c ---- */

struct sim_sources *sim_sources_new(void);
void sim_sources_free(struct sim_sources *sources);
int sim_sources_add(struct sim_sources *sources, struct trace_reader *reader,
		    u64 first_sector);
/*
 * SIM_MORE: the next request of all is in @rq; SIM_INPUT: feed the trace that
 * sim_sources_at() names; SIM_FAILED: that one is bad; SIM_DONE: all are over.
 */
enum sim_state sim_sources_next(struct sim_sources *sources,
				struct trace_request *rq);
u32 sim_sources_at(const struct sim_sources *sources);
const struct trace_reader *sim_sources_reader(
	const struct sim_sources *sources);
/* Of several traces the number of the one that @owner is of. */
u32 sim_sources_group(const struct sim_sources *sources, u32 owner);

/* ---- replay.c ---- */

/* Of @sources, which it then owns. */
struct sim_replay *sim_replay_new(struct sim *sim, struct sim_sources *sources);
struct sim_sources *sim_replay_sources(const struct sim_replay *replay);
void sim_replay_free(struct sim_replay *replay);
/* Take in records as far as possible. */
enum sim_state sim_replay_fill(struct sim *sim, struct sim_replay *replay);
u64 sim_replay_next_ns(const struct sim_replay *replay);
void sim_replay_send(struct sim *sim, struct sim_replay *replay);
bool sim_replay_over(const struct sim_replay *replay);

/* ---- the simulation ---- */

struct sim_event {
	u64 at_ns;
	u64 order; /* of creation: events of one time keep it */
	sim_timer_fn fn;
	void *context;
};

/* What sim_tune() has set, also for the schedulers that come later. */
struct sim_tuned {
	char name[32];
	u64 value;
};

#define SIM_MAX_TUNED 64

/* What sim_weigh() has set; as many as policies take. */
struct sim_weight {
	u64 owner;
	u32 percent;
};

#define SIM_MAX_WEIGHTS 128

struct sim {
	struct sim_config config;
	struct sim_tuned tuned[SIM_MAX_TUNED];
	u32 nr_tuned;
	struct sim_weight weight[SIM_MAX_WEIGHTS];
	u32 nr_weights;
	u64 now_ns;
	u64 next_order;
	u64 pause_ns; /* U64_MAX: never */
	struct sim_event *heap;
	u32 nr_events, heap_size;
	char why[512];
	bool failed;

	/* block.c */
	struct sim_disk *disk;
	u32 nr_disks;
	struct sim_array *array; /* NULL: one disk */
	u64 capacity_sectors;
	struct sim_bio *free_bio;
	struct sim_request *free_request;
	void *slabs;
	u64 disk_bytes[2];
	u64 disk_requests;
	u64 dispatches;
	u64 dispatched_by[SS_WHYS], waited_ns_by[SS_WHYS];
	u64 switches, switch_ns, position_ns, busy_ns;
	u64 max_pending;
	struct ss_workload workload;
	u64 changes, draining_ns;
	struct histogram wait, service, response;
	struct sim_log_row *log;
	u64 log_rows, log_capacity;
	bool log_grows;
	u32 nr_streams; /* numbered in the log */

	/* senders */
	struct sim_cache *cache;
	struct sim_process **process;
	u32 nr_processes;
	u32 running; /* processes not done, of this stage, in the foreground */
	u64 nr_new_owners; /* processes that came after the first ones */
	u64 pool_busy[SIM_MAX_POOLS]; /* a bit for each thread */
	u64 pool_seed;
	u32 stage;
	u64 first_start_ns, last_end_ns;
	bool ramped; /* the results begin when the first ramp is over */
	struct sim_result left_out; /* sums until then */
	u64 completed_before, response_before_ns; /* of the same */
	struct sim_replay *replay;
	u64 replay_bytes[2];
};

#endif
