// SPDX-License-Identifier: GPL-2.0-only
/*
 * A random workload on a simple disk, and every decision of a scheduler with
 * it, as one number: for comparing core/ with what the series for mainline
 * Linux makes of it (tests/kernel/test_upstream.py).
 *
 *	upstream_same SPEC SEED REQUESTS
 */
#include "sched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 48
#define DEPTH 4
#define READERS 6
#define SPAN (1ULL << 30)

struct slot {
	struct ss_request rq;
	u64 done_ns; /* 0: pending */
	bool used;
};

static struct ss_sched sched;
static struct slot slots[SLOTS];
static u64 reader_at[READERS], reader_next_ns[READERS];
static u64 random_state, hash = 14695981039346656037ULL, whys[SS_WHYS];

static u64 random_below(u64 most)
{
	random_state = random_state * 6364136223846793005ULL +
		       1442695040888963407ULL;
	return (random_state >> 33) % most;
}

static void note(u64 value)
{
	hash = (hash ^ value) * 1099511628211ULL;
}

static struct slot *free_slot(void)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		if (!slots[i].used)
			return &slots[i];
	return NULL;
}

/* A reader's next request, a random one, or write-back. */
static void arrive(u64 now_ns, int reader)
{
	struct slot *slot = free_slot();
	struct ss_request *before, *rq;

	if (!slot)
		return;
	rq = &slot->rq;
	memset(slot, 0, sizeof(*slot));
	rq->nr_sectors = 8U << random_below(5);
	rq->weight = random_below(50) ? 0 : 200;
	if (reader < READERS) {
		rq->direction = SS_READ;
		rq->flags = SS_SYNC;
		rq->sector = reader_at[reader];
		reader_at[reader] = ss_request_end(rq) + 8 * !random_below(9);
	} else {
		rq->direction = random_below(3) ? SS_WRITE : SS_READ;
		rq->flags = (u8)random_below(SS_AHEAD + 1) &
			    (SS_SYNC | SS_META | SS_AHEAD);
		rq->sector = random_below(SPAN);
	}
	before = ss_sched_pending_before(&sched, rq->sector);
	if (before && before->direction == rq->direction &&
	    before->flags == rq->flags && !random_below(2)) {
		ss_sched_merged(&sched, before, rq, now_ns);
		before = ss_sched_find_join(&sched, before, U32_MAX);
		note(before ? before->sector : 1);
		return;
	}
	slot->used = true;
	ss_sched_arrived(&sched, rq, now_ns);
}

static void dispatch(u64 now_ns, u64 *wake_ns)
{
	*wake_ns = SS_FOREVER;
	while (sched.nr_in_flight < DEPTH) {
		struct ss_decision decision = ss_sched_choose(&sched, now_ns);
		u64 far;

		note(decision.verdict);
		if (decision.verdict == SS_WAIT)
			*wake_ns = decision.until_ns;
		if (decision.verdict != SS_DISPATCH)
			return;
		far = ss_distance(sched.head_sector, decision.rq->sector);
		ss_sched_dispatched(&sched, decision.rq, decision.why, now_ns);
		((struct slot *)decision.rq)->done_ns =
			now_ns + 100000 + decision.rq->nr_sectors * 5000ULL +
			(far ? 4000000 + far / 128 : 0);
		note(decision.rq->sector);
		note(decision.why);
		whys[decision.why]++;
	}
}

int main(int argc, char **argv)
{
	u64 now_ns = 0, wake_ns = SS_FOREVER, requests;
	char why[160];
	int i;

	if (argc != 4 || ss_sched_init(&sched, argv[1], SPAN, why, 160))
		return 2;
	sched.curve.learning = true;
	random_state = strtoull(argv[2], NULL, 10);
	requests = strtoull(argv[3], NULL, 10);
	for (i = 0; i < READERS; i++)
		reader_at[i] = SPAN / READERS * (u64)i;
	while (sched.counters.completions < requests) {
		struct slot *done = NULL;
		u64 next_ns = now_ns + 50000000;
		int who = READERS;

		for (i = 0; i < READERS; i++)
			if (reader_next_ns[i] < next_ns) {
				next_ns = reader_next_ns[i];
				who = i;
			}
		for (i = 0; i < SLOTS; i++)
			if (slots[i].done_ns && slots[i].done_ns <= next_ns) {
				next_ns = slots[i].done_ns;
				done = &slots[i];
			}
		if (wake_ns < next_ns) {
			now_ns = max_t(u64, now_ns, wake_ns);
		} else if (done) {
			now_ns = max_t(u64, now_ns, next_ns);
			ss_sched_completed(&sched, &done->rq, now_ns);
			done->used = false;
			done->done_ns = 0;
		} else {
			now_ns = max_t(u64, now_ns, next_ns);
			arrive(now_ns, who);
			if (who < READERS)
				reader_next_ns[who] =
					now_ns + 1000 +
					random_below(6000000 + 4000000 * who);
			if (!random_below(8))
				arrive(now_ns, READERS);
		}
		dispatch(now_ns, &wake_ns);
	}
	note(sched.curve.mean_random_ns);
	printf("%llu", (unsigned long long)hash);
	for (i = 0; i < SS_WHYS; i++)
		if (whys[i])
			printf(" %s %llu", ss_why_name[i],
			       (unsigned long long)whys[i]);
	printf("\n");
	return 0;
}
