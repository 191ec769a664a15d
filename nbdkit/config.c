// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parameters: each is checked when it is given, all together when they
 * are complete. Everything wrong is refused, before anything is served, with
 * one sentence.
 */
#include "server.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TUNED 64
#define MAX_NAME 64
#define MIN_REQUEST 65536
#define MAX_REQUEST (4U << 20)
#define DEFAULT_DEPTH 32

static struct {
	const struct ss_policy_ops *ops;
	const struct ss_tunable *row;
	u64 value;
} tuned[MAX_TUNED];
static u32 nr_tuned;
static bool given_chunk;

/* ---- values ---- */

/* "64k": a number of bytes; -1 after a report. */
static int parse_bytes(const char *key, const char *text, u64 *bytes)
{
	static const char units[] = "kmgtp";
	const char *unit;
	u64 scale = 1, step;
	char *end;

	errno = 0;
	*bytes = strtoull(text, &end, 10);
	unit = end != text && *end ? strchr(units, tolower(*end)) : NULL;
	if (unit) {
		step = end[1] == 'B' ? 1000 : 1024;
		end += end[1] == 'B' ? 2 : 1;
		do
			scale *= step;
		while (unit-- > units);
	}
	if (errno || end == text || *end || !isdigit(*text) ||
	    *bytes > (U64_MAX >> 1) / scale) {
		nbdkit_error(
			"%s=%s: must be a size in bytes, with k, M, G, T or P in powers of 1024 (kB, MB, ...: of 1000), as in %s=64k",
			key, text, key);
		return -1;
	}
	*bytes *= scale;
	return 0;
}

static int parse_number(const char *key, const char *text, u32 least, u32 most,
			u32 *number)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || !isdigit(*text) || value < least ||
	    value > most) {
		nbdkit_error("%s=%s: must be a whole number from %u to %u", key,
			     text, least, most);
		return -1;
	}
	*number = (u32)value;
	return 0;
}

/* One of @words; its place, or -1 after a report. */
static int parse_word(const char *key, const char *text,
		      const char *const words[], int *place)
{
	char all[128] = "";
	int i;

	for (i = 0; words[i]; i++) {
		if (!strcmp(words[i], text)) {
			*place = i;
			return 0;
		}
		if (i)
			strcat(all, words[i + 1] ? ", " : " or ");
		strcat(all, words[i]);
	}
	nbdkit_error("%s=%s: must be %s", key, text, all);
	return -1;
}

static int parse_bool(const char *key, const char *text, bool *value)
{
	static const char *const words[] = { "no", "yes", NULL };
	int place;

	if (parse_word(key, text, words, &place))
		return -1;
	*value = place;
	return 0;
}

static int parse_auto(const char *key, const char *text, int *value)
{
	static const char *const words[] = { "no", "yes", "auto", NULL };

	if (parse_word(key, text, words, value))
		return -1;
	if (*value == 2)
		*value = -1;
	return 0;
}

/* "SECTORS:NS SECTORS:NS ...", as the kernel's service_curve; or "learn". */
static int parse_curve(const char *text)
{
	struct config *config = &server.config;
	const char *at = text;
	u32 nr = 0;

	config->nr_curve = 0;
	if (!strcmp(text, "learn"))
		return 0;
	while (*at && nr < SS_CURVE_POINTS) {
		struct ss_curve_point *point = &config->curve[nr++];
		int used = 0;

		if (sscanf(at, "%lu:%lu%n", &point->distance_sectors,
			   &point->time_ns, &used) != 2 ||
		    !used || (at[used] && at[used] != ' '))
			break;
		at += used;
		while (*at == ' ')
			at++;
		config->nr_curve = nr;
	}
	if (*at || !config->nr_curve) {
		nbdkit_error(
			"curve=%s: must be \"learn\" or 1 to %u points DISTANCE_SECTORS:TIME_NS with blanks between",
			text, SS_CURVE_POINTS);
		return -1;
	}
	return 0;
}

/* ---- tunables ---- */

