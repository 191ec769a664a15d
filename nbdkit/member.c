// SPDX-License-Identifier: GPL-2.0-only
/*
 * A member at work: its scheduler, and who moves the bytes.
 *
 * Whoever changes something (a request arrives, one is done, time has passed)
 * asks the scheduler, with the member's lock held, until it has no more to
 * send (pump()). A request that its own thread may send at once is done by
 * that thread, with plain system calls: this costs no switch between threads,
 * and is what happens while the disk can take more. All others go to the
 * member's disk thread, which also keeps the scheduler's time: when a policy
 * waits for a request that does not come, it asks again.
 *
 * An emulated disk has no calls to make: its model says when a request is
 * done, the disk thread sleeps until then, and the thread that sent it copies
 * the bytes (stripe.c).
 */
#include "server.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <linux/bug.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

u64 clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * SS_SEC + (u64)now.tv_nsec;
}

static struct piece *piece_of(struct ss_request *rq)
{
	return container_of(rq, struct piece, rq);
}

/* Its bytes are where they belong, or never will be. */
static void piece_done(struct piece *piece)
{
	struct batch *batch = piece->batch;

	/* With the last piece of a batch its memory may be gone at once. */
	if (!__atomic_sub_fetch(&batch->left, 1, __ATOMIC_ACQ_REL))
		sem_post(&batch->done);
}

/* ---- with the lock held ---- */

static struct transfer *transfer_get(struct member *member)
{
	struct transfer *transfer = member->free_transfers;

	/* There are as many as the disk takes requests. */
	BUG_ON(!transfer);
	member->free_transfers = transfer->next;
	return transfer;
}

static void transfer_put(struct member *member, struct transfer *transfer)
{
	transfer->next = member->free_transfers;
	member->free_transfers = transfer;
}

/*
 * A line of the log: what happened to a piece or a request, as blkparse writes
 * it, so that what reads its traces reads this (docs/TRACES.md).
 */
static void note(const struct member *member, const char *event,
		 const struct ss_request *rq, bool fua, u64 now_ns)
{
	u64 s, ns;

	if (!server.log)
		return;
	s = (now_ns - server.log_began_ns) / SS_SEC;
	ns = (now_ns - server.log_began_ns) % SS_SEC;
	fprintf(server.log,
		"  0,%-3u %2u %8lu %5lu.%09lu %5lu  %s %3s%s%s %lu + %u [nbd]\n",
		member->index, member->index,
		__atomic_add_fetch(&server.log_lines, 1, __ATOMIC_RELAXED), s,
		ns, rq->owner, event, rq->direction == SS_READ ? "R" : "W",
		fua ? "F" : "",
		rq->direction == SS_WRITE && ss_request_is_sync(rq) ? "S" : "",
		rq->sector, rq->nr_sectors);
}

/* Append @more's pieces to those that @leader leads. */
static void lead(struct piece *leader, struct piece *more)
{
	leader->last->next = more->first;
	leader->last = more->last;
	leader->led_iov += more->led_iov;
	leader->led_fua |= more->led_fua;
}

static void lead_front(struct piece *leader, struct piece *more)
{
	more->last->next = leader->first;
	leader->first = more->first;
	leader->led_iov += more->led_iov;
	leader->led_fua |= more->led_fua;
}

static void arrive(struct member *member, struct piece *piece, u64 now_ns)
{
	u32 max_sectors = (u32)(server.config.max_request / SECTOR_BYTES);
	struct ss_request *into, *next;
	struct piece *leader;
	enum ss_merge merge;

	note(member, "Q", &piece->rq, piece->fua, now_ns);
	piece->wanted_ns = now_ns;
	piece->first = piece;
	piece->last = piece;
	piece->next = NULL;
	piece->led_iov = piece->nr_iov;
	piece->led_fua = piece->fua;
	merge = ss_sched_find_merge(&member->sched, &piece->rq, max_sectors,
				    &into);
	leader = merge ? piece_of(into) : NULL;
	if (!leader || leader->led_iov + piece->led_iov > MAX_SEGMENTS) {
		ss_sched_arrived(&member->sched, &piece->rq, now_ns);
		return;
	}
	if (merge == SS_MERGE_BACK)
		lead(leader, piece);
	else
		lead_front(leader, piece);
	ss_sched_merged(&member->sched, into, &piece->rq, now_ns);
	while ((next = ss_sched_find_join(&member->sched, into, max_sectors)) &&
	       leader->led_iov + piece_of(next)->led_iov <= MAX_SEGMENTS) {
		ss_sched_joined(&member->sched, into, next, now_ns);
		lead(leader, piece_of(next));
	}
}

