/* SPDX-License-Identifier: GPL-2.0-only */
/* The block layer, to those above it: see block_state.h. */
#ifndef SIM_BLOCK_H
#define SIM_BLOCK_H

#include "block_state.h"

/* Zeroed but for config and clock; -1: one sentence is in @why. */
int sim_block_init(struct sim_block *block,
		   const struct hdd_params *const *disks, u32 nr_disks,
		   char *why, u64 why_bytes);
void sim_block_free(struct sim_block *block);

struct sim_bio *sim_bio_new(struct sim_block *block);
void sim_bio_free(struct sim_block *block, struct sim_bio *bio);
/* A bio for one disk, bio->disk. */
void sim_block_submit(struct sim_block *block, struct sim_bio *bio);
/* Senders that can pause (a trace) ask before they send. */
bool sim_congested(const struct sim_block *block);
/* When disks have something to do next, as far as they know. */
u64 sim_block_next_ns(const struct sim_block *block);
/* What disks have completed by now. */
void sim_block_completions(struct sim_block *block);
/* Ask schedulers for what disks can take. */
void sim_block_kick(struct sim_block *block);
/* All that waits for @disk is handed back, in order of its arrival. */
struct sim_bio *sim_block_take_back(struct sim_block *block,
				    struct sim_disk *disk);
/* Let nothing new in, and begin with another scheduler when all is done. */
void sim_block_switch(struct sim_block *block, const char *policy);

#endif