static const struct {
	const char *name;
	enum ss_unit unit;
	u64 value;
} units[] = {
	{ "ns", SS_UNIT_NS, 1 },       { "us", SS_UNIT_NS, SS_USEC },
	{ "ms", SS_UNIT_NS, SS_MSEC }, { "s", SS_UNIT_NS, SS_SEC },
	{ "%", SS_UNIT_PERCENT, 1 },   { "sectors", SS_UNIT_SECTORS, 1 },
};

/* As parse_value() reads it back. */
static void show_value(const struct ss_tunable *row, u64 value, char *text,
		       size_t bytes)
{
	u64 scale = 1;
	const char *unit = "";
	u32 i;

	if (row->unit == SS_UNIT_BOOL) {
		snprintf(text, bytes, "%s", value ? "on" : "off");
		return;
	}
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].unit == row->unit && value % units[i].value == 0) {
			scale = units[i].value;
			unit = units[i].name;
		}
	if (!value && row->unit == SS_UNIT_NS) {
		scale = 1;
		unit = "ns";
	}
	snprintf(text, bytes, "%lu%s", value / scale, unit);
}

static bool parse_value(const struct ss_tunable *row, const char *text,
			u64 *value)
{
	char *end;
	u32 i;

	if (row->word && !strcmp(text, row->word)) {
		*value = row->word_value;
		return true;
	}
	if (row->unit == SS_UNIT_BOOL) {
		*value = !strcmp(text, "on") || !strcmp(text, "1");
		return *value || !strcmp(text, "off") || !strcmp(text, "0");
	}
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno || end == text || !isdigit(*text))
		return false;
	/* A time must say its unit; a count has none; others may. */
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].unit == row->unit && !strcmp(end, units[i].name) &&
		    *value <= U64_MAX / units[i].value) {
			*value *= units[i].value;
			break;
		}
	if (i == ARRAY_SIZE(units) &&
	    (*end || (row->unit == SS_UNIT_NS && *value)))
		return false;
	return *value >= row->min && *value <= row->max;
}

static int set_tunable(const struct ss_policy_ops *ops,
		       const struct ss_tunable *row, const char *text)
{
	char least[32], most[32];
	u64 value;

	if (!parse_value(row, text, &value)) {
		show_value(row, row->min, least, sizeof(least));
		show_value(row, row->max, most, sizeof(most));
		nbdkit_error("%s=%s: must be within %s to %s%s%s", row->name,
			     text, least, most, row->word ? " or " : "",
			     row->word ? row->word : "");
		return -1;
	}
	if (nr_tuned == MAX_TUNED) {
		nbdkit_error("%s=%s: too many tunables", row->name, text);
		return -1;
	}
	tuned[nr_tuned].ops = ops;
	tuned[nr_tuned].row = row;
	tuned[nr_tuned++].value = value;
	return 0;
}

/* Where the server's default is not the core's. */
static int tune_defaults(struct ss_sched *sched, char *why, size_t size)
{
	const struct ss_policy_ops *ops;
	u32 i, t;

	for (i = 0; i < ss_nr_policies; i++) {
		ops = ss_policies[i];
		for (t = 0; t < ops->nr_tunables; t++) {
			const struct ss_tunable *row = &ops->tunables[t];
			u64 value = ss_tunable_serving(row);
			int error = 0;

			if (value != row->initial)
				error = ss_sched_tune(sched, row->name, value,
						      0, why, size);
			/* -ENOENT: a policy that is not used here. */
			if (error && error != -ENOENT)
				return error;
		}
	}
	return 0;
}

int config_tune(struct ss_sched *sched)
{
	char why[160];
	u32 i;

	if (tune_defaults(sched, why, sizeof(why))) {
		nbdkit_error("%s", why);
		return -1;
	}
	for (i = 0; i < nr_tuned; i++) {
		const char *name = tuned[i].row->name;
		int error = ss_sched_tune(sched, name, tuned[i].value, 0, why,
					  sizeof(why));

		if (error == -ENOENT)
			nbdkit_error(
				"%s: a tunable of %s, which policy=%s does not use",
				name, tuned[i].ops->name, server.config.policy);
		else if (error)
			nbdkit_error("%s", why);
		if (error)
			return -1;
	}
	return 0;
}

