// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: an adversary looks for the longest wait.
 *
 * The input's bytes describe up to 16 processes and one disk, or an array of
 * up to four. The processes send requests in virtual time, `stream` schedules
 * them, and the disk model serves them. What libFuzzer is told beside the
 * code that ran is the longest wait in proportion to the bound:
 *
 *	max(wait_target, n x (2 switches + one service)) + one slice
 *
 * A process with several requests pending also waits for itself. So there are
 * two figures:
 *
 * party: a process that reads or writes on counts as one of n, and waits since
 * its last request was dispatched. Of random processes, which are in no
 * stream, each request counts as one of n, and waits since it arrived.
 *
 * any: each request of any process counts as one of n, and waits since it
 * arrived. One of a process of five times the weight counts as five, for that
 * process has five times as much of the disk while it waits.
 *
 * FUZZ_VERBOSE=1 prints the processes, and each wait that is the longest so
 * far; FUZZ_VERBOSE=2 also prints each dispatch. With WAIT_MEMBERS=N there are
 * N disks, whatever the input says. With WAIT_SECONDS=N the run is of that
 * length: a wait that grows with the run is starvation.
 */
#include "../../core/array/array.h"
#include "../../core/sched.h"
#include "../../core/stream/party.h"
#include "../../disk/hdd.h"
#include "check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By any no wait may be longer, in thousandths of the bound. */
#ifndef MOST_PERMILLE
#define MOST_PERMILLE 3000
#endif

#define PROCESSES 16
#define PROCESS_BYTES 12
#define DEEPEST 16 /* requests of one process at once */
#define SLOTS (PROCESSES * DEEPEST)
#define MEMBERS 4
/* A run ends after so many requests, so that inputs stay quick. */
#define REQUESTS 12000
/* Runs of fewer requests are no streams for long. */
#define SHORT_RUN 10
/* No process sends its next request sooner. */
#define LEAST_THINK_NS 20000

enum slot_state { FREE, PENDING, IN_FLIGHT, WANTS_FLUSH, FLUSHING };

enum figure { BY_PARTY, BY_ANY, FIGURES };

static const char *const figure_name[FIGURES] = { "party", "any" };

struct process {
	/* As the input says. */
	bool writes, sync;
	bool reacts; /* sends after somebody else was served */
	u32 nr_sectors;
	u32 run; /* requests in a row before it jumps; 0: never */
	u32 outstanding;
	u32 weight; /* in percent */
	u32 fsync_every; /* writes; 0: never */
	u32 think_every; /* requests */
	u64 think_ns, join_ns;
	u64 first, region; /* sectors */
	s64 skip; /* sectors, after each request */

	/* As it goes on. */
	u64 random;
	u64 at;
	u32 left; /* of the run */
	u32 done;
	u64 served_ns; /* one of its requests was dispatched last */
};

struct slot {
	struct ss_request rq;
	struct hdd_cmd cmd;
	struct process *process;
	enum slot_state state;
	u32 member;
	u64 ready_ns; /* FREE: when it is sent */
	u64 slow_ns; /* its member had been slow when it arrived */
};

static const uint8_t *bytes;
static size_t nr_bytes;
static u64 verbose;
static u64 now_ns, end_ns, wait_target_ns;
static u32 nr_members, chunk_sectors, nr_processes, nr_slots, nr_sent;
static u64 worst[FIGURES]; /* in thousandths of the bound */
static u64 switch_ns, largest_sectors, flush_ns;
static u64 last_done_ns[MEMBERS];
static u64 slow_ns[MEMBERS]; /* what services took beyond two usual ones */
static struct process processes[PROCESSES];
static struct slot slots[SLOTS];
static struct hdd disk[MEMBERS];
static struct ss_sched sched[MEMBERS];
static struct ss_array array;
static struct ss_array_geometry geometry;

/* One for each figure, number of processes by size, and ratio. */
#define SIZES 4
#define RATIOS 160
#define RATIO_STEP 50 /* thousandths */
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t
	reached[FIGURES][SIZES][RATIOS];

