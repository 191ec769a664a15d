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

#include "process_state.h"

#include <string.h>

/* Run ahead of the clock by at most this much. */
#define AHEAD_NS (1 * SS_MSEC)
/* How often a stalling process looks whether the disk has gone on. */
#define STALL_LOOK_NS (100 * SS_USEC)

static void run(void *context);

static struct sim_process *process_new(struct sim_processes *all,
				       const struct sim_job *job, u32 index)
{
	struct sim_process *p = sim_alloc(sizeof(*p));

	p->job = *job;
	p->all = all;
	p->clock = all->clock;
	p->index = index;
	p->seed = job->seed;
	p->owner = (u64)index + 1;
	p->thread = NO_THREAD;
	p->in_order = job->random_every; /* the first one is elsewhere */
	p->slot = sim_alloc(job->iodepth * sizeof(*p->slot));
	process_open_file(p);
	if (job->group_bytes)
		p->group_filled = sim_alloc(job->size / job->group_bytes *
					    sizeof(u64));
	if ((job->rw & SIM_RW_RANDOM) && !job->norandommap) {
		u64 range = job->zone_size    ? job->zone_range :
			    job->nr_files > 1 ? job->file_size :
						job->size;

		p->map_units = range / job->align_bytes;
		if (job->nr_files <= 1)
			p->map = sim_alloc(map_bytes(p));
	}
	if (job->nr_files > 1)
		process_new_files(p);
	return p;
}

static void process_free(struct sim_process *p)
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

static void run_at(struct sim_process *p, u64 at_ns)
{
	p->timed = true;
	p->cpu_ns = 0;
	sim_timer(p->clock, at_ns, run, p);
}

/* ---- doing it ---- */

/* A thread of the pool takes the next block: any that is free. */
static void take_thread(struct sim_process *p)
{
	u64 *busy = &p->all->pool_busy[p->job.pool];
	u32 nr = p->job.pool_threads;

	if (!nr)
		return;
	p->thread = (u32)sim_random_below(&p->all->pool_seed, nr);
	while (nr-- && (*busy >> p->thread & 1))
		p->thread = (p->thread + 1) % p->job.pool_threads;
	*busy |= 1ULL << p->thread;
}

static void free_thread(const struct sim_process *p, u32 thread)
{
	if (thread != NO_THREAD)
		p->all->pool_busy[p->job.pool] &= ~(1ULL << thread);
}

static void block_done(struct sim_process *p, u8 dir, u32 bytes, u64 start_ns,
		       u64 end_ns)
{
	p->moved[dir] += bytes;
	p->blocks[dir]++;
	histogram_add(&p->latency[dir], end_ns - start_ns);
	p->end_ns = end_ns;
	if (end_ns > p->all->last_end_ns)
		p->all->last_end_ns = end_ns;
	if (dir == SS_WRITE && p->job.fsync_blocks &&
	    ++p->writes_to_sync >= p->job.fsync_blocks) {
		p->writes_to_sync = 0;
		p->one_synced = p->job.nr_files > 1;
		p->step = STEP_SYNC;
	}
	p->blocks_to_barrier++;
	p->blocks_to_stall++;
}

static void direct_bio_done(struct sim_bio *bio)
{
	struct sim_process *p = bio->context;
	struct slot *slot = &p->slot[bio->context_number];
	u64 until;

	if (--slot->bios_left)
		return;
	p->in_flight--;
	free_thread(p, slot->thread);
	block_done(p, slot->direction, slot->bytes, slot->start_ns,
		   p->clock->now_ns);
	if (p->timed)
		return;
	until = process_think_until(p, slot->direction,
				    p->clock->now_ns + p->all->config->wake_ns);
	run_at(p, until ? until : p->clock->now_ns + p->all->config->wake_ns);
}

static void send_direct(struct sim_process *p, u64 position)
{
	u32 nr_sectors = p->bytes / SECTOR_BYTES;
	u32 max = p->all->config->max_request_sectors;
	struct slot *slot = p->slot;
	struct sim_bio like = {
		.direction = p->direction,
		.flags = SS_SYNC,
		.job = p->index,
		.wanted_ns = p->clock->now_ns,
		.done = direct_bio_done,
		.context = p,
	};

	while (slot->bios_left)
		slot++;
	slot->direction = p->direction;
	slot->bytes = p->bytes;
	slot->start_ns = p->clock->now_ns;
	slot->thread = p->thread;
	p->in_flight++;
	slot->bios_left = (nr_sectors + max - 1) / max;
	like.context_number = (u64)(slot - p->slot);
	sim_submit_range(p->all->array, &like, position / SECTOR_BYTES,
			 nr_sectors, max);
}

