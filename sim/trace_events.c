// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sorting the events of blktrace, and matching completions with requests.
 *
 * Sorting. blktrace -o - writes what it finds in the buffer of one processor,
 * then that of the next. The events of one processor are in order; those of
 * all are taken apart into lanes, an event joining a lane whose last event is
 * not younger than it, and the earliest head of all lanes is the next to go.
 * A trace that is in order has one lane.
 *
 * Matching. A completion covers a range of sectors: several requests where
 * they were merged, a part of one where it was split. The requests that
 * begin where it begins, or where the one before ends, are found by their
 * first sector, oldest first; what is left is searched among all.
 */
#include <stdlib.h>

#include "trace_events.h"

#define MAX_LANES 1024

/* Requests waiting for their completion. A power of two. */
#define MAX_OPEN 16384
#define HASH_SHIFT 52
#define HASH_SIZE (1U << (64 - HASH_SHIFT))
#define NONE (~0U)
#define MIN_SCAN 64

struct open_request {
	struct trace_request rq;
	u32 left; /* sectors not completed */
	u32 older, younger; /* slots with the same hash value */
};

struct open_bucket {
	u32 oldest, youngest;
};

/* Sorting */

static bool add_block(struct trace_events *events, struct event_lane *lane)
{
	struct event_block *block = events->free_blocks;

	if (block)
		events->free_blocks = block->next;
	else
		block = malloc(sizeof(*block));
	if (!block)
		return false;
	block->next = NULL;
	if (lane->last) {
		lane->last->next = block;
	} else {
		lane->first = block;
		lane->head = 0;
	}
	lane->last = block;
	lane->tail = 0;
	return true;
}

static void find_earliest(struct trace_events *events)
{
	struct event_lane *lane = events->lanes, *end = lane + events->nr_lanes;
	u64 time_ns;

	for (; lane < end; lane++) {
		if (lane_is_empty(lane))
			continue;
		time_ns = lane_head(lane)->time_ns;
		if (time_ns < events->earliest_ns) {
			events->earliest_ns = time_ns;
			events->earliest = lane - events->lanes;
		}
	}
}

/* Let the earliest event go. */
static void drop_earliest(struct trace_events *events)
{
	struct event_lane *lane = &events->lanes[events->earliest];
	struct event_block *block = lane->first;

	events->nr_events--;
	lane->head++;
	if (lane->head ==
	    (block == lane->last ? lane->tail : TRACE_BLOCK_EVENTS)) {
		lane->first = block->next;
		lane->head = 0;
		if (!lane->first)
			lane->last = NULL;
		block->next = events->free_blocks;
		events->free_blocks = block;
	}
	events->earliest_ns = ~0ULL;
	if (events->nr_lanes > 1)
		find_earliest(events);
	else if (lane->first)
		events->earliest_ns = lane_head(lane)->time_ns;
}

static bool fits(const struct event_lane *lane, u64 time_ns)
{
	return lane_is_empty(lane) || lane->tail_ns <= time_ns;
}

/* A lane that @time_ns can join: the one used last, or that of least gap. */
static struct event_lane *find_lane(struct trace_events *events, u64 time_ns)
{
	struct event_lane *lanes = events->lanes, *best = NULL;
	u32 i, size;

	if (events->nr_lanes && fits(&lanes[events->lane], time_ns))
		return &lanes[events->lane];
	for (i = 0; i < events->nr_lanes; i++) {
		if (!fits(&lanes[i], time_ns))
			continue;
		if (!best || lane_is_empty(best) ||
		    (!lane_is_empty(&lanes[i]) &&
		     lanes[i].tail_ns > best->tail_ns))
			best = &lanes[i];
	}
	if (!best) {
		if (events->nr_lanes == MAX_LANES)
			return NULL;
		if (events->nr_lanes == events->max_lanes) {
			size = events->max_lanes ? 2 * events->max_lanes : 8;
			lanes = realloc(lanes, size * sizeof(*lanes));
			if (!lanes)
				return NULL;
			events->lanes = lanes;
			events->max_lanes = size;
		}
		best = &lanes[events->nr_lanes++];
		memset(best, 0, sizeof(*best));
	}
	events->lane = best - events->lanes;
	return best;
}

