// SPDX-License-Identifier: GPL-2.0-only
/*
 * An array's members as one disk: events, and which members take part.
 *
 * The array has a scheduler of its own, stream over noop, and each request that
 * a member sees arrives there, too, as what it is in the array's own sectors.
 * When that scheduler dispatches it, it is released: the member may send it.
 * So the array's streams, turns, waits and credit are those of core/stream/, of
 * one disk whose parts work at the same time. Where that moves less than the
 * members do by themselves they are left apart (core/stream/trial.c): then
 * everything is released at once, and each member schedules as its own policy
 * says.
 */
#include "internal.h"
#include "../policies.h"
#include "../say.h"
#include "../parts.h"

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

/*
 * Every event of a member begins here. Members may come in another order than
 * they read the clock, and what they share must not go back in time.
 */
static struct ss_array_member *enter(const struct ss_coordinator *coordinator,
				     u64 now_ns)
{
	struct ss_array_member *member;
	struct ss_array *array;

	member = container_of(coordinator, struct ss_array_member, coordinator);
	array = member->array;
	ss_array_lock(array);
	array->now_ns = max_t(u64, now_ns, array->now_ns);
	return member;
}

/* Every event ends here. */
static void leave(struct ss_array *array)
{
	ss_array_release(array);
	ss_array_unlock(array);
}

/*
 * The array's curve is its first member's. It is looked at in that member's own
 * events, when nobody else changes it.
 */
static void follow_curve(struct ss_array_member *member)
{
	struct ss_array *array = member->array;
	const struct ss_curve *curve = &member->sched->curve;
	u32 i;

	if ((array->attached & ((1U << member->index) - 1)) ||
	    curve->mean_random_ns == array->mean_random_ns)
		return;
	array->mean_random_ns = curve->mean_random_ns;
	memcpy(array->point, curve->point, sizeof(array->point));
	/* Chunks of a row are side by side there: distances are so longer. */
	if (array->geometry.level != SS_ARRAY_LINEAR)
		for (i = 0; i < curve->nr_points; i++)
			array->point[i].distance_sectors *=
				array->geometry.data_members;
	ss_curve_set(&array->sched.curve, array->point, curve->nr_points,
		     array->geometry.capacity_sectors);
	array->sched.curve.transfer_ps = curve->transfer_ps;
}

/* The array has stream's settings of its members, and they may be set anew. */
static void follow_settings(struct ss_array_member *member)
{
	struct ss_sched *sched = &member->array->sched;
	const u64 *value = member->sched->policy[0].value;
	char why[160];
	u32 i;

	for (i = 0; i < ss_stream_ops.nr_tunables; i++)
		if (value[i] != sched->policy[0].value[i])
			ss_sched_tune(sched, ss_stream_ops.tunables[i].name,
				      value[i], sched->now_ns, why,
				      sizeof(why));
}

/* @rq as one of the array; false if it is none of its data or parity. */
static bool translate(const struct ss_array_member *member,
		      const struct ss_request *rq, struct ss_request *made)
{
	const struct ss_array *array = member->array;
	u64 first, last, run;

	if (ss_array_unmap(&array->geometry, member->index, rq->sector, &first,
			   &run) == SS_ARRAY_OUTSIDE ||
	    ss_array_unmap(&array->geometry, member->index,
			   ss_request_end(rq) - 1, &last,
			   &run) == SS_ARRAY_OUTSIDE ||
	    last < first)
		return false;
	*made = (struct ss_request){
		.sector = first,
		/* Over several rows it has others' chunks in between. */
		.nr_sectors = (u32)(last + 1 - first),
		.direction = rq->direction,
		.flags = rq->flags,
		.owner = rq->owner,
		.weight = rq->weight,
		.arrival_ns = min_t(u64, rq->arrival_ns, array->now_ns),
	};
	return true;
}

/* A row of chunks is short if reading it takes at most so many random seeks. */
#define ROW_WAYS 2
/* Members may be so many rows apart; that leaves none out. */
#define ROWS_TOGETHER 4
/* Means of a stream are of about so many requests. */
#define MEMORY 64

/* What came to @request, which ends at @end_sector, is of its stream, too. */
static void note_growth(struct ss_array_request *request, u64 end_sector)
{
	struct ss_parts *parts = request->parts;
	u32 sectors = request->real->nr_sectors;

	parts->end_sector = max_t(u64, parts->end_sector, end_sector);
	parts->moved += sectors - min_t(u32, sectors, request->nr_noted);
	request->nr_noted = sectors;
}

/*
 * A stream of what came to @parts until now goes on with @rq. It may leave rows
 * out, @far or more, if it does so each time by about as many.
 */
static void note_part(const struct ss_sched *sched, struct ss_parts *parts,
		      struct ss_request *rq, u64 far, bool roams)
{
	struct ss_array_request *request;
	u32 done = (u32)sched->counters.completions;

