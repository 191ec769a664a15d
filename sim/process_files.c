// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process with several files (nrfiles of fio): which of them its next block
 * is in, by fio's rules (fio 3.33, get_next_file() and what it calls, as its
 * traces show them). They lie one behind the other, and each has a place of its
 * own where it goes on, blocks that it has had, and a window of readahead. What
 * the present one has is where other processes have it, in struct sim_process.
 */
#include "process_state.h"

#include <string.h>

/* What is the process's while it works at the file. */
struct job_file {
	u64 position[2], last_start[2];
	u64 *map;
	u64 map_used;
	struct readahead ra;
	bool open;
	bool done; /* nothing of it is left in this pass */
};

void process_open_file(struct sim_process *p)
{
	p->ra = (struct readahead){
		.previous = U64_MAX,
		.max = p->job.readahead_pages == SIM_READAHEAD_SAME ?
			       p->all->config->readahead_pages :
			       p->job.readahead_pages,
		.first = p->job.first_window_pages,
		.maps = p->job.maps,
		.file_page = (p->job.nr_file_splits ? p->file_at :
						      file_begin(p)) /
			     PAGE_BYTES,
	};
}

static void put_down(struct sim_process *p)
{
	struct job_file *file = &p->file[p->file_at_work];

	memcpy(file->position, p->position, sizeof(p->position));
	memcpy(file->last_start, p->last_start, sizeof(p->last_start));
	file->map_used = p->map_used;
	file->ra = p->ra;
}

static void take_up(struct sim_process *p, u32 number)
{
	const struct job_file *file = &p->file[number];

	p->file_at_work = number;
	memcpy(p->position, file->position, sizeof(p->position));
	memcpy(p->last_start, file->last_start, sizeof(p->last_start));
	p->map = file->map;
	p->map_used = file->map_used;
	p->ra = file->ra;
}

void process_new_files(struct sim_process *p)
{
	u32 i;

	p->file = sim_alloc(p->job.nr_files * sizeof(*p->file));
	for (i = 0; i < p->job.nr_files; i++)
		if (p->map_units)
			p->file[i].map = sim_alloc(map_bytes(p));
}

void process_free_files(struct sim_process *p)
{
	u32 i;

	for (i = 0; i < p->job.nr_files; i++)
		free(p->file[i].map);
	free(p->file);
}

void process_begin_files(struct sim_process *p)
{
	u32 i;

	for (i = 0; i < p->job.nr_files; i++) {
		struct job_file *file = &p->file[i];

		p->file_at_work = i;
		process_open_file(p);
		file->ra = p->ra;
		file->position[0] = file->position[1] = file_begin(p);
		file->map_used = 0;
		file->open = file->done = false;
		if (file->map)
			memset(file->map, 0, map_bytes(p));
	}
	p->files_open = p->files_done = 0;
	p->begins_pass = true;
	take_up(p, 0);
}

/* It is open, or may be opened. */
static bool may_serve(const struct sim_process *p, const struct job_file *file)
{
	return !file->done && (file->open || p->files_open < p->job.open_files);
}

static u32 any_file(struct sim_process *p)
{
	u32 i = 0, nr = p->files_open;

	if (p->files_open < p->job.open_files)
		nr = p->job.nr_files - p->files_done;
	nr = (u32)sim_random_below(&p->seed, nr);
	while (!may_serve(p, &p->file[i]) || nr--)
		i++;
	return i;
}

/* What cannot be opened now is passed over until it has its turn again. */
static u32 next_file(struct sim_process *p)
{
	u32 i;

	do {
		i = p->next_file;
		p->next_file = (i + 1) % p->job.nr_files;
	} while (!may_serve(p, &p->file[i]));
	return i;
}

/* Whose turn it is; one is left that is not done. */
static void serve(struct sim_process *p)
{
	const struct sim_job *job = &p->job;
	struct job_file *file = &p->file[p->file_at_work];
	u32 number;

	if (file->open && job->file_service == SIM_FILES_SEQUENTIAL)
		return;
	if (file->open && p->service_left) {
		p->service_left--;
		return;
	}
	number = job->file_service == SIM_FILES_RANDOM ? any_file(p) :
							 next_file(p);
	put_down(p);
	take_up(p, number);
	p->files_open += !p->file[number].open;
	p->file[number].open = true;
	p->service_left = job->file_service_blocks - 1;
}

static bool has_more(const struct sim_process *p, u8 dir)
{
	if (p->job.rw & SIM_RW_RANDOM)
		return !p->map || p->map_used < p->map_units;
	return p->job.seq_skip || p->position[dir] < file_limit(p);
}

void process_choose_file(struct sim_process *p, u8 dir)
{
	for (;;) {
		struct job_file *file;

		serve(p);
		if (has_more(p, dir))
			return;
		file = &p->file[p->file_at_work];
		file->open = false;
		file->done = true;
		p->files_open--;
		if (++p->files_done == p->job.nr_files)
			process_begin_files(p);
	}
}

void process_choose_synced(struct sim_process *p)
{
	if (p->files_done < p->job.nr_files)
		serve(p);
}
