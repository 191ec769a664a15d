/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which mirror serves a read, where each copy has disks of its own: RAID 1, and
 * RAID 10 near of an even number of members.
 *
 * A stream stays with the mirror whose head is there. Streams are spread evenly
 * over the mirrors, so each head has few places to go to.
 *
 * It reads no clock, allocates nothing and never sleeps. The host calls it for
 * one request at a time.
 */
#ifndef SS_ARRAY_MIRROR_H
#define SS_ARRAY_MIRROR_H

#include "geometry.h"

/*
 * Sequences of requests that are remembered. Of more concurrent streams the
 * rest is placed by load, as single requests are. 32 mirrors have two each.
 */
#define SS_MIRROR_STREAMS 64

/* What the host knows of a mirror when a read comes. */
struct ss_mirror {
	bool usable;
	u32 nr_requests; /* pending and in flight */
	u64 distance; /* from the head to the read */
};

struct ss_mirror_stream {
	u64 end_sector; /* of the array, where its last request ends */
	u64 last_ns;
	u32 mirror;
	u32 nr_requests; /* 0: the entry is free */
};

/* All zero to begin with. */
struct ss_mirrors {
	struct ss_mirror_stream stream[SS_MIRROR_STREAMS];
};

/*
 * The mirror, of @nr, that is to read @nr_sectors from @sector of the array on.
 * At least one is usable.
 */
u32 ss_mirror_choose(struct ss_mirrors *mirrors, const struct ss_mirror *mirror,
		     u32 nr, u64 sector, u32 nr_sectors, u64 now_ns);

#endif
