/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drive-managed shingled recording: bands, and a media cache before them.
 *
 * The medium begins with the media cache, a log that is written in a circle;
 * after it come the bands, band_sectors each. A write goes to the end of the
 * log, so that random writes are as fast as sequential ones. A map of at most
 * media_extents extents says where what the log holds is, and reads follow
 * it. When the host has been idle for media_idle_ns, or when log or map are
 * full, the band of the oldest extent is cleaned: read, joined with what the
 * log has of it, and written back. Writes that have no room wait for that.
 * A long sequential write goes past the log to its bands from the start of one
 * on; what its last track lies over is then saved in the log.
 *
 * How such drives work was found from outside by Aghayev and Desnoyers
 * ("Skylight", FAST 2015). Private to disk/.
 */
#ifndef HDD_MEDIA_H
#define HDD_MEDIA_H

#include "hdd_drive.h"

/* Of the map: live while nr_sectors is not 0. In the order of the log. */
struct hdd_media_extent {
	struct rb_node node;
	u64 sector; /* of the host */
	u64 nr_sectors;
	u64 log; /* where it is: counted on, not in a circle */
};

struct hdd_media {
	/* Both count on; an extent's slot is its number modulo the map's. */
	u64 oldest, newest; /* extents: [oldest, newest) */
	u64 log_end; /* where the log goes on */
	struct rb_root tree; /* live ones, by sector */

	/* Sequential writing: from where to where it has come. */
	u64 run_begin, run_end;
	bool run_past_log; /* its last part went to a band */
	u64 save_sectors; /* at run_save, to be saved in the log */
	u64 save_sector;

	/* Cleaning: what of the band has been read, or written back. */
	bool cleaning;
	bool writing;
	u64 band;
	u64 done_sectors;
	struct hdd_work *work; /* for its parts, one at a time */

	struct hdd_work *held_first, *held_last; /* writes without room */
	u64 quiet_since_ns; /* the host has had nothing in the drive */

	struct hdd_media_extent extent[]; /* params.media_extents */
};

/* Prepare @drive->media, zeroed, behind the drive's actuator. */
void hdd_media_init(struct hdd_drive *drive);
int hdd_media_check(const struct hdd_params *params, const char **why);

/* A write has come: does it go on a run of sequential ones? */
void hdd_media_arrived(struct hdd_drive *drive, struct hdd_work *work);

/*
 * Send the next part of @work, a host's read or write; or hold it until there
 * is room.
 */
void hdd_media_go(struct hdd_drive *drive, struct hdd_work *work, u64 now_ns);

/* A part of cleaning came back at @now_ns: go on. */
void hdd_media_cleaned(struct hdd_drive *drive, u64 now_ns);

/* When cleaning begins, if the host sends nothing; U64_MAX: it does not. */
u64 hdd_media_idle_ns(const struct hdd_drive *drive);
/* Clean the band of the oldest extent; there is one. */
void hdd_media_begin(struct hdd_drive *drive, u64 now_ns);

/*
 * Where @sector is on the medium; *@nr, at most what it says, sectors from
 * there on are together.
 */
u64 hdd_media_find(const struct hdd_drive *drive, u64 sector, u64 *nr);

#endif
