// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trace readers: what all formats have in common. Bytes are gathered in one
 * buffer, cut into lines or records by the format's own code, and given back
 * as requests. The buffer holds what was fed and not yet read, so a caller
 * that takes every request out before it feeds more keeps it at one chunk.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "trace_internal.h"

/* How much of the beginning of a file decides its format. */
#define DETECT_LINES 64
/* The buffer's size at first; it grows to that of the pieces fed. */
#define FIRST_BYTES 4096
/* Bytes of a wrong token that an error repeats. */
#define MAX_FOUND 40

/* Opening and closing */

static int find_format(const char *name)
{
	u32 i;

	for (i = 0; i < trace_nr_formats; i++) {
		if (!strcmp(trace_formats[i].name, name))
			return i;
	}
	return -1;
}

struct trace_reader *trace_open(const char *format, bool skip_bad)
{
	struct trace_reader *reader;
	int nr = find_format(format);

	if (nr < 0)
		return NULL;
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return NULL;
	reader->ops = trace_formats[nr].ops;
	reader->binary = trace_formats[nr].binary;
	reader->skip_bad = skip_bad;
	reader->size = FIRST_BYTES;
	reader->bytes = malloc(FIRST_BYTES);
	/* Of any size: a format without a state does not look at it. */
	reader->state = calloc(1, reader->ops->state_size + 1);
	if (!reader->bytes || !reader->state) {
		free(reader->bytes);
		free(reader->state);
		free(reader);
		return NULL;
	}
	return reader;
}

void trace_close(struct trace_reader *reader)
{
	if (!reader)
		return;
	if (reader->ops->close)
		reader->ops->close(reader);
	free(reader->state);
	free(reader->bytes);
	free(reader);
}

/* Errors */

static enum trace_step fail(struct trace_reader *reader, const char *format,
			    va_list args)
{
	vsnprintf(reader->why, sizeof(reader->why), format, args);
	reader->failed = true;
	return TRACE_BAD;
}

enum trace_step trace_fail_always(struct trace_reader *reader,
				  const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail(reader, format, args);
	va_end(args);
	return TRACE_BAD;
}

bool trace_fail(struct trace_reader *reader, const char *format, ...)
{
	va_list args;

	if (reader->skip_bad) {
		reader->skipped++;
		return false;
	}
	va_start(args, format);
	fail(reader, format, args);
	va_end(args);
	return true;
}

/* The token at @at, in quotes, with everything that is not ASCII spelled. */
static void quote(const u8 *at, const u8 *end, char *to, u64 size)
{
	u64 used = 1, shown = 0;

	if (at == end) {
		snprintf(to, size, "the end of the line");
		return;
	}
	to[0] = '"';
	do {
		if (*at >= ' ' && *at < 127)
			used += snprintf(to + used, size - used, "%c", *at);
		else
			used += snprintf(to + used, size - used, "\\x%02x",
					 *at);
		at++;
		shown++;
	} while (shown < MAX_FOUND && !at_token_end(at, end));
	snprintf(to + used, size - used, "%s\"",
		 at_token_end(at, end) ? "" : "...");
}

bool trace_fail_line(struct trace_reader *reader, const struct trace_line *line)
{
	static const char *const before[] = {
		[FORM_WORD] = "expected ",
		[FORM_NUMBER] = "expected ",
		[FORM_DECIMAL] = "expected ",
		[FORM_HEX] = "expected ",
		[FORM_LARGE] = "",
		[FORM_ZERO] = "",
	};
	static const char *const behind[] = {
		[FORM_WORD] = ", found",
		[FORM_NUMBER] = " as a decimal number, found",
		[FORM_DECIMAL] =
			" as a decimal number, a fraction is allowed, found",
		[FORM_HEX] = " as a hexadecimal number, found",
		[FORM_LARGE] = " is too large:",
		[FORM_ZERO] = " must be above zero, found",
	};
	char found[MAX_FOUND * 4 + 8];

	quote(line->at, line->end, found, sizeof(found));
	return trace_fail(reader, "line %llu, column %llu: %s%s%s %s",
			  (unsigned long long)reader->line,
			  (unsigned long long)(line->at - line->start + 1),
			  before[line->form], line->noun, behind[line->form],
			  found);
}

