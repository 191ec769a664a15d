/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the trace readers share. Each family of formats is a file that offers
 * one struct trace_ops per format; the table of formats in trace_formats.c
 * has one row for each. trace.c holds the bytes fed, the line numbers, the
 * checks that all formats have in common, and the words of an error.
 */
#ifndef TRACE_INTERNAL_H
#define TRACE_INTERNAL_H

#include <string.h>

#include <linux/kernel.h>

#include "../core/request.h"
#include "trace.h"

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

#define TRACE_SECTOR_SHIFT 9
#define TRACE_SECTOR_BYTES (1ULL << TRACE_SECTOR_SHIFT)
/* Positions end here: 2^63 bytes, what a file offset can say. */
#define TRACE_MAX_SECTORS (1ULL << (63 - TRACE_SECTOR_SHIFT))

/* A line without an end is not read for ever. */
#define TRACE_MAX_LINE 65536
#define TRACE_MAX_WHY 512
#define TRACE_MAX_NAME 96

/* What a step of a reader came to. */
enum trace_step {
	TRACE_BAD = -1, /* an error: it is described */
	TRACE_MORE = 0, /* bytes are missing, or the trace is at its end */
	TRACE_REQUEST = 1,
	TRACE_SKIP = 2, /* a good record that is no request */
};

struct trace_row;

/* What is wrong at a place of a line. */
enum trace_form {
	FORM_WORD, /* expected NOUN */
	FORM_NUMBER, /* expected NOUN as a decimal number */
	FORM_DECIMAL, /* expected NOUN as a decimal number, with a fraction */
	FORM_HEX, /* expected NOUN as a hexadecimal number */
	FORM_LARGE, /* NOUN is too large */
	FORM_ZERO, /* NOUN is zero */
};

/* A line while it is read, and what is wrong with it when something is. */
struct trace_line {
	const u8 *at, *end, *start;
	const char *noun;
	enum trace_form form;
};

/* One record as a format's parser gives it. */
struct trace_record {
	u64 time_ns; /* on the trace's own clock */
	u64 response_ns; /* TRACE_NO_TIME if not recorded */
	u64 sector;
	u64 owner;
	u64 device;
	const u8 *device_at; /* the device's name, where it is none but text */
	u32 device_nr;
	u32 nr_sectors;
	u8 direction;
	u8 flags;
};

/* What stands in a column, and how it is read: see trace_columns.c. */
struct trace_column {
	bool (*scan)(struct trace_line *line, struct trace_row *row,
		     const struct trace_column *column);
	const char *noun;
	u64 unit; /* of a time: ns, or their power of ten before a fraction */
};

struct trace_ops {
	/* The first line of the file, if the format may have one; CSV only. */
	const char *header;
	/* Lines that begin with # are nobody's: they tell no format. */
	bool comments;
	/*
	 * Of formats whose columns look alike: so far apart the first requests
	 * are on average, or the times are in another one's unit; 0: any.
	 */
	u64 least_gap_ns, most_gap_ns;
	/* Bytes of reader->state, zeroed at the start. */
	u64 state_size;
	/* The device's name as the user gives it; NULL: there are none. */
	bool (*parse_device)(const char *name, u64 *device);
	/* How a device is printed; NULL: as its number, or its name. */
	void (*print_device)(u64 device, char *to, u64 size);
	/* Text: one line without its end. On TRACE_BAD the line says why. */
	enum trace_step (*parse)(struct trace_reader *reader,
				 struct trace_line *line,
				 struct trace_record *record);
	/* Everything else: the whole of trace_next(), see trace.c. */
	enum trace_step (*next)(struct trace_reader *reader,
				struct trace_request *rq);
	/* Formats with @next: whether a file begins so. */
	bool (*detect)(const u8 *bytes, u64 nr);
	void (*close)(struct trace_reader *reader);
	/* Of trace_columns.c; the last column has no scan(). */
	struct trace_column column[8];
	bool commas; /* between them; else blanks */
	bool bytes_position, bytes_length; /* else sectors */
};

extern const struct trace_ops trace_blkparse_ops;
extern const struct trace_ops trace_blktrace_ops;
extern const struct trace_ops trace_ftrace_ops;
extern const struct trace_ops trace_fio2_ops;
extern const struct trace_ops trace_fio3_ops;
extern const struct trace_ops trace_msr_ops;
extern const struct trace_ops trace_spc_ops;
extern const struct trace_ops trace_alibaba_ops;
extern const struct trace_ops trace_tencent_ops;
extern const struct trace_ops trace_systor_ops;
extern const struct trace_ops trace_fiu_ops;
extern const struct trace_ops trace_disksim_ops;
extern const struct trace_ops trace_mqsim_ops;
extern const struct trace_ops trace_vscsi1_ops;
extern const struct trace_ops trace_vscsi2_ops;

