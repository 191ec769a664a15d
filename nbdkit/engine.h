/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asynchronous reads and writes, for one thread that waits for them; other
 * threads may only kick it awake. By io_uring (uring.c), or where that is
 * missing or forbidden by threads with plain system calls (threads.c). Both
 * are compiled without compat/, whose <linux/types.h> liburing cannot live
 * with.
 */
#ifndef NBDKIT_ENGINE_H
#define NBDKIT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct engine;

/* One vectored transfer between memory and a file. */
struct engine_io {
	int fd;
	bool write;
	bool dsync; /* a write is done only when it is on the medium */
	const struct iovec *iov; /* left alone until the result is there */
	unsigned int nr_iov;
	uint64_t offset;
	uint64_t delay_ns; /* begin that much later */
};

struct engine_ops {
	void (*free)(struct engine *engine);
	void (*add)(struct engine *engine, const struct engine_io *io,
		    void *user);
	void (*wait)(struct engine *engine, uint64_t timeout_ns);
	bool (*next)(struct engine *engine, void **user, int *result);
	void (*kick)(struct engine *engine);
};

struct engine {
	const struct engine_ops *ops;
};

/* For at most @depth transfers at once; NULL with errno set. */
struct engine *uring_new(unsigned int depth);
struct engine *threads_new(unsigned int depth);

/* Nothing is under way. */
static inline void engine_free(struct engine *engine)
{
	engine->ops->free(engine);
}

/* Begin @io at the next engine_wait() or before. */
static inline void engine_add(struct engine *engine, const struct engine_io *io,
			      void *user)
{
	engine->ops->add(engine, io, user);
}

/*
 * Sleep until a transfer is done, engine_kick() is called or @timeout_ns have
 * passed (UINT64_MAX: no limit).
 */
static inline void engine_wait(struct engine *engine, uint64_t timeout_ns)
{
	engine->ops->wait(engine, timeout_ns);
}

/* A transfer that is done: what engine_add() was given, bytes or -errno. */
static inline bool engine_next(struct engine *engine, void **user, int *result)
{
	return engine->ops->next(engine, user, result);
}

/* From any thread: the engine_wait() under way, or the next one, returns. */
static inline void engine_kick(struct engine *engine)
{
	engine->ops->kick(engine);
}

/* Do @io here and now: bytes or -errno. From any thread. */
int engine_do(const struct engine_io *io);
void engine_delay(uint64_t ns);

#endif
