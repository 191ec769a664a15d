// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block layer: bios become requests (merged where they touch), the
 * scheduler chooses among them, the disk serves them.
 *
 * As in Linux, at most nr_requests requests of each direction exist at once;
 * a sender that wants more sleeps until one is done.
 */
#include "internal.h"

#include <string.h>

#define SLAB_OBJECTS 256

static void *slab(struct sim *sim, size_t bytes)
{
	void **block = sim_alloc(sizeof(void *) + bytes);

	*block = sim->slabs;
	sim->slabs = block;
	return block + 1;
}

struct sim_bio *sim_bio_new(struct sim *sim)
{
	struct sim_bio *bio = sim->free_bio;
	u32 i;

	if (!bio) {
		bio = slab(sim, SLAB_OBJECTS * sizeof(*bio));
		for (i = 0; i + 1 < SLAB_OBJECTS; i++)
			bio[i].next = &bio[i + 1];
		bio[i].next = NULL;
	}
	sim->free_bio = bio->next;
	memset(bio, 0, sizeof(*bio));
	return bio;
}

void sim_bio_free(struct sim *sim, struct sim_bio *bio)
{
	bio->next = sim->free_bio;
	sim->free_bio = bio;
}

static struct sim_request *request_new(struct sim *sim)
{
	struct sim_request *request = sim->free_request;
	u32 i;

	if (!request) {
		request = slab(sim, SLAB_OBJECTS * sizeof(*request));
		for (i = 0; i + 1 < SLAB_OBJECTS; i++)
			request[i].next_free = &request[i + 1];
		request[i].next_free = NULL;
	}
	sim->free_request = request->next_free;
	return request;
}

static void request_free(struct sim *sim, struct sim_request *request)
{
	request->next_free = sim->free_request;
	sim->free_request = request;
}

static struct sim_request *request_of(struct ss_request *rq)
{
	return (struct sim_request *)((char *)rq -
				      offsetof(struct sim_request, rq));
}

/* Who the scheduler is told sent it. */
static u64 owner_of(const struct sim *sim, u32 job)
{
	switch (sim->config.owners) {
	case SIM_OWNERS_PROCESS:
		if (job < sim->nr_processes)
			return sim_process_owner(sim->process[job]);
		return (u64)job + 1;
	case SIM_OWNERS_GROUP:
		if (job < sim->nr_processes)
			return (u64)sim_process_job(sim->process[job])->group +
			       1;
		if (sim->replay)
			job = sim_sources_group(sim_replay_sources(sim->replay),
						job);
		return (u64)job + 1;
	default:
		return SS_OWNER_NONE;
	}
}

/* The weight of what it sends, in percent; known of hidden ones, too. */
static u32 weight_of(const struct sim *sim, u32 job)
{
	u64 owner = owner_of(sim, job);
	u32 i;

	if (owner == SS_OWNER_NONE && job < sim->nr_processes)
		owner = (u64)sim_process_job(sim->process[job])->group + 1;
	for (i = 0; i < sim->nr_weights; i++)
		if (sim->weight[i].owner == owner)
			return sim->weight[i].percent;
	return 0;
}

static void append(struct sim_bio **first, struct sim_bio **last,
		   struct sim_bio *bio)
{
	bio->next = NULL;
	if (*first)
		(*last)->next = bio;
	else
		*first = bio;
	*last = bio;
}

struct ss_sched *sim_block_sched(struct sim_disk *disk, u64 sector)
{
	u64 half = disk->drive->params.capacity_sectors / SIM_HEADS;

	return &disk->sched[disk->nr_heads > 1 && sector >= half ? 1 : 0];
}

u32 sim_block_pending(const struct sim_disk *disk)
{
	u32 i, nr = 0;

	for (i = 0; i < disk->nr_heads; i++)
		nr += disk->sched[i].nr_pending;
	return nr;
}

/* Join @request with pending ones that it now touches. */
static void join(struct sim *sim, struct sim_disk *disk,
		 struct sim_request *request)
{
	struct ss_sched *sched = sim_block_sched(disk, request->rq.sector);
	struct ss_request *next;

	while ((next = ss_sched_find_join(sched, &request->rq,
					  sim->config.max_request_sectors))) {
		struct sim_request *other = request_of(next);

		ss_sched_joined(sched, &request->rq, next, sim->now_ns);
		request->last_bio->next = other->first_bio;
		request->last_bio = other->last_bio;
		disk->held_requests[next->direction]--;
		list_del_init(&other->pending_node);
		request_free(sim, other);
	}
}

