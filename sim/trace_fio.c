// SPDX-License-Identifier: GPL-2.0-only
/*
 * fio's logs of what it did, versions 2 and 3:
 *
 *	fio version 2 iolog		fio version 3 iolog
 *	FILE add|open|close		TIME FILE add|open|close
 *	FILE ACTION OFFSET LENGTH	TIME FILE ACTION OFFSET LENGTH
 *
 * Version 2 has no times but those of wait lines, which fio reads and never
 * writes: each waits until OFFSET milliseconds have passed since fio began.
 * (fio's manual says microseconds since the last wait. No version of fio has
 * read it so.) In version 3 the time is in microseconds since the log began.
 */
#include "trace_internal.h"

struct fio_state {
	u64 now_ns; /* version 2: until when was waited */
	bool begun; /* the first line has been read */
};

enum fio_kind {
	FIO_FILE, /* no offset, no length */
	FIO_OTHER, /* no request, though it has both */
	FIO_WAIT,
	FIO_DATA,
};

static const struct fio_action {
	const char *name;
	enum fio_kind kind;
	u8 direction;
} fio_actions[] = {
	{ "read", FIO_DATA, SS_READ }, { "write", FIO_DATA, SS_WRITE },
	{ "sync", FIO_OTHER, 0 },      { "datasync", FIO_OTHER, 0 },
	{ "trim", FIO_OTHER, 0 },      { "wait", FIO_WAIT, 0 },
	{ "add", FIO_FILE, 0 },	       { "open", FIO_FILE, 0 },
	{ "close", FIO_FILE, 0 },
};

/* A word as fio has it: commas belong to it. */
static bool fio_word(struct trace_line *line, const u8 **word, u32 *nr,
		     const char *noun)
{
	*word = line->at;
	while (line->at < line->end && !is_blank(*line->at))
		line->at++;
	*nr = line->at - *word;
	if (!*nr)
		return line_bad(line, *word, FORM_WORD, noun);
	return scan_gap(line);
}

static const struct fio_action *fio_action(struct trace_line *line)
{
	const struct fio_action *action = fio_actions;
	u32 nr, i, size = sizeof(fio_actions) / sizeof(fio_actions[0]);
	const u8 *word;

	if (!fio_word(line, &word, &nr, "the action"))
		return NULL;
	for (i = 0; i < size; i++, action++) {
		if (strlen(action->name) == nr &&
		    !memcmp(action->name, word, nr))
			return action;
	}
	line_bad(line, word, FORM_WORD,
		 "an action such as read, write or wait");
	return NULL;
}

static bool fio_first_line(struct trace_line *line, const char *want)
{
	if (!bytes_begin(line->at, line->end, want))
		return line_bad(line, line->at, FORM_WORD, want);
	line->at += strlen(want);
	return scan_end(line);
}

/* Behind the action: OFFSET LENGTH. */
static enum trace_step fio_range(struct trace_line *line,
				 struct fio_state *state,
				 const struct fio_action *action,
				 struct trace_record *record)
{
	struct trace_extent extent = { 0 };
	const u8 *begin = line->at;
	u64 wait_ns;

	if (action->kind == FIO_FILE) {
		NEED(scan_end(line));
		return TRACE_SKIP;
	}
	NEED(scan_position(line, &extent,
			   action->kind == FIO_WAIT ?
				   "the wait in milliseconds" :
				   "the offset in bytes"));
	NEED(scan_gap(line));
	extent.length_at = line->at;
	if (action->kind != FIO_WAIT || line->at < line->end)
		NEED(scan_u64(line, &extent.length, "the length in bytes"));
	NEED(scan_end(line));
	if (action->kind == FIO_WAIT) {
		if (__builtin_mul_overflow(extent.position, NS_PER_MS,
					   &wait_ns))
			NEED(line_bad(line, begin, FORM_LARGE, "the wait"));
		if (wait_ns > state->now_ns)
			state->now_ns = wait_ns;
		return TRACE_SKIP;
	}
	if (action->kind != FIO_DATA || !extent.length)
		return TRACE_SKIP;
	NEED(extent_to_record(line, &extent, true, true, record));
	record->direction = action->direction;
	return TRACE_REQUEST;
}

static enum trace_step fio_parse(struct trace_reader *reader,
				 struct trace_line *line, const char *first,
				 bool has_time, struct trace_record *record)
{
	struct fio_state *state = reader->state;
	const struct fio_action *action;
	const u8 *file;
	u32 nr;

	if (!state->begun) {
		NEED(fio_first_line(line, first));
		state->begun = true;
		return TRACE_SKIP;
	}
	record->time_ns = state->now_ns;
	if (has_time) {
		NEED(scan_time(line, NS_PER_US, &record->time_ns,
			       "the time in microseconds"));
		NEED(scan_gap(line));
	}
	NEED(fio_word(line, &file, &nr, "the file's name"));
	record_device_name(record, file, nr);
	action = fio_action(line);
	NEED(action);
	if (has_time && action->kind == FIO_WAIT)
		NEED(line_bad(line, file, FORM_WORD,
			      "no wait line in a log with times"));
	return fio_range(line, state, action, record);
}

static enum trace_step fio2_parse(struct trace_reader *reader,
				  struct trace_line *line,
				  struct trace_record *record)
{
	return fio_parse(reader, line, "fio version 2 iolog", false, record);
}

static enum trace_step fio3_parse(struct trace_reader *reader,
				  struct trace_line *line,
				  struct trace_record *record)
{
	return fio_parse(reader, line, "fio version 3 iolog", true, record);
}

const struct trace_ops trace_fio2_ops = {
	.state_size = sizeof(struct fio_state),
	.parse_device = trace_parse_name,
	.parse = fio2_parse,
};

const struct trace_ops trace_fio3_ops = {
	.state_size = sizeof(struct fio_state),
	.parse_device = trace_parse_name,
	.parse = fio3_parse,
};
