/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the plugin, and what they know of each other.
 *
 * An NBD command becomes one piece for each stretch of a member that it
 * touches (stripe.c); the pieces go through their member's scheduler
 * (member.c, queue.c), to a file (transfer.c, engine.h) or to a disk model
 * (disk.c), and the thread that nbdkit called sleeps until all are done.
 */
#ifndef NBDKIT_SERVER_H
#define NBDKIT_SERVER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "../core/sched.h"
#include "../disk/hdd_drive.h"
#include "engine.h"
#include "faults.h"
#include "file.h"
#include "output.h"
#include "stats.h"

#define SECTOR_BYTES 512
#define MAX_MEMBERS 64
#define MAX_DEPTH 256
/* Linux takes no more in one call (IOV_MAX). */
#define MAX_SEGMENTS 1024

/* One client: the owner of what it asks for. */
struct connection {
	u64 owner; /* counted from 1 */
	struct connection *next; /* in server.connections */
	struct stats_connection stats;
};

/* What one NBD command waits for. */
struct batch {
	sem_t done; /* posted with the last piece */
	int left; /* pieces; atomic */
	struct connection *connection;
};

/*
 * A piece of a command: one stretch of one member. In the scheduler it is a
 * request, or part of the request of another piece, which then leads it.
 */
struct piece {
	struct ss_request rq; /* while it leads */
	struct batch *batch;
	u64 sector;
	u32 nr_sectors;
	u8 direction;
	bool fua;
	const struct iovec *iov; /* where its bytes are or go */
	u32 nr_iov;
	u64 wanted_ns; /* when it came, ... */
	u64 dispatched_ns;
	u64 done_ns; /* ... and the disk was done with it */
	int error; /* an errno, when done */

	/* Of a leader. */
	struct piece *first, *last; /* all pieces, by position */
	struct piece *next; /* of the same leader */
	u32 led_iov; /* segments of all of them */
	bool led_fua;
	struct hdd_cmd cmd;
	struct transfer *transfer;
};

/* A flush on its way through an emulated disk. */
struct flush {
	struct hdd_cmd cmd;
	sem_t done;
	struct flush *next;
};

struct member {
	u32 index;
	pthread_mutex_t lock; /* for all but the constants below */
	struct ss_sched sched;
	struct stats_member stats;
	struct transfer *ready_first, *ready_last; /* for the disk thread */
	struct transfer *free_transfers; /* one for each of depth */
	struct flush *flush_first, *flush_last; /* for the model */
	u64 wake_ns; /* the scheduler is to be asked again */
	u64 sleep_ns; /* the disk thread sleeps until then; 0: it is awake */
	bool stop;
	u64 flushes_begun, flushes_ended; /* of the file, one at a time */
	pthread_cond_t flush_ended;
	int lost; /* errno of a failed flush: what it lost is unknown */

	/* Constant while the server runs. */
	struct file file;
	u64 sectors; /* in use */
	u32 depth; /* requests in the disk at once */
	struct hdd_drive *drive; /* NULL: the file is the disk */
	struct engine *engine; /* unless emulated */
	int kick_fd; /* if emulated */
	pthread_t thread;
	bool thread_runs;
};

/* What the parameters say; config.c. */
struct config {
	const char *file[MAX_MEMBERS];
	u32 nr_files;
	const char *policy;
	struct ss_curve_point curve[SS_CURVE_POINTS];
	u32 nr_curve; /* 0: learned */
	const char *emulate; /* NULL: the files are the disks */
	struct hdd_params disk; /* what is emulated */
	struct output stats; /* as text; without a path: standard error */
	bool stats_wanted; /* also at the end */
	struct output metrics; /* for Prometheus */
	struct output log; /* every request */
	u32 metrics_s; /* how often it is written; 0: not given */
	const char *size_text; /* of the emulated disk, as given, or NULL */
	u64 size; /* the same in bytes; 0: the model's own */
	u64 chunk;
	bool chunk_given;
	u64 max_request;
	u32 depth; /* 0: what the device has */
	int direct; /* 0 no, 1 yes, -1 where it can be had */
	int uring; /* the same, of io_uring; else threads move the bytes */
	int rotational; /* 0 no, 1 yes, -1 find out */
	int coordinate; /* stripe set: 0 no, 1 yes, -1 where it can be */
	int readonly; /* 0 no, 1 yes, -1 where a file cannot be written */
	bool truncate;
	bool force; /* files for the user may take the place of others */
	bool sync_writes;
};

struct server {
	struct config config;
	struct member *member[MAX_MEMBERS];
	u32 nr_members;
	u64 member_bytes; /* of each, in use */
	u64 bytes; /* of the export */
	u32 block_bytes; /* every offset and length is a multiple of it */
	bool rotational;

	FILE *log; /* NULL unless wanted */
	u64 log_began_ns;
	u64 log_lines; /* atomic */

	pthread_mutex_t lock; /* for what follows */
	struct connection *connections;
	u64 nr_connections; /* ever */
	struct stats_connection closed; /* of all that are gone */
};

extern struct server server;

/* Monotonic time in ns. */
static inline u64 clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * SS_SEC + (u64)now.tv_nsec;
}

/* ---- member.c ---- */

/* Make ready @member, whose file is open; 0, or -1 after nbdkit_error(). */
int member_init(struct member *member);
/* Everything is done; stop the thread and let go of all memory. */
void member_stop(struct member *member);

/*
 * Send the @nr pieces, all of one batch. With @may_leave one request that the
 * disk takes at once may be left to the caller: it is returned, and to be
 * done by member_do().
 */
