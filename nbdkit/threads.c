// SPDX-License-Identifier: GPL-2.0-only
/*
 * See engine.h. A thread for each transfer that is under way, started when
 * there is none free for it, and kept.
 */
#include "engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

struct job {
	struct engine_io io;
	void *user;
	int result;
	struct job *next; /* free, to do, or done */
};

struct jobs {
	struct job *first, *last;
};

struct threads {
	struct engine engine;
	pthread_mutex_t lock; /* for all that follows */
	pthread_cond_t work; /* something is to do, or all is over */
	pthread_cond_t news; /* something is done, or there was a kick */
	struct job *job; /* the memory of all */
	struct job *free;
	struct jobs to_do, done;
	unsigned int nr_threads; /* never more than transfers at once */
	unsigned int nr_busy; /* transfers to do, or being done */
	bool kicked;
	bool stop;
	pthread_t thread[];
};

static struct threads *threads_of(struct engine *engine)
{
	return (struct threads *)engine;
}

static void put(struct jobs *jobs, struct job *job)
{
	job->next = NULL;
	if (jobs->first)
		jobs->last->next = job;
	else
		jobs->first = job;
	jobs->last = job;
}

static struct job *get(struct jobs *jobs)
{
	struct job *job = jobs->first;

	if (job)
		jobs->first = job->next;
	return job;
}

void engine_delay(uint64_t ns)
{
	struct timespec left = {
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};

	while (ns && nanosleep(&left, &left) && errno == EINTR)
		;
}

int engine_do(const struct engine_io *io)
{
	ssize_t moved;

	engine_delay(io->delay_ns);
	if (io->write)
		moved = pwritev2(io->fd, io->iov, (int)io->nr_iov,
				 (off_t)io->offset, io->dsync ? RWF_DSYNC : 0);
	else if (io->nr_iov == 1) /* the kernel has less to look at */
		moved = pread(io->fd, io->iov->iov_base, io->iov->iov_len,
			      (off_t)io->offset);
	else
		moved = preadv(io->fd, io->iov, (int)io->nr_iov,
			       (off_t)io->offset);
	return moved < 0 ? -errno : (int)moved;
}

static void *work(void *data)
{
	struct threads *threads = data;
	struct job *job;

	pthread_mutex_lock(&threads->lock);
	while (!threads->stop) {
		job = get(&threads->to_do);
		if (!job) {
			pthread_cond_wait(&threads->work, &threads->lock);
			continue;
		}
		pthread_mutex_unlock(&threads->lock);
		job->result = engine_do(&job->io);
		pthread_mutex_lock(&threads->lock);
		threads->nr_busy--;
		put(&threads->done, job);
		pthread_cond_signal(&threads->news);
	}
	pthread_mutex_unlock(&threads->lock);
	return NULL;
}

/* Without another thread, those that there are do it later. */
static int one_more(struct threads *threads)
{
	int error = pthread_create(&threads->thread[threads->nr_threads], NULL,
				   work, threads);

	if (!error)
		threads->nr_threads++;
	return error;
}

static void threads_add(struct engine *engine, const struct engine_io *io,
			void *user)
{
	struct threads *threads = threads_of(engine);
	struct job *job;

	pthread_mutex_lock(&threads->lock);
	job = threads->free;
	threads->free = job->next;
	job->io = *io;
	job->user = user;
	put(&threads->to_do, job);
	if (++threads->nr_busy > threads->nr_threads)
		one_more(threads);
	pthread_cond_signal(&threads->work);
	pthread_mutex_unlock(&threads->lock);
}

static void threads_wait(struct engine *engine, uint64_t timeout_ns)
{
	struct threads *threads = threads_of(engine);
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	/* Longer than any machine runs is no limit. */
	if (timeout_ns < (uint64_t)INT64_MAX / 2) {
		timeout_ns += (uint64_t)until.tv_nsec;
		until.tv_sec += (time_t)(timeout_ns / NS_PER_S);
		until.tv_nsec = (long)(timeout_ns % NS_PER_S);
	} else {
		timeout_ns = UINT64_MAX;
	}
	pthread_mutex_lock(&threads->lock);
	while (!threads->done.first && !threads->kicked && !error)
		error = timeout_ns == UINT64_MAX ?
				pthread_cond_wait(&threads->news,
						  &threads->lock) :
				pthread_cond_timedwait(&threads->news,
						       &threads->lock, &until);
	threads->kicked = false;
	pthread_mutex_unlock(&threads->lock);
}

static bool threads_next(struct engine *engine, void **user, int *result)
{
	struct threads *threads = threads_of(engine);
	struct job *job;

	pthread_mutex_lock(&threads->lock);
	job = get(&threads->done);
	if (job) {
		*user = job->user;
		*result = job->result;
		job->next = threads->free;
		threads->free = job;
	}
	pthread_mutex_unlock(&threads->lock);
	return job;
}

static void threads_kick(struct engine *engine)
{
	struct threads *threads = threads_of(engine);

	pthread_mutex_lock(&threads->lock);
	threads->kicked = true;
	pthread_cond_signal(&threads->news);
	pthread_mutex_unlock(&threads->lock);
}

static void threads_free(struct engine *engine)
{
	struct threads *threads = threads_of(engine);
	unsigned int i;

	pthread_mutex_lock(&threads->lock);
	threads->stop = true;
	pthread_cond_broadcast(&threads->work);
	pthread_mutex_unlock(&threads->lock);
	for (i = 0; i < threads->nr_threads; i++)
		pthread_join(threads->thread[i], NULL);
	pthread_cond_destroy(&threads->news);
	pthread_cond_destroy(&threads->work);
	pthread_mutex_destroy(&threads->lock);
	free(threads->job);
	free(threads);
}

static const struct engine_ops threads_ops = {
	.free = threads_free,
	.add = threads_add,
	.wait = threads_wait,
	.next = threads_next,
	.kick = threads_kick,
};

struct engine *threads_new(unsigned int depth)
{
	struct threads *threads;
	pthread_condattr_t monotonic;
	unsigned int i;
	int error;

	threads = calloc(1, sizeof(*threads) + depth * sizeof(pthread_t));
	if (!threads)
		return NULL;
	threads->job = calloc(depth, sizeof(*threads->job));
	if (!threads->job) {
		free(threads);
		return NULL;
	}
	for (i = 0; i < depth; i++) {
		threads->job[i].next = threads->free;
		threads->free = &threads->job[i];
	}
	threads->engine.ops = &threads_ops;
	pthread_mutex_init(&threads->lock, NULL);
	pthread_cond_init(&threads->work, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&threads->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	/* The first at once: with it everything can be done. */
	error = one_more(threads);
	if (error) {
		threads_free(&threads->engine);
		errno = error;
		return NULL;
	}
	return &threads->engine;
}
