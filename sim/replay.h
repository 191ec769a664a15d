/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests of traces, at their time or after what they waited for. */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include "array.h"
#include "sources.h"

struct sim_replay;

struct sim_replay *sim_replay_new(struct sim_block *block,
				  struct sim_array *array);
void sim_replay_free(struct sim_replay *replay);
/* What it replays: none at first. */
struct sim_sources *sim_replay_sources(const struct sim_replay *replay);
/* Take in records as far as possible. */
enum sim_state sim_replay_fill(struct sim_replay *replay);
u64 sim_replay_next_ns(const struct sim_replay *replay);
void sim_replay_send(struct sim_replay *replay);
bool sim_replay_over(const struct sim_replay *replay);
/* How long it took, and what it moved. */
void sim_replay_result(const struct sim_replay *replay,
		       struct sim_result *result);

#endif
