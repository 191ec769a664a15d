// SPDX-License-Identifier: GPL-2.0-only
/*
 * The simulation: what happens when, and the interface.
 *
 * Time jumps from event to event. Of several at one time the disk's
 * completions come first, then timers in the order of their creation, then
 * the trace's arrivals; when all are done the scheduler is asked. Nothing
 * depends on addresses, on the machine's clock or on floating point, so the
 * same inputs give the same outputs bit for bit.
 *
 * One direction: who sends (process.h, replay.h) stands above the page cache
 * (cache.h), that above the storage (array.h) and its disks (block.h), all
 * above the clock (clock.h). Those below call back by what they were given.
 */
#include "sim.h"

#include "block_note.h"
#include "block_switch.h"
#include "foreign.h"
#include "process.h"
#include "replay.h"

#include <errno.h>
#include <string.h>

/* What sim_weigh() has set; as many as policies take. */
struct sim_weight {
	u64 owner;
	u32 percent;
};

#define SIM_MAX_WEIGHTS 128

struct sim {
	struct sim_config config;
	struct sim_clock clock;
	struct sim_block block;
	struct sim_array *array;
	struct sim_processes *processes;
	struct sim_replay *replay; /* NULL: processes are who sends */
	struct sim_weight weight[SIM_MAX_WEIGHTS];
	u32 nr_weights;
	u64 pause_ns; /* U64_MAX: never */
	bool ramped; /* the results begin when the first ramp is over */
	struct sim_result left_out; /* sums until then */
	u64 completed_before, response_before_ns; /* of the same */
};

/* ---- setting up ---- */

int sim_set_curve(struct sim *sim, u32 disk, const u64 *distance_sectors,
		  const u64 *time_ns, u32 nr, char *why, u64 why_bytes)
{
	struct ss_curve_point point[SS_CURVE_POINTS];
	struct sim_disk *one = &sim->block.disk[disk];
	u32 i;

	for (i = 0; i < nr && i < SS_CURVE_POINTS; i++)
		point[i] = (struct ss_curve_point){ distance_sectors[i],
						    time_ns[i] };
	if (ss_curve_check(point, nr, why, why_bytes))
		return -1;
	for (i = 0; i < one->heads.nr; i++)
		if (ss_curve_set(&one->sched[i].curve, point, nr,
				 one->drive->params.capacity_sectors /
					 one->heads.nr))
			return -1;
	return 0;
}

static int check_config(const struct sim_config *config, char *why,
			u64 why_bytes)
{
	if (!config->nr_requests || !config->max_request_sectors ||
	    config->owners > SIM_OWNERS_NONE) {
		snprintf(
			why, why_bytes,
			"nr_requests and max_request_sectors must be at least 1");
		return -1;
	}
	return 0;
}

static bool is_process(const struct sim *sim, u32 job)
{
	return job < sim_processes_nr(sim->processes);
}

static u64 owner_of(const struct sim *sim, u32 job)
{
	switch (sim->config.owners) {
	case SIM_OWNERS_PROCESS:
		if (is_process(sim, job))
			return sim_process_owner(sim->processes, job);
		return (u64)job + 1;
	case SIM_OWNERS_GROUP:
		if (is_process(sim, job))
			return (u64)sim_process_group(sim->processes, job) + 1;
		if (sim->replay)
			job = sim_sources_group(sim_replay_sources(sim->replay),
						job);
		return (u64)job + 1;
	default:
		return SS_OWNER_NONE;
	}
}

/* Who a scheduler is told sent it; the weight is known of hidden ones, too. */
static u64 owner(void *context, u32 job, u32 *weight)
{
	const struct sim *sim = context;
	u64 told = owner_of(sim, job), owner = told;
	u32 i;

	if (owner == SS_OWNER_NONE && is_process(sim, job))
		owner = (u64)sim_process_group(sim->processes, job) + 1;
	for (i = 0; i < sim->nr_weights; i++)
		if (sim->weight[i].owner == owner) {
			*weight = sim->weight[i].percent;
			break;
		}
	return told;
}

