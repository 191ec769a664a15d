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
#include <errno.h>
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

/* Rows of a log that grows, at first: for a lump of events. */
#define SIM_LOG_ROWS 65536

/* ---- setting up ---- */

int sim_set_curve(struct sim *sim, u32 disk, const u64 *distance_sectors,
		  const u64 *time_ns, u32 nr, char *why, u64 why_bytes)
{
	struct ss_curve_point point[SS_CURVE_POINTS];
	struct sim_disk *one = &sim->disk[disk];
	u32 i;

	for (i = 0; i < nr && i < SS_CURVE_POINTS; i++)
		point[i] = (struct ss_curve_point){ distance_sectors[i],
						    time_ns[i] };
	if (ss_curve_check(point, nr, why, why_bytes))
		return -1;
	for (i = 0; i < one->nr_heads; i++)
		if (ss_curve_set(&one->sched[i].curve, point, nr,
				 one->drive->params.capacity_sectors /
					 one->nr_heads))
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

static void free_disks(struct sim *sim)
{
	u32 i;

	for (i = 0; i < sim->nr_disks; i++)
		free(sim->disk[i].drive);
	free(sim->disk);
}

static int disk_init(const struct sim *sim, struct sim_disk *disk,
		     const struct sim_config *config,
		     const struct hdd_params *params, char *why, u64 why_bytes)
{
	const char *reason;

	disk->drive = sim_alloc(hdd_drive_bytes(params));
	if (hdd_drive_init(disk->drive, params, &reason)) {
		snprintf(why, why_bytes, "disk: %s", reason);
		return -1;
	}
	if (hdd_drive_set_queue_depth(disk->drive, config->queue_depth)) {
		snprintf(why, why_bytes,
			 "queue depth %u: this disk takes 1 to %u commands",
			 config->queue_depth, params->queue_depth);
		return -1;
	}
	if (sim_block_begin(sim, disk, config->policy, why, why_bytes))
		return -1;
	INIT_LIST_HEAD(&disk->pending);
	disk->wake_ns = U64_MAX;
	disk->busy_from_ns = U64_MAX;
	disk->last_job = U32_MAX;
	return 0;
}

struct sim *sim_new(const struct sim_config *config,
		    const struct hdd_params *const *disks, u32 nr_disks,
		    const struct sim_array_config *array, char *why,
		    u64 why_bytes)
{
	struct sim *sim = sim_alloc(sizeof(*sim));
	u32 i;

	sim->config = *config;
	sim->disk = sim_alloc(nr_disks * sizeof(*sim->disk));
	sim->nr_disks = nr_disks;
	if (check_config(config, why, why_bytes))
		goto fail;
	for (i = 0; i < nr_disks; i++)
		if (disk_init(sim, &sim->disk[i], config, disks[i], why,
			      why_bytes))
			goto fail;
	sim->capacity_sectors = disks[0]->capacity_sectors;
	if (array) {
		sim->array = sim_array_new(sim, array, why, why_bytes);
		if (!sim->array)
			goto fail;
		sim->capacity_sectors = sim_array_capacity(sim->array);
	}
	ss_workload_init(&sim->workload, sim->capacity_sectors);
	sim->pause_ns = U64_MAX;
	sim->first_start_ns = U64_MAX;
	sim->cache = sim_cache_new(sim);
	return sim;
fail:
	free_disks(sim);
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
	sim_array_free(sim->array);
	while (sim->slabs) {
		void *next = *(void **)sim->slabs;

		free(sim->slabs);
		sim->slabs = next;
	}
	free(sim->heap);
	free(sim->log);
	free_disks(sim);
	free(sim);
}

/* A scheduler that comes later may have it where the present one has not. */
static void keep_tuned(struct sim *sim, const char *name, u64 value)
{
	struct sim_tuned *tuned = sim->tuned;
	u32 i;

	for (i = 0; i < sim->nr_tuned; i++)
		if (!strcmp(tuned[i].name, name))
			break;
	if (i == SIM_MAX_TUNED || strlen(name) >= sizeof(tuned[i].name))
		return;
	strcpy(tuned[i].name, name);
	tuned[i].value = value;
	sim->nr_tuned = i == sim->nr_tuned ? i + 1 : sim->nr_tuned;
}

int sim_tune(struct sim *sim, const char *name, u64 value, char *why,
	     u64 why_bytes)
{
	int error = 0;

	sim_for_each_sched(sim, sched)
		error = error ?:
				ss_sched_tune(sched, name, value, sim->now_ns,
					      why, why_bytes);
	if (!error || error == -ENOENT)
		keep_tuned(sim, name, value);
	return error;
}

int sim_weigh(struct sim *sim, u64 owner, u64 weight)
{
	int error = 0;

	if (sim->nr_weights == SIM_MAX_WEIGHTS)
		return -ENOSPC;
	sim->weight[sim->nr_weights].owner = owner;
	sim->weight[sim->nr_weights++].percent = (u32)weight * 100;

	sim_for_each_sched(sim, sched)
		error = error ?: ss_sched_weigh(sched, owner, weight);
	return error;
}

int sim_add_job(struct sim *sim, const struct sim_job *job)
{
	if (job->pool >= SIM_MAX_POOLS || job->pool_threads > SIM_MAX_THREADS ||
	    !job->pool != !job->pool_threads)
		return -1;
	sim->process = realloc(sim->process,
			       (sim->nr_processes + 1) * sizeof(*sim->process));
	if (!sim->process)
		abort();
	sim->process[sim->nr_processes] = sim_process_new(sim, job,
							  sim->nr_processes);
	sim->nr_processes++;
	return 0;
}

int sim_set_places(struct sim *sim, u32 direction, const u64 *end_unit,
		   const u64 *below, u32 nr)
{
	if (!sim->nr_processes || direction > SS_WRITE || !nr)
		return -1;
	return sim_process_places(sim->process[sim->nr_processes - 1],
				  direction, end_unit, below, nr);
}

int sim_add_trace(struct sim *sim, struct trace_reader *reader,
		  u64 first_sector)
{
	if (!sim->replay)
		sim->replay = sim_replay_new(sim, sim_sources_new());
	return sim_sources_add(sim_replay_sources(sim->replay), reader,
			       first_sector);
}

u32 sim_trace_at(const struct sim *sim)
{
	return sim_sources_at(sim_replay_sources(sim->replay));
}

int sim_log(struct sim *sim, u64 capacity)
{
	sim->log_grows = !capacity;
	if (!capacity)
		capacity = SIM_LOG_ROWS;
	sim->log = calloc(capacity, sizeof(*sim->log));
	sim->log_capacity = sim->log ? capacity : 0;
	return sim->log ? 0 : -1;
}

void sim_log_clear(struct sim *sim)
{
	sim->log_rows = 0;
}

void sim_log_grow(struct sim *sim)
{
	sim->log_capacity *= 2;
	sim->log = realloc(sim->log, sim->log_capacity * sizeof(*sim->log));
	if (!sim->log)
		abort();
}

u64 sim_log_rows(const struct sim *sim, const struct sim_log_row **rows)
{
	*rows = sim->log;
	return sim->log_rows;
}

/* ---- running ---- */

/*
 * The results of the disk begin when those of the first process do, if that or
 * another one that starts with it has a ramp.
 */
static void ramp_disks(struct sim *sim)
{
	u64 from = U64_MAX;
	bool ramps = false;
	u32 i;

	if (sim->ramped)
		return;
	sim->ramped = true;
	for (i = 0; i < sim->nr_processes; i++) {
		from = min_t(u64, from,
			     sim_process_counts_from(sim->process[i]));
		if (sim_process_job(sim->process[i])->ramp_ns)
			ramps = true;
	}
	if (ramps && from > sim->now_ns && from != U64_MAX)
		sim_timer(sim, from, sim_begin_statistics, NULL);
}

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
	/* First all are counted: one may start another one. */
	for (i = 0; i < sim->nr_processes; i++)
		if (sim_process_job(sim->process[i])->stage == next) {
			if (!sim_process_job(sim->process[i])->background)
				sim->running++;
			sim_process_start(sim, sim->process[i]);
		}
	ramp_disks(sim);
	return true;
}

