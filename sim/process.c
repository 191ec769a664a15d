// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process in a closed loop: it wants a block, waits for it, thinks, wants
 * the next. What it wants follows fio's rules (fio 3.33, HOWTO and io_u.c).
 *
 * CPU time is spent in lumps: a process runs ahead of the clock as long as
 * nobody else can notice, and lets the clock catch up (with a timer) before
 * it sends anything or goes to sleep.
 *
 * What fio has no word for comes with it: files one after the other, each
 * perhaps by a process of its own; barriers; threads that do the work of
 * others; and a process that stops just when the disk waits for it.
 */
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Run ahead of the clock by at most this much. */
#define AHEAD_NS (1 * SS_MSEC)
/* How often a stalling process looks whether the disk has gone on. */
#define STALL_LOOK_NS (100 * SS_USEC)

static void run(struct sim *sim, void *context);

void process_open_file(struct sim_process *p, const struct sim *sim)
{
	p->ra = (struct readahead){
		.previous = U64_MAX,
		.max = p->job.readahead_pages == SIM_READAHEAD_SAME ?
			       sim->config.readahead_pages :
			       p->job.readahead_pages,
		.first = p->job.first_window_pages,
		.maps = p->job.maps,
		.file_page = (p->job.nr_file_splits ? p->file_at :
						      file_begin(p)) /
			     PAGE_BYTES,
	};
}

struct sim_process *sim_process_new(const struct sim *sim,
				    const struct sim_job *job, u32 index)
{
	struct sim_process *p = sim_alloc(sizeof(*p));

	p->job = *job;
	p->index = index;
	p->seed = job->seed;
	p->owner = (u64)index + 1;
	p->thread = NO_THREAD;
	p->in_order = job->random_every; /* the first one is elsewhere */
	p->slot = sim_alloc(job->iodepth * sizeof(*p->slot));
	process_open_file(p, sim);
	if (job->group_bytes)
		p->group_filled = sim_alloc(job->size / job->group_bytes *
					    sizeof(u64));
	if ((job->rw & SIM_RW_RANDOM) && !job->norandommap) {
		u64 range = job->zone_size    ? job->zone_range :
			    job->nr_files > 1 ? job->file_size :
						job->size;

		p->map_units = range / job->align_bytes;
		if (job->nr_files <= 1)
			p->map = sim_alloc((p->map_units + 63) / 64 *
					   sizeof(u64));
	}
	if (job->nr_files > 1)
		process_new_files(p);
	return p;
}

void sim_process_free(struct sim_process *p)
{
	if (p->file)
		process_free_files(p);
	else
		free(p->map);
	free(p->places[0].end_unit);
	free(p->places[0].below);
	free(p->places[1].end_unit);
	free(p->places[1].below);
	free(p->group_filled);
	free(p->slot);
	free(p);
}

const struct sim_job *sim_process_job(const struct sim_process *p)
{
	return &p->job;
}

/*
 * Numbers of first processes are small; those of pools' threads and of
 * processes that come later begin far above.
 */
u64 sim_process_owner(const struct sim_process *p)
{
	if (p->thread != NO_THREAD)
		return 1ULL << 32 | (u64)p->job.pool << 16 | p->thread;
	return p->owner;
}

static u64 ppm(u64 done, u64 all)
{
	return done >= all ? PPM : (u64)((unsigned __int128)done * PPM / all);
}

u64 sim_process_ppm(const struct sim *sim, const struct sim_process *p)
{
	const struct sim_job *job = &p->job;
	u64 moved = p->moved[0] + p->moved[1], bytes, time = 0;

	if (p->step == STEP_DONE)
		return PPM;
	if (!p->started || sim->now_ns < p->begin_ns)
		return 0;
	bytes = job->time_based ? 0 : ppm(moved, job->io_bytes);
	if (job->runtime_ns)
		time = ppm(sim->now_ns - p->begin_ns +
				   (p->ramping ? 0 : job->ramp_ns),
			   job->ramp_ns + job->runtime_ns);
	return max_t(u64, bytes, time);
}

