// SPDX-License-Identifier: GPL-2.0-only
/*
 * The formats with blanks between their columns: FIU, DiskSim and MQSim.
 */
#include "trace_internal.h"

#define NEED(scan)                                                             \
	do {                                                                   \
		if (!(scan))                                                   \
			return TRACE_BAD;                                      \
	} while (0)

#define MD5_DIGITS 32

/* Whether the next token is a number and nothing else. */
static bool number_follows(const struct trace_line *line)
{
	const u8 *at = line->at;

	while (at < line->end && is_digit(*at))
		at++;
	return at > line->at && at_token_end(at, line->end);
}

/* A process name may hold blanks: it ends where a number follows. */
static bool skip_process(struct trace_line *line)
{
	do {
		if (line->at == line->end)
			return line_bad(line, line->at, FORM_WORD,
					"the process's name");
		while (line->at < line->end && !is_blank(*line->at))
			line->at++;
		skip_blanks(line);
	} while (line->at < line->end && !number_follows(line));
	return true;
}

/* The contents' MD5 sums, one for each 4096 bytes or one for all. */
static bool skip_hashes(struct trace_line *line)
{
	const u8 *begin;

	for (;;) {
		skip_blanks(line);
		begin = line->at;
		if (begin == line->end)
			return true;
		while (line->at < line->end && is_hex(*line->at))
			line->at++;
		if (line->at - begin != MD5_DIGITS ||
		    !at_token_end(line->at, line->end))
			return line_bad(line, begin, FORM_WORD,
					"an MD5 sum or the end of the line");
	}
}

/* FIU: ns pid process lba sectors R|W major minor md5 */
static enum trace_step fiu_parse(struct trace_reader *reader,
				 struct trace_line *line,
				 struct trace_record *record)
{
	struct trace_extent extent;
	const u8 *begin;
	u64 number;

	(void)reader;
	NEED(scan_u64(line, &record->time_ns, "the time in nanoseconds"));
	NEED(scan_gap(line));
	NEED(scan_u64(line, &record->owner, "the process id"));
	NEED(scan_gap(line));
	NEED(skip_process(line));
	NEED(scan_position(line, &extent, "the address in sectors"));
	NEED(scan_gap(line));
	NEED(scan_length(line, &extent, "the size in sectors"));
	NEED(scan_gap(line));
	if (line->at == line->end || !at_token_end(line->at + 1, line->end) ||
	    (*line->at != 'R' && *line->at != 'W'))
		NEED(line_bad(line, line->at, FORM_WORD, "R or W"));
	record->direction = *line->at++ == 'W' ? SS_WRITE : SS_READ;
	NEED(scan_gap(line));
	begin = line->at;
	NEED(scan_u64(line, &number, "the device's major number"));
	NEED(scan_gap(line));
	record->device = number << 20;
	if (number >= 1 << 12)
		NEED(line_bad(line, begin, FORM_LARGE,
			      "the device's major number"));
	begin = line->at;
	NEED(scan_u64(line, &number, "the device's minor number"));
	record->device |= number;
	if (number >= 1 << 20)
		NEED(line_bad(line, begin, FORM_LARGE,
			      "the device's minor number"));
	NEED(skip_hashes(line));
	NEED(extent_to_record(line, &extent, false, false, record));
	return TRACE_REQUEST;
}

const struct trace_ops trace_fiu_ops = {
	.parse_device = trace_parse_major_minor,
	.print_device = trace_print_major_minor,
	.parse = fiu_parse,
};

/* The flags of DiskSim: bit 0 is set for a read. */
static bool scan_hex(struct trace_line *line, u64 *value, const char *noun)
{
	const u8 *begin = line->at, *at = begin;
	u64 got = 0;

	if (line->end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	for (; at < line->end && is_hex(*at); at++) {
		if (got >> 60)
			return line_bad(line, begin, FORM_LARGE, noun);
		got = got << 4 |
		      (is_digit(*at) ? *at - '0' : (*at | 0x20) - 'a' + 10);
	}
	if (at == begin || !at_token_end(at, line->end))
		return line_bad(line, begin, FORM_HEX, noun);
	line->at = at;
	*value = got;
	return true;
}

/* DiskSim: arrival(ms) device block blocks flags */
static enum trace_step disksim_parse(struct trace_reader *reader,
				     struct trace_line *line,
				     struct trace_record *record)
{
	struct trace_extent extent;
	u64 flags;

	(void)reader;
	NEED(scan_decimal(line, 6, &record->time_ns,
			  "the arrival in milliseconds"));
	NEED(scan_gap(line));
	NEED(scan_u64(line, &record->device, "the device's number"));
	NEED(scan_gap(line));
	NEED(scan_position(line, &extent, "the block's number"));
	NEED(scan_gap(line));
	NEED(scan_length(line, &extent, "the number of blocks"));
	NEED(scan_gap(line));
	NEED(scan_hex(line, &flags, "the flags"));
	NEED(scan_end(line));
	record->direction = flags & 1 ? SS_READ : SS_WRITE;
	NEED(extent_to_record(line, &extent, false, false, record));
	return TRACE_REQUEST;
}

const struct trace_ops trace_disksim_ops = {
	.most_gap_ns = 10 * NS_PER_S,
	.parse_device = trace_parse_number,
	.parse = disksim_parse,
};

/* MQSim: arrival(ns) device block blocks 0(write)|1(read) */
static enum trace_step mqsim_parse(struct trace_reader *reader,
				   struct trace_line *line,
				   struct trace_record *record)
{
	struct trace_extent extent;
	bool reads;

	(void)reader;
	NEED(scan_u64(line, &record->time_ns, "the arrival in nanoseconds"));
	NEED(scan_gap(line));
	NEED(scan_u64(line, &record->device, "the device's number"));
	NEED(scan_gap(line));
	NEED(scan_position(line, &extent, "the address in sectors"));
	NEED(scan_gap(line));
	NEED(scan_length(line, &extent, "the number of sectors"));
	NEED(scan_gap(line));
	NEED(scan_bit(line, &reads, "0 (write) or 1 (read)"));
	NEED(scan_end(line));
	record->direction = reads ? SS_READ : SS_WRITE;
	NEED(extent_to_record(line, &extent, false, false, record));
	return TRACE_REQUEST;
}

const struct trace_ops trace_mqsim_ops = {
	.least_gap_ns = NS_PER_US,
	.parse_device = trace_parse_number,
	.parse = mqsim_parse,
};
