/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where bytes really are: a loop device's in its file, a partition's on its
 * disk, a file's on the device of its file system. Two members must not be the
 * same bytes under two names, and two servers must not serve them.
 */
#ifndef NBDKIT_LAYERS_H
#define NBDKIT_LAYERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define MAX_LAYERS 64

/* Bytes @begin to @end of a device or a file. */
struct layer {
	bool block; /* a block device; else a file */
	dev_t dev; /* the device; of a file: of its file system */
	ino_t ino; /* of a file */
	uint64_t begin, end;
	bool some; /* not all of them, and it is not known which */
	char *path; /* a loop device's name for what it lies on, or NULL */
	int fd; /* that holds the lock on it, or -1 */
};

/* The first one is the file or device itself, the others are below it. */
struct layers {
	struct layer layer[MAX_LAYERS];
	unsigned int nr;
};

/* What is known of the file or device with these @st; no failure is one. */
void layers_find(struct layers *layers, const struct stat *st);
void layers_free(struct layers *layers);
/* Whether something written to one can be seen in the other. */
bool layers_meet(const struct layers *a, const struct layers *b);
/* Whether that is the file or device with these @st. */
bool layer_is(const struct layer *layer, const struct stat *st);
/*
 * Whether somebody holds a lock on it that keeps us from having one; for files
 * that cannot be opened, as their names are gone.
 */
bool layer_locked(const struct layer *layer, bool shared);
/* Whether the file or device with these @st is one of them. */
bool layers_have(const struct layers *layers, const struct stat *st);
/*
 * The number of a loop device that is not one of @layers, and lies on the same
 * bytes; -1 if there is none.
 */
int layers_other_loop(const struct layers *layers);

#endif