/* The process is gone, as schedulers see it. */
static void exit_process(const struct sim_process *p)
{
	if (p->all->config->owners != SIM_OWNERS_PROCESS || p->job.pool)
		return;
	sim_for_each_sched(p->all->block, sched)
		ss_sched_owner_gone(sched, p->owner, p->clock->now_ns);
}

static void leave_barrier(struct sim_process *p)
{
	if (!p->at_barrier)
		return;
	p->at_barrier = false;
	p->step = STEP_NEXT;
	run_at(p, p->clock->now_ns + p->all->config->wake_ns);
}

/*
 * When all that have its number, and are not done, stand at the barrier they
 * go on.
 */
static void check_barrier(const struct sim_processes *all, u32 barrier)
{
	u32 i;

	for (i = 0; i < all->nr; i++) {
		const struct sim_process *p = all->process[i];

		if (p->job.barrier == barrier && p->job.stage < all->stage &&
		    p->step != STEP_DONE && !p->at_barrier)
			return;
	}
	for (i = 0; i < all->nr; i++)
		if (all->process[i]->job.barrier == barrier)
			leave_barrier(all->process[i]);
}

/* The turn goes to the next process of the same number that is not done. */
static void pass_turn(struct sim_process *p)
{
	u32 i, nr = p->all->nr;

	p->has_turn = false;
	for (i = 1; i <= nr; i++) {
		struct sim_process *next = p->all->process[(p->index + i) % nr];

		if (next->job.barrier != p->job.barrier ||
		    next->job.stage >= p->all->stage || next->step == STEP_DONE)
			continue;
		next->has_turn = true;
		leave_barrier(next);
		return;
	}
}

static void start(struct sim_process *p);

/* Those that waited for a job that is done. */
static void start_waiters(const struct sim_processes *all)
{
	u32 i;

	for (i = 0; i < all->nr; i++) {
		struct sim_process *p = all->process[i];

		if (p->job.wait_for[0] && p->job.stage < all->stage)
			start(p);
	}
}

static void finish(struct sim_process *p);

/* It has not begun, and never will. */
static void never_begin(struct sim_process *p)
{
	p->started = true;
	finish(p);
}

