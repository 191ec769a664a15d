// SPDX-License-Identifier: GPL-2.0-only
/* See sources.h. */
#include "sources.h"

#include "common.h"
#include "config.h"

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

static enum sim_state take(struct sim_sources *sources, u32 at,
			   struct trace_request *rq)
{
	struct source *source = &sources->source[at];
	int got;

	sources->at = at;
	got = trace_next(source->reader, rq);
	if (got < 0)
		return SIM_FAILED;
	if (!got)
		return trace_at_end(source->reader) ? SIM_DONE : SIM_INPUT;
	rq->sector += source->first_sector;
	if (sources->nr > 1)
		rq->owner = (rq->owner & ((1U << SIM_OWNER_BITS) - 1)) |
			    (u64)at << SIM_OWNER_BITS;
	return SIM_MORE;
}

enum sim_state sim_sources_next(struct sim_sources *sources,
				struct trace_request *rq)
{
	struct source *source, *first = NULL;
	enum sim_state state;
	u32 i;

	if (sources->nr == 1) /* nothing to compare with */
		return take(sources, 0, rq);
	for (i = 0; i < sources->nr; i++) {
		source = &sources->source[i];
		if (!source->have && !source->ended) {
			state = take(sources, i, &source->next);
			if (state == SIM_FAILED || state == SIM_INPUT)
				return state;
			source->have = state == SIM_MORE;
			source->ended = !source->have;
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