enum trace_step trace_fail_truncated(struct trace_reader *reader, u64 has,
				     u64 of)
{
	bool stop = trace_fail(
		reader,
		"record %llu (byte %llu): truncated, %llu of its %llu bytes are there",
		(unsigned long long)reader->line + 1,
		(unsigned long long)reader->offset, (unsigned long long)has,
		(unsigned long long)of);

	trace_consume(reader, has);
	return stop ? TRACE_BAD : TRACE_MORE;
}

bool trace_fail_backwards(struct trace_reader *reader, u64 from_ns, u64 to_ns)
{
	return trace_fail(
		reader,
		"%s %llu: time runs backwards, from %llu.%09llu s to %llu.%09llu s",
		trace_unit(reader), (unsigned long long)reader->line,
		(unsigned long long)(from_ns / NS_PER_S),
		(unsigned long long)(from_ns % NS_PER_S),
		(unsigned long long)(to_ns / NS_PER_S),
		(unsigned long long)(to_ns % NS_PER_S));
}

/* Devices */

/* FNV-1a, 64 bits. */
u64 trace_hash_on(u64 hash, const void *more, u64 nr)
{
	const u8 *at = more, *end = at + nr;

	for (; at < end; at++)
		hash = (hash ^ *at) * 0x100000001b3ULL;
	return hash;
}

u64 trace_hash(const u8 *bytes, u64 nr)
{
	return trace_hash_on(0xcbf29ce484222325ULL, bytes, nr);
}

bool trace_parse_number(const char *name, u64 *device)
{
	struct trace_line line = { .at = (const u8 *)name };

	line.end = line.at + strlen(name);
	return scan_u64(&line, device, "") && line.at == line.end;
}

bool trace_parse_name(const char *name, u64 *device)
{
	*device = trace_hash((const u8 *)name, strlen(name));
	return name[0];
}

/* "8,0", as blkparse prints it; the kernel's way to make a number of it. */
bool trace_parse_major_minor(const char *name, u64 *device)
{
	struct trace_line line = { .at = (const u8 *)name };
	u64 major, minor;

	line.end = line.at + strlen(name);
	if (!scan_u64(&line, &major, "") || line.at == line.end)
		return false;
	line.at++;
	if (!scan_u64(&line, &minor, "") || line.at != line.end)
		return false;
	*device = major << 20 | minor;
	return major < 1 << 12 && minor < 1 << 20;
}

void trace_print_major_minor(u64 device, char *to, u64 size)
{
	snprintf(to, size, "%llu,%llu", (unsigned long long)(device >> 20),
		 (unsigned long long)(device & 0xfffff));
}

static void name_device(const struct trace_reader *reader,
			const struct trace_record *record, char *to)
{
	u32 i, nr = record->device_nr;

	if (record->device_at) {
		if (nr > TRACE_MAX_NAME - 1)
			nr = TRACE_MAX_NAME - 1;
		for (i = 0; i < nr; i++) {
			to[i] = record->device_at[i];
			if (to[i] < ' ' || to[i] > '~')
				to[i] = '?';
		}
		to[nr] = 0;
	} else if (reader->ops->print_device) {
		reader->ops->print_device(record->device, to, TRACE_MAX_NAME);
	} else {
		snprintf(to, TRACE_MAX_NAME, "%llu",
			 (unsigned long long)record->device);
	}
}

enum trace_step trace_other_device(struct trace_reader *reader,
				   const struct trace_record *record)
{
	char name[TRACE_MAX_NAME];

	if (reader->selected) {
		if (!reader->passed_over[0])
			name_device(reader, record, reader->passed_over);
		return TRACE_SKIP;
	}
	if (!reader->have_device) {
		reader->have_device = true;
		reader->device = record->device;
		name_device(reader, record, reader->device_name);
		return TRACE_REQUEST;
	}
	name_device(reader, record, name);
	return trace_fail_always(
		reader,
		"%s %llu: the trace holds requests of several devices (%s, now %s): choose one with --device",
		trace_unit(reader), (unsigned long long)reader->line,
		reader->device_name, name);
}

