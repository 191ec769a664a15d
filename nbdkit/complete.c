// SPDX-License-Identifier: GPL-2.0-only
/*
 * All parameters together: files are opened, and what is served follows from
 * what they are.
 */
#include "config.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_DEPTH 32
#define DEFAULT_METRICS_S 10

/* One that cannot be written makes all of them read-only, and it is said. */
static void find_readonly(void)
{
	struct config *config = &server.config;
	u32 i;

	for (i = 0; i < config->nr_files && config->readonly < 0; i++) {
		int error = file_writable(config->file[i]);

		if (!error)
			continue;
		fprintf(stderr,
			"nbdkit: streamsched: %s: cannot be written (%s), so clients can only read (readonly=no refuses it instead)\n",
			config->file[i], strerror(error));
		config->readonly = 1;
	}
	if (config->readonly < 0)
		config->readonly = 0;
}

static int open_members(void)
{
	const struct config *config = &server.config;
	u32 nr = config->nr_files ? config->nr_files : 1, i, j;

	find_readonly();
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

/* The same bytes by another name. */
static int check_twice(void)
{
	u32 i, j;

	for (i = 0; i < server.nr_members; i++)
		for (j = 0; j < i; j++) {
			const struct file *a = &server.member[j]->file;
			const struct file *b = &server.member[i]->file;

			if (layers_meet(&a->layers, &b->layers)) {
				nbdkit_error(
					"%s: holds bytes of %s, which would be written over",
					b->name, a->name);
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
	if (config->uring > 0) {
		nbdkit_error(
			"io=uring: not with emulate=, where each request's own thread copies its bytes");
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

/* Of the file behind a loop device, too, and the description of a disk. */
static bool is_served(const struct stat *st)
{
	const char *emulate = server.config.emulate;
	struct stat described;
	u32 i;

	if (emulate && strchr(emulate, '/') && !stat(emulate, &described) &&
	    described.st_dev == st->st_dev && described.st_ino == st->st_ino)
		return true;
	for (i = 0; i < server.nr_members; i++)
		if (layers_have(&server.member[i]->file.layers, st))
			return true;
	return false;
}

static int check_outputs(void)
{
	struct config *config = &server.config;

	config->log.force = config->force;
	config->metrics.force = config->force;
	config->stats.force = config->force;
	if (config->metrics_s && !config->metrics.path) {
		nbdkit_error(
			"metrics-interval=%u: only with metrics=FILE, which it is about",
			config->metrics_s);
		return -1;
	}
	if (!config->metrics_s)
		config->metrics_s = DEFAULT_METRICS_S;
	return output_check(&config->log, is_served) ||
			       output_check(&config->metrics, is_served) ||
			       output_check(&config->stats, is_served) ||
			       output_distinct(&config->log,
					       &config->metrics) ||
			       output_distinct(&config->log, &config->stats) ||
			       output_distinct(&config->metrics,
					       &config->stats) ?
		       -1 :
		       0;
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

	if (check_policy() || check_emulation() || open_members() ||
	    check_twice() || lock_members() || find_size() ||
	    fault_check(server.nr_members) || check_uring())
		return -1;
	if (server.config.chunk_given && server.nr_members == 1) {
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
	if (server.config.nr_curve && !server.rotational) {
		nbdkit_error(
			"curve: the disk has no head to move; leave out curve=, or give rotational=yes");
		return -1;
	}
	if (array_check())
		return -1;
	for (i = 0; i < server.nr_members; i++) {
		struct member *member = server.member[i];

		member->sectors = server.member_bytes / SECTOR_BYTES;
		if (find_depth(member) || member_init(member))
			return -1;
	}
	return check_outputs();
}
