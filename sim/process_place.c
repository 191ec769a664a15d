// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random positions that are not uniform. Whatever the distribution, here it is
 * a table of shares of 2^64, made by the Python package without floating
 * point; only the normal one is computed, as fio does it.
 */
#include "process_state.h"

#include <string.h>

#define NORMAL_DRAWS 12
#define MIX_ROUNDS 4

static u64 *copied(const u64 *from, u32 nr)
{
	return memcpy(sim_alloc(nr * sizeof(*from)), from, nr * sizeof(*from));
}

int process_set_places(struct sim_process *p, u32 direction,
		       const u64 *end_unit, const u64 *below, u32 nr)
{
	struct place_table *table = &p->places[direction];
	u32 i;

	for (i = 0; i < nr; i++)
		if (end_unit[i] <= (i ? end_unit[i - 1] : 0))
			return -1;
	free(table->end_unit);
	free(table->below);
	table->nr = nr;
	table->end_unit = copied(end_unit, nr);
	table->below = copied(below, nr);
	return 0;
}

static u64 from_table(struct sim_process *p, const struct place_table *table)
{
	u64 dice = sim_random(&p->seed), start;
	u32 low = 0, high = table->nr - 1;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (dice < table->below[middle])
			high = middle;
		else
			low = middle + 1;
	}
	start = low ? table->end_unit[low - 1] : 0;
	return start + sim_random_below(&p->seed, table->end_unit[low] - start);
}

static u64 normal(struct sim_process *p, u64 units)
{
	u64 sum = 0, spread = p->job.normal_spread;
	s64 place, more;
	u32 i;

	for (i = 0; i < NORMAL_DRAWS; i++)
		sum += sim_random_below(&p->seed, units + 1);
	place = (s64)((sum + NORMAL_DRAWS - 1) / NORMAL_DRAWS);
	if (!spread)
		return (u64)place % units;
	more = (s64)sim_random_below(&p->seed, spread) - (s64)(spread / 2);
	while (more && (place + more < 0 || place + more >= (s64)units))
		more /= 2;
	return (u64)(place + more) % units;
}

/*
 * Another unit for each, at random but always the same: a Feistel network over
 * the next larger even number of bits, repeated until it is one of @units.
 */
static u64 scatter(u64 key, u64 unit, u64 units)
{
	u32 half = 1, round;
	u64 mask;

	while (half < 32 && units > 1ULL << 2 * half)
		half++;
	mask = (1ULL << half) - 1;
	do {
		u64 left = unit >> half, right = unit & mask;

		for (round = 0; round < MIX_ROUNDS; round++) {
			u64 state = key ^ (right << 8 | round);
			u64 next = left ^ (sim_random(&state) & mask);

			left = right;
			right = next;
		}
		unit = left << half | right;
	} while (unit >= units);
	return unit;
}

u64 process_place(struct sim_process *p, u8 direction, u64 units)
{
	const struct sim_job *job = &p->job;
	const struct place_table *table = &p->places[direction];
	u64 unit;

	if (job->places == SIM_PLACES_NORMAL)
		unit = normal(p, units);
	else if (table->nr)
		unit = from_table(p, table) % units;
	else
		unit = sim_random_below(&p->seed, units);
	if (job->scattered)
		unit = scatter(job->scattered_alike ? 0 : job->seed, unit,
			       units);
	return (unit + job->places_shift) % units;
}
