// SPDX-License-Identifier: GPL-2.0-only
/*
 * The simulator's clock, and its interface.
 *
 * Time jumps from event to event. Of several at one time the disk's
 * completions come first, then timers in the order of their creation, then
 * the trace's arrivals; when all are done the scheduler is asked. Nothing
 * depends on addresses, on the machine's clock or on floating point, so the
 * same inputs give the same outputs bit for bit.
 */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *sim_alloc(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory) {
		fprintf(stderr, "streamsched: out of memory (%zu bytes)\n",
			bytes);
		abort();
	}
	return memory;
}

int sim_fail(struct sim *sim, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sim->why, sizeof(sim->why), format, arguments);
	va_end(arguments);
	sim->failed = true;
	return -1;
}

/* ---- timers: a binary heap by time, then by order of creation ---- */

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void sim_timer(struct sim *sim, u64 at_ns, sim_timer_fn fn, void *context)
{
	struct sim_event event = { at_ns, sim->next_order++, fn, context };
	u32 at = sim->nr_events++;

	if (at == sim->heap_size) {
		sim->heap_size = sim->heap_size ? 2 * sim->heap_size : 64;
		sim->heap = realloc(sim->heap,
				    sim->heap_size * sizeof(*sim->heap));
		if (!sim->heap)
			abort();
	}
	while (at && earlier(&event, &sim->heap[(at - 1) / 2])) {
		sim->heap[at] = sim->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	sim->heap[at] = event;
}

static struct sim_event pop_event(struct sim *sim)
{
	struct sim_event first = sim->heap[0];
	struct sim_event last = sim->heap[--sim->nr_events];
	u32 at = 0, child;

	while ((child = 2 * at + 1) < sim->nr_events) {
		if (child + 1 < sim->nr_events &&
		    earlier(&sim->heap[child + 1], &sim->heap[child]))
			child++;
		if (!earlier(&sim->heap[child], &last))
			break;
		sim->heap[at] = sim->heap[child];
		at = child;
	}
	sim->heap[at] = last;
	return first;
}

/* ---- setting up ---- */

static int set_curve(struct sim *sim, const struct sim_config *config,
		     u64 span_sectors)
{
	struct ss_curve_point point[SS_CURVE_POINTS];
	u32 i;

	if (!config->nr_curve_points)
		return 0;
	if (config->nr_curve_points > SS_CURVE_POINTS)
		return -1;
	for (i = 0; i < config->nr_curve_points; i++)
		point[i] = (struct ss_curve_point){
			config->curve_distance_sectors[i],
			config->curve_time_ns[i]
		};
	return ss_curve_set(&sim->sched.curve, point, config->nr_curve_points,
			    span_sectors);
}

struct sim *sim_new(const struct sim_config *config,
		    const struct hdd_params *disk, char *why, u64 why_bytes)
{
	struct sim *sim = sim_alloc(sizeof(*sim));
	const char *reason;

	sim->config = *config;
	if (hdd_init(&sim->hdd, disk, &reason)) {
		snprintf(why, why_bytes, "disk: %s", reason);
		goto fail;
	}
	if (!config->nr_requests || !config->max_request_sectors ||
	    config->owners > SIM_OWNERS_NONE) {
		snprintf(
			why, why_bytes,
			"nr_requests and max_request_sectors must be at least 1");
		goto fail;
	}
	if (config->queue_depth < 1 || config->queue_depth > 32) {
		snprintf(why, why_bytes,
			 "queue depth %u: a disk takes 1 to 32 commands",
			 config->queue_depth);
		goto fail;
	}
	hdd_set_queue_depth(&sim->hdd, config->queue_depth);
	if (ss_sched_init(&sim->sched, config->policy, disk->capacity_sectors,
			  why, why_bytes))
		goto fail;
	if (set_curve(sim, config, disk->capacity_sectors)) {
		snprintf(
			why, why_bytes,
			"service-time curve: distances must ascend from 0 and times must not fall");
		goto fail;
	}
	sim->wake_ns = U64_MAX;
	sim->disk_busy_from_ns = U64_MAX;
	sim->last_job = U32_MAX;
	sim->first_start_ns = U64_MAX;
	sim->cache = sim_cache_new(sim);
	return sim;
fail:
	free(sim);
	return NULL;
}

void sim_free(struct sim *sim)
{
	u32 i;

	if (!sim)
		return;
	for (i = 0; i < sim->nr_processes; i++)
		sim_process_free(sim->process[i]);
	free(sim->process);
	sim_replay_free(sim->replay);
	sim_cache_free(sim->cache);
	while (sim->slabs) {
		void *next = *(void **)sim->slabs;

		free(sim->slabs);
		sim->slabs = next;
	}
	free(sim->heap);
	free(sim->log);
	free(sim);
}

int sim_tune(struct sim *sim, const char *name, u64 value, char *why,
	     u64 why_bytes)
{
	return ss_sched_tune(&sim->sched, name, value, sim->now_ns, why,
			     why_bytes);
}

int sim_weigh(struct sim *sim, u64 owner, u64 weight)
{
	return ss_sched_weigh(&sim->sched, owner, weight);
}

int sim_add_job(struct sim *sim, const struct sim_job *job)
{
	sim->process = realloc(sim->process,
			       (sim->nr_processes + 1) * sizeof(*sim->process));
	if (!sim->process)
		abort();
	sim->process[sim->nr_processes] = sim_process_new(job,
							  sim->nr_processes);
	sim->nr_processes++;
	return 0;
}

int sim_set_trace(struct sim *sim, struct trace_reader *reader)
{
	sim->replay = sim_replay_new(sim, reader);
	return 0;
}

int sim_log(struct sim *sim, u64 capacity)
{
	sim->log = calloc(capacity, sizeof(*sim->log));
	sim->log_capacity = sim->log ? capacity : 0;
	return sim->log ? 0 : -1;
}

u64 sim_log_rows(const struct sim *sim, const struct sim_log_row **rows)
{
	*rows = sim->log;
	return sim->log_rows;
}

/* ---- running ---- */

/* Start the processes of the next stage that has any; false: none is left. */
static bool start_stage(struct sim *sim)
{
	u32 i, next = U32_MAX;

	for (i = 0; i < sim->nr_processes; i++) {
		u32 stage = sim_process_job(sim->process[i])->stage;

		if (stage >= sim->stage && stage < next)
			next = stage;
	}
	if (next == U32_MAX)
		return false;
	sim->stage = next + 1;
	for (i = 0; i < sim->nr_processes; i++)
		if (sim_process_job(sim->process[i])->stage == next) {
			sim->running++;
			sim_process_start(sim, sim->process[i]);
		}
	return true;
}

static u64 next_time(const struct sim *sim)
{
	u64 at = hdd_next_ns(&sim->hdd);

	if (sim->nr_events && sim->heap[0].at_ns < at)
		at = sim->heap[0].at_ns;
	if (sim->wake_ns < at)
		at = sim->wake_ns;
	if (sim->replay) {
		u64 arrival = sim_replay_next_ns(sim->replay);

		if (arrival < at)
			at = arrival;
	}
	return at;
}

/* Everything that happens at one time. */
static void step(struct sim *sim)
{
	if (hdd_next_ns(&sim->hdd) <= sim->now_ns)
		sim_block_completions(sim);
	while (sim->nr_events && sim->heap[0].at_ns <= sim->now_ns) {
		struct sim_event event = pop_event(sim);

		event.fn(sim, event.context);
	}
	if (sim->replay && sim_replay_next_ns(sim->replay) <= sim->now_ns)
		sim_replay_send(sim, sim->replay);
	if (sim->ask || sim->wake_ns <= sim->now_ns)
		sim_block_kick(sim);
}

static bool senders_done(struct sim *sim)
{
	if (sim->replay)
		return sim_replay_over(sim->replay);
	return !sim->running && !start_stage(sim);
}

enum sim_state sim_run(struct sim *sim, u64 max_events)
{
	u64 i;

	for (i = 0; i < max_events; i++) {
		u64 at;

		if (sim->failed)
			return SIM_FAILED;
		if (sim->replay) {
			enum sim_state state = sim_replay_fill(sim,
							       sim->replay);

			if (state != SIM_MORE)
				return state;
		}
		if (senders_done(sim))
			return SIM_DONE;
		at = next_time(sim);
		if (at == U64_MAX) {
			sim_fail(
				sim,
				"nothing left to happen at %llu ns, with %u requests pending",
				(unsigned long long)sim->now_ns,
				sim->sched.nr_pending);
			return SIM_FAILED;
		}
		if (sim->config.stop_ns && at > sim->config.stop_ns)
			return SIM_DONE;
		if (at > sim->now_ns)
			sim->now_ns = at;
		step(sim);
	}
	return sim->failed ? SIM_FAILED : SIM_MORE;
}

/* ---- results ---- */

const char *sim_why(const struct sim *sim)
{
	return sim->why;
}

u64 sim_now_ns(const struct sim *sim)
{
	return sim->now_ns;
}

u32 sim_progress_ppm(const struct sim *sim)
{
	u64 done = 0, all = 0;
	u32 i;

	for (i = 0; i < sim->nr_processes; i++) {
		const struct sim_job *job = sim_process_job(sim->process[i]);

		if (job->time_based) {
			u64 part = sim->now_ns < job->runtime_ns ?
					   sim->now_ns :
					   job->runtime_ns;

			done += part / 1000;
			all += job->runtime_ns / 1000;
		} else {
			done += sim_process_moved(sim->process[i]);
			all += job->io_bytes;
		}
	}
	if (!all)
		return 0;
	return done >= all ? 1000000 :
			     (u32)((unsigned __int128)done * 1000000 / all);
}

void sim_result(const struct sim *sim, struct sim_result *result)
{
	const struct ss_counters *counters = &sim->sched.counters;
	struct sim_job_result job;
	u32 i;

	memset(result, 0, sizeof(*result));
	if (sim->first_start_ns != U64_MAX)
		result->duration_ns = sim->last_end_ns - sim->first_start_ns;
	for (i = 0; i < sim->nr_processes; i++) {
		sim_process_result(sim->process[i], &job);
		result->process_bytes[0] += job.bytes[0];
		result->process_bytes[1] += job.bytes[1];
	}
	result->process_bytes[0] += sim->replay_bytes[0];
	result->process_bytes[1] += sim->replay_bytes[1];
	result->disk_bytes[0] = sim->disk_bytes[0];
	result->disk_bytes[1] = sim->disk_bytes[1];
	result->disk_requests = sim->disk_requests;
	histogram_times(&sim->wait, &result->wait);
	histogram_times(&sim->service, &result->service);
	histogram_times(&sim->response, &result->response);
	result->switches = sim->switches;
	result->switch_ns = sim->switch_ns;
	result->position_ns = sim->position_ns;
	result->busy_ns = sim->busy_ns;
	result->max_pending = sim->max_pending;
	result->dispatches = counters->dispatches;
	result->merges = counters->merges;
	result->seeks = counters->seeks;
	result->waits = counters->waits;
	result->hits = counters->hits;
	result->timeouts = counters->timeouts;
	result->second_chances = counters->second_chances;
	result->slices_ended = counters->slices_ended;
	result->expired = counters->expired;
	result->idle_ns = counters->idle_ns - sim->flush_idle_ns;
}

u32 sim_nr_jobs(const struct sim *sim)
{
	return sim->nr_processes;
}

void sim_job_result(const struct sim *sim, u32 job,
		    struct sim_job_result *result)
{
	sim_process_result(sim->process[job], result);
}
