// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block layer: bios become requests (merged where they touch), the
 * scheduler chooses among them, the disk serves them.
 *
 * As in Linux, at most nr_requests requests of each direction exist at once;
 * a sender that wants more sleeps until one is done.
 */
#include "block.h"

#include "block_note.h"
#include "block_switch.h"

#include <string.h>

#define SLAB_OBJECTS 256

static void *slab(struct sim_block *block, size_t bytes)
{
	void **memory = sim_alloc(sizeof(void *) + bytes);

	*memory = block->slabs;
	block->slabs = memory;
	return memory + 1;
}

struct sim_bio *sim_bio_new(struct sim_block *block)
{
	struct sim_bio *bio = block->free_bio;
	u32 i;

	if (!bio) {
		bio = slab(block, SLAB_OBJECTS * sizeof(*bio));
		for (i = 0; i + 1 < SLAB_OBJECTS; i++)
			bio[i].next = &bio[i + 1];
		bio[i].next = NULL;
	}
	block->free_bio = bio->next;
	memset(bio, 0, sizeof(*bio));
	return bio;
}

void sim_bio_free(struct sim_block *block, struct sim_bio *bio)
{
	bio->next = block->free_bio;
	block->free_bio = bio;
}

static struct sim_request *request_new(struct sim_block *block)
{
	struct sim_request *request = block->free_request;
	u32 i;

	if (!request) {
		request = slab(block, SLAB_OBJECTS * sizeof(*request));
		for (i = 0; i + 1 < SLAB_OBJECTS; i++)
			request[i].next_free = &request[i + 1];
		request[i].next_free = NULL;
	}
	block->free_request = request->next_free;
	return request;
}

static void request_free(struct sim_block *block, struct sim_request *request)
{
	request->next_free = block->free_request;
	block->free_request = request;
}

static struct sim_request *request_of(struct ss_request *rq)
{
	return (struct sim_request *)((char *)rq -
				      offsetof(struct sim_request, rq));
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

/* Join @request with pending ones that it now touches. */
static void join(struct sim_block *block, struct sim_disk *disk,
		 struct sim_request *request)
{
	struct ss_sched *sched = sim_block_sched(disk, request->rq.sector);
	struct ss_request *next;

	while ((next = ss_sched_find_join(
			sched, &request->rq,
			block->config->max_request_sectors))) {
		struct sim_request *other = request_of(next);

		ss_sched_joined(sched, &request->rq, next,
				block->clock->now_ns);
		request->last_bio->next = other->first_bio;
		request->last_bio = other->last_bio;
		disk->held_requests[next->direction]--;
		list_del_init(&other->pending_node);
		request_free(block, other);
	}
}

static void enqueue(struct sim_block *block, struct sim_bio *bio)
{
	const struct sim_senders *senders = &block->senders;
	struct ss_request *into, probe = {
		.sector = bio->sector,
		.nr_sectors = bio->nr_sectors,
		.direction = bio->direction,
		.flags = bio->flags,
	};
	struct sim_disk *disk = &block->disk[bio->disk];
	struct ss_sched *sched = sim_block_sched(disk, bio->sector);
	struct sim_request *request;

	disk->ask = true;
	probe.owner = senders->owner(senders->context, bio->job, &probe.weight);
	if (bio->flags & SS_PLACING)
		probe.owner = SS_OWNER_NONE;
	into = ss_sched_find_same(sched, &probe);
	if (into) {
		request = request_of(into);
		append(&request->first_bio, &request->last_bio, bio);
		ss_sched_shared(sched, into, block->clock->now_ns);
		return;
	}
	if (ss_sched_find_merge(sched, &probe,
				block->config->max_request_sectors, &into)) {
		request = request_of(into);
		append(&request->first_bio, &request->last_bio, bio);
		ss_sched_merged(sched, into, &probe, block->clock->now_ns);
		join(block, disk, request);
		return;
	}
	request = request_new(block);
	request->rq = probe;
	request->first_bio = NULL;
	append(&request->first_bio, &request->last_bio, bio);
	disk->held_requests[bio->direction]++;
	list_add_tail(&request->pending_node, &disk->pending);
	ss_sched_arrived(sched, &request->rq, block->clock->now_ns);
	block->sums.max_pending = max_t(u32, block->sums.max_pending,
					sim_block_pending(disk));
}

void sim_block_submit(struct sim_block *block, struct sim_bio *bio)
{
	struct sim_disk *disk = &block->disk[bio->disk];
	u8 dir = bio->direction;

	if (bio->flush) {
		disk->ask = true;
		append(&disk->flush_first, &disk->flush_last, bio);
		return;
	}
	if (disk->next_policy[0] || disk->blocked_first[dir] ||
	    disk->held_requests[dir] >= block->config->nr_requests)
		append(&disk->blocked_first[dir], &disk->blocked_last[dir],
		       bio);
	else
		enqueue(block, bio);
}

bool sim_congested(const struct sim_block *block)
{
	u32 i;

	for (i = 0; i < block->nr_disks; i++)
		if (block->disk[i].blocked_first[SS_READ] ||
		    block->disk[i].blocked_first[SS_WRITE])
			return true;
	return false;
}

static void to_disk(struct sim_block *block, struct sim_disk *disk,
		    struct sim_request *request)
{
	if (disk->busy_from_ns == U64_MAX)
		disk->busy_from_ns = block->clock->now_ns;
	block->dispatches++;
	hdd_drive_submit(disk->drive, &request->cmd, block->clock->now_ns);
}

/* Of several schedulers each has its turn to fill the disk's queue. */
static struct ss_decision choose(const struct sim_block *block,
				 struct sim_disk *disk)
{
	u64 until_ns = SS_FOREVER;
	u32 i;

