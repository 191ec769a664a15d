// SPDX-License-Identifier: GPL-2.0-only
/*
 * An array of disks, as Linux md drives it: a bio is cut at the borders of
 * chunks and the pieces go to the members, where block.c merges those that
 * touch.
 *
 * For a range of a row that is written RAID 5 and 6 need, to make the parity,
 * either the old data and the old parity, or the data that is not written:
 * whichever takes fewer reads, the second where both take as many. What the
 * stripe cache has need not be read (drivers/md/raid5.c,
 * handle_stripe_dirtying()). Writes of one instant are taken together, as md
 * delays what does not fill a stripe until its sender has no more; so writes in
 * sequence read nothing. Not as md's: no writer waits because all stripes are
 * in use, and reads do not go through the cache, also where a member is lost.
 *
 * RAID 1 and 10 read the copy that md's read_balance() chooses for disks that
 * rotate (drivers/md/raid1.c and raid10.c). If the array is coordinated and
 * each copy has members of its own, core/array/mirror.c chooses the copy.
 *
 * Without one member RAID 5 and 6 read all others instead, RAID 1 and 10
 * another copy. When a member fails while the array works, what it has begun it
 * still finishes, and what waits for it goes elsewhere.
 */
#include "array.h"

#include "../core/array/array.h"
#include "../core/array/mirror.h"
#include "../core/policies.h"
#include "stripes.h"

#define NOBODY SIM_NO_MEMBER

/*
 * Something under way: a sender's bio, what of it lies in one row of RAID 5 or
 * 6, or a range of a row that is written for one or several of these. Done when
 * all its pieces are.
 */
struct op {
	struct sim_array *array;
	struct op *parent; /* or: */
	struct sim_bio *bio;
	u32 left; /* pieces */
	/*
	 * RAID 5 and 6: what is to be written of a row, from @from to before
	 * @end of its chunks on the members @written, with the parity on
	 * @parity, as bits; the row begins at @row_sector of each member.
	 */
	u64 row_sector, from, end;
	u32 written, parity;
	struct op *next_waiting; /* for the instant's end, or for this one */
	u32 writes; /* what is written after the reads; with the parity */
	u32 known; /* what the stripe cache has then */
	struct op *next_free;
	struct op *next_made;
};

struct sim_array {
	struct sim_block *block;
	struct ss_workload workload; /* as senders sent it */
	u64 capacity_sectors;
	bool single; /* one disk, and none of what follows */
	struct ss_array_geometry geometry;
	u64 head_sector[SS_ARRAY_MEMBERS]; /* where the last piece sent ends */
	u32 failed; /* member, or NOBODY */
	u32 fails; /* member, later */
	struct sim_stripes *stripes; /* of RAID 5 and 6 */
	struct op *waiting, **last_waiting; /* rows to be written */
	struct op *free_op, *made_op;
	bool coordinated;
	struct ss_mirrors mirrors;
	struct ss_array coordinator;
};

u64 sim_array_capacity(const struct sim_array *array)
{
	return array->capacity_sectors;
}

static struct op *op_new(struct sim_array *array, struct op *parent,
			 struct sim_bio *bio)
{
	struct op *op = array->free_op;

	if (op) {
		array->free_op = op->next_free;
	} else {
		op = sim_alloc(sizeof(*op));
		op->next_made = array->made_op;
		array->made_op = op;
	}
	op->array = array;
	op->parent = parent;
	op->bio = bio;
	op->left = 1;
	op->writes = 0;
	op->next_waiting = NULL;
	if (parent)
		parent->left++;
	return op;
}

static void piece_done(struct sim_bio *piece);

