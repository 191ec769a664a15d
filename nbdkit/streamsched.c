// SPDX-License-Identifier: GPL-2.0-only
/*
 * An nbdkit plugin on the scheduling core: what nbdkit calls. The manual is
 * nbdkit-streamsched-plugin.pod, the parts are described in server.h.
 */
#include "server.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

struct server server = {
	.config = {
		.policy = "stream:deadline",
		.chunk = 65536,
		.coordinate = -1,
		.max_request = 1 << 20,
		.direct = -1,
		.uring = -1,
		.rotational = -1,
		.readonly = -1,
		.stats = { .key = "stats" },
		.metrics = { .key = "metrics" },
		.log = { .key = "log" },
		.sync_writes = true,
	},
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static void streamsched_dump_plugin(void)
{
	char names[512];

	disk_names(names, sizeof(names), " ");
	printf("streamsched_disks=%s\n", names);
	printf("streamsched_default_policy=%s\n", server.config.policy);
	config_dump();
}

/* ---- the server's life ---- */

/*
 * nbdkit 1.32.4 and 1.32.5 abort when a client goes and several replies to it
 * are still to be sent; 1.34 does not. Which nbdkit runs its headers cannot
 * tell, but nbdkit_disconnect() can: it came with 1.34. Those before 1.32.4 are
 * known by the headers.
 */
static void warn_of_version(void)
{
	int headers = NBDKIT_VERSION_MAJOR * 1000000 +
		      NBDKIT_VERSION_MINOR * 1000 + NBDKIT_VERSION_MICRO;

	if (headers >= 1032004 && !dlsym(RTLD_DEFAULT, "nbdkit_disconnect"))
		fprintf(stderr,
			"nbdkit: streamsched: this nbdkit is older than 1.34 and may end when a client is killed; have it started again then, as the manual says under CLIENTS THAT DIE\n");
}

static int streamsched_get_ready(void)
{
	warn_of_version();
	return log_open();
}

static int streamsched_after_fork(void)
{
	u32 i;

	stats_mask();
	for (i = 0; i < server.nr_members; i++)
		if (thread_start(server.member[i]))
			return -1;
	return array_start() || stats_start() ? -1 : 0;
}

/* No connection is left, so nothing is pending. */
static void streamsched_unload(void)
{
	struct connection *connection;
	u32 i;

	stats_stop();
	/* Of those that were there to the end nbdkit does not tell. */
	while ((connection = server.connections)) {
		server.connections = connection->next;
		pthread_mutex_destroy(&connection->stats.lock);
		free(connection);
	}
	/* No member may wake another one from here on. */
	array_stop();
	for (i = 0; i < server.nr_members; i++) {
		member_stop(server.member[i]);
		free(server.member[i]);
	}
	for (i = 0; i < server.config.nr_files; i++)
		free((void *)server.config.file[i]);
	log_close();
	output_close(&server.config.log);
	output_close(&server.config.metrics);
	output_close(&server.config.stats);
}

/* ---- a connection's ---- */

static void *streamsched_open(int readonly)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	(void)readonly;
	if (!connection) {
		nbdkit_error("no memory for another connection");
		return NULL;
	}
	pthread_mutex_init(&connection->stats.lock, NULL);
	pthread_mutex_lock(&server.lock);
	connection->owner = ++server.nr_connections;
	connection->next = server.connections;
	server.connections = connection;
	pthread_mutex_unlock(&server.lock);
	return connection;
}

static void streamsched_close(void *handle)
{
	struct connection *connection = handle, **at;
	u32 i;

	for (i = 0; i < server.nr_members; i++)
		member_owner_gone(server.member[i], connection->owner);
	pthread_mutex_lock(&server.lock);
	for (at = &server.connections; *at != connection; at = &(*at)->next)
		;
	*at = connection->next;
	stats_add_connection(&server.closed, &connection->stats);
	pthread_mutex_unlock(&server.lock);
	pthread_mutex_destroy(&connection->stats.lock);
	free(connection);
}

/* ---- what there is ---- */

static int64_t streamsched_get_size(void *handle)
{
	(void)handle;
	return (int64_t)server.bytes;
}

static int streamsched_block_size(void *handle, uint32_t *minimum,
				  uint32_t *preferred, uint32_t *maximum)
{
	(void)handle;
	*minimum = server.block_bytes;
	*preferred = 4096;
	*maximum = 32 << 20;
	return 0;
}

static int can_write(void *handle)
{
	(void)handle;
	return !server.config.readonly;
}

static int yes(void *handle)
{
	(void)handle;
	return 1;
}

static int can_fua(void *handle)
{
	(void)handle;
	return NBDKIT_FUA_NATIVE;
}

