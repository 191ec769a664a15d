// SPDX-License-Identifier: GPL-2.0-only
/*
 * The formats with a column for each thing that is known of a request: a table
 * says what stands in which. Between columns there are commas, with blanks
 * around them or not, or blanks alone. A first line with the columns' names is
 * read over.
 *
 * No library of Python reads them as fast. A million requests of MSR take this
 * 0.12 s of processor time (trace_fio.c: 0.08 s, trace_vscsi.c: 0.02 s). Alone
 * to split them takes numpy 0.29 s,
 *
 *	numpy.loadtxt("msr.csv", "u8,S16,u4,S5,u8,u8,u8", delimiter=",",
 *		      skiprows=1)
 *
 * with the checks made here 0.49 s, and no error names its column. For fio's
 * log pandas.read_csv(sep=" ") takes 0.40 s. (The best of three, November 2026;
 * Debian 12 has no pyarrow.)
 */
#include "trace_internal.h"

#define MD5_DIGITS 32

/* A line while its columns are read. */
struct trace_row {
	struct trace_record *record;
	struct trace_extent extent;
	const u8 *host;
	u32 host_nr;
	bool unknown; /* what it was; so it is no request */
};

static enum trace_step parse(struct trace_reader *reader,
			     struct trace_line *line,
			     struct trace_record *record)
{
	const struct trace_ops *ops = reader->ops;
	const struct trace_column *column = ops->column;
	struct trace_row row = { .record = record };

	NEED(column->scan(line, &row, column));
	for (column++; column->scan; column++) {
		NEED(ops->commas ? scan_comma(line) : scan_gap(line));
		NEED(column->scan(line, &row, column));
	}
	NEED(scan_end(line));
	if (row.unknown)
		return TRACE_SKIP;
	NEED(extent_to_record(line, &row.extent, ops->bytes_position,
			      ops->bytes_length, record));
	return TRACE_REQUEST;
}

#define COLUMN(name)                                                           \
	static bool name(struct trace_line *line, struct trace_row *row,       \
			 const struct trace_column *column)

COLUMN(whole_time)
{
	return scan_time(line, column->unit, &row->record->time_ns,
			 column->noun);
}

COLUMN(decimal_time)
{
	return scan_decimal(line, (u32)column->unit, &row->record->time_ns,
			    column->noun);
}

COLUMN(device)
{
	return scan_u64(line, &row->record->device, column->noun);
}

COLUMN(position)
{
	return scan_position(line, &row->extent, column->noun);
}

COLUMN(length)
{
	return scan_length(line, &row->extent, column->noun);
}

/* Read or Write, or their first letters, in either case. */
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

COLUMN(letter)
{
	return scan_direction(line, false, &row->record->direction,
			      column->noun);
}

COLUMN(writes)
{
	bool writes = false;
	bool good = scan_bit(line, &writes, column->noun);

	row->record->direction = writes ? SS_WRITE : SS_READ;
	return good;
}

COLUMN(reads)
{
	bool good = writes(line, row, column);

	row->record->direction ^= SS_READ ^ SS_WRITE;
	return good;
}

/* MSR */

COLUMN(msr_host)
{
	return scan_word(line, &row->host, &row->host_nr, column->noun);
}

COLUMN(msr_disk)
{
	struct trace_record *record = row->record;
	const u8 *host = row->host, *word = line->at;
	u32 nr = row->host_nr;
	u64 disk;

	if (!scan_u64(line, &disk, column->noun))
		return false;
	record_device_name(record, host, line->at - host);
	/* Blanks around the comma are no part of the name. */
	if (word != host + nr + 1)
		record->device = trace_hash_on(
			trace_hash_on(trace_hash(host, nr), ",", 1), word,
			line->at - word);
	return true;
}

COLUMN(msr_type)
{
	return scan_direction(line, true, &row->record->direction,
			      column->noun);
}

COLUMN(msr_response)
{
	return scan_time(line, column->unit, &row->record->response_ns,
			 column->noun);
}

const struct trace_ops trace_msr_ops = {
	.header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
	.parse_device = trace_parse_name,
	.parse = parse,
	.commas = true,
	.bytes_position = true,
	.bytes_length = true,
	.column = {
		{ whole_time, "the time in units of 100 ns", 100 },
		{ msr_host, "the host's name" },
		{ msr_disk, "the disk's number" },
		{ msr_type, "Read or Write" },
		{ position, "the offset in bytes" },
		{ length, "the size in bytes" },
		{ msr_response, "the response time in units of 100 ns", 100 },
	},
};

/* SPC: columns of the user's own may follow. */
COLUMN(spc_time)
{
	if (!decimal_time(line, row, column))
		return false;
	skip_blanks(line);
	if (line->at < line->end && *line->at == ',')
		line->at = line->end;
	return true;
}

const struct trace_ops trace_spc_ops = {
	.header = "ASU,LBA,Size,Opcode,Timestamp",
	.parse_device = trace_parse_number,
	.parse = parse,
	.commas = true,
	.bytes_length = true,
	.column = {
		{ device, "the application storage unit" },
		{ position, "the address in sectors" },
		{ length, "the size in bytes" },
		{ letter, "r or w" },
		{ spc_time, "the time in seconds", 9 },
	},
};

const struct trace_ops trace_alibaba_ops = {
	.header = "device_id,opcode,offset,length,timestamp",
	.parse_device = trace_parse_number,
	.parse = parse,
	.commas = true,
	.bytes_position = true,
	.bytes_length = true,
	.column = {
		{ device, "the device's number" },
		{ letter, "R or W" },
		{ position, "the offset in bytes" },
		{ length, "the length in bytes" },
		{ whole_time, "the time in microseconds", NS_PER_US },
	},
};