	for (i = 0; i < disk->heads.nr; i++) {
		u32 head = ss_heads_at(&disk->heads, i);
		struct ss_decision decision = ss_sched_choose(
			&disk->sched[head], block->clock->now_ns);

		if (decision.verdict == SS_DISPATCH) {
			ss_heads_sent(&disk->heads, head);
			return decision;
		}
		if (decision.verdict == SS_WAIT)
			until_ns = min_t(u64, until_ns, decision.until_ns);
	}
	return ss_wait(until_ns);
}

/* A flush begins or has ended, at all heads. */
static void flushes(struct sim_block *block, struct sim_disk *disk, bool begins)
{
	u32 i;

	for (i = 0; i < disk->heads.nr; i++)
		ss_sched_flushes(&disk->sched[i], begins, block->clock->now_ns);
}

/* Fill the disk's queue with what the scheduler chooses. */
static void kick(struct sim_block *block, struct sim_disk *disk)
{
	disk->wake_ns = U64_MAX;
	if (disk->sched[0].coordinator)
		block->members.place(block->members.context, disk);
	disk->ask = false;
	while (!hdd_drive_full(disk->drive)) {
		struct sim_request *request;
		struct ss_decision decision;

		if (disk->flush_first) {
			request = request_new(block);
			memset(&request->cmd, 0, sizeof(request->cmd));
			request->cmd.op = HDD_FLUSH;
			request->first_bio = disk->flush_first;
			request->last_bio = disk->flush_first;
			disk->flush_first = disk->flush_first->next;
			request->last_bio->next = NULL;
			flushes(block, disk, true);
			to_disk(block, disk, request);
			continue;
		}
		decision = choose(block, disk);
		if (decision.verdict != SS_DISPATCH) {
			disk->wake_ns = decision.until_ns;
			return;
		}
		request = request_of(decision.rq);
		list_del_init(&request->pending_node);
		request->why = decision.why;
		if (block->log)
			request->party = sim_block_party(block, disk,
							 decision.rq);
		ss_sched_dispatched(sim_block_sched(disk, decision.rq->sector),
				    decision.rq, decision.why,
				    block->clock->now_ns);
		if (!(request->rq.flags & SS_PLACING)) {
			block->sums.dispatched_by[decision.why]++;
			block->sums.waited_ns_by[decision.why] +=
				block->clock->now_ns -
				sim_block_wanted_ns(request);
		}
		request->cmd.sector = request->rq.sector;
		request->cmd.nr_sectors = request->rq.nr_sectors;
		request->cmd.op = request->rq.direction == SS_READ ? HDD_READ :
								     HDD_WRITE;
		request->cmd.fua = false;
		to_disk(block, disk, request);
	}
}

/*
 * What one member dispatches may be what another has waited for, so those are
 * asked again that ask for it meanwhile.
 */
void sim_block_kick(struct sim_block *block)
{
	bool again;
	u32 i;

	do {
		again = false;
		for (i = 0; i < block->nr_disks; i++) {
			struct sim_disk *disk = &block->disk[i];

			if (!disk->ask && disk->wake_ns > block->clock->now_ns)
				continue;
			kick(block, disk);
			again = true;
		}
	} while (again);
}

/* Those that slept for want of a request go on, in their order. */
static void unblock(struct sim_block *block, struct sim_disk *disk)
{
	u8 dir;

	if (disk->next_policy[0])
		return;
	for (dir = 0; dir < SS_DIRECTIONS; dir++)
		while (disk->blocked_first[dir] &&
		       disk->held_requests[dir] < block->config->nr_requests) {
			struct sim_bio *bio = disk->blocked_first[dir];

			disk->blocked_first[dir] = bio->next;
			enqueue(block, bio);
		}
}

static void change_when_drained(struct sim_block *block, struct sim_disk *disk)
{
	if (sim_block_change_when_drained(block, disk))
		unblock(block, disk);
}

static void complete(struct sim_block *block, struct sim_disk *disk)
{
	struct hdd_cmd *cmd;

	while ((cmd = hdd_drive_pop(disk->drive, block->clock->now_ns))) {
		struct sim_request *request =
			(struct sim_request *)((char *)cmd -
					       offsetof(struct sim_request,
							cmd));
		struct sim_bio *bio = request->first_bio, *next;

		if (cmd->op != HDD_FLUSH) {
			ss_sched_completed(sim_block_sched(disk,
							   request->rq.sector),
					   &request->rq, block->clock->now_ns);
			disk->held_requests[request->rq.direction]--;
			/* What only places a head counts as nothing. */
			if (!(request->rq.flags & SS_PLACING)) {
				sim_block_note(block, disk, request);
				sim_block_note_log(block, request);
			}
		} else {
			sim_block_note_flush(block, disk, cmd);
			flushes(block, disk, false);
		}
		if (!hdd_drive_in_flight(disk->drive)) {
			block->sums.busy_ns += block->clock->now_ns -
					       disk->busy_from_ns;
			disk->busy_from_ns = U64_MAX;
		}
		request_free(block, request);
		disk->ask = true;
		for (; bio; bio = next) {
			next = bio->next;
			bio->done(bio);
			sim_bio_free(block, bio);
		}
		unblock(block, disk);
	}
	change_when_drained(block, disk);
}

void sim_block_completions(struct sim_block *block)
{
	u32 i;

	for (i = 0; i < block->nr_disks; i++)
		if (hdd_drive_next_ns(block->disk[i].drive) <=
		    block->clock->now_ns)
			complete(block, &block->disk[i]);
}

u64 sim_block_next_ns(const struct sim_block *block)
{
	u64 at_ns = U64_MAX;
	u32 i;

	for (i = 0; i < block->nr_disks; i++) {
		const struct sim_disk *disk = &block->disk[i];

		at_ns = min_t(u64, at_ns, hdd_drive_next_ns(disk->drive));
		at_ns = min_t(u64, at_ns, disk->wake_ns);
	}
	return at_ns;
}

void sim_block_switch(struct sim_block *block, const char *policy)
{
	u32 i;

	for (i = 0; i < block->nr_disks; i++) {
		struct sim_disk *disk = &block->disk[i];

		if (!disk->next_policy[0])
			disk->drain_from_ns = block->clock->now_ns;
		snprintf(disk->next_policy, sizeof(disk->next_policy), "%s",
			 policy);
		disk->ask = true;
		change_when_drained(block, disk);
	}
}

struct sim_bio *sim_block_take_back(struct sim_block *block,
				    struct sim_disk *disk)
{
	struct sim_bio *first = NULL, *last = NULL, *bio, *next;
	u8 dir;

