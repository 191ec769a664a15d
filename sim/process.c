// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process in a closed loop: it wants a block, waits for it, thinks, wants
 * the next. What it wants follows fio's rules (fio 3.33, HOWTO and io_u.c).
 *
 * CPU time is spent in lumps: a process runs ahead of the clock as long as
 * nobody else can notice, and lets the clock catch up (with a timer) before
 * it sends anything or goes to sleep.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Run ahead of the clock by at most this much. */
#define AHEAD_NS (1 * SS_MSEC)

enum process_step {
	STEP_NEXT, /* choose the next block */
	STEP_PAGES, /* in a buffered read or write */
	STEP_SYNC, /* an fsync is due */
	STEP_DONE,
};

/* A direct block under way. */
struct slot {
	u32 bios_left;
	u8 direction;
	u32 bytes;
	u64 start_ns;
};

struct sim_process {
	struct sim_job job;
	u32 index;
	enum process_step step;
	bool asleep; /* until somebody calls back */
	bool timed; /* a timer will run it */
	u64 seed;
	u64 begin_ns, end_ns;
	u64 cpu_ns; /* ahead of the clock by this much */

	/* Where it is in its region. */
	u64 issued; /* bytes of this pass */
	u64 position[2]; /* next sequential block, by direction */
	u64 zone_start, zone_bytes;
	u64 *map; /* random blocks already used */
	u64 map_units, map_used;

	/* The current block. */
	u8 direction;
	u32 bytes;
	u64 start_ns;
	u64 page, end_page;
	struct readahead ra;

	struct slot *slot;
	u32 in_flight;
	u32 blocks_to_think, writes_to_sync;

	u64 moved[2], blocks[2];
	struct histogram latency[2], wait;
};

static void run(struct sim *sim, void *context);

struct sim_process *sim_process_new(const struct sim_job *job, u32 index)
{
	struct sim_process *p = sim_alloc(sizeof(*p));

	p->job = *job;
	p->index = index;
	p->seed = job->seed;
	p->slot = sim_alloc(job->iodepth * sizeof(*p->slot));
	p->ra.previous = U64_MAX;
	if ((job->rw & SIM_RW_RANDOM) && !job->norandommap) {
		u64 range = job->zone_size ? job->zone_range : job->size;

		p->map_units = range / job->align_bytes;
		p->map = sim_alloc((p->map_units + 63) / 64 * sizeof(u64));
	}
	return p;
}

void sim_process_free(struct sim_process *p)
{
	free(p->map);
	free(p->slot);
	free(p);
}

const struct sim_job *sim_process_job(const struct sim_process *p)
{
	return &p->job;
}

u64 sim_process_moved(const struct sim_process *p)
{
	return p->moved[0] + p->moved[1];
}

void sim_process_note_wait(struct sim_process *p, u64 wait_ns)
{
	histogram_add(&p->wait, wait_ns);
}

void sim_process_result(const struct sim_process *p,
			struct sim_job_result *result)
{
	u32 dir;

	memset(result, 0, sizeof(*result));
	for (dir = 0; dir < 2; dir++) {
		result->bytes[dir] = p->moved[dir];
		result->blocks[dir] = p->blocks[dir];
		histogram_times(&p->latency[dir], &result->latency[dir]);
	}
	result->start_ns = p->begin_ns;
	result->end_ns = p->end_ns;
	histogram_times(&p->wait, &result->wait);
}

/* The process's own time: the clock, and what it has run ahead of it. */
static u64 own_time(const struct sim *sim, const struct sim_process *p)
{
	return sim->now_ns + p->cpu_ns;
}

static void run_at(struct sim *sim, struct sim_process *p, u64 at_ns)
{
	p->timed = true;
	p->cpu_ns = 0;
	sim_timer(sim, at_ns, run, p);
}

/* ---- which block ---- */

static u64 region_end(const struct sim_process *p)
{
	return p->job.offset + p->job.size;
}

static u32 block_bytes(struct sim_process *p, u8 dir)
{
	const struct sim_job *job = &p->job;
	u32 i, dice, sum = 0;

	if (job->range_max[dir]) {
		u64 units = (job->range_max[dir] - job->range_min[dir]) /
				    job->align_bytes +
			    1;

		return job->range_min[dir] +
		       (u32)sim_random_below(&p->seed, units) *
			       job->align_bytes;
	}
	if (job->nr_splits[dir] == 1)
		return job->split_bytes[dir][0];
	dice = (u32)sim_random_below(&p->seed, 100);
	for (i = 0; i + 1 < job->nr_splits[dir]; i++) {
		sum += job->split_pct[dir][i];
		if (dice < sum)
			break;
	}
	return job->split_bytes[dir][i];
}

