// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the coordinator of an array costs for a request: readers in chunks of
 * 64 KiB on RAID 0 of MEMBERS disks under stream:deadline. A disk takes 1 ms to
 * go on and 10 ms for anything else. Prints ns of processor time for each
 * request, and how many turns there were.
 *
 *	bench_array MEMBERS COORDINATED REQUESTS
 */
#include "../core/array/array.h"

#include <linux/minmax.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define READERS 16
#define CHUNK 128
#define NEAR_NS SS_MSEC
#define FAR_NS (10 * SS_MSEC)

struct reader {
	struct ss_request rq;
	u64 chunk;
	u32 member;
};

static struct ss_sched sched[SS_ARRAY_MEMBERS];
static struct ss_array array;
static struct reader reader[READERS];
static u32 nr_members;

static void attach(void)
{
	struct ss_array_geometry geometry = { .level = SS_ARRAY_RAID0 };
	char why[160];
	u32 i;

	geometry.nr_members = nr_members;
	geometry.chunk_sectors = CHUNK;
	for (i = 0; i < nr_members; i++)
		geometry.member_sectors[i] = 1ULL << 33;
	if (ss_array_geometry_init(&geometry, why, sizeof(why)))
		exit(1);
	ss_array_init(&array, &geometry);
	for (i = 0; i < nr_members; i++)
		if (ss_array_attach(&array, i, &sched[i], why, sizeof(why)))
			exit(1);
}

static void send(struct reader *r, u64 now_ns)
{
	r->member = (u32)(r->chunk % nr_members);
	r->rq.sector = r->chunk / nr_members * CHUNK;
	r->rq.nr_sectors = CHUNK;
	r->rq.direction = SS_READ;
	r->rq.flags = SS_SYNC;
	r->chunk++;
	ss_sched_arrived(&sched[r->member], &r->rq, now_ns);
}

int main(int argc, char **argv)
{
	struct ss_request *busy[SS_ARRAY_MEMBERS] = { NULL };
	u64 until_ns[SS_ARRAY_MEMBERS] = { 0 };
	struct timespec begin, end;
	u64 now_ns = SS_SEC, left, done = 0;
	char why[160];
	u32 i;

	if (argc != 4)
		return 2;
	nr_members = (u32)atoi(argv[1]);
	left = strtoull(argv[3], NULL, 10);
	for (i = 0; i < nr_members; i++)
		if (ss_sched_init(&sched[i], "stream:deadline", 1ULL << 33, why,
				  sizeof(why)))
			return 1;
	if (atoi(argv[2]))
		attach();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (i = 0; i < READERS; i++) {
		reader[i].chunk = (1ULL << 25) / CHUNK * nr_members * i;
		send(&reader[i], now_ns);
	}
	while (done < left) {
		u64 next_ns = now_ns + SS_MSEC;

		for (i = 0; i < nr_members; i++) {
			struct ss_decision decision;

			if (!busy[i]) {
				decision = ss_sched_choose(&sched[i], now_ns);
				if (decision.verdict != SS_DISPATCH)
					continue;
				busy[i] = decision.rq;
				until_ns[i] = now_ns + FAR_NS;
				if (busy[i]->sector == sched[i].head_sector)
					until_ns[i] = now_ns + NEAR_NS;
				ss_sched_dispatched(&sched[i], busy[i],
						    decision.why, now_ns);
			}
			next_ns = min_t(u64, next_ns, until_ns[i]);
		}
		now_ns = next_ns;
		for (i = 0; i < nr_members; i++) {
			struct ss_request *rq = busy[i];

			if (!rq || until_ns[i] > now_ns)
				continue;
			busy[i] = NULL;
			ss_sched_completed(&sched[i], rq, now_ns);
			done++;
			send((struct reader *)rq, now_ns);
		}
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	printf("%.1f %llu\n",
	       ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
		(double)(end.tv_nsec - begin.tv_nsec)) /
		       (double)done,
	       (unsigned long long)array.counters.turns);
	return 0;
}