void sim_process_note_wait(struct sim_process *p, u64 wait_ns)
{
	histogram_add(&p->wait, wait_ns);
}

void sim_process_response(const struct sim_process *p,
			  struct histogram *response)
{
	histogram_join(response, &p->latency[0]);
	histogram_join(response, &p->latency[1]);
}

void sim_process_result(const struct sim_process *p,
			struct sim_job_result *result)
{
	struct histogram *response = sim_alloc(sizeof(*response));
	u32 dir;

	memset(result, 0, sizeof(*result));
	sim_process_response(p, response);
	histogram_times(response, &result->response);
	free(response);
	for (dir = 0; dir < 2; dir++) {
		result->bytes[dir] = p->moved[dir];
		result->blocks[dir] = p->blocks[dir];
		histogram_times(&p->latency[dir], &result->latency[dir]);
	}
	result->start_ns = p->begin_ns;
	result->end_ns = p->end_ns;
	histogram_times(&p->wait, &result->wait);
}

void process_run_at(struct sim *sim, struct sim_process *p, u64 at_ns)
{
	p->timed = true;
	p->cpu_ns = 0;
	sim_timer(sim, at_ns, run, p);
}

/* ---- doing it ---- */

/* A thread of the pool takes the next block: any that is free. */
static void take_thread(struct sim *sim, struct sim_process *p)
{
	u64 *busy = &sim->pool_busy[p->job.pool];
	u32 nr = p->job.pool_threads;

	if (!nr)
		return;
	p->thread = (u32)sim_random_below(&sim->pool_seed, nr);
	while (nr-- && (*busy >> p->thread & 1))
		p->thread = (p->thread + 1) % p->job.pool_threads;
	*busy |= 1ULL << p->thread;
}

static void free_thread(struct sim *sim, const struct sim_process *p,
			u32 thread)
{
	if (thread != NO_THREAD)
		sim->pool_busy[p->job.pool] &= ~(1ULL << thread);
}

static void block_done(struct sim *sim, struct sim_process *p, u8 dir,
		       u32 bytes, u64 start_ns, u64 end_ns)
{
	p->moved[dir] += bytes;
	p->blocks[dir]++;
	histogram_add(&p->latency[dir], end_ns - start_ns);
	p->end_ns = end_ns;
	if (end_ns > sim->last_end_ns)
		sim->last_end_ns = end_ns;
	if (dir == SS_WRITE && p->job.fsync_blocks &&
	    ++p->writes_to_sync >= p->job.fsync_blocks) {
		p->writes_to_sync = 0;
		p->one_synced = p->job.nr_files > 1;
		p->step = STEP_SYNC;
	}
	p->blocks_to_barrier++;
	p->blocks_to_stall++;
}

static void direct_bio_done(struct sim *sim, struct sim_bio *bio)
{
	struct sim_process *p = bio->context;
	struct slot *slot = &p->slot[bio->context_number];
	u64 until;

	if (--slot->bios_left)
		return;
	p->in_flight--;
	free_thread(sim, p, slot->thread);
	block_done(sim, p, slot->direction, slot->bytes, slot->start_ns,
		   sim->now_ns);
	if (p->timed)
		return;
	until = process_think_until(p, slot->direction,
				    sim->now_ns + sim->config.wake_ns);
	process_run_at(sim, p,
		       until ? until : sim->now_ns + sim->config.wake_ns);
}