/* Flushes pass the scheduler by: nothing that they order is in it. */
static void flush_model(struct member *member, u64 now_ns)
{
	while (member->flush_first && !hdd_drive_full(member->drive)) {
		struct flush *flush = member->flush_first;

		member->flush_first = flush->next;
		ss_sched_flushes(&member->sched, true, now_ns);
		hdd_drive_submit(member->drive, &flush->cmd, now_ns);
	}
}

static bool disk_full(const struct member *member)
{
	return member->sched.nr_in_flight >= member->depth ||
	       (member->drive && hdd_drive_full(member->drive));
}

static void to_model(struct member *member, struct piece *leader, u64 now_ns)
{
	leader->cmd.sector = leader->rq.sector;
	leader->cmd.nr_sectors = leader->rq.nr_sectors;
	leader->cmd.op = leader->direction == SS_READ ? HDD_READ : HDD_WRITE;
	leader->cmd.fua = leader->led_fua;
	hdd_drive_submit(member->drive, &leader->cmd, now_ns);
}

static void to_thread(struct member *member, struct transfer *transfer)
{
	transfer->next = NULL;
	if (member->ready_first)
		member->ready_last->next = transfer;
	else
		member->ready_first = transfer;
	member->ready_last = transfer;
}

void member_kick(struct member *member)
{
	uint64_t one = 1;

	if (member->engine)
		engine_kick(member->engine);
	else if (write(member->kick_fd, &one, sizeof(one)) < 0)
		abort();
}

/* Until when the disk thread has nothing to do. */
static u64 next_ns(const struct member *member)
{
	u64 at = member->wake_ns;

	if (member->ready_first)
		return 0;
	if (member->drive && hdd_drive_next_ns(member->drive) < at)
		at = hdd_drive_next_ns(member->drive);
	return at;
}

/*
 * Send what the scheduler chooses. If @batch is not NULL, one of its requests
 * may be left to the caller, and is returned.
 */
static struct piece *pump(struct member *member, const struct batch *batch,
			  u64 now_ns)
{
	struct piece *mine = NULL;

	member->wake_ns = SS_FOREVER;
	if (member->drive)
		flush_model(member, now_ns);
	while (!disk_full(member)) {
		struct ss_decision decision = ss_sched_choose(&member->sched,
							      now_ns);
		struct piece *leader;

		if (decision.verdict == SS_WAIT)
			member->wake_ns = decision.until_ns;
		if (decision.verdict != SS_DISPATCH)
			break;
		leader = piece_of(decision.rq);
		ss_sched_dispatched(&member->sched, &leader->rq, decision.why,
				    now_ns);
		note(member, "D", &leader->rq, leader->led_fua, now_ns);
		if (member->drive) {
			to_model(member, leader, now_ns);
			continue;
		}
		leader->transfer = transfer_get(member);
		leader->transfer->leader = leader;
		if (batch && !mine && leader->batch == batch)
			mine = leader;
		else
			to_thread(member, leader->transfer);
	}
	/* 0: the thread is awake and will look for itself. */
	if (member->sleep_ns && next_ns(member) < member->sleep_ns) {
		member->sleep_ns = 0;
		member_kick(member);
	}
	return mine;
}