const struct trace_ops trace_tencent_ops = {
	.header = "Timestamp,Offset,Size,IOType,VolumeID",
	.parse_device = trace_parse_number,
	.parse = parse,
	.commas = true,
	.column = {
		{ whole_time, "the time in seconds", NS_PER_S },
		{ position, "the offset in sectors" },
		{ length, "the size in sectors" },
		{ writes, "0 (read) or 1 (write)" },
		{ device, "the volume's number" },
	},
};

/*
 * SYSTOR '17: an empty type stands for a command whose answer was not seen.
 * What it was is not known, so it is no request.
 */
static bool is_empty(const struct trace_line *line)
{
	return line->at < line->end && *line->at == ',';
}

COLUMN(systor_response)
{
	return is_empty(line) ||
	       scan_decimal(line, (u32)column->unit, &row->record->response_ns,
			    column->noun);
}

COLUMN(systor_type)
{
	row->unknown = is_empty(line);
	return row->unknown || letter(line, row, column);
}

COLUMN(systor_size)
{
	if (row->unknown)
		return scan_u64(line, &row->extent.length, column->noun);
	return length(line, row, column);
}

const struct trace_ops trace_systor_ops = {
	.header = "Timestamp,Response,IOType,LUN,Offset,Size",
	.parse_device = trace_parse_number,
	.parse = parse,
	.commas = true,
	.bytes_position = true,
	.bytes_length = true,
	.column = {
		{ decimal_time, "the time in seconds", 9 },
		{ systor_response, "the response time in seconds", 9 },
		{ systor_type, "R or W" },
		{ device, "the logical unit's number" },
		{ position, "the offset in bytes" },
		{ systor_size, "the size in bytes" },
	},
};

/* FIU */

COLUMN(fiu_pid)
{
	return scan_u64(line, &row->record->owner, column->noun);
}

/* Whether the next token is a number and nothing else. */
static bool number_follows(const struct trace_line *line)
{
	const u8 *at = line->at;

	while (at < line->end && is_digit(*at))
		at++;
	return at > line->at && at_token_end(at, line->end);
}

/* A process name may hold blanks: it ends where a number follows. */
COLUMN(fiu_process_and_address)
{
	do {
		if (line->at == line->end)
			return line_bad(line, line->at, FORM_WORD,
					"the process's name");
		while (line->at < line->end && !is_blank(*line->at))
			line->at++;
		skip_blanks(line);
	} while (line->at < line->end && !number_follows(line));
	return position(line, row, column);
}

COLUMN(fiu_direction)
{
	if (line->at == line->end || !at_token_end(line->at + 1, line->end) ||
	    (*line->at != 'R' && *line->at != 'W'))
		return line_bad(line, line->at, FORM_WORD, column->noun);
	row->record->direction = *line->at++ == 'W' ? SS_WRITE : SS_READ;
	return true;
}

COLUMN(fiu_major)
{
	const u8 *begin = line->at;
	u64 number;

	if (!scan_u64(line, &number, column->noun))
		return false;
	row->record->device = number << 20;
	return number < 1 << 12 ||
	       line_bad(line, begin, FORM_LARGE, column->noun);
}

/* Behind it the contents' MD5 sums, one for each 4096 bytes or one for all. */
COLUMN(fiu_minor_and_sums)
{
	const u8 *begin = line->at;
	u64 number;

	if (!scan_u64(line, &number, column->noun))
		return false;
	row->record->device |= number;
	if (number >= 1 << 20)
		return line_bad(line, begin, FORM_LARGE, column->noun);
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

const struct trace_ops trace_fiu_ops = {
	.parse_device = trace_parse_major_minor,
	.print_device = trace_print_major_minor,
	.parse = parse,
	.column = {
		{ whole_time, "the time in nanoseconds", 1 },
		{ fiu_pid, "the process id" },
		{ fiu_process_and_address, "the address in sectors" },
		{ length, "the size in sectors" },
		{ fiu_direction, "R or W" },
		{ fiu_major, "the device's major number" },
		{ fiu_minor_and_sums, "the device's minor number" },
	},
};

/* DiskSim: a hexadecimal number; bit 0 is set for a read. */
COLUMN(disksim_flags)
{
	const u8 *begin = line->at, *at = begin;
	u64 flags = 0;

	if (line->end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	for (; at < line->end && is_hex(*at); at++) {
		if (flags >> 60)
			return line_bad(line, begin, FORM_LARGE, column->noun);
		flags = flags << 4 |
			(is_digit(*at) ? *at - '0' : (*at | 0x20) - 'a' + 10);
	}
	if (at == begin || !at_token_end(at, line->end))
		return line_bad(line, begin, FORM_HEX, column->noun);
	line->at = at;
	row->record->direction = flags & 1 ? SS_READ : SS_WRITE;
	return true;
}

const struct trace_ops trace_disksim_ops = {
	.most_gap_ns = 10 * NS_PER_S,
	.parse_device = trace_parse_number,
	.parse = parse,
	.column = {
		{ decimal_time, "the arrival in milliseconds", 6 },
		{ device, "the device's number" },
		{ position, "the block's number" },
		{ length, "the number of blocks" },
		{ disksim_flags, "the flags" },
	},
};

const struct trace_ops trace_mqsim_ops = {
	.least_gap_ns = NS_PER_US,
	.parse_device = trace_parse_number,
	.parse = parse,
	.column = {
		{ whole_time, "the arrival in nanoseconds", 1 },
		{ device, "the device's number" },
		{ position, "the address in sectors" },
		{ length, "the number of sectors" },
		{ reads, "0 (write) or 1 (read)" },
	},
};
