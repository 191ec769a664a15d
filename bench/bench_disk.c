// SPDX-License-Identifier: GPL-2.0-only
/*
 * What it costs to choose what of the write cache goes to the medium: fills
 * the cache of the disk PARAMS with EXTENTS blocks at random places, then
 * writes out and refills, CHOICES times. Prints ns of processor time for each
 * of the two together, choice and upkeep, and for the upkeep alone.
 *
 *	bench_disk EXTENTS CHOICES
 */
#include "../disk/hdd_dirty.h"
#include "../disk/hdd_geometry.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct hdd hdd;

static u64 random_block(void)
{
	static u64 state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % (hdd.params.capacity_sectors / 8) * 8;
}

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void refill(u32 extents)
{
	while (hdd.nr_dirty < extents)
		hdd_dirty_add(&hdd, random_block(), 8);
}

/* Nanoseconds for each of @choices, made by position or upwards. */
static double measure(u32 extents, u32 choices, u32 order)
{
	double begin;
	u32 i;

	hdd.params.write_order = order;
	hdd_dirty_init(&hdd);
	refill(extents);
	begin = cpu_ns();
	for (i = 0; i < choices; i++) {
		struct hdd_dirty *next = hdd_dirty_next(&hdd, i * 1000000ULL);

		hdd_locate(&hdd, next->sector, &hdd.head);
		hdd.head_sector = next->sector + 8;
		hdd_dirty_written(&hdd, next, 8);
		refill(extents);
	}
	return (cpu_ns() - begin) / choices;
}

int main(int argc, char **argv)
{
	static const struct hdd_params params = { PARAMS };
	u32 extents = argc > 1 ? (u32)strtoul(argv[1], NULL, 10) : 0;
	u32 choices = argc > 2 ? (u32)strtoul(argv[2], NULL, 10) : 0;
	const char *why;

	if (!extents || !choices || extents > HDD_MAX_DIRTY ||
	    hdd_init(&hdd, &params, &why))
		return 2;
	hdd.params.write_cache_extents = HDD_MAX_DIRTY;
	hdd.params.write_cache_sectors = 8 * HDD_MAX_DIRTY;
	printf("%.0f %.0f\n", measure(extents, choices, HDD_WRITE_SPTF),
	       measure(extents, choices, HDD_WRITE_SWEEP));
	return 0;
}
