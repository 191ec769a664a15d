// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parameters: each is checked when it is given, all together when they
 * are complete (complete.c). Everything wrong is refused, before anything is
 * served, with one sentence.
 */
#include "config.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_REQUEST 65536
#define MAX_REQUEST (4U << 20)

static int set_file(const char *key, const char *value)
{
	struct config *config = &server.config;

	if (!*value) {
		nbdkit_error("%s=: a file's name is missing", key);
		return -1;
	}
	if (config->nr_files == MAX_MEMBERS) {
		nbdkit_error("file=%s: there are %u already, the most", value,
			     MAX_MEMBERS);
		return -1;
	}
	config->file[config->nr_files] = nbdkit_absolute_path(value);
	return config->file[config->nr_files++] ? 0 : -1;
}

static int set_text(const char *key, const char *value, const char **text)
{
	if (!*value) {
		nbdkit_error("%s=: a value is missing", key);
		return -1;
	}
	*text = nbdkit_strdup_intern(value);
	return *text ? 0 : -1;
}

static int set_output(const char *value, struct output *output)
{
	if (!*value) {
		nbdkit_error("%s=: a file's name is missing", output->key);
		return -1;
	}
	output->path = nbdkit_absolute_path(value);
	return output->path ? 0 : -1;
}

static int set_policy(const char *key, const char *value)
{
	return set_text(key, value, &server.config.policy);
}

static int set_emulate(const char *key, const char *value)
{
	return set_text(key, value, &server.config.emulate) ||
			       disk_load(value, &server.config.disk) ?
		       -1 :
		       0;
}

static int set_size(const char *key, const char *value)
{
	struct config *config = &server.config;

	if (set_text(key, value, &config->size_text) ||
	    parse_bytes(key, value, &config->size))
		return -1;
	if (config->size)
		return 0;
	nbdkit_error("size=%s: a disk of no bytes cannot be served", value);
	return -1;
}

static int set_chunk(const char *key, const char *value)
{
	u64 *chunk = &server.config.chunk;

	if (parse_bytes(key, value, chunk))
		return -1;
	server.config.chunk_given = true;
	if (*chunk < 4096 || *chunk > (1ULL << 30) || (*chunk & (*chunk - 1))) {
		nbdkit_error(
			"chunk=%s: must be a power of two from 4k to 1G, as in chunk=64k",
			value);
		return -1;
	}
	return 0;
}

static int set_max_request(const char *key, const char *value)
{
	u64 *most = &server.config.max_request;

	if (parse_bytes(key, value, most))
		return -1;
	if (*most < MIN_REQUEST || *most > MAX_REQUEST ||
	    (*most & (*most - 1))) {
		nbdkit_error(
			"max-request=%s: must be a power of two from 64k to 4M",
			value);
		return -1;
	}
	return 0;
}

static int set_depth(const char *key, const char *value)
{
	return parse_number(key, value, 1, MAX_DEPTH, &server.config.depth);
}

static int set_direct(const char *key, const char *value)
{
	return parse_detect(key, value, &server.config.direct);
}

static int set_io(const char *key, const char *value)
{
	static const char *const words[] = { "threads", "uring", "detect",
					     NULL };
	int place;

	if (parse_word(key, value, words, &place))
		return -1;
	server.config.uring = place == 2 ? -1 : place;
	return 0;
}

static int set_rotational(const char *key, const char *value)
{
	return parse_detect(key, value, &server.config.rotational);
}

static int set_coordinate(const char *key, const char *value)
{
	return parse_detect(key, value, &server.config.coordinate);
}

static int set_readonly(const char *key, const char *value)
{
	return parse_detect(key, value, &server.config.readonly);
}

static int set_truncate(const char *key, const char *value)
{
	return parse_bool(key, value, &server.config.truncate);
}

static int set_force(const char *key, const char *value)
{
	return parse_bool(key, value, &server.config.force);
}

static int set_curve(const char *key, const char *value)
{
	(void)key;
	return parse_curve(value);
}

static int set_writes(const char *key, const char *value)
{
	static const char *const words[] = { "async", "sync", NULL };
	int place;

	if (parse_word(key, value, words, &place))
		return -1;
	server.config.sync_writes = place;
	return 0;
}

static int set_stats(const char *key, const char *value)
{
	struct output *output = &server.config.stats;

	(void)key;
	server.config.stats_wanted = true;
	return strcmp(value, "-") ? set_output(value, output) : 0;
}

static int set_metrics(const char *key, const char *value)
{
	(void)key;
	return set_output(value, &server.config.metrics);
}

static int set_log(const char *key, const char *value)
{
	(void)key;
	return set_output(value, &server.config.log);
}

static int set_interval(const char *key, const char *value)
{
	return parse_number(key, value, 1, 86400, &server.config.metrics_s);
}

static int set_fault(const char *key, const char *value)
{
	(void)key;
	return fault_add(value);
}