static int can_cache(void *handle)
{
	u32 i;

	(void)handle;
	/* Where nothing is cached there is nothing to fetch beforehand. */
	for (i = 0; i < server.nr_members; i++)
		if (server.member[i]->file.direct || server.config.emulate)
			return NBDKIT_CACHE_NONE;
	return NBDKIT_CACHE_NATIVE;
}

static int is_rotational(void *handle)
{
	(void)handle;
	return server.rotational;
}

static int can_extents(void *handle)
{
	u32 i;

	(void)handle;
	for (i = 0; i < server.nr_members; i++)
		if (!file_has_extents(&server.member[i]->file))
			return 0;
	return 1;
}

/* ---- commands ---- */

/*
 * What the client is told. The protocol has few numbers, and nbdkit calls all
 * that it does not know invalid; but a disk that says ENODATA or ETIMEDOUT, or
 * is gone (ENXIO, ENODEV), was asked nothing invalid.
 */
static int wire_error(int error)
{
	switch (error) {
	case EPERM:
	case EROFS:
	case ENOMEM:
	case EINVAL:
	case ENOSPC:
	case EFBIG:
	case EDQUOT:
	case EOVERFLOW:
	case ENOTSUP:
	case ESHUTDOWN:
		return error;
	default:
		return EIO;
	}
}

static int answer(int error)
{
	if (!error)
		return 0;
	error = wire_error(error);
	nbdkit_set_error(error);
	errno = error;
	return -1;
}

static int check_blocks(u32 bytes, u64 offset)
{
	u32 mask = server.block_bytes - 1;

	if (!(bytes & mask) && !(offset & mask))
		return 0;
	nbdkit_error(
		"a request for %u bytes at %lu: not in blocks of %u bytes, the export's least",
		bytes, offset, server.block_bytes);
	return answer(EINVAL);
}

static int streamsched_pread(void *handle, void *buffer, uint32_t bytes,
			     uint64_t offset, uint32_t flags)
{
	(void)flags;
	if (check_blocks(bytes, offset))
		return -1;
	return answer(stripe_rw(handle, SS_READ, buffer, bytes, offset, false));
}

static int streamsched_pwrite(void *handle, const void *buffer, uint32_t bytes,
			      uint64_t offset, uint32_t flags)
{
	if (check_blocks(bytes, offset))
		return -1;
	return answer(stripe_rw(handle, SS_WRITE, (void *)buffer, bytes, offset,
				flags & NBDKIT_FLAG_FUA));
}

static int flush_all(void)
{
	int error = 0;
	u32 i;

	/* All of them, even after an error: others' data is in them, too. */
	for (i = 0; i < server.nr_members; i++) {
		int one = member_flush(server.member[i]);

		error = error ? error : one;
	}
	return error;
}

static int streamsched_flush(void *handle, uint32_t flags)
{
	(void)handle;
	(void)flags;
	return answer(flush_all());
}

/* Call @each for every member's part; then make it durable if asked. */
static int on_members(u32 bytes, u64 offset, u32 flags,
		      int (*each)(const struct file *, u64 offset, u64 bytes,
				  u32 flags))
{
	int error = 0;
	u32 i;

	for (i = 0; i < server.nr_members && !error; i++) {
		u64 begin = stripe_below(offset, i);
		u64 end = stripe_below(offset + bytes, i);

		if (begin < end)
			error = each(&server.member[i]->file, begin,
				     end - begin, flags);
	}
	if (!error && (flags & NBDKIT_FLAG_FUA))
		error = flush_all();
	return answer(error);
}

static int trim_one(const struct file *file, u64 offset, u64 bytes, u32 flags)
{
	(void)flags;
	return file_trim(file, offset, bytes);
}

static int streamsched_trim(void *handle, uint32_t bytes, uint64_t offset,
			    uint32_t flags)
{
	(void)handle;
	if (check_blocks(bytes, offset))
		return -1;
	return on_members(bytes, offset, flags, trim_one);
}

static int zero_one(const struct file *file, u64 offset, u64 bytes, u32 flags)
{
	/* A disk writes its zeros like all else: nbdkit sends them. */
	if (server.config.emulate && !(flags & NBDKIT_FLAG_MAY_TRIM))
		return ENOTSUP;
	return file_zero(file, offset, bytes, flags & NBDKIT_FLAG_MAY_TRIM,
			 flags & NBDKIT_FLAG_FAST_ZERO);
}

static int streamsched_zero(void *handle, uint32_t bytes, uint64_t offset,
			    uint32_t flags)
{
	(void)handle;
	if (check_blocks(bytes, offset))
		return -1;
	return on_members(bytes, offset, flags, zero_one);
}