/*
 * A run ends here at the latest, in error. A wait that is added to an earlier
 * time then stays below 2^64 ns.
 */
#define SIM_END_NS (1ULL << 62)

static u64 next_time(const struct sim *sim)
{
	u64 at = U64_MAX;
	u32 i;

	for (i = 0; i < sim->nr_disks; i++) {
		u64 done = hdd_drive_next_ns(sim->disk[i].drive);

		at = min_t(u64, at, min_t(u64, done, sim->disk[i].wake_ns));
	}
	if (sim->nr_events && sim->heap[0].at_ns < at)
		at = sim->heap[0].at_ns;
	if (sim->replay) {
		u64 arrival = sim_replay_next_ns(sim->replay);

		if (arrival < at)
			at = arrival;
	}
	return at;
}

/*
 * What one member dispatches may be what another has waited for, so those are
 * asked again that ask for it meanwhile.
 */
static void ask_schedulers(struct sim *sim)
{
	bool again;
	u32 i;

	do {
		again = false;
		for (i = 0; i < sim->nr_disks; i++) {
			struct sim_disk *disk = &sim->disk[i];

			if (!disk->ask && disk->wake_ns > sim->now_ns)
				continue;
			sim_block_kick(sim, disk);
			again = true;
		}
	} while (again);
}