/* @length sectors of @member from @sector on, for @op. */
static void send(struct op *op, u32 member, u64 sector, u64 length,
		 u8 direction)
{
	struct sim_array *array = op->array;
	struct sim_block *block = array->block;
	const struct sim_bio *bio = op->bio;
	struct sim_bio *piece;

	if (block->disk[member].failed)
		return;
	piece = sim_bio_new(block);
	piece->sector = sector;
	piece->nr_sectors = (u32)length;
	piece->direction = direction;
	piece->flags = bio->flags;
	if (direction == SS_READ)
		piece->flags |= SS_SYNC;
	piece->flush = bio->flush;
	piece->job = bio->job;
	piece->wanted_ns = block->clock->now_ns;
	piece->done = piece_done;
	piece->context = op;
	piece->disk = member;
	op->left++;
	if (!bio->flush)
		array->head_sector[member] = sector + length;
	sim_block_submit(block, piece);
}

/* @op's range of its row, on each of @members. */
static void send_range(struct op *op, u32 members, u8 direction)
{
	u32 member;

	for (member = 0; member < op->array->geometry.nr_members; member++)
		if (members & (1U << member))
			send(op, member, op->row_sector + op->from,
			     op->end - op->from, direction);
}

/* A piece of @op is done, or there was none. */
static void put(struct op *op)
{
	struct sim_array *array = op->array;
	struct op *other, *next;

	if (--op->left)
		return;
	if (op->writes) {
		sim_stripes_keep(array->stripes, op->row_sector + op->from,
				 op->end - op->from, op->known);
		op->left = 1;
		send_range(op, op->writes, SS_WRITE);
		op->writes = 0;
		put(op);
		return;
	}
	for (other = op->next_waiting; other; other = next) {
		next = other->next_waiting;
		other->next_waiting = NULL;
		put(other);
	}
	if (op->parent) {
		put(op->parent);
	} else {
		op->bio->done(op->bio);
		sim_bio_free(array->block, op->bio);
	}
	op->next_free = array->free_op;
	array->free_op = op;
}

static void piece_done(struct sim_bio *piece)
{
	put(piece->context);
}

/* ---- reading ---- */

/* RAID 5 and 6: what failed is made of all others. */
static void read_others(struct op *op, u64 sector, u64 length)
{
	u32 member;

	for (member = 0; member < op->array->geometry.nr_members; member++)
		send(op, member, sector, length, SS_READ);
}

/* How far the head of @place's member is from there. */
static u64 distance_to(const struct sim_array *array,
		       const struct ss_array_place *place)
{
	u64 head = array->head_sector[place->member];

	return place->sector > head ? place->sector - head :
				      head - place->sector;
}

/* md's rule for one copy: less is better. */
static u64 md_distance(const struct sim_array *array,
		       const struct ss_array_place *place)
{
	const struct sim_disk *disk = &array->block->disk[place->member];
	bool idle = !disk->sched[0].nr_pending && !disk->sched[0].nr_in_flight;
	u64 distance = distance_to(array, place);

	/* RAID 1 goes on where a head is, before it asks who is idle. */
	if (array->geometry.level == SS_ARRAY_RAID1)
		return idle ? min_t(u64, distance, 1) : distance + !!distance;
	if (array->geometry.layout == SS_ARRAY_NEAR && idle)
		return 0;
	/* The first copies of far are where the disks are fastest. */
	if (array->geometry.layout == SS_ARRAY_FAR)
		return place->sector;
	return distance;
}

static bool is_balanced(const struct sim_array *array)
{
	return array->coordinated && ss_array_has_mirrors(&array->geometry) &&
	       array->block->disk[0].sched[0].policy[0].ops == &ss_stream_ops;
}

