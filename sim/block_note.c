// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is remembered of requests: the log's rows, and the sums of which results
 * are made.
 */
#include "internal.h"

#include <string.h>

u64 sim_block_wanted_ns(const struct sim_request *request)
{
	const struct sim_bio *bio;
	u64 first_ns = U64_MAX;

	for (bio = request->first_bio; bio; bio = bio->next)
		first_ns = min_t(u64, first_ns, bio->wanted_ns);
	return first_ns;
}

u32 sim_block_party(struct sim *sim, struct sim_disk *disk,
		    const struct ss_request *rq)
{
	struct ss_sched *sched = sim_block_sched(disk, rq->sector);
	s32 place = ss_sched_index_of(sched, rq);
	struct ss_stream_info info;
	u32 *party;

	if (place < 0 ||
	    !ss_sched_stream_at(sched, (u32)place, sim->now_ns, &info))
		return SIM_PARTY_NONE;
	if (!strcmp(info.kind, "rest"))
		return SIM_PARTY_REST;
	if (!strcmp(info.kind, "write-back"))
		return SIM_PARTY_WRITE_BACK;
	if (!strcmp(info.kind, "sender"))
		return SIM_PARTY_SENDER;
	if (place >= SIM_PLACES) {
		sim_fail(sim, "the log has no room for party %d", place);
		return SIM_PARTY_NONE;
	}
	party = &disk->party[sched - disk->sched][place];
	/* Another stream may have had the place before. */
	if (!info.sent)
		*party = SIM_PARTY_NONE;
	/* What only places a head is in no log. */
	if (!*party && !(rq->flags & SS_PLACING))
		*party = SIM_PARTY_STREAM + sim->nr_streams++;
	return *party;
}

void sim_block_note_log(struct sim *sim, const struct sim_request *request)
{
	const struct ss_request *rq = &request->rq;

	if (sim->log_grows && sim->log_rows == sim->log_capacity)
		sim_log_grow(sim);
	if (sim->log_rows < sim->log_capacity)
		sim->log[sim->log_rows++] = (struct sim_log_row){
			.arrival_ns = sim_block_wanted_ns(request),
			.dispatch_ns = rq->dispatch_ns,
			.start_ns = request->cmd.start_ns,
			.complete_ns = sim->now_ns,
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

void sim_block_note(struct sim *sim, struct sim_disk *disk,
		    const struct sim_request *request)
{
	const struct sim_bio *bio;
	const struct ss_request *rq = &request->rq;

	histogram_add(&sim->service,
		      request->cmd.done_ns - request->cmd.start_ns);
	sim->position_ns += request->cmd.position_ns;
	sim->disk_requests++;
	sim->disk_bytes[rq->direction] += (u64)rq->nr_sectors * SECTOR_BYTES;
	if (request->first_bio->job != disk->last_job) {
		if (disk->last_job != U32_MAX) {
			sim->switches++;
			sim->switch_ns += request->cmd.position_ns;
		}
		disk->last_job = request->first_bio->job;
	}
	for (bio = request->first_bio; bio; bio = bio->next) {
		u64 wait_ns = rq->dispatch_ns - bio->wanted_ns;

		histogram_add(&sim->wait, wait_ns);
		histogram_add(&sim->response, sim->now_ns - bio->wanted_ns);
		if (bio->job < sim->nr_processes)
			sim_process_note_wait(sim->process[bio->job], wait_ns);
	}
}

void sim_block_note_flush(const struct sim *sim, struct sim_disk *disk,
			  const struct hdd_cmd *flush)
{
	bool idle = false;
	u32 i;

	for (i = 0; i < disk->nr_heads; i++) {
		u64 from = disk->sched[i].idle_since_ns;

		if (from == SS_FOREVER)
			continue;
		idle = true;
		from = max_t(u64, from,
			     max_t(u64, flush->submit_ns,
				   disk->flush_counted_ns));
		if (from < sim->now_ns)
			disk->flush_idle_ns += sim->now_ns - from;
	}
	if (idle)
		disk->flush_counted_ns = sim->now_ns;
}
