/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A whole drive: one disk of the model (hdd.h), or two whose arms move
 * independently, or one with a media cache before shingled bands. What holds
 * of a disk holds of a drive: virtual time, one caller, no allocation.
 *
 * With two actuators each has half of the capacity, the first the lower half,
 * and the parameters describe either one. They share the queue depth and the
 * interface. A command over both halves is done when both have done theirs.
 *
 * With a media cache (drive-managed shingled recording) the capacity is
 * divided into bands that can only be written from their start. Other writes
 * go to a log in front of them; hdd_media.h says how.
 */
#ifndef HDD_DRIVE_H
#define HDD_DRIVE_H

#include "hdd.h"

#define HDD_MAX_ACTUATORS 2

struct hdd_media;
struct hdd_work;

/* Put @item, by its next, behind QUEUE_last, or make it QUEUE_first. */
#define hdd_append(queue, item)                                                \
	do {                                                                   \
		(item)->next = NULL;                                           \
		if (queue##_first)                                             \
			queue##_last->next = (item);                           \
		else                                                           \
			queue##_first = (item);                                \
		queue##_last = (item);                                         \
	} while (0)

/* A piece of a command, as one actuator gets it. */
struct hdd_part {
	struct hdd_cmd cmd;
	struct hdd_work *work;
};

/* A command in pieces: the host's, or the drive's own. */
struct hdd_work {
	struct hdd_part part[HDD_MAX_ACTUATORS];
	struct hdd_cmd *whole; /* NULL: the drive's own */
	u64 next_sector; /* of the whole, what has not been sent */
	u64 past_log; /* a write from this sector on goes to its bands */
	u32 nr_out; /* parts in actuators */
	struct hdd_work *next; /* free, or held */
};

struct hdd_drive {
	struct hdd_params params;
	struct hdd *actuator[HDD_MAX_ACTUATORS];
	u32 nr_actuators;
	struct hdd_media *media; /* NULL: none */
	bool plain; /* one actuator, no media cache: commands go through */

	/* Otherwise. */
	u64 range_sectors; /* of one actuator */
	u32 depth;
	u32 in_flight; /* submitted, not popped */
	u32 nr_works; /* of the host, not done */
	u64 clock_ns; /* latest time seen */
	struct hdd_cmd *done_first; /* by done_ns */
	struct hdd_cmd *done_last;
	struct hdd_work *free;
	/* Of the host's each may be in pieces; one more is the drive's own. */
	struct hdd_work work[HDD_MAX_DEPTH + 1];
};

/*
 * How much memory a drive of @params needs, from its struct hdd_drive on. For
 * parameters that hdd_drive_init() refuses it gives some, too.
 */
u64 hdd_drive_bytes(const struct hdd_params *params);

/*
 * Make the drive that @params describes in zeroed memory of
 * hdd_drive_bytes(@params), idle at time 0; as hdd_init().
 */
int hdd_drive_init(struct hdd_drive *drive, const struct hdd_params *params,
		   const char **why);

/* As the functions of a disk, hdd_NAME(). */
int hdd_drive_set_queue_depth(struct hdd_drive *drive, u32 depth);
bool hdd_drive_full(const struct hdd_drive *drive);
u32 hdd_drive_in_flight(const struct hdd_drive *drive);
void hdd_drive_submit(struct hdd_drive *drive, struct hdd_cmd *cmd, u64 now_ns);
struct hdd_cmd *hdd_drive_pop(struct hdd_drive *drive, u64 now_ns);

/*
 * When to look at the drive next; U64_MAX when it has no command. At this
 * time a command completes, or only a part of one, or the drive's own.
 */
u64 hdd_drive_next_ns(const struct hdd_drive *drive);

/* Would a power cut at @now_ns lose a sector of [sector, sector + nr)? */
bool hdd_drive_volatile(const struct hdd_drive *drive, u64 sector, u64 nr,
			u64 now_ns);
/* When what left the write caches is on the medium for certain. */
u64 hdd_drive_free_ns(const struct hdd_drive *drive);
/* How much the write caches hold: sectors, in so many extents. */
void hdd_drive_dirty(const struct hdd_drive *drive, u64 *sectors, u32 *extents);

/* Between hdd_drive.c and hdd_media.c. */

/* Send [sector, sector + nr) of actuator @i as a part of @work. */
void hdd_drive_send(struct hdd_drive *drive, struct hdd_work *work, u32 i,
		    u8 op, u64 sector, u64 nr, bool fua, u64 now_ns);
/* A free one, for @whole; there is one. */
struct hdd_work *hdd_drive_work(struct hdd_drive *drive, struct hdd_cmd *whole);

#endif