/* RAID 1 and 10: which copy. */
static u32 choose_copy(struct sim_array *array, u64 sector, u64 length)
{
	struct ss_mirror mirror[SS_ARRAY_MEMBERS];
	u64 best = U64_MAX;
	u32 copy, chosen = 0;

	for (copy = 0; copy < array->geometry.copies; copy++) {
		struct ss_array_place place;
		const struct sim_disk *disk;
		u64 distance;

		ss_array_map(&array->geometry, sector, copy, &place);
		length = min_t(u64, length, place.run_sectors);
		disk = &array->block->disk[place.member];
		mirror[copy] = (struct ss_mirror){
			.usable = !disk->failed,
			.nr_requests = disk->sched[0].nr_pending +
				       disk->sched[0].nr_in_flight,
			.distance = distance_to(array, &place),
		};
		if (disk->failed)
			continue;
		distance = md_distance(array, &place);
		if (distance < best) {
			best = distance;
			chosen = copy;
		}
	}
	if (is_balanced(array))
		return ss_mirror_choose(&array->mirrors, mirror,
					array->geometry.copies, sector,
					(u32)length,
					array->block->clock->now_ns);
	return chosen;
}

/* As much as one member has in a row; returns how much that is. */
static u64 read_some(struct op *op, u64 sector, u64 length)
{
	struct sim_array *array = op->array;
	const struct ss_array_geometry *geometry = &array->geometry;
	struct ss_array_place place;
	u32 copy = geometry->copies > 1 ? choose_copy(array, sector, length) :
					  0;

	ss_array_map(geometry, sector, copy, &place);
	length = min_t(u64, length, place.run_sectors);
	if (place.member == array->failed)
		read_others(op, place.sector, length);
	else
		send(op, place.member, place.sector, length, SS_READ);
	return length;
}

/* ---- writing ---- */

static u64 write_some(struct op *op, u64 sector, u64 length)
{
	const struct ss_array_geometry *geometry = &op->array->geometry;
	struct ss_array_place place;
	u32 copy;

	for (copy = 0; copy < geometry->copies; copy++) {
		ss_array_map(geometry, sector, copy, &place);
		length = min_t(u64, length, place.run_sectors);
		send(op, place.member, place.sector, length, SS_WRITE);
	}
	return length;
}

/*
 * RAID 5 and 6: write @row's pages from @from to before @end on the members
 * @written, and the parity. Of those of @partly not all is written; the stripe
 * cache has those of @have.
 */
static void write_alike(struct op *row, u64 from, u64 end, u32 written,
			u32 partly, u32 have)
{
	struct sim_array *array = row->array;
	u32 failed = array->failed;
	u32 all = (u32)((1ULL << array->geometry.nr_members) - 1);
	u32 lost = failed == NOBODY ? 0 : 1U << failed;
	u32 rest = (all & ~written & ~row->parity) | partly, reads;
	struct op *op = op_new(array, row, row->bio);

	op->row_sector = row->row_sector;
	op->from = from;
	op->end = end;
	op->writes = written | row->parity;
	if (row->parity == lost)
		reads = partly;
	else if (written & lost)
		reads = partly & lost ? all : rest;
	else if ((rest & lost) ||
		 __builtin_popcount(op->writes & ~lost & ~have) <
			 __builtin_popcount(rest & ~have))
		reads = op->writes;
	else
		reads = rest;
	op->known = have | op->writes | reads;
	send_range(op, reads & ~have, SS_READ);
	put(op);
}

/* The same where the stripe cache may have of each page something else. */
static void write_pages(struct op *row, u64 from, u64 end, u32 written,
			u32 partly)
{
	const struct sim_stripes *stripes = row->array->stripes;
	u64 at, till;
	u32 have;

	for (at = from; at < end; at = till) {
		have = sim_stripes_have(stripes, row->row_sector + at);
		for (till = at + PAGE_SECTORS; till < end; till += PAGE_SECTORS)
			if (sim_stripes_have(stripes, row->row_sector + till) !=
			    have)
				break;
		write_alike(row, at, till, written, partly, have);
	}
}