struct trace_reader {
	const struct trace_ops *ops;
	bool binary;
	bool skip_bad;
	bool last; /* no more bytes will come */
	bool failed;
	bool ended;

	/* Bytes fed and not yet read: [head, tail) of @bytes. */
	u8 *bytes;
	u64 head, tail, size;
	u64 offset; /* of @head in the whole trace */
	u64 line; /* lines, or records, read so far */

	/* The one device whose requests are given back. */
	bool have_device;
	bool selected;
	char passed_over
		[TRACE_MAX_NAME]; /* a device that is not selected, or "" */
	u64 device;
	char device_name[TRACE_MAX_NAME];

	bool have_time;
	u64 base_ns; /* arrival of the first request */
	u64 last_ns; /* of the last one */

	u64 requests, skipped;
	char why[TRACE_MAX_WHY];
	void *state;
};

/* trace.c: shared steps. */

/* Name an error; false if it is skipped and counted instead. */
__attribute__((format(printf, 2, 3))) bool trace_fail(
	struct trace_reader *reader, const char *format, ...);
/* An error that cannot be skipped. */
__attribute__((format(printf, 2, 3))) enum trace_step trace_fail_always(
	struct trace_reader *reader, const char *format, ...);
bool trace_fail_line(struct trace_reader *reader,
		     const struct trace_line *line);
/* Records end too early: @has bytes of @of; they are read over. */
enum trace_step trace_fail_truncated(struct trace_reader *reader, u64 has,
				     u64 of);
bool trace_fail_backwards(struct trace_reader *reader, u64 from_ns, u64 to_ns);
/*
 * The next line, without its end, into @line: TRACE_REQUEST, or TRACE_MORE,
 * or TRACE_BAD when it is too long. Blank lines are left out.
 */
enum trace_step trace_next_line(struct trace_reader *reader,
				struct trace_line *line);
/* Whether this is the header that the format may have. */
bool trace_is_header(const struct trace_ops *ops,
		     const struct trace_line *line);
/* Slow part of trace_check_device(). */
enum trace_step trace_other_device(struct trace_reader *reader,
				   const struct trace_record *record);
/* The hash of a name, and of a name that goes on. */
u64 trace_hash(const u8 *bytes, u64 nr);
u64 trace_hash_on(u64 hash, const void *more, u64 nr);
bool trace_parse_number(const char *name, u64 *device);
bool trace_parse_name(const char *name, u64 *device);
bool trace_parse_major_minor(const char *name, u64 *device);
void trace_print_major_minor(u64 device, char *to, u64 size);

/*
 * TRACE_REQUEST if the record's device counts, TRACE_SKIP if another was
 * selected, TRACE_BAD if this is a second one and none was selected.
 */
static inline enum trace_step trace_check_device(
	struct trace_reader *reader, const struct trace_record *record)
{
	if (reader->have_device && reader->device == record->device)
		return TRACE_REQUEST;
	return trace_other_device(reader, record);
}

/*
 * Turn a record of the right device into a request. False if its time lies
 * before the last one's: the caller reports that.
 */
static inline bool trace_to_request(struct trace_reader *reader,
				    const struct trace_record *record,
				    struct trace_request *rq)
{
	if (!reader->have_time) {
		reader->have_time = true;
		reader->base_ns = record->time_ns;
	} else if (record->time_ns < reader->last_ns) {
		return false;
	}
	reader->last_ns = record->time_ns;
	rq->arrival_ns = record->time_ns - reader->base_ns;
	rq->complete_ns = TRACE_NO_TIME;
	if (record->response_ns < TRACE_NO_TIME - rq->arrival_ns)
		rq->complete_ns = rq->arrival_ns + record->response_ns;
	rq->sector = record->sector;
	rq->nr_sectors = record->nr_sectors;
	rq->direction = record->direction;
	rq->flags = record->flags;
	rq->owner = record->owner;
	rq->device = record->device;
	rq->line = reader->line;
	reader->requests++;
	return true;
}