static void enqueue(struct sim *sim, struct sim_bio *bio)
{
	struct ss_request *into, probe = {
		.sector = bio->sector,
		.nr_sectors = bio->nr_sectors,
		.direction = bio->direction,
		.flags = bio->flags,
		.owner = bio->flags & SS_PLACING ? SS_OWNER_NONE :
						   owner_of(sim, bio->job),
		.weight = weight_of(sim, bio->job),
	};
	struct sim_disk *disk = &sim->disk[bio->disk];
	struct ss_sched *sched = sim_block_sched(disk, bio->sector);
	struct sim_request *request;

	disk->ask = true;
	into = ss_sched_find_same(sched, &probe);
	if (into) {
		request = request_of(into);
		append(&request->first_bio, &request->last_bio, bio);
		ss_sched_shared(sched, into, sim->now_ns);
		return;
	}
	if (ss_sched_find_merge(sched, &probe, sim->config.max_request_sectors,
				&into)) {
		request = request_of(into);
		append(&request->first_bio, &request->last_bio, bio);
		ss_sched_merged(sched, into, &probe, sim->now_ns);
		join(sim, disk, request);
		return;
	}
	request = request_new(sim);
	memset(&request->rq, 0, sizeof(request->rq));
	request->rq.sector = bio->sector;
	request->rq.nr_sectors = bio->nr_sectors;
	request->rq.direction = bio->direction;
	request->rq.flags = bio->flags;
	request->rq.owner = probe.owner;
	request->rq.weight = probe.weight;
	request->first_bio = NULL;
	append(&request->first_bio, &request->last_bio, bio);
	disk->held_requests[bio->direction]++;
	list_add_tail(&request->pending_node, &disk->pending);
	ss_sched_arrived(sched, &request->rq, sim->now_ns);
	sim->max_pending = max_t(u32, sim->max_pending,
				 sim_block_pending(disk));
}

void sim_submit(struct sim *sim, struct sim_bio *bio)
{
	if (!bio->flush)
		ss_workload_arrived(&sim->workload, bio->sector,
				    bio->nr_sectors, bio->direction,
				    bio->direction == SS_READ ||
					    (bio->flags & SS_SYNC));
	if (sim->array) {
		sim_array_submit(sim, bio);
		return;
	}
	bio->disk = 0;
	sim_block_submit(sim, bio);
}

void sim_block_submit(struct sim *sim, struct sim_bio *bio)
{
	struct sim_disk *disk = &sim->disk[bio->disk];
	u8 dir = bio->direction;

	if (bio->flush) {
		disk->ask = true;
		append(&disk->flush_first, &disk->flush_last, bio);
		return;
	}
	if (disk->next_policy[0] || disk->blocked_first[dir] ||
	    disk->held_requests[dir] >= sim->config.nr_requests)
		append(&disk->blocked_first[dir], &disk->blocked_last[dir],
		       bio);
	else
		enqueue(sim, bio);
}

bool sim_congested(const struct sim *sim)
{
	u32 i;

	for (i = 0; i < sim->nr_disks; i++)
		if (sim->disk[i].blocked_first[SS_READ] ||
		    sim->disk[i].blocked_first[SS_WRITE])
			return true;
	return false;
}

void sim_block_unblock(struct sim *sim, struct sim_disk *disk)
{
	u8 dir;

	if (disk->next_policy[0])
		return;
	for (dir = 0; dir < SS_DIRECTIONS; dir++)
		while (disk->blocked_first[dir] &&
		       disk->held_requests[dir] < sim->config.nr_requests) {
			struct sim_bio *bio = disk->blocked_first[dir];

			disk->blocked_first[dir] = bio->next;
			enqueue(sim, bio);
		}
}

static void to_disk(struct sim *sim, struct sim_disk *disk,
		    struct sim_request *request)
{
	if (disk->busy_from_ns == U64_MAX)
		disk->busy_from_ns = sim->now_ns;
	sim->dispatches++;
	hdd_drive_submit(disk->drive, &request->cmd, sim->now_ns);
}

/* Of several schedulers each has its turn to fill the disk's queue. */
static struct ss_decision choose(const struct sim *sim, struct sim_disk *disk)
{
	u64 until_ns = SS_FOREVER;
	u32 i;

	for (i = 0; i < disk->nr_heads; i++) {
		u32 head = (disk->first_head + i) % disk->nr_heads;
		struct ss_decision decision = ss_sched_choose(
			&disk->sched[head], sim->now_ns);

		if (decision.verdict == SS_DISPATCH) {
			disk->first_head = head + 1;
			return decision;
		}
		if (decision.verdict == SS_WAIT)
			until_ns = min_t(u64, until_ns, decision.until_ns);
	}
	return ss_wait(until_ns);
}