/* Whether an event of this processor and time is in order. */
static enum trace_step check_order(struct trace_reader *reader,
				   struct trace_events *events, u64 time_ns,
				   u32 cpu)
{
	u64 after_ns;
	bool stop;

	if (cpu >= TRACE_MAX_CPUS) {
		stop = trace_fail(reader,
				  "%s %llu: no processor has the number %u",
				  trace_unit(reader),
				  (unsigned long long)reader->line, cpu);
		return stop ? TRACE_BAD : TRACE_SKIP;
	}
	after_ns = events->cpu_ns[cpu];
	if (events->released_ns > after_ns)
		after_ns = events->released_ns;
	if (time_ns < after_ns) {
		stop = trace_fail_backwards(reader, after_ns, time_ns);
		return stop ? TRACE_BAD : TRACE_SKIP;
	}
	events->cpu_ns[cpu] = time_ns;
	return TRACE_REQUEST;
}

enum trace_step trace_events_add_slowly(struct trace_reader *reader,
					struct trace_events *events, u8 action,
					u64 time_ns, u32 cpu,
					struct trace_event **event)
{
	struct event_lane *lane;
	enum trace_step step;

	if (!events->cpu_ns) {
		events->cpu_ns = calloc(TRACE_MAX_CPUS, sizeof(u64));
		if (!events->cpu_ns)
			return trace_fail_always(reader, "out of memory");
	}
	step = check_order(reader, events, time_ns, cpu);
	if (step != TRACE_REQUEST)
		return step;
	events->seen |= 1U << action;
	lane = find_lane(events, time_ns);
	if (!lane || ((!lane->last || lane->tail == TRACE_BLOCK_EVENTS) &&
		      !add_block(events, lane)))
		return trace_fail_always(
			reader, "out of memory for sorting events by time");
	*event = &lane->last->events[lane->tail++];
	(*event)->action = action;
	(*event)->time_ns = time_ns;
	lane->tail_ns = time_ns;
	if (time_ns > events->newest_ns)
		events->newest_ns = time_ns;
	if (!events->nr_events++ || time_ns < events->earliest_ns) {
		events->earliest_ns = time_ns;
		events->earliest = lane - events->lanes;
	}
	return TRACE_REQUEST;
}

/* Matching */

static inline u32 hash_sector(u64 sector)
{
	return sector * 0x9e3779b97f4a7c15ULL >> HASH_SHIFT;
}

static inline struct open_request *open_at(struct trace_events *events,
					   u64 place)
{
	return &events->open[events->order[place & (MAX_OPEN - 1)]];
}

/* Slots are used again at once, so that those in use stay in the cache. */
static bool open_alloc(struct trace_events *events)
{
	u32 i;

	events->open = malloc(MAX_OPEN * sizeof(*events->open));
	events->order = malloc(MAX_OPEN * sizeof(*events->order));
	events->free = malloc(MAX_OPEN * sizeof(*events->free));
	events->buckets = malloc(HASH_SIZE * sizeof(*events->buckets));
	if (!events->open || !events->order || !events->free ||
	    !events->buckets)
		return false;
	memset(events->buckets, 0xff, HASH_SIZE * sizeof(*events->buckets));
	for (i = 0; i < MAX_OPEN; i++)
		events->free[i] = MAX_OPEN - 1 - i;
	events->nr_free = MAX_OPEN;
	events->scan_limit = MAX_OPEN;
	return true;
}