	if (rq->sector + far < parts->begin_sector ||
	    rq->sector > parts->end_sector + far) {
		u64 step = rq->sector - parts->end_sector;

		if (!roams && ss_distance(step, parts->step) > far)
			*parts = (struct ss_parts){ 0 };
		parts->step = step;
		parts->begin_sector = rq->sector;
		parts->end_sector = rq->sector;
	}
	request = container_of(rq, struct ss_array_request, rq);
	request->parts = parts;
	request->nr_noted = 0;
	note_growth(request, ss_request_end(rq));
	parts->used |= 1U << request->member->index;
	if (!parts->nr_requests || parts->heard != done)
		parts->nr_requests++;
	parts->heard = done;
	if (parts->nr_requests < MEMORY)
		return;
	parts->nr_requests /= 2;
	parts->moved /= 2;
	parts->begin_sector += (parts->end_sector - parts->begin_sector) / 2;
}

/*
 * Does a stream come to all members while a head is on its way? Else most would
 * wait for it, and it is better left to each of them. A read comes to one of
 * its mirrors only.
 */
static bool keeps_all_busy(const struct ss_sched *sched, struct ss_request *rq,
			   u64 think_ns, u32 stream, bool roams)
{
	struct ss_array *array = sched->host;
	struct ss_parts *parts = &array->parts[stream];
	const struct ss_array_geometry *geometry = &array->geometry;
	u64 row = (u64)geometry->chunk_sectors * geometry->data_members;
	u64 row_ns;

	if (ss_array_has_mirrors(geometry) && rq->direction == SS_READ)
		return false;
	note_part(sched, parts, rq, ROWS_TOGETHER * row, roams);
	row_ns = div_u64(row * sched->curve.transfer_ps, 1000) +
		 mul_u64_u64_div_u64(row * parts->nr_requests, think_ns,
				     parts->moved);
	/* Near the limit it stays what it is. */
	if (parts->wide)
		row_ns /= 2;
	parts->wide = geometry->level != SS_ARRAY_LINEAR &&
		      parts->nr_requests >= 2 &&
		      hweight32(parts->used) >= geometry->data_members &&
		      row_ns <= ROW_WAYS * array->mean_random_ns;
	return parts->wide;
}

/* ---- events ---- */

static void array_arrived(struct ss_coordinator *coordinator,
			  struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = enter(coordinator, now_ns);
	struct ss_array *array = member->array;
	struct ss_array_request *request;

	follow_curve(member);
	follow_settings(member);
	request = list_first_entry(&array->free, struct ss_array_request, node);
	if (list_empty(&array->free) || (rq->flags & SS_PLACING) ||
	    !translate(member, rq, &request->rq)) {
		list_add_tail(&rq->array_node, &member->plain);
		member->nr_plain++;
		member->placing |= rq->flags & SS_PLACING;
	} else {
		list_move_tail(&request->node, &member->requests);
		rq->array_request = request;
		request->real = rq;
		request->released = false;
		request->sent = false;
		request->member = member;
		request->parts = NULL;
		member->nr_held++;
		ss_sched_taken_over(&array->sched, &request->rq, array->now_ns);
		rq->owner = request->rq.owner;
	}
	leave(array);
}

static void leaves_plain(struct ss_array_member *member, struct ss_request *rq)
{
	if (list_empty(&rq->array_node))
		return;
	list_del_init(&rq->array_node);
	member->nr_plain--;
}

static void array_dispatched(struct ss_coordinator *coordinator,
			     struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = enter(coordinator, now_ns);
	struct ss_array_request *request = rq->array_request;

	leaves_plain(member, rq);
	if (request) {
		if (!request->released)
			ss_array_release_one(request, SS_WHY_ORDER);
		request->sent = true;
		member->nr_released--;
		member->nr_sent++;
	}
	leave(member->array);
}

/* @request is no more. */
static void forget(struct ss_array_request *request, bool served)
{
	struct ss_array_member *member = request->member;
	struct ss_array *array = member->array;

	/* What it moved, without what is others' in between. */
	request->rq.nr_sectors = request->real->nr_sectors;
	if (!request->released)
		ss_sched_removed(&array->sched, &request->rq, array->now_ns);
	else if (served)
		ss_sched_completed(&array->sched, &request->rq, array->now_ns);
	else
		ss_sched_returned(&array->sched, &request->rq, array->now_ns);
	member->nr_held -= !request->released;
	member->nr_released -= request->released && !request->sent;
	member->nr_sent -= request->sent;
	request->real->array_request = NULL;
	list_move(&request->node, &array->free);
}

static void array_completed(struct ss_coordinator *coordinator,
			    struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = enter(coordinator, now_ns);
	struct ss_array_request *request = rq->array_request;

	ss_array_note_done(member, rq);
	if (request)
		forget(request, true);
	ss_array_place_on(member);
	leave(member->array);
}

static void array_merged(struct ss_coordinator *coordinator,
			 struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = enter(coordinator, now_ns);
	struct ss_array_request *request = rq->array_request;
	struct ss_request grown;

	if (request && translate(member, rq, &grown)) {
		if (!request->released)
			ss_sched_becomes(&member->array->sched, &request->rq,
					 &grown, member->array->now_ns);
		if (request->parts)
			note_growth(request, ss_request_end(&grown));
	}
	leave(member->array);
}

