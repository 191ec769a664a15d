/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Several traces as one: the requests of all in the order of their arrival,
 * each trace from time 0, with its own place on the disk and its own owners.
 */
#ifndef SIM_SOURCES_H
#define SIM_SOURCES_H

#include "result.h"
#include "trace.h"

struct sim_sources;

struct sim_sources *sim_sources_new(void);
void sim_sources_free(struct sim_sources *sources);
int sim_sources_add(struct sim_sources *sources, struct trace_reader *reader,
		    u64 first_sector);
/*
 * SIM_MORE: the next request of all is in @rq; SIM_INPUT: feed the trace that
 * sim_sources_at() names; SIM_FAILED: that one is bad; SIM_DONE: all are over.
 */
enum sim_state sim_sources_next(struct sim_sources *sources,
				struct trace_request *rq);
u32 sim_sources_at(const struct sim_sources *sources);
const struct trace_reader *sim_sources_reader(
	const struct sim_sources *sources);
/* Of several traces the number of the one that @owner is of. */
u32 sim_sources_group(const struct sim_sources *sources, u32 owner);

#endif
