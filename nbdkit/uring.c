// SPDX-License-Identifier: GPL-2.0-only
/* See engine.h. */
#include "engine.h"

#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct ring {
	struct engine engine;
	struct io_uring uring;
	int kick_fd;
	uint64_t kicks; /* read from kick_fd into here */
};

/* Results that are nobody's: those of a delay before a transfer. */
static char no_user;

static struct ring *ring_of(struct engine *engine)
{
	return (struct ring *)engine;
}

static struct io_uring_sqe *next_sqe(struct ring *ring)
{
	struct io_uring_sqe *sqe;

	/* Submitting makes room: the queue holds what is not yet submitted. */
	while (!(sqe = io_uring_get_sqe(&ring->uring)))
		io_uring_submit(&ring->uring);
	return sqe;
}

/* Kicks arrive as the result of a read that is always under way. */
static void await_kick(struct ring *ring)
{
	struct io_uring_sqe *sqe = next_sqe(ring);

	io_uring_prep_read(sqe, ring->kick_fd, &ring->kicks,
			   sizeof(ring->kicks), 0);
	io_uring_sqe_set_data(sqe, ring);
}

static void uring_free(struct engine *engine)
{
	struct ring *ring = ring_of(engine);

	io_uring_queue_exit(&ring->uring);
	close(ring->kick_fd);
	free(ring);
}

static void uring_add(struct engine *engine, const struct engine_io *io,
		      void *user)
{
	struct ring *ring = ring_of(engine);
	struct __kernel_timespec delay = {
		.tv_sec = (int64_t)(io->delay_ns / 1000000000),
		.tv_nsec = (long long)(io->delay_ns % 1000000000),
	};
	struct io_uring_sqe *sqe;

	if (io->delay_ns) {
		/* Both entries must go to the kernel together. */
		if (io_uring_sq_space_left(&ring->uring) < 2)
			io_uring_submit(&ring->uring);
		sqe = next_sqe(ring);
		io_uring_prep_timeout(sqe, &delay, 0,
				      IORING_TIMEOUT_ETIME_SUCCESS);
		sqe->flags |= IOSQE_IO_LINK;
		io_uring_sqe_set_data(sqe, &no_user);
	}
	sqe = next_sqe(ring);
	if (io->write)
		io_uring_prep_writev(sqe, io->fd, io->iov, io->nr_iov,
				     io->offset);
	else
		io_uring_prep_readv(sqe, io->fd, io->iov, io->nr_iov,
				    io->offset);
	if (io->dsync)
		sqe->rw_flags = RWF_DSYNC;
	io_uring_sqe_set_data(sqe, user);
	if (io->delay_ns) /* @delay is gone when this returns */
		io_uring_submit(&ring->uring);
}

static void uring_wait(struct engine *engine, uint64_t timeout_ns)
{
	struct ring *ring = ring_of(engine);
	struct __kernel_timespec timeout = {
		.tv_sec = (int64_t)(timeout_ns / 1000000000),
		.tv_nsec = (long long)(timeout_ns % 1000000000),
	};
	struct io_uring_cqe *cqe;

	if (timeout_ns == UINT64_MAX)
		io_uring_submit_and_wait(&ring->uring, 1);
	else
		io_uring_submit_and_wait_timeout(&ring->uring, &cqe, 1,
						 &timeout, NULL);
}

static bool uring_next(struct engine *engine, void **user, int *result)
{
	struct ring *ring = ring_of(engine);
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(&ring->uring, &cqe)) {
		void *data = io_uring_cqe_get_data(cqe);

		*result = cqe->res;
		io_uring_cqe_seen(&ring->uring, cqe);
		if (data == ring) {
			await_kick(ring);
			continue;
		}
		if (data == &no_user)
			continue;
		*user = data;
		return true;
	}
	return false;
}

static void uring_kick(struct engine *engine)
{
	const struct ring *ring = ring_of(engine);
	uint64_t one = 1;

	/* Cannot fail: the counter never comes near its limit. */
	if (write(ring->kick_fd, &one, sizeof(one)) < 0)
		abort();
}

static const struct engine_ops uring_ops = {
	.free = uring_free,
	.add = uring_add,
	.wait = uring_wait,
	.next = uring_next,
	.kick = uring_kick,
};

struct engine *uring_new(unsigned int depth)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	int error;

	if (!ring)
		return NULL;
	ring->kick_fd = eventfd(0, EFD_CLOEXEC);
	if (ring->kick_fd < 0)
		goto fail;
	/* Each transfer may have a delay; and the kick. */
	error = io_uring_queue_init(2 * depth + 1, &ring->uring, 0);
	if (error) {
		close(ring->kick_fd);
		errno = -error;
		goto fail;
	}
	ring->engine.ops = &uring_ops;
	await_kick(ring);
	return &ring->engine;
fail:
	error = errno;
	free(ring);
	errno = error;
	return NULL;
}