/* ---- parameters ---- */

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

static int set_path(const char *key, const char *value, const char **path)
{
	if (!*value) {
		nbdkit_error("%s=: a file's name is missing", key);
		return -1;
	}
	free((void *)*path); /* given before */
	*path = nbdkit_absolute_path(value);
	return *path ? 0 : -1;
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
	given_chunk = true;
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
	return parse_auto(key, value, &server.config.direct);
}

static int set_io(const char *key, const char *value)
{
	static const char *const words[] = { "threads", "uring", "auto", NULL };
	int place;

	if (parse_word(key, value, words, &place))
		return -1;
	server.config.uring = place == 2 ? -1 : place;
	return 0;
}

static int set_rotational(const char *key, const char *value)
{
	return parse_auto(key, value, &server.config.rotational);
}

static int set_coordinate(const char *key, const char *value)
{
	return parse_auto(key, value, &server.config.coordinate);
}

static int set_readonly(const char *key, const char *value)
{
	return parse_bool(key, value, &server.config.readonly);
}

static int set_truncate(const char *key, const char *value)
{
	return parse_bool(key, value, &server.config.truncate);
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
	return set_path(key, value, &server.config.stats);
}

static int set_metrics(const char *key, const char *value)
{
	return set_path(key, value, &server.config.metrics);
}

static int set_log(const char *key, const char *value)
{
	return set_path(key, value, &server.config.log);
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
	{ "fault", set_fault },
};

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
static int check_policy(void)
{
	char name[MAX_NAME + 1];
	const char *at = server.config.policy, *nearest = NULL;
	u32 least = U32_MAX, i;

	for (;;) {
		size_t length = strcspn(at, ":");

		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		for (i = 0; i < ss_nr_policies; i++)
			consider(name, ss_policies[i]->name, &nearest, &least);
		if (least)
			break;
		if (!at[length])
			return 0;
		at += length + 1;
		least = U32_MAX;
	}
	nbdkit_error("policy=%s: there is no \"%s\"; did you mean \"%s\"?",
		     server.config.policy, name, nearest);
	return -1;
}

int config_set(const char *key, const char *value)
{
	u32 i, t;

	for (i = 0; i < ARRAY_SIZE(parameters); i++)
		if (!strcmp(parameters[i].name, key))
			return parameters[i].set(key, value);
	for (i = 0; i < ss_nr_policies; i++)
		for (t = 0; t < ss_policies[i]->nr_tunables; t++)
			if (!strcmp(ss_policies[i]->tunables[t].name, key))
				return set_tunable(ss_policies[i],
						   &ss_policies[i]->tunables[t],
						   value);
	return refuse_name(key);
}

/* ---- all together ---- */

static int open_members(void)
{
	const struct config *config = &server.config;
	u32 nr = config->nr_files ? config->nr_files : 1, i, j;

	for (i = 0; i < nr; i++) {
		struct member *member = calloc(1, sizeof(*member));
		int error;

		if (!member) {
			nbdkit_error("out of memory");
			return -1;
		}
		member->index = i;
		for (j = 0; config->nr_files && j < i; j++)
			if (!strcmp(config->file[i], config->file[j])) {
				nbdkit_error("%s: given twice",
					     config->file[i]);
				free(member);
				return -1;
			}
		if (config->nr_files)
			error = file_open(&member->file, config->file[i],
					  config->readonly,
					  config->emulate ? 0 : config->direct);
		else
			error = file_memory(
				&member->file,
				config->size ? config->size :
					       config->disk.capacity_sectors *
						       SECTOR_BYTES);
		if (error) {
			free(member);
			return -1;
		}
		server.member[server.nr_members++] = member;
	}
	return 0;
}

/* The same file by another name. */
static int check_twice(void)
{
	u32 i, j;

	for (i = 0; i < server.nr_members; i++)
		for (j = 0; j < i; j++) {
			const struct file *a = &server.member[j]->file;
			const struct file *b = &server.member[i]->file;

			if (a->block == b->block && a->dev == b->dev &&
			    a->ino == b->ino) {
				nbdkit_error("%s: the same file as %s", b->name,
					     a->name);
				return -1;
			}
		}
	return 0;
}

