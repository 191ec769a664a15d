// SPDX-License-Identifier: GPL-2.0-only
/*
 * A proof about the order of who is due, for the model checker CBMC: party.c,
 * credit.c, turn.c and choose.c as they are, with four parties of up to two
 * requests.
 *
 * What check() says holds to begin with. And it holds after any one event if it
 * held before: that begins with any state at all in which it holds. So it holds
 * after any number of events, in any order, at any times.
 *
 * What does not bear on the order may be anything: how long a slice is, what a
 * way costs, how long the head waits for an idle party, which request of a
 * party's own queue is first. So what is proved holds of every choice that
 * choose.c may make, and of those that it never makes. The tree is a model, see
 * linux/rbtree.h beside this file.
 *
 * A write that waits for no head (credit.h) may come and go at any time, too.
 * What choose.c makes of it is proved by itself, with CHOICE defined: in any
 * state in which check() holds it goes first only if nobody is overdue.
 *
 * tests/cbmc/run.sh runs the proofs, and tests/core/test_due_order.py has bugs
 * that they find. That also compiles this file where there is no CBMC.
 */
#include <stddef.h>

/* Of the streams' parties there are two. With rest and write-back: four. */
#define SS_PLACES_H
#define SS_PLACES 2

#include <linux/types.h>

struct ss_place {
	u64 sector;
};

struct ss_places {
	struct ss_place place[SS_PLACES];
};

void ss_places_move(struct ss_places *places, u16 i, u64 sector);

#include "../../core/curve.h"
#include "../../core/request.h"

/* Nobody says who sends. */
#define SS_SENDERS_H
#define NR_SENDERS 1

struct ss_nearest {
	bool open;
};

struct ss_sender {
	u32 nr_rest;
};

struct ss_senders {
	struct ss_nearest nearest;
	u32 nr_rest;
	struct ss_sender sender[NR_SENDERS];
};

#include <linux/list.h>
#include <linux/math64.h>

#define PARTIES 4
#define REQUESTS (2 * PARTIES) /* two of each */
/* Times end here, for they are only compared and added up: proofs are quick. */
#define TIME_ENDS (1ULL << 8)

u64 nondet_u64(void);
u32 nondet_u32(void);
bool nondet_bool(void);

/* Some number no greater than @most. */
static u64 up_to(u64 most)
{
	u64 some = nondet_u64();

	__CPROVER_assume(some <= most);
	return some;
}

/* A quotient and a way may be anything. */
#define div_u64(dividend, divisor) up_to(TIME_ENDS)
#define div_s64(dividend, divisor) ((s64)up_to(TIME_ENDS))
#define ss_curve_look_up(curve, distance) up_to(TIME_ENDS)

static void ss_nearest_arrived(struct ss_nearest *nearest,
			       const struct ss_request *rq,
			       const struct list_head *age, const void *whose)
{
	(void)nearest;
	(void)rq;
	(void)age;
	(void)whose;
}

static u32 ss_nearest_percent(const struct ss_nearest *nearest,
			      u32 nr_outstanding)
{
	(void)nearest;
	(void)nr_outstanding;
	return 1 + (u32)up_to(31);
}

/* Lists by age: the first is the oldest. */
struct ss_parties;
static struct ss_request *oldest_of_rest(void);
#undef list_first_entry
#define list_first_entry(head, type, member) oldest_of_rest()
#undef ss_add_by_age
#define ss_add_by_age(head, rq, node) ((void)0)
#define list_del_init(node) ((void)0)
#undef list_for_each_entry_safe
#define list_for_each_entry_safe(pos, next, head, member)                      \
	for (pos = next = NULL; pos;)

/* A party's own queue: any of its requests may be the first. */
#define SS_SORTED_H
static struct ss_request *ss_sorted_first(const struct rb_root *root);
static struct ss_request *ss_sorted_round(const struct rb_root *root,
					  u64 sector,
					  const struct ss_request *skip);
static void ss_sorted_add(struct rb_root *root, struct ss_request *rq)
{
	(void)root;
	(void)rq;
}