static void hash_add(struct trace_events *events, u32 slot)
{
	struct open_request *request = &events->open[slot];
	struct open_bucket *bucket =
		&events->buckets[hash_sector(request->rq.sector)];

	request->older = bucket->youngest;
	request->younger = NONE;
	if (request->older == NONE)
		bucket->oldest = slot;
	else
		events->open[request->older].younger = slot;
	bucket->youngest = slot;
}

static void hash_remove(struct trace_events *events,
			struct open_request *request)
{
	struct open_bucket *bucket =
		&events->buckets[hash_sector(request->rq.sector)];

	if (request->older == NONE)
		bucket->oldest = request->younger;
	else
		events->open[request->older].younger = request->younger;
	if (request->younger == NONE)
		bucket->youngest = request->older;
	else
		events->open[request->younger].older = request->older;
}

/* @nr sectors more of a request are done. */
static void complete(struct trace_events *events, struct open_request *request,
		     u32 nr, u64 time_ns)
{
	if (nr < request->left) {
		request->left -= nr;
		return;
	}
	request->left = 0;
	request->rq.complete_ns = time_ns;
	hash_remove(events, request);
}

static struct open_request *find_at(struct trace_events *events, u64 sector,
				    u8 direction)
{
	u32 slot = events->buckets[hash_sector(sector)].oldest;
	struct open_request *request;

	while (slot != NONE) {
		request = &events->open[slot];
		if (request->rq.sector == sector &&
		    request->rq.direction == direction &&
		    request->left == request->rq.nr_sectors)
			return request;
		slot = request->younger;
	}
	return NULL;
}

static u64 overlap(const struct open_request *request, u64 sector, u64 end)
{
	u64 from = request->rq.sector;
	u64 to = from + request->rq.nr_sectors;

	if (from < sector)
		from = sector;
	if (to > end)
		to = end;
	return to > from ? to - from : 0;
}

/*
 * The rest of a completion, where no request begins: parts of split requests.
 * The search is bounded, and shorter after each time it found nothing.
 */
static void match_slowly(struct trace_events *events,
			 const struct trace_event *event, u64 sector,
			 u64 time_ns)
{
	u64 end = event->sector + event->nr_sectors, nr, left = end - sector;
	u64 place = events->first, limit = events->scan_limit;
	struct open_request *request;
	bool found = false;

	for (; place < events->behind && limit && left; place++, limit--) {
		request = open_at(events, place);
		if (!request->left || request->rq.direction != event->direction)
			continue;
		nr = overlap(request, sector, end);
		if (nr > left)
			nr = left;
		if (nr > request->left)
			nr = request->left;
		if (!nr)
			continue;
		found = true;
		left -= nr;
		complete(events, request, nr, time_ns);
	}
	if (found)
		events->scan_limit = MAX_OPEN;
	else if (events->scan_limit > MIN_SCAN)
		events->scan_limit /= 2;
}

static void match(struct trace_reader *reader, struct trace_events *events,
		  const struct trace_event *event)
{
	u64 sector = event->sector, end = sector + event->nr_sectors, nr;
	u64 time_ns = event->time_ns - reader->base_ns;
	struct open_request *request;

	while (sector < end) {
		request = find_at(events, sector, event->direction);
		if (!request)
			break;
		nr = overlap(request, sector, end);
		complete(events, request, nr, time_ns);
		sector += nr;
	}
	if (sector < end)
		match_slowly(events, event, sector, time_ns);
}

static void to_request(struct trace_reader *reader,
		       const struct trace_event *event,
		       struct trace_request *rq)
{
	if (!reader->have_time) {
		reader->have_time = true;
		reader->base_ns = event->time_ns;
	}
	*rq = (struct trace_request){
		.arrival_ns = event->time_ns - reader->base_ns,
		.complete_ns = TRACE_NO_TIME,
		.sector = event->sector,
		.nr_sectors = event->nr_sectors,
		.direction = event->direction,
		.flags = event->flags,
		.owner = event->owner,
		.device = reader->device,
		.line = event->line,
	};
}