static int lock_members(void)
{
	u32 i;

	for (i = 0; i < server.config.nr_files; i++)
		if (file_lock(&server.member[i]->file, server.config.readonly))
			return -1;
	return 0;
}

/* What members must be multiples of. */
static u64 unit_bytes(void)
{
	u64 unit = SECTOR_BYTES;
	u32 i;

	for (i = 0; i < server.nr_members; i++)
		if (server.member[i]->file.block_bytes > unit)
			unit = server.member[i]->file.block_bytes;
	server.block_bytes = (u32)unit;
	if (server.nr_members > 1 && server.config.chunk > unit)
		unit = server.config.chunk;
	return unit;
}

static int find_size(void)
{
	const struct file *first = &server.member[0]->file;
	u64 unit = unit_bytes(), bytes = first->bytes;
	u32 i;

	for (i = 0; i < server.nr_members; i++) {
		const struct file *file = &server.member[i]->file;

		if (file->bytes != first->bytes && !server.config.truncate) {
			nbdkit_error(
				"members must be of one size, but %s has %lu bytes and %s has %lu; truncate=yes uses as much of each as the smallest has",
				first->name, first->bytes, file->name,
				file->bytes);
			return -1;
		}
		if (file->bytes < bytes)
			bytes = file->bytes;
	}
	if (bytes % unit && !server.config.truncate) {
		nbdkit_error(
			"%s: its %lu bytes are not a multiple of %lu; truncate=yes leaves out the last %lu",
			first->name, bytes, unit, bytes % unit);
		return -1;
	}
	server.member_bytes = bytes - bytes % unit;
	if (!server.member_bytes) {
		nbdkit_error("%s: of its %lu bytes nothing can be used",
			     first->name, bytes);
		return -1;
	}
	if (server.member_bytes > S64_MAX / server.nr_members) {
		nbdkit_error(
			"%u members of %lu bytes are more than NBD can serve",
			server.nr_members, server.member_bytes);
		return -1;
	}
	server.bytes = server.member_bytes * server.nr_members;
	return 0;
}

/* Disks are sold in powers of 1000, and sizes here count in powers of 1024. */
static int refuse_size(u64 capacity)
{
	const struct config *config = &server.config;
	const char *text = config->size_text;
	size_t length = strlen(text);
	char decimal[MAX_NAME] = "";
	u64 bytes = U64_MAX;

	if (length < sizeof(decimal) - 1 && isalpha(text[length - 1]) &&
	    text[length - 1] != 'B') {
		snprintf(decimal, sizeof(decimal), "%sB", text);
		parse_bytes("size", decimal, &bytes);
	}
	if (bytes <= capacity)
		nbdkit_error(
			"size=%s: is %lu bytes (powers of 1024), but %s has %lu; write size=%s (powers of 1000), or leave out size= to have all of it",
			text, config->size, config->emulate, capacity, decimal);
	else
		nbdkit_error(
			"size=%s: is %lu bytes, but %s has %lu; leave out size= to have all of it",
			text, config->size, config->emulate, capacity);
	return -1;
}

static int check_emulation(void)
{
	const struct config *config = &server.config;
	u64 capacity = config->disk.capacity_sectors * SECTOR_BYTES;

	if (!config->emulate) {
		if (config->size) {
			nbdkit_error(
				"size: only with emulate=DISK; a file has the size it has");
			return -1;
		}
		if (!config->nr_files) {
			nbdkit_error(
				"no file is given; name one or several, or emulate=DISK");
			return -1;
		}
		return 0;
	}
	if (config->direct > 0) {
		nbdkit_error(
			"direct=yes: not with emulate=, which takes the model's time whatever the file does");
		return -1;
	}
	if (config->size && config->nr_files) {
		nbdkit_error(
			"size: not together with file=; the file has the size it has");
		return -1;
	}
	return config->size > capacity ? refuse_size(capacity) : 0;
}