/* A desktop disk of 7200 rpm: disks/st2000dm006.toml with fewer zones. */
static const struct hdd_params params = {
	.capacity_sectors = 3907029168,
	.queue_depth = 32,
	.interface_bytes_per_s = 600000000,
	.flush_ns = 28000000,
	.interface_unit_sectors = 8,
	.overhead_ns = { 60000, 60000, 60000, 60000, 60000, 60000, 60000,
			 60000 },
	.queue_order = HDD_ORDER_SPTF,
	.queue_age_permille = 100,
	.queue_age_limit_ns = 2000000000,
	.actuators = 1,
	.rotation_ns = 8333333,
	.surfaces = 4,
	.nr_zones = 4,
	.zone_cylinders = { 92496, 92496, 92496, 92496 },
	.zone_sectors_per_track = { 3330, 2870, 2410, 1960 },
	.track_skew_ns = 1200000,
	.cylinder_skew_ns = 1600000,
	.head_switch_ns = 1200000,
	.write_settle_ns = 1000000,
	.physical_sectors = 1,
	.nr_seek_points = 10,
	.seek_cylinders = { 1, 500, 4000, 16000, 37000, 74000, 123300, 185000,
			    277500, 370000 },
	.seek_ns = { 1600000, 2400000, 3600000, 5400000, 7600000, 10600000,
		     13900000, 17800000, 22600000, 27000000 },
	.segments = 16,
	.segment_sectors = 4096,
	.readahead_sectors = 4096,
	.segment_keeps_read = 1,
	.write_cache_extents = 16,
	.write_idle_ns = 20000000,
};

static u32 next_byte(void)
{
	if (!nr_bytes)
		return 0;
	nr_bytes--;
	return *bytes++;
}

/* xorshift64 (Marsaglia 2003). */
static u64 draw(struct process *p, u64 below)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return p->random % below;
}

