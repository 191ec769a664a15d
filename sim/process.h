/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes in a closed loop, to those above them: see process_state.h. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "cache.h"
#include "job.h"

struct sim_processes;

struct sim_processes *sim_processes_new(struct sim_block *block,
					struct sim_array *array);
void sim_processes_free(struct sim_processes *all);
u32 sim_processes_nr(const struct sim_processes *all);
void sim_process_add(struct sim_processes *all, const struct sim_job *job);
/* Of the one added last, as sim_set_places() says. */
int sim_process_places(struct sim_processes *all, u32 direction,
		       const u64 *end_unit, const u64 *below, u32 nr);

/* Whether any of the stage that has begun is not done. */
bool sim_processes_running(const struct sim_processes *all);
/* Start the next stage that has any; false: none is left. */
bool sim_processes_start(struct sim_processes *all);
/* Of the first that start: when results begin, if one has a ramp; else 0. */
u64 sim_processes_ramp_ends_ns(const struct sim_processes *all);
/* From the first start to the last end. */
u64 sim_processes_duration_ns(const struct sim_processes *all);
/* How far those in the foreground are, in millionths. */
u32 sim_processes_ppm(const struct sim_processes *all);

/* Below, @job is the number of a process. */

/* Who a scheduler that tells processes apart is told it is, just now. */
u64 sim_process_owner(const struct sim_processes *all, u32 job);
u32 sim_process_group(const struct sim_processes *all, u32 job);
void sim_process_waited(struct sim_processes *all, u32 job, u64 wait_ns);
/* Add what it saw of its reads and writes to @response. */
void sim_process_response(const struct sim_processes *all, u32 job,
			  struct histogram *response);
void sim_process_result(const struct sim_processes *all, u32 job,
			struct sim_job_result *result);

#endif
