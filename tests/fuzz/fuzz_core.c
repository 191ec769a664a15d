// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: the core behind its event interface, driven as a host drives
 * it, with every invariant of the design checked after each step.
 *
 * The first bytes choose the policy, the disk's size and its queue depth; then
 * each byte begins one event: a request arrives (and may merge), the host asks
 * and obeys, the disk completes one, the host takes one back, an owner goes, a
 * tunable or the curve changes, time passes. In the end everything pending is
 * served.
 */
#include "../../core/sched.h"
#include "../../core/stream/check.h"
#include "check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 48
#define OWNERS 6
#define MERGE_SECTORS 256
/* What is handed on is so long that few of it are a flood. */
#define HANDED_ON_SECTORS 2048
#define TAILS 64
/* Answers of SS_WAIT in a row, each waited out, without another event. */
#define MAX_WAITS_IN_A_ROW 4

enum slot_state { FREE, PENDING, IN_FLIGHT };

struct slot {
	struct ss_request rq;
	enum slot_state state;
	u64 oldest_ns; /* when the first part of it came */
	u64 expires_ns; /* the earliest that any of them would have expired */
};

/* The host: what it knows by itself, to hold the core's word against. */
struct host {
	const uint8_t *bytes;
	size_t nr_bytes;
	u64 now_ns;
	u64 span_sectors;
	u32 queue_depth;
	u32 nr_pending;
	u32 nr_in_flight;
	u64 arrived;
	u64 absorbed; /* merged into a pending one after they had arrived */
	u64 dispatched;
	u64 removed;
	u64 owed_sectors; /* arrived, neither dispatched nor removed */
	u64 charged_ns; /* up to when head time is to be charged */
	u32 nr_flushes; /* under way */
	u64 flush_ns; /* one of them began or ended last */
	u64 tail_sector[TAILS]; /* ends of the last dispatched, a ring */
	u32 nr_tails;
	u64 dearest_ns; /* see raise_idle_bound() */
	u64 most_pct; /* tolerance of a wait that has begun before it fell */
	u64 random_ns; /* the curve's mean, the most so far */
	struct ss_request
		*late; /* the one that must go next, by the last ask */
	struct slot slot[SLOTS];
	struct ss_sched sched; /* last: see live_bytes() */
};

static struct host host;
static struct host before; /* a copy, to see that nothing changed */
static bool verbose;

static u32 next_byte(void)
{
	if (!host.nr_bytes)
		return 0;
	host.nr_bytes--;
	return *host.bytes++;
}

static u32 next_u16(void)
{
	u32 high = next_byte();

	return high << 8 | next_byte();
}

/* With FUZZ_VERBOSE set, tell the story; for looking at a reproducer. */
static void tell_number(const char *event, u64 number)
{
	if (verbose)
		fprintf(stderr, "%14llu ns  %-10s %llu\n",
			(unsigned long long)host.now_ns, event,
			(unsigned long long)number);
}

static void tell(const char *event, const struct ss_request *rq)
{
	if (verbose)
		fprintf(stderr,
			"%14llu ns  %-10s #%-2d %s sector %llu +%u owner %llu\n",
			(unsigned long long)host.now_ns, event,
			(int)((const struct slot *)rq - host.slot),
			rq->direction == SS_READ ? "read" : "write",
			(unsigned long long)rq->sector, rq->nr_sectors,
			(unsigned long long)rq->owner);
}

/* The slot of a request the core names; it must be one of ours. */
static struct slot *slot_of(struct ss_request *rq)
{
	u32 i;

	for (i = 0; i < SLOTS; i++)
		if (&host.slot[i].rq == rq)
			return &host.slot[i];
	CHECK(!"a request that the host never sent");
	return NULL;
}

/* The @nth request in @state, counted around; NULL if there is none. */
static struct slot *slot_in(enum slot_state state, u32 nth)
{
	u32 i;

	for (i = 0; i < SLOTS; i++)
		if (host.slot[(nth + i) % SLOTS].state == state)
			return &host.slot[(nth + i) % SLOTS];
	return NULL;
}

/* On a list in order of age: is the next one, if it is a request, older? */
static void check_order(const struct list_head *node, size_t node_at)
{
	const struct ss_request *rq = (const void *)((const char *)node -
						     node_at);
	u32 i;

	for (i = 0; i < SLOTS; i++)
		if ((const char *)node->next ==
		    (const char *)&host.slot[i].rq + node_at)
			CHECK(rq->arrival_ns <= host.slot[i].rq.arrival_ns);
}

