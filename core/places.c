// SPDX-License-Identifier: GPL-2.0-only
/* Places on the disk, found by where they are. See places.h. */
#include "places.h"

/* Stretches of this size to begin with: 2^20 sectors are 512 MiB. */
#define FIRST_SHIFT 20
#define MOST_SHIFT 62

static u16 *at_chain(struct ss_places *places, u64 sector)
{
	/* Fibonacci hashing: the golden ratio's bits spread regular steps. */
	return &places->at[(sector * 0x9e3779b97f4a7c15ULL) >>
			   (64 - SS_PLACES_AT_BITS)];
}

static u16 *near_chain(struct ss_places *places, u64 sector)
{
	return &places->near[(sector >> places->stretch_shift) %
			     SS_PLACES_NEAR];
}

void ss_places_init(struct ss_places *places)
{
	u32 i;

	for (i = 0; i < SS_PLACES; i++)
		places->place[i] = (struct ss_place){ .sector = SS_NOWHERE };
	for (i = 0; i < ARRAY_SIZE(places->at); i++)
		places->at[i] = SS_NO_PLACE;
	for (i = 0; i < SS_PLACES_NEAR; i++)
		places->near[i] = SS_NO_PLACE;
	places->stretch_shift = FIRST_SHIFT;
}

static void leave_at(struct ss_places *places, u16 i)
{
	u16 *link = at_chain(places, places->place[i].sector);

	while (*link != i)
		link = &places->place[*link].next_at;
	*link = places->place[i].next_at;
}

static void leave_near(struct ss_places *places, u16 i)
{
	u16 *link = near_chain(places, places->place[i].sector);

	while (*link != i)
		link = &places->place[*link].next_near;
	*link = places->place[i].next_near;
}

static void enter_near(struct ss_places *places, u16 i)
{
	u16 *chain = near_chain(places, places->place[i].sector);

	places->place[i].next_near = *chain;
	*chain = i;
}

void ss_places_move(struct ss_places *places, u16 i, u64 sector)
{
	struct ss_place *place = &places->place[i];
	bool was = place->sector != SS_NOWHERE, is = sector != SS_NOWHERE;
	bool moves = !was || !is ||
		     (place->sector ^ sector) >> places->stretch_shift;
	u16 *chain;

	if (was)
		leave_at(places, i);
	if (was && moves)
		leave_near(places, i);
	place->sector = sector;
	if (is && moves)
		enter_near(places, i);
	if (!is)
		return;
	chain = at_chain(places, sector);
	place->next_at = *chain;
	*chain = i;
}

u16 ss_places_at(const struct ss_places *places, u64 sector, u16 i)
{
	i = i == SS_NO_PLACE ? *at_chain((struct ss_places *)places, sector) :
			       places->place[i].next_at;
	while (i != SS_NO_PLACE && places->place[i].sector != sector)
		i = places->place[i].next_at;
	return i;
}

/* What counts as near has changed much. */
static void stretches_are(struct ss_places *places, u32 shift)
{
	u16 i;

	for (i = 0; i < SS_PLACES_NEAR; i++)
		places->near[i] = SS_NO_PLACE;
	places->stretch_shift = shift;
	for (i = 0; i < SS_PLACES; i++)
		if (places->place[i].sector != SS_NOWHERE)
			enter_near(places, i);
}

void ss_places_begin(struct ss_places *places, u64 sector, u64 reach,
		     struct ss_places_walk *walk)
{
	u32 shift = min_t(u32, fls64(2 * min_t(u64, reach, SS_NOWHERE / 2)),
			  MOST_SHIFT);

	/* Not at each small change of a curve that is being learned. */
	if (shift > places->stretch_shift || shift + 2 < places->stretch_shift)
		stretches_are(places, shift);
	walk->next_stretch = (sector - min_t(u64, reach, sector)) >>
			     places->stretch_shift;
	walk->last_stretch = (sector + min_t(u64, reach, SS_NOWHERE)) >>
			     places->stretch_shift;
	walk->next = SS_NO_PLACE;
}

u16 ss_places_next(const struct ss_places *places, struct ss_places_walk *walk)
{
	u16 i = walk->next;

	while (i == SS_NO_PLACE) {
		if (walk->next_stretch > walk->last_stretch)
			return SS_NO_PLACE;
		i = places->near[walk->next_stretch++ % SS_PLACES_NEAR];
	}
	walk->next = places->place[i].next_near;
	return i;
}