static const struct {
	const char *name;
	int (*set)(const char *key, const char *value);
} parameters[] = {
	{ "file", set_file },
	{ "policy", set_policy },
	{ "chunk", set_chunk },
	{ "queue-depth", set_depth },
	{ "max-request", set_max_request },
	{ "direct", set_direct },
	{ "io", set_io },
	{ "readonly", set_readonly },
	{ "truncate", set_truncate },
	{ "rotational", set_rotational },
	{ "coordinate", set_coordinate },
	{ "curve", set_curve },
	{ "writes", set_writes },
	{ "emulate", set_emulate },
	{ "size", set_size },
	{ "stats", set_stats },
	{ "metrics", set_metrics },
	{ "metrics-interval", set_interval },
	{ "log", set_log },
	{ "force", set_force },
	{ "fault", set_fault },
};
static bool given[ARRAY_SIZE(parameters)];

/* ---- names that do not exist ---- */

/* Letters to change, add or leave out to get from @a to @b. */
static u32 distance(const char *a, const char *b)
{
	size_t length = strlen(b), i;
	u32 row[MAX_NAME + 1];

	if (length > MAX_NAME)
		return U32_MAX;
	for (i = 0; i <= length; i++)
		row[i] = (u32)i;
	for (; *a; a++) {
		u32 before = row[0]++;

		for (i = 1; i <= length; i++) {
			u32 change = before + (*a != b[i - 1]);

			before = row[i];
			if (row[i] + 1 < change)
				change = row[i] + 1;
			if (row[i - 1] + 1 < change)
				change = row[i - 1] + 1;
			row[i] = change;
		}
	}
	return row[length];
}

static void consider(const char *given, const char *name, const char **nearest,
		     u32 *least)
{
	u32 d = distance(given, name);

	if (d < *least) {
		*least = d;
		*nearest = name;
	}
}

static int refuse_name(const char *key)
{
	const char *nearest = NULL;
	u32 least = (u32)strlen(key) / 2 + 1, i, t;

	for (i = 0; i < ARRAY_SIZE(parameters); i++)
		consider(key, parameters[i].name, &nearest, &least);
	for (i = 0; i < ss_nr_policies; i++)
		for (t = 0; t < ss_policies[i]->nr_tunables; t++)
			consider(key, ss_policies[i]->tunables[t].name,
				 &nearest, &least);
	if (nearest)
		nbdkit_error("unknown parameter \"%s\"; did you mean \"%s\"?",
			     key, nearest);
	else
		nbdkit_error(
			"unknown parameter \"%s\"; nbdkit streamsched --help lists them",
			key);
	return -1;
}

/* ss_sched_init() refuses it too, but does not know what was meant. */
int check_policy(void)
{
	char name[MAX_NAME + 1];
	const char *at = server.config.policy, *nearest;
	u32 least, i;

	if (strlen(at) > MAX_NAME) {
		nbdkit_error(
			"policy=%.*s...: must be names of policies with colons between, at most %d characters",
			MAX_NAME, at, MAX_NAME);
		return -1;
	}
	for (;;) {
		size_t length = strcspn(at, ":");

		/* What is further from all names was not meant to be one. */
		least = (u32)length / 2 + 1;
		nearest = NULL;
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		for (i = 0; i < ss_nr_policies; i++)
			consider(name, ss_policies[i]->name, &nearest, &least);
		if (least)
			break;
		if (!at[length])
			return 0;
		at += length + 1;
	}
	if (nearest)
		nbdkit_error(
			"policy=%s: there is no \"%s\"; did you mean \"%s\"?",
			server.config.policy, name, nearest);
	else
		nbdkit_error(
			"policy=%s: there is no \"%s\"; nbdkit streamsched --dump-plugin lists the policies",
			server.config.policy, name);
	return -1;
}

int refuse_twice(const char *key, const char *value)
{
	nbdkit_error("%s=%s: %s= is given twice; give it once", key, value,
		     key);
	return -1;
}

/* Is @value of @key no name of a file, and not of one line? */
static bool has_control(const char *key, const char *value)
{
	static const char *const files[] = { "file", "stats", "metrics",
					     "log" };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		if (!strcmp(files[i], key))
			return false;
	for (; *value; value++)
		if ((unsigned char)*value < ' ')
			return true;
	return false;
}

int config_set(const char *key, const char *value)
{
	u32 i, t;

	if (has_control(key, value)) {
		nbdkit_error(
			"%s: has a line break or another control character in it; write it on one line",
			key);
		return -1;
	}
	for (i = 0; i < ARRAY_SIZE(parameters); i++) {
		if (strcmp(parameters[i].name, key))
			continue;
		if (given[i] && parameters[i].set != set_file &&
		    parameters[i].set != set_fault)
			return refuse_twice(key, value);
		given[i] = true;
		return parameters[i].set(key, value);
	}
	for (i = 0; i < ss_nr_policies; i++)
		for (t = 0; t < ss_policies[i]->nr_tunables; t++)
			if (!strcmp(ss_policies[i]->tunables[t].name, key))
				return set_tunable(ss_policies[i],
						   &ss_policies[i]->tunables[t],
						   value);
	for (i = 0; i < ss_nr_policies; i++) {
		const char *by = ss_policy_replaced(ss_policies[i], key);

		if (by) {
			nbdkit_error("%s is gone: %s", key, by);
			return -1;
		}
	}
	return refuse_name(key);
}
