// SPDX-License-Identifier: GPL-2.0-only
/* Who sends what is in no stream. See areas.h. */
#include "areas.h"
#include "../curve.h"

#include <linux/kernel.h>
#include <linux/string.h>

/* An area has so many ends. Half: by chance; double: seldom served are lost. */
#define AREA_ENDS 8

/*
 * So many times fewer links than by chance pass over a border. Half: borders in
 * an area; double: one wrong link hides a border.
 */
#define AREA_CHANCE 32

enum {
	/* This bit of an end: it is the higher of its link's two. */
	END_HIGH = 1,
	/* The others are its sector, up to 2 PiB. */
	END_SHIFT = 10,
};

/* Of no host: those count, or have an address. */
static u64 areas_owner(u64 number)
{
	return 1ULL << 62 | number;
}

static u64 areas_sector(const struct ss_areas *areas, u32 index)
{
	return (u64)(areas->end[index] & ~END_HIGH) << END_SHIFT;
}

/* How many ends are below @end. */
static u32 areas_below(const struct ss_areas *areas, u32 end)
{
	u32 low = 0, high = areas->nr_ends, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (areas->end[middle] < end)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* One end is @end and no longer *@old. */
static void areas_replace(struct ss_areas *areas, u32 *old, u32 end)
{
	u32 from = areas_below(areas, *old), to = areas_below(areas, end);

	if (from < to)
		memmove(&areas->end[from], &areas->end[from + 1],
			(--to - from) * sizeof(end));
	else
		memmove(&areas->end[to + 1], &areas->end[to],
			(from - to) * sizeof(end));
	areas->end[to] = end;
	*old = end;
}

/* The owner that an area around @sector had, or a new one. */
static u64 areas_number(struct ss_areas *areas, u64 sector)
{
	struct ss_area *area = areas->area;
	u64 owner = 0;

	for (; !owner && area < &areas->area[areas->nr]; area++)
		if (sector >= area->begin_sector && sector < area->end_sector) {
			owner = area->owner;
			area->owner = 0;
		}
	return owner ? owner : areas_owner(++areas->last_owner);
}

/* Which end is the last of the area whose first is @first. */
static u32 areas_last(const struct ss_areas *areas, u32 first)
{
	u32 passing = 0, least = U32_MAX, nr_ends = areas->nr_ends, nr;
	u32 last = nr_ends - 1;

	for (nr = first + 1; nr <= nr_ends - AREA_ENDS; nr++) {
		passing += areas->end[nr - 1] & END_HIGH ? -1 : 1;
		if (nr - first < AREA_ENDS)
			continue;
		if (passing < least &&
		    passing * AREA_CHANCE * nr_ends <= nr * (nr_ends - nr)) {
			least = passing;
			last = nr - 1;
		} else if (least < passing && passing - least >= AREA_ENDS) {
			break;
		}
	}
	return last;
}

static void areas_find(struct ss_areas *areas)
{
	struct ss_area found[NR_AREAS];
	u32 first = 0, last, nr = 0;
	u64 begin, size, margin;

	for (; first < areas->nr_ends && nr < NR_AREAS; first = last + 1) {
		last = areas_last(areas, first);
		begin = areas_sector(areas, first);
		size = areas_sector(areas, last) - begin;
		margin = size / AREA_ENDS; /* what has not been seen yet */
		found[nr++] = (struct ss_area){
			.begin_sector = begin - min_t(u64, begin, margin),
			.end_sector = begin + size + margin,
			.owner = areas_number(areas, begin + size / 2),
		};
	}
	areas->nr = first < areas->nr_ends || nr < 2 ? 0 : nr;
	memcpy(areas->area, found, areas->nr * sizeof(*found));
}

/* What comes at @sector is the next of who was just served. */
static void areas_link(struct ss_areas *areas, u64 sector)
{
	u32 *link = areas->link[areas->nr_links % NR_LINKS];
	u32 one = (u32)(areas->served_sector >> END_SHIFT);
	u32 other = (u32)(sector >> END_SHIFT);

	if (areas->nr_ends < 2 * NR_LINKS) {
		link[0] = U32_MAX;
		link[1] = U32_MAX;
		areas->end[areas->nr_ends++] = U32_MAX;
		areas->end[areas->nr_ends++] = U32_MAX;
	}
	areas_replace(areas, &link[0], min_t(u32, one, other) & ~END_HIGH);
	areas_replace(areas, &link[1], max_t(u32, one, other) | END_HIGH);
	if (++areas->nr_links >= NR_LINKS / 2 &&
	    areas->nr_links % (NR_LINKS / 8) == 0)
		areas_find(areas);
}

u64 ss_areas_owner(struct ss_areas *areas, const struct ss_request *rq,
		   u64 place_sectors)
{
	const struct ss_area *area = areas->area;

	/* Who is near goes on in a stream. */
	if (areas->open &&
	    ss_distance(areas->served_sector, rq->sector) > place_sectors)
		areas_link(areas, rq->sector);
	areas->open = false;
	for (; area < &areas->area[areas->nr]; area++)
		if (rq->sector >= area->begin_sector &&
		    rq->sector < area->end_sector)
			return area->owner;
	/* All else is of few, or of some that have just begun. */
	return areas->nr ? areas_owner(0) : SS_OWNER_NONE;
}