/* What is fed and not yet read. */
static inline u64 trace_ready(const struct trace_reader *reader)
{
	return reader->tail - reader->head;
}

static inline void trace_consume(struct trace_reader *reader, u64 nr)
{
	reader->head += nr;
	reader->offset += nr;
}

/* Scanners: each takes one thing off the line, or says what it is not. */

/* For what gives back a step: the line says why it is bad. */
#define NEED(scan)                                                             \
	do {                                                                   \
		if (!(scan))                                                   \
			return TRACE_BAD;                                      \
	} while (0)

static inline bool line_bad(struct trace_line *line, const u8 *at,
			    enum trace_form form, const char *noun)
{
	line->at = at;
	line->form = form;
	line->noun = noun;
	return false;
}

static inline bool is_digit(u8 byte)
{
	return (u8)(byte - '0') < 10;
}

static inline bool is_hex(u8 byte)
{
	return is_digit(byte) || (u8)((byte | 0x20) - 'a') < 6;
}

static inline bool is_blank(u8 byte)
{
	return byte == ' ' || byte == '\t';
}

static inline void skip_blanks(struct trace_line *line)
{
	const u8 *at = line->at, *end = line->end;

	while (at < end && is_blank(*at))
		at++;
	line->at = at;
}

/* After a number or a word: nothing of the same token may follow. */
static inline bool at_token_end(const u8 *at, const u8 *end)
{
	return at == end || is_blank(*at) || *at == ',';
}

static const u64 power_of_10[] = { 1,	      10,	 100,	  1000,
				   10000,     100000,	 1000000, 10000000,
				   100000000, 1000000000 };

/* Digits only, wherever they end. */
static inline bool scan_digits(struct trace_line *line, u64 *value,
			       const char *noun)
{
	const u8 *at = line->at, *begin = at, *end = line->end;
	/* So many digits always fit. */
	const u8 *safe = end - at > 19 ? at + 19 : end;
	u64 got = 0;

	while (at < safe && is_digit(*at))
		got = got * 10 + (*at++ - '0');
	while (at == safe && at < end && is_digit(*at)) {
		if (__builtin_mul_overflow(got, 10, &got) ||
		    __builtin_add_overflow(got, *at - '0', &got))
			return line_bad(line, begin, FORM_LARGE, noun);
		safe = ++at;
	}
	if (unlikely(at == begin))
		return line_bad(line, begin, FORM_NUMBER, noun);
	line->at = at;
	*value = got;
	return true;
}

/* A decimal number that is a whole token. */
static inline bool scan_u64(struct trace_line *line, u64 *value,
			    const char *noun)
{
	const u8 *begin = line->at;

	if (!scan_digits(line, value, noun))
		return false;
	if (!at_token_end(line->at, line->end))
		return line_bad(line, begin, FORM_NUMBER, noun);
	return true;
}

/*
 * A decimal number with or without a fraction, in units of 10^@digits
 * nanoseconds: "1.5" with 9 is 1500000000. Exact; what lies below one
 * nanosecond is dropped.
 */
static inline bool scan_decimal(struct trace_line *line, u32 digits, u64 *ns,
				const char *noun)
{
	const u8 *begin = line->at, *at, *end = line->end;
	u64 whole = 0, part = 0;
	u32 left = digits;

	if (!scan_digits(line, &whole, noun)) {
		if (line->form == FORM_NUMBER)
			line->form = FORM_DECIMAL;
		return false;
	}
	at = line->at;
	if (at < end && *at == '.') {
		at++;
		if (at == end || !is_digit(*at))
			return line_bad(line, begin, FORM_DECIMAL, noun);
		while (at < end && is_digit(*at)) {
			if (left) {
				part = part * 10 + (*at - '0');
				left--;
			}
			at++;
		}
	}
	if (!at_token_end(at, end))
		return line_bad(line, begin, FORM_DECIMAL, noun);
	line->at = at;
	if (__builtin_mul_overflow(whole, power_of_10[digits], &whole) ||
	    __builtin_add_overflow(whole, part * power_of_10[left], ns))
		return line_bad(line, begin, FORM_LARGE, noun);
	return true;
}

/* A whole number of 10^@digits nanoseconds. */
static inline bool scan_time(struct trace_line *line, u64 unit_ns, u64 *ns,
			     const char *noun)
{
	const u8 *begin = line->at;
	u64 value;

	if (!scan_u64(line, &value, noun))
		return false;
	if (__builtin_mul_overflow(value, unit_ns, ns))
		return line_bad(line, begin, FORM_LARGE, noun);
	return true;
}

