// SPDX-License-Identifier: GPL-2.0-only
/*
 * The text that blkparse prints, in its default layout:
 *
 *	8,0  3  11  0.009507758  697  Q  WS 223490 + 8 [kjournald]
 *	device cpu sequence seconds pid action RWBS sector + sectors [process]
 *
 * Its summary ends the events.
 */
#include "trace_events.h"

/* A line that does not begin with a device. */
static enum trace_step parse_other(struct trace_text *state,
				   struct trace_line *line)
{
	static const char *const summary[] = {
		"CPU", "Total (", "Throughput (", "Events (", "Skips:",
	};
	u32 i;

	for (i = 0; i < sizeof(summary) / sizeof(summary[0]); i++) {
		if (bytes_begin(line->at, line->end, summary[i]))
			state->aside = true;
	}
	/* What people write above it. */
	if (state->aside || bytes_begin(line->at, line->end, "Input file ") ||
	    (!state->begun && *line->at == '#'))
		return TRACE_SKIP;
	line_bad(line, line->at, FORM_WORD, "the device as major,minor");
	return TRACE_BAD;
}

bool trace_scan_device(struct trace_line *line, u64 *device)
{
	const u8 *begin = line->at;
	u64 major, minor;

	if (!scan_digits(line, &major, "the device as major,minor"))
		goto bad;
	if (line->at == line->end || *line->at != ',')
		goto bad;
	line->at++;
	if (!scan_u64(line, &minor, "the device as major,minor"))
		goto bad;
	if (major >= 1 << 12 || minor >= 1 << 20)
		goto bad;
	*device = major << 20 | minor;
	return scan_gap(line);
bad:
	return line_bad(line, begin, FORM_WORD, "the device as major,minor");
}

/* One letter or two; only three of them mean something here. */
static bool scan_action(struct trace_line *line, u8 *action)
{
	const u8 *word, *begin = line->at;
	u32 nr, i;

	if (!scan_word(line, &word, &nr, "the action as a letter"))
		return false;
	for (i = 0; i < nr; i++) {
		if (nr > 2 || (u8)((word[i] | 0x20) - 'a') > 'z' - 'a')
			return line_bad(line, begin, FORM_WORD,
					"the action as a letter");
	}
	*action = EVENT_OTHER;
	if (nr == 1 && *word == 'Q')
		*action = EVENT_QUEUE;
	else if (nr == 1 && *word == 'D')
		*action = EVENT_ISSUE;
	else if (nr == 1 && *word == 'C')
		*action = EVENT_COMPLETE;
	return true;
}

bool trace_scan_rwbs(struct trace_line *line, struct trace_event *event,
		     bool *data)
{
	const char *noun = "the kind of request, such as R or WS";
	const u8 *word, *begin = line->at;
	u32 nr, i = 0;

	if (!scan_word(line, &word, &nr, noun))
		return false;
	if (word[0] == 'F' && nr > 1)
		i++;
	event->direction = word[i] == 'W' ? SS_WRITE : SS_READ;
	event->flags = 0;
	*data = word[i] == 'R' || word[i] == 'W';
	if (!memchr("RWDNF", word[i], 5))
		return line_bad(line, begin, FORM_WORD, noun);
	if (word[i] == 'W' && i + 1 < nr && word[i + 1] == 'Z') {
		*data = false;
		i++;
	}
	for (i++; i < nr; i++) {
		if (word[i] == 'S')
			event->flags |= SS_SYNC;
		else if (word[i] == 'M')
			event->flags |= SS_META;
		else if (!memchr("FAEBU", word[i], 5))
			return line_bad(line, begin, FORM_WORD, noun);
	}
	return true;
}

bool trace_scan_sectors(struct trace_line *line, const u8 *begin, u64 sector,
			struct trace_event *event)
{
	struct trace_record record;
	u64 nr;

	if (!at_byte(line, '+'))
		return line_bad(line, line->at, FORM_WORD, "a plus sign");
	line->at++;
	if (!scan_gap(line) || !scan_u64(line, &nr, "the number of sectors"))
		return false;
	if (!trace_set_sectors(&record, sector, nr))
		return line_bad(line, begin, FORM_LARGE,
				"the position plus the length");
	event->sector = sector;
	event->nr_sectors = nr;
	return true;
}

