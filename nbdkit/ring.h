/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asynchronous reads and writes by io_uring, for one thread that waits for
 * them; other threads may only kick it awake. ring.c is compiled without
 * compat/, whose <linux/types.h> liburing cannot live with.
 */
#ifndef NBDKIT_RING_H
#define NBDKIT_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring;

/* One vectored transfer between memory and a file. */
struct ring_io {
	int fd;
	bool write;
	bool dsync; /* a write is done only when it is on the medium */
	const struct iovec *iov; /* left alone until the result is there */
	unsigned int nr_iov;
	uint64_t offset;
	uint64_t delay_ns; /* begin that much later */
};

/* For at most @depth transfers at once; NULL with errno set. */
struct ring *ring_new(unsigned int depth);
void ring_free(struct ring *ring);

/* Begin @io at the next ring_wait() or before. */
void ring_add(struct ring *ring, const struct ring_io *io, void *user);

/*
 * Sleep until a transfer is done, ring_kick() is called or @timeout_ns have
 * passed (UINT64_MAX: no limit).
 */
void ring_wait(struct ring *ring, uint64_t timeout_ns);

/* A transfer that is done: what ring_add() was given, bytes or -errno. */
bool ring_next(struct ring *ring, void **user, int *result);

/* From any thread: the ring_wait() under way, or the next one, returns. */
void ring_kick(struct ring *ring);

#endif
