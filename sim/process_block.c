// SPDX-License-Identifier: GPL-2.0-only
/* Which block a process wants next, by fio's rules (fio 3.33, io_u.c). */
#include "process_state.h"

#include <string.h>

/* A process fills one of so many parts of a group's free space (ext3). */
#define GROUP_PARTS 16

/* One of @nr sizes, by weights of 100 in all. */
static u32 draw(u64 *seed, u32 nr, const u32 *bytes, const u32 *pct)
{
	u32 i, sum = 0, dice = (u32)sim_random_below(seed, 100);

	for (i = 0; i + 1 < nr; i++) {
		sum += pct[i];
		if (dice < sum)
			break;
	}
	return bytes[i];
}

static u32 block_bytes(struct sim_process *p, u8 dir)
{
	const struct sim_job *job = &p->job;

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
	return draw(&p->seed, job->nr_splits[dir], job->split_bytes[dir],
		    job->split_pct[dir]);
}

/*
 * A random unit, each once until all have been used, as fio's random map: a
 * used one gives way to the next free one.
 */
static u64 random_unit(struct sim_process *p, u64 units)
{
	u64 unit = sim_random_below(&p->seed, units), word;
	bool again = false;

	if (!p->map)
		return unit;
	if (p->map_used >= p->map_units) {
		memset(p->map, 0, map_bytes(p));
		p->map_used = 0;
		p->begins_pass = true;
	}
	for (;;) {
		word = ~p->map[unit / 64] & (~0ULL << unit % 64);
		unit = unit / 64 * 64;
		unit += word ? (u64)__builtin_ctzll(word) : 64;
		if (word && unit < units)
			return unit;
		if (unit < units)
			continue;
		/* The last zone is smaller than the map: all used already. */
		if (again)
			return sim_random_below(&p->seed, units);
		again = true;
		unit = 0;
	}
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
		memset(p->map, 0, map_bytes(p));
		p->map_used = 0;
	}
}

u8 process_choose_direction(struct sim_process *p)
{
	const struct sim_job *job = &p->job;

	if (!(job->rw & SIM_RW_READ))
		return SS_WRITE;
	if ((job->rw & SIM_RW_WRITE) &&
	    sim_random_below(&p->seed, 100) >= job->read_pct)
		return SS_WRITE;
	return SS_READ;
}

static u64 random_place(struct sim_process *p)
{
	const struct sim_job *job = &p->job;
	u64 start = job->offset, bytes = job->size;

	if (job->group_bytes) {
		start += sim_random_below(&p->seed, bytes / job->group_bytes) *
			 job->group_bytes;
		bytes = job->group_files_bytes;
	}
	return start + sim_random_below(&p->seed, bytes / job->align_bytes) *
			       job->align_bytes;
}

/* Something new of @bytes in the group of what lies at @position. */
static void next_free(struct sim_process *p, u64 position, u64 bytes)
{
	const struct sim_job *job = &p->job;
	u64 part = (job->group_bytes - job->group_files_bytes) / GROUP_PARTS;
	u64 group = (position - job->offset) / job->group_bytes;

	if (p->group_filled[group] + bytes > part)
		p->group_filled[group] = 0;
	p->file_at = job->offset + group * job->group_bytes +
		     job->group_files_bytes + p->index % GROUP_PARTS * part +
		     p->group_filled[group];
	p->file_at = p->file_at / PAGE_BYTES * PAGE_BYTES;
	p->file_end = p->file_at + bytes;
	p->group_filled[group] += bytes;
}

/* Write a new file instead, or first read the last page of this one. */
static void next_written(struct sim_process *p)
{
	if (sim_random_below(&p->seed, 100) >= p->job.append_pct) {
		next_free(p, p->file_at, p->file_end - p->file_at);
		return;
	}
	p->file_step = FILE_LAST_READ;
	p->direction = SS_READ;
	p->file_at = (p->file_end - 1) / PAGE_BYTES * PAGE_BYTES;
}

bool process_append_more(struct sim_process *p)
{
	switch (p->file_step) {
	case FILE_WHOLE:
		return false;
	case FILE_LAST_READ:
		p->file_step = FILE_LAST_WRITTEN;
		p->direction = SS_WRITE;
		p->file_at = (p->file_end - 1) / PAGE_BYTES * PAGE_BYTES;
		return true;
	case FILE_LAST_WRITTEN:
		/* What lies behind it is another file's. */
		p->file_step = FILE_WHOLE;
		next_free(p, p->file_at - PAGE_BYTES, p->job.append_bytes);
		return true;
	}
	return false;
}

