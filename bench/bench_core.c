// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a request costs in the core: arrived, choose, dispatched, completed.
 *
 *	bench_core ROUNDS OPERATIONS PENDING POLICY...
 *
 * PENDING clients keep one request each in the scheduler, before a disk that
 * takes one command at a time, in virtual time. A client reads BURST requests
 * of 128 KiB on end, then reads and writes BURST of 4 KiB at random; when its
 * request is done it sends the next one at once. The clients are at different
 * points of this. What a client sends depends on nothing but its number and
 * how much it has sent, so each policy is given the same requests; when they
 * come is for its own decisions to say, as with a real disk.
 *
 * For each round and policy one line goes out: the policy and the nanoseconds
 * of processor time per request. Policies take turns within a round, so that
 * what else the machine does meets all of them. The policy "loop" is the
 * program's own loop around a queue of its own: what the others are measured
 * with on top of.
 */
#include "../core/sched.h"

#include <linux/kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPAN_SECTORS 1000000000ULL
#define BURST 64
#define MAX_CLIENTS 1024
#define RANDOM_NUMBERS 65536
#define CLIENT_STEP 977 /* random numbers between one client's and the next's */
#define OVERHEAD_NS 100000
#define WRITE_PERCENT 30
#define WARM_UP 4 /* rounds of all clients before the clock starts */

struct client {
	struct ss_request rq;
	u64 next_sector;
	u32 sent;
	u32 slot; /* its number; loop: its place in the queue */
};

struct bench {
	struct ss_sched sched;
	struct client client[MAX_CLIENTS];
	bool loop; /* without the core */
	struct client *queue[MAX_CLIENTS];
	u32 head, nr_clients;
	u64 now_ns;
};

static u64 random_number[RANDOM_NUMBERS];
static struct bench bench;

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
static void make_random_numbers(void)
{
	u64 state = 1, z;
	u32 i;

	for (i = 0; i < RANDOM_NUMBERS; i++) {
		z = state += 0x9e3779b97f4a7c15ULL;
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
		random_number[i] = z ^ (z >> 31);
	}
}

/* By client and request: each policy gets the same ones, in any order. */
static u64 random_of(const struct client *client)
{
	u32 nth = client->slot * CLIENT_STEP + client->sent;

	return random_number[nth % RANDOM_NUMBERS];
}

static void send(struct bench *b, struct client *client)
{
	struct ss_request *rq = &client->rq;
	u64 random = random_of(client);
	u64 place = (random >> 32) * (SPAN_SECTORS - 1024) >> 32;
	u32 at = client->sent++ % (2 * BURST);

	rq->direction = SS_READ;
	rq->flags = SS_SYNC;
	if (at < BURST) {
		rq->sector = at ? client->next_sector : place;
		rq->nr_sectors = 256;
		client->next_sector = (rq->sector + 256) % (SPAN_SECTORS - 512);
	} else {
		rq->sector = place;
		rq->nr_sectors = 8;
		if (random % 100 < WRITE_PERCENT)
			rq->direction = SS_WRITE;
	}
	if (b->loop) {
		rq->arrival_ns = b->now_ns;
		b->queue[client->slot] = client;
	} else {
		ss_sched_arrived(&b->sched, rq, b->now_ns);
	}
}

/* The scheduler's next request, whatever waiting that takes. */
static struct ss_decision next_request(struct bench *b)
{
	struct ss_decision decision;

	for (;;) {
		decision = ss_sched_choose(&b->sched, b->now_ns);
		if (decision.verdict == SS_DISPATCH)
			return decision;
		if (decision.verdict != SS_WAIT ||
		    decision.until_ns == SS_FOREVER ||
		    decision.until_ns <= b->now_ns) {
			fprintf(stderr, "bench_core: nothing to dispatch\n");
			exit(1);
		}
		b->now_ns = decision.until_ns;
	}
}

/* A disk that needs 5 to 9 ms for a seek. */
static u64 position_ns(u64 from, u64 to)
{
	if (from == to)
		return 0;
	return 5 * SS_MSEC + ((from < to ? to - from : from - to) >> 8);
}

static void serve_one(struct bench *b)
{
	struct ss_decision decision;
	struct ss_request *rq;
	u64 service_ns;

	if (b->loop) {
		rq = &b->queue[b->head]->rq;
		b->head = (b->head + 1) % b->nr_clients;
		rq->dispatch_ns = b->now_ns;
		b->now_ns += OVERHEAD_NS;
	} else {
		decision = next_request(b);
		rq = decision.rq;
		service_ns = position_ns(b->sched.head_sector, rq->sector);
		ss_sched_dispatched(&b->sched, rq, decision.why, b->now_ns);
		b->now_ns += OVERHEAD_NS + service_ns +
			     b->sched.curve.transfer_ps * rq->nr_sectors / 1000;
		ss_sched_completed(&b->sched, rq, b->now_ns);
	}
	send(b, container_of(rq, struct client, rq));
}

static void begin(struct bench *b, const char *policy, u32 nr_clients)
{
	char why[256];
	u32 i;

	memset(b, 0, sizeof(*b));
	b->nr_clients = nr_clients;
	b->loop = !strcmp(policy, "loop");
	if (!b->loop &&
	    ss_sched_init(&b->sched, policy, SPAN_SECTORS, why, sizeof(why))) {
		fprintf(stderr, "bench_core: %s\n", why);
		exit(2);
	}
	/* Every policy sees the same disk, whatever it would have learned. */
	b->sched.curve.learning = false;
	for (i = 0; i < nr_clients; i++) {
		struct client *client = &b->client[i];

		client->slot = i;
		client->rq.owner = i + 1;
		client->sent = (u32)random_number[i] % (2 * BURST);
		client->next_sector = SPAN_SECTORS / nr_clients * i;
		send(b, client);
	}
}

static u64 cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (u64)time.tv_sec * 1000000000ULL + (u64)time.tv_nsec;
}

static double measure(const char *policy, u32 nr_clients, u64 operations)
{
	u64 begun_ns, i;

	begin(&bench, policy, nr_clients);
	for (i = 0; i < (u64)WARM_UP * nr_clients + 1000; i++)
		serve_one(&bench);
	begun_ns = cpu_ns();
	for (i = 0; i < operations; i++)
		serve_one(&bench);
	return (double)(cpu_ns() - begun_ns) / (double)operations;
}

int main(int argc, char **argv)
{
	u32 rounds, nr_clients, round;
	u64 operations;
	int policy;

	if (argc < 5) {
		fprintf(stderr, "usage: bench_core ROUNDS OPERATIONS PENDING "
				"POLICY...\n");
		return 2;
	}
	rounds = (u32)atoi(argv[1]);
	operations = (u64)atoll(argv[2]);
	nr_clients = (u32)atoi(argv[3]);
	if (!rounds || !operations || !nr_clients || nr_clients > MAX_CLIENTS) {
		fprintf(stderr, "bench_core: PENDING is 1 to %u\n",
			MAX_CLIENTS);
		return 2;
	}
	make_random_numbers();
	for (round = 0; round < rounds; round++)
		for (policy = 4; policy < argc; policy++)
			printf("%s %.1f\n", argv[policy],
			       measure(argv[policy], nr_clients, operations));
	return 0;
}