/* So that a server that cannot have io_uring says so while it still can. */
static int check_uring(void)
{
	struct config *config = &server.config;
	struct engine *engine;

	if (config->emulate || !config->uring)
		return 0;
	engine = uring_new(1);
	if (engine) {
		engine_free(engine);
		return 0;
	}
	if (config->uring > 0) {
		nbdkit_error(
			"io=uring: %s; allow it (sysctl kernel.io_uring_disabled=0, and the container's seccomp rules), or leave out io= to have threads instead",
			strerror(errno));
		return -1;
	}
	fprintf(stderr,
		"nbdkit: streamsched: io_uring cannot be used here (%s), so threads move the bytes\n",
		strerror(errno));
	config->uring = 0;
	return 0;
}

static int open_log(void)
{
	if (!server.config.log)
		return 0;
	server.log = fopen(server.config.log, "we");
	if (!server.log) {
		nbdkit_error("log=%s: %s", server.config.log, strerror(errno));
		return -1;
	}
	server.log_began_ns = clock_ns();
	return 0;
}

static int find_depth(struct member *member)
{
	const struct config *config = &server.config;
	u32 most = config->emulate ? config->disk.queue_depth : MAX_DEPTH;

	if (config->depth > most) {
		nbdkit_error("queue-depth=%u: %s takes %u commands at once",
			     config->depth, config->emulate, most);
		return -1;
	}
	member->depth = config->depth;
	if (!member->depth && config->emulate)
		member->depth = most;
	if (!member->depth)
		member->depth = member->file.depth ? member->file.depth :
						     DEFAULT_DEPTH;
	if (member->depth > MAX_DEPTH)
		member->depth = MAX_DEPTH;
	return 0;
}

/* Rotating unless every member is known not to be. */
static bool find_rotational(void)
{
	u32 i;

	if (server.config.rotational >= 0)
		return server.config.rotational;
	if (server.config.emulate)
		return server.config.disk.kind == HDD_KIND_MECHANICAL;
	for (i = 0; i < server.nr_members; i++)
		if (server.member[i]->file.rotational)
			return true;
	return false;
}

int config_complete(void)
{
	u64 capacity = server.config.disk.capacity_sectors * SECTOR_BYTES;
	u32 i;

	if (check_policy() || check_emulation() || open_log() ||
	    stats_check("metrics", server.config.metrics) ||
	    stats_check("stats", server.config.stats) || open_members() ||
	    check_twice() || lock_members() || find_size() ||
	    fault_check(server.nr_members) || check_uring())
		return -1;
	if (given_chunk && server.nr_members == 1) {
		nbdkit_error("chunk: only with several files");
		return -1;
	}
	if (server.config.emulate && server.member_bytes > capacity) {
		nbdkit_error("%s: has %lu bytes, but %s only %lu",
			     server.member[0]->file.name, server.member_bytes,
			     server.config.emulate, capacity);
		return -1;
	}
	server.rotational = find_rotational();
	if (array_check())
		return -1;
	for (i = 0; i < server.nr_members; i++) {
		struct member *member = server.member[i];

		member->sectors = server.member_bytes / SECTOR_BYTES;
		if (find_depth(member) || member_init(member))
			return -1;
	}
	return 0;
}

void config_dump(void)
{
	char text[64], least[32], most[32];
	u32 i, t;

	for (i = 0; i < ss_nr_policies; i++) {
		const struct ss_policy_ops *ops = ss_policies[i];

		printf("streamsched_policy_%s=%s\n", ops->name, ops->help);
		for (t = 0; t < ops->nr_tunables; t++) {
			const struct ss_tunable *row = &ops->tunables[t];

			if (row->word &&
			    ss_tunable_serving(row) == row->word_value)
				snprintf(text, sizeof(text), "%s", row->word);
			else
				show_value(row, ss_tunable_serving(row), text,
					   sizeof(text));
			show_value(row, row->min, least, sizeof(least));
			show_value(row, row->max, most, sizeof(most));
			printf("streamsched_tunable_%s_%s=%s (%s to %s%s%s): %s\n",
			       ops->name, row->name, text, least, most,
			       row->word ? " or " : "",
			       row->word ? row->word : "", row->help);
		}
	}
}