static void waited(void *context, u32 job, u64 wait_ns)
{
	const struct sim *sim = context;

	if (is_process(sim, job))
		sim_process_waited(sim->processes, job, wait_ns);
}

struct sim *sim_new(const struct sim_config *config,
		    const struct hdd_params *const *disks, u32 nr_disks,
		    const struct sim_array_config *array, char *why,
		    u64 why_bytes)
{
	struct sim *sim = sim_alloc(sizeof(*sim));

	sim->config = *config;
	sim->pause_ns = U64_MAX;
	sim->block.config = &sim->config;
	sim->block.clock = &sim->clock;
	sim->block.senders = (struct sim_senders){ sim, owner, waited };
	if (check_config(config, why, why_bytes) ||
	    sim_block_init(&sim->block, disks, nr_disks, why, why_bytes))
		goto fail;
	sim->array = sim_array_new(&sim->block, array, why, why_bytes);
	if (!sim->array)
		goto fail;
	sim->processes = sim_processes_new(&sim->block, sim->array);
	return sim;
fail:
	sim_free(sim);
	return NULL;
}

void sim_free(struct sim *sim)
{
	if (!sim)
		return;
	sim_processes_free(sim->processes);
	sim_replay_free(sim->replay);
	sim_array_free(sim->array);
	sim_block_free(&sim->block);
	free(sim->clock.heap);
	free(sim);
}

void sim_set_foreign(struct sim *sim, u32 disk, struct sim_foreign *foreign)
{
	sim_foreign_begin(&sim->block.disk[disk].sched[0], foreign,
			  &sim->clock);
}

int sim_tune(struct sim *sim, const char *name, u64 value, char *why,
	     u64 why_bytes)
{
	return sim_block_tune(&sim->block, name, value, why, why_bytes);
}

int sim_weigh(struct sim *sim, u64 owner, u64 weight)
{
	int error = 0;

	if (sim->nr_weights == SIM_MAX_WEIGHTS)
		return -ENOSPC;
	sim->weight[sim->nr_weights].owner = owner;
	sim->weight[sim->nr_weights++].percent = (u32)weight * 100;

	sim_for_each_sched(&sim->block, sched)
		error = error ?: ss_sched_weigh(sched, owner, weight);
	return error;
}

int sim_add_job(struct sim *sim, const struct sim_job *job)
{
	if (job->pool >= SIM_MAX_POOLS || job->pool_threads > SIM_MAX_THREADS ||
	    !job->pool != !job->pool_threads)
		return -1;
	sim_process_add(sim->processes, job);
	return 0;
}

int sim_set_places(struct sim *sim, u32 direction, const u64 *end_unit,
		   const u64 *below, u32 nr)
{
	if (!sim_nr_jobs(sim) || direction > SS_WRITE || !nr)
		return -1;
	return sim_process_places(sim->processes, direction, end_unit, below,
				  nr);
}

int sim_add_trace(struct sim *sim, struct trace_reader *reader,
		  u64 first_sector)
{
	if (!sim->replay)
		sim->replay = sim_replay_new(&sim->block, sim->array);
	return sim_sources_add(sim_replay_sources(sim->replay), reader,
			       first_sector);
}

u32 sim_trace_at(const struct sim *sim)
{
	return sim_sources_at(sim_replay_sources(sim->replay));
}

int sim_log(struct sim *sim, u64 capacity)
{
	return sim_block_log(&sim->block, capacity);
}

void sim_log_clear(struct sim *sim)
{
	sim->block.log_rows = 0;
}

u64 sim_log_rows(const struct sim *sim, const struct sim_log_row **rows)
{
	*rows = sim->block.log;
	return sim->block.log_rows;
}

/* ---- running ---- */

