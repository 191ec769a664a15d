/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The write cache: data that the drive has acknowledged and the medium lacks.
 * Extents are disjoint and never touch. Positions are sectors of 512 bytes.
 * Private to disk/.
 */
#ifndef HDD_DIRTY_H
#define HDD_DIRTY_H

#include "hdd.h"

/* Make the cache empty. */
void hdd_dirty_init(struct hdd *hdd);

/* Does the cache hold all of [sector, sector + nr_sectors)? */
bool hdd_dirty_holds(const struct hdd *hdd, u64 sector, u64 nr_sectors);

/* Does the cache hold some of [sector, sector + nr_sectors)? */
bool hdd_dirty_touches(const struct hdd *hdd, u64 sector, u64 nr_sectors);

/*
 * Put [sector, sector + nr_sectors) into the cache, joined with what it
 * overlaps or touches. False, and no change, when there is no room.
 */
bool hdd_dirty_add(struct hdd *hdd, u64 sector, u64 nr_sectors);

/* Is there room for @nr_sectors anywhere? */
bool hdd_dirty_has_room(const struct hdd *hdd, u64 nr_sectors);

/* [sector, end) went to the medium by another way: it is dirty no longer. */
void hdd_dirty_drop(struct hdd *hdd, u64 sector, u64 end);

/* The first @nr_sectors of @dirty went to the medium. */
void hdd_dirty_written(struct hdd *hdd, struct hdd_dirty *dirty,
		       u64 nr_sectors);

/*
 * The extent that goes to the medium next, by params.write_order, when the
 * mechanism is free at @at_ns. Something is dirty.
 */
struct hdd_dirty *hdd_dirty_next(const struct hdd *hdd, u64 at_ns);

#endif
