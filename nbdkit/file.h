/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A member's file or block device. file.c is compiled without compat/, like
 * engine.h's, so only standard types are used here.
 */
#ifndef NBDKIT_FILE_H
#define NBDKIT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "layers.h"

struct file {
	const char *name;
	int fd;
	uint64_t bytes;
	bool block; /* a block device */
	bool direct; /* past the page cache */
	bool memory; /* a file in memory (tmpfs) */
	uint32_t block_bytes; /* offsets and lengths are multiples of it */
	uint32_t align; /* of memory; a power of two */
	uint32_t depth; /* of the device's own queue; 0: not known */
	int rotational; /* 0, 1, or -1: not known */
	struct layers layers; /* what its bytes are */
};

/*
 * Open @name. @direct: 1 must, 0 must not, -1 where the file system can. Every
 * failure is reported by nbdkit_error(): -1.
 */
int file_open(struct file *file, const char *name, bool readonly, int direct);
/* 0, or the errno for which it can be read at most. */
int file_writable(const char *name);
/*
 * Keep others out that lock what they write to, under whatever name they
 * opened it; 0, or -1 after a report.
 */
int file_lock(struct file *file, bool readonly);
/* A file in memory that nobody else sees. */
int file_memory(struct file *file, uint64_t bytes);
void file_close(struct file *file);

/* Whether it still reaches up to byte @end: 0, or EIO when it was cut off. */
int file_reaches(const struct file *file, uint64_t end);
/* All that was written is on the medium; 0 or an errno. */
int file_sync(const struct file *file);
/* The range may be forgotten; reads give zeros or what was there. */
int file_trim(const struct file *file, uint64_t offset, uint64_t bytes);
/*
 * The range reads as zeros. @may_trim: it may lose its space. @fast: only if
 * quicker than writing zeros; ENOTSUP when not, or when it cannot be done.
 */
int file_zero(const struct file *file, uint64_t offset, uint64_t bytes,
	      bool may_trim, bool fast);
/* Ask for the range to be in memory soon. */
int file_cache(const struct file *file, uint64_t offset, uint64_t bytes);
/* Whether file_extent() can tell holes. */
bool file_has_extents(const struct file *file);
/*
 * From @offset on, at most @bytes: how many are alike, and whether they are a
 * hole. 0 or an errno.
 */
int file_extent(const struct file *file, uint64_t offset, uint64_t bytes,
		uint64_t *alike, bool *hole);

#endif
