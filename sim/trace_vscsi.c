// SPDX-License-Identifier: GPL-2.0-only
/*
 * CloudPhysics' traces of virtual SCSI disks: records of a fixed size, little
 * endian, of two versions. Times are microseconds.
 *
 *	1: u32 serial, length, segments; u16 command, version; u64 sector, time
 *	2: u16 command, version; u32 serial, length, segments; u64 sector,
 *	   time, response time
 *
 * The version stands in the high byte of its field. Commands other than
 * reads and writes, and those without data, are no requests.
 */
#include "trace_internal.h"

#define VERSION_1_BYTES 32
#define VERSION_2_BYTES 40

struct vscsi_layout {
	u8 version, size;
	u8 command, version_at, length, sector, time;
	u8 response; /* 0: not recorded */
};

static const struct vscsi_layout version_1 = {
	.version = 1,
	.size = VERSION_1_BYTES,
	.length = 4,
	.command = 12,
	.version_at = 14,
	.sector = 16,
	.time = 24,
};

static const struct vscsi_layout version_2 = {
	.version = 2,
	.size = VERSION_2_BYTES,
	.command = 0,
	.version_at = 2,
	.length = 8,
	.sector = 16,
	.time = 24,
	.response = 32,
};

/* SCSI's reads and writes of 6, 10, 16 and 12 bytes, and write-and-verify. */
#define NO_DATA 0
#define READS 1
#define WRITES 2
static const u8 moves[256] = {
	[0x08] = READS,	 [0x28] = READS,  [0x88] = READS,  [0xa8] = READS,
	[0x0a] = WRITES, [0x2a] = WRITES, [0x8a] = WRITES, [0xaa] = WRITES,
	[0x2e] = WRITES, [0x8e] = WRITES, [0xae] = WRITES,
};

static inline u16 get16(const u8 *at)
{
	return at[0] | at[1] << 8;
}

static inline u32 get32(const u8 *at)
{
	return get16(at) | (u32)get16(at + 2) << 16;
}

static inline u64 get64(const u8 *at)
{
	return get32(at) | (u64)get32(at + 4) << 32;
}

/* All records of the beginning look like such records. */
static bool detect(const struct vscsi_layout *layout, const u8 *bytes, u64 nr)
{
	u64 i, records = nr / layout->size, last_us = 0, now_us;
	const u8 *at = bytes;

	for (i = 0; i < records; i++, at += layout->size) {
		now_us = get64(at + layout->time);
		if (at[layout->version_at + 1] != layout->version ||
		    at[layout->version_at] || at[layout->command + 1] ||
		    get64(at + layout->sector) > TRACE_MAX_SECTORS)
			break;
		/* One that is out of order is an error, to be named later. */
		if (now_us < last_us && i < 2)
			break;
		last_us = now_us;
	}
	return i && (i == records || i >= 4);
}

static bool detect_1(const u8 *bytes, u64 nr)
{
	return detect(&version_1, bytes, nr);
}

static bool detect_2(const u8 *bytes, u64 nr)
{
	return detect(&version_2, bytes, nr);
}

static enum trace_step fail(struct trace_reader *reader, const char *what,
			    u64 found, const char *expected)
{
	bool stop = trace_fail(reader, "record %llu (byte %llu): %s 0x%llx%s",
			       (unsigned long long)reader->line,
			       (unsigned long long)reader->offset, what,
			       (unsigned long long)found, expected);

	return stop ? TRACE_BAD : TRACE_SKIP;
}

/* The times of a record in nanoseconds. */
static bool set_times(const struct vscsi_layout *layout, const u8 *at,
		      struct trace_record *record)
{
	record->response_ns = TRACE_NO_TIME;
	if (layout->response &&
	    __builtin_mul_overflow(get64(at + layout->response), NS_PER_US,
				   &record->response_ns))
		return false;
	return !__builtin_mul_overflow(get64(at + layout->time), NS_PER_US,
				       &record->time_ns);
}

static inline enum trace_step parse(struct trace_reader *reader,
				    const struct vscsi_layout *layout,
				    const u8 *at, struct trace_record *record)
{
	u16 command = get16(at + layout->command);
	u16 version = get16(at + layout->version_at);
	u32 length = get32(at + layout->length);
	u64 nr = ((u64)length + TRACE_SECTOR_BYTES - 1) >> TRACE_SECTOR_SHIFT;

	if (version >> 8 != layout->version)
		return fail(reader, "bad version", version,
			    layout->version == 1 ? ", expected 0x100" :
						   ", expected 0x200");
	if (command > 0xff)
		return fail(reader, "bad SCSI command", command,
			    ", expected one byte");
	if (moves[command] == NO_DATA || !length)
		return TRACE_SKIP;
	record->direction = moves[command] == WRITES ? SS_WRITE : SS_READ;
	if (!trace_set_sectors(record, get64(at + layout->sector), nr))
		return fail(reader, "too large a sector",
			    get64(at + layout->sector), "");
	if (!set_times(layout, at, record))
		return fail(reader, "too large a time",
			    get64(at + layout->time), "");
	return TRACE_REQUEST;
}

static inline enum trace_step next(struct trace_reader *reader,
				   const struct vscsi_layout *layout,
				   struct trace_request *rq)
{
	struct trace_record record;
	enum trace_step step;

	record.flags = 0;
	record.owner = 0;
	record.device = 0;
	while (trace_ready(reader) >= layout->size) {
		reader->line++;
		step = parse(reader, layout, reader->bytes + reader->head,
			     &record);
		if (step == TRACE_BAD)
			return step;
		trace_consume(reader, layout->size);
		if (step == TRACE_SKIP)
			continue;
		if (trace_to_request(reader, &record, rq))
			return TRACE_REQUEST;
		if (trace_fail_backwards(reader, reader->last_ns,
					 record.time_ns))
			return TRACE_BAD;
	}
	if (reader->last && trace_ready(reader))
		return trace_fail_truncated(reader, trace_ready(reader),
					    layout->size);
	return TRACE_MORE;
}

static enum trace_step next_1(struct trace_reader *reader,
			      struct trace_request *rq)
{
	return next(reader, &version_1, rq);
}

static enum trace_step next_2(struct trace_reader *reader,
			      struct trace_request *rq)
{
	return next(reader, &version_2, rq);
}

const struct trace_ops trace_vscsi1_ops = {
	.next = next_1,
	.detect = detect_1,
};

const struct trace_ops trace_vscsi2_ops = {
	.next = next_2,
	.detect = detect_2,
};
