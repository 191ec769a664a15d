// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is remembered of requests: the log's rows, and the sums of which results
 * are made.
 */
#include "block_note.h"

#include <string.h>

u64 sim_block_wanted_ns(const struct sim_request *request)
{
	const struct sim_bio *bio;
	u64 first_ns = U64_MAX;

	for (bio = request->first_bio; bio; bio = bio->next)
		first_ns = min_t(u64, first_ns, bio->wanted_ns);
	return first_ns;
}

u32 sim_block_party(struct sim_block *block, struct sim_disk *disk,
		    const struct ss_request *rq)
{
	struct ss_sched *sched = sim_block_sched(disk, rq->sector);
	s32 place = ss_sched_index_of(sched, rq);
	struct ss_stream_info info;
	u32 *party;

	if (place < 0 ||
	    !ss_sched_stream_at(sched, (u32)place, block->clock->now_ns, &info))
		return SIM_PARTY_NONE;
	if (!strcmp(info.kind, "rest"))
		return SIM_PARTY_REST;
	if (!strcmp(info.kind, "write-back"))
		return SIM_PARTY_WRITE_BACK;
	if (!strcmp(info.kind, "sender"))
		return SIM_PARTY_SENDER;
	if (place >= SIM_PLACES) {
		sim_fail(block->clock, "the log has no room for party %d",
			 place);
		return SIM_PARTY_NONE;
	}
	party = &disk->party[sched - disk->sched][place];
	/* Another stream may have had the place before. */
	if (!info.sent)
		*party = SIM_PARTY_NONE;
	/* What only places a head is in no log. */
	if (!*party && !(rq->flags & SS_PLACING))
		*party = SIM_PARTY_STREAM + block->nr_streams++;
	return *party;
}

/* Rows of a log that grows, at first: for a lump of events. */
#define LOG_ROWS 65536

int sim_block_log(struct sim_block *block, u64 capacity)
{
	block->log_grows = !capacity;
	if (!capacity)
		capacity = LOG_ROWS;
	block->log = calloc(capacity, sizeof(*block->log));
	block->log_capacity = block->log ? capacity : 0;
	return block->log ? 0 : -1;
}

static void log_grow(struct sim_block *block)
{
	block->log_capacity *= 2;
	block->log = realloc(block->log,
			     block->log_capacity * sizeof(*block->log));
	if (!block->log)
		abort();
}

void sim_block_note_log(struct sim_block *block,
			const struct sim_request *request)
{
	const struct ss_request *rq = &request->rq;

	if (block->log_grows && block->log_rows == block->log_capacity)
		log_grow(block);
	if (block->log_rows < block->log_capacity)
		block->log[block->log_rows++] = (struct sim_log_row){
			.arrival_ns = sim_block_wanted_ns(request),
			.dispatch_ns = rq->dispatch_ns,
			.start_ns = request->cmd.start_ns,
			.complete_ns = block->clock->now_ns,
			.position_ns = request->cmd.position_ns,
			.sector = rq->sector,
			.owner = rq->owner,
			.nr_sectors = rq->nr_sectors,
			.job = request->first_bio->job,
			.party = request->party,
			.disk = (u16)request->first_bio->disk,
			.direction = rq->direction,
			.why = (u8)request->why,
		};
}

void sim_block_note(struct sim_block *block, struct sim_disk *disk,
		    const struct sim_request *request)
{
	const struct sim_bio *bio;
	const struct ss_request *rq = &request->rq;

	histogram_add(&block->service,
		      request->cmd.done_ns - request->cmd.start_ns);
	block->sums.position_ns += request->cmd.position_ns;
	block->sums.disk_requests++;
	block->sums.disk_bytes[rq->direction] += (u64)rq->nr_sectors *
						 SECTOR_BYTES;
	if (request->first_bio->job != disk->last_job) {
		if (disk->last_job != U32_MAX) {
			block->sums.switches++;
			block->sums.switch_ns += request->cmd.position_ns;
		}
		disk->last_job = request->first_bio->job;
	}
	for (bio = request->first_bio; bio; bio = bio->next) {
		u64 wait_ns = rq->dispatch_ns - bio->wanted_ns;

		histogram_add(&block->wait, wait_ns);
		histogram_add(&block->response,
			      block->clock->now_ns - bio->wanted_ns);
		block->senders.waited(block->senders.context, bio->job,
				      wait_ns);
	}
}

void sim_block_note_flush(const struct sim_block *block, struct sim_disk *disk,
			  const struct hdd_cmd *flush)
{
	bool idle = false;
	u32 i;

	for (i = 0; i < disk->heads.nr; i++) {
		u64 from = disk->sched[i].idle_since_ns;

		if (from == SS_FOREVER)
			continue;
		idle = true;
		from = max_t(u64, from,
			     max_t(u64, flush->submit_ns,
				   disk->flush_counted_ns));
		if (from < block->clock->now_ns)
			disk->flush_idle_ns += block->clock->now_ns - from;
	}
	if (idle)
		disk->flush_counted_ns = block->clock->now_ns;
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

void sim_block_sums(const struct sim_block *block, struct sim_result *result)
{
	u32 i;

	*result = block->sums;
	for (i = 0; i < block->nr_disks; i++) {
		const struct sim_disk *disk = &block->disk[i];

		add_counters(&disk->past, result);
		result->idle_ns -= disk->flush_idle_ns;
		/* What has gone on since before a ramp's end counts in part. */
		if (disk->busy_from_ns != U64_MAX)
			result->busy_ns += block->clock->now_ns -
					   disk->busy_from_ns;
	}
	sim_for_each_sched(block, sched)
		add_counters(&sched->counters, result);
}