struct piece *member_submit(struct member *member, struct piece *pieces, u32 nr,
			    bool may_leave);
/* Do here and now what member_submit() has left. */
void member_do(struct member *member, struct piece *leader);
/* All that was written before is on the medium afterwards; 0 or an errno. */
int member_flush(struct member *member);
/*
 * A write with FUA has been done by member_submit(): what it still needs to be
 * on the medium; 0 or an errno.
 */
int member_finish_fua(struct member *member);
void member_owner_gone(struct member *member, u64 owner);

/* ---- queue.c: with the member's lock held ---- */

int queue_init(struct member *member);
void queue_free(struct member *member);
/* @piece came. */
void queue_add(struct member *member, struct piece *piece, u64 now_ns);
/*
 * Send what the scheduler chooses. If @batch is not NULL, one of its requests
 * may be left to the caller, and is returned.
 */
struct piece *queue_pump(struct member *member, const struct batch *batch,
			 u64 now_ns);
/* A request is done: tell the scheduler, count. Its pieces still wait. */
void queue_done(struct member *member, struct piece *leader, u64 now_ns);
/* Until when the disk thread has nothing to do. */
u64 queue_next_ns(const struct member *member);
/* Have the disk thread ask the scheduler again; whatever locks are held. */
void queue_kick(struct member *member);
/*
 * Without the lock: tell the threads that wait; then the pieces' memory is
 * theirs again.
 */
void queue_wake(struct piece *leader);

/* ---- diskthread.c ---- */

/* 0, or -1 after nbdkit_error(). */
int thread_start(struct member *member);
void thread_stop(struct member *member);

/* ---- log.c ---- */

/* Nothing more is to be refused: begin the log, if one is wanted. */
int log_open(void);
void log_close(void);
/* @event of blkparse's (Q, D, C) befell @rq. */
void log_event(const struct member *member, const char *event,
	       const struct ss_request *rq, bool fua, u64 now_ns);

/* ---- array.c ---- */

struct ss_array_counters;

/* Whether members can be coordinated, if they must; 0, or -1 when refused. */
int array_check(void);
/* Coordinate the members, which run; 0, or -1 after nbdkit_error(). */
int array_start(void);
/* No longer; nothing is pending. */
void array_stop(void);
/* What it did since; false when members are not coordinated. */
bool array_counters(struct ss_array_counters *counters);

/* ---- stripe.c ---- */

/* Read or write @bytes of the export at @offset; 0 or an errno. */
int stripe_rw(struct connection *connection, u8 direction, void *buffer,
	      u32 bytes, u64 offset, bool fua);
/* Where byte @offset of the export is. */
void stripe_map(u64 offset, u32 *index, u64 *member_offset, u64 *left);
/* How many of the export's bytes below @offset are on member @index. */
u64 stripe_below(u64 offset, u32 index);

/* ---- transfer.c ---- */

/*
 * What is to be moved for a request: all its pieces in one call, or, after an
 * error, each on its own, so that the error reaches only those it hits.
 */
struct transfer {
	struct piece *leader;
	struct piece *only; /* this piece alone, or NULL: all */
	u64 begin; /* bytes on the member: what this call is about, ... */
	u64 bytes;
	u64 moved; /* ... and how much of it is done */
	int failed; /* an errno: do not even try */
	const struct fault *fault; /* that hits it, or NULL */
	void *bounce; /* aligned memory for when the pieces' is not */
	bool bounced;
	struct iovec iov[MAX_SEGMENTS];
	struct transfer *next; /* free, or ready */
};

void transfer_begin(struct transfer *transfer, const struct member *member,
		    struct piece *leader);
/* What to ask of the file next. */
void transfer_ask(struct transfer *transfer, const struct member *member,
		  struct engine_io *io);
/* The file's answer; true when all is done and errors are in the pieces. */
bool transfer_answer(struct transfer *transfer, const struct member *member,
		     int result);
/* Begin, ask and answer until it is done, here and now. */
void transfer_run(struct transfer *transfer, const struct member *member,
		  struct piece *leader);
/*
 * All that was written to the file is on the medium; 0 or an errno. @number
 * counts the member's flushes, for injected faults.
 */
int transfer_flush(const struct member *member, u64 number);
/* transfer_run() for @piece and nothing that it leads. */
void transfer_piece(const struct member *member, struct piece *piece);

/* ---- disk.c: emulated disks ---- */

/* The description of @name, a built-in disk or a file; 0 or -1. */
int disk_load(const char *name, struct hdd_params *params);
/* The names of those built in, each followed by @after. */
void disk_names(char *text, size_t bytes, const char *after);

/* ---- parameters: config.c, complete.c, tunables.c ---- */

int config_set(const char *key, const char *value);
/* All parameters are there: open the members; 0, or -1 when refused. */
int config_complete(void);
/* The scheduler's tunables that were given. */
int config_tune(struct ss_sched *sched);
void config_dump(void);

/* ---- statistics' thread, stats.c ---- */

/* What parts of statistics begin with; which of the metrics is the first. */
#define STATS_HEADER "streamsched:"
#define METRICS_HEADER "# HELP streamsched_"
#define METRICS_FIRST "requests_total"
/* A message among blkparse's lines, which those who read events pass over. */
#define LOG_HEADER                                                             \
	"  0,0    0        0     0.000000000     0  m   N streamsched log\n"

/* From here on SIGUSR1 asks for statistics, and ends no process. */
void stats_prepare(void);
/* This thread and those that it starts leave SIGUSR1 to the statistics' one. */
void stats_mask(void);
/* All that is counted is there. */
int stats_start(void);
void stats_stop(void);

#endif