/* A request is done: tell the scheduler, count. Its pieces still wait. */
static void complete(struct member *member, struct piece *leader, u64 now_ns)
{
	struct ss_request *rq = &leader->rq;
	bool failed = false;
	struct piece *piece;

	note(member, "C", rq, leader->led_fua, now_ns);
	for (piece = leader->first; piece; piece = piece->next) {
		failed |= piece->error;
		piece->dispatched_ns = rq->dispatch_ns;
		piece->done_ns = now_ns;
		stats_flow(&member->stats.flow[piece->direction],
			   (u64)piece->nr_sectors * SECTOR_BYTES, piece->error);
		stats_time(&member->stats.wait,
			   rq->dispatch_ns - piece->wanted_ns);
	}
	stats_time(&member->stats.service, now_ns - rq->dispatch_ns);
	if (failed)
		ss_sched_returned(&member->sched, rq, now_ns);
	else
		ss_sched_completed(&member->sched, rq, now_ns);
}

/* ---- without it ---- */

/* Tell the threads that wait; then the pieces' memory is theirs again. */
static void wake(struct piece *leader)
{
	struct piece *piece, *next;

	for (piece = leader->first; piece; piece = next) {
		next = piece->next;
		piece_done(piece);
	}
}

struct piece *member_submit(struct member *member, struct piece *pieces, u32 nr,
			    bool may_leave)
{
	struct piece *mine;
	u64 now_ns;
	u32 i;

	pthread_mutex_lock(&member->lock);
	now_ns = clock_ns();
	for (i = 0; i < nr; i++)
		arrive(member, &pieces[i], now_ns);
	mine = pump(member, may_leave ? pieces[0].batch : NULL, now_ns);
	pthread_mutex_unlock(&member->lock);
	return mine;
}

void member_do(struct member *member, struct piece *leader)
{
	const struct batch *batch = leader->batch;

	while (leader) {
		struct piece *next;
		u64 now_ns;

		transfer_run(leader->transfer, member, leader);
		pthread_mutex_lock(&member->lock);
		now_ns = clock_ns();
		transfer_put(member, leader->transfer);
		complete(member, leader, now_ns);
		/* If there is a next one, the batch is not done. */
		next = pump(member, batch, now_ns);
		pthread_mutex_unlock(&member->lock);
		wake(leader);
		leader = next;
	}
}

/* The model's cache goes to its medium. */
static void flush_disk(struct member *member)
{
	struct flush flush = { .cmd.op = HDD_FLUSH };

	sem_init(&flush.done, 0, 0);
	pthread_mutex_lock(&member->lock);
	if (member->flush_first)
		member->flush_last->next = &flush;
	else
		member->flush_first = &flush;
	member->flush_last = &flush;
	pump(member, NULL, clock_ns());
	pthread_mutex_unlock(&member->lock);
	while (sem_wait(&flush.done))
		;
	sem_destroy(&flush.done);
}

/*
 * With the lock held: one flush of the file at a time, for all who came before
 * it began. The kernel reports a failed write-back to one call and then
 * forgets it, though the data is lost. So whoever flushes later must hear of
 * it too, and nobody may flush between that call and the note of its error.
 */
static int flush_file(struct member *member)
{
	u64 mine = member->flushes_begun + 1;

	while (member->flushes_ended < mine) {
		int error;

		if (member->flushes_begun > member->flushes_ended) {
			pthread_cond_wait(&member->flush_ended, &member->lock);
			continue;
		}
		member->flushes_begun++;
		ss_sched_flushes(&member->sched, true, clock_ns());
		pthread_mutex_unlock(&member->lock);
		error = transfer_flush(member, member->flushes_ended);
		pthread_mutex_lock(&member->lock);
		if (error)
			member->lost = error;
		ss_sched_flushes(&member->sched, false, clock_ns());
		/* Others may have waited for its end. */
		member_kick(member);
		member->flushes_ended++;
		pthread_cond_broadcast(&member->flush_ended);
	}
	return member->lost;
}

int member_flush(struct member *member)
{
	int error;

	if (member->drive)
		flush_disk(member);
	pthread_mutex_lock(&member->lock);
	error = flush_file(member);
	member->stats.flushes++;
	member->stats.flush_errors += error != 0;
	pthread_mutex_unlock(&member->lock);
	return error;
}