/* A request is as old as its oldest part, and stands where that would. */
static void check_ages(void)
{
	const struct ss_policy *policy = &host.sched.policy[0];
	const struct ss_policy *inner = policy->inner ? policy->inner : policy;
	u32 i;

	for (i = 0; i < SLOTS; i++) {
		const struct slot *slot = &host.slot[i];

		if (slot->state != PENDING)
			continue;
		CHECK(slot->rq.arrival_ns == slot->oldest_ns);
		/* In a party's queue nothing expires. */
		if (strcmp(policy->ops->name, "stream"))
			CHECK(slot->rq.expires_ns == slot->expires_ns);
		/* linus has its requests in order of position. */
		if (strcmp(inner->ops->name, "linus"))
			check_order(&slot->rq.fifo_node,
				    offsetof(struct ss_request, fifo_node));
		if (policy->ops->awaited)
			check_order(&slot->rq.age_node,
				    offsetof(struct ss_request, age_node));
	}
}

static void check_counts(void)
{
	const struct ss_counters *counters = &host.sched.counters;

	CHECK(host.sched.nr_pending == host.nr_pending);
	CHECK(host.sched.nr_in_flight == host.nr_in_flight);
	CHECK(host.sched.nr_pending_dir[SS_READ] +
		      host.sched.nr_pending_dir[SS_WRITE] ==
	      host.nr_pending);
	CHECK(counters->arrivals == host.arrived);
	CHECK(counters->dispatches == host.dispatched);
	CHECK(counters->removals == host.removed);
	CHECK(counters->completions == host.dispatched - host.nr_in_flight);
	CHECK(host.arrived ==
	      host.dispatched + host.removed + host.absorbed + host.nr_pending);
}

/* How much of struct host is in use: it ends with the policies' state. */
static size_t live_bytes(void)
{
	size_t bytes = offsetof(struct host, sched.state);
	u32 i;

	for (i = 0; i < host.sched.nr_policies; i++)
		bytes += (host.sched.policy[i].ops->state_bytes + 7) & ~7U;
	return bytes;
}

static void remember(void)
{
	memcpy(&before, &host, live_bytes());
}

static void check_unchanged(void)
{
	CHECK(!memcmp(&before, &host, live_bytes()));
}

/*
 * The longest that the disk may stay idle is what positioning to the inner
 * policy's choice costs, and the tolerance on top. Any pending request may be
 * that choice; the parent-to-be is one of those sent since the disk was last
 * idle; and the choice is made when it goes out, when it is done or later, by
 * what the curve says at that time: so the dearest since then is remembered.
 */
static void raise_idle_bound(void)
{
	const struct ss_curve *curve = &host.sched.curve;
	u32 i, tail, nr_tails = host.nr_tails < TAILS ? host.nr_tails : TAILS;

	if (!host.sched.policy[0].inner)
		return;
	if (curve->mean_random_ns > host.random_ns)
		host.random_ns = curve->mean_random_ns;
	if (!host.nr_pending && curve->mean_random_ns > host.dearest_ns)
		host.dearest_ns = curve->mean_random_ns;
	for (i = 0; i < SLOTS; i++) {
		if (host.slot[i].state != PENDING)
			continue;
		for (tail = 0; tail < nr_tails; tail++) {
			u64 cost_ns;

			cost_ns = ss_curve_service_ns(curve,
						      host.tail_sector[tail],
						      host.slot[i].rq.sector);
			if (cost_ns > host.dearest_ns)
				host.dearest_ns = cost_ns;
		}
	}
}

static u64 idle_bound_ns(const struct ss_policy *policy)
{
	u64 tolerance_pct = 0;
	u32 i;

	/* Half as much again as a switch, which is two random ones at most. */
	if (!strcmp(policy->ops->name, "stream"))
		return 3 * host.random_ns;

	for (i = 0; i < policy->ops->nr_tunables; i++) {
		/* nwcs has a bound of its own. */
		if (!strcmp(policy->ops->tunables[i].name, "wait_limit"))
			return policy->value[i];
		if (!strcmp(policy->ops->tunables[i].name, "tolerance_factor"))
			tolerance_pct = max_t(u64, policy->value[i],
					      host.most_pct);
	}
	return host.dearest_ns + host.dearest_ns * tolerance_pct / 100;
}