/* Everything that only grows, since the start. */
static void sum_up(const struct sim *sim, struct sim_result *result)
{
	sim_block_sums(&sim->block, result);
	sim_array_sums(sim->array, result);
}

/* What was until now is left out of the results. */
static void begin_statistics(void *context)
{
	struct sim *sim = context;
	struct sim_block *block = &sim->block;

	sum_up(sim, &sim->left_out);
	/* Whoever watches (a chooser of schedulers) has seen these. */
	sim->completed_before = block->response.count;
	sim->response_before_ns = block->response.sum_ns;
	memset(&block->wait, 0, sizeof(block->wait));
	memset(&block->service, 0, sizeof(block->service));
	memset(&block->response, 0, sizeof(block->response));
	block->sums.max_pending = 0;
}

/*
 * The results of the disk begin when those of the first process do, if that or
 * another one that starts with it has a ramp.
 */
static void ramp_disks(struct sim *sim)
{
	u64 from = sim_processes_ramp_ends_ns(sim->processes);

	if (!sim->ramped && from > sim->clock.now_ns)
		sim_timer(&sim->clock, from, begin_statistics, sim);
	sim->ramped = true;
}

/*
 * A run ends here at the latest, in error. A wait that is added to an earlier
 * time then stays below 2^64 ns.
 */
#define SIM_END_NS (1ULL << 62)

static u64 next_time(const struct sim *sim)
{
	u64 at = min_t(u64, sim_block_next_ns(&sim->block),
		       sim_timer_next_ns(&sim->clock));

	if (sim->replay)
		at = min_t(u64, at, sim_replay_next_ns(sim->replay));
	return at;
}

static u32 nr_pending(const struct sim_block *block)
{
	u32 i, nr = 0;

	for (i = 0; i < block->nr_disks; i++)
		nr += sim_block_pending(&block->disk[i]);
	return nr;
}

/* Everything that happens at one time. */
static void step(struct sim *sim)
{
	sim_block_completions(&sim->block);
	sim_timers_run(&sim->clock);
	if (sim->replay && sim_replay_next_ns(sim->replay) <= sim->clock.now_ns)
		sim_replay_send(sim->replay);
	sim_block_kick(&sim->block);
}

static bool senders_done(struct sim *sim)
{
	if (sim->replay)
		return sim_replay_over(sim->replay);
	/* There may be nothing in a stage: others have ended its processes. */
	while (!sim_processes_running(sim->processes)) {
		if (!sim_processes_start(sim->processes))
			return true;
		ramp_disks(sim);
	}
	return false;
}

enum sim_state sim_run(struct sim *sim, u64 max_events)
{
	struct sim_clock *clock = &sim->clock;
	u64 i;

	for (i = 0; i < max_events; i++) {
		u64 at;

		if (clock->failed)
			return SIM_FAILED;
		if (sim->replay) {
			enum sim_state state = sim_replay_fill(sim->replay);

			if (state != SIM_MORE)
				return state;
		}
		if (senders_done(sim))
			return SIM_DONE;
		at = next_time(sim);
		if (at == U64_MAX) {
			sim_fail(
				clock,
				"nothing left to happen at %llu ns, with %u requests pending",
				(unsigned long long)clock->now_ns,
				nr_pending(&sim->block));
			return SIM_FAILED;
		}
		if (sim->config.stop_ns && at > sim->config.stop_ns)
			return SIM_DONE;
		if (at > SIM_END_NS) {
			sim_fail(
				clock,
				"the run is not over after 146 years of virtual time, the most");
			return SIM_FAILED;
		}
		if (at > sim->pause_ns) {
			clock->now_ns = max_t(u64, clock->now_ns,
					      sim->pause_ns);
			sim->pause_ns = U64_MAX;
			return SIM_PAUSED;
		}
		if (at > clock->now_ns)
			clock->now_ns = at;
		step(sim);
	}
	return clock->failed ? SIM_FAILED : SIM_MORE;
}

