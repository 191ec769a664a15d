/* SPDX-License-Identifier: GPL-2.0-only */
/* The clock of a simulation, its timers, and why it has failed. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <linux/types.h>

typedef void (*sim_timer_fn)(void *context);

struct sim_event {
	u64 at_ns;
	u64 order; /* of creation: events of one time keep it */
	sim_timer_fn fn;
	void *context;
};

struct sim_clock {
	u64 now_ns;
	u64 next_order;
	struct sim_event *heap;
	u32 nr_events, heap_size;
	bool failed;
	char why[512];
};

/* Have @fn called at @at_ns. */
void sim_timer(struct sim_clock *clock, u64 at_ns, sim_timer_fn fn,
	       void *context);
/* When the next one is due; U64_MAX: there is none. */
u64 sim_timer_next_ns(const struct sim_clock *clock);
/* Call those that are due, and those that become so meanwhile. */
void sim_timers_run(struct sim_clock *clock);
/* The simulation ends, with this sentence; returns -1. */
int sim_fail(struct sim_clock *clock, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
