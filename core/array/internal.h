/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of this folder share; nobody else includes this. All but
 * ss_array_lock() is to be called with the array's lock held.
 */
#ifndef SS_ARRAY_INTERNAL_H
#define SS_ARRAY_INTERNAL_H

#include "array.h"

/* ---- choose.c ---- */

/* Releases what may go by now, and wakes the members that have it. */
void ss_array_release(struct ss_array *array);

/* @request goes to its disk whether or not it was released. */
void ss_array_release_one(struct ss_array_request *request, enum ss_why why);

/* What the member does next; false: what its own policy says. */
bool ss_array_choose(const struct ss_array_member *member,
		     struct ss_decision *decision);

/* ---- place.c ---- */

/* @request goes to its disk: of which stream is the turn now? */
void ss_array_note_released(const struct ss_array_request *request);

/* @rq of @member is done: did the head move for it? */
void ss_array_note_done(struct ss_array_member *member,
			const struct ss_request *rq);

/* Has the host ask whether to place the head of @member, if that is due. */
void ss_array_place_on(struct ss_array_member *member);

/* ---- the host ---- */

static inline void ss_array_lock(struct ss_array *array)
{
	if (array->lock)
		array->lock(array);
}

static inline void ss_array_unlock(struct ss_array *array)
{
	if (array->unlock)
		array->unlock(array);
}

static inline void ss_array_kick(struct ss_array *array, u32 member)
{
	if (array->kick && (array->attached & (1U << member)))
		array->kick(array, member);
}

#endif
