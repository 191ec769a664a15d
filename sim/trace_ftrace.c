// SPDX-License-Identifier: GPL-2.0-only
/*
 * The text of the kernel's block trace events, as tracefs, trace-cmd report
 * and perf script print it:
 *
 *	fio-70 [000] d..1. 12.345678: block_rq_issue: 8,0 R 4096 () 64 + 8 [fio]
 *	fio 70 [000] 12.345678: block:block_rq_issue: 8,0 R 4096 () 64 + 8 [fio]
 *
 * A process's name may hold anything, so a line is read from its event's name
 * to both sides. A bio queued is a Q, a request issued a D, one of either
 * completed a C; other events are passed over.
 */
#include "trace_events.h"

static const struct ftrace_name {
	const char *name;
	u8 action;
} ftrace_names[] = {
	{ "block_bio_queue", EVENT_QUEUE },
	{ "block_rq_issue", EVENT_ISSUE },
	{ "block_rq_complete", EVENT_COMPLETE },
	/* Only of devices without requests, such as those of dm. */
	{ "block_bio_complete", EVENT_COMPLETE },
};

static bool is_name(u8 byte)
{
	return is_digit(byte) || byte == '_' ||
	       (u8)((byte | 0x20) - 'a') <= 'z' - 'a';
}

/* Behind a time, "12.345678: ", which begins at @time. */
static bool find_time(const struct trace_line *line, const u8 *colon,
		      const u8 **time)
{
	const u8 *at = colon, *dot;

	while (at > line->start && is_digit(at[-1]))
		at--;
	if (at == colon || at == line->start || at[-1] != '.')
		return false;
	dot = --at;
	while (at > line->start && is_digit(at[-1]))
		at--;
	*time = at;
	return at < dot && at > line->start && is_blank(at[-1]);
}

/* The sample's period, which perf script may print: "1 " or "1000 ". */
static const u8 *skip_period(const u8 *at, const u8 *end)
{
	const u8 *begin = at;

	while (at < end && is_digit(*at))
		at++;
	if (at == begin || at == end || !is_blank(*at))
		return begin;
	while (at < end && is_blank(*at))
		at++;
	return at;
}

/* The event's name: the word before a colon, behind that of a time. */
static bool find_event(const struct trace_line *line, const u8 **name,
		       const u8 **time)
{
	const u8 *at = line->at;

	for (; at < line->end; at++) {
		if (*at != ':' || !find_time(line, at, time))
			continue;
		at++;
		while (at < line->end && is_blank(*at))
			at++;
		at = skip_period(at, line->end);
		if (bytes_begin(at, line->end, "block:"))
			at += strlen("block:");
		*name = at;
		while (at < line->end && (is_name(*at) || *at == '-'))
			at++;
		return at > *name && at < line->end && *at == ':';
	}
	return false;
}

/* Before the time: "fio-70 [000] d..1. " or "fio 70/71 [000] ". */
static bool scan_sender(struct trace_line *line, const u8 *time,
			struct trace_text *state)
{
	const u8 *begin = line->at, *at = time;
	u64 cpu, pid;

	while (at > line->start && *at != '[')
		at--;
	line->at = at + 1;
	if (*at != '[' || !scan_digits(line, &cpu, "the processor") ||
	    *line->at != ']')
		return line_bad(line, begin, FORM_WORD,
				"the processor in brackets, as [000]");
	state->cpu = cpu < ~0U ? cpu : ~0U;
	while (at > line->start && is_blank(at[-1]))
		at--;
	/* The thread group that tracefs may add, "(   70)" or "(-----)". */
	if (at > line->start && at[-1] == ')') {
		while (at > line->start && *at != '(')
			at--;
		while (at > line->start && is_blank(at[-1]))
			at--;
	}
	while (at > line->start && is_digit(at[-1]))
		at--;
	line->at = at;
	if (!scan_digits(line, &pid, ""))
		return line_bad(line, begin, FORM_WORD,
				"a process with its id, as fio-70");
	state->event.owner = pid;
	return true;
}

/* The bytes of a command, which the kernel prints in parentheses. */
static bool skip_command(struct trace_line *line)
{
	while (line->at < line->end && *line->at != ')')
		line->at++;
	if (line->at == line->end)
		return line_bad(line, line->at, FORM_WORD,
				"a closing parenthesis");
	line->at++;
	return scan_gap(line);
}

