/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files that the server writes for its user: log=, stats= and metrics=.
 *
 * A file that is there is replaced only with force=yes, or if this server has
 * written it; a new one is renamed over it. No file is ever opened for writing
 * that was there before, and no link is followed.
 */
#ifndef NBDKIT_OUTPUT_H
#define NBDKIT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

struct output {
	const char *key; /* the parameter's name */
	const char *path; /* absolute, or NULL: not wanted */
	const char *name; /* its last part, ... */
	int folder; /* ... in this open directory */
	bool force; /* replace what is there */
	/* The file that was written last; no device: none yet. */
	dev_t written_dev;
	ino_t written_ino;
};

/*
 * Can it be written? @served: whether a file is what the server serves. Writes
 * nothing. This and all below: 0, or -1 after nbdkit_error().
 */
int output_check(struct output *output, bool (*served)(const struct stat *st));
/* The same again, as another user or with @served NULL. */
int output_try(const struct output *output,
	       bool (*served)(const struct stat *st));
/* Refuse two that are one file. */
int output_distinct(const struct output *a, const struct output *b);
/* A new file in the same folder; it gets @name, of OUTPUT_NAME bytes. */
#define OUTPUT_NAME 40
FILE *output_begin(const struct output *output, char *name);
/* All is written: the new file takes the place of the old one. */
int output_replace(struct output *output, const char *name);
/* Instead: there will be no new file. */
void output_forget(const struct output *output, const char *name);
void output_close(struct output *output);

#endif
