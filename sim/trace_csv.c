// SPDX-License-Identifier: GPL-2.0-only
/*
 * The formats with commas between their columns. Blanks around a comma are
 * allowed; a first line with the columns' names is read over.
 */
#include "trace_internal.h"

/* Columns behind @line are wrong: the line says why. */
#define NEED(scan)                                                             \
	do {                                                                   \
		if (!(scan))                                                   \
			return TRACE_BAD;                                      \
	} while (0)

/*
 * One of the letters @read or @write, in either case, as the first of a word;
 * with @whole the word goes on as in "Read" and "Write".
 */
static bool scan_direction(struct trace_line *line, bool whole, u8 *direction,
			   const char *noun)
{
	static const char *const words[] = { "read", "write" };
	const u8 *word, *begin = line->at;
	u32 nr, i, want;
	u8 first;

	if (!scan_word(line, &word, &nr, noun))
		return false;
	first = word[0] | 0x20;
	if (first != 'r' && first != 'w')
		return line_bad(line, begin, FORM_WORD, noun);
	*direction = first == 'w' ? SS_WRITE : SS_READ;
	want = whole ? strlen(words[*direction]) : 1;
	for (i = 0; i < nr && nr == want; i++) {
		if ((word[i] | 0x20) != words[*direction][i])
			break;
	}
	if (i < nr)
		return line_bad(line, begin, FORM_WORD, noun);
	return true;
}

/* MSR: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime */
static enum trace_step msr_parse(struct trace_reader *reader,
				 struct trace_line *line,
				 struct trace_record *record)
{
	struct trace_extent extent;
	const u8 *host, *word;
	u64 disk;
	u32 nr;

	(void)reader;
	NEED(scan_time(line, 100, &record->time_ns,
		       "the time in units of 100 ns"));
	NEED(scan_comma(line));
	NEED(scan_word(line, &host, &nr, "the host's name"));
	NEED(scan_comma(line));
	word = line->at;
	NEED(scan_u64(line, &disk, "the disk's number"));
	record_device_name(record, host, line->at - host);
	/* Blanks around the comma are no part of the name. */
	if (word != host + nr + 1)
		record->device = trace_hash_on(
			trace_hash_on(trace_hash(host, nr), ",", 1), word,
			line->at - word);
	NEED(scan_comma(line));
	NEED(scan_direction(line, true, &record->direction, "Read or Write"));
	NEED(scan_comma(line));
	NEED(scan_position(line, &extent, "the offset in bytes"));
	NEED(scan_comma(line));
	NEED(scan_length(line, &extent, "the size in bytes"));
	NEED(scan_comma(line));
	NEED(scan_time(line, 100, &record->response_ns,
		       "the response time in units of 100 ns"));
	NEED(scan_end(line));
	NEED(extent_to_record(line, &extent, true, true, record));
	return TRACE_REQUEST;
}

const struct trace_ops trace_msr_ops = {
	.header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
	.parse_device = trace_parse_name,
	.parse = msr_parse,
};

/* SPC: ASU,LBA,Size,Opcode,Timestamp and columns of the user's own */
static enum trace_step spc_parse(struct trace_reader *reader,
				 struct trace_line *line,
				 struct trace_record *record)
{
	struct trace_extent extent;

	(void)reader;
	NEED(scan_u64(line, &record->device, "the application storage unit"));
	NEED(scan_comma(line));
	NEED(scan_position(line, &extent, "the address in sectors"));
	NEED(scan_comma(line));
	NEED(scan_length(line, &extent, "the size in bytes"));
	NEED(scan_comma(line));
	NEED(scan_direction(line, false, &record->direction, "r or w"));
	NEED(scan_comma(line));
	NEED(scan_decimal(line, 9, &record->time_ns, "the time in seconds"));
	skip_blanks(line);
	if (line->at < line->end && *line->at != ',')
		NEED(scan_end(line));
	NEED(extent_to_record(line, &extent, false, true, record));
	return TRACE_REQUEST;
}