static void ss_sorted_del(struct rb_root *root, struct ss_request *rq)
{
	(void)root;
	(void)rq;
}

#include "../../core/stream/party.h"

/* Whose stream is kept, and who is of the rest, without a division. */
#define ss_party_stream(all, party) ((struct ss_stream *)NULL)
#define ss_party_is_rest(all, who) ((who) == &(all)->party[PARTY_REST])
/* Each request is of one party all the time. */
#define ss_party_of(all, rq) party_of(rq)
static struct ss_party *party_of(const struct ss_request *rq);

#include "../../core/stream/credit.c"
#include "../../core/stream/party.c"
#include "../../core/stream/turn.c"
#ifdef CHOICE
#include "../../core/stream/choose.c"
#endif

enum { FREE, PENDING, IN_FLIGHT };

/* Apart from each other, as the tree's numbers are: see linux/rbtree.h. */
static struct ss_request rq0, rq1, rq2, rq3, rq4, rq5, rq6, rq7;
static struct ss_request *const request[REQUESTS] = { &rq0, &rq1, &rq2, &rq3,
						      &rq4, &rq5, &rq6, &rq7 };
static u32 state[REQUESTS];
static struct ss_parties parties;
static struct ss_sched sched;
static struct ss_policy inner, policy;
static struct ss_policy_ops inner_ops;
static u64 values[STREAM_TUNABLES];
static u64 now_ns, wait_target_ns;
static u64 turn_ended_ns[PARTIES]; /* the last one of each */

/* Requests 2 k and 2 k + 1 are of party k. */
static struct ss_party *party_of(const struct ss_request *rq)
{
	u32 i;

	for (i = 0; i < REQUESTS; i++)
		if (rq == request[i])
			return &parties.party[i / 2];
	return NULL;
}

static struct ss_request *some_pending(u32 k)
{
	bool second = state[2 * k] != PENDING;

	if (!second && state[2 * k + 1] == PENDING)
		second = nondet_bool();
	if (second && state[2 * k + 1] != PENDING)
		return NULL;
	return second ? request[2 * k + 1] : request[2 * k];
}

static struct ss_request *ss_sorted_first(const struct rb_root *root)
{
	u32 k;

	for (k = 0; k < PARTIES; k++)
		if (root == &parties.party[k].sorted)
			return some_pending(k);
	return NULL;
}

static struct ss_request *oldest_of_rest(void)
{
	struct ss_request *one = request[2 * PARTY_REST];
	struct ss_request *other = request[2 * PARTY_REST + 1];

	if (state[2 * PARTY_REST] != PENDING)
		return other;
	if (state[2 * PARTY_REST + 1] != PENDING)
		return one;
	return one->arrival_ns <= other->arrival_ns ? one : other;
}

static struct ss_request *ss_sorted_round(const struct rb_root *root,
					  u64 sector,
					  const struct ss_request *skip)
{
	(void)sector;
	(void)skip;
	return ss_sorted_first(root);
}

/* ---- files that say nothing of the order ---- */

void ss_streams_init(struct ss_streams *streams)
{
	(void)streams;
}

void ss_streams_used(struct ss_streams *streams, struct ss_stream *s)
{
	(void)streams;
	(void)s;
}

void ss_answer_ends(struct ss_policy *p, u64 at_ns)
{
	(void)p;
	(void)at_ns;
}

u64 ss_wait_until_ns(const struct ss_policy *p, const struct ss_party *party)
{
	(void)p;
	(void)party;
	return up_to(TIME_ENDS);
}

u64 ss_answer_until_ns(const struct ss_parties *all)
{
	(void)all;
	return up_to(TIME_ENDS);
}

u64 ss_streams_place_sectors(const struct ss_curve *curve)
{
	(void)curve;
	return up_to(TIME_ENDS);
}

static void inner_event(struct ss_policy *p, struct ss_request *rq, u64 at_ns)
{
	(void)p;
	(void)rq;
	(void)at_ns;
}

#ifdef CHOICE
static struct ss_decision inner_choose(const struct ss_policy *p, u64 at_ns,
				       const struct ss_request *skip)
{
	struct ss_request *rq = some_pending(PARTY_REST);

	(void)p;
	(void)at_ns;
	(void)skip;
	return rq ? ss_dispatch(rq) : ss_nothing();
}