static u32 nr_pending(const struct sim *sim)
{
	u32 i, nr = 0;

	for (i = 0; i < sim->nr_disks; i++)
		nr += sim_block_pending(&sim->disk[i]);
	return nr;
}

/* Everything that happens at one time. */
static void step(struct sim *sim)
{
	u32 i;

	for (i = 0; i < sim->nr_disks; i++)
		if (hdd_drive_next_ns(sim->disk[i].drive) <= sim->now_ns)
			sim_block_completions(sim, &sim->disk[i]);
	while (sim->nr_events && sim->heap[0].at_ns <= sim->now_ns) {
		struct sim_event event = pop_event(sim);

		event.fn(sim, event.context);
	}
	if (sim->replay && sim_replay_next_ns(sim->replay) <= sim->now_ns)
		sim_replay_send(sim, sim->replay);
	ask_schedulers(sim);
}

static bool senders_done(struct sim *sim)
{
	if (sim->replay)
		return sim_replay_over(sim->replay);
	/* There may be nothing in a stage: others have ended its processes. */
	while (!sim->running)
		if (!start_stage(sim))
			return true;
	return false;
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
				nr_pending(sim));
			return SIM_FAILED;
		}
		if (sim->config.stop_ns && at > sim->config.stop_ns)
			return SIM_DONE;
		if (at > SIM_END_NS) {
			sim_fail(
				sim,
				"the run is not over after 146 years of virtual time, the most");
			return SIM_FAILED;
		}
		if (at > sim->pause_ns) {
			sim->now_ns = max_t(u64, sim->now_ns, sim->pause_ns);
			sim->pause_ns = U64_MAX;
			return SIM_PAUSED;
		}
		if (at > sim->now_ns)
			sim->now_ns = at;
		step(sim);
	}
	return sim->failed ? SIM_FAILED : SIM_MORE;
}

/* ---- watching, and changing the scheduler ---- */

void sim_pause_at(struct sim *sim, u64 at_ns)
{
	sim->pause_ns = at_ns;
}

void sim_observe(const struct sim *sim, struct sim_observation *observation)
{
	*observation = (struct sim_observation){
		.now_ns = sim->now_ns,
		.arrived = sim->workload.totals,
		.completed = sim->completed_before + sim->response.count,
		.response_ns = sim->response_before_ns + sim->response.sum_ns,
		.bytes = { sim->disk_bytes[0], sim->disk_bytes[1] },
		.switches = sim->changes,
		.draining_ns = sim->draining_ns,
	};
}