static void check_wait(const struct ss_policy *policy, u64 until_ns)
{
	u64 since_ns = host.sched.idle_since_ns > host.flush_ns ?
			       host.sched.idle_since_ns :
			       host.flush_ns;

	CHECK(!(policy->ops->flags & SS_WORK_CONSERVING));
	CHECK(host.nr_pending);
	CHECK(until_ns > host.now_ns);
	if (host.nr_in_flight)
		return;
	CHECK(until_ns != SS_FOREVER);
	/* It is busy with a flush, or may wait from the end of one on. */
	if (host.nr_flushes)
		return;
	if (policy->ops->flags & SS_WRAPPER)
		CHECK(until_ns <= since_ns + idle_bound_ns(policy));
}

/*
 * A request is expired: it goes next, or what the inner policy by itself would
 * send before it; where nobody waits for that, one of its direction may that
 * somebody waits for. No stream is held against it.
 */
static void check_late(const struct ss_policy *policy,
		       struct ss_decision answer)
{
	const struct ss_policy *inner = policy->inner;
	struct ss_decision own;

	CHECK(slot_of(host.late)->state == PENDING);
	CHECK(answer.verdict == SS_DISPATCH);
	own = inner->ops->choose(inner, host.now_ns, NULL);
	if (ss_request_is_awaited(own.rq) ||
	    !ss_request_is_awaited(answer.rq) ||
	    answer.rq->direction != own.rq->direction)
		CHECK(answer.rq == host.late || answer.rq == own.rq);
}

/* Ask, twice; check the answer. */
static struct ss_decision ask(void)
{
	const struct ss_policy *policy = &host.sched.policy[0];
	struct ss_decision first, second;

	remember();
	first = ss_sched_choose(&host.sched, host.now_ns);
	second = ss_sched_choose(&host.sched, host.now_ns);
	CHECK(first.verdict == second.verdict && first.why == second.why);
	CHECK(first.why < SS_WHYS);
	if (first.verdict == SS_DISPATCH)
		CHECK(first.rq == second.rq);
	if (first.verdict == SS_WAIT)
		CHECK(first.until_ns == second.until_ns);
	check_unchanged();
	CHECK((first.verdict == SS_NOTHING) == !host.nr_pending);
	if (first.verdict == SS_DISPATCH)
		CHECK(slot_of(first.rq)->state == PENDING);
	if (first.verdict == SS_WAIT) {
		tell_number("wait until", first.until_ns);
		check_wait(policy, first.until_ns);
	}
	host.late = NULL;
	/* For stream it is late in its party's turn only. */
	if (policy->inner && policy->ops->overdue &&
	    strcmp(policy->ops->name, "stream"))
		host.late = policy->ops->overdue(policy, host.now_ns);
	if (host.late)
		check_late(policy, first);
	return first;
}

static void obey(struct ss_decision decision)
{
	struct ss_request *rq = decision.rq;
	struct slot *slot = slot_of(rq);
	bool was_idle = !host.nr_in_flight;

	if (was_idle)
		host.charged_ns = host.now_ns;
	tell("dispatch", rq);
	ss_sched_dispatched(&host.sched, rq, decision.why, host.now_ns);
	slot->state = IN_FLIGHT;
	host.nr_pending--;
	host.nr_in_flight++;
	host.dispatched++;
	CHECK(host.owed_sectors >= rq->nr_sectors);
	host.owed_sectors -= rq->nr_sectors;
	CHECK(host.sched.head_sector == ss_request_end(rq));
	/* A late request only interrupts: the stream goes on after it. */
	if (was_idle && rq != host.late) {
		host.nr_tails = 0;
		host.dearest_ns = 0;
		host.most_pct = 0;
	}
	host.tail_sector[host.nr_tails++ % TAILS] = ss_request_end(rq);
	raise_idle_bound();
}

/*
 * From one completion to the next head time is charged, once and in full. A
 * write that the drive's cache took beside others leaves all of it to the next.
 */
static void check_charged(const struct ss_request *rq, u64 charged_ns)
{
	charged_ns = ss_check_charged_ns(&host.sched) - charged_ns;
	if (strcmp(host.sched.policy[0].ops->name, "stream")) {
		host.charged_ns = host.now_ns;
	} else if (rq->cached && host.nr_in_flight) {
		CHECK(!charged_ns);
	} else {
		CHECK(charged_ns == host.now_ns - host.charged_ns);
		host.charged_ns = host.now_ns;
	}
}