int member_finish_fua(struct member *member)
{
	int error;

	/*
	 * Direct writes carry the flag themselves. In the page cache the flag
	 * would be a flush past flush_file(), and could be told what is to be
	 * told there.
	 */
	if (member->file.direct || member->file.memory)
		return 0;
	pthread_mutex_lock(&member->lock);
	error = flush_file(member);
	pthread_mutex_unlock(&member->lock);
	return error;
}

void member_owner_gone(struct member *member, u64 owner)
{
	pthread_mutex_lock(&member->lock);
	ss_sched_owner_gone(&member->sched, owner, clock_ns());
	pthread_mutex_unlock(&member->lock);
}

/* ---- the disk thread ---- */

/* With the lock held: how long to sleep; 0: not at all. */
static u64 sleep_for(struct member *member, u64 now_ns)
{
	u64 until = next_ns(member);

	if (member->stop && !member->sched.nr_in_flight)
		until = 0;
	if (until <= now_ns) {
		member->sleep_ns = 0;
		return 0;
	}
	member->sleep_ns = until;
	return until == SS_FOREVER ? UINT64_MAX : until - now_ns;
}

static void add(struct member *member, struct transfer *transfer)
{
	struct engine_io io;

	transfer_ask(transfer, member, &io);
	engine_add(member->engine, &io, transfer);
}

/* Ask the file's results, or go on where they want more. */
static u32 reap(struct member *member, struct piece **finished)
{
	u32 nr = 0;
	void *user;
	int result;

	while (nr < MAX_DEPTH && engine_next(member->engine, &user, &result)) {
		struct transfer *transfer = user;

		if (transfer_answer(transfer, member, result))
			finished[nr++] = transfer->leader;
		else
			add(member, transfer);
	}
	return nr;
}

static void *file_thread(void *data)
{
	struct member *member = data;
	struct piece *finished[MAX_DEPTH];
	struct transfer *transfer, *next;
	u32 nr = 0, i;
	u64 now_ns, sleep_ns;
	bool stop;

	do {
		pthread_mutex_lock(&member->lock);
		now_ns = clock_ns();
		member->sleep_ns = 0;
		for (i = 0; i < nr; i++) {
			transfer_put(member, finished[i]->transfer);
			complete(member, finished[i], now_ns);
		}
		pump(member, NULL, now_ns);
		transfer = member->ready_first;
		member->ready_first = NULL;
		sleep_ns = sleep_for(member, now_ns);
		stop = member->stop && !member->sched.nr_in_flight;
		pthread_mutex_unlock(&member->lock);
		for (i = 0; i < nr; i++)
			wake(finished[i]);
		for (; transfer; transfer = next) {
			next = transfer->next;
			transfer_begin(transfer, member, transfer->leader);
			add(member, transfer);
		}
		if (sleep_ns)
			engine_wait(member->engine, sleep_ns);
		nr = reap(member, finished);
	} while (!stop);
	return NULL;
}

/* Commands that the model says are done by now. */
static u32 pop(struct member *member, struct piece **finished, u64 now_ns)
{
	struct hdd_cmd *cmd;
	u32 nr = 0;

	while (nr < MAX_DEPTH && (cmd = hdd_drive_pop(member->drive, now_ns))) {
		if (cmd->op == HDD_FLUSH) {
			ss_sched_flushes(&member->sched, false, now_ns);
			sem_post(&container_of(cmd, struct flush, cmd)->done);
			continue;
		}
		finished[nr] = container_of(cmd, struct piece, cmd);
		complete(member, finished[nr++], now_ns);
	}
	return nr;
}

static void *model_thread(void *data)
{
	struct member *member = data;
	struct piece *finished[MAX_DEPTH];
	struct pollfd kicked = { .fd = member->kick_fd, .events = POLLIN };
	u64 now_ns, sleep_ns, kicks;
	bool stop;
	u32 nr, i;

	/* Waking up 50 us late, the default, would be late for every sector. */
	prctl(PR_SET_TIMERSLACK, 1);
	do {
		pthread_mutex_lock(&member->lock);
		now_ns = clock_ns();
		member->sleep_ns = 0;
		nr = pop(member, finished, now_ns);
		pump(member, NULL, now_ns);
		sleep_ns = sleep_for(member, now_ns);
		stop = member->stop && !member->sched.nr_in_flight;
		pthread_mutex_unlock(&member->lock);
		for (i = 0; i < nr; i++)
			wake(finished[i]);
		if (sleep_ns) {
			struct timespec timeout = {
				.tv_sec = (time_t)(sleep_ns / SS_SEC),
				.tv_nsec = (long)(sleep_ns % SS_SEC),
			};

			if (ppoll(&kicked, 1,
				  sleep_ns == UINT64_MAX ? NULL : &timeout,
				  NULL) > 0 &&
			    read(member->kick_fd, &kicks, sizeof(kicks)) < 0)
				abort();
		}
	} while (!stop);
	return NULL;
}