/*
 * A random unit, each once until all have been used, as fio's random map: a
 * used one gives way to the next free one.
 */
static u64 random_unit(struct sim_process *p, u64 units)
{
	u64 unit = sim_random_below(&p->seed, units), word;

	if (!p->map)
		return unit;
	if (p->map_used >= p->map_units) {
		memset(p->map, 0, (p->map_units + 63) / 64 * sizeof(u64));
		p->map_used = 0;
	}
	word = ~p->map[unit / 64] & (~0ULL << unit % 64);
	while (!word) {
		unit = (unit / 64 + 1) * 64;
		if (unit >= units)
			unit = 0;
		word = ~p->map[unit / 64];
	}
	unit = unit / 64 * 64 + (u64)__builtin_ctzll(word);
	if (unit >= units) /* only the tail of the last word was free */
		unit = sim_random_below(&p->seed, units);
	return unit;
}

static void use_units(struct sim_process *p, u64 unit, u64 nr)
{
	for (; nr && p->map && unit < p->map_units; nr--, unit++) {
		u64 bit = 1ULL << unit % 64;

		if (!(p->map[unit / 64] & bit)) {
			p->map[unit / 64] |= bit;
			p->map_used++;
		}
	}
}

/* fio's zonemode=strided: after zone_size bytes go on behind the gap. */
static void next_zone(struct sim_process *p)
{
	const struct sim_job *job = &p->job;

	p->zone_bytes = 0;
	p->zone_start += job->zone_range + job->zone_skip;
	if (p->zone_start >= region_end(p))
		p->zone_start = job->offset;
	p->position[0] = p->zone_start;
	p->position[1] = p->zone_start;
	if (p->map) {
		memset(p->map, 0, (p->map_units + 63) / 64 * sizeof(u64));
		p->map_used = 0;
	}
}

/* Choose position and length; false when this pass is over. */
static bool next_block(struct sim_process *p, u64 *position)
{
	const struct sim_job *job = &p->job;
	u64 start, end, left = job->io_bytes - p->issued;
	bool mixed = (job->rw & SIM_RW_READ) && (job->rw & SIM_RW_WRITE);
	u8 dir = job->rw & SIM_RW_READ ? SS_READ : SS_WRITE;
	u64 bytes;

	if (!left)
		return false;
	if (mixed && sim_random_below(&p->seed, 100) >= job->read_pct)
		dir = SS_WRITE;
	bytes = block_bytes(p, dir);
	if (job->zone_size && p->zone_bytes >= job->zone_size)
		next_zone(p);
	start = job->zone_size ? p->zone_start : job->offset;
	end = job->zone_size ? start + job->zone_range : region_end(p);
	if (end > region_end(p))
		end = region_end(p);
	if (job->rw & SIM_RW_RANDOM) {
		u64 units = (end - start) / job->align_bytes;
		u64 unit = random_unit(p, units);

		*position = start + unit * job->align_bytes;
		if (bytes > end - *position)
			bytes = end - *position;
		use_units(p, unit,
			  (bytes + job->align_bytes - 1) / job->align_bytes);
	} else {
		if (p->position[dir] < start || p->position[dir] >= end)
			p->position[dir] = start;
		*position = p->position[dir];
		if (bytes > end - *position)
			bytes = end - *position;
		p->position[dir] = (u64)((s64)(*position + bytes) +
					 job->seq_skip);
	}
	if (bytes > left)
		bytes = left;
	p->direction = dir;
	p->bytes = (u32)bytes;
	p->issued += bytes;
	p->zone_bytes += bytes;
	return true;
}

/* ---- doing it ---- */

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
		p->step = STEP_SYNC;
	}
}

/* After a block: is it time to think? Until when? 0: no. */
static u64 think_until(struct sim_process *p, u64 now_ns)
{
	if (!p->job.thinktime_ns ||
	    ++p->blocks_to_think < p->job.thinktime_blocks)
		return 0;
	p->blocks_to_think = 0;
	return now_ns + p->job.thinktime_ns;
}

