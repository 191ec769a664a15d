// SPDX-License-Identifier: GPL-2.0-only
/* A stream goes on at another place. See elsewhere.h. */
#include "elsewhere.h"

/* Is @s where it went, as far as is known? Merges may have moved its end on. */
static bool elsewhere_is_there(const struct ss_policy *policy,
			       const struct ss_stream *s)
{
	struct ss_parties *all = policy->state;

	return ss_streams_end(&all->streams, s) - all->elsewhere.to <=
	       ss_streams_place_sectors(&policy->sched->curve);
}

struct ss_stream *ss_elsewhere_find(const struct ss_policy *policy,
				    const struct ss_request *rq)
{
	struct ss_parties *all = policy->state;
	struct ss_elsewhere *elsewhere = &all->elsewhere;
	const struct ss_party *turn = all->turn.party;
	struct ss_stream *s = elsewhere->stream;

	if (s && elsewhere->went && rq->sector == elsewhere->from &&
	    elsewhere_is_there(policy, s)) {
		/* Its reader has been here all the time. */
		elsewhere->stream = NULL;
		s->roams = false;
		return s;
	}
	s = turn ? ss_party_stream(all, turn) : NULL;
	if (!s || turn->nr_pending || s == elsewhere->stream ||
	    s->reader.owner != (u32)rq->owner)
		return NULL;
	*elsewhere = (struct ss_elsewhere){
		.stream = s,
		.from = ss_streams_end(&all->streams, s),
		.to = ss_request_end(rq),
		.went = s->roams,
	};
	return s->roams ? s : NULL;
}

void ss_elsewhere_goes_on(const struct ss_policy *policy, struct ss_stream *s,
			  const struct ss_request *rq)
{
	struct ss_parties *all = policy->state;
	struct ss_elsewhere *elsewhere = &all->elsewhere;

	s->reader.owner = (u32)rq->owner;
	if (s == elsewhere->stream && !elsewhere->went) {
		elsewhere->stream = NULL;
	} else if (elsewhere->stream && elsewhere_is_there(policy, s)) {
		elsewhere->stream = NULL;
		s->roams = true;
	}
}