/* The time of a flush is charged once. */
static void flush(bool begins)
{
	u64 charged_ns = ss_check_charged_ns(&host.sched);
	u64 from_ns = host.flush_ns > host.charged_ns ? host.flush_ns :
							host.charged_ns;

	if (!begins && !host.nr_flushes)
		return;
	tell_number("flushes", host.nr_flushes);
	ss_sched_flushes(&host.sched, begins, host.now_ns);
	charged_ns = ss_check_charged_ns(&host.sched) - charged_ns;
	if (charged_ns) {
		CHECK(!begins);
		/* What the head was held for before is charged already. */
		CHECK(charged_ns <= host.now_ns - from_ns);
		host.charged_ns = host.now_ns;
	}
	if (!begins || !host.nr_flushes)
		host.flush_ns = host.now_ns;
	host.nr_flushes += begins ? 1 : -1;
}

static struct slot *complete(u32 nth)
{
	struct slot *slot = slot_in(IN_FLIGHT, nth);
	u64 charged_ns = ss_check_charged_ns(&host.sched);

	if (!slot)
		return NULL;
	tell("complete", &slot->rq);
	slot->state = FREE;
	host.nr_in_flight--;
	ss_sched_completed(&host.sched, &slot->rq, host.now_ns);
	check_charged(&slot->rq, charged_ns);
	/* A curve that is learned has just changed, and answers are by it. */
	raise_idle_bound();
	return slot;
}

/* @into has just grown: it may now touch a neighbour. */
static void try_join(struct ss_request *into)
{
	struct slot *slot = slot_of(into), *gone;
	struct ss_request *next;

	next = ss_sched_find_join(&host.sched, into, MERGE_SECTORS);
	if (!next)
		return;
	tell("join", next);
	CHECK(next != into && slot_of(next)->state == PENDING);
	CHECK(ss_request_end(into) == next->sector);
	CHECK(next->direction == into->direction);
	CHECK(into->nr_sectors + next->nr_sectors <= MERGE_SECTORS);
	gone = slot_of(next);
	if (gone->oldest_ns < slot->oldest_ns)
		slot->oldest_ns = gone->oldest_ns;
	if (gone->expires_ns < slot->expires_ns)
		slot->expires_ns = gone->expires_ns;
	ss_sched_joined(&host.sched, into, next, host.now_ns);
	gone->state = FREE;
	host.nr_pending--;
	host.absorbed++;
}

/* True if @rq became part of a pending request. */
static bool try_merge(struct ss_request *rq)
{
	struct ss_request *into = NULL;
	enum ss_merge merge;
	u32 length;
	u8 flags;

	merge = ss_sched_find_merge(&host.sched, rq, MERGE_SECTORS, &into);
	if (merge == SS_MERGE_NONE) {
		/* As the kernel merges these with what nobody waits for. */
		flags = rq->flags;
		rq->flags ^= rq->direction == SS_READ ? SS_AHEAD : SS_SYNC;
		merge = ss_sched_find_merge(&host.sched, rq, MERGE_SECTORS,
					    &into);
		rq->flags = flags;
	}
	if (merge == SS_MERGE_NONE)
		return false;
	tell("merge", rq);
	CHECK(slot_of(into)->state == PENDING);
	CHECK(into->direction == rq->direction);
	CHECK(merge == SS_MERGE_BACK ? ss_request_end(into) == rq->sector :
				       ss_request_end(rq) == into->sector);
	length = into->nr_sectors + rq->nr_sectors;
	CHECK(length <= MERGE_SECTORS);
	ss_sched_merged(&host.sched, into, rq, host.now_ns);
	CHECK(into->nr_sectors == length);
	/* Somebody waits for the whole when he does for a part. */
	if (host.sched.policy[0].ops->awaited && ss_request_is_awaited(rq) &&
	    !(rq->flags & SS_HANDED_ON))
		CHECK(ss_request_is_awaited(into));
	host.owed_sectors += rq->nr_sectors;
	try_join(into);
	return true;
}

/* Where a request begins; most often near the head or near another one. */
static u64 some_sector(u32 how)
{
	const struct slot *other = &host.slot[next_byte() % SLOTS];
	u64 sector;

	switch (how % 4) {
	case 0:
		sector = ss_request_end(&other->rq);
		break;
	case 1:
		sector = other->rq.sector - next_byte() % 16;
		break;
	case 2:
		sector = host.sched.head_sector + next_byte();
		break;
	default:
		sector = host.span_sectors / 65536 * next_u16() + next_byte();
	}
	return sector % (host.span_sectors - HANDED_ON_SECTORS);
}