static void send_direct(struct sim *sim, struct sim_process *p, u64 position)
{
	u64 sector = position / SECTOR_BYTES, left = p->bytes / SECTOR_BYTES;
	struct slot *slot = p->slot;

	while (slot->bios_left)
		slot++;
	slot->direction = p->direction;
	slot->bytes = p->bytes;
	slot->start_ns = sim->now_ns;
	slot->thread = p->thread;
	p->in_flight++;
	slot->bios_left = (u32)((left + sim->config.max_request_sectors - 1) /
				sim->config.max_request_sectors);
	while (left) {
		struct sim_bio *bio = sim_bio_new(sim);

		bio->sector = sector;
		bio->nr_sectors = left < sim->config.max_request_sectors ?
					  (u32)left :
					  sim->config.max_request_sectors;
		bio->direction = p->direction;
		bio->flags = SS_SYNC;
		bio->job = p->index;
		bio->wanted_ns = sim->now_ns;
		bio->done = direct_bio_done;
		bio->context = p;
		bio->context_number = (u64)(slot - p->slot);
		sector += bio->nr_sectors;
		left -= bio->nr_sectors;
		sim_submit(sim, bio);
	}
}

/* The process is gone, as schedulers see it. */
static void exit_process(struct sim *sim, const struct sim_process *p)
{
	if (sim->config.owners != SIM_OWNERS_PROCESS || p->job.pool)
		return;
	sim_for_each_sched(sim, sched)
		ss_sched_owner_gone(sched, p->owner, sim->now_ns);
}

static void leave_barrier(struct sim *sim, struct sim_process *p)
{
	if (!p->at_barrier)
		return;
	p->at_barrier = false;
	p->step = STEP_NEXT;
	process_run_at(sim, p, sim->now_ns + sim->config.wake_ns);
}

/*
 * When all that have its number, and are not done, stand at the barrier they
 * go on.
 */
static void check_barrier(struct sim *sim, u32 barrier)
{
	u32 i;

	for (i = 0; i < sim->nr_processes; i++) {
		const struct sim_process *p = sim->process[i];

		if (p->job.barrier == barrier && p->job.stage < sim->stage &&
		    p->step != STEP_DONE && !p->at_barrier)
			return;
	}
	for (i = 0; i < sim->nr_processes; i++)
		if (sim->process[i]->job.barrier == barrier)
			leave_barrier(sim, sim->process[i]);
}

/* The turn goes to the next process of the same number that is not done. */
static void pass_turn(struct sim *sim, struct sim_process *p)
{
	u32 i, nr = sim->nr_processes;

	p->has_turn = false;
	for (i = 1; i <= nr; i++) {
		struct sim_process *next = sim->process[(p->index + i) % nr];

		if (next->job.barrier != p->job.barrier ||
		    next->job.stage >= sim->stage || next->step == STEP_DONE)
			continue;
		next->has_turn = true;
		leave_barrier(sim, next);
		return;
	}
}

/* Those that waited for a job that is done. */
static void start_waiters(struct sim *sim)
{
	u32 i;

	for (i = 0; i < sim->nr_processes; i++) {
		struct sim_process *p = sim->process[i];

		if (p->job.wait_for[0] && p->job.stage < sim->stage)
			sim_process_start(sim, p);
	}
}

static void finish(struct sim *sim, struct sim_process *p);

/* It has not begun, and never will. */
static void never_begin(struct sim *sim, struct sim_process *p)
{
	p->started = true;
	finish(sim, p);
}

/* Whether the end of @p is that of @other. */
static bool ends_other(const struct sim *sim, const struct sim_process *p,
		       const struct sim_process *other)
{
	switch ((enum sim_exits)p->job.exits) {
	case SIM_EXITS_NOBODY:
		return false;
	case SIM_EXITS_GROUP:
		return other->job.exit_group == p->job.exit_group;
	case SIM_EXITS_RUNNING:
		return other->started && other->begin_ns <= sim->now_ns &&
		       !other->ramping;
	case SIM_EXITS_ALL:
		return true;
	}
	return false;
}

/*
 * The end of @p at @end_ns. What is under way comes to its end; those of a
 * later stage learn of it when that comes, for they are not counted as running
 * yet. Whom those end that are ended is ended with them: as in fio, before
 * anybody begins who has waited for them.
 */