/* Behind RWBS: "SECTOR + NR [PROCESS]", with more where blkparse adds it. */
static enum trace_step parse_range(struct trace_line *line,
				   struct trace_event *event)
{
	const u8 *begin = line->at;
	u64 sector;

	/* A flush or a command: "[PROCESS]", "SECTOR [", "NR (BYTES) [". */
	if (at_byte(line, '['))
		return TRACE_SKIP;
	if (!scan_u64(line, &sector, "the sector") || !scan_gap(line))
		return TRACE_BAD;
	if (at_byte(line, '[') || at_byte(line, '('))
		return TRACE_SKIP;
	if (!trace_scan_sectors(line, begin, sector, event) || !scan_gap(line))
		return TRACE_BAD;
	if ((!at_byte(line, '[') && !at_byte(line, '('))) {
		line_bad(line, line->at, FORM_WORD, "the process in brackets");
		return TRACE_BAD;
	}
	while (is_blank(line->end[-1]))
		line->end--;
	if (line->end[-1] != ']') {
		line_bad(line, line->end, FORM_WORD, "a closing bracket");
		return TRACE_BAD;
	}
	return event->nr_sectors ? TRACE_REQUEST : TRACE_SKIP;
}

/* The event comes to stand in the state, the device in the record. */
static enum trace_step parse(struct trace_reader *reader,
			     struct trace_line *line,
			     struct trace_record *record)
{
	struct trace_text *state = reader->state;
	struct trace_event *event = &state->event;
	u64 cpu, sequence, pid;
	bool data;

	if (!is_digit(*line->at))
		return parse_other(state, line);
	state->begun = true;
	if (state->aside) {
		line_bad(line, line->at, FORM_WORD,
			 "no more events after the summary");
		return TRACE_BAD;
	}
	if (!trace_scan_device(line, &record->device) ||
	    !scan_u64(line, &cpu, "the processor") || !scan_gap(line) ||
	    !scan_u64(line, &sequence, "the sequence number") ||
	    !scan_gap(line) ||
	    !scan_decimal(line, 9, &event->time_ns, "the time in seconds") ||
	    !scan_gap(line) || !scan_u64(line, &pid, "the process id") ||
	    !scan_gap(line) || !scan_action(line, &event->action))
		return TRACE_BAD;
	if (event->action == EVENT_OTHER)
		return TRACE_SKIP;
	if (!scan_gap(line) || !trace_scan_rwbs(line, event, &data) ||
	    !scan_gap(line))
		return TRACE_BAD;
	if (!data)
		return TRACE_SKIP;
	event->line = reader->line;
	event->owner = pid;
	state->cpu = cpu < ~0U ? cpu : ~0U;
	return parse_range(line, event);
}

/* Read one line. */
static enum trace_step take_line(struct trace_reader *reader)
{
	struct trace_text *state = reader->state;
	struct trace_event *event = &state->event, *kept;
	struct trace_record record = { 0 };
	struct trace_line line;
	enum trace_step step;

	step = trace_next_line(reader, &line);
	if (step != TRACE_REQUEST)
		return step;
	step = reader->ops->parse(reader, &line, &record);
	if (step == TRACE_BAD)
		return trace_fail_line(reader, &line) ? TRACE_BAD : TRACE_SKIP;
	if (step == TRACE_REQUEST)
		step = trace_check_device(reader, &record);
	if (step != TRACE_REQUEST)
		return step;
	step = trace_events_add(reader, &state->events, event->action,
				event->time_ns, state->cpu, &kept);
	if (step == TRACE_REQUEST)
		*kept = *event;
	return step;
}

enum trace_step trace_text_next(struct trace_reader *reader,
				struct trace_request *rq)
{
	struct trace_text *state = reader->state;

	return trace_events_drive(reader, &state->events, take_line, rq);
}

void trace_text_close(struct trace_reader *reader)
{
	struct trace_text *state = reader->state;

	trace_events_close(&state->events);
}

const struct trace_ops trace_blkparse_ops = {
	.comments = true,
	.state_size = sizeof(struct trace_text),
	.parse_device = trace_parse_major_minor,
	.print_device = trace_print_major_minor,
	.parse = parse,
	.next = trace_text_next,
	.close = trace_text_close,
};