/* A flush begins or has ended, at all heads. */
static void flushes(struct sim *sim, struct sim_disk *disk, bool begins)
{
	u32 i;

	for (i = 0; i < disk->nr_heads; i++)
		ss_sched_flushes(&disk->sched[i], begins, sim->now_ns);
}

/* Fill the disk's queue with what the scheduler chooses. */
void sim_block_kick(struct sim *sim, struct sim_disk *disk)
{
	disk->wake_ns = U64_MAX;
	if (disk->sched[0].coordinator)
		sim_array_place(sim, disk);
	disk->ask = false;
	while (!hdd_drive_full(disk->drive)) {
		struct sim_request *request;
		struct ss_decision decision;

		if (disk->flush_first) {
			request = request_new(sim);
			memset(&request->cmd, 0, sizeof(request->cmd));
			request->cmd.op = HDD_FLUSH;
			request->first_bio = disk->flush_first;
			request->last_bio = disk->flush_first;
			disk->flush_first = disk->flush_first->next;
			request->last_bio->next = NULL;
			flushes(sim, disk, true);
			to_disk(sim, disk, request);
			continue;
		}
		decision = choose(sim, disk);
		if (decision.verdict != SS_DISPATCH) {
			disk->wake_ns = decision.until_ns;
			return;
		}
		request = request_of(decision.rq);
		list_del_init(&request->pending_node);
		request->why = decision.why;
		if (sim->log)
			request->party = sim_block_party(sim, disk,
							 decision.rq);
		ss_sched_dispatched(sim_block_sched(disk, decision.rq->sector),
				    decision.rq, decision.why, sim->now_ns);
		if (!(request->rq.flags & SS_PLACING)) {
			sim->dispatched_by[decision.why]++;
			sim->waited_ns_by[decision.why] +=
				sim->now_ns - sim_block_wanted_ns(request);
		}
		request->cmd.sector = request->rq.sector;
		request->cmd.nr_sectors = request->rq.nr_sectors;
		request->cmd.op = request->rq.direction == SS_READ ? HDD_READ :
								     HDD_WRITE;
		request->cmd.fua = false;
		to_disk(sim, disk, request);
	}
}

void sim_block_completions(struct sim *sim, struct sim_disk *disk)
{
	struct hdd_cmd *cmd;

	while ((cmd = hdd_drive_pop(disk->drive, sim->now_ns))) {
		struct sim_request *request =
			(struct sim_request *)((char *)cmd -
					       offsetof(struct sim_request,
							cmd));
		struct sim_bio *bio = request->first_bio, *next;

		if (cmd->op != HDD_FLUSH) {
			ss_sched_completed(sim_block_sched(disk,
							   request->rq.sector),
					   &request->rq, sim->now_ns);
			disk->held_requests[request->rq.direction]--;
			/* What only places a head counts as nothing. */
			if (!(request->rq.flags & SS_PLACING)) {
				sim_block_note(sim, disk, request);
				sim_block_note_log(sim, request);
			}
		} else {
			sim_block_note_flush(sim, disk, cmd);
			flushes(sim, disk, false);
		}
		if (!hdd_drive_in_flight(disk->drive)) {
			sim->busy_ns += sim->now_ns - disk->busy_from_ns;
			disk->busy_from_ns = U64_MAX;
		}
		request_free(sim, request);
		disk->ask = true;
		for (; bio; bio = next) {
			next = bio->next;
			bio->done(sim, bio);
			sim_bio_free(sim, bio);
		}
		sim_block_unblock(sim, disk);
	}
	sim_block_change_when_drained(sim, disk);
}

struct sim_bio *sim_block_take_back(struct sim *sim, struct sim_disk *disk)
{
	struct sim_bio *first = NULL, *last = NULL, *bio, *next;
	u8 dir;

	while (!list_empty(&disk->pending)) {
		struct sim_request *request = list_first_entry(
			&disk->pending, struct sim_request, pending_node);

		list_del_init(&request->pending_node);
		ss_sched_removed(sim_block_sched(disk, request->rq.sector),
				 &request->rq, sim->now_ns);
		disk->held_requests[request->rq.direction]--;
		for (bio = request->first_bio; bio; bio = next) {
			next = bio->next;
			append(&first, &last, bio);
		}
		request_free(sim, request);
	}
	for (dir = 0; dir < SS_DIRECTIONS; dir++) {
		for (bio = disk->blocked_first[dir]; bio; bio = next) {
			next = bio->next;
			append(&first, &last, bio);
		}
		disk->blocked_first[dir] = NULL;
	}
	for (bio = disk->flush_first; bio; bio = next) {
		next = bio->next;
		append(&first, &last, bio);
	}
	disk->flush_first = NULL;
	return first;
}