static void end_others(struct sim *sim, const struct sim_process *p, u64 end_ns)
{
	u32 i;

	for (i = 0; p->job.exits && i < sim->nr_processes; i++) {
		struct sim_process *other = sim->process[i];

		if (other->step == STEP_DONE || other->ended ||
		    !ends_other(sim, p, other))
			continue;
		other->ended = true;
		if (!other->started || other->begin_ns > sim->now_ns) {
			other->begin_ns = end_ns;
			other->end_ns = end_ns;
		}
		end_others(sim, other, end_ns);
		if (other->started && other->step == STEP_NEXT)
			process_run_at(sim, other, sim->now_ns);
		else if (!other->started && other->job.stage < sim->stage)
			never_begin(sim, other);
	}
}

static void finish(struct sim *sim, struct sim_process *p)
{
	bool began = !p->ended || p->issued;

	p->step = STEP_DONE;
	if (began && !p->job.direct && own_time(sim, p) > p->end_ns)
		p->end_ns = own_time(sim, p);
	if (!p->ended)
		end_others(sim, p, p->end_ns);
	start_waiters(sim);
	if (p->end_ns > sim->last_end_ns)
		sim->last_end_ns = p->end_ns;
	if (!p->job.background)
		sim->running--;
	exit_process(sim, p);
	if (p->has_turn)
		pass_turn(sim, p);
	else if (p->job.barrier && !p->job.turns)
		check_barrier(sim, p->job.barrier);
}

static bool time_is_up(const struct sim *sim, const struct sim_process *p)
{
	return p->job.runtime_ns && !p->ramping &&
	       own_time(sim, p) >= p->begin_ns + p->job.runtime_ns;
}

/*
 * Another process takes over with the next file. False: it has yet to come.
 */
static bool replace_process(struct sim *sim, struct sim_process *p)
{
	if (p->in_flight)
		return false;
	if (p->cpu_ns) {
		process_run_at(sim, p, own_time(sim, p));
		return false;
	}
	exit_process(sim, p);
	p->owner = 1ULL << 48 | ++sim->nr_new_owners;
	process_next_file(p, sim);
	if (!p->job.spawn_ns)
		return true;
	process_run_at(sim, p, sim->now_ns + p->job.spawn_ns);
	return false;
}

/* Is it time to wait for others, or to be waited for? */
static bool must_stop(const struct sim *sim, struct sim_process *p)
{
	const struct sim_job *job = &p->job;

	if (job->barrier && p->blocks_to_barrier >= job->barrier_blocks) {
		p->blocks_to_barrier = 0;
		p->step = STEP_BARRIER;
		return true;
	}
	if (job->stall_blocks && p->blocks_to_stall >= job->stall_blocks) {
		p->blocks_to_stall = 0;
		p->stall_dispatches = sim->dispatches;
		p->stall_end_ns = own_time(sim, p) + job->thinktime_ns;
		p->step = STEP_STALL;
		return true;
	}
	return false;
}

static void begin_pass(const struct sim *sim, struct sim_process *p)
{
	/* At random the blocks that were used say when that is. */
	if (!(p->job.rw & SIM_RW_RANDOM))
		p->begins_pass = true;
	p->issued = 0;
	p->position[0] = p->position[1] = p->job.offset;
	p->zone_start = p->job.offset;
	p->zone_bytes = 0;
	if (p->job.nr_files > 1)
		process_begin_files(p, sim);
}

/* As fio does where a pass over a file begins. */
static void drop_pages(struct sim *sim, struct sim_process *p)
{
	p->begins_pass = false;
	if (!p->job.drops_pages)
		return;
	sim_cache_drop(sim, p->job.offset / PAGE_BYTES,
		       (region_end(p) + PAGE_BYTES - 1) / PAGE_BYTES);
	if (p->job.nr_files <= 1)
		process_open_file(p, sim);
}