/* What is to be written of one row: @row, and what waits for it. */
static void write_together(struct op *row)
{
	u64 next, end;

	for (next = 0; next < row->array->geometry.chunk_sectors; next = end) {
		const struct op *op;
		u32 written = 0, whole = 0;

		end = row->array->geometry.chunk_sectors;
		for (op = row; op; op = op->next_waiting) {
			u64 first = op->from - op->from % PAGE_SECTORS;
			u64 wholes_end = op->end - op->end % PAGE_SECTORS;

			if (first > next) {
				end = min_t(u64, end, first);
			} else if (op->from <= next && next < wholes_end) {
				end = min_t(u64, end, wholes_end);
				whole |= op->written;
			} else if (next < op->end) {
				end = min_t(u64, end, next + PAGE_SECTORS);
				written |= op->written;
			}
		}
		if (written | whole)
			write_pages(row, next, end, written | whole,
				    written & ~whole);
	}
	put(row);
}

/* The instant is over: each row's writes are taken together. */
static void write_rows(void *context)
{
	struct sim_array *array = context;
	struct op *row = array->waiting, *op, *next;

	array->waiting = NULL;
	for (; row; row = array->waiting) {
		struct op **same = &row->next_waiting;
		struct op **others = &array->waiting;

		for (op = row->next_waiting; op; op = next) {
			struct op ***list = op->row_sector == row->row_sector ?
						    &same :
						    &others;

			next = op->next_waiting;
			**list = op;
			*list = &op->next_waiting;
		}
		*same = NULL;
		*others = NULL;
		array->last_waiting = others;
		write_together(row);
	}
}

static void wait_for_others(struct op *bio_op, u64 row_sector, u64 from,
			    u64 end, u32 written, u32 parity)
{
	struct sim_array *array = bio_op->array;
	struct op *op = op_new(array, bio_op, bio_op->bio);

	op->row_sector = row_sector;
	op->from = from;
	op->end = end;
	op->written = written;
	op->parity = parity;
	if (!array->waiting) {
		array->last_waiting = &array->waiting;
		sim_timer(array->block->clock, array->block->clock->now_ns,
			  write_rows, array);
	}
	*array->last_waiting = op;
	array->last_waiting = &op->next_waiting;
}

/* RAID 5 and 6: what of a write lies in one row; returns how much that is. */
static u64 write_row(struct op *op, u64 sector, u64 length)
{
	const struct ss_array_geometry *geometry = &op->array->geometry;
	u64 chunk = geometry->chunk_sectors, row_length, row, at, end, next;
	struct ss_array_place place;
	u32 parity, i;

	row_length = chunk * geometry->data_members;
	row = sector / row_length;
	at = sector % row_length;
	length = min_t(u64, length, row_length - at);
	parity = 0;
	for (i = 0; i < geometry->parities; i++)
		parity |= 1U << (ss_array_parity_member(geometry, row) + i) %
					geometry->nr_members;
	/* Between two of these the same members are written. */
	for (next = 0; next < chunk; next = end) {
		u64 begins = at % chunk, ends = (at + length) % chunk, column;
		u32 written = 0;

		end = chunk;
		if (next < begins)
			end = begins;
		if (next < ends && ends < end)
			end = ends;
		for (column = 0; column < geometry->data_members; column++) {
			u64 here = column * chunk + next;

			if (here < at || here >= at + length)
				continue;
			ss_array_map(geometry, row * row_length + here, 0,
				     &place);
			written |= 1U << place.member;
		}
		if (written)
			wait_for_others(op, row * chunk, next, end, written,
					parity);
	}
	return length;
}

/* ---- both ---- */

void sim_submit(struct sim_array *array, struct sim_bio *bio)
{
	u64 sector = bio->sector, left = bio->nr_sectors, length;
	struct op *op;
	u32 member;

	if (!bio->flush)
		ss_workload_arrived(&array->workload, bio->sector,
				    bio->nr_sectors, bio->direction,
				    bio->direction == SS_READ ||
					    (bio->flags & SS_SYNC));
	if (array->single) {
		bio->disk = 0;
		sim_block_submit(array->block, bio);
		return;
	}
	op = op_new(array, NULL, bio);
	if (bio->flush) {
		left = 0;
		for (member = 0; member < array->geometry.nr_members; member++)
			send(op, member, 0, 0, SS_WRITE);
	}
	for (; left; left -= length, sector += length) {
		if (bio->direction == SS_READ)
			length = read_some(op, sector, left);
		else if (array->geometry.parities)
			length = write_row(op, sector, left);
		else
			length = write_some(op, sector, left);
	}
	put(op);
}

