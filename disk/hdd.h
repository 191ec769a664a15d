/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk in virtual time: commands go in with the time, and come out when the
 * disk would have finished them.
 *
 * The model is driven by its caller. It reads no clock, allocates nothing and
 * does the same on every machine: the same calls give the same times. All
 * times are nanoseconds of one clock that the caller chose, positions are
 * sectors of 512 bytes. The platters turn with that clock: at time 0, and at
 * every multiple of the revolution, the index mark is under the heads.
 *
 * One caller at a time; times must not go backwards from call to call (an
 * earlier time is taken as the latest one seen).
 */
#ifndef HDD_H
#define HDD_H

#include <linux/kernel.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#include "hdd_params.h"

enum {
	HDD_READ,
	HDD_WRITE,
	HDD_FLUSH,
};

/* Seek times are kept for each short distance and for steps of long ones. */
#define HDD_SEEK_NEAR 512
#define HDD_SEEK_FAR 1024
#define HDD_ZONE_INDEX 256

/* Where a sector is; sector may equal the track's length: just behind it. */
struct hdd_place {
	u32 zone;
	u32 cylinder; /* within the zone */
	u32 head;
	u32 sector; /* within the track */
};

/*
 * A command. The caller owns the memory and leaves it alone from
 * hdd_submit() until hdd_pop() gives it back.
 */
struct hdd_cmd {
	u64 sector; /* ignored by a flush */
	u32 nr_sectors; /* at least 1; ignored by a flush */
	u8 op; /* HDD_READ, HDD_WRITE, HDD_FLUSH */
	bool fua; /* a write is done only when on the medium */
	bool internal; /* the drive's own: not over the interface */

	/* Out, valid when popped. */
	u64 submit_ns;
	u64 start_ns; /* the drive began to work on it */
	u64 done_ns;
	u64 position_ns; /* seek, settling, head switch, rotation paid */

	/* The model's own. */
	struct hdd_cmd *next;
	struct hdd_place place;
	u32 angle_ns;
	u64 ready_ns; /* decoded: the mechanism may begin */
};

/* One zone, prepared for quick look-ups. */
struct hdd_zone {
	u64 first_sector;
	u64 end_sector;
	u64 sector_ns_20; /* time of a sector to pass, times 2^20 */
	u32 first_cylinder;
	u32 cylinders;
	u32 sectors_per_track;
	u32 sectors_per_track_inv;
	u32 sectors_per_cylinder;
	u32 sectors_per_cylinder_inv;
	u32 start_angle_ns; /* angles: how long after the index mark */
	u32 cylinder_angle_ns; /* from one cylinder to the next */
};

/* Data that the write cache has acknowledged and the medium lacks. */
struct hdd_dirty {
	union {
		struct rb_node node;
		struct hdd_dirty *next_free;
	};
	u64 sector;
	u64 nr_sectors;
	/* Where it begins, so that no choice need work it out. */
	u32 cylinder;
	u32 angle_ns;
	u32 head;
};

/* The interface: when it is free, and a gap in what it is to carry. */
struct hdd_bus {
	u64 gap_begin_ns;
	u64 gap_end_ns;
	u64 free_ns;
};

/* The disk. Fixed size; fields are the model's own. */
struct hdd {
	struct hdd_params params;
	u32 depth;
	u32 in_flight; /* submitted, not popped */
	u64 clock_ns; /* latest time seen */

	/* Commands that wait for the mechanism, in order of submission. */
	struct hdd_cmd *queue[HDD_MAX_DEPTH];
	u32 nr_queued;
	u32 nr_flushes; /* flushes among them */
	/* Commands whose end is known, by done_ns. */
	struct hdd_cmd *done_first;
	struct hdd_cmd *done_last;
	u64 last_done_ns; /* the latest end given to any command */

	/* The mechanism. */
	u64 work_end_ns; /* it is with a host's command until then */
	u64 free_ns; /* ... or with the write cache until then */
	u64 flush_end_ns; /* a flush lets nothing in until then */
	u64 head_sector; /* the next sector under the head, ... */
	struct hdd_place head; /* ... where that is, ... */
	u64 head_ns; /* ... and since when; used by reading ahead */
	bool head_wrote; /* the head is settled for writing */
	struct hdd_bus *bus; /* its own, unless it shares a drive's */
	struct hdd_bus own_bus;
	bool last_wrote; /* the last command was a write */

