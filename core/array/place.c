// SPDX-License-Identifier: GPL-2.0-only
/*
 * The coordinator of an array: placing heads.
 *
 * Where a member's head has to move for a stream, the other members' heads
 * follow by reads that the host makes for nobody; and whether all heads are
 * there.
 */
#include "internal.h"

#include <linux/kernel.h>
#include <linux/math64.h>

/* A request that took less than this part of positioning came from a cache. */
#define CACHED_SHARE 4
/* A placing read. */
#define PLACE_SECTORS 128
/*
 * When one head moves the others follow, if the stream comes to where they have
 * to within this part of the time in which it could pass over all that a head
 * passes on its way. Sooner, what the drive reads then would drive out of its
 * cache what the stream has not come to yet.
 */
#define PLACE_REACH_PCT 75
/* Heads are placed so many reads before the drive runs out of what it has. */
#define PLACE_EARLY 1

/* Where the next placing read on the member begins. */
static u64 place_begin(const struct ss_array_member *member)
{
	const struct ss_array_stream *s = member->array->turn;

	return max_t(u64, member->place_sector,
		     s->physical[member->index].end_sector);
}

/*
 * Has the turn's stream come to where the drive must move its head? Before
 * that is what it read ahead in an earlier turn, and reading beyond that would
 * drive it out of the cache. When one head has moved it is time for all.
 */
static bool place_is_due(const struct ss_array_member *member,
			 const struct ss_array_physical *p)
{
	u64 come = p->end_sector - member->turn_sector;

	if (member->array->placing)
		return place_begin(member) < member->place_until;
	return come + PLACE_EARLY * PLACE_SECTORS >=
	       member->array->ahead_sectors;
}

/*
 * A reader that asks for one chunk at a time would move one head after the
 * other, and wait for each. The others can be on their way meanwhile. And one
 * that asks all members at once would move those heads first whose drives have
 * read ahead less, and then wait for the others.
 */
static bool may_place(const struct ss_array_member *member)
{
	const struct ss_array *array = member->array;
	const struct ss_array_stream *s = array->turn;
	const struct ss_array_physical *p;

	if (!s || (array->moved & (1U << member->index)) || member->placing ||
	    !is_part(member, s) || !ss_array_places_pay(member, s))
		return false;
	p = &s->physical[member->index];
	/* Its head may be on its way already. */
	if (p->nr_pending || (p->nr_in_flight && member->mover))
		return false;
	return p->straight >= *member->threshold && place_is_due(member, p);
}

/* Where the next placing read is; false beyond the array's end. */
static bool place_at(const struct ss_array_member *member, u64 *sector,
		     u32 *nr_sectors)
{
	const struct ss_array_geometry *geometry = &member->array->geometry;
	u64 virtual_sector, run;

	*sector = place_begin(member);
	*nr_sectors = min_t(u32, geometry->chunk_sectors, PLACE_SECTORS);
	return ss_array_unmap(geometry, member->index,
			      *sector + *nr_sectors - 1, &virtual_sector,
			      &run) != SS_ARRAY_OUTSIDE;
}

/* How far ahead of the turn's stream a member's placing reads begin at most. */
static u64 place_reach(const struct ss_array_member *member)
{
	const struct ss_array_stream *s = member->array->turn;
	struct ss_array_rate rate = alone(s);
	u64 all = mul_u64_u64_div_u64(rate.sectors,
				      member->sched->curve.mean_random_ns,
				      max_t(u64, rate.ns, 1));

	return div_u64(all * PLACE_REACH_PCT,
		       100 * max_t(u32, nr_bits(s->established), 1));
}

/* A head moves: time for all whose drives soon run out of what they have. */
static void all_follow(struct ss_array_member *member)
{
	struct ss_array *array = member->array;
	u64 reach = place_reach(member);
	u32 i;

	array->placing = true;
	for (i = 0; i < array->geometry.nr_members; i++)
		array->member[i].place_until =
			array->turn->physical[i].end_sector + reach;
}

void ss_array_kick_to_place(struct ss_array *array)
{
	u32 i;

	for (i = 0; array->kick && i < array->geometry.nr_members; i++)
		if ((array->attached & (1U << i)) &&
		    may_place(&array->member[i]))
			array->kick(array, i);
}

bool ss_array_place(struct ss_array *array, u32 index, u64 *sector,
		    u32 *nr_sectors)
{
	struct ss_array_member *member = &array->member[index];
	bool place;

	lock(array);
	place = member->sched && may_place(member) &&
		place_at(member, sector, nr_sectors);
	if (place) {
		member->place_sector = *sector + *nr_sectors;
		if (!array->placing) {
			all_follow(member);
			ss_array_kick_to_place(array);
		}
	}
	unlock(array);
	return place;
}

void ss_array_note_moved(struct ss_array_member *member,
			 const struct ss_request *rq, u64 now_ns)
{
	struct ss_array *array = member->array;
	u32 bit = 1U << member->index;

	if (now_ns - rq->dispatch_ns <
	    member->sched->curve.mean_random_ns / CACHED_SHARE)
		return;
	if (!array->moved)
		array->ahead_sectors = rq->sector - member->turn_sector;
	if (array->moved & bit)
		array->moved = 0;
	array->moved |= bit;
	all_follow(member);
}

void ss_array_note_placed(struct ss_array_member *member,
			  const struct ss_array_stream *s,
			  const struct ss_request *rq, u64 now_ns)
{
	struct ss_array *array = member->array;

	if (array->placed_ns != U64_MAX)
		return;
	if (member->way_ns == U64_MAX)
		member->way_ns = ss_sched_positioning_ns(member->sched, rq);
	if (now_ns - rq->dispatch_ns >= member->way_ns / CACHED_SHARE)
		array->placed |= 1U << member->index;
	if ((array->placed & s->established) == s->established)
		array->placed_ns = now_ns;
}
