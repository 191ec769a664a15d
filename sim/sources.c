// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several traces as one: the requests of all in the order of their arrival,
 * each trace from time 0, with its own place on the disk and its own owners.
 */
#include "internal.h"

#include <stdlib.h>

struct source {
	struct trace_reader *reader;
	u64 first_sector;
	bool have; /* next is set */
	bool ended;
	struct trace_request next;
};

struct sim_sources {
	struct source *source;
	u32 nr;
	u32 at; /* the one that was read last */
};

struct sim_sources *sim_sources_new(void)
{
	return sim_alloc(sizeof(struct sim_sources));
}

void sim_sources_free(struct sim_sources *sources)
{
	if (sources)
		free(sources->source);
	free(sources);
}

int sim_sources_add(struct sim_sources *sources, struct trace_reader *reader,
		    u64 first_sector)
{
	struct source *grown;

	if (sources->nr == SIM_MAX_TRACES)
		return -1;
	grown = realloc(sources->source, (sources->nr + 1) * sizeof(*grown));
	if (!grown)
		return -1;
	grown[sources->nr++] = (struct source){ .reader = reader,
						.first_sector = first_sector };
	sources->source = grown;
	return 0;
}

/* As trace_next(), of the trace that sim_sources_at() then names. */
static int fill(struct sim_sources *sources, struct source *source)
{
	struct trace_request *rq = &source->next;
	int got;

	sources->at = (u32)(source - sources->source);
	got = trace_next(source->reader, rq);
	if (got <= 0)
		return got;
	rq->sector += source->first_sector;
	if (sources->nr > 1)
		rq->owner = (rq->owner & ((1U << SIM_OWNER_BITS) - 1)) |
			    (u64)sources->at << SIM_OWNER_BITS;
	source->have = true;
	return 1;
}

enum sim_state sim_sources_next(struct sim_sources *sources,
				struct trace_request *rq)
{
	struct source *source, *first = NULL;
	u32 i;

	for (i = 0; i < sources->nr; i++) {
		source = &sources->source[i];
		if (!source->have && !source->ended) {
			int got = fill(sources, source);

			if (got < 0)
				return SIM_FAILED;
			if (!got && !trace_at_end(source->reader))
				return SIM_INPUT;
			source->ended = !got;
		}
		if (!source->have)
			continue;
		if (!first || source->next.arrival_ns < first->next.arrival_ns)
			first = source;
	}
	if (!first)
		return SIM_DONE;
	*rq = first->next;
	first->have = false;
	sources->at = (u32)(first - sources->source);
	return SIM_MORE;
}

u32 sim_sources_at(const struct sim_sources *sources)
{
	return sources->at;
}

const struct trace_reader *sim_sources_reader(const struct sim_sources *sources)
{
	return sources->source[sources->at].reader;
}

u32 sim_sources_group(const struct sim_sources *sources, u32 owner)
{
	return sources->nr > 1 ? owner >> SIM_OWNER_BITS : owner;
}
