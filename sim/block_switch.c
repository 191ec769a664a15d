// SPDX-License-Identifier: GPL-2.0-only
/*
 * A disk's scheduler: it begins, and another one takes its place once nothing
 * is pending or under way.
 */
#include "internal.h"

#include <errno.h>
#include <stdio.h>

static void add_counters(struct ss_counters *sum,
			 const struct ss_counters *more)
{
	const u64 *from = (const u64 *)more;
	u64 *to = (u64 *)sum;
	u32 i;

	for (i = 0; i < sizeof(*sum) / sizeof(u64); i++)
		to[i] += from[i];
}

int sim_block_begin(const struct sim *sim, struct sim_disk *disk,
		    const char *policy, char *why, u64 why_bytes)
{
	const struct hdd_params *params = &disk->drive->params;
	u32 i;

	if (ss_sched_init(&disk->sched[0], policy, params->capacity_sectors,
			  why, why_bytes))
		return -1;
	disk->nr_heads = 1;
	if (params->actuators != SIM_HEADS || sim->nr_disks > 1 ||
	    disk->sched[0].policy[0].ops != &ss_stream_ops)
		return 0;
	disk->nr_heads = SIM_HEADS;
	for (i = 0; i < SIM_HEADS; i++)
		if (ss_sched_init(&disk->sched[i], policy,
				  params->capacity_sectors / SIM_HEADS, why,
				  why_bytes))
			return -1;
	return 0;
}

/* What was tuned before this scheduler began holds for it, too. */
static int tune_anew(struct sim *sim, struct ss_sched *sched)
{
	char why[256];
	u32 i;

	for (i = 0; i < sim->nr_tuned; i++) {
		const struct sim_tuned *tuned = &sim->tuned[i];

		if (ss_sched_tune(sched, tuned->name, tuned->value, sim->now_ns,
				  why, sizeof(why)) == -ERANGE)
			return sim_fail(sim, "%s", why);
	}
	return 0;
}

static u32 nr_in_flight(const struct sim_disk *disk)
{
	u32 i, nr = 0;

	for (i = 0; i < disk->nr_heads; i++)
		nr += disk->sched[i].nr_in_flight;
	return nr;
}

void sim_block_change_when_drained(struct sim *sim, struct sim_disk *disk)
{
	const struct ss_curve curve = disk->sched[0].curve;
	const u64 head_sector = disk->sched[0].head_sector;
	char why[256];
	u32 i;

	if (!disk->next_policy[0] || sim_block_pending(disk) ||
	    nr_in_flight(disk))
		return;
	for (i = 0; i < disk->nr_heads; i++)
		add_counters(&disk->past, &disk->sched[i].counters);
	sim_array_leave(sim, disk);
	if (sim_block_begin(sim, disk, disk->next_policy, why, sizeof(why))) {
		sim_fail(sim, "%s", why);
		return;
	}
	for (i = 0; i < disk->nr_heads; i++) {
		struct ss_sched *sched = &disk->sched[i];

		sched->curve = curve;
		sched->head_sector = head_sector;
		sched->now_ns = sim->now_ns;
		if (tune_anew(sim, sched))
			return;
	}
	sim_array_join(sim, disk);
	disk->next_policy[0] = 0;
	disk->ask = true;
	sim->changes++;
	sim->draining_ns += sim->now_ns - disk->drain_from_ns;
	sim_block_unblock(sim, disk);
}

void sim_block_switch(struct sim *sim, struct sim_disk *disk,
		      const char *policy)
{
	if (!disk->next_policy[0])
		disk->drain_from_ns = sim->now_ns;
	snprintf(disk->next_policy, sizeof(disk->next_policy), "%s", policy);
	disk->ask = true;
	sim_block_change_when_drained(sim, disk);
}