static u64 number_in(const char *name, u64 otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- the bound ---- */

/* Are its runs too short for a stream, or a new one each time? */
static bool is_random(const struct process *p)
{
	return p->run && p->run < SHORT_RUN;
}

/* So many count as parties for one that waits, of those that have begun. */
static u32 nr_parties(enum figure figure, const struct process *waiting)
{
	u32 weight = waiting->weight, i;
	u64 sum = 0;

	for (i = 0; i < nr_processes; i++) {
		const struct process *p = &processes[i];

		if (p->join_ns > now_ns)
			continue;
		if (figure == BY_ANY)
			sum += p->outstanding * max_t(u32, p->weight, weight);
		else
			sum += (is_random(p) ? p->outstanding : 1) * weight;
	}
	return (u32)(sum / weight);
}

/* The longest slice where @nr share the disk, by the heaviest of them. */
static u64 slice_ns(u32 nr)
{
	u64 most = 0, least = SS_MAX_WEIGHT, sum = 0, work_ns = 0;
	u32 others = nr, i;

	for (i = 0; i < nr_processes; i++) {
		u32 weight = processes[i].weight;

		if (processes[i].join_ns > now_ns)
			continue;
		sum += weight;
		others--;
		most = max_t(u64, most, weight);
		least = min_t(u64, least, weight);
	}
	sum += others * USUAL;
	if (wait_target_ns > nr * switch_ns)
		work_ns = wait_target_ns - nr * switch_ns;
	if (sum > least)
		work_ns = min_t(u64, work_ns, work_ns * most / (sum - least));
	return switch_ns + max_t(u64, switch_ns, work_ns);
}

static u64 bound_ns(enum figure figure, const struct process *waiting)
{
	const struct ss_curve *curve = &sched[0].curve;
	u32 nr = nr_parties(figure, waiting);
	u64 service_ns = curve->mean_random_ns + flush_ns +
			 largest_sectors * 8 * SS_USEC;

	return max_t(u64, wait_target_ns, nr * (2 * switch_ns + service_ns)) +
	       slice_ns(nr);
}

static void tell_wait(const struct process *p, enum figure figure, u64 waited)
{
	if (!verbose)
		return;
	fprintf(stderr,
		"%12.6f s  process %u waited %8.3f ms, %s: %.3f of %.3f ms\n",
		(double)now_ns / 1e9, (u32)(p - processes),
		(double)waited / 1e6, figure_name[figure],
		(double)worst[figure] / 1e3, (double)bound_ns(figure, p) / 1e6);
}

/* @slot has waited so long; what its disk was slow is not the scheduler's. */
static void note_wait(const struct slot *slot, enum figure figure, u64 since_ns)
{
	u64 waited_ns = now_ns - since_ns;
	u64 slow = slow_ns[slot->member] - slot->slow_ns;
	u64 bound = bound_ns(figure, slot->process), ratio;

	waited_ns -= min_t(u64, waited_ns, slow);
	ratio = waited_ns * 1000 / bound;
	if (ratio <= worst[figure])
		return;
	worst[figure] = ratio;
	tell_wait(slot->process, figure, waited_ns);
	CHECK(figure == BY_PARTY || ratio <= MOST_PERMILLE);
}

/* @slot goes to the disk, or the run ends. */
static void note_waits(const struct slot *slot)
{
	const struct process *p = slot->process;
	u64 since_ns = max_t(u64, slot->rq.arrival_ns, p->served_ns);

	if (!p->sync)
		return;
	note_wait(slot, BY_PARTY,
		  is_random(p) ? slot->rq.arrival_ns : since_ns);
	note_wait(slot, BY_ANY, slot->rq.arrival_ns);
}

/* What the scheduler takes a switch to cost, the most so far. */
static void note_switch(void)
{
	const struct ss_parties *all;
	u32 i;

	for (i = 0; i < nr_members; i++) {
		all = sched[i].policy[0].state;
		switch_ns = max_t(u64, switch_ns, all->switch_ns);
	}
	if (nr_members > 1) {
		all = array.sched.policy[0].state;
		switch_ns = max_t(u64, switch_ns, all->switch_ns);
	}
}

/* ---- processes ---- */

static u64 next_sector(struct process *p)
{
	u64 room = p->region - p->nr_sectors, sector;

	if (p->run && !p->left) {
		p->at = draw(p, room);
		p->left = p->run;
	}
	p->left -= p->run > 0;
	sector = p->first + p->at % room;
	p->at += (u64)(p->nr_sectors + p->skip + (s64)p->region);
	p->at %= p->region;
	if (nr_members > 1)
		return sector / p->nr_sectors * p->nr_sectors;
	return sector / 8 * 8;
}

static void send(struct slot *slot)
{
	struct process *p = slot->process;
	struct ss_array_place place = { .sector = next_sector(p) };
	struct ss_request *rq = &slot->rq;

	if (nr_members > 1)
		ss_array_map(&geometry, place.sector, 0, &place);
	slot->member = place.member;
	slot->state = PENDING;
	slot->slow_ns = slow_ns[place.member];
	memset(rq, 0, sizeof(*rq));
	rq->sector = place.sector;
	rq->nr_sectors = p->nr_sectors;
	rq->direction = p->writes ? SS_WRITE : SS_READ;
	rq->flags = p->sync ? SS_SYNC : 0;
	rq->weight = p->weight == USUAL ? 0 : p->weight;
	nr_sent++;
	ss_sched_arrived(&sched[slot->member], rq, now_ns);
}

/* @slot is over: when does its process send the next? */
static void goes_on(struct slot *slot)
{
	struct process *p = slot->process;
	u32 i;

	slot->state = FREE;
	slot->ready_ns = now_ns + LEAST_THINK_NS;
	if (p->done % p->think_every == 0)
		slot->ready_ns += p->think_ns;
	if (p->reacts)
		slot->ready_ns = SS_FOREVER;
	for (i = 0; i < nr_slots; i++) {
		struct slot *other = &slots[i];

		if (other->process != p && other->state == FREE &&
		    other->process->reacts && other->ready_ns == SS_FOREVER)
			other->ready_ns = now_ns + LEAST_THINK_NS +
					  other->process->think_ns;
	}
}

/* ---- the host ---- */

static void tell_dispatch(const struct slot *slot, enum ss_why why)
{
	const struct ss_parties *all = sched[slot->member].policy[0].state;
	const struct ss_party *party = slot->rq.party;

	if (verbose < 2)
		return;
	fprintf(stderr,
		"%12.6f s  disk %u: %-6s process %2u, party %4d, sector %10llu, waited %8.3f ms\n",
		(double)now_ns / 1e9, slot->member, ss_why_name[why],
		(u32)(slot->process - processes),
		party ? (int)ss_party_index(all, party) : -1,
		(unsigned long long)slot->rq.sector,
		(double)(now_ns - slot->rq.arrival_ns) / 1e6);
}

static void dispatch(struct slot *slot, enum ss_why why)
{
	struct ss_request *rq = &slot->rq;

	tell_dispatch(slot, why);
	CHECK(slot >= slots && slot < slots + SLOTS && slot->state == PENDING);
	note_waits(slot);
	slot->process->served_ns = now_ns;
	ss_sched_dispatched(&sched[slot->member], rq, why, now_ns);
	note_switch();
	slot->state = IN_FLIGHT;
	slot->cmd = (struct hdd_cmd){
		.sector = rq->sector,
		.nr_sectors = rq->nr_sectors,
		.op = rq->direction == SS_READ ? HDD_READ : HDD_WRITE,
	};
	hdd_submit(&disk[slot->member], &slot->cmd, now_ns);
}

/* Flushes do not stand in the scheduler's queue. */
static void start_flushes(u32 member)
{
	u32 i;

	for (i = 0; i < nr_slots && !hdd_full(&disk[member]); i++) {
		struct slot *slot = &slots[i];

		if (slot->state != WANTS_FLUSH || slot->member != member)
			continue;
		slot->state = FLUSHING;
		slot->cmd = (struct hdd_cmd){ .op = HDD_FLUSH };
		ss_sched_flushes(&sched[member], true, now_ns);
		hdd_submit(&disk[member], &slot->cmd, now_ns);
	}
}

/* Sends all that @member may have; until when it waits then. */
static u64 ask(u32 member)
{
	start_flushes(member);
	while (!hdd_full(&disk[member])) {
		struct ss_decision decision;

		decision = ss_sched_choose(&sched[member], now_ns);
		if (decision.verdict == SS_NOTHING)
			return SS_FOREVER;
		if (decision.verdict == SS_WAIT) {
			CHECK(decision.until_ns > now_ns);
			return decision.until_ns;
		}
		dispatch(container_of(decision.rq, struct slot, rq),
			 decision.why);
	}
	return SS_FOREVER;
}

static void served(struct slot *slot)
{
	struct process *p = slot->process;
	u32 member = slot->member;
	u64 since_ns = max_t(u64, slot->rq.dispatch_ns, last_done_ns[member]);
	u64 usual_ns = 2 * sched[member].curve.mean_random_ns +
		       slot->rq.nr_sectors * 8 * SS_USEC;

	slow_ns[member] += now_ns - min_t(u64, now_ns, since_ns + usual_ns);
	ss_sched_completed(&sched[member], &slot->rq, now_ns);
	p->done++;
	if (p->fsync_every && p->done % p->fsync_every == 0)
		slot->state = WANTS_FLUSH;
	else
		goes_on(slot);
}

static void complete(u32 member)
{
	struct hdd_cmd *cmd;
	struct slot *slot;

	while ((cmd = hdd_pop(&disk[member], now_ns))) {
		slot = container_of(cmd, struct slot, cmd);
		if (slot->state == FLUSHING) {
			flush_ns = max_t(u64, flush_ns,
					 now_ns - max_t(u64, cmd->submit_ns,
							last_done_ns[member]));
			ss_sched_flushes(&sched[member], false, now_ns);
			goes_on(slot);
		} else {
			served(slot);
		}
		last_done_ns[member] = now_ns;
	}
}

/* All that happens now; when something happens next. */
static u64 step(void)
{
	u64 next_ns = end_ns, until_ns[MEMBERS];
	u32 i, before;

	for (i = 0; i < nr_members; i++)
		complete(i);
	for (i = 0; i < nr_slots; i++)
		if (slots[i].state == FREE && slots[i].ready_ns <= now_ns)
			send(&slots[i]);
	/* What one member sends may allow another one to. */
	do {
		before = sched[0].nr_in_flight;
		for (i = 0; i < nr_members; i++) {
			before += i ? sched[i].nr_in_flight : 0;
			until_ns[i] = ask(i);
		}
		for (i = 0; i < nr_members; i++)
			before -= sched[i].nr_in_flight;
	} while (before && nr_members > 1);
	for (i = 0; i < nr_members; i++) {
		next_ns = min_t(u64, next_ns, until_ns[i]);
		next_ns = min_t(u64, next_ns, hdd_next_ns(&disk[i]));
	}
	for (i = 0; i < nr_slots; i++)
		if (slots[i].state == FREE)
			next_ns = min_t(u64, next_ns, slots[i].ready_ns);
	return next_ns;
}

/* ---- what the input says ---- */

static void read_process(struct process *p)
{
	static const u32 weights[] = { 100, 100, 100, 100, 10, 50, 200, 1000 };
	static const u32 thinks_us[] = { 0,	 100,	 500,	1000,  3000,
					 8000,	 15000,	 25000, 50000, 100000,
					 200000, 400000, 600000 };
	static const u32 runs[] = { 1, 1, 0, 0, 2, 3, 4, 6, 10, 20, 50, 200 };
	u64 capacity = geometry.capacity_sectors, place;
	u32 what = next_byte(), skip;

	p->writes = what & 1;
	p->sync = !p->writes || (what & 6);
	p->reacts = (what & 24) == 24;
	p->fsync_every = p->writes && p->sync && (what & 32) ?
				 1 + (what >> 6) * 3 :
				 0;
	place = next_byte() << 8;
	place |= next_byte();
	p->region = 1ULL << (13 + next_byte() % 20);
	p->nr_sectors = 8U << next_byte() % 9;
	if (nr_members > 1)
		p->nr_sectors = min_t(u32, p->nr_sectors, chunk_sectors);
	skip = next_byte();
	if (skip & 1)
		p->skip = (s64)(8U << (skip >> 1) % 16);
	if ((skip & 192) == 192)
		p->skip = -p->skip - 2 * (s64)p->nr_sectors;
	p->region = min_t(u64, p->region, capacity / 2);
	p->skip %= (s64)p->region / 2;
	p->first = capacity / 65536 * place;
	p->first = min_t(u64, p->first, capacity - p->region);
	p->run = runs[next_byte() % ARRAY_SIZE(runs)];
	p->outstanding = 1 + next_byte() % 32;
	if (p->outstanding > DEEPEST)
		p->outstanding = 1;
	p->think_ns = SS_USEC * thinks_us[next_byte() % ARRAY_SIZE(thinks_us)];
	p->think_every = 1U << next_byte() % 8;
	p->weight = weights[next_byte() % ARRAY_SIZE(weights)];
	p->join_ns = SS_SEC + next_byte() % 128 * 20 * SS_MSEC;
	p->random = 0x9e3779b97f4a7c15ULL + (u64)(p - processes);
	largest_sectors = max_t(u64, largest_sectors, p->nr_sectors);
}

static void tell_process(const struct process *p)
{
	fprintf(stderr,
		"process %2u: %s, %u at once of %u sectors, in %llu from %llu, runs of %u, %+lld, thinks %.1f ms every %u%s, fsync %u, weight %u, from %.2f s\n",
		(u32)(p - processes),
		!p->writes ? "reads" :
		p->sync	   ? "writes" :
			     "writes back",
		p->outstanding, p->nr_sectors, (unsigned long long)p->region,
		(unsigned long long)p->first, p->run, (long long)p->skip,
		(double)p->think_ns / 1e6, p->think_every,
		p->reacts ? " after others" : "", p->fsync_every, p->weight,
		(double)p->join_ns / 1e9);
}

static void make_processes(void)
{
	u32 i, k;

	memset(processes, 0, sizeof(processes));
	memset(slots, 0, sizeof(slots));
	nr_slots = 0;
	nr_processes = 0;
	while (nr_bytes >= PROCESS_BYTES && nr_processes < PROCESSES) {
		struct process *p = &processes[nr_processes++];

		read_process(p);
		if (verbose)
			tell_process(p);
	}
	for (i = 0; i < nr_processes; i++)
		for (k = 0; k < processes[i].outstanding; k++) {
			slots[nr_slots].process = &processes[i];
			slots[nr_slots++].ready_ns = processes[i].join_ns;
		}
}

static void nothing(struct ss_array *one)
{
	(void)one;
}

static void kick(struct ss_array *one, u32 member)
{
	(void)one;
	(void)member;
}

/* As calibration finds it: seek, and half a turn of the platters. */
static void set_curve(struct ss_curve *curve)
{
	struct ss_curve_point point[12] = { { 0, 0 } };
	u64 sectors_per_cylinder = params.capacity_sectors / 369984;
	u32 i;

	for (i = 0; i < params.nr_seek_points; i++) {
		point[i + 1].distance_sectors = params.seek_cylinders[i] *
						sectors_per_cylinder;
		point[i + 1].time_ns = params.seek_ns[i] +
				       params.rotation_ns / 2;
	}
	CHECK(!ss_curve_set(curve, point, params.nr_seek_points + 1,
			    params.capacity_sectors));
}

static void make_array(void)
{
	char why[160];
	u32 i;

	memset(&geometry, 0, sizeof(geometry));
	memset(&array, 0, sizeof(array));
	geometry.level = SS_ARRAY_RAID0;
	geometry.nr_members = nr_members;
	geometry.chunk_sectors = chunk_sectors;
	for (i = 0; i < nr_members; i++)
		geometry.member_sectors[i] = params.capacity_sectors;
	CHECK(!ss_array_geometry_init(&geometry, why, sizeof(why)));
	array.lock = nothing;
	array.unlock = nothing;
	array.kick = kick;
	ss_array_init(&array, &geometry);
	for (i = 0; i < nr_members; i++)
		CHECK(!ss_array_attach(&array, i, &sched[i], why, sizeof(why)));
}

static void make_disks(void)
{
	static const char *const specs[] = { "stream:deadline", "stream:noop",
					     "stream:sptf", "stream:cscan" };
	static const u32 targets_ms[] = {
		500, 500, 500, 500, 500, 100, 50, 1500
	};
	static const u32 depths[] = { 1, 1, 2, 4, 8, 32 };
	static const u8 members[] = { 1, 1, 1, 1, 1, 2, 3, 4 };
	struct hdd_params made = params;
	const char *text;
	char why[160];
	u32 depth = depths[next_byte() % ARRAY_SIZE(depths)];
	u32 what = next_byte(), how = next_byte(), i;

	nr_members = members[what % 8];
	nr_members = (u32)number_in("WAIT_MEMBERS", nr_members);
	CHECK(nr_members && nr_members <= MEMBERS);
	chunk_sectors = 128U << (what >> 3) % 4;
	wait_target_ns = targets_ms[how % 8] * SS_MSEC;
	made.write_cache_sectors = how & 32 ? 65536 : 0;
	for (i = 0; i < nr_members; i++) {
		CHECK(!hdd_init(&disk[i], &made, &text));
		CHECK(!hdd_set_queue_depth(&disk[i], depth));
		CHECK(!ss_sched_init(&sched[i], specs[how >> 6],
				     made.capacity_sectors, why, sizeof(why)));
		CHECK(!ss_sched_tune(&sched[i], "wait_target", wait_target_ns,
				     0, why, sizeof(why)));
		if (how & 16)
			set_curve(&sched[i].curve);
	}
	geometry.capacity_sectors = params.capacity_sectors;
	if (nr_members > 1)
		make_array();
	if (verbose)
		fprintf(stderr,
			"%u disks, depth %u, chunk %u, %s, target %llu ms%s%s\n",
			nr_members, depth, chunk_sectors, specs[how >> 6],
			(unsigned long long)(wait_target_ns / SS_MSEC),
			how & 16 ? ", a known curve" : "",
			how & 32 ? ", a write cache" : "");
}

static void begin(void)
{
	verbose = number_in("FUZZ_VERBOSE", 0);
	memset(worst, 0, sizeof(worst));
	memset(last_done_ns, 0, sizeof(last_done_ns));
	memset(slow_ns, 0, sizeof(slow_ns));
	switch_ns = 0;
	largest_sectors = 0;
	flush_ns = 0;
	nr_sent = 0;
	now_ns = SS_SEC;
	make_disks();
	end_ns = now_ns +
		 number_in("WAIT_SECONDS", 2 + next_byte() % 8) * SS_SEC;
	make_processes();
	note_switch();
}

/* Tells libFuzzer how long the longest wait was. */
static void tell_reached(void)
{
	u32 figure, size = 0;

	while (size < SIZES - 1 && nr_processes > 2U << size)
		size++;
	for (figure = 0; figure < FIGURES; figure++)
		reached[figure][size]
		       [min_t(u64, worst[figure] / RATIO_STEP, RATIOS - 1)] = 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool bounded = !getenv("WAIT_SECONDS");
	u64 next_ns;
	u32 i;

	bytes = data;
	nr_bytes = size;
	begin();
	while (now_ns < end_ns && (!bounded || nr_sent < REQUESTS)) {
		next_ns = step();
		CHECK(next_ns > now_ns);
		now_ns = next_ns;
	}
	for (i = 0; i < nr_slots; i++)
		if (slots[i].state == PENDING)
			note_waits(&slots[i]);
	if (verbose)
		fprintf(stderr,
			"%u requests in %.3f s; thousandths of the bound: party %llu, any %llu\n",
			nr_sent, (double)(now_ns - SS_SEC) / 1e9,
			(unsigned long long)worst[BY_PARTY],
			(unsigned long long)worst[BY_ANY]);
	tell_reached();
	return 0;
}
