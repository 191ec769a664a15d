// SPDX-License-Identifier: GPL-2.0-only
/*
 * A member's queue: its scheduler, what waits there, what the disk has.
 *
 * All but queue_wake() and queue_kick() with the member's lock held. Whoever
 * changes something (a request arrives, one is done, time has passed) asks the
 * scheduler until it has no more to send (queue_pump()).
 */
#include "server.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <linux/bug.h>

#include <stdlib.h>
#include <unistd.h>

static struct piece *piece_of(struct ss_request *rq)
{
	return container_of(rq, struct piece, rq);
}

static struct transfer *transfer_get(struct member *member)
{
	struct transfer *transfer = member->free_transfers;

	/* There are as many as the disk takes requests. */
	BUG_ON(!transfer);
	member->free_transfers = transfer->next;
	return transfer;
}

static void transfer_put(struct member *member, struct transfer *transfer)
{
	transfer->next = member->free_transfers;
	member->free_transfers = transfer;
}

/* Append @more's pieces to those that @leader leads. */
static void lead(struct piece *leader, struct piece *more)
{
	leader->last->next = more->first;
	leader->last = more->last;
	leader->led_iov += more->led_iov;
	leader->led_fua |= more->led_fua;
}

static void lead_front(struct piece *leader, struct piece *more)
{
	more->last->next = leader->first;
	leader->first = more->first;
	leader->led_iov += more->led_iov;
	leader->led_fua |= more->led_fua;
}

void queue_add(struct member *member, struct piece *piece, u64 now_ns)
{
	u32 max_sectors = (u32)(server.config.max_request / SECTOR_BYTES);
	struct ss_request *into, *next;
	struct piece *leader;
	enum ss_merge merge;

	log_event(member, "Q", &piece->rq, piece->fua, now_ns);
	piece->wanted_ns = now_ns;
	piece->first = piece;
	piece->last = piece;
	piece->next = NULL;
	piece->led_iov = piece->nr_iov;
	piece->led_fua = piece->fua;
	piece->transfer = NULL;
	merge = ss_sched_find_merge(&member->sched, &piece->rq, max_sectors,
				    &into);
	leader = merge ? piece_of(into) : NULL;
	if (!leader || leader->led_iov + piece->led_iov > MAX_SEGMENTS) {
		ss_sched_arrived(&member->sched, &piece->rq, now_ns);
		return;
	}
	if (merge == SS_MERGE_BACK)
		lead(leader, piece);
	else
		lead_front(leader, piece);
	ss_sched_merged(&member->sched, into, &piece->rq, now_ns);
	while ((next = ss_sched_find_join(&member->sched, into, max_sectors)) &&
	       leader->led_iov + piece_of(next)->led_iov <= MAX_SEGMENTS) {
		ss_sched_joined(&member->sched, into, next, now_ns);
		lead(leader, piece_of(next));
	}
}

/* Flushes pass the scheduler by: nothing that they order is in it. */
static void flush_model(struct member *member, u64 now_ns)
{
	while (member->flush_first && !hdd_drive_full(member->drive)) {
		struct flush *flush = member->flush_first;

		member->flush_first = flush->next;
		ss_sched_flushes(&member->sched, true, now_ns);
		hdd_drive_submit(member->drive, &flush->cmd, now_ns);
	}
}

static bool disk_full(const struct member *member)
{
	return member->sched.nr_in_flight >= member->depth ||
	       (member->drive && hdd_drive_full(member->drive));
}

static void to_model(struct member *member, struct piece *leader, u64 now_ns)
{
	leader->cmd.sector = leader->rq.sector;
	leader->cmd.nr_sectors = leader->rq.nr_sectors;
	leader->cmd.op = leader->direction == SS_READ ? HDD_READ : HDD_WRITE;
	leader->cmd.fua = leader->led_fua;
	hdd_drive_submit(member->drive, &leader->cmd, now_ns);
}

void queue_kick(struct member *member)
{
	uint64_t one = 1;

	if (member->engine)
		engine_kick(member->engine);
	else if (write(member->kick_fd, &one, sizeof(one)) < 0)
		abort();
}

u64 queue_next_ns(const struct member *member)
{
	u64 at = member->wake_ns;

	if (member->ready_first)
		return 0;
	if (member->drive && hdd_drive_next_ns(member->drive) < at)
		at = hdd_drive_next_ns(member->drive);
	return at;
}