static void array_removed(struct ss_coordinator *coordinator,
			  struct ss_request *rq, u64 now_ns)
{
	struct ss_array_member *member = enter(coordinator, now_ns);

	leaves_plain(member, rq);
	member->placing &= !(rq->flags & SS_PLACING);
	if (rq->array_request)
		forget(rq->array_request, false);
	leave(member->array);
}

/* Those of several members overlap: the time with one under way is charged. */
static void member_flushes(struct ss_array_member *member, bool begins)
{
	struct ss_array *array = member->array;

	member->nr_flushes += begins ? 1 : -1;
	ss_sched_flushes(&array->sched, begins, array->now_ns);
}

static void array_flushes(struct ss_coordinator *coordinator, bool begins,
			  u64 now_ns)
{
	struct ss_array_member *member = enter(coordinator, now_ns);

	/* Not one that began before it was attached. */
	if (begins || member->nr_flushes)
		member_flushes(member, begins);
	leave(member->array);
}

static bool array_choose(const struct ss_coordinator *coordinator, u64 now_ns,
			 struct ss_decision *decision)
{
	struct ss_array_member *member = enter(coordinator, now_ns);
	bool decided;

	ss_array_release(member->array);
	decided = ss_array_choose(member, decision);
	ss_array_unlock(member->array);
	return decided;
}

static const struct ss_coordinator_ops array_ops = {
	.arrived = array_arrived,
	.dispatched = array_dispatched,
	.completed = array_completed,
	.merged = array_merged,
	.removed = array_removed,
	.flushes = array_flushes,
	.choose = array_choose,
};

/* ---- members ---- */

static void count(struct ss_sched *sched, enum ss_event event, u64 sector,
		  u32 size)
{
	struct ss_array *array = sched->host;

	(void)sector;
	(void)size;
	array->counters.established += event == SS_EVENT_ESTABLISHED;
	array->counters.slices_ended += event == SS_EVENT_SLICE_ENDED;
}

void ss_array_init(struct ss_array *array,
		   const struct ss_array_geometry *geometry)
{
	char why[160];
	u32 i;

	array->geometry = *geometry;
	array->ahead_sectors = U64_MAX;
	/* Cannot fail: the policy is known. */
	ss_sched_init(&array->sched, "stream:noop", geometry->capacity_sectors,
		      why, sizeof(why));
	ss_stream_has_parts(&array->sched.policy[0], keeps_all_busy,
			    geometry->nr_members);
	array->sched.tell = count;
	array->sched.host = array;
	for (i = 0; i < SS_ARRAY_MEMBERS; i++) {
		struct ss_array_member *member = &array->member[i];

		member->coordinator.ops = &array_ops;
		member->array = array;
		member->index = i;
		INIT_LIST_HEAD(&member->requests);
		INIT_LIST_HEAD(&member->plain);
	}
	INIT_LIST_HEAD(&array->free);
	for (i = 0; i < SS_ARRAY_REQUESTS; i++)
		list_add_tail(&array->request[i].node, &array->free);
}

static int refuse(int error, char *why, size_t why_bytes, u32 member,
		  const char *reason)
{
	ss_say_all(why, why_bytes, "member ", member, reason);
	return error;
}

int ss_array_attach(struct ss_array *array, u32 index, struct ss_sched *sched,
		    char *why, size_t why_bytes)
{
	struct ss_array_member *member;

	if (index >= array->geometry.nr_members)
		return refuse(-EINVAL, why, why_bytes, index,
			      ": the array has fewer members");
	if (sched->policy[0].ops != &ss_stream_ops)
		return refuse(
			-EINVAL, why, why_bytes, index,
			" is not scheduled by stream, as in stream:deadline");
	member = &array->member[index];
	if (member->sched || sched->coordinator)
		return refuse(-EBUSY, why, why_bytes, index,
			      " is attached already");
	ss_array_lock(array);
	member->sched = sched;
	array->attached |= 1U << index;
	ss_array_unlock(array);
	sched->coordinator = &member->coordinator;
	return 0;
}

void ss_array_detach(struct ss_array *array, u32 index, u64 now_ns)
{
	struct ss_array_member *member = &array->member[index];
	struct ss_array_request *request, *next_request;
	struct ss_request *rq, *next;

	if (!member->sched)
		return;
	enter(&member->coordinator, now_ns);
	list_for_each_entry_safe(request, next_request, &member->requests, node)
		forget(request, false);
	list_for_each_entry_safe(rq, next, &member->plain, array_node)
		leaves_plain(member, rq);
	while (member->nr_flushes)
		member_flushes(member, false);
	member->placing = false;
	/* It may return with another disk. */
	member->place_sector = 0;
	member->place_until = 0;
	array->attached &= ~(1U << index);
	member->sched->coordinator = NULL;
	member->sched = NULL;
	leave(array);
}

void ss_array_counters(struct ss_array *array,
		       struct ss_array_counters *counters)
{
	ss_array_lock(array);
	*counters = array->counters;
	counters->trials = array->sched.nr_trials;
	counters->trials_lost = array->sched.nr_trials_lost;
	ss_array_unlock(array);
}