/* The request in a free slot, filled in by the host, enters. */
static void send(struct slot *slot, bool may_merge)
{
	struct ss_request *rq = &slot->rq;

	if (may_merge && try_merge(rq))
		return;
	tell("arrive", rq);
	slot->state = PENDING;
	host.nr_pending++;
	host.arrived++;
	host.owed_sectors += rq->nr_sectors;
	ss_sched_arrived(&host.sched, rq, host.now_ns);
	slot->oldest_ns = host.now_ns;
	slot->expires_ns = rq->expires_ns;
}

/* In percent; that of most is the usual one, said in either way. */
static const u32 weights[8] = { 0, 0, 100, 1, 50, 200, 400, 100000 };

static void arrive(u32 how)
{
	struct slot *slot = slot_in(FREE, 0);
	u32 bits = next_byte();
	u64 sector = some_sector(how);
	struct ss_request *rq;

	if (!slot)
		return;
	rq = &slot->rq;
	/* What the core left there must not matter. */
	memset(rq, bits & 0x80 ? 0xff : 0, sizeof(*rq));
	rq->sector = sector;
	rq->nr_sectors = bits & 0x40 ? 8 : next_byte() + 1;
	rq->direction = bits & 1 ? SS_WRITE : SS_READ;
	rq->flags = (bits & 2 ? SS_SYNC : 0) | (bits & 4 ? SS_META : 0);
	if ((bits & 7) == 7) {
		rq->flags |= SS_HANDED_ON;
		rq->nr_sectors = HANDED_ON_SECTORS;
	} else if ((bits & 7) == 6) {
		rq->flags |= SS_AHEAD;
	}
	rq->owner = (bits >> 3 & 7) % OWNERS;
	rq->weight = weights[bits >> 3 & 7];
	send(slot, next_byte() & 1);
}

/* A sequential reader: one request is done, after a thought comes the next. */
static void complete_and_continue(u32 nth)
{
	struct slot *slot = complete(nth);

	if (!slot)
		return;
	host.now_ns += 20000 * next_byte();
	slot->rq.sector = ss_request_end(&slot->rq);
	if (slot->rq.sector + slot->rq.nr_sectors > host.span_sectors)
		slot->rq.sector = 0;
	send(slot, true);
}

static void take_back(u32 nth)
{
	struct slot *slot = slot_in(PENDING, nth);

	if (!slot)
		return;
	tell("remove", &slot->rq);
	slot->state = FREE;
	host.nr_pending--;
	host.removed++;
	host.owed_sectors -= slot->rq.nr_sectors;
	ss_sched_removed(&host.sched, &slot->rq, host.now_ns);
}

static void tune(void)
{
	const struct ss_policy *policy;
	const struct ss_tunable *row;
	char why[160] = "";
	bool valid;
	u64 value;
	int error;

	policy = &host.sched.policy[next_byte() % host.sched.nr_policies];
	if (!policy->ops->nr_tunables)
		return;
	row = &policy->ops->tunables[next_byte() % policy->ops->nr_tunables];
	switch (next_byte() % 6) {
	case 0:
		value = row->min;
		break;
	case 1:
		value = row->max;
		break;
	case 2:
		value = row->min - 1;
		break;
	case 3:
		value = row->max + 1;
		break;
	case 4:
		value = row->initial;
		break;
	default:
		value = row->min + (row->max - row->min) / 65536 * next_u16();
	}
	valid = value >= row->min && value <= row->max;
	tell_number(row->name, value);
	if (valid && !strcmp(row->name, "tolerance_factor"))
		host.most_pct = max_t(
			u64, host.most_pct,
			policy->value[row - policy->ops->tunables]);
	remember();
	error = ss_sched_tune(&host.sched, row->name, value, host.now_ns, why,
			      sizeof(why));
	CHECK(!error == valid);
	if (error) {
		CHECK(why[0] && memchr(why, 0, sizeof(why)));
		check_unchanged();
	}
}

/* As sysfs and the plugin set it: a curve, or to learn anew. */
static void set_curve(void)
{
	struct ss_curve_point point[SS_CURVE_POINTS];
	u32 i, nr = next_byte() % 7;
	u64 sectors = 0, time_ns = 0;

	if (!nr) {
		tell_number("learn", 0);
		ss_curve_forget(&host.sched.curve);
		return;
	}
	for (i = 0; i < nr; i++) {
		sectors += i ? 1ULL << next_byte() % 62 : 0;
		time_ns += 20000ULL * next_u16();
		point[i] = (struct ss_curve_point){ sectors, time_ns };
		tell_number("curve", time_ns);
	}
	remember();
	if (ss_curve_set(&host.sched.curve, point, nr, host.span_sectors)) {
		CHECK(time_ns > SS_CURVE_MOST_NS);
		check_unchanged();
	} else {
		CHECK(time_ns <= SS_CURVE_MOST_NS);
	}
}