struct ss_decision ss_answer_choose(const struct ss_policy *p,
				    bool slice_is_over, u64 at_ns)
{
	(void)slice_is_over;
	return nondet_bool() ? inner_choose(p, at_ns, NULL) : ss_nothing();
}

bool ss_answer_pays(const struct ss_parties *all)
{
	(void)all;
	return nondet_bool();
}
#endif

/* ---- what must be so ---- */

/* Of the state before the event it is taken for granted. */
static bool granted;

#define CLAIM(cond, text)                                                      \
	do {                                                                   \
		if (granted)                                                   \
			__CPROVER_assume(cond);                                \
		else                                                           \
			__CPROVER_assert(cond, text);                          \
	} while (0)

/* The tree's numbers are the parties'. */
static struct rb_node *rb_node_at(u32 k)
{
	return &parties.party[k].due_node;
}

static void *rb_owner(const struct rb_node *node)
{
	u32 k;

	for (k = 0; k < PARTIES; k++)
		if (node == &parties.party[k].due_node)
			return &parties.party[k];
	return NULL;
}

/* How often party @k is in the order. */
static u32 times_in_order(u32 k)
{
	u32 nr = 0, i;

	for (i = 0; i < PARTIES; i++)
		nr += i < parties.due.nr && parties.due.at[i] == k;
	return nr;
}

/* When the party is due that is at @place in the order. */
static u64 due_at_place(u32 place)
{
	u32 k;

	for (k = 0; k < PARTIES; k++)
		if (parties.due.at[place] == k)
			return parties.party[k].due_ns;
	return 0;
}

static void check_order(void)
{
	const struct ss_party *first = NULL;
	u32 k;

	for (k = 0; k + 1 < PARTIES; k++)
		CLAIM(k + 1 >= parties.due.nr ||
			      due_at_place(k) <= due_at_place(k + 1),
		      "the order is by due_ns");
	for (k = 0; k < PARTIES; k++)
		if (parties.due.nr && parties.due.at[0] == k)
			first = &parties.party[k];
	CLAIM(parties.first_due == first, "first_due is its first");
}

static void check_party(u32 k)
{
	const struct ss_party *party = &parties.party[k];
	const struct ss_request *one = request[2 * k];
	const struct ss_request *other = request[2 * k + 1];
	bool has_one = state[2 * k] == PENDING;
	bool has_other = state[2 * k + 1] == PENDING;
	bool ready = has_one || has_other, turn = party == parties.turn.party;
	u64 since_ns = has_one ? one->arrival_ns : other->arrival_ns;

	if (has_one && has_other)
		since_ns = min_t(u64, since_ns, other->arrival_ns);
	since_ns = max_t(u64, since_ns, turn_ended_ns[k]);
	CLAIM(party->nr_pending == has_one + has_other, "its pending ones");
	CLAIM(times_in_order(k) == (ready && !turn),
	      "each that waits for a turn is in the order once");
	CLAIM(RB_EMPTY_NODE(&party->due_node) == (!ready || turn),
	      "each knows whether it is");
	CLAIM(ready || !party->light, "who is light waits");
	if (!ready)
		return;
	/* Not put off but by a turn of its own. */
	CLAIM(party->due_ns <= since_ns + wait_target_ns,
	      "due within the target");
}

static void check(void)
{
	u32 nr_ready = 0, weight = 0, k;

	check_order();
	for (k = 0; k < PARTIES; k++) {
		const struct ss_party *party = &parties.party[k];

		check_party(k);
		if (!party->nr_pending)
			continue;
		nr_ready++;
		weight += party->weight;
	}
	for (k = 0; k < REQUESTS; k++)
		CLAIM(parties.cached != request[k] || state[k] == PENDING,
		      "what waits for no head is pending");
	CLAIM(parties.nr_ready == nr_ready, "ready ones");
	CLAIM(parties.ready_weight == weight, "their weight");
}

/* ---- events ---- */

