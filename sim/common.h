/* SPDX-License-Identifier: GPL-2.0-only */
/* What all files of the simulator use: units, memory, chance. */
#ifndef SIM_COMMON_H
#define SIM_COMMON_H

#include <linux/kernel.h>
#include <linux/types.h>

#include <stdio.h>
#include <stdlib.h>

#define SECTOR_BYTES 512
#define PAGE_BYTES 4096
#define PAGE_SECTORS (PAGE_BYTES / SECTOR_BYTES)

/* Zeroed. */
static inline void *sim_alloc(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory) {
		fprintf(stderr, "streamsched: out of memory (%zu bytes)\n",
			bytes);
		abort();
	}
	return memory;
}

/* @memory for @nr of @bytes each, and for one more: *@size is doubled. */
static inline void *sim_room(void *memory, u32 nr, u32 *size, size_t bytes)
{
	if (nr < *size)
		return memory;
	*size = 2 * *size + 16;
	memory = realloc(memory, *size * bytes);
	if (!memory)
		abort();
	return memory;
}

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014): small, fast, seedable. */
static inline u64 sim_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Uniform in [0, bound). */
static inline u64 sim_random_below(u64 *state, u64 bound)
{
	return (u64)((unsigned __int128)sim_random(state) * bound >> 64);
}

#endif
