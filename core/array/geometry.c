// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the sectors of an array are on its members. See geometry.h.
 *
 * RAID 0 and RAID 10 near lay the chunks' copies out row by row: copy k of
 * chunk c stands in place c * copies + k. With an odd number of members a chunk
 * of RAID 10 near may have its second copy in the next row. RAID 10 far and
 * offset are rows of RAID 0, and a second copy of each row: shifted by one
 * member, and stride rows further on.
 */
#include "geometry.h"
#include "../say.h"

#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

static int refuse(char *why, size_t why_bytes, const char *before, u64 number,
		  const char *after)
{
	ss_say_all(why, why_bytes, before, number, after);
	return -EINVAL;
}

static bool has_chunks(const struct ss_array_geometry *geometry)
{
	return geometry->level != SS_ARRAY_LINEAR &&
	       geometry->level != SS_ARRAY_RAID1;
}

static u32 nr_parities(const struct ss_array_geometry *geometry)
{
	if (geometry->level == SS_ARRAY_RAID6)
		return 2;
	return geometry->level == SS_ARRAY_RAID5 ? 1 : 0;
}

/* Are RAID 10's second copies in rows of their own? */
static bool has_copied_rows(const struct ss_array_geometry *geometry)
{
	return geometry->level == SS_ARRAY_RAID10 &&
	       geometry->layout != SS_ARRAY_NEAR;
}

static int check(const struct ss_array_geometry *geometry, char *why,
		 size_t why_bytes)
{
	const char *no_room = " has no room for a single sector";
	u32 chunk = geometry->chunk_sectors, least = 1, i;

	if (geometry->level > SS_ARRAY_RAID1)
		return refuse(why, why_bytes, "level number ", geometry->level,
			      " is none of linear, RAID 0, 1, 5, 6 and 10");
	if (geometry->nr_members < 2 || geometry->nr_members > SS_ARRAY_MEMBERS)
		return refuse(why, why_bytes, "an array has 2 to 32 members, ",
			      geometry->nr_members, " is not among that");
	if (geometry->level == SS_ARRAY_RAID6 && geometry->nr_members < 4)
		return refuse(why, why_bytes, "RAID 6 has at least 4 members, ",
			      geometry->nr_members, " are too few");
	if (nr_parities(geometry) &&
	    geometry->layout > SS_ARRAY_RIGHT_SYMMETRIC)
		return refuse(why, why_bytes, "parity layout number ",
			      geometry->layout,
			      " is none of the four that are known, 0 to 3");
	if (geometry->level == SS_ARRAY_RAID10 &&
	    (geometry->layout < SS_ARRAY_NEAR ||
	     geometry->layout > SS_ARRAY_OFFSET))
		return refuse(why, why_bytes, "RAID 10 layout number ",
			      geometry->layout,
			      " is none of near, far and offset, 4 to 6");
	if (has_chunks(geometry)) {
		if (chunk < SS_ARRAY_CHUNK_LEAST ||
		    chunk > SS_ARRAY_CHUNK_MOST || chunk % 8)
			return refuse(
				why, why_bytes, "a chunk of ", chunk,
				" sectors: it must be a multiple of 8, from 8 to 2048 (4 KiB to 1 MiB)");
		least = chunk;
		no_room = " has no room for a single chunk";
		if (has_copied_rows(geometry)) {
			least = 2 * chunk;
			no_room = " has no room for two chunks";
		}
	}
	for (i = 0; i < geometry->nr_members; i++) {
		if (geometry->member_sectors[i] < least)
			return refuse(why, why_bytes, "member ", i, no_room);
		if (geometry->member_sectors[i] > SS_ARRAY_SECTORS_MOST ||
		    geometry->start_sector[i] > SS_ARRAY_SECTORS_MOST)
			return refuse(why, why_bytes, "member ", i,
				      " has more than 2^48 sectors");
	}
	return 0;
}