static inline bool at_byte(const struct trace_line *line, u8 byte)
{
	return line->at < line->end && *line->at == byte;
}

static inline bool bytes_begin(const u8 *at, const u8 *end, const char *with)
{
	u64 nr = strlen(with);

	return (u64)(end - at) >= nr && !memcmp(at, with, nr);
}

/* A token up to a blank or a comma, not empty. */
static inline bool scan_word(struct trace_line *line, const u8 **word, u32 *nr,
			     const char *noun)
{
	const u8 *at = line->at;

	while (!at_token_end(at, line->end))
		at++;
	if (at == line->at)
		return line_bad(line, at, FORM_WORD, noun);
	*word = line->at;
	*nr = at - line->at;
	line->at = at;
	return true;
}

/* The comma between two columns, with blanks around it. */
static inline bool scan_comma(struct trace_line *line)
{
	skip_blanks(line);
	if (line->at == line->end || *line->at != ',')
		return line_bad(line, line->at, FORM_WORD, "a comma");
	line->at++;
	skip_blanks(line);
	return true;
}

/* The blanks between two columns. */
static inline bool scan_gap(struct trace_line *line)
{
	if (line->at < line->end && !is_blank(*line->at))
		return line_bad(line, line->at, FORM_WORD, "a blank");
	skip_blanks(line);
	return true;
}

/* 0 or 1. */
static inline bool scan_bit(struct trace_line *line, bool *bit,
			    const char *noun)
{
	const u8 *begin = line->at;
	u64 value;

	if (!scan_u64(line, &value, noun))
		return false;
	*bit = value;
	return value <= 1 || line_bad(line, begin, FORM_WORD, noun);
}

static inline bool scan_end(struct trace_line *line)
{
	skip_blanks(line);
	if (line->at != line->end)
		return line_bad(line, line->at, FORM_WORD,
				"the end of the line");
	return true;
}

/* A device that is a name, anything up to a comma or a blank. */
static inline void record_device_name(struct trace_record *record,
				      const u8 *name, u32 nr)
{
	record->device_at = name;
	record->device_nr = nr;
	record->device = trace_hash(name, nr);
}

static inline bool trace_set_sectors(struct trace_record *record, u64 sector,
				     u64 nr)
{
	if (nr > ~0U || sector > TRACE_MAX_SECTORS - nr)
		return false;
	record->sector = sector;
	record->nr_sectors = nr;
	return true;
}

/* A range of bytes, rounded outward to whole sectors. */
static inline bool trace_set_bytes(struct trace_record *record, u64 offset,
				   u64 nr)
{
	u64 first = offset >> TRACE_SECTOR_SHIFT, behind;

	if (__builtin_add_overflow(offset, nr, &behind) ||
	    __builtin_add_overflow(behind, TRACE_SECTOR_BYTES - 1, &behind))
		return false;
	return trace_set_sectors(record, first,
				 (behind >> TRACE_SECTOR_SHIFT) - first);
}

/* The two columns of a position and a length; a length of 0 is an error. */
struct trace_extent {
	u64 position, length;
	const u8 *position_at, *length_at;
};

static inline bool scan_position(struct trace_line *line,
				 struct trace_extent *extent, const char *noun)
{
	extent->position_at = line->at;
	return scan_u64(line, &extent->position, noun);
}

static inline bool scan_length(struct trace_line *line,
			       struct trace_extent *extent, const char *noun)
{
	extent->length_at = line->at;
	if (!scan_u64(line, &extent->length, noun))
		return false;
	if (!extent->length)
		return line_bad(line, extent->length_at, FORM_ZERO, noun);
	return true;
}

/* Put them in the record; @bytes_*: they are bytes and not sectors. */
static inline bool extent_to_record(struct trace_line *line,
				    const struct trace_extent *extent,
				    bool bytes_position, bool bytes_length,
				    struct trace_record *record)
{
	u64 offset = extent->position;
	bool good;

	if (!bytes_position && !bytes_length) {
		good = trace_set_sectors(record, offset, extent->length);
	} else {
		good = bytes_position ||
		       !__builtin_mul_overflow(offset, TRACE_SECTOR_BYTES,
					       &offset);
		good = good && trace_set_bytes(record, offset, extent->length);
	}
	if (good)
		return true;
	return line_bad(line, extent->position_at, FORM_LARGE,
			"the position plus the length");
}

#endif