/* Whether the end of @p is that of @other. */
static bool ends_other(const struct sim_process *p,
		       const struct sim_process *other)
{
	switch ((enum sim_exits)p->job.exits) {
	case SIM_EXITS_NOBODY:
		return false;
	case SIM_EXITS_GROUP:
		return other->job.exit_group == p->job.exit_group;
	case SIM_EXITS_RUNNING:
		return other->started && other->begin_ns <= p->clock->now_ns &&
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
static void end_others(const struct sim_process *p, u64 end_ns)
{
	u32 i;

	for (i = 0; p->job.exits && i < p->all->nr; i++) {
		struct sim_process *other = p->all->process[i];

		if (other->step == STEP_DONE || other->ended ||
		    !ends_other(p, other))
			continue;
		other->ended = true;
		if (!other->started || other->begin_ns > p->clock->now_ns) {
			other->begin_ns = end_ns;
			other->end_ns = end_ns;
		}
		end_others(other, end_ns);
		if (other->started && other->step == STEP_NEXT)
			run_at(other, p->clock->now_ns);
		else if (!other->started && other->job.stage < p->all->stage)
			never_begin(other);
	}
}

static void finish(struct sim_process *p)
{
	bool began = !p->ended || p->issued;

	p->step = STEP_DONE;
	if (began && !p->job.direct && own_time(p) > p->end_ns)
		p->end_ns = own_time(p);
	if (!p->ended)
		end_others(p, p->end_ns);
	start_waiters(p->all);
	if (p->end_ns > p->all->last_end_ns)
		p->all->last_end_ns = p->end_ns;
	if (!p->job.background)
		p->all->running--;
	exit_process(p);
	if (p->has_turn)
		pass_turn(p);
	else if (p->job.barrier && !p->job.turns)
		check_barrier(p->all, p->job.barrier);
}

static bool time_is_up(const struct sim_process *p)
{
	return p->job.runtime_ns && !p->ramping &&
	       own_time(p) >= p->begin_ns + p->job.runtime_ns;
}

/*
 * Another process takes over with the next file. False: it has yet to come.
 */
static bool replace_process(struct sim_process *p)
{
	if (p->in_flight)
		return false;
	if (p->cpu_ns) {
		run_at(p, own_time(p));
		return false;
	}
	exit_process(p);
	p->owner = 1ULL << 48 | ++p->all->nr_new_owners;
	process_next_file(p);
	if (!p->job.spawn_ns)
		return true;
	run_at(p, p->clock->now_ns + p->job.spawn_ns);
	return false;
}

/* Is it time to wait for others, or to be waited for? */
static bool must_stop(struct sim_process *p)
{
	const struct sim_job *job = &p->job;

	if (job->barrier && p->blocks_to_barrier >= job->barrier_blocks) {
		p->blocks_to_barrier = 0;
		p->step = STEP_BARRIER;
		return true;
	}
	if (job->stall_blocks && p->blocks_to_stall >= job->stall_blocks) {
		p->blocks_to_stall = 0;
		p->stall_dispatches = p->all->block->dispatches;
		p->stall_end_ns = own_time(p) + job->thinktime_ns;
		p->step = STEP_STALL;
		return true;
	}
	return false;
}

static void begin_pass(struct sim_process *p)
{
	/* At random the blocks that were used say when that is. */
	if (!(p->job.rw & SIM_RW_RANDOM))
		p->begins_pass = true;
	p->issued = 0;
	p->position[0] = p->position[1] = p->job.offset;
	p->zone_start = p->job.offset;
	p->zone_bytes = 0;
	if (p->job.nr_files > 1)
		process_begin_files(p);
}

/* As fio does where a pass over a file begins. */
static void drop_pages(struct sim_process *p)
{
	p->begins_pass = false;
	if (!p->job.drops_pages)
		return;
	sim_cache_drop(p->all->cache, p->job.offset / PAGE_BYTES,
		       (region_end(p) + PAGE_BYTES - 1) / PAGE_BYTES);
	if (p->job.nr_files <= 1)
		process_open_file(p);
}

/* Begin the next block. False: nothing to run now. */
static bool step_next(struct sim_process *p)
{
	bool over = p->ended || time_is_up(p) || p->issued >= p->job.io_bytes;
	u64 position, until_ns;

	if (p->job.direct && p->in_flight >= p->job.iodepth)
		return false;
	if (must_stop(p))
		return true;
	if (!over && p->job.nr_file_splits && p->file_at >= p->file_end &&
	    !process_append_more(p)) {
		if (p->job.new_process && p->files) {
			if (!replace_process(p))
				return false;
		} else {
			process_next_file(p);
		}
	}
	if (over) {
		if (!p->ended && !time_is_up(p) &&
		    (p->job.time_based || p->ramping)) {
			begin_pass(p);
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
		if (p->job.end_sync && p->all->running == 1) {
			p->job.end_sync = false;
			p->all_synced = true;
			p->step = STEP_SYNC;
			return true;
		}
		finish(p);
		return false;
	}
	until_ns = process_pace(p);
	if (until_ns) {
		if (until_ns != U64_MAX)
			run_at(p, until_ns);
		return false;
	}
	position = p->job.nr_file_splits ? process_next_in_file(p) :
					   process_next_block(p);
	if (p->begins_pass)
		drop_pages(p);
	process_pace_sent(p);
	take_thread(p);
	if (p->job.direct) {
		send_direct(p, position);
		return true;
	}
	p->start_ns = own_time(p);
	p->page = position / PAGE_BYTES;
	p->end_page = (position + p->bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	p->step = STEP_PAGES;
	return true;
}

/* Go on in a buffered block. False: asleep, or the clock must catch up. */
static bool step_pages(struct sim_process *p)
{
	u64 end = p->job.nr_file_splits ? p->file_end : file_limit(p);
	u64 end_of_file = (end + PAGE_BYTES - 1) / PAGE_BYTES;
	u64 until;

	for (; p->page < p->end_page; p->page++) {
		bool now = !p->cpu_ns;

		if (p->direction == SS_READ) {
			switch (sim_cache_read(p->all->cache, &p->ra, p->index,
					       p->page,
					       (u32)(p->end_page - p->page),
					       end_of_file, now)) {
			case CACHE_READY:
				break;
			case CACHE_SENDS:
				run_at(p, own_time(p));
				return false;
			case CACHE_BLOCKED:
				p->asleep = true;
				return false;
			}
		} else if (!now) {
			run_at(p, own_time(p));
			return false;
		} else if (!sim_cache_write(p->all->cache, p->index, p->page)) {
			p->asleep = true;
			return false;
		}
		p->cpu_ns += p->all->config->page_copy_ns;
	}
	p->step = STEP_NEXT;
	free_thread(p, p->thread);
	block_done(p, p->direction, p->bytes, p->start_ns, own_time(p));
	until = process_think_until(p, p->direction, own_time(p));
	if (until || p->cpu_ns > AHEAD_NS) {
		run_at(p, until ? until : own_time(p));
		return false;
	}
	return true;
}

static bool step_sync(struct sim_process *p)
{
	u64 begin = p->job.offset, end = region_end(p);

	if (p->cpu_ns || p->in_flight) {
		if (p->cpu_ns)
			run_at(p, own_time(p));
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
	sim_cache_sync(p->all->cache, p->index, begin / PAGE_BYTES,
		       (end + PAGE_BYTES - 1) / PAGE_BYTES,
		       p->all_synced ? 0 : SS_SYNC);
	return false;
}

/* False: the clock must catch up, or the others are still to come. */
static bool step_barrier(struct sim_process *p)
{
	if (p->in_flight)
		return false;
	if (p->cpu_ns) {
		run_at(p, own_time(p));
		return false;
	}
	p->at_barrier = true;
	if (!p->job.turns)
		check_barrier(p->all, p->job.barrier);
	else if (p->has_turn)
		pass_turn(p);
	return false;
}

static bool step_stall(struct sim_process *p)
{
	u64 now_ns = own_time(p);

	if (p->in_flight)
		return false;
	if (p->all->block->dispatches != p->stall_dispatches ||
	    now_ns >= p->stall_end_ns) {
		p->step = STEP_NEXT;
		return true;
	}
	run_at(p, min_t(u64, now_ns + STALL_LOOK_NS, p->stall_end_ns));
	return false;
}

static void run(void *context)
{
	struct sim_process *p = context;
	bool go = true;

	p->timed = false;
	if (p->asleep)
		return;
	while (go) {
		switch (p->step) {
		case STEP_NEXT:
			go = step_next(p);
			break;
		case STEP_PAGES:
			go = step_pages(p);
			break;
		case STEP_SYNC:
			go = step_sync(p);
			break;
		case STEP_BARRIER:
			go = step_barrier(p);
			break;
		case STEP_STALL:
			go = step_stall(p);
			break;
		case STEP_DONE:
			return;
		}
	}
}

/* The first to start has the first turn; others wait for theirs. */
static void begin_turns(struct sim_process *p)
{
	u32 i;

	if (!p->job.barrier || !p->job.turns)
		return;
	p->has_turn = true;
	for (i = 0; i < p->all->nr; i++) {
		const struct sim_process *other = p->all->process[i];

		if (other != p && other->job.barrier == p->job.barrier &&
		    other->has_turn)
			p->has_turn = false;
	}
	if (!p->has_turn)
		p->blocks_to_barrier = p->job.barrier_blocks;
}

/* Whether a process of the job that it waits for is not done. */
static bool must_wait(const struct sim_process *p)
{
	u32 i;

	if (!p->job.wait_for[0])
		return false;
	for (i = 0; i < p->all->nr; i++) {
		const struct sim_process *other = p->all->process[i];

		if (other->step != STEP_DONE &&
		    !strcmp(other->job.name, p->job.wait_for))
			return true;
	}
	return false;
}

static void start(struct sim_process *p)
{
	if (p->started || (must_wait(p) && !p->ended))
		return;
	if (p->ended) {
		never_begin(p);
		return;
	}
	p->started = true;
	/* A delay counts from the beginning of all, as in fio. */
	p->begin_ns = max_t(u64, p->clock->now_ns, p->job.startdelay_ns);
	p->end_ns = p->begin_ns;
	process_pace_from(p, p->begin_ns);
	process_ramp(p);
	begin_pass(p);
	p->begins_pass = true;
	begin_turns(p);
	run_at(p, p->begin_ns);
}

/* ---- all of them ---- */

static void wake(void *context, u32 job)
{
	const struct sim_processes *all = context;
	struct sim_process *p = all->process[job];

	p->asleep = false;
	run_at(p, all->clock->now_ns + all->config->wake_ns);
}

static void synced(void *context, u32 job)
{
	const struct sim_processes *all = context;

	all->process[job]->end_ns = all->clock->now_ns;
	wake(context, job);
}

static u32 flusher(void *context)
{
	const struct sim_processes *all = context;

	return all->nr;
}

struct sim_processes *sim_processes_new(struct sim_block *block,
					struct sim_array *array)
{
	struct sim_processes *all = sim_alloc(sizeof(*all));
	const struct sim_cache_users users = { all, wake, synced, flusher };

	all->config = block->config;
	all->clock = block->clock;
	all->block = block;
	all->array = array;
	all->cache = sim_cache_new(block, array, &users);
	all->first_start_ns = U64_MAX;
	return all;
}

void sim_processes_free(struct sim_processes *all)
{
	u32 i;

	if (!all)
		return;
	for (i = 0; i < all->nr; i++)
		process_free(all->process[i]);
	free(all->process);
	sim_cache_free(all->cache);
	free(all);
}

void sim_process_add(struct sim_processes *all, const struct sim_job *job)
{
	all->process = sim_room(all->process, all->nr, &all->size,
				sizeof(*all->process));
	all->process[all->nr] = process_new(all, job, all->nr);
	all->nr++;
}

int sim_process_places(struct sim_processes *all, u32 direction,
		       const u64 *end_unit, const u64 *below, u32 nr)
{
	return process_set_places(all->process[all->nr - 1], direction,
				  end_unit, below, nr);
}

u32 sim_processes_nr(const struct sim_processes *all)
{
	return all->nr;
}

bool sim_processes_running(const struct sim_processes *all)
{
	return all->running;
}

bool sim_processes_start(struct sim_processes *all)
{
	u32 i, next = U32_MAX;

	for (i = 0; i < all->nr; i++) {
		u32 stage = all->process[i]->job.stage;

		if (stage >= all->stage && stage < next)
			next = stage;
	}
	if (next == U32_MAX)
		return false;
	all->stage = next + 1;
	/* First all are counted: one may start another one. */
	for (i = 0; i < all->nr; i++)
		if (all->process[i]->job.stage == next) {
			if (!all->process[i]->job.background)
				all->running++;
			start(all->process[i]);
		}
	return true;
}

u64 sim_processes_ramp_ends_ns(const struct sim_processes *all)
{
	u64 from = U64_MAX;
	bool ramps = false;
	u32 i;

	for (i = 0; i < all->nr; i++) {
		const struct sim_process *p = all->process[i];

		if (p->started)
			from = min_t(u64, from, p->begin_ns + p->job.ramp_ns);
		if (p->job.ramp_ns)
			ramps = true;
	}
	return ramps && from != U64_MAX ? from : 0;
}

u64 sim_processes_duration_ns(const struct sim_processes *all)
{
	return all->first_start_ns == U64_MAX ?
		       0 :
		       all->last_end_ns - all->first_start_ns;
}

/* ---- what they have done ---- */

/*
 * Numbers of first processes are small; those of pools' threads and of
 * processes that come later begin far above.
 */
u64 sim_process_owner(const struct sim_processes *all, u32 job)
{
	const struct sim_process *p = all->process[job];

	if (p->thread != NO_THREAD)
		return 1ULL << 32 | (u64)p->job.pool << 16 | p->thread;
	return p->owner;
}

u32 sim_process_group(const struct sim_processes *all, u32 job)
{
	return all->process[job]->job.group;
}

static u64 ppm(u64 done, u64 all)
{
	return done >= all ? PPM : (u64)((unsigned __int128)done * PPM / all);
}

static u64 process_ppm(const struct sim_process *p)
{
	const struct sim_job *job = &p->job;
	u64 moved = p->moved[0] + p->moved[1], bytes, time = 0;

	if (p->step == STEP_DONE)
		return PPM;
	if (!p->started || p->clock->now_ns < p->begin_ns)
		return 0;
	bytes = job->time_based ? 0 : ppm(moved, job->io_bytes);
	if (job->runtime_ns)
		time = ppm(p->clock->now_ns - p->begin_ns +
				   (p->ramping ? 0 : job->ramp_ns),
			   job->ramp_ns + job->runtime_ns);
	return max_t(u64, bytes, time);
}

u32 sim_processes_ppm(const struct sim_processes *all)
{
	u64 sum = 0;
	u32 i, nr = 0;

	for (i = 0; i < all->nr; i++) {
		if (all->process[i]->job.background)
			continue;
		sum += process_ppm(all->process[i]);
		nr++;
	}
	return nr ? (u32)(sum / nr) : 0;
}

void sim_process_waited(struct sim_processes *all, u32 job, u64 wait_ns)
{
	histogram_add(&all->process[job]->wait, wait_ns);
}

void sim_process_response(const struct sim_processes *all, u32 job,
			  struct histogram *response)
{
	const struct sim_process *p = all->process[job];

	histogram_join(response, &p->latency[0]);
	histogram_join(response, &p->latency[1]);
}

void sim_process_result(const struct sim_processes *all, u32 job,
			struct sim_job_result *result)
{
	const struct sim_process *p = all->process[job];
	struct histogram *response = sim_alloc(sizeof(*response));
	u32 dir;

	memset(result, 0, sizeof(*result));
	sim_process_response(all, job, response);
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