int trace_select_device(struct trace_reader *reader, const char *device)
{
	if (!reader->ops->parse_device) {
		trace_fail_always(
			reader,
			"this format does not tell devices apart; leave out --device");
		return -1;
	}
	if (!reader->ops->parse_device(device, &reader->device)) {
		trace_fail_always(
			reader,
			"no device of this format is spelled \"%.60s\"; %s",
			device,
			reader->ops->parse_device == trace_parse_major_minor ?
				"write its two numbers, as in 8,0" :
				"write it as it is in the trace");
		return -1;
	}
	reader->have_device = true;
	reader->selected = true;
	snprintf(reader->device_name, sizeof(reader->device_name), "%s",
		 device);
	return 0;
}

/* Bytes in */

int trace_feed(struct trace_reader *reader, const u8 *bytes, u64 nr, bool last)
{
	u64 ready = trace_ready(reader), size;
	u8 *grown;

	if (reader->head && reader->size - reader->tail < nr) {
		memmove(reader->bytes, reader->bytes + reader->head, ready);
		reader->head = 0;
		reader->tail = ready;
	}
	if (reader->size - reader->tail < nr) {
		size = reader->size;
		while (size - reader->tail < nr)
			size *= 2;
		grown = realloc(reader->bytes, size);
		if (!grown)
			return -1;
		reader->bytes = grown;
		reader->size = size;
	}
	if (nr)
		memcpy(reader->bytes + reader->tail, bytes, nr);
	reader->tail += nr;
	reader->last = reader->last || last;
	return 0;
}

enum trace_step trace_next_line(struct trace_reader *reader,
				struct trace_line *line)
{
	const u8 *start, *end;
	u64 ready, taken;

	for (;;) {
		ready = trace_ready(reader);
		start = reader->bytes + reader->head;
		end = ready ? memchr(start, '\n', ready) : NULL;
		taken = end ? (u64)(end - start) + 1 : ready;
		if (taken > TRACE_MAX_LINE)
			return trace_fail_always(
				reader, "line %llu is longer than %u bytes",
				(unsigned long long)reader->line + 1,
				TRACE_MAX_LINE);
		if (!end && !(reader->last && ready))
			return TRACE_MORE;
		if (!end)
			end = start + ready;
		trace_consume(reader, taken);
		reader->line++;
		if (end > start && end[-1] == '\r')
			end--;
		line->start = start;
		line->at = start;
		line->end = end;
		while (line->at < end && is_blank(*line->at))
			line->at++;
		if (line->at < end)
			return TRACE_REQUEST;
	}
}

/* Requests out */

static u8 lower(u8 byte)
{
	return byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte;
}

bool trace_is_header(const struct trace_ops *ops, const struct trace_line *line)
{
	const char *header = ops->header;
	const u8 *at = line->at;

	if (!header)
		return false;
	/* A byte order mark is allowed before it. */
	if (line->end - at >= 3 && !memcmp(at, "\xef\xbb\xbf", 3))
		at += 3;
	while (*header && at < line->end) {
		if (is_blank(*at)) {
			at++;
		} else if (lower(*at++) != lower(*header++)) {
			return false;
		}
	}
	while (at < line->end && is_blank(*at))
		at++;
	return !*header && at == line->end;
}

static enum trace_step next_text(struct trace_reader *reader,
				 struct trace_request *rq)
{
	struct trace_record record;
	struct trace_line line;
	enum trace_step step;

	while ((step = trace_next_line(reader, &line)) == TRACE_REQUEST) {
		if (reader->line == 1 && trace_is_header(reader->ops, &line))
			continue;
		record.flags = 0;
		record.owner = 0;
		record.device = 0;
		record.device_at = NULL;
		record.response_ns = TRACE_NO_TIME;
		step = reader->ops->parse(reader, &line, &record);
		if (step == TRACE_BAD) {
			if (trace_fail_line(reader, &line))
				return TRACE_BAD;
			continue;
		}
		if (step == TRACE_SKIP)
			continue;
		step = trace_check_device(reader, &record);
		if (step == TRACE_BAD)
			return TRACE_BAD;
		if (step == TRACE_SKIP)
			continue;
		if (trace_to_request(reader, &record, rq))
			return TRACE_REQUEST;
		if (trace_fail_backwards(reader, reader->last_ns,
					 record.time_ns))
			return TRACE_BAD;
	}
	return step;
}