	/* The read cache. Reading ahead goes on at the head. */
	u64 segment_first[HDD_MAX_SEGMENTS];
	u64 segment_length[HDD_MAX_SEGMENTS];
	u8 segment_newer[HDD_MAX_SEGMENTS];
	u8 segment_older[HDD_MAX_SEGMENTS];
	u8 segment_newest;
	u8 segment_oldest;
	u8 segment_filled; /* what the mechanism read last goes in here */
	bool ahead; /* reading ahead, too */
	u64 ahead_limit; /* up to this sector */

	/* The write cache (hdd_dirty.h). */
	struct rb_root dirty_tree;
	struct hdd_dirty *dirty_free;
	u32 nr_dirty;
	u32 nr_dirty_used; /* of dirty[], from its start */
	u64 dirty_sectors;
	s64 write_owed_ns; /* of its share beside reads */
	u64 quiet_since_ns; /* last time a host's command ended */
	bool wrote; /* into the cache, since the last flush */

	/* Geometry, prepared by hdd_init(). */
	struct hdd_zone zone[HDD_MAX_ZONES];
	u8 zone_index[HDD_ZONE_INDEX];
	u32 zone_shift;
	u32 cylinders;
	u64 rotation_inv;
	u64 epoch_ns; /* a whole number of revolutions */
	u64 interface_ps; /* per sector */
	u32 tail_ns; /* from the medium's last sector to the end */
	u32 seek_shift;
	u32 seek_near[HDD_SEEK_NEAR];
	u32 seek_far[HDD_SEEK_FAR + 2];

	/* Flat. */
	u64 channel_free_ns[HDD_MAX_CHANNELS];
	u64 flat_ps[2]; /* per sector, by HDD_READ and HDD_WRITE */

	struct hdd_dirty dirty[HDD_MAX_DIRTY]; /* last: most is never touched */
};

/*
 * Make @hdd the disk that @params describes, idle at time 0, its heads at
 * sector 0. It may not be moved in memory. 0, or -EINVAL with one sentence in
 * *@why (a constant string).
 */
int hdd_init(struct hdd *hdd, const struct hdd_params *params,
	     const char **why);

/*
 * Let at most @depth commands in at once, 1..params.queue_depth. Only while
 * the disk is empty. -EINVAL when out of range, -EBUSY when not empty.
 */
int hdd_set_queue_depth(struct hdd *hdd, u32 depth);

/* No further command may be submitted before one is popped. */
bool hdd_full(const struct hdd *hdd);

/*
 * Send @cmd at @now_ns. The disk must not be full; the command must lie
 * within the capacity.
 */
void hdd_submit(struct hdd *hdd, struct hdd_cmd *cmd, u64 now_ns);

/* When the next command completes; U64_MAX when there is none in it. */
u64 hdd_next_ns(const struct hdd *hdd);

/*
 * A command that completed at or before @now_ns, the earliest first; NULL
 * when there is none.
 */
struct hdd_cmd *hdd_pop(struct hdd *hdd, u64 now_ns);

/*
 * Would a power cut at @now_ns lose a sector of [sector, sector + nr) that the
 * host believes written? On a flat disk what was written may be lost.
 */
bool hdd_volatile(const struct hdd *hdd, u64 sector, u64 nr, u64 now_ns);

/*
 * The mapping from sectors to the mechanics, for tests and pictures:
 * *@cylinder counts from the outer edge, *@angle_ns is how long after the
 * index mark the sector begins, 0..rotation_ns - 1.
 */
void hdd_map(const struct hdd *hdd, u64 sector, u32 *cylinder, u32 *head,
	     u32 *angle_ns);

/* Seek time over @cylinders as hdd_init() tabulated it. */
u64 hdd_seek_time_ns(const struct hdd *hdd, u32 cylinders);

#endif