void sim_submit_range(struct sim_array *array, const struct sim_bio *like,
		      u64 sector, u64 nr_sectors, u32 max)
{
	while (nr_sectors) {
		struct sim_bio *bio = sim_bio_new(array->block);

		*bio = *like;
		bio->sector = sector;
		bio->nr_sectors = (u32)min_t(u64, nr_sectors, max);
		sector += bio->nr_sectors;
		nr_sectors -= bio->nr_sectors;
		sim_submit(array, bio);
	}
}

/* A read that waited for the member that has failed goes elsewhere. */
static void redirect(const struct sim_bio *piece)
{
	struct op *op = piece->context;
	const struct ss_array_geometry *geometry = &op->array->geometry;
	u64 sector, run;

	if (piece->flush || piece->direction == SS_WRITE)
		return;
	if (geometry->copies > 1) {
		ss_array_unmap(geometry, piece->disk, piece->sector, &sector,
			       &run);
		read_some(op, sector, piece->nr_sectors);
	} else if (ss_array_unmap(geometry, piece->disk, piece->sector, &sector,
				  &run) == SS_ARRAY_DATA) {
		read_others(op, piece->sector, piece->nr_sectors);
	}
}

static void fail(void *context)
{
	struct sim_array *array = context;
	struct sim_block *block = array->block;
	struct sim_disk *disk = &block->disk[array->fails];
	struct sim_bio *piece, *next;

	disk->failed = true;
	array->failed = array->fails;
	if (array->coordinated)
		ss_array_detach(&array->coordinator, array->failed,
				block->clock->now_ns);
	for (piece = sim_block_take_back(block, disk); piece; piece = next) {
		next = piece->next;
		redirect(piece);
		put(piece->context);
		sim_bio_free(block, piece);
	}
}

static void placed(struct sim_bio *bio)
{
	(void)bio;
}

/* Something to be read of a member's disk only so that its head is there. */
static void place(void *context, struct sim_disk *disk)
{
	struct sim_array *array = context;
	struct sim_block *block = array->block;
	u32 member = (u32)(disk - block->disk), nr_sectors;
	struct sim_bio *bio;
	u64 sector;

	if (disk->failed || disk->next_policy[0] ||
	    disk->blocked_first[SS_READ] ||
	    disk->held_requests[SS_READ] >= block->config->nr_requests ||
	    !ss_array_place(&array->coordinator, member, &sector, &nr_sectors))
		return;
	bio = sim_bio_new(block);
	bio->sector = sector;
	bio->nr_sectors = nr_sectors;
	bio->direction = SS_READ;
	bio->flags = SS_SYNC | SS_PLACING;
	bio->job = U32_MAX;
	bio->wanted_ns = block->clock->now_ns;
	bio->done = placed;
	bio->disk = member;
	sim_block_submit(block, bio);
}

static void kick(struct ss_array *coordinator, u32 member)
{
	struct sim_block *block = coordinator->host;

	block->disk[member].ask = true;
}

static void leave(void *context, struct sim_disk *disk)
{
	struct sim_array *array = context;

	if (disk->sched[0].coordinator)
		ss_array_detach(&array->coordinator,
				(u32)(disk - array->block->disk),
				array->block->clock->now_ns);
}

static void join(void *context, struct sim_disk *disk)
{
	struct sim_array *array = context;
	char why[160];

	if (!disk->failed)
		ss_array_attach(&array->coordinator,
				(u32)(disk - array->block->disk),
				&disk->sched[0], why, sizeof(why));
}