static void open_add(struct trace_reader *reader, struct trace_events *events,
		     const struct trace_event *event)
{
	u32 slot = events->free[--events->nr_free];

	to_request(reader, event, &events->open[slot].rq);
	events->open[slot].left = event->nr_sectors;
	events->order[events->behind++ & (MAX_OPEN - 1)] = slot;
	hash_add(events, slot);
}

/* Give back the oldest one. */
static void open_take(struct trace_reader *reader, struct trace_events *events,
		      struct trace_request *rq)
{
	struct open_request *request = open_at(events, events->first);

	if (request->left)
		hash_remove(events, request);
	events->first++;
	events->free[events->nr_free++] = request - events->open;
	*rq = request->rq;
	reader->requests++;
}

static bool open_ready(struct trace_events *events, bool flush)
{
	u64 nr = events->behind - events->first;

	if (!nr)
		return false;
	return nr == MAX_OPEN || !open_at(events, events->first)->left ||
	       (flush && !events->nr_events);
}

/*
 * A trace with Q events has one for each request; without any the arrival is
 * what comes first, the D. The first window of events decides.
 */
static void decide(struct trace_events *events)
{
	events->arrival = EVENT_ISSUE;
	if (events->seen & 1U << EVENT_QUEUE) {
		events->arrival = EVENT_QUEUE;
		events->ignored = EVENT_ISSUE;
	}
	events->decided = true;
}

/*
 * What becomes of the earliest event: TRACE_REQUEST if it is one that need
 * not wait, as no completions are recorded.
 */
static enum trace_step take_event(struct trace_reader *reader,
				  struct trace_events *events,
				  const struct trace_event *event,
				  struct trace_request *rq)
{
	if (!events->decided)
		decide(events);
	if (!events->open && (events->seen & 1U << EVENT_COMPLETE) &&
	    !open_alloc(events))
		return trace_fail_always(reader, "out of memory");
	if (event->action == EVENT_COMPLETE) {
		match(reader, events, event);
		return TRACE_SKIP;
	}
	if (event->action != events->arrival)
		return TRACE_SKIP;
	if (events->seen & 1U << EVENT_COMPLETE) {
		open_add(reader, events, event);
		return TRACE_SKIP;
	}
	to_request(reader, event, rq);
	reader->requests++;
	return TRACE_REQUEST;
}

static enum trace_step at_end(struct trace_reader *reader,
			      const struct trace_events *events)
{
	if (events->seen == 1U << EVENT_COMPLETE)
		return trace_fail_always(
			reader,
			"the trace holds completions (C) alone; record requests queued (Q) or issued (D), too");
	return TRACE_MORE;
}

enum trace_step trace_events_next(struct trace_reader *reader,
				  struct trace_events *events, bool flush,
				  struct trace_request *rq)
{
	const struct trace_event *event;
	enum trace_step step;

	for (;;) {
		if (open_ready(events, flush)) {
			open_take(reader, events, rq);
			return TRACE_REQUEST;
		}
		if (flush && !events->nr_events)
			return at_end(reader, events);
		if (!flush && !trace_events_due(events))
			return TRACE_MORE;
		event = lane_head(&events->lanes[events->earliest]);
		events->released_ns = event->time_ns;
		step = take_event(reader, events, event, rq);
		drop_earliest(events);
		if (step != TRACE_SKIP)
			return step;
	}
}

void trace_events_close(struct trace_events *events)
{
	struct event_block *block;
	u32 i;

	for (i = 0; i < events->nr_lanes; i++) {
		while ((block = events->lanes[i].first)) {
			events->lanes[i].first = block->next;
			free(block);
		}
	}
	while ((block = events->free_blocks)) {
		events->free_blocks = block->next;
		free(block);
	}
	free(events->lanes);
	free(events->cpu_ns);
	free(events->open);
	free(events->order);
	free(events->free);
	free(events->buckets);
}
