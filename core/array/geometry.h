/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the sectors of an array are on its members, and back.
 *
 * The layouts are those of Linux md (md(4) and mdadm(8), "--layout"): RAID 0
 * with members of one size, RAID 1, RAID 5 and 6 with their four rotations of
 * parity, RAID 10 with two copies (near, far, offset), and linear. Sectors are
 * of 512 bytes. The virtual sector is the array's, from 0.
 *
 * A row is one chunk on each member, at the same place on all of them. What a
 * member holds beyond the last full row that all members have is outside the
 * array (md's RAID 0 uses it for zones of fewer members).
 *
 * Nothing here changes after ss_array_geometry_init(): any number of readers
 * may call the rest at once.
 */
#ifndef SS_ARRAY_GEOMETRY_H
#define SS_ARRAY_GEOMETRY_H

#include <linux/types.h>

#define SS_ARRAY_MEMBERS 32 /* at most; at least 2 */
#define SS_ARRAY_CHUNK_LEAST 8 /* sectors: 4 KiB */
#define SS_ARRAY_CHUNK_MOST 2048 /* sectors: 1 MiB */
#define SS_ARRAY_SECTORS_MOST (1ULL << 48) /* of one member */

enum ss_array_level {
	SS_ARRAY_LINEAR,
	SS_ARRAY_RAID0,
	SS_ARRAY_RAID5,
	SS_ARRAY_RAID10, /* two copies */
	SS_ARRAY_RAID6,
	SS_ARRAY_RAID1,
};

enum ss_array_layout {
	/* RAID 5 and 6: where parity goes from row to row; md's numbers. */
	SS_ARRAY_LEFT_ASYMMETRIC,
	SS_ARRAY_RIGHT_ASYMMETRIC,
	SS_ARRAY_LEFT_SYMMETRIC, /* md's default */
	SS_ARRAY_RIGHT_SYMMETRIC,
	/* RAID 10: where a chunk's second copy is. */
	SS_ARRAY_NEAR, /* beside the first; md's default */
	SS_ARRAY_FAR, /* in the second half of the next member */
	SS_ARRAY_OFFSET, /* in the next row of the next member */
};

struct ss_array_geometry {
	/* Set by the host. */
	u32 level; /* enum ss_array_level */
	u32 layout; /* enum ss_array_layout; of RAID 5, 6 and 10 */
	u32 nr_members;
	u32 chunk_sectors; /* not of linear and RAID 1 */
	u64 start_sector[SS_ARRAY_MEMBERS]; /* of the room for data */
	u64 member_sectors[SS_ARRAY_MEMBERS]; /* of that room */

	/* Made by ss_array_geometry_init(). */
	u32 copies; /* of each sector: 2 for RAID 10, all members for RAID 1 */
	u32 parities; /* chunks of parity in a row */
	u32 data_members; /* chunks of data in a row, without copies */
	u64 rows; /* not of linear and RAID 1 */
	u64 used_sectors; /* of each member; not of linear */
	u64 capacity_sectors;
};

/*
 * Has each copy members of its own? Then a stream of reads has its mirror, and
 * no turn of all members: the other mirrors would idle in it.
 */
static inline bool ss_array_has_mirrors(
	const struct ss_array_geometry *geometry)
{
	return geometry->level == SS_ARRAY_RAID1 ||
	       (geometry->level == SS_ARRAY_RAID10 &&
		geometry->layout == SS_ARRAY_NEAR &&
		geometry->nr_members % 2 == 0);
}

/* A place on a member, as its disk counts. */
struct ss_array_place {
	u32 member;
	u64 sector;
	u64 run_sectors; /* the virtual disk goes on there for so long */
};

enum ss_array_kind {
	SS_ARRAY_OUTSIDE, /* not of the array's rows */
	SS_ARRAY_DATA,
	SS_ARRAY_PARITY,
};

/*
 * Check what the host has set and make the rest. -EINVAL with one sentence in
 * @why (at least 160 bytes) when it is no such array.
 */
int ss_array_geometry_init(struct ss_array_geometry *geometry, char *why,
			   size_t why_bytes);

/*
 * Where copy @copy (from 0, below geometry->copies) of virtual sector
 * @sector, below capacity_sectors, is.
 */
void ss_array_map(const struct ss_array_geometry *geometry, u64 sector,
		  u32 copy, struct ss_array_place *place);

/*
 * What @member has at @sector of its disk: the virtual sector, and for how
 * many sectors of the member that goes on. For parity the virtual sector of
 * the same place in the row's first chunk of data.
 */
enum ss_array_kind ss_array_unmap(const struct ss_array_geometry *geometry,
				  u32 member, u64 sector, u64 *virtual_sector,
				  u64 *run_sectors);

/*
 * The member that has the parity of @row; of RAID 5 and 6. RAID 6's second
 * parity is on the next one, or after the last on the first.
 */
u32 ss_array_parity_member(const struct ss_array_geometry *geometry, u64 row);

#endif
