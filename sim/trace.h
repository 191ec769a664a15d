/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading block traces. A reader is fed bytes (already decompressed) and
 * gives back requests in the order of their arrival; it holds a bounded
 * amount of memory however long the trace is.
 *
 * Plain declarations only: the Python package's binding reads this header.
 */
#ifndef TRACE_H
#define TRACE_H

#include <linux/types.h>

#define TRACE_NO_TIME (~0ULL)

struct trace_request {
	u64 arrival_ns; /* since the trace's first record */
	u64 complete_ns; /* same clock; TRACE_NO_TIME if not recorded */
	u64 sector; /* 512 bytes each */
	u32 nr_sectors; /* at least 1 */
	u8 direction; /* 0 read, 1 write */
	u8 flags; /* SS_SYNC of core/request.h where the trace says so */
	u64 owner; /* process id or the like; 0 if the format has none */
	u64 device; /* number or hash that tells devices apart */
	u64 line; /* text: line; binary: number of the record; from 1 */
};

struct trace_ops;

struct trace_format {
	const char *name; /* "blkparse" */
	const char *help; /* one line: what it is and where it comes from */
	bool binary;
	const struct trace_ops *ops; /* the reader's own */
};

extern const struct trace_format trace_formats[];
extern const u32 trace_nr_formats;

struct trace_reader;

/* Where a piece of blktrace's records ends. */
struct trace_cut {
	u64 bytes; /* of the piece, whole records only */
	u64 next_ns; /* time of the record behind it; TRACE_NO_TIME: none */
	u64 nr; /* records in the piece */
	bool bad; /* what stands behind it has no magic number */
};

/*
 * The records at the beginning of @bytes that are not later than @until_ns,
 * at most @most of them. Files of several processors are merged with it.
 */
void trace_cut_records(const u8 *bytes, u64 nr, u64 until_ns, u64 most,
		       struct trace_cut *cut);
/* How many bytes stand before the next magic number, or what may begin one. */
u64 trace_to_magic(const u8 *bytes, u64 nr);

/* The name of the format of a file that begins with @bytes, NULL if none. */
const char *trace_detect(const u8 *bytes, u64 nr);
/*
 * How well a file that begins with @bytes fits trace_formats[@format], one of
 * text: twice its good lines, and one more if their times fit. Of the best
 * two that are alike neither is the file's.
 */
u32 trace_likeness(u32 format, const u8 *bytes, u64 nr);

/* NULL if @format is not known or memory is short. */
struct trace_reader *trace_open(const char *format, bool skip_bad);
void trace_close(struct trace_reader *reader);

/* Only requests of this device count (as text, as the trace spells it). */
/* Before the first trace_feed(). 0, or -1: trace_why() says what is wrong. */
int trace_select_device(struct trace_reader *reader, const char *device);

/*
 * Hand over @nr more bytes; they are copied. @last: no more will follow.
 * Returns 0, or -1 when out of memory.
 */
int trace_feed(struct trace_reader *reader, const u8 *bytes, u64 nr, bool last);

/*
 * The next request: 1, and it is in @rq; 0: feed more, or after the last
 * feed: the end; -1: the trace is bad there, trace_why() says where and what.
 */
int trace_next(struct trace_reader *reader, struct trace_request *rq);
bool trace_at_end(const struct trace_reader *reader);

/* One sentence: line and column (or record and byte), what was expected. */
const char *trace_why(const struct trace_reader *reader);
/* What trace_request's line counts: "line" or "record". */
const char *trace_unit(const struct trace_reader *reader);
u64 trace_skipped(const struct trace_reader *reader); /* with skip_bad */
u64 trace_requests(const struct trace_reader *reader); /* given back so far */

#endif
