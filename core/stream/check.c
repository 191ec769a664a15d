// SPDX-License-Identifier: GPL-2.0-only
/* What must hold between two events. See check.h. */
#include "check.h"
#include "party.h"

#include <linux/bug.h>

#ifdef SS_CHECKS

#define CHECK(cond) WARN_ON_ONCE(!(cond))

/* A party's own queue, by position: how many are in it. */
static u32 check_queue(const struct ss_parties *all,
		       const struct ss_party *party)
{
	const struct ss_request *rq, *before = NULL;
	u32 nr = 0;

	for (rq = ss_sorted_first(&party->sorted); rq;
	     rq = ss_sorted_next(rq)) {
		CHECK(rq->party == party);
		CHECK(!before || before->sector <= rq->sector);
		before = rq;
		nr++;
	}
	CHECK(nr == 0 || party != &all->party[PARTY_REST]);
	return nr;
}

static void check_parties(const struct ss_sched *sched, struct ss_parties *all)
{
	u32 nr_pending = 0, nr_in_flight = 0, nr_ready = 0, weight = 0, i;

	for (i = 0; i < NR_PARTIES; i++) {
		const struct ss_party *party = &all->party[i];

		CHECK(party->weight);
		CHECK(party->nr_pending || !party->light);
		CHECK(check_queue(all, party) == party->nr_pending ||
		      party == ss_party_rest(all));
		nr_pending += party->nr_pending;
		nr_in_flight += party->nr_in_flight;
		if (party->nr_pending) {
			nr_ready++;
			weight += party->weight;
		}
	}
	CHECK(nr_pending == sched->nr_pending);
	CHECK(nr_in_flight == sched->nr_in_flight);
	CHECK(all->turn.nr_behind <= nr_in_flight);
	CHECK(nr_ready == all->nr_ready);
	CHECK(weight == all->ready_weight);
}

/* In the order of who is due are all that are ready but the turn's. */
static void check_due(const struct ss_parties *all)
{
	const struct ss_party *turn = all->turn.party, *before = NULL, *party;
	u32 nr = turn && turn->nr_pending;
	struct rb_node *node;

	for (node = rb_first_cached(&all->due); node; node = rb_next(node)) {
		party = rb_entry(node, struct ss_party, due_node);
		CHECK(party->nr_pending && party != turn);
		CHECK(before ? before->due_ns <= party->due_ns :
			       party == all->first_due);
		before = party;
		nr++;
	}
	CHECK(before || !all->first_due);
	CHECK(nr == all->nr_ready);
}

/* All pending are on one of two lists, by whose they are. */
static void check_lists(struct ss_parties *all)
{
	const struct ss_request *rq;
	u32 nr = 0, nr_own = 0;

	list_for_each_entry(rq, &all->age, age_node) {
		CHECK(ss_party_of(all, rq) == ss_party_rest(all));
		nr++;
	}
	list_for_each_entry(rq, &all->age_own, age_node) {
		CHECK(rq->party && rq->party != ss_party_rest(all));
		nr_own++;
	}
	CHECK(nr == ss_party_rest(all)->nr_pending);
	CHECK(!all->cached || !list_empty(&all->cached->age_node));
	/* What has a weight ends a trial at the next event. */
	CHECK(!all->trial.inner || !nr_own || all->has_weights);
}

/* Each of @age that its stream's own party has not counts @by there. */
static void count_apart(struct ss_parties *all, const struct list_head *age,
			int by)
{
	const struct ss_request *rq;

	list_for_each_entry(rq, age, age_node) {
		struct ss_stream *s = rq->stream;

		if (s && ss_party_of_stream(all, s) != ss_party_of(all, rq))
			s->nr_apart += by;
	}
}

static void check_streams(struct ss_parties *all)
{
	const struct ss_turn *turn = &all->turn;
	u32 i;

	for (i = 0; i < NR_STREAMS; i++) {
		const struct ss_party *party = &all->party[i];
		const struct ss_stream *s = &all->streams.stream[i];

		CHECK(s->kept == (party == turn->party || party == turn->back));
		CHECK(s->nr_apart <= s->nr_open);
	}
	/* Counted down by who is apart, all counts are 0; then up again. */
	count_apart(all, &all->age, -1);
	count_apart(all, &all->age_own, -1);
	for (i = 0; i < NR_STREAMS; i++)
		CHECK(!all->streams.stream[i].nr_apart);
	count_apart(all, &all->age, 1);
	count_apart(all, &all->age_own, 1);
}

/* The requests of known senders that the rest has; others are in flight. */
static void check_senders(struct ss_parties *all)
{
	u32 in_flight = ss_party_rest(all)->nr_in_flight, nr_rest = 0, i;
	const struct ss_request *rq;

	list_for_each_entry(rq, &all->age_own, age_node)
		CHECK(!rq->sender);
	for (i = 0; i < NR_SENDERS; i++) {
		const struct ss_sender *sender = &all->senders.sender[i];
		u32 pending = 0;

		list_for_each_entry(rq, &all->age, age_node) {
			if (rq->sender != sender)
				continue;
			CHECK(rq->owner == SS_OWNER_NONE ||
			      sender->owner == rq->owner);
			pending++;
		}
		CHECK(sender->nr_rest >= pending);
		CHECK(sender->nr_rest <= pending + in_flight);
		nr_rest += sender->nr_rest > 0;
	}
	CHECK(nr_rest == all->senders.nr_rest);
}

void ss_check(const struct ss_policy *policy)
{
	struct ss_parties *all = policy->state;

	CHECK(!all->turn.back ||
	      (all->turn.party && all->turn.back != all->turn.party));
	CHECK(!all->turn.holding || all->turn.party);
	check_parties(policy->sched, all);
	check_due(all);
	check_lists(all);
	check_senders(all);
	check_streams(all);
}

u64 ss_check_charged_ns(const struct ss_sched *sched)
{
	const struct ss_policy *policy = &sched->policy[0];
	const struct ss_parties *all = policy->state;
	u64 used_ns = 0;
	u32 i;

	if (policy->ops->check != ss_check)
		return 0;
	for (i = 0; i < NR_PARTIES; i++)
		used_ns += all->party[i].used_ns;
	return used_ns;
}

#endif
