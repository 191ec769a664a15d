// SPDX-License-Identifier: GPL-2.0-only
/* Timers: a binary heap by time, then by order of creation. */
#include "clock.h"

#include "common.h"

#include <stdarg.h>

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void sim_timer(struct sim_clock *clock, u64 at_ns, sim_timer_fn fn,
	       void *context)
{
	struct sim_event event = { at_ns, clock->next_order++, fn, context };
	struct sim_event *heap;
	u32 at = clock->nr_events;

	heap = sim_room(clock->heap, at, &clock->heap_size, sizeof(*heap));
	clock->heap = heap;
	clock->nr_events++;
	while (at && earlier(&event, &heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = event;
}

u64 sim_timer_next_ns(const struct sim_clock *clock)
{
	return clock->nr_events ? clock->heap[0].at_ns : U64_MAX;
}

static struct sim_event pop(struct sim_clock *clock)
{
	struct sim_event *heap = clock->heap, first = heap[0];
	struct sim_event last = heap[--clock->nr_events];
	u32 at = 0, child;

	while ((child = 2 * at + 1) < clock->nr_events) {
		if (child + 1 < clock->nr_events &&
		    earlier(&heap[child + 1], &heap[child]))
			child++;
		if (!earlier(&heap[child], &last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return first;
}

void sim_timers_run(struct sim_clock *clock)
{
	while (sim_timer_next_ns(clock) <= clock->now_ns) {
		struct sim_event event = pop(clock);

		event.fn(event.context);
	}
}

int sim_fail(struct sim_clock *clock, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(clock->why, sizeof(clock->why), format, arguments);
	va_end(arguments);
	clock->failed = true;
	return -1;
}