	while (!list_empty(&disk->pending)) {
		struct sim_request *request = list_first_entry(
			&disk->pending, struct sim_request, pending_node);

		list_del_init(&request->pending_node);
		ss_sched_removed(sim_block_sched(disk, request->rq.sector),
				 &request->rq, block->clock->now_ns);
		disk->held_requests[request->rq.direction]--;
		for (bio = request->first_bio; bio; bio = next) {
			next = bio->next;
			append(&first, &last, bio);
		}
		request_free(block, request);
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

static int disk_init(const struct sim_block *block, struct sim_disk *disk,
		     const struct hdd_params *params, char *why, u64 why_bytes)
{
	const struct sim_config *config = block->config;
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
	if (sim_block_begin(block, disk, config->policy, why, why_bytes))
		return -1;
	INIT_LIST_HEAD(&disk->pending);
	disk->wake_ns = U64_MAX;
	disk->busy_from_ns = U64_MAX;
	disk->last_job = U32_MAX;
	return 0;
}

int sim_block_init(struct sim_block *block,
		   const struct hdd_params *const *disks, u32 nr_disks,
		   char *why, u64 why_bytes)
{
	u32 i;

	block->disk = sim_alloc(nr_disks * sizeof(*block->disk));
	block->nr_disks = nr_disks;
	for (i = 0; i < nr_disks; i++)
		if (disk_init(block, &block->disk[i], disks[i], why, why_bytes))
			return -1;
	return 0;
}

void sim_block_free(struct sim_block *block)
{
	u32 i;

	while (block->slabs) {
		void *next = *(void **)block->slabs;

		free(block->slabs);
		block->slabs = next;
	}
	for (i = 0; i < block->nr_disks; i++)
		free(block->disk[i].drive);
	free(block->disk);
	free(block->log);
}
