// SPDX-License-Identifier: GPL-2.0-only
/*
 * A member at work: requests and flushes.
 *
 * A request that its own thread may send at once is done by that thread, with
 * plain system calls: this costs no switch between threads, and is what happens
 * while the disk can take more. All others go to the member's disk thread
 * (diskthread.c).
 */
#include "server.h"

struct piece *member_submit(struct member *member, struct piece *pieces, u32 nr,
			    bool may_leave)
{
	struct piece *mine;
	u64 now_ns;
	u32 i;

	pthread_mutex_lock(&member->lock);
	now_ns = clock_ns();
	for (i = 0; i < nr; i++)
		queue_add(member, &pieces[i], now_ns);
	mine = queue_pump(member, may_leave ? pieces[0].batch : NULL, now_ns);
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
		queue_done(member, leader, now_ns);
		/* If there is a next one, the batch is not done. */
		next = queue_pump(member, batch, now_ns);
		pthread_mutex_unlock(&member->lock);
		queue_wake(leader);
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
	queue_pump(member, NULL, clock_ns());
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
		queue_kick(member);
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

int member_init(struct member *member)
{
	pthread_mutex_init(&member->lock, NULL);
	pthread_cond_init(&member->flush_ended, NULL);
	member->kick_fd = -1;
	return queue_init(member);
}

void member_stop(struct member *member)
{
	thread_stop(member);
	queue_free(member);
	file_close(&member->file);
	pthread_cond_destroy(&member->flush_ended);
	pthread_mutex_destroy(&member->lock);
}
