/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a workload looks like, by what arrives and not by how it is served:
 * sizes, directions, and how near requests come to recent ones. Whoever
 * chooses a scheduler decides by this; every host that sees requests' places
 * can tell it of them.
 *
 * Seelam et al. (OLS 2005, last part) choose by the average request size, and
 * ask which other metrics there should be; locality is one that decides
 * whether waiting can pay (Xu and Jiang, FAST 2011, section 2).
 */
#ifndef SS_WORKLOAD_H
#define SS_WORKLOAD_H

#include <linux/types.h>

/* Requests remembered; of a sequence only the last one is. */
#define SS_WORKLOAD_RECENT 64
/* Continues another one: begins at most so many sectors behind its end. */
#define SS_WORKLOAD_GAP_SECTORS 256
/* Near another one: at most span >> this from its end. */
#define SS_WORKLOAD_NEAR_SHIFT 11

/* Sums since ss_workload_init(). */
struct ss_workload_totals {
	u64 requests;
	u64 sectors;
	u64 reads; /* requests */
	u64 sync; /* requests that somebody waits for */
	u64 continuing; /* requests that continue a recent one */
	u64 near; /* requests near a recent one, continuing it or not */
};

struct ss_workload {
	struct ss_workload_totals totals;
	u64 near_sectors;
	u64 end_sector[SS_WORKLOAD_RECENT];
	u32 nr_recent;
	u32 oldest; /* the place that is used next, when all are */
};

/* Begin, on a device of @span_sectors. */
void ss_workload_init(struct ss_workload *workload, u64 span_sectors);

/*
 * A request came: @nr_sectors at @sector, SS_READ or SS_WRITE, @sync if
 * somebody waits for it. Before merging, as its sender sent it.
 */
void ss_workload_arrived(struct ss_workload *workload, u64 sector,
			 u32 nr_sectors, u8 direction, bool sync);

#endif
