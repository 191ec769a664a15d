// SPDX-License-Identifier: GPL-2.0-only
/*
 * Descriptions of disks: lines NAME VALUE..., one for each field of struct
 * hdd_params, as streamsched writes them (streamsched/hosts/nbdhost.py). Those
 * of disks/ are built in.
 */
#include "server.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "disks.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILE_BYTES 65536

struct field {
	const char *name;
	size_t offset;
	u32 bytes; /* of one value */
	u32 most; /* values */
};

#define ONE(field_)                                                            \
	{ #field_, offsetof(struct hdd_params, field_),                        \
	  sizeof(((struct hdd_params *)0)->field_), 1 }
#define MANY(field_)                                                           \
	{ #field_, offsetof(struct hdd_params, field_),                        \
	  sizeof(((struct hdd_params *)0)->field_[0]),                         \
	  ARRAY_SIZE(((struct hdd_params *)0)->field_) }

static const struct field fields[] = {
	ONE(capacity_sectors),
	ONE(kind),
	ONE(queue_depth),
	ONE(interface_bytes_per_s),
	ONE(command_overhead_ns),
	ONE(flush_ns),
	ONE(read_watermark_permille),
	ONE(watermark_of),
	ONE(write_series),
	ONE(interface_unit_sectors),
	MANY(overhead_ns),
	ONE(queue_order),
	ONE(queue_age_permille),
	ONE(queue_age_limit_ns),
	ONE(actuators),
	ONE(rotation_ns),
	ONE(surfaces),
	ONE(nr_zones),
	MANY(zone_cylinders),
	MANY(zone_sectors_per_track),
	ONE(track_skew_ns),
	ONE(cylinder_skew_ns),
	ONE(head_switch_ns),
	ONE(write_settle_ns),
	ONE(write_saves_ns),
	ONE(physical_sectors),
	ONE(nr_seek_points),
	MANY(seek_cylinders),
	MANY(seek_ns),
	ONE(segments),
	ONE(segment_sectors),
	ONE(readahead_sectors),
	ONE(segment_keeps_read),
	ONE(ahead_until),
	ONE(read_behind),
	ONE(write_empties),
	ONE(write_cache_sectors),
	ONE(write_cache_extents),
	ONE(write_cache_durable),
	ONE(write_order),
	ONE(write_share_permille),
	ONE(write_idle_ns),
	ONE(media_sectors),
	ONE(media_extents),
	ONE(band_sectors),
	ONE(media_idle_ns),
	ONE(flat_channels),
	ONE(flat_read_ns),
	ONE(flat_write_ns),
	ONE(flat_read_bytes_per_s),
	ONE(flat_write_bytes_per_s),
};

static bool put(struct hdd_params *params, const struct field *field, u32 at,
		const char *word)
{
	char *to = (char *)params + field->offset + (size_t)at * field->bytes;
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(word, &end, 10);
	if (errno || *end || !isdigit(*word) || at >= field->most ||
	    (field->bytes == sizeof(u32) && value > U32_MAX))
		return false;
	if (field->bytes == sizeof(u32))
		*(u32 *)(void *)to = (u32)value;
	else
		*(u64 *)(void *)to = value;
	return true;
}

/* One line; @where is how errors call its file. */
static int parse_line(struct hdd_params *params, bool *seen, char *line,
		      const char *where, u32 number)
{
	char *rest = line, *word = strsep(&rest, " ");
	u32 i, at = 0;

	if (!*word || *word == '#')
		return 0;
	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strcmp(fields[i].name, word))
			break;
	if (i == ARRAY_SIZE(fields)) {
		nbdkit_error("%s:%u: a disk has no field \"%s\"", where, number,
			     word);
		return -1;
	}
	if (seen[i]) {
		nbdkit_error("%s:%u: %s is there twice", where, number,
			     fields[i].name);
		return -1;
	}
	seen[i] = true;
	if (!rest && fields[i].most == 1) {
		nbdkit_error("%s:%u: %s has no number", where, number,
			     fields[i].name);
		return -1;
	}
	while ((word = strsep(&rest, " ")))
		if (!put(params, &fields[i], at++, word)) {
			nbdkit_error(
				"%s:%u: %s takes at most %u whole numbers of %u bits, \"%s\" is not one",
				where, number, fields[i].name, fields[i].most,
				fields[i].bytes * 8, word);
			return -1;
		}
	return 0;
}

static int parse(struct hdd_params *params, char *text, const char *where)
{
	bool seen[ARRAY_SIZE(fields)] = {};
	char *line;
	u32 number = 0, i;

	memset(params, 0, sizeof(*params));
	while ((line = strsep(&text, "\n")))
		if (parse_line(params, seen, line, where, ++number))
			return -1;
	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (!seen[i]) {
			nbdkit_error("%s: the field %s is missing", where,
				     fields[i].name);
			return -1;
		}
	return 0;
}

static int load_file(const char *name, struct hdd_params *params)
{
	char *text = calloc(1, MAX_FILE_BYTES + 1);
	FILE *stream = NULL;
	size_t bytes = 0;
	struct stat st;
	int ret = -1;

	/* To open a pipe is to wait. */
	if (!stat(name, &st) && !S_ISREG(st.st_mode))
		nbdkit_error("emulate=%s: is no regular file", name);
	else if (!text || !(stream = fopen(name, "re")))
		nbdkit_error("emulate=%s: %s", name, strerror(errno));
	else if ((bytes = fread(text, 1, MAX_FILE_BYTES + 1, stream)) >
			 MAX_FILE_BYTES ||
		 memchr(text, 0, bytes))
		nbdkit_error("emulate=%s: not the description of a disk", name);
	else
		ret = parse(params, text, name);
	if (stream)
		fclose(stream);
	free(text);
	return ret;
}

static int check(const char *name, const struct hdd_params *params)
{
	struct hdd_drive *drive = calloc(1, hdd_drive_bytes(params));
	const char *reason = "no memory for it";
	int error = drive ? hdd_drive_init(drive, params, &reason) : -ENOMEM;

	free(drive);
	if (error)
		nbdkit_error("emulate=%s: %s", name, reason);
	return error ? -1 : 0;
}

int disk_load(const char *name, struct hdd_params *params)
{
	char known[512];
	char *text;
	u32 i;
	int ret;

	if (strchr(name, '/'))
		return load_file(name, params) || check(name, params) ? -1 : 0;
	for (i = 0; i < ARRAY_SIZE(disks); i++)
		if (!strcmp(disks[i].name, name))
			break;
	if (i == ARRAY_SIZE(disks)) {
		disk_names(known, sizeof(known), ", ");
		nbdkit_error(
			"emulate=%s: no such disk; there are %sor give a file's path, with a slash in it",
			name, known);
		return -1;
	}
	text = strdup(disks[i].text);
	ret = text ? parse(params, text, name) : -1;
	free(text);
	return ret;
}

void disk_names(char *text, size_t bytes, const char *after)
{
	size_t used = 0;
	u32 i;

	text[0] = 0;
	for (i = 0; i < ARRAY_SIZE(disks) && used < bytes; i++)
		used += (size_t)snprintf(text + used, bytes - used, "%s%s",
					 disks[i].name, after);
}
