// SPDX-License-Identifier: GPL-2.0-only
/*
 * The schedulers of a stripe set's members, coordinated (core/array/array.h).
 *
 * What the members share is behind one mutex, taken with a member's lock held.
 * A member that is to be asked again has its disk thread woken, which takes
 * the member's lock itself.
 */
#include "server.h"
#include "../core/array/array.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <stdlib.h>
#include <string.h>

static struct ss_array *array; /* NULL: each member for itself */
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;

static void lock(struct ss_array *locked)
{
	(void)locked;
	pthread_mutex_lock(&shared);
}

static void unlock(struct ss_array *locked)
{
	(void)locked;
	pthread_mutex_unlock(&shared);
}

static void kick(struct ss_array *locked, u32 index)
{
	(void)locked;
	queue_kick(server.member[index]);
}

/* Why it cannot be, or NULL. */
static const char *obstacle(void)
{
	if (server.nr_members == 1)
		return "only with several files";
	if (strncmp(server.config.policy, "stream:", 7))
		return "the policy is not stream";
	if (!server.rotational)
		return "the disks do not rotate";
	if (server.nr_members > SS_ARRAY_MEMBERS)
		return "there are more than 32 files";
	if (server.config.chunk > SS_ARRAY_CHUNK_MOST * SECTOR_BYTES)
		return "chunks are larger than 1m";
	return NULL;
}

int array_check(void)
{
	const char *reason = obstacle();

	if (server.config.coordinate <= 0 || !reason)
		return 0;
	nbdkit_error("coordinate=yes: %s", reason);
	return -1;
}

static int attach_all(char *why, size_t why_bytes)
{
	u32 i;
	int error = 0;

	for (i = 0; i < server.nr_members && !error; i++) {
		struct member *member = server.member[i];

		pthread_mutex_lock(&member->lock);
		error = ss_array_attach(array, i, &member->sched, why,
					why_bytes);
		pthread_mutex_unlock(&member->lock);
	}
	return error;
}

int array_start(void)
{
	struct ss_array_geometry geometry = { .level = SS_ARRAY_RAID0 };
	char why[160];
	u32 i;

	if (!server.config.coordinate || obstacle())
		return 0;
	geometry.nr_members = server.nr_members;
	geometry.chunk_sectors = (u32)(server.config.chunk / SECTOR_BYTES);
	for (i = 0; i < server.nr_members; i++)
		geometry.member_sectors[i] = server.member[i]->sectors;
	array = calloc(1, sizeof(*array));
	if (!array) {
		nbdkit_error("no memory for the array");
		return -1;
	}
	array->lock = lock;
	array->unlock = unlock;
	array->kick = kick;
	if (!ss_array_geometry_init(&geometry, why, sizeof(why))) {
		ss_array_init(array, &geometry);
		if (!attach_all(why, sizeof(why)))
			return 0;
	}
	nbdkit_error("%s", why);
	return -1;
}

void array_stop(void)
{
	u32 i;

	for (i = 0; array && i < server.nr_members; i++) {
		struct member *member = server.member[i];

		pthread_mutex_lock(&member->lock);
		ss_array_detach(array, i, clock_ns());
		pthread_mutex_unlock(&member->lock);
	}
	free(array);
	array = NULL;
}

bool array_counters(struct ss_array_counters *counters)
{
	if (array)
		ss_array_counters(array, counters);
	return array;
}