int ss_array_geometry_init(struct ss_array_geometry *geometry, char *why,
			   size_t why_bytes)
{
	u64 smallest = U64_MAX, all = 0, chunks;
	bool is_raid10 = geometry->level == SS_ARRAY_RAID10;
	u32 i;

	if (check(geometry, why, why_bytes))
		return -EINVAL;
	for (i = 0; i < geometry->nr_members; i++) {
		smallest = min_t(u64, smallest, geometry->member_sectors[i]);
		all += geometry->member_sectors[i];
	}
	geometry->copies = is_raid10 ? 2 : 1;
	geometry->parities = nr_parities(geometry);
	geometry->data_members = geometry->nr_members - geometry->parities;
	geometry->rows = 0;
	geometry->used_sectors = smallest;
	geometry->capacity_sectors = all;
	if (geometry->level == SS_ARRAY_RAID1) {
		geometry->copies = geometry->nr_members;
		geometry->data_members = 1;
		geometry->capacity_sectors = smallest;
	}
	if (!has_chunks(geometry))
		return 0;
	geometry->rows = div_u64(smallest, geometry->chunk_sectors);
	if (has_copied_rows(geometry))
		geometry->rows -= geometry->rows % 2;
	chunks = geometry->rows * geometry->nr_members;
	chunks -= geometry->parities * geometry->rows;
	/* A row of far or offset has either data or copies, on all members. */
	if (is_raid10 && geometry->layout == SS_ARRAY_NEAR)
		geometry->data_members /= 2;
	if (is_raid10)
		chunks /= 2;
	geometry->used_sectors = geometry->rows * geometry->chunk_sectors;
	geometry->capacity_sectors = chunks * geometry->chunk_sectors;
	return 0;
}

u32 ss_array_parity_member(const struct ss_array_geometry *geometry, u64 row)
{
	u64 turn;

	div64_u64_rem(row, geometry->nr_members, &turn);
	if (geometry->layout == SS_ARRAY_RIGHT_ASYMMETRIC ||
	    geometry->layout == SS_ARRAY_RIGHT_SYMMETRIC)
		return (u32)turn;
	return geometry->nr_members - 1 - (u32)turn;
}

static bool is_symmetric(const struct ss_array_geometry *geometry)
{
	return geometry->layout == SS_ARRAY_LEFT_SYMMETRIC ||
	       geometry->layout == SS_ARRAY_RIGHT_SYMMETRIC;
}

/* RAID 6's second parity may stand on the first member: on how many there. */
static u32 nr_wrapped(const struct ss_array_geometry *geometry, u32 parity)
{
	u32 behind = parity + geometry->parities;

	return behind - min_t(u32, behind, geometry->nr_members);
}

/* Which member has the row's chunk of data @column. */
static u32 member_of(const struct ss_array_geometry *geometry, u32 column,
		     u32 parity)
{
	u32 wrapped = nr_wrapped(geometry, parity);
	u32 member;

	if (!is_symmetric(geometry))
		return column < parity - wrapped ? column + wrapped :
						   column + geometry->parities;
	member = parity + geometry->parities + column;
	return member < geometry->nr_members ? member :
					       member - geometry->nr_members;
}

static bool is_parity(const struct ss_array_geometry *geometry, u32 member,
		      u32 parity)
{
	return (member >= parity && member < parity + geometry->parities) ||
	       member < nr_wrapped(geometry, parity);
}

static void linear_map(const struct ss_array_geometry *geometry, u64 sector,
		       struct ss_array_place *place)
{
	u32 member = 0;

	while (sector >= geometry->member_sectors[member])
		sector -= geometry->member_sectors[member++];
	place->member = member;
	place->sector = geometry->start_sector[member] + sector;
	place->run_sectors = geometry->member_sectors[member] - sector;
}

/* RAID 10 far and offset: by how many rows a second copy is further on. */
static u64 stride(const struct ss_array_geometry *geometry)
{
	return geometry->layout == SS_ARRAY_FAR ? geometry->rows / 2 : 1;
}