/* ---- watching, and changing the scheduler ---- */

void sim_pause_at(struct sim *sim, u64 at_ns)
{
	sim->pause_ns = at_ns;
}

void sim_observe(const struct sim *sim, struct sim_observation *observation)
{
	const struct sim_block *block = &sim->block;

	*observation = (struct sim_observation){
		.now_ns = sim->clock.now_ns,
		.arrived = *sim_array_arrived(sim->array),
		.completed = sim->completed_before + block->response.count,
		.response_ns = sim->response_before_ns + block->response.sum_ns,
		.bytes = { block->sums.disk_bytes[0],
			   block->sums.disk_bytes[1] },
		.switches = block->changes,
		.draining_ns = block->draining_ns,
	};
}

int sim_switch(struct sim *sim, const char *policy, char *why, u64 why_bytes)
{
	struct ss_sched *probe = sim_alloc(sizeof(*probe));
	int error = ss_sched_init(probe, policy, sim_capacity_sectors(sim), why,
				  why_bytes);

	free(probe);
	if (error)
		return -1;
	sim_block_switch(&sim->block, policy);
	return 0;
}

/* ---- results ---- */

const char *sim_why(const struct sim *sim)
{
	return sim->clock.why;
}

u64 sim_now_ns(const struct sim *sim)
{
	return sim->clock.now_ns;
}

u64 sim_capacity_sectors(const struct sim *sim)
{
	return sim_array_capacity(sim->array);
}

u32 sim_progress_ppm(const struct sim *sim)
{
	return sim_processes_ppm(sim->processes);
}

/* Its sums, which are all from @disk_bytes on. */
static void leave_out(struct sim_result *result, const struct sim_result *past)
{
	const size_t from = offsetof(struct sim_result, disk_bytes);
	const u64 *less = (const u64 *)((const char *)past + from);
	u64 *sum = (u64 *)((char *)result + from);

	while (sum < (u64 *)(result + 1))
		*sum++ -= *less++;
}

void sim_result(const struct sim *sim, struct sim_result *result)
{
	const struct sim_block *block = &sim->block;
	struct sim_job_result job;
	u32 i;

	sum_up(sim, result);
	leave_out(result, &sim->left_out);
	result->duration_ns = sim_processes_duration_ns(sim->processes);
	if (sim->replay)
		sim_replay_result(sim->replay, result);
	for (i = 0; i < sim_nr_jobs(sim); i++) {
		sim_job_result(sim, i, &job);
		result->process_bytes[0] += job.bytes[0];
		result->process_bytes[1] += job.bytes[1];
	}
	histogram_times(&block->wait, &result->wait);
	histogram_times(&block->service, &result->service);
	histogram_times(&block->response, &result->response);
}

u32 sim_histogram(const struct sim *sim, enum sim_histogram which,
		  struct sim_bucket buckets[SIM_MAX_BUCKETS])
{
	const struct histogram *const all[SIM_HISTOGRAMS] = {
		[SIM_HISTOGRAM_WAIT] = &sim->block.wait,
		[SIM_HISTOGRAM_SERVICE] = &sim->block.service,
		[SIM_HISTOGRAM_RESPONSE] = &sim->block.response,
	};

	return histogram_buckets(all[which], buckets);
}

u32 sim_job_histogram(const struct sim *sim, u32 job,
		      struct sim_bucket buckets[SIM_MAX_BUCKETS])
{
	struct histogram *response = sim_alloc(sizeof(*response));
	u32 nr;

	sim_process_response(sim->processes, job, response);
	nr = histogram_buckets(response, buckets);
	free(response);
	return nr;
}

u32 sim_nr_jobs(const struct sim *sim)
{
	return sim_processes_nr(sim->processes);
}

void sim_job_result(const struct sim *sim, u32 job,
		    struct sim_job_result *result)
{
	sim_process_result(sim->processes, job, result);
}
