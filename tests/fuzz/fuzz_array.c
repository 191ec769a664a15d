// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: the coordinator of an array's members, as several hosts drive
 * it, with its invariants checked after each step.
 *
 * The first bytes choose the array and the members' policy; then each byte
 * begins one event of one member: a request arrives, of one of a few readers
 * of the array or of nobody's, the host asks and obeys, the disk completes
 * one, the host takes one back, the member leaves its array and joins that or
 * another one, time passes. Members read the clock in another order than they
 * come. In the end everything pending is served.
 */
#include "../../core/array/array.h"
#include "check.h"

#include "../../core/stream/party.h"

#include <linux/kernel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS 5
#define ARRAYS 2
#define SLOTS 64
#define READERS 4
#define SPAN (1ULL << 30)
#define SKEW_NS 50000
/* A turn is 2 1/4 slices at most, and the longest slice is this. */
#define SLICE_MOST_NS (60ULL * SS_SEC)
/* Questions in a row without another answer than to wait. */
#define WAITS_MOST 100000

enum slot_state { FREE, PENDING, IN_FLIGHT };

struct slot {
	struct ss_request rq;
	enum slot_state state;
	u32 member;
};

static const uint8_t *bytes;
static size_t nr_bytes;
static u64 now_ns;
static u64 clock_ns[MEMBERS]; /* as each member read it last */
static u32 nr_members;
static u32 depth;
static u32 in_flight[MEMBERS];
static u64 reader_at[READERS]; /* chunks */
static u64 arrived, served, removed;
static bool locked;
static struct slot slots[SLOTS];
static struct ss_sched sched[MEMBERS];
static struct ss_array arrays[ARRAYS];
static struct ss_array *array_of[MEMBERS];
static u32 flushing[MEMBERS];
static struct ss_array_geometry geometry;

static u32 next_byte(void)
{
	if (!nr_bytes)
		return 0;
	nr_bytes--;
	return *bytes++;
}

/* ---- what the coordinator needs of its host ---- */

static void lock(struct ss_array *array)
{
	(void)array;
	CHECK(!locked);
	locked = true;
}

static void unlock(struct ss_array *array)
{
	(void)array;
	CHECK(locked);
	locked = false;
}

static void kick(struct ss_array *array, u32 member)
{
	CHECK(locked);
	CHECK(array_of[member] == array);
}

/* ---- one member's events ---- */

/* The member reads the clock: not before it did last, maybe late. */
static u64 read_clock(u32 member)
{
	u64 late = (u64)(next_byte() % 4) * SKEW_NS;
	u64 read = now_ns > late ? now_ns - late : 0;

	if (read > clock_ns[member])
		clock_ns[member] = read;
	return clock_ns[member];
}

static struct slot *slot_in(enum slot_state state, u32 member)
{
	u32 i;

	for (i = 0; i < SLOTS; i++)
		if (slots[i].state == state &&
		    (state == FREE || slots[i].member == member))
			return &slots[i];
	return NULL;
}

static void send(u32 member, u64 sector, u32 nr_sectors, u8 direction, u8 flags)
{
	struct slot *slot = slot_in(FREE, 0);

	if (!slot)
		return;
	memset(slot, 0xa5, sizeof(*slot));
	slot->state = PENDING;
	slot->member = member;
	slot->rq.sector = sector;
	slot->rq.nr_sectors = nr_sectors;
	slot->rq.direction = direction;
	slot->rq.flags = flags;
	slot->rq.owner = SS_OWNER_NONE;
	ss_sched_arrived(&sched[member], &slot->rq, read_clock(member));
	arrived++;
}

/* The next chunk of a reader of the array, wherever it lies. */
static void read_on(u32 reader)
{
	struct ss_array_place place;
	u64 sector = reader_at[reader]++ * geometry.chunk_sectors;

	ss_array_map(&geometry, sector % geometry.capacity_sectors, 0, &place);
	send(place.member, place.sector, geometry.chunk_sectors, SS_READ, 0);
}