int sim_switch(struct sim *sim, const char *policy, char *why, u64 why_bytes)
{
	struct ss_sched *probe = sim_alloc(sizeof(*probe));
	int error = ss_sched_init(probe, policy, sim->capacity_sectors, why,
				  why_bytes);
	u32 i;

	free(probe);
	if (error)
		return -1;
	for (i = 0; i < sim->nr_disks; i++)
		sim_block_switch(sim, &sim->disk[i], policy);
	return 0;
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

u64 sim_capacity_sectors(const struct sim *sim)
{
	return sim->capacity_sectors;
}

u32 sim_progress_ppm(const struct sim *sim)
{
	u64 sum = 0;
	u32 i, nr = 0;

	for (i = 0; i < sim->nr_processes; i++) {
		if (sim_process_job(sim->process[i])->background)
			continue;
		sum += sim_process_ppm(sim, sim->process[i]);
		nr++;
	}
	return nr ? (u32)(sum / nr) : 0;
}

static void add_counters(const struct ss_counters *counters,
			 struct sim_result *result)
{
	result->dispatches += counters->dispatches;
	result->merges += counters->merges;
	result->seeks += counters->seeks;
	result->waits += counters->waits;
	result->hits += counters->hits;
	result->timeouts += counters->timeouts;
	result->second_chances += counters->second_chances;
	result->slices_ended += counters->slices_ended;
	result->expired += counters->expired;
	result->idle_ns += counters->idle_ns;
}

/* Everything that only grows, since the start. */
static void sum_up(const struct sim *sim, struct sim_result *result)
{
	u32 i;

	memset(result, 0, sizeof(*result));
	result->disk_bytes[0] = sim->disk_bytes[0];
	result->disk_bytes[1] = sim->disk_bytes[1];
	result->disk_requests = sim->disk_requests;
	result->switches = sim->switches;
	result->switch_ns = sim->switch_ns;
	result->position_ns = sim->position_ns;
	result->busy_ns = sim->busy_ns;
	memcpy(result->dispatched_by, sim->dispatched_by,
	       sizeof(sim->dispatched_by));
	memcpy(result->waited_ns_by, sim->waited_ns_by,
	       sizeof(sim->waited_ns_by));
	for (i = 0; i < sim->nr_disks; i++) {
		add_counters(&sim->disk[i].past, result);
		result->idle_ns -= sim->disk[i].flush_idle_ns;
		/* What has gone on since before a ramp's end counts in part. */
		if (sim->disk[i].busy_from_ns != U64_MAX)
			result->busy_ns += sim->now_ns -
					   sim->disk[i].busy_from_ns;
	}
	sim_for_each_sched(sim, sched)
		add_counters(&sched->counters, result);
	if (sim->array)
		sim_array_result(sim->array, result);
}

static void leave_out(struct sim_result *result, const struct sim_result *past)
{
	u32 why;

	result->disk_bytes[0] -= past->disk_bytes[0];
	result->disk_bytes[1] -= past->disk_bytes[1];
	result->disk_requests -= past->disk_requests;
	result->switches -= past->switches;
	result->switch_ns -= past->switch_ns;
	result->position_ns -= past->position_ns;
	result->busy_ns -= past->busy_ns;
	result->dispatches -= past->dispatches;
	result->merges -= past->merges;
	result->seeks -= past->seeks;
	result->waits -= past->waits;
	result->hits -= past->hits;
	result->timeouts -= past->timeouts;
	result->second_chances -= past->second_chances;
	result->slices_ended -= past->slices_ended;
	result->expired -= past->expired;
	result->idle_ns -= past->idle_ns;
	for (why = 0; why < SS_WHYS; why++) {
		result->dispatched_by[why] -= past->dispatched_by[why];
		result->waited_ns_by[why] -= past->waited_ns_by[why];
	}
	result->array_turns -= past->array_turns;
	result->array_slices_ended -= past->array_slices_ended;
	result->array_established -= past->array_established;
}

void sim_begin_statistics(struct sim *sim, void *unused)
{
	(void)unused;
	sum_up(sim, &sim->left_out);
	/* Whoever watches (a chooser of schedulers) has seen these. */
	sim->completed_before = sim->response.count;
	sim->response_before_ns = sim->response.sum_ns;
	memset(&sim->wait, 0, sizeof(sim->wait));
	memset(&sim->service, 0, sizeof(sim->service));
	memset(&sim->response, 0, sizeof(sim->response));
	sim->max_pending = 0;
}

void sim_result(const struct sim *sim, struct sim_result *result)
{
	struct sim_job_result job;
	u32 i;

	sum_up(sim, result);
	leave_out(result, &sim->left_out);
	if (sim->first_start_ns != U64_MAX)
		result->duration_ns = sim->last_end_ns - sim->first_start_ns;
	for (i = 0; i < sim->nr_processes; i++) {
		sim_process_result(sim->process[i], &job);
		result->process_bytes[0] += job.bytes[0];
		result->process_bytes[1] += job.bytes[1];
	}
	result->process_bytes[0] += sim->replay_bytes[0];
	result->process_bytes[1] += sim->replay_bytes[1];
	histogram_times(&sim->wait, &result->wait);
	histogram_times(&sim->service, &result->service);
	histogram_times(&sim->response, &result->response);
	result->max_pending = sim->max_pending;
}

u32 sim_histogram(const struct sim *sim, enum sim_histogram which,
		  struct sim_bucket buckets[SIM_MAX_BUCKETS])
{
	const struct histogram *const all[SIM_HISTOGRAMS] = {
		[SIM_HISTOGRAM_WAIT] = &sim->wait,
		[SIM_HISTOGRAM_SERVICE] = &sim->service,
		[SIM_HISTOGRAM_RESPONSE] = &sim->response,
	};

	return histogram_buckets(all[which], buckets);
}

u32 sim_job_histogram(const struct sim *sim, u32 job,
		      struct sim_bucket buckets[SIM_MAX_BUCKETS])
{
	struct histogram *response = sim_alloc(sizeof(*response));
	u32 nr;

	sim_process_response(sim->process[job], response);
	nr = histogram_buckets(response, buckets);
	free(response);
	return nr;
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
