// SPDX-License-Identifier: GPL-2.0-only
/* Places on the disk, found by where they are. See places.h. */
#include "places.h"

/* Stretches of this size to begin with: 2^20 sectors are 512 MiB. */
#define FIRST_SHIFT 20
#define MOST_SHIFT 62

/* The chain of @sector in the table of @kind. */
static u16 *chain_of(const struct ss_places *places, enum ss_chain kind,
		     u64 sector)
{
	struct ss_places *all = (struct ss_places *)places;

	/* Fibonacci hashing: the golden ratio's bits spread regular steps. */
	return kind == SS_CHAIN_AT ?
		       &all->at[(sector * 0x9e3779b97f4a7c15ULL) >>
				(64 - SS_PLACES_AT_BITS)] :
		       &all->near[(sector >> all->stretch_shift) %
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

static void leave(struct ss_places *places, enum ss_chain kind, u16 i)
{
	u16 *link = chain_of(places, kind, places->place[i].sector);

	while (*link != i)
		link = &places->place[*link].next[kind];
	*link = places->place[i].next[kind];
}

static void enter(struct ss_places *places, enum ss_chain kind, u16 i)
{
	u16 *chain = chain_of(places, kind, places->place[i].sector);

	places->place[i].next[kind] = *chain;
	*chain = i;
}

void ss_places_hide(struct ss_places *places, u16 i)
{
	leave(places, SS_CHAIN_NEAR, i);
	places->place[i].near = false;
}

void ss_places_move(struct ss_places *places, u16 i, u64 sector)
{
	struct ss_place *place = &places->place[i];

	if (place->sector != SS_NOWHERE)
		leave(places, SS_CHAIN_AT, i);
	if (place->near && (sector == SS_NOWHERE ||
			    (place->sector ^ sector) >> places->stretch_shift))
		ss_places_hide(places, i);
	place->sector = sector;
	if (sector == SS_NOWHERE)
		return;
	enter(places, SS_CHAIN_AT, i);
	if (!place->near)
		enter(places, SS_CHAIN_NEAR, i);
	place->near = true;
}

u16 ss_places_at(const struct ss_places *places, u64 sector, u16 i)
{
	i = i == SS_NO_PLACE ? *chain_of(places, SS_CHAIN_AT, sector) :
			       places->place[i].next[SS_CHAIN_AT];
	while (i != SS_NO_PLACE && places->place[i].sector != sector)
		i = places->place[i].next[SS_CHAIN_AT];
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
		if (places->place[i].near)
			enter(places, SS_CHAIN_NEAR, i);
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
	walk->next = places->place[i].next[SS_CHAIN_NEAR];
	return i;
}