/* The host does what a kick asks for: maybe late, when nobody wants it now. */
static void place_head(u32 member, bool late)
{
	u32 nr_sectors;
	u64 sector;

	if (!array_of[member] ||
	    !ss_array_place(array_of[member], member, &sector, &nr_sectors))
		return;
	CHECK(nr_sectors && sector + nr_sectors <= SPAN);
	if (late)
		now_ns += 20 * SS_MSEC;
	send(member, sector, nr_sectors, SS_READ, SS_SYNC | SS_PLACING);
}

static void dispatch(u32 member, struct ss_request *rq, u64 at_ns)
{
	struct slot *slot = (struct slot *)rq;

	CHECK(slot >= slots && slot < slots + SLOTS);
	CHECK(slot->state == PENDING && slot->member == member);
	ss_sched_dispatched(&sched[member], rq, SS_WHY_ORDER, at_ns);
	slot->state = IN_FLIGHT;
	in_flight[member]++;
}

/* Until when it waits; 0 when it does not. */
static u64 ask(u32 member)
{
	while (in_flight[member] < depth) {
		u64 at_ns = read_clock(member);
		struct ss_decision decision, again;

		decision = ss_sched_choose(&sched[member], at_ns);
		again = ss_sched_choose(&sched[member], at_ns);
		CHECK(decision.verdict == again.verdict);
		CHECK(decision.verdict == SS_NOTHING ||
		      decision.until_ns == again.until_ns);
		if (decision.verdict == SS_WAIT) {
			CHECK(decision.until_ns > at_ns);
			CHECK(decision.until_ns == SS_FOREVER ||
			      decision.until_ns <= now_ns + 3 * SLICE_MOST_NS);
			CHECK(decision.until_ns != SS_FOREVER ||
			      in_flight[member] || array_of[member]);
			return decision.until_ns;
		}
		if (decision.verdict == SS_NOTHING) {
			CHECK(!sched[member].nr_pending);
			return 0;
		}
		dispatch(member, decision.rq, at_ns);
	}
	return 0;
}

static void complete(u32 member)
{
	struct slot *slot = slot_in(IN_FLIGHT, member);

	if (!slot)
		return;
	ss_sched_completed(&sched[member], &slot->rq, read_clock(member));
	slot->state = FREE;
	in_flight[member]--;
	served++;
}

static void take_back(u32 member)
{
	struct slot *slot = slot_in(PENDING, member);

	if (!slot)
		return;
	ss_sched_removed(&sched[member], &slot->rq, read_clock(member));
	slot->state = FREE;
	removed++;
}

/* The member's cache is flushed, or no longer; there may be several. */
static void flush(u32 member, bool begins)
{
	if (!begins && !flushing[member])
		return;
	flushing[member] += begins ? 1 : -1;
	ss_sched_flushes(&sched[member], begins, read_clock(member));
}

static void leave(u32 member)
{
	if (array_of[member])
		ss_array_detach(array_of[member], member, read_clock(member));
	array_of[member] = NULL;
}

static void join(u32 member, struct ss_array *array)
{
	char why[160];
	int error = ss_array_attach(array, member, &sched[member], why,
				    sizeof(why));

	/* Whoever is attached already stays where it is. */
	CHECK(!error == !array_of[member]);
	if (!error)
		array_of[member] = array;
}

/* ---- what must be so ---- */

static void check_array(const struct ss_array *array)
{
	const struct ss_parties *all = array->sched.policy[0].state;
	u32 i, held = 0, released = 0, flushes = 0;

	CHECK(!locked);
	for (i = 0; i < nr_members; i++) {
		const struct ss_array_member *member = &array->member[i];
		bool attached = array->attached & (1U << i);

		CHECK(attached == (array_of[i] == array));
		if (!attached)
			continue;
		CHECK(member->nr_held + member->nr_released +
			      member->nr_plain <=
		      sched[i].nr_pending);
		CHECK(member->nr_sent <= sched[i].nr_in_flight);
		held += member->nr_held;
		released += member->nr_released + member->nr_sent;
		flushes += member->nr_flushes;
		CHECK(member->nr_flushes <= flushing[i]);
	}
	CHECK(array->sched.nr_pending == held);
	CHECK(array->sched.nr_in_flight == released);
	CHECK(all->turn.nr_flushes == flushes);
	CHECK(array->now_ns <= now_ns);
}