static enum trace_step no_requests(struct trace_reader *reader)
{
	if (!reader->offset)
		return trace_fail_always(reader, "the trace is empty");
	if (reader->selected && reader->passed_over[0])
		return trace_fail_always(
			reader,
			"the trace holds no requests of device %s; it does of %s",
			reader->device_name, reader->passed_over);
	if (reader->selected)
		return trace_fail_always(
			reader, "the trace holds no requests of device %s",
			reader->device_name);
	return trace_fail_always(reader, "the trace holds no requests");
}

int trace_next(struct trace_reader *reader, struct trace_request *rq)
{
	enum trace_step step;

	if (reader->failed)
		return TRACE_BAD;
	if (reader->ended)
		return 0;
	if (reader->ops->next)
		step = reader->ops->next(reader, rq);
	else
		step = next_text(reader, rq);
	if (step != TRACE_MORE || !reader->last)
		return step;
	if (!reader->requests)
		return no_requests(reader);
	reader->ended = true;
	return 0;
}

bool trace_at_end(const struct trace_reader *reader)
{
	return reader->ended;
}

const char *trace_why(const struct trace_reader *reader)
{
	return reader->why;
}

u64 trace_skipped(const struct trace_reader *reader)
{
	return reader->skipped;
}

const char *trace_unit(const struct trace_reader *reader)
{
	return reader->binary ? "record" : "line";
}

u64 trace_requests(const struct trace_reader *reader)
{
	return reader->requests;
}

/* Detection */

/* Whether requests that are so far apart may be this format's. */
static bool gap_fits(const struct trace_ops *ops, u64 span_ns, u64 gaps)
{
	if (!gaps)
		return true;
	return span_ns / gaps >= ops->least_gap_ns &&
	       (!ops->most_gap_ns || span_ns / gaps <= ops->most_gap_ns);
}

/*
 * How many of the first lines are good lines of this format, the header
 * counting as one, times two; and one if their times fit. A line that the
 * beginning cuts off does not count, unless it is the only one.
 */
u32 trace_likeness(u32 format, const u8 *bytes, u64 nr)
{
	struct trace_reader *reader;
	struct trace_record record;
	struct trace_line line;
	enum trace_step step;
	u64 first_ns = 0, last_ns = 0, requests = 0;
	u32 good = 0, lines = 0;

	while (nr && bytes[nr - 1] != '\n' && memchr(bytes, '\n', nr))
		nr--;
	reader = trace_open(trace_formats[format].name, true);
	if (!reader)
		return 0;
	if (trace_feed(reader, bytes, nr, true)) {
		trace_close(reader);
		return 0;
	}
	while (lines < DETECT_LINES &&
	       trace_next_line(reader, &line) == TRACE_REQUEST) {
		lines++;
		if (reader->ops->comments && *line.at == '#')
			continue;
		memset(&record, 0, sizeof(record));
		if (reader->line == 1 && trace_is_header(reader->ops, &line))
			step = TRACE_SKIP;
		else
			step = reader->ops->parse(reader, &line, &record);
		good += step != TRACE_BAD;
		if (step != TRACE_REQUEST)
			continue;
		if (!requests++ || record.time_ns < first_ns)
			first_ns = record.time_ns;
		if (record.time_ns > last_ns)
			last_ns = record.time_ns;
	}
	good *= 2;
	if (requests && gap_fits(reader->ops, last_ns - first_ns, requests - 1))
		good++;
	trace_close(reader);
	return good;
}

const char *trace_detect(const u8 *bytes, u64 nr)
{
	const char *found = NULL;
	u32 i, good, best = 0;

	for (i = 0; i < trace_nr_formats; i++) {
		if (trace_formats[i].binary &&
		    trace_formats[i].ops->detect(bytes, nr))
			return trace_formats[i].name;
	}
	if (!nr || memchr(bytes, 0, nr))
		return NULL;
	for (i = 0; i < trace_nr_formats; i++) {
		if (trace_formats[i].binary)
			continue;
		good = trace_likeness(i, bytes, nr);
		if (good > best)
			found = trace_formats[i].name;
		else if (good == best)
			found = NULL;
		if (good > best)
			best = good;
	}
	return best ? found : NULL;
}
