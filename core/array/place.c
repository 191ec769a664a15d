// SPDX-License-Identifier: GPL-2.0-only
/*
 * Placing heads.
 *
 * A reader that asks for one chunk at a time would move one head after the
 * other, and wait for each. So when one head moves for the turn's stream, the
 * members that have nothing of it read what it will ask of them next, for
 * nobody: their heads move at the same time, and their drives' caches have it.
 */
#include "internal.h"

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

/* A request that took less than this part of positioning came from a cache. */
#define CACHED_SHARE 4
/* A placing read, in sectors, at most. */
#define PLACE_SECTORS 128

/*
 * When one head seeks, the others are placed where the stream will be within
 * this part of that seek. What a drive reads farther away would drive out
 * of its cache what the stream has not come to yet.
 */
#define REACH_PERCENT 75

/* Where the stream that comes to @sector of the array goes on on @index. */
static u64 next_on(const struct ss_array_geometry *geometry, u64 sector,
		   u32 index)
{
	u32 left = 2 * geometry->nr_members;

	while (left-- && sector < geometry->capacity_sectors) {
		struct ss_array_place place;

		ss_array_map(geometry, sector, 0, &place);
		if (place.member == index)
			return place.sector;
		sector += place.run_sectors;
	}
	return U64_MAX;
}

/* How far the turn's stream has come when it is at @sector. */
static u64 progress(const struct ss_array *array, u64 sector)
{
	return sector - min_t(u64, sector, array->turn_begin);
}

/* How far on each member the stream comes while a head moves. */
static u64 reach_sectors(const struct ss_array *array)
{
	/* So much, 2 TiB, that the product below fits. */
	u64 done = min_t(u64, U32_MAX, progress(array, array->turn_sector));
	u64 took_ns = max_t(u64, array->now_ns - array->turn_since_ns, 1);
	u64 all = mul_u64_u64_div_u64(done, array->mean_random_ns, took_ns);

	return div_u64(all * REACH_PERCENT, 100 * array->geometry.data_members);
}

static bool may_place(const struct ss_array_member *member)
{
	return member->sched && member->array->turn && !member->placing &&
	       !member->nr_released && !member->nr_sent &&
	       member->place_sector < member->place_until;
}

/* Where the array ends on the member. */
static u64 end_of(const struct ss_array *array, u32 index)
{
	const struct ss_array_geometry *geometry = &array->geometry;

	return geometry->start_sector[index] + geometry->used_sectors;
}

/* The stream has come to where @member's head moves: now the others' will. */
static void place_others(struct ss_array_member *member, u64 reach)
{
	struct ss_array *array = member->array;
	const struct ss_array_geometry *geometry = &array->geometry;
	u32 i;

	if (!array->places || geometry->level == SS_ARRAY_LINEAR)
		return;
	for (i = 0; i < geometry->nr_members; i++) {
		struct ss_array_member *other = &array->member[i];
		u64 next = next_on(geometry, array->turn_sector, i);

		if (other == member || (array->moved & (1U << i)) ||
		    next == U64_MAX)
			continue;
		other->place_sector = max_t(u64, next, other->place_sector);
		other->place_until = min_t(u64, next + reach, end_of(array, i));
		ss_array_place_on(other);
	}
}

/* A turn begins with @request. */
static void turn_begins(struct ss_array *array,
			const struct ss_array_request *request)
{
	u32 i;

	array->counters.turns++;
	array->turn_since_ns = array->now_ns;
	array->turn_begin = request->rq.sector;
	array->moved = 0;
	array->placed = false;
	array->ran_out = false;
	for (i = 0; i < array->geometry.nr_members; i++) {
		array->member[i].place_sector = 0;
		array->member[i].place_until = 0;
	}
}

void ss_array_note_released(const struct ss_array_request *request)
{
	struct ss_array *array = request->member->array;
	void *turn = request->rq.party;

	if (turn && turn != array->turn)
		turn_begins(array, request);
	array->turn = turn;
	if (!turn)
		return;
	array->turn_sector = ss_request_end(&request->rq);
	if (request->rq.direction != SS_READ || array->placed ||
	    progress(array, request->rq.sector) < array->ahead_sectors)
		return;
	array->placed = true;
	place_others(request->member, 1);
}

void ss_array_note_done(struct ss_array_member *member,
			const struct ss_request *rq)
{
	struct ss_array *array = member->array;
	const struct ss_array_request *request = rq->array_request;
	u32 bit = 1U << member->index;
	u64 took_ns = array->now_ns - rq->dispatch_ns;

	if (rq->flags & SS_PLACING)
		member->placing = false;
	else if (!array->turn || !request || request->rq.party != array->turn ||
		 rq->direction != SS_READ)
		return;
	member->place_sector = max_t(u64, member->place_sector,
				     ss_request_end(rq));
	if (took_ns < array->mean_random_ns / CACHED_SHARE)
		return;
	member->place_until = 0;
	if (request && !array->ran_out)
		array->ahead_sectors = progress(array, request->rq.sector);
	array->ran_out |= !!request;
	/* Where one moves once more, all have to. */
	if (request && (array->moved & bit))
		array->moved = 0;
	array->moved |= bit;
	if (request)
		place_others(member, max_t(u64, reach_sectors(array), 1));
}

void ss_array_place_on(struct ss_array_member *member)
{
	if (may_place(member))
		ss_array_kick(member->array, member->index);
}

bool ss_array_place(struct ss_array *array, u32 index, u64 *sector,
		    u32 *nr_sectors)
{
	struct ss_array_member *member = &array->member[index];
	bool place;

	ss_array_lock(array);
	place = may_place(member);
	*sector = member->place_sector;
	/* Its disk may end where the array does. */
	*nr_sectors = (u32)min_t(u64, end_of(array, index) - *sector,
				 min_t(u32, array->geometry.chunk_sectors,
				       PLACE_SECTORS));
	ss_array_unlock(array);
	return place;
}