static void event(u32 byte)
{
	u32 member = next_byte() % nr_members;

	switch (byte % 12) {
	case 0:
	case 1:
	case 2:
	case 3:
		read_on(byte / 16 % READERS);
		break;
	case 4:
		send(member, next_byte() * (SPAN / 256), 8, byte / 16 % 2, 0);
		break;
	case 5:
	case 6:
		ask(member);
		break;
	case 7:
	case 8:
		complete(member);
		break;
	case 9:
		now_ns += (u64)(next_byte() + 1) << (byte / 16 % 16 + 6);
		break;
	case 10:
		if (byte / 16 < 2)
			take_back(member);
		else if (byte / 16 < 4)
			now_ns += SS_MSEC;
		else if (byte / 16 < 8)
			flush(member, byte / 16 < 7);
		else
			place_head(member, byte / 16 % 4 == 0);
		break;
	default:
		if (byte / 16 % 2)
			leave(member);
		else
			join(member, &arrays[byte / 32 % ARRAYS]);
	}
}

/* Everything that is pending is served, in bounded time. */
static void drain(void)
{
	u32 i, waits = 0;

	for (i = 0; i < nr_members; i++)
		while (flushing[i])
			flush(i, false);
	while (served + removed < arrived) {
		u64 until_ns = SS_FOREVER;
		u64 done = served;

		for (i = 0; i < nr_members; i++) {
			u64 at_ns = ask(i);

			if (at_ns && at_ns < until_ns)
				until_ns = at_ns;
			complete(i);
		}
		CHECK(served > done || ++waits < WAITS_MOST);
		CHECK(served > done || until_ns != SS_FOREVER);
		now_ns += SS_MSEC;
		if (served == done && until_ns > now_ns)
			now_ns = until_ns;
	}
	for (i = 0; i < ARRAYS; i++)
		CHECK(!arrays[i].sched.nr_pending &&
		      !arrays[i].sched.nr_in_flight);
}

static void begin(void)
{
	static const char *const specs[] = { "stream:noop", "stream:deadline",
					     "stream:sptf", "stream:cscan" };
	char why[160];
	const char *spec = specs[next_byte() % ARRAY_SIZE(specs)];
	u32 slice = next_byte(), i;

	memset(slots, 0, sizeof(slots));
	memset(&geometry, 0, sizeof(geometry));
	memset(in_flight, 0, sizeof(in_flight));
	memset(clock_ns, 0, sizeof(clock_ns));
	memset(array_of, 0, sizeof(array_of));
	memset(flushing, 0, sizeof(flushing));
	memset(arrays, 0, sizeof(arrays));
	arrived = served = removed = 0;
	now_ns = SS_SEC;
	nr_members = 2 + next_byte() % (MEMBERS - 1);
	depth = 1 + next_byte() % 4;
	geometry.level = next_byte() % 4;
	geometry.layout = SS_ARRAY_LEFT_SYMMETRIC;
	if (geometry.level == SS_ARRAY_RAID10)
		geometry.layout = SS_ARRAY_NEAR + nr_members % 3;
	geometry.nr_members = nr_members;
	geometry.chunk_sectors = 128;
	for (i = 0; i < nr_members; i++)
		geometry.member_sectors[i] = SPAN;
	CHECK(!ss_array_geometry_init(&geometry, why, sizeof(why)));
	for (i = 0; i < READERS; i++)
		reader_at[i] = i * (geometry.capacity_sectors / 128 / READERS);
	for (i = 0; i < nr_members; i++) {
		CHECK(!ss_sched_init(&sched[i], spec, SPAN, why, sizeof(why)));
		ss_sched_tune(&sched[i], "wait_target", (10 + slice) * SS_MSEC,
			      0, why, sizeof(why));
	}
	for (i = 0; i < ARRAYS; i++) {
		arrays[i].lock = lock;
		arrays[i].unlock = unlock;
		arrays[i].kick = kick;
		arrays[i].places = true;
		ss_array_init(&arrays[i], &geometry);
	}
	for (i = 0; i < nr_members; i++)
		join(i, &arrays[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u32 i;

	bytes = data;
	nr_bytes = size;
	begin();
	while (nr_bytes) {
		event(next_byte());
		for (i = 0; i < ARRAYS; i++)
			check_array(&arrays[i]);
	}
	drain();
	return 0;
}