/* Let members that schedule by streams work together. */
static void coordinate(struct sim_array *array)
{
	struct sim_block *block = array->block;
	u32 i;

	ss_array_init(&array->coordinator, &array->geometry);
	array->coordinator.kick = kick;
	array->coordinator.places = true;
	array->coordinator.host = block;
	array->coordinated = true;
	block->members = (struct sim_members){ array, place, leave, join };
	for (i = 0; i < block->nr_disks; i++)
		join(array, &block->disk[i]);
}

static int set_failure(struct sim_array *array,
		       const struct sim_array_config *config, char *why,
		       u64 why_bytes)
{
	struct sim_block *block = array->block;

	if (config->failed_member >= block->nr_disks ||
	    config->level == SS_ARRAY_RAID0 ||
	    config->level == SS_ARRAY_LINEAR) {
		snprintf(
			why, why_bytes,
			"member %u cannot fail: the array has members 0 to %u, and RAID 0 and linear cannot do without one",
			config->failed_member, block->nr_disks - 1);
		return -1;
	}
	if (config->fail_at_ns) {
		array->fails = config->failed_member;
		sim_timer(block->clock, config->fail_at_ns, fail, array);
	} else {
		array->failed = config->failed_member;
		block->disk[array->failed].failed = true;
	}
	return 0;
}

static int put_together(struct sim_array *array,
			const struct sim_array_config *config, char *why,
			u64 why_bytes)
{
	struct ss_array_geometry *geometry = &array->geometry;
	const struct sim_block *block = array->block;
	u32 i;

	geometry->level = config->level;
	geometry->layout = config->layout;
	geometry->chunk_sectors = config->chunk_sectors;
	geometry->nr_members = block->nr_disks;
	for (i = 0; i < block->nr_disks && i < SS_ARRAY_MEMBERS; i++)
		geometry->member_sectors[i] =
			block->disk[i].drive->params.capacity_sectors;
	if (ss_array_geometry_init(geometry, why, why_bytes))
		return -1;
	array->capacity_sectors = geometry->capacity_sectors;
	if (geometry->parities && !config->stripes) {
		snprintf(
			why, why_bytes,
			"the stripe cache of RAID 5 and 6 has at least 1 stripe");
		return -1;
	}
	if (geometry->parities)
		array->stripes = sim_stripes_new(config->stripes);
	if (config->failed_member != NOBODY &&
	    set_failure(array, config, why, why_bytes))
		return -1;
	if (config->coordinated)
		coordinate(array);
	return 0;
}

struct sim_array *sim_array_new(struct sim_block *block,
				const struct sim_array_config *config,
				char *why, u64 why_bytes)
{
	struct sim_array *array = sim_alloc(sizeof(*array));

	array->block = block;
	array->failed = NOBODY;
	array->single = !config;
	array->capacity_sectors = block->disk[0].drive->params.capacity_sectors;
	if (config && put_together(array, config, why, why_bytes)) {
		sim_stripes_free(array->stripes);
		free(array);
		return NULL;
	}
	ss_workload_init(&array->workload, array->capacity_sectors);
	return array;
}

const struct ss_workload_totals *sim_array_arrived(
	const struct sim_array *array)
{
	return &array->workload.totals;
}

void sim_array_sums(struct sim_array *array, struct sim_result *result)
{
	struct ss_array_counters counters;

	if (!array->coordinated)
		return;
	ss_array_counters(&array->coordinator, &counters);
	result->array_turns = counters.turns;
	result->array_slices_ended = counters.slices_ended;
	result->array_established = counters.established;
}

void sim_array_free(struct sim_array *array)
{
	if (!array)
		return;
	while (array->made_op) {
		struct op *op = array->made_op;

		array->made_op = op->next_made;
		free(op);
	}
	sim_stripes_free(array->stripes);
	free(array);
}