const struct trace_ops trace_spc_ops = {
	.header = "ASU,LBA,Size,Opcode,Timestamp",
	.parse_device = trace_parse_number,
	.parse = spc_parse,
};

/* Alibaba: device_id,opcode,offset,length,timestamp */
static enum trace_step alibaba_parse(struct trace_reader *reader,
				     struct trace_line *line,
				     struct trace_record *record)
{
	struct trace_extent extent;

	(void)reader;
	NEED(scan_u64(line, &record->device, "the device's number"));
	NEED(scan_comma(line));
	NEED(scan_direction(line, false, &record->direction, "R or W"));
	NEED(scan_comma(line));
	NEED(scan_position(line, &extent, "the offset in bytes"));
	NEED(scan_comma(line));
	NEED(scan_length(line, &extent, "the length in bytes"));
	NEED(scan_comma(line));
	NEED(scan_time(line, NS_PER_US, &record->time_ns,
		       "the time in microseconds"));
	NEED(scan_end(line));
	NEED(extent_to_record(line, &extent, true, true, record));
	return TRACE_REQUEST;
}

const struct trace_ops trace_alibaba_ops = {
	.header = "device_id,opcode,offset,length,timestamp",
	.parse_device = trace_parse_number,
	.parse = alibaba_parse,
};

/* Tencent: Timestamp,Offset,Size,IOType,VolumeID */
static enum trace_step tencent_parse(struct trace_reader *reader,
				     struct trace_line *line,
				     struct trace_record *record)
{
	struct trace_extent extent;
	bool writes;

	(void)reader;
	NEED(scan_time(line, NS_PER_S, &record->time_ns,
		       "the time in seconds"));
	NEED(scan_comma(line));
	NEED(scan_position(line, &extent, "the offset in sectors"));
	NEED(scan_comma(line));
	NEED(scan_length(line, &extent, "the size in sectors"));
	NEED(scan_comma(line));
	NEED(scan_bit(line, &writes, "0 (read) or 1 (write)"));
	record->direction = writes ? SS_WRITE : SS_READ;
	NEED(scan_comma(line));
	NEED(scan_u64(line, &record->device, "the volume's number"));
	NEED(scan_end(line));
	NEED(extent_to_record(line, &extent, false, false, record));
	return TRACE_REQUEST;
}

const struct trace_ops trace_tencent_ops = {
	.header = "Timestamp,Offset,Size,IOType,VolumeID",
	.parse_device = trace_parse_number,
	.parse = tencent_parse,
};

/*
 * SYSTOR '17: Timestamp,Response,IOType,LUN,Offset,Size
 *
 * An empty type stands for a command whose answer was not seen; what it was
 * is not known, so it is no request.
 */
static enum trace_step systor_parse(struct trace_reader *reader,
				    struct trace_line *line,
				    struct trace_record *record)
{
	struct trace_extent extent;
	bool known;

	(void)reader;
	NEED(scan_decimal(line, 9, &record->time_ns, "the time in seconds"));
	NEED(scan_comma(line));
	if (line->at == line->end || *line->at != ',')
		NEED(scan_decimal(line, 9, &record->response_ns,
				  "the response time in seconds"));
	NEED(scan_comma(line));
	known = line->at == line->end || *line->at != ',';
	if (known)
		NEED(scan_direction(line, false, &record->direction, "R or W"));
	NEED(scan_comma(line));
	NEED(scan_u64(line, &record->device, "the logical unit's number"));
	NEED(scan_comma(line));
	NEED(scan_position(line, &extent, "the offset in bytes"));
	NEED(scan_comma(line));
	if (!known) {
		NEED(scan_u64(line, &extent.length, "the size in bytes"));
		NEED(scan_end(line));
		return TRACE_SKIP;
	}
	NEED(scan_length(line, &extent, "the size in bytes"));
	NEED(scan_end(line));
	NEED(extent_to_record(line, &extent, true, true, record));
	return TRACE_REQUEST;
}

const struct trace_ops trace_systor_ops = {
	.header = "Timestamp,Response,IOType,LUN,Offset,Size",
	.parse_device = trace_parse_number,
	.parse = systor_parse,
};
