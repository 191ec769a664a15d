// SPDX-License-Identifier: GPL-2.0-only
/* A table of stripes by their place, and a list of them by their last use. */
#include "stripes.h"

#include <stdlib.h>

#define NONE U32_MAX

struct stripe {
	u64 page; /* its place on each member, in pages */
	u32 members; /* whose page is here, as bits */
	u32 next; /* in its bucket */
	u32 older, newer;
};

struct sim_stripes {
	u32 size, used;
	u32 buckets; /* a power of two */
	u32 *bucket;
	u32 oldest, newest;
	struct stripe *stripe;
};

struct sim_stripes *sim_stripes_new(u32 size)
{
	struct sim_stripes *stripes = sim_alloc(sizeof(*stripes));
	u32 i;

	stripes->size = size;
	stripes->oldest = stripes->newest = NONE;
	for (stripes->buckets = 1; stripes->buckets < size;)
		stripes->buckets *= 2;
	stripes->bucket = sim_alloc(stripes->buckets * sizeof(u32));
	for (i = 0; i < stripes->buckets; i++)
		stripes->bucket[i] = NONE;
	stripes->stripe = sim_alloc(size * sizeof(*stripes->stripe));
	return stripes;
}

void sim_stripes_free(struct sim_stripes *stripes)
{
	if (!stripes)
		return;
	free(stripes->bucket);
	free(stripes->stripe);
	free(stripes);
}

static u32 *bucket_of(const struct sim_stripes *stripes, u64 page)
{
	return &stripes->bucket[page & (stripes->buckets - 1)];
}

static u32 find(const struct sim_stripes *stripes, u64 page)
{
	u32 at = *bucket_of(stripes, page);

	while (at != NONE && stripes->stripe[at].page != page)
		at = stripes->stripe[at].next;
	return at;
}

u32 sim_stripes_have(const struct sim_stripes *stripes, u64 sector)
{
	u32 at = find(stripes, sector / PAGE_SECTORS);

	return at == NONE ? 0 : stripes->stripe[at].members;
}

static void leave(struct sim_stripes *stripes, u32 at)
{
	struct stripe *stripe = &stripes->stripe[at];

	*(stripe->older == NONE ?
		  &stripes->oldest :
		  &stripes->stripe[stripe->older].newer) = stripe->newer;
	*(stripe->newer == NONE ?
		  &stripes->newest :
		  &stripes->stripe[stripe->newer].older) = stripe->older;
}

static void join(struct sim_stripes *stripes, u32 at)
{
	struct stripe *stripe = &stripes->stripe[at];

	stripe->older = stripes->newest;
	stripe->newer = NONE;
	*(stripes->newest == NONE ?
		  &stripes->oldest :
		  &stripes->stripe[stripes->newest].newer) = at;
	stripes->newest = at;
}

/* A stripe for @page: one that was never used, or the one used longest ago. */
static u32 take(struct sim_stripes *stripes, u64 page)
{
	u32 at = stripes->used, *link;

	if (at < stripes->size) {
		stripes->used++;
	} else {
		at = stripes->oldest;
		leave(stripes, at);
		link = bucket_of(stripes, stripes->stripe[at].page);
		while (*link != at)
			link = &stripes->stripe[*link].next;
		*link = stripes->stripe[at].next;
	}
	link = bucket_of(stripes, page);
	stripes->stripe[at] = (struct stripe){ .page = page, .next = *link };
	*link = at;
	return at;
}

void sim_stripes_keep(struct sim_stripes *stripes, u64 sector, u64 length,
		      u32 members)
{
	u64 page = sector / PAGE_SECTORS,
	    end = (sector + length) / PAGE_SECTORS;

	for (; page < end; page++) {
		u32 at = find(stripes, page);

		if (at != NONE)
			leave(stripes, at);
		else
			at = take(stripes, page);
		join(stripes, at);
		stripes->stripe[at].members |= members;
	}
}