/* ---- beginning and end ---- */

static int set_curve(struct member *member)
{
	struct ss_curve_point flat = { 0, 0 };

	if (!server.rotational)
		return ss_curve_set(&member->sched.curve, &flat, 1,
				    member->sectors);
	if (!server.config.nr_curve)
		return 0;
	return ss_curve_set(&member->sched.curve, server.config.curve,
			    server.config.nr_curve, member->sectors);
}

static int make_transfers(struct member *member)
{
	u32 i;

	for (i = 0; i < member->depth; i++) {
		struct transfer *transfer = calloc(1, sizeof(*transfer));

		if (!transfer)
			return -1;
		transfer_put(member, transfer);
	}
	return 0;
}

int member_init(struct member *member)
{
	const char *reason;
	char why[160];

	pthread_mutex_init(&member->lock, NULL);
	pthread_cond_init(&member->flush_ended, NULL);
	member->kick_fd = -1;
	member->wake_ns = SS_FOREVER;
	if (ss_sched_init(&member->sched, server.config.policy, member->sectors,
			  why, sizeof(why))) {
		nbdkit_error("%s", why);
		return -1;
	}
	if (config_tune(&member->sched))
		return -1;
	if (set_curve(member))
		return -1;
	if (!server.config.emulate)
		return make_transfers(member);
	member->drive = calloc(1, hdd_drive_bytes(&server.config.disk));
	if (!member->drive)
		return -1;
	/* disk_load() has checked the description. */
	return hdd_drive_init(member->drive, &server.config.disk, &reason) ||
			       hdd_drive_set_queue_depth(member->drive,
							 member->depth) ?
		       -1 :
		       0;
}

static int start_engine(struct member *member)
{
	if (server.config.uring)
		member->engine = uring_new(member->depth);
	if (!member->engine && server.config.uring <= 0)
		member->engine = threads_new(member->depth);
	if (member->engine)
		return 0;
	nbdkit_error("%s: %s: %s", member->file.name,
		     server.config.uring > 0 ? "io_uring" :
					       "cannot start a thread",
		     strerror(errno));
	return -1;
}

static int start_model(struct member *member)
{
	member->kick_fd = eventfd(0, EFD_CLOEXEC);
	if (member->kick_fd >= 0)
		return 0;
	nbdkit_error("%s: %s", member->file.name, strerror(errno));
	return -1;
}

int member_start(struct member *member)
{
	int error;

	if (member->drive ? start_model(member) : start_engine(member))
		return -1;
	error = pthread_create(&member->thread, NULL,
			       member->drive ? model_thread : file_thread,
			       member);
	if (error) {
		nbdkit_error("cannot start a thread: %s", strerror(error));
		return -1;
	}
	member->thread_runs = true;
	return 0;
}

void member_stop(struct member *member)
{
	struct transfer *transfer;

	if (member->thread_runs) {
		pthread_mutex_lock(&member->lock);
		member->stop = true;
		member_kick(member);
		pthread_mutex_unlock(&member->lock);
		pthread_join(member->thread, NULL);
	}
	while ((transfer = member->free_transfers)) {
		member->free_transfers = transfer->next;
		free(transfer->bounce);
		free(transfer);
	}
	if (member->engine)
		engine_free(member->engine);
	if (member->kick_fd >= 0)
		close(member->kick_fd);
	free(member->drive);
	file_close(&member->file);
	pthread_cond_destroy(&member->flush_ended);
	pthread_mutex_destroy(&member->lock);
}
