/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measuring a disk of the model the way a real one is measured: from outside,
 * by the times of its commands. Each call starts with a drive of its own, in
 * @scratch, hdd_drive_bytes() of memory, and leaves it in any state.
 */
#ifndef HDD_MEASURE_H
#define HDD_MEASURE_H

#include <linux/types.h>

#include "hdd_drive.h"

#define HDD_MAX_CURVE_POINTS 40

/*
 * The service-time curve, as Xu and Jiang (FAST 2011, section 3.2) calibrate
 * theirs: pairs of reads at a forward distance, from many places. Fills at
 * most @max_points (2..40) entries: @distance_sectors ascending from 0 to
 * almost the capacity, @time_ns the mean positioning time without the
 * transfer, neighbours averaged until it never falls. Distance 0 is going on
 * where the last command ended. Gives the number of points, or -EINVAL with
 * *@why.
 */
int hdd_measure_curve(struct hdd_drive *scratch,
		      const struct hdd_params *params, u32 max_points,
		      u64 *distance_sectors, u64 *time_ns, const char **why);

/* What data sheets and reviews give. */
struct hdd_figures {
	u64 random_read_ns; /* mean time of a 4 KiB read, depth 1 */
	u64 random_write_ns; /* the same for writes that bypass the cache */
	u64 read_iops_1000; /* 4 KiB reads per 1000 s, depth 1 */
	u64 read_iops_16_1000; /* the same, depth 16 or the most it has */
	u64 read_iops_deep_1000; /* the same, at the drive's full depth */
	u64 write_iops_16_1000; /* cached 4 KiB writes, as read_iops_16_1000 */
	u64 outer_bytes_per_s; /* sequential reads of 1 MiB: first, ... */
	u64 middle_bytes_per_s;
	u64 inner_bytes_per_s; /* ... last part of the capacity */
	u64 mean_bytes_per_s; /* mean of 16 places over the capacity */
	u64 outer_write_bytes_per_s;
	u64 flush_64_ns; /* a flush after 64 scattered 4 KiB writes */
	u64 track_to_track_ns; /* seeks alone; 0 on a flat disk */
	u64 mean_seek_ns; /* over random pairs of sectors */
	u64 full_stroke_ns;
};

/*
 * Measure @figures with HDD_MAX_DEPTH commands in @cmds, too large for a
 * kernel stack. 0, or -EINVAL with *@why.
 */
int hdd_measure_figures(struct hdd_drive *scratch, struct hdd_cmd *cmds,
			const struct hdd_params *params,
			struct hdd_figures *figures, const char **why);

#endif