static void owner_gone(u64 owner)
{
	tell_number("owner gone", owner);
	ss_sched_owner_gone(&host.sched, owner, host.now_ns);
}

static void pass_time(u32 how)
{
	static const u64 unit_ns[] = { 1000, 100000, 1000000, 50000000 };

	host.now_ns += unit_ns[how % 4] * next_byte();
}

/* Ask, and do as told; with nothing else to happen, wait as told. */
static void step(bool patient)
{
	struct ss_decision decision;
	u32 waits = 0;

	for (;;) {
		decision = ask();
		if (decision.verdict == SS_DISPATCH)
			obey(decision);
		if (decision.verdict != SS_WAIT || !patient ||
		    host.nr_in_flight)
			return;
		CHECK(++waits <= MAX_WAITS_IN_A_ROW);
		host.now_ns = decision.until_ns;
	}
}

static void one_event(void)
{
	u32 byte = next_byte();
	u32 how = byte >> 3;

	switch (byte & 7) {
	case 0:
	case 1:
		arrive(how);
		break;
	case 2:
	case 3:
		if (host.nr_in_flight < host.queue_depth)
			step(how & 1);
		break;
	case 4:
		if (how & 1)
			complete_and_continue(how >> 1);
		else
			complete(how >> 1);
		break;
	case 5:
		pass_time(how);
		break;
	case 6:
		if (how & 1)
			take_back(how >> 1);
		else
			pass_time(how >> 1);
		break;
	case 7:
		if (how & 1)
			tune();
		else if (how == 30)
			set_curve();
		else if (how >= 24)
			flush(how & 2);
		else
			owner_gone(how % OWNERS);
		break;
	}
	raise_idle_bound();
	check_counts();
	check_ages();
}

/* Serve whatever is left: nothing may be lost or stuck. */
static void drain(void)
{
	while (host.nr_flushes)
		flush(false);
	while (host.nr_pending || host.nr_in_flight) {
		u32 left = host.nr_pending;

		if (host.nr_in_flight < host.queue_depth)
			step(true);
		if (host.nr_pending == left) {
			CHECK(host.nr_in_flight);
			host.now_ns += 3000000;
			complete(0);
		}
		check_counts();
	}
	CHECK(!host.owed_sectors);
	CHECK(ask().verdict == SS_NOTHING);
}

/* The @nth of all specs that there are: each policy, and what wraps which. */
static void make_spec(u32 nth, char *spec, size_t bytes)
{
	u32 outer, inner, count = 0;

	for (;;) {
		for (outer = 0; outer < ss_nr_policies; outer++) {
			const struct ss_policy_ops *ops = ss_policies[outer];

			snprintf(spec, bytes, "%s", ops->name);
			if (!(ops->flags & SS_WRAPPER)) {
				if (count++ == nth)
					return;
				continue;
			}
			for (inner = 0; inner < ss_nr_policies; inner++) {
				if (!(ss_policies[inner]->flags &
				      SS_WORK_CONSERVING))
					continue;
				snprintf(spec, bytes, "%s:%s", ops->name,
					 ss_policies[inner]->name);
				if (count++ == nth)
					return;
			}
		}
		nth %= count;
		count = 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	static const u64 spans[] = { 4096, 1 << 20, 976773168, 1ULL << 40 };
	char spec[64], why[160] = "";
	u32 byte;

	memset(&host, 0, sizeof(host));
	host.bytes = bytes;
	host.nr_bytes = nr_bytes;
	host.now_ns = 1000000000;
	make_spec(next_byte(), spec, sizeof(spec));
	byte = next_byte();
	host.span_sectors = spans[byte % 4];
	host.queue_depth = 1 + (byte >> 2) % 32;
	verbose = getenv("FUZZ_VERBOSE") != NULL;
	if (verbose)
		fprintf(stderr, "%s\n", spec);
	CHECK(!ss_sched_init(&host.sched, spec, host.span_sectors, why,
			     sizeof(why)));
	raise_idle_bound();
	while (host.nr_bytes)
		one_event();
	drain();
	return 0;
}