static void direct_bio_done(struct sim *sim, struct sim_bio *bio)
{
	struct sim_process *p = bio->context;
	struct slot *slot = &p->slot[bio->context_number];
	u64 until;

	if (--slot->bios_left)
		return;
	p->in_flight--;
	block_done(sim, p, slot->direction, slot->bytes, slot->start_ns,
		   sim->now_ns);
	if (p->timed)
		return;
	until = think_until(p, sim->now_ns + sim->config.wake_ns);
	run_at(sim, p, until ? until : sim->now_ns + sim->config.wake_ns);
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

static void finish(struct sim *sim, struct sim_process *p)
{
	u32 i;

	p->step = STEP_DONE;
	if (own_time(sim, p) > p->end_ns && !p->job.direct)
		p->end_ns = own_time(sim, p);
	if (p->end_ns > sim->last_end_ns)
		sim->last_end_ns = p->end_ns;
	sim->running--;
	if (sim->config.owners != SIM_OWNERS_PROCESS)
		return;
	for (i = 0; i < sim->nr_disks; i++)
		ss_sched_owner_gone(&sim->disk[i].sched, (u64)p->index + 1,
				    sim->now_ns);
}

static bool time_is_up(const struct sim *sim, const struct sim_process *p)
{
	return p->job.runtime_ns &&
	       own_time(sim, p) >= p->begin_ns + p->job.runtime_ns;
}

/* Begin the next block. False: nothing to run now. */
static bool step_next(struct sim *sim, struct sim_process *p)
{
	u64 position;

	if (p->job.direct && p->in_flight >= p->job.iodepth)
		return false;
	if (time_is_up(sim, p) || !next_block(p, &position)) {
		if (!time_is_up(sim, p) && p->job.time_based) {
			p->issued = 0;
			p->position[0] = p->position[1] = p->job.offset;
			p->zone_start = p->job.offset;
			p->zone_bytes = 0;
			return true;
		}
		if (p->in_flight)
			return false;
		if (p->job.end_fsync) {
			p->job.end_fsync = false;
			p->step = STEP_SYNC;
			return true;
		}
		finish(sim, p);
		return false;
	}
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
	u64 end_of_file = (region_end(p) + PAGE_BYTES - 1) / PAGE_BYTES;
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
				run_at(sim, p, own_time(sim, p));
				return false;
			case CACHE_BLOCKED:
				p->asleep = true;
				return false;
			}
		} else if (!now) {
			run_at(sim, p, own_time(sim, p));
			return false;
		} else if (!sim_cache_write(sim, p->index, p->page)) {
			p->asleep = true;
			return false;
		}
		p->cpu_ns += sim->config.page_copy_ns;
	}
	p->step = STEP_NEXT;
	block_done(sim, p, p->direction, p->bytes, p->start_ns,
		   own_time(sim, p));
	until = think_until(p, own_time(sim, p));
	if (until || p->cpu_ns > AHEAD_NS) {
		run_at(sim, p, until ? until : own_time(sim, p));
		return false;
	}
	return true;
}

static bool step_sync(struct sim *sim, struct sim_process *p)
{
	if (p->cpu_ns || p->in_flight) {
		if (p->cpu_ns)
			run_at(sim, p, own_time(sim, p));
		return false;
	}
	p->step = STEP_NEXT;
	p->asleep = true;
	sim_cache_sync(sim, p->index, p->job.offset / PAGE_BYTES,
		       (region_end(p) + PAGE_BYTES - 1) / PAGE_BYTES);
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
		case STEP_DONE:
			return;
		}
	}
}

/* ---- called back ---- */

void sim_process_page_ready(struct sim *sim, struct sim_process *p)
{
	p->asleep = false;
	run_at(sim, p, sim->now_ns + sim->config.wake_ns);
}

void sim_process_synced(struct sim *sim, struct sim_process *p)
{
	p->asleep = false;
	p->end_ns = sim->now_ns;
	run_at(sim, p, sim->now_ns + sim->config.wake_ns);
}

void sim_process_start(struct sim *sim, struct sim_process *p)
{
	p->begin_ns = sim->now_ns + p->job.startdelay_ns;
	p->end_ns = p->begin_ns;
	if (p->begin_ns < sim->first_start_ns)
		sim->first_start_ns = p->begin_ns;
	p->position[0] = p->position[1] = p->job.offset;
	p->zone_start = p->job.offset;
	run_at(sim, p, p->begin_ns);
}