struct piece *queue_pump(struct member *member, const struct batch *batch,
			 u64 now_ns)
{
	struct piece *mine = NULL;

	member->wake_ns = SS_FOREVER;
	if (member->drive)
		flush_model(member, now_ns);
	while (!disk_full(member)) {
		struct ss_decision decision = ss_sched_choose(&member->sched,
							      now_ns);
		struct piece *leader;

		if (decision.verdict == SS_WAIT)
			member->wake_ns = decision.until_ns;
		if (decision.verdict != SS_DISPATCH)
			break;
		leader = piece_of(decision.rq);
		ss_sched_dispatched(&member->sched, &leader->rq, decision.why,
				    now_ns);
		log_event(member, "D", &leader->rq, leader->led_fua, now_ns);
		if (member->drive) {
			to_model(member, leader, now_ns);
			continue;
		}
		leader->transfer = transfer_get(member);
		leader->transfer->leader = leader;
		if (batch && !mine && leader->batch == batch)
			mine = leader;
		else
			hdd_append(member->ready, leader->transfer);
	}
	/* 0: the thread is awake and will look for itself. */
	if (member->sleep_ns && queue_next_ns(member) < member->sleep_ns) {
		member->sleep_ns = 0;
		queue_kick(member);
	}
	return mine;
}

void queue_done(struct member *member, struct piece *leader, u64 now_ns)
{
	struct ss_request *rq = &leader->rq;
	bool failed = false;
	struct piece *piece;

	if (leader->transfer)
		transfer_put(member, leader->transfer);
	log_event(member, "C", rq, leader->led_fua, now_ns);
	for (piece = leader->first; piece; piece = piece->next) {
		failed |= piece->error;
		piece->dispatched_ns = rq->dispatch_ns;
		piece->done_ns = now_ns;
		stats_flow(&member->stats.flow[piece->direction],
			   (u64)piece->nr_sectors * SECTOR_BYTES, piece->error);
		stats_time(&member->stats.wait,
			   rq->dispatch_ns - piece->wanted_ns);
	}
	stats_time(&member->stats.service, now_ns - rq->dispatch_ns);
	if (failed)
		ss_sched_returned(&member->sched, rq, now_ns);
	else
		ss_sched_completed(&member->sched, rq, now_ns);
}

/* Its bytes are where they belong, or never will be. */
static void piece_done(struct piece *piece)
{
	struct batch *batch = piece->batch;

	/* With the last piece of a batch its memory may be gone at once. */
	if (!__atomic_sub_fetch(&batch->left, 1, __ATOMIC_ACQ_REL))
		sem_post(&batch->done);
}

void queue_wake(struct piece *leader)
{
	struct piece *piece, *next;

	for (piece = leader->first; piece; piece = next) {
		next = piece->next;
		piece_done(piece);
	}
}

static int set_curve(struct member *member)
{
	struct ss_curve_point flat = { 0, 0 };

	if (!server.rotational)
		return ss_curve_set(&member->sched.curve, &flat, 1,
				    member->sectors);
	if (!server.config.nr_curve)
		return 0;
	return ss_curve_set(&member->sched.curve, server.config.curve,
			    server.config.nr_curve, member->sectors);
}

static int make_transfers(struct member *member)
{
	u32 i;

	for (i = 0; i < member->depth; i++) {
		struct transfer *transfer = calloc(1, sizeof(*transfer));

		if (!transfer)
			return -1;
		transfer_put(member, transfer);
	}
	return 0;
}

int queue_init(struct member *member)
{
	const char *reason;
	char why[160];

	member->wake_ns = SS_FOREVER;
	if (ss_sched_init(&member->sched, server.config.policy, member->sectors,
			  why, sizeof(why))) {
		nbdkit_error("%s", why);
		return -1;
	}
	if (config_tune(&member->sched))
		return -1;
	if (set_curve(member))
		return -1;
	if (!server.config.emulate)
		return make_transfers(member);
	member->drive = calloc(1, hdd_drive_bytes(&server.config.disk));
	if (!member->drive)
		return -1;
	/* disk_load() has checked the description. */
	return hdd_drive_init(member->drive, &server.config.disk, &reason) ||
			       hdd_drive_set_queue_depth(member->drive,
							 member->depth) ?
		       -1 :
		       0;
}

void queue_free(struct member *member)
{
	struct transfer *transfer;

	while ((transfer = member->free_transfers)) {
		member->free_transfers = transfer->next;
		free(transfer->bounce);
		free(transfer);
	}
	free(member->drive);
}