/* Begin the next block. False: nothing to run now. */
static bool step_next(struct sim *sim, struct sim_process *p)
{
	bool over = p->ended || time_is_up(sim, p) ||
		    p->issued >= p->job.io_bytes;
	u64 position;

	if (p->job.direct && p->in_flight >= p->job.iodepth)
		return false;
	if (must_stop(sim, p))
		return true;
	if (!over && p->job.nr_file_splits && p->file_at >= p->file_end &&
	    !process_append_more(p)) {
		if (p->job.new_process && p->files) {
			if (!replace_process(sim, p))
				return false;
		} else {
			process_next_file(p, sim);
		}
	}
	if (over) {
		if (!p->ended && !time_is_up(sim, p) &&
		    (p->job.time_based || p->ramping)) {
			begin_pass(sim, p);
			p->file_at = p->file_end;
			return true;
		}
		if (p->in_flight)
			return false;
		if (p->job.end_fsync) {
			p->job.end_fsync = false;
			p->step = STEP_SYNC;
			return true;
		}
		if (p->job.end_sync && sim->running == 1) {
			p->job.end_sync = false;
			p->all_synced = true;
			p->step = STEP_SYNC;
			return true;
		}
		finish(sim, p);
		return false;
	}
	if (!process_pace(sim, p))
		return false;
	position = p->job.nr_file_splits ? process_next_in_file(p) :
					   process_next_block(p, sim);
	if (p->begins_pass)
		drop_pages(sim, p);
	process_pace_sent(p);
	take_thread(sim, p);
	if (p->job.direct) {
		send_direct(sim, p, position);
		return true;
	}
	p->start_ns = own_time(sim, p);
	p->page = position / PAGE_BYTES;
	p->end_page = (position + p->bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	p->step = STEP_PAGES;
	return true;
}

/* Go on in a buffered block. False: asleep, or the clock must catch up. */
static bool step_pages(struct sim *sim, struct sim_process *p)
{
	u64 end = p->job.nr_file_splits ? p->file_end : file_limit(p);
	u64 end_of_file = (end + PAGE_BYTES - 1) / PAGE_BYTES;
	u64 until;

	for (; p->page < p->end_page; p->page++) {
		bool now = !p->cpu_ns;

		if (p->direction == SS_READ) {
			switch (sim_cache_read(sim, &p->ra, p->index, p->page,
					       (u32)(p->end_page - p->page),
					       end_of_file, now)) {
			case CACHE_READY:
				break;
			case CACHE_SENDS:
				process_run_at(sim, p, own_time(sim, p));
				return false;
			case CACHE_BLOCKED:
				p->asleep = true;
				return false;
			}
		} else if (!now) {
			process_run_at(sim, p, own_time(sim, p));
			return false;
		} else if (!sim_cache_write(sim, p->index, p->page)) {
			p->asleep = true;
			return false;
		}
		p->cpu_ns += sim->config.page_copy_ns;
	}
	p->step = STEP_NEXT;
	free_thread(sim, p, p->thread);
	block_done(sim, p, p->direction, p->bytes, p->start_ns,
		   own_time(sim, p));
	until = process_think_until(p, p->direction, own_time(sim, p));
	if (until || p->cpu_ns > AHEAD_NS) {
		process_run_at(sim, p, until ? until : own_time(sim, p));
		return false;
	}
	return true;
}

static bool step_sync(struct sim *sim, struct sim_process *p)
{
	u64 begin = p->job.offset, end = region_end(p);

	if (p->cpu_ns || p->in_flight) {
		if (p->cpu_ns)
			process_run_at(sim, p, own_time(sim, p));
		return false;
	}
	if (p->one_synced) {
		p->one_synced = false;
		process_choose_synced(p);
		begin = file_begin(p);
		end = file_limit(p);
	}
	p->step = STEP_NEXT;
	p->asleep = true;
	sim_cache_sync(sim, p->index, begin / PAGE_BYTES,
		       (end + PAGE_BYTES - 1) / PAGE_BYTES,
		       p->all_synced ? 0 : SS_SYNC);
	return false;
}

/* False: the clock must catch up, or the others are still to come. */
static bool step_barrier(struct sim *sim, struct sim_process *p)
{
	if (p->in_flight)
		return false;
	if (p->cpu_ns) {
		process_run_at(sim, p, own_time(sim, p));
		return false;
	}
	p->at_barrier = true;
	if (!p->job.turns)
		check_barrier(sim, p->job.barrier);
	else if (p->has_turn)
		pass_turn(sim, p);
	return false;
}

static bool step_stall(struct sim *sim, struct sim_process *p)
{
	u64 now_ns = own_time(sim, p);

	if (p->in_flight)
		return false;
	if (sim->dispatches != p->stall_dispatches ||
	    now_ns >= p->stall_end_ns) {
		p->step = STEP_NEXT;
		return true;
	}
	process_run_at(sim, p,
		       min_t(u64, now_ns + STALL_LOOK_NS, p->stall_end_ns));
	return false;
}

static void run(struct sim *sim, void *context)
{
	struct sim_process *p = context;
	bool go = true;

	p->timed = false;
	if (p->asleep)
		return;
	while (go) {
		switch (p->step) {
		case STEP_NEXT:
			go = step_next(sim, p);
			break;
		case STEP_PAGES:
			go = step_pages(sim, p);
			break;
		case STEP_SYNC:
			go = step_sync(sim, p);
			break;
		case STEP_BARRIER:
			go = step_barrier(sim, p);
			break;
		case STEP_STALL:
			go = step_stall(sim, p);
			break;
		case STEP_DONE:
			return;
		}
	}
}

/* ---- called back ---- */

void sim_process_page_ready(struct sim *sim, struct sim_process *p)
{
	p->asleep = false;
	process_run_at(sim, p, sim->now_ns + sim->config.wake_ns);
}

void sim_process_synced(struct sim *sim, struct sim_process *p)
{
	p->asleep = false;
	p->end_ns = sim->now_ns;
	process_run_at(sim, p, sim->now_ns + sim->config.wake_ns);
}

/* The first to start has the first turn; others wait for theirs. */
static void begin_turns(const struct sim *sim, struct sim_process *p)
{
	u32 i;

	if (!p->job.barrier || !p->job.turns)
		return;
	p->has_turn = true;
	for (i = 0; i < sim->nr_processes; i++) {
		const struct sim_process *other = sim->process[i];

		if (other != p && other->job.barrier == p->job.barrier &&
		    other->has_turn)
			p->has_turn = false;
	}
	if (!p->has_turn)
		p->blocks_to_barrier = p->job.barrier_blocks;
}

/* Whether a process of the job that it waits for is not done. */
static bool must_wait(const struct sim *sim, const struct sim_process *p)
{
	u32 i;

	if (!p->job.wait_for[0])
		return false;
	for (i = 0; i < sim->nr_processes; i++) {
		const struct sim_process *other = sim->process[i];

		if (other->step != STEP_DONE &&
		    !strcmp(other->job.name, p->job.wait_for))
			return true;
	}
	return false;
}

void sim_process_start(struct sim *sim, struct sim_process *p)
{
	if (p->started || (must_wait(sim, p) && !p->ended))
		return;
	if (p->ended) {
		never_begin(sim, p);
		return;
	}
	p->started = true;
	/* A delay counts from the beginning of all, as in fio. */
	p->begin_ns = max_t(u64, sim->now_ns, p->job.startdelay_ns);
	p->end_ns = p->begin_ns;
	process_pace_from(p, p->begin_ns);
	process_ramp(sim, p);
	begin_pass(sim, p);
	p->begins_pass = true;
	begin_turns(sim, p);
	process_run_at(sim, p, p->begin_ns);
}