/*
 * Open the next file: behind the last one, in another directory at a random
 * place, or always at one, where the position alone says how long it is.
 */
void process_next_file(struct sim_process *p)
{
	const struct sim_job *job = &p->job;
	u64 end = region_end(p), seed, *from = &p->seed;

	p->direction = process_choose_direction(p);
	if (job->directory_files && p->files % job->directory_files == 0)
		p->position[0] = random_place(p);
	if (job->rw & SIM_RW_RANDOM) {
		p->file_at = random_place(p);
		seed = p->file_at;
		from = &seed;
	} else {
		p->file_at = p->position[0];
		if (p->file_at < job->offset || p->file_at >= end)
			p->file_at = job->offset;
	}
	p->file_end = p->file_at + draw(from, job->nr_file_splits,
					job->file_bytes, job->file_pct);
	if (p->file_end > end)
		p->file_end = end;
	p->position[0] = (u64)((s64)p->file_end + job->seq_skip);
	if (job->group_bytes && p->direction == SS_WRITE)
		next_written(p);
	p->files++;
	process_open_file(p);
}

u64 process_next_in_file(struct sim_process *p)
{
	u64 bytes = block_bytes(p, p->direction), position = p->file_at;

	if (bytes > p->file_end - p->file_at)
		bytes = p->file_end - p->file_at;
	p->file_at += bytes;
	p->bytes = (u32)bytes;
	p->issued += bytes;
	return position;
}

/*
 * Whether the next block of a random job goes to a random position: all do, or
 * every so many, or so many of 100.
 */
static bool at_random(struct sim_process *p, u8 dir)
{
	const struct sim_job *job = &p->job;

	if (!(job->rw & SIM_RW_RANDOM))
		return false;
	if (++p->in_order < job->random_every)
		return false;
	p->in_order = 0;
	return !job->in_order_pct[dir] ||
	       sim_random_below(&p->seed, 100) >= job->in_order_pct[dir];
}

/* Where a random job goes on that does not go to a random position. */
static u64 goes_on_at(const struct sim_process *p, u8 dir)
{
	return p->job.stays ? p->last_start[dir] : p->position[dir];
}

/* In order: the next position, or where to begin again. */
static u64 in_order(struct sim_process *p, u8 dir, u64 start, u64 end)
{
	u64 position = p->position[dir], back = (u64)-p->job.seq_skip;

	if (position >= start && position < end)
		return position;
	p->begins_pass = true;
	if (p->job.seq_skip < 0 && back <= end - start)
		return end - back;
	return start;
}

u64 process_next_block(struct sim_process *p)
{
	const struct sim_job *job = &p->job;
	u64 start, end, position, left = job->io_bytes - p->issued;
	u8 dir = p->direction_chosen ? p->next_direction :
				       process_choose_direction(p);
	bool random = at_random(p, dir);
	u8 sizes = random ? SS_WRITE : SS_READ; /* bs_is_seq_rand of fio */
	u64 bytes = block_bytes(p, job->sizes_by_order ? sizes : dir);

	p->direction_chosen = false;

	if (job->zone_size && p->zone_bytes >= job->zone_size)
		next_zone(p);
	if (job->nr_files > 1)
		process_choose_file(p, dir);
	start = job->zone_size ? p->zone_start : file_begin(p);
	end = job->zone_size ? start + job->zone_range : file_limit(p);
	if (end > file_limit(p))
		end = file_limit(p);
	if (job->rw & SIM_RW_RANDOM) {
		u64 units = (end - start) / job->align_bytes, unit;

		position = goes_on_at(p, dir);
		if (random || position < start || position >= end) {
			unit = job->places == SIM_PLACES_UNIFORM ?
				       random_unit(p, units) :
				       process_place(p, dir, units);
			position = start + unit * job->align_bytes;
		}
		unit = (position - start) / job->align_bytes;
		if (bytes > end - position)
			bytes = end - position;
		use_units(p, unit,
			  (bytes + job->align_bytes - 1) / job->align_bytes);
		p->last_start[dir] = position;
		p->position[dir] = position + bytes;
	} else {
		position = in_order(p, dir, start, end);
		if (bytes > end - position)
			bytes = end - position;
		p->position[dir] = (u64)((s64)(position + bytes) +
					 job->seq_skip);
	}
	if (bytes > left)
		bytes = left;
	p->direction = dir;
	p->bytes = (u32)bytes;
	p->issued += bytes;
	p->zone_bytes += bytes;
	return position;
}
