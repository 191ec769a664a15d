// SPDX-License-Identifier: GPL-2.0-only
/*
 * A disk's scheduler: it begins, and another one takes its place once nothing
 * is pending or under way.
 */
#include "block_switch.h"

#include "../core/policies.h"

#include <errno.h>
#include <string.h>

static void add_counters(struct ss_counters *sum,
			 const struct ss_counters *more)
{
	const u64 *from = (const u64 *)more;
	u64 *to = (u64 *)sum;
	u32 i;

	for (i = 0; i < sizeof(*sum) / sizeof(u64); i++)
		to[i] += from[i];
}

int sim_block_begin(const struct sim_block *block, struct sim_disk *disk,
		    const char *policy, char *why, u64 why_bytes)
{
	const struct hdd_params *params = &disk->drive->params;
	u32 i;

	if (ss_sched_init(&disk->sched[0], policy, params->capacity_sectors,
			  why, why_bytes))
		return -1;
	disk->heads.nr = 1;
	if (params->actuators != SS_HEADS || block->nr_disks > 1 ||
	    disk->sched[0].policy[0].ops != &ss_stream_ops)
		return 0;
	disk->heads.nr = SS_HEADS;
	disk->heads.second_sector = params->capacity_sectors / SS_HEADS;
	for (i = 0; i < SS_HEADS; i++)
		if (ss_sched_init(&disk->sched[i], policy,
				  params->capacity_sectors / SS_HEADS, why,
				  why_bytes))
			return -1;
	return 0;
}

/* What was tuned before this scheduler began holds for it, too. */
static int tune_anew(struct sim_block *block, struct ss_sched *sched)
{
	char why[256];
	u32 i;

	for (i = 0; i < block->nr_tuned; i++) {
		const struct sim_tuned *tuned = &block->tuned[i];

		if (ss_sched_tune(sched, tuned->name, tuned->value,
				  block->clock->now_ns, why,
				  sizeof(why)) == -ERANGE)
			return sim_fail(block->clock, "%s", why);
	}
	return 0;
}

static u32 nr_in_flight(const struct sim_disk *disk)
{
	u32 i, nr = 0;

	for (i = 0; i < disk->heads.nr; i++)
		nr += disk->sched[i].nr_in_flight;
	return nr;
}

bool sim_block_change_when_drained(struct sim_block *block,
				   struct sim_disk *disk)
{
	const struct sim_members *members = &block->members;
	const struct ss_curve curve = disk->sched[0].curve;
	const u64 head_sector = disk->sched[0].head_sector;
	char why[256];
	u32 i;

	if (!disk->next_policy[0] || sim_block_pending(disk) ||
	    nr_in_flight(disk))
		return false;
	for (i = 0; i < disk->heads.nr; i++)
		add_counters(&disk->past, &disk->sched[i].counters);
	if (members->leave)
		members->leave(members->context, disk);
	if (sim_block_begin(block, disk, disk->next_policy, why, sizeof(why))) {
		sim_fail(block->clock, "%s", why);
		return false;
	}
	for (i = 0; i < disk->heads.nr; i++) {
		struct ss_sched *sched = &disk->sched[i];

		sched->curve = curve;
		sched->head_sector = head_sector;
		sched->now_ns = block->clock->now_ns;
		if (tune_anew(block, sched))
			return false;
	}
	if (members->join)
		members->join(members->context, disk);
	disk->next_policy[0] = 0;
	disk->ask = true;
	block->changes++;
	block->draining_ns += block->clock->now_ns - disk->drain_from_ns;
	return true;
}

/* A scheduler that comes later may have it where the present one has not. */
static void keep_tuned(struct sim_block *block, const char *name, u64 value)
{
	struct sim_tuned *tuned = block->tuned;
	u32 i;

	for (i = 0; i < block->nr_tuned; i++)
		if (!strcmp(tuned[i].name, name))
			break;
	if (i == SIM_MAX_TUNED || strlen(name) >= sizeof(tuned[i].name))
		return;
	strcpy(tuned[i].name, name);
	tuned[i].value = value;
	block->nr_tuned = i == block->nr_tuned ? i + 1 : block->nr_tuned;
}

int sim_block_tune(struct sim_block *block, const char *name, u64 value,
		   char *why, u64 why_bytes)
{
	int error = 0;

	sim_for_each_sched(block, sched)
		error = error ?:
				ss_sched_tune(sched, name, value,
					      block->clock->now_ns, why,
					      why_bytes);
	if (!error || error == -ENOENT)
		keep_tuned(block, name, value);
	return error;
}
