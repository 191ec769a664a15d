/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Places on the disk that are remembered, and found by where they are: which
 * of them is at a sector, and which are near it.
 *
 * A place has a number from 0, which is the caller's. Two tables of chains,
 * one by the very sector and one by the stretch of the disk that it is in: a
 * stretch is at least twice as long as what counts as near, so that two chains
 * hold all that may be near a sector.
 */
#ifndef SS_PLACES_H
#define SS_PLACES_H

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/types.h>

#define SS_PLACES 1024
#define SS_PLACES_AT_BITS 10
#define SS_PLACES_NEAR 256 /* chains by stretch */

/* A place that is nowhere: far from all sectors. */
#define SS_NOWHERE (U64_MAX / 2)
/* No place: the end of a chain. */
#define SS_NO_PLACE U16_MAX

/* By the very sector, and by stretch. */
enum ss_chain { SS_CHAIN_AT, SS_CHAIN_NEAR };

struct ss_place {
	u64 sector; /* or SS_NOWHERE: then it is in no chain */
	u16 next[2]; /* of its chains */
	bool near; /* it is in the one by stretch */
};

struct ss_places {
	struct ss_place place[SS_PLACES];
	u16 at[1 << SS_PLACES_AT_BITS];
	u16 near[SS_PLACES_NEAR];
	u32 stretch_shift; /* a stretch is so many sectors, as a power of two */
};

/* A walk over the places near a sector. */
struct ss_places_walk {
	u64 next_stretch, last_stretch;
	u16 next;
};

/* All places are nowhere. */
void ss_places_init(struct ss_places *places);

/* Place @i is at @sector from now on, or SS_NOWHERE. */
void ss_places_move(struct ss_places *places, u16 i, u64 sector);

/* No walk meets place @i, which one has met, before it moves. */
void ss_places_hide(struct ss_places *places, u16 i);

/* The first place after @i (SS_NO_PLACE: of all) that is at @sector. */
u16 ss_places_at(const struct ss_places *places, u64 sector, u16 i);

/*
 * Begins a walk over the places at most @reach sectors from @sector; then
 * ss_places_next() has one after the other, some farther away among them,
 * and SS_NO_PLACE after the last. No place may move meanwhile; the one that
 * was met last may be hidden.
 */
void ss_places_begin(struct ss_places *places, u64 sector, u64 reach,
		     struct ss_places_walk *walk);
u16 ss_places_next(const struct ss_places *places, struct ss_places_walk *walk);

#endif
