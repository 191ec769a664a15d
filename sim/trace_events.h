/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the events of blktrace to requests, for its binary and its text form.
 *
 * The events of several processors come in pieces, so they are put in the
 * order of time first. Then each completion is matched with the requests it
 * covers, and a request is given back when it is the oldest one and complete.
 * Both steps hold a bounded number of events.
 */
#ifndef TRACE_EVENTS_H
#define TRACE_EVENTS_H

#include "trace_internal.h"

enum event_action {
	EVENT_NONE,
	EVENT_QUEUE, /* Q: a bio enters the block layer */
	EVENT_ISSUE, /* D: a request goes to the driver */
	EVENT_COMPLETE, /* C */
	EVENT_OTHER, /* everything else */
};

struct trace_event {
	u64 time_ns;
	u64 sector;
	u64 line;
	u32 nr_sectors;
	u32 owner;
	u8 action;
	u8 direction;
	u8 flags;
};

#define TRACE_BLOCK_EVENTS 255
#define TRACE_MAX_CPUS 8192

/*
 * An event is held until the times have gone on by so much, or so many are
 * held; then events are released down to half of that. (In turns of many,
 * since one in, one out would cost a mispredicted branch each.) blktrace
 * waits half a second at most before it reads a buffer.
 */
#define TRACE_WINDOW_NS (2 * NS_PER_S)
#define TRACE_WINDOW_EVENTS 131072ULL

struct event_block {
	struct event_block *next;
	struct trace_event events[TRACE_BLOCK_EVENTS];
};

struct open_request;
struct open_bucket;

/* Events in the order of their times, one after the other. */
struct event_lane {
	struct event_block *first, *last;
	u32 head, tail; /* in the first block, in the last one */
	u64 tail_ns; /* the time of the last event */
};

struct trace_events {
	/* Sorting: each lane is sorted, the earliest head goes first. */
	struct event_lane *lanes;
	u32 nr_lanes, max_lanes;
	u32 lane; /* used last */
	u32 earliest; /* the lane whose head goes next */
	u64 earliest_ns; /* its time */
	struct event_block *free_blocks;
	u64 nr_events;
	u64 newest_ns, released_ns;
	bool releasing;
	u64 *cpu_ns; /* the last time of each processor */

	/* The action that makes a request: Q, or D when there is no Q. */
	bool decided;
	u8 seen; /* a bit for each */
	u8 arrival;
	u8 ignored; /* issues, if queueing is the arrival */

	/*
	 * Requests not yet given back, if completions are recorded: slots,
	 * the order of their use as a ring, and a hash by first sector.
	 */
	struct open_request *open;
	struct open_bucket *buckets;
	u32 *free, nr_free;
	u16 *order;
	u64 first, behind;
	u64 scan_limit;
};

static inline bool lane_is_empty(const struct event_lane *lane)
{
	return !lane->first;
}

static inline struct trace_event *lane_head(const struct event_lane *lane)
{
	return &lane->first->events[lane->head];
}

/* Whether the earliest event may go: no earlier one will come. */
static inline bool trace_events_due(struct trace_events *events)
{
	u32 half = events->releasing;

	if (!events->nr_events)
		return false;
	events->releasing = events->newest_ns - events->earliest_ns >=
				    TRACE_WINDOW_NS >> half ||
			    events->nr_events >= TRACE_WINDOW_EVENTS >> half;
	return events->releasing;
}

/* The state of a format that has an event in each line. */
struct trace_text {
	struct trace_events events;
	struct trace_event event; /* of the line that was parsed last */
	u32 cpu;
	bool aside; /* lines that are no events may follow */
	bool begun; /* there was an event */
};

/* next() and close() of such a format: its parse() fills in the state. */
enum trace_step trace_text_next(struct trace_reader *reader,
				struct trace_request *rq);
void trace_text_close(struct trace_reader *reader);

/* Of lines that blkparse or the kernel prints: "8,0" and the blanks behind. */
bool trace_scan_device(struct trace_line *line, u64 *device);
/* "+ NR" behind the sector, which was read from @begin. */
bool trace_scan_sectors(struct trace_line *line, const u8 *begin, u64 sector,
			struct trace_event *event);
/*
 * An F for a flush before it; R, W, WZ (zeroes), D (discard) or N (none); then
 * F (forced to the medium), A (ahead), S (sync), M (metadata), U (not torn).
 * @data: it moves data.
 */
bool trace_scan_rwbs(struct trace_line *line, struct trace_event *event,
		     bool *data);

enum trace_step trace_events_add_slowly(struct trace_reader *reader,
					struct trace_events *events, u8 action,
					u64 time_ns, u32 cpu,
					struct trace_event **event);

/*
 * Take an event of the processor @cpu; times of one never run backwards. On
 * TRACE_REQUEST the caller fills in the rest of *@event.
 */
static inline enum trace_step trace_events_add(struct trace_reader *reader,
					       struct trace_events *events,
					       u8 action, u64 time_ns, u32 cpu,
					       struct trace_event **event)
{
	struct event_lane *lane;

	if (action == events->ignored)
		return TRACE_SKIP;
	/* Mostly it is later than all others, and there is room in the lane. */
	if (unlikely(time_ns < events->newest_ns || cpu >= TRACE_MAX_CPUS ||
		     !events->nr_lanes))
		goto slowly;
	lane = &events->lanes[events->lane];
	if (unlikely(lane_is_empty(lane) || lane->tail == TRACE_BLOCK_EVENTS))
		goto slowly;
	events->seen |= 1U << action;
	events->cpu_ns[cpu] = time_ns;
	*event = &lane->last->events[lane->tail++];
	(*event)->action = action;
	(*event)->time_ns = time_ns;
	lane->tail_ns = time_ns;
	events->newest_ns = time_ns;
	events->nr_events++;
	return TRACE_REQUEST;
slowly:
	return trace_events_add_slowly(reader, events, action, time_ns, cpu,
				       event);
}

/* The next request that is ready; @flush: no more events will come. */
enum trace_step trace_events_next(struct trace_reader *reader,
				  struct trace_events *events, bool flush,
				  struct trace_request *rq);
void trace_events_close(struct trace_events *events);

/*
 * A reader's next(): take records, one at a time, until a request is ready.
 * What is given back must not depend on how the bytes come in pieces.
 */
static inline enum trace_step trace_events_drive(
	struct trace_reader *reader, struct trace_events *events,
	enum trace_step (*take)(struct trace_reader *reader),
	struct trace_request *rq)
{
	enum trace_step step;

	for (;;) {
		if (trace_events_due(events) ||
		    events->first != events->behind) {
			step = trace_events_next(reader, events, false, rq);
			if (step != TRACE_MORE)
				return step;
		}
		do {
			step = take(reader);
		} while (step == TRACE_SKIP);
		if (step == TRACE_MORE && reader->last)
			return trace_events_next(reader, events, true, rq);
		if (step != TRACE_REQUEST)
			return step;
	}
}

#endif
