/* SPDX-License-Identifier: GPL-2.0-only */
/* A disk's scheduler, and the one after it: see block_state.h. */
#ifndef SIM_BLOCK_SWITCH_H
#define SIM_BLOCK_SWITCH_H

#include "block_state.h"

/* @disk begins with @policy; nonzero on failure, with one sentence in @why. */
int sim_block_begin(const struct sim_block *block, struct sim_disk *disk,
		    const char *policy, char *why, u64 why_bytes);
/*
 * Once nothing is pending or under way, the scheduler is another one, if one
 * is to come. True: it has come, and those that slept may go on.
 */
bool sim_block_change_when_drained(struct sim_block *block,
				   struct sim_disk *disk);
/* Of the present schedulers and of those to come, as sim_tune() says. */
int sim_block_tune(struct sim_block *block, const char *name, u64 value,
		   char *why, u64 why_bytes);

#endif
