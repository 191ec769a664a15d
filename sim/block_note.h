/* SPDX-License-Identifier: GPL-2.0-only */
/* What is remembered of requests: see block_state.h. */
#ifndef SIM_BLOCK_NOTE_H
#define SIM_BLOCK_NOTE_H

#include "block_state.h"

/* When the oldest part of @request was sent; joins do not order them. */
u64 sim_block_wanted_ns(const struct sim_request *request);
/* Whose turn it is once @rq, still pending, is dispatched: enum sim_party. */
u32 sim_block_party(struct sim_block *block, struct sim_disk *disk,
		    const struct ss_request *rq);
/* @request is done: its row in the log, what it adds to the sums. */
void sim_block_note_log(struct sim_block *block,
			const struct sim_request *request);
void sim_block_note(struct sim_block *block, struct sim_disk *disk,
		    const struct sim_request *request);
/* While the disk flushed, requests pending did not wait for the scheduler. */
void sim_block_note_flush(const struct sim_block *block, struct sim_disk *disk,
			  const struct hdd_cmd *flush);
/* All sums of the disks, since the start. */
void sim_block_sums(const struct sim_block *block, struct sim_result *result);
/* Begin the log, as sim_log() says. */
int sim_block_log(struct sim_block *block, u64 capacity);

#endif
