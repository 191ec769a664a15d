/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files that read the parameters share: values.c, tunables.c, config.c
 * and complete.c. What they find is in server.config (server.h).
 *
 * What returns an int returns 0, or -1 after a report by nbdkit_error().
 */
#ifndef CONFIG_H
#define CONFIG_H

#include "server.h"

/* The longest name of a policy or a parameter. */
#define MAX_NAME 64

/* ---- values.c ---- */

/* Digits alone, which @at is then behind: no sign, and nothing that wraps. */
bool parse_whole(const char **at, u64 *value);
/* "64k" or "64kB": a number of bytes. */
int parse_bytes(const char *key, const char *text, u64 *bytes);
int parse_number(const char *key, const char *text, u32 least, u32 most,
		 u32 *number);
/* One of @words, which NULL ends: its place. */
int parse_word(const char *key, const char *text, const char *const words[],
	       int *place);
int parse_bool(const char *key, const char *text, bool *value);
/* -1 for detect. */
int parse_detect(const char *key, const char *text, int *value);
/* Into server.config. */
int parse_curve(const char *text);

/* ---- tunables.c ---- */

/* For config_tune(): @ops's tunable @row is to be what @text says. */
int set_tunable(const struct ss_policy_ops *ops, const struct ss_tunable *row,
		const char *text);

/* ---- config.c ---- */

int refuse_twice(const char *key, const char *value);
/* Is server.config.policy made of names of policies? */
int check_policy(void);

#endif