void ss_array_map(const struct ss_array_geometry *geometry, u64 sector,
		  u32 copy, struct ss_array_place *place)
{
	u64 within, column, row, chunk;

	if (geometry->level == SS_ARRAY_LINEAR) {
		linear_map(geometry, sector, place);
		return;
	}
	if (geometry->level == SS_ARRAY_RAID1) {
		place->member = copy;
		place->sector = geometry->start_sector[copy] + sector;
		place->run_sectors = geometry->capacity_sectors - sector;
		return;
	}
	chunk = div64_u64_rem(sector, geometry->chunk_sectors, &within);
	if (geometry->parities) {
		row = div64_u64_rem(chunk, geometry->data_members, &column);
		column = member_of(geometry, (u32)column,
				   ss_array_parity_member(geometry, row));
	} else if (has_copied_rows(geometry)) {
		row = div64_u64_rem(chunk, geometry->nr_members, &column);
		if (geometry->layout == SS_ARRAY_OFFSET)
			row *= 2;
		row += copy * stride(geometry);
		column = column + copy < geometry->nr_members ? column + copy :
								0;
	} else {
		row = div64_u64_rem(chunk * geometry->copies + copy,
				    geometry->nr_members, &column);
	}
	place->member = (u32)column;
	place->sector = geometry->start_sector[column] +
			row * geometry->chunk_sectors + within;
	place->run_sectors = geometry->chunk_sectors - within;
}

/* Which of the row's chunks of data @member has, which has no parity of it. */
static u32 column_of(const struct ss_array_geometry *geometry, u32 member,
		     u32 parity)
{
	u32 first = parity + geometry->parities;

	if (!is_symmetric(geometry))
		return member < parity ? member - nr_wrapped(geometry, parity) :
					 member - geometry->parities;
	return member >= first ? member - first :
				 member + geometry->nr_members - first;
}

static enum ss_array_kind linear_unmap(const struct ss_array_geometry *geometry,
				       u32 member, u64 sector,
				       u64 *virtual_sector, u64 *run_sectors)
{
	u64 before = 0;
	u32 i;

	if (sector >= geometry->member_sectors[member])
		return SS_ARRAY_OUTSIDE;
	for (i = 0; i < member; i++)
		before += geometry->member_sectors[i];
	*virtual_sector = before + sector;
	*run_sectors = geometry->member_sectors[member] - sector;
	return SS_ARRAY_DATA;
}

/* RAID 10 far and offset: which chunk @member has in @row. */
static u64 copied_chunk(const struct ss_array_geometry *geometry, u32 member,
			u64 row)
{
	u32 nr = geometry->nr_members, copy, column;

	if (geometry->layout == SS_ARRAY_OFFSET) {
		copy = row % 2;
		row /= 2;
	} else {
		copy = row >= stride(geometry);
		row -= copy * stride(geometry);
	}
	column = member >= copy ? member - copy : nr - 1;
	return row * nr + column;
}

enum ss_array_kind ss_array_unmap(const struct ss_array_geometry *geometry,
				  u32 member, u64 sector, u64 *virtual_sector,
				  u64 *run_sectors)
{
	u64 row, within, chunk;
	enum ss_array_kind kind = SS_ARRAY_DATA;

	if (sector < geometry->start_sector[member])
		return SS_ARRAY_OUTSIDE;
	sector -= geometry->start_sector[member];
	if (geometry->level == SS_ARRAY_LINEAR)
		return linear_unmap(geometry, member, sector, virtual_sector,
				    run_sectors);
	if (geometry->level == SS_ARRAY_RAID1) {
		if (sector >= geometry->capacity_sectors)
			return SS_ARRAY_OUTSIDE;
		*virtual_sector = sector;
		*run_sectors = geometry->capacity_sectors - sector;
		return SS_ARRAY_DATA;
	}
	row = div64_u64_rem(sector, geometry->chunk_sectors, &within);
	if (row >= geometry->rows)
		return SS_ARRAY_OUTSIDE;
	*run_sectors = geometry->chunk_sectors - within;
	if (geometry->parities) {
		u32 parity = ss_array_parity_member(geometry, row);

		chunk = row * geometry->data_members;
		if (is_parity(geometry, member, parity))
			kind = SS_ARRAY_PARITY;
		else
			chunk += column_of(geometry, member, parity);
	} else if (has_copied_rows(geometry)) {
		chunk = copied_chunk(geometry, member, row);
	} else {
		chunk = row * geometry->nr_members + member;
		/* The two copies of a chunk stand beside each other. */
		if (geometry->copies == 2)
			chunk /= 2;
	}
	*virtual_sector = chunk * geometry->chunk_sectors + within;
	/* Half a chunk's copies may stand in a last, odd place. */
	if (*virtual_sector >= geometry->capacity_sectors)
		return SS_ARRAY_OUTSIDE;
	return kind;
}