static void arrives(u32 i, struct ss_party *party)
{
	bool idle = ss_party_is_idle(party);

	/* It came earlier if another scheduler had it, the oldest first. */
	request[i]->arrival_ns = up_to(now_ns);
	__CPROVER_assume(state[i + 1] != PENDING ||
			 request[i + 1]->arrival_ns <= request[i]->arrival_ns);
	request[i]->flags = SS_SYNC;
	request[i]->direction = (u8)up_to(SS_WRITE);
	state[i] = PENDING;
	sched.nr_pending++;
	ss_party_add(&policy, party, request[i], now_ns);
	party->debt_us = (u32)up_to(TIME_ENDS);
	if (nondet_bool())
		ss_credit_caches(&policy, party, request[i], now_ns);
	if (idle && nondet_bool())
		ss_credit_arrived(&policy, party, request[i], now_ns);
}

static void is_dispatched(u32 i, struct ss_party *party)
{
	/* Nobody was served before the first turn. */
	if (parties.turn.party && nondet_bool())
		parties.answer.rq = request[i];
	else
		parties.answer.rq = NULL;
	ss_turn_dispatched(&policy, party, request[i], now_ns);
	ss_party_take(&policy, request[i], false, now_ns);
	sched.nr_pending--;
	state[i] = IN_FLIGHT;
	sched.nr_in_flight++;
	party->nr_in_flight++;
}

static void is_removed(u32 i)
{
	ss_party_take(&policy, request[i], true, now_ns);
	sched.nr_pending--;
	state[i] = FREE;
}

static void completes(u32 i, struct ss_party *party)
{
	state[i] = FREE;
	sched.nr_in_flight--;
	party->nr_in_flight--;
}

/* What may happen to request @i of @party. */
static void event_of_request(u32 i, struct ss_party *party)
{
	if (state[i] == FREE)
		arrives(i, party);
	else if (state[i] == IN_FLIGHT)
		completes(i, party);
	else if (nondet_bool())
		is_dispatched(i, party);
	else
		is_removed(i);
}

/* What may happen to @party by itself. */
static void event_of_party(struct ss_party *party)
{
	if (ss_party_is_idle(party) && nondet_bool())
		ss_party_init(party); /* its number is another stream's */
	else if (nondet_bool())
		ss_turn_established(&policy, party, nondet_bool());
	else if (nondet_bool())
		ss_turn_is_rests(&parties);
	else if (party->nr_pending)
		/* It takes in a request that is older. */
		ss_party_is_due(&parties, party, up_to(party->due_ns));
}

/*
 * Where it is the turn of @turn, which is NULL before the first. The streams'
 * two parties are alike, and so are the two requests of each.
 */
static void event_in_turn(struct ss_party *turn)
{
	u32 which = nondet_u32(), k;

	/* Said anew each time, so that the model checker knows it for sure. */
	for (k = 0; k < PARTIES; k++)
		if (k != 1 && which == k) {
			parties.turn.party = turn;
			event_of_request(2 * k, &parties.party[k]);
		}
	for (k = 0; k < PARTIES; k++)
		if (k != 1 && which == PARTIES + k) {
			parties.turn.party = turn;
			event_of_party(&parties.party[k]);
		}
	for (k = 0; k < PARTIES; k++)
		if (turn == &parties.party[k] && turn != parties.turn.party)
			turn_ended_ns[k] = now_ns;
}

static void any_event(void)
{
	now_ns += up_to(TIME_ENDS);
	sched.now_ns = now_ns;
#ifdef TURN
	__CPROVER_assume(parties.turn.party == &parties.party[TURN]);
	event_in_turn(&parties.party[TURN]);
#else
	__CPROVER_assume(!parties.turn.party);
	event_in_turn(NULL);
#endif
}

/* ---- any state ---- */

static struct ss_party *some_party(void)
{
	u32 which = nondet_u32(), k;

	for (k = 0; k < PARTIES; k++)
		if (which == k)
			return &parties.party[k];
	return NULL;
}

static struct ss_request *some_request(void)
{
	u32 which = nondet_u32(), i;

	for (i = 0; i < REQUESTS; i++)
		if (which == i)
			return request[i];
	return NULL;
}

