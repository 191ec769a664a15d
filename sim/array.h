/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The storage, as those who send see it: an array of disks, or one disk. From
 * its bios to those of its disks.
 */
#ifndef SIM_ARRAY_H
#define SIM_ARRAY_H

#include "../core/workload.h"
#include "block.h"

struct sim_array;

/*
 * All disks of @block put together as @config says; NULL: there is one. NULL
 * on failure, with one sentence in @why.
 */
struct sim_array *sim_array_new(struct sim_block *block,
				const struct sim_array_config *config,
				char *why, u64 why_bytes);
void sim_array_free(struct sim_array *array);
/* A new bio for the storage. */
void sim_submit(struct sim_array *array, struct sim_bio *bio);
/*
 * One as @like is, for @nr_sectors from @sector on, or as many of them as that
 * takes with at most @max sectors each.
 */
void sim_submit_range(struct sim_array *array, const struct sim_bio *like,
		      u64 sector, u64 nr_sectors, u32 max);
u64 sim_array_capacity(const struct sim_array *array);
/* What has been submitted since the start. */
const struct ss_workload_totals *sim_array_arrived(
	const struct sim_array *array);
/* What members did together is added to @result. */
void sim_array_sums(struct sim_array *array, struct sim_result *result);

#endif