static int cache_one(const struct file *file, u64 offset, u64 bytes, u32 flags)
{
	(void)flags;
	return file_cache(file, offset, bytes);
}

static int streamsched_cache(void *handle, uint32_t bytes, uint64_t offset,
			     uint32_t flags)
{
	(void)handle;
	return on_members(bytes, offset, flags, cache_one);
}

static int streamsched_extents(void *handle, uint32_t bytes, uint64_t offset,
			       uint32_t flags, struct nbdkit_extents *extents)
{
	u64 begin = offset, end = offset + bytes;

	(void)handle;
	while (offset < end) {
		u64 on_member, left, alike;
		u32 index;
		bool hole;
		int error;

		stripe_map(offset, &index, &on_member, &left);
		if (left > end - offset)
			left = end - offset;
		error = file_extent(&server.member[index]->file, on_member,
				    left, &alike, &hole);
		/* Of the first bytes it must be told, the rest may be less. */
		if (error)
			return offset == begin ? answer(error) : 0;
		if (nbdkit_add_extent(
			    extents, offset, alike,
			    hole ? NBDKIT_EXTENT_HOLE | NBDKIT_EXTENT_ZERO : 0))
			return -1;
		if (flags & NBDKIT_FLAG_REQ_ONE)
			return 0;
		offset += alike;
	}
	return 0;
}

static const char config_help[] =
	"[file=]<FILE>       A file or block device; several: RAID 0.\n"
	"chunk=<SIZE>        Of the stripes (default: 64k).\n"
	"coordinate=<BOOL>   Have the disks of a stripe set serve the same stream\n"
	"                    at the same time (default: detect, where they can).\n"
	"emulate=<DISK>      A disk model in real time, over memory or <FILE>.\n"
	"size=<SIZE>         Of the emulated disk (default: all of it).\n"
	"policy=<POLICY>     The scheduler (default: stream:deadline).\n"
	"<TUNABLE>=<VALUE>   Of the policy; --dump-plugin lists them.\n"
	"curve=learn|<POINTS>  Service times by distance (default: learn).\n"
	"queue-depth=<N>     Requests in the disk at once (default: the device's).\n"
	"max-request=<SIZE>  Most bytes in one request (default: 1M).\n"
	"writes=sync|async   Whether somebody waits for writes (default: sync).\n"
	"rotational=yes|no|detect  Whether there is a head to move (default: detect).\n"
	"io=uring|threads|detect  Who moves the bytes (default: io_uring if it can be had).\n"
	"direct=yes|no|detect  Past the page cache (default: detect).\n"
	"readonly=yes|no|detect  Open the files only for reading (default: detect, where\n"
	"                    one cannot be written).\n"
	"truncate=yes|no     Use what all members have (default: no).\n"
	"stats=-|<FILE>      Statistics at the end, too, to standard error or a file\n"
	"                    (default: on SIGUSR1 only, to standard error).\n"
	"metrics=<FILE>      Also as a text file for Prometheus ...\n"
	"metrics-interval=<S>  ... that often, in seconds (default: 10).\n"
	"log=<FILE>          Every request, in blkparse's format.\n"
	"force=<BOOL>        Replace files of stats, metrics and log that are there\n"
	"                    (default: no).\n"
	"fault=<RULE>        Inject faults, for tests; see the manual.";

static struct nbdkit_plugin plugin = {
	.name = "streamsched",
	.longname = "streamsched: disk scheduling that finds streams",
	.version = STREAMSCHED_VERSION,
	.description =
		"Serves files, block devices, stripe sets and emulated disks, and schedules their requests so that concurrent sequential readers get nearly the disk's sequential speed.",
	.load = stats_prepare,
	.unload = streamsched_unload,
	.config = config_set,
	.config_complete = config_complete,
	.config_help = config_help,
	.magic_config_key = "file",
	.dump_plugin = streamsched_dump_plugin,
	.get_ready = streamsched_get_ready,
	.after_fork = streamsched_after_fork,
	.open = streamsched_open,
	.close = streamsched_close,
	.get_size = streamsched_get_size,
	.block_size = streamsched_block_size,
	.can_write = can_write,
	.can_flush = yes,
	.can_trim = yes,
	.can_zero = yes,
	.can_fast_zero = yes,
	.can_fua = can_fua,
	.can_multi_conn = yes,
	.can_cache = can_cache,
	.can_extents = can_extents,
	.is_rotational = is_rotational,
	.pread = streamsched_pread,
	.pwrite = streamsched_pwrite,
	.flush = streamsched_flush,
	.trim = streamsched_trim,
	.zero = streamsched_zero,
	.cache = streamsched_cache,
	.extents = streamsched_extents,
	.errno_is_preserved = 1,
};

NBDKIT_REGISTER_PLUGIN(plugin)