static void any_party(u32 k)
{
	struct ss_party *party = &parties.party[k];

	party->due_node.in_tree = nondet_bool();
	party->due_ns = up_to(TIME_ENDS);
	party->debt_at_ns = up_to(now_ns);
	party->debt_us = (u32)up_to(TIME_ENDS);
	party->weight = 1 + (u32)up_to(31);
	party->nr_pending = (u32)up_to(2);
	party->nr_in_flight = (u32)up_to(2);
	party->light = nondet_bool();
	party->had_turn = nondet_bool();
	party->was_paid = nondet_bool();
	party->flushes = nondet_bool();
	turn_ended_ns[k] = up_to(now_ns);
	parties.due.at[k] = (u8)up_to(PARTIES - 1);
}

/* Anything that stream's calls may have left, as far as it is read here. */
static void any_state(void)
{
	u32 i;

	now_ns = up_to(TIME_ENDS);
	for (i = 0; i < PARTIES; i++)
		any_party(i);
	for (i = 0; i < REQUESTS; i++) {
		state[i] = (u32)up_to(IN_FLIGHT);
		request[i]->arrival_ns = up_to(now_ns);
	}
	parties.due.nr = (u32)up_to(PARTIES);
	parties.first_due = some_party();
	parties.nr_ready = nondet_u32();
	parties.ready_weight = nondet_u32();
	parties.turn.party = some_party();
	parties.turn.back = some_party();
	parties.turn.began_ns = up_to(now_ns);
	parties.turn.back_used_ns = up_to(now_ns);
	parties.turn.holding = nondet_bool();
	parties.turn.moved = nondet_bool();
	parties.turn.charged_ns = up_to(now_ns);
	parties.turn.front_sector = up_to(TIME_ENDS);
	parties.turn.nr_behind = nondet_u32();
	parties.turn.nr_stuck = nondet_u32();
	parties.cached = some_request();
	parties.caches = nondet_bool();
	parties.answer.began_ns = up_to(now_ns);
	parties.has_weights = nondet_bool();
	sched.nr_pending = nondet_u32();
	sched.nr_in_flight = nondet_u32();
	granted = true;
	check();
	granted = false;
}

#ifdef CHOICE
/* ---- the choice ---- */

/*
 * Has party @k waited for the target? Of those behind a light one, which is due
 * before that, only the rest is looked at: the tree here has no next one.
 */
static bool is_overdue(u32 k)
{
	const struct ss_party *party = &parties.party[k];
	const struct ss_party *first = parties.first_due;

	if (!party->nr_pending)
		return false;
	if (k == PARTY_REST)
		return oldest_of_rest()->arrival_ns + wait_target_ns <= now_ns;
	return party != parties.turn.party && !first->light &&
	       party->due_ns <= now_ns;
}

static void check_choice(void)
{
	struct ss_decision decision = ss_choose(&policy, now_ns, NULL);
	u32 k;

	/* Of the party that is due first a light one's turn begins. */
	if (decision.verdict != SS_DISPATCH || decision.why != SS_WHY_LIGHT ||
	    decision.rq != parties.cached ||
	    party_of(decision.rq) == parties.first_due)
		return;
	for (k = 0; k < PARTIES; k++)
		CLAIM(!is_overdue(k),
		      "nobody overdue waits for what needs no head");
}
#endif

int main(void)
{
	wait_target_ns = up_to(TIME_ENDS);
	values[STREAM_WAIT_TARGET] = wait_target_ns;
	inner_ops.arrived = inner_event;
	inner_ops.dispatched = inner_event;
	inner_ops.removed = inner_event;
#ifdef CHOICE
	inner_ops.choose = inner_choose;
#endif
	inner.ops = &inner_ops;
	policy.sched = &sched;
	policy.inner = &inner;
	policy.value = values;
	policy.state = &parties;
	sched.curve.mean_random_ns = up_to(TIME_ENDS);
	ss_party_init_all(&policy);
	check();
	any_state();
#ifdef CHOICE
	check_choice();
#else
	any_event();
	check();
#endif
	return 0;
}
