// SPDX-License-Identifier: GPL-2.0-only
/*
 * A member's disk thread. It does what no other thread does at once, and keeps
 * the scheduler's time: when a policy waits for a request that does not come,
 * it asks again.
 *
 * An emulated disk has no calls to make: its model says when a request is
 * done, the thread sleeps until then, and the thread that sent it copies the
 * bytes (stripe.c).
 */
#include "server.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

/* With the lock held: how long to sleep; 0: not at all. */
static u64 sleep_for(struct member *member, u64 now_ns)
{
	u64 until = queue_next_ns(member);

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
		for (i = 0; i < nr; i++)
			queue_done(member, finished[i], now_ns);
		queue_pump(member, NULL, now_ns);
		transfer = member->ready_first;
		member->ready_first = NULL;
		sleep_ns = sleep_for(member, now_ns);
		stop = member->stop && !member->sched.nr_in_flight;
		pthread_mutex_unlock(&member->lock);
		for (i = 0; i < nr; i++)
			queue_wake(finished[i]);
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
		queue_done(member, finished[nr++], now_ns);
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
		queue_pump(member, NULL, now_ns);
		sleep_ns = sleep_for(member, now_ns);
		stop = member->stop && !member->sched.nr_in_flight;
		pthread_mutex_unlock(&member->lock);
		for (i = 0; i < nr; i++)
			queue_wake(finished[i]);
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

int thread_start(struct member *member)
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

void thread_stop(struct member *member)
{
	if (member->thread_runs) {
		pthread_mutex_lock(&member->lock);
		member->stop = true;
		queue_kick(member);
		pthread_mutex_unlock(&member->lock);
		pthread_join(member->thread, NULL);
	}
	if (member->engine)
		engine_free(member->engine);
	if (member->kick_fd >= 0)
		close(member->kick_fd);
}