/* Behind the event's name: "8,0 RS 4096 () 64 + 8 [fio]". */
static enum trace_step scan_range(struct trace_line *line,
				  struct trace_event *event, u64 *device)
{
	const u8 *begin;
	u64 sector;
	bool data;

	if (!trace_scan_device(line, device) ||
	    !trace_scan_rwbs(line, event, &data) || !scan_gap(line))
		return TRACE_BAD;
	if (!data)
		return TRACE_SKIP;
	if (at_byte(line, '(') && !skip_command(line))
		return TRACE_BAD;
	begin = line->at;
	if (!scan_u64(line, &sector, "the sector") || !scan_gap(line))
		return TRACE_BAD;
	/* That was the number of bytes. */
	if (at_byte(line, '(')) {
		if (!skip_command(line))
			return TRACE_BAD;
		begin = line->at;
		if (!scan_u64(line, &sector, "the sector") || !scan_gap(line))
			return TRACE_BAD;
	}
	if (!trace_scan_sectors(line, begin, sector, event))
		return TRACE_BAD;
	return event->nr_sectors ? TRACE_REQUEST : TRACE_SKIP;
}

static bool ends(const u8 *at, const u8 *end, const char *with)
{
	u64 nr = strlen(with);

	return (u64)(end - at) >= nr && !memcmp(end - nr, with, nr);
}

/*
 * A call stack behind an event. tracefs writes a line that ends in "<stack
 * trace>" and then " => submit_bio"; perf script "	ffffffff8139ab12
 * submit_bio+0x1 ([kernel.kallsyms])".
 */
static bool is_stack(const struct trace_line *line)
{
	const u8 *at = line->at, *end = line->end;

	if (bytes_begin(at, end, "=> ") || ends(at, end, "stack trace>"))
		return true;
	while (at < end && is_hex(*at))
		at++;
	return at > line->at && at < end && is_blank(*at) && end[-1] == ')' &&
	       line->at > line->start;
}

/* A line without an event: what these programs print about themselves. */
static enum trace_step parse_other(struct trace_text *state,
				   struct trace_line *line)
{
	const u8 *at = line->at, *end = line->end;

	if (state->begun && is_stack(line))
		return TRACE_SKIP;
	if (bytes_begin(at, end, "# tracer:") ||
	    bytes_begin(at, end, "# ====") || bytes_begin(at, end, "cpus=") ||
	    bytes_begin(at, end, "version = "))
		state->aside = true;
	if (state->aside && (*at != 'C' || bytes_begin(at, end, "CPU ")) &&
	    memchr("#cvC", *at, 4))
		return TRACE_SKIP;
	line_bad(line, at, FORM_WORD,
		 bytes_begin(at, end, "CPU:") ?
			 "no lost events (make buffer_size_kb larger)" :
			 "an event, as in 1.5: block_rq_issue: 8,0");
	return TRACE_BAD;
}

static enum trace_step parse(struct trace_reader *reader,
			     struct trace_line *line,
			     struct trace_record *record)
{
	struct trace_text *state = reader->state;
	struct trace_event *event = &state->event;
	struct trace_line part = *line;
	const u8 *name, *time, *end;
	u32 i, nr = sizeof(ftrace_names) / sizeof(ftrace_names[0]);

	if (!find_event(line, &name, &time))
		return parse_other(state, line);
	state->begun = true;
	for (end = name; *end != ':';)
		end++;
	event->action = EVENT_OTHER;
	for (i = 0; i < nr; i++) {
		if ((u64)(end - name) == strlen(ftrace_names[i].name) &&
		    bytes_begin(name, end, ftrace_names[i].name))
			event->action = ftrace_names[i].action;
	}
	if (event->action == EVENT_OTHER)
		return TRACE_SKIP;
	if (!scan_sender(line, time, state))
		return TRACE_BAD;
	/* It ends with a colon, which no number does. */
	part.at = time;
	part.end = memchr(time, ':', line->end - time);
	if (!scan_decimal(&part, 9, &event->time_ns, "the time in seconds")) {
		*line = part;
		return TRACE_BAD;
	}
	line->at = end + 1;
	if (!scan_gap(line))
		return TRACE_BAD;
	event->line = reader->line;
	return scan_range(line, event, &record->device);
}

const struct trace_ops trace_ftrace_ops = {
	.state_size = sizeof(struct trace_text),
	.parse_device = trace_parse_major_minor,
	.print_device = trace_print_major_minor,
	.parse = parse,
	.next = trace_text_next,
	.close = trace_text_close,
};
