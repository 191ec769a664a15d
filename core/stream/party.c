// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parties: which requests belong together, and their queues.
 *
 * By the paper's inequality (section 2.1) a request is the child of a stream
 * if waiting for it and positioning to it cost less than positioning to what
 * would be done instead.
 */
#include "../sorted.h"
#include "party.h"

/*
 * The part of a random request's positioning that a child may cost at most.
 * At all of it every second random request is near enough to some other, and
 * random readers become streams; at a fourth few files of one directory do.
 */
#define NEAR_PART 2

static void party_init(struct party *party)
{
	INIT_LIST_HEAD(&party->node);
	INIT_LIST_HEAD(&party->ready);
	INIT_LIST_HEAD(&party->age);
	INIT_LIST_HEAD(&party->members);
	party->sorted = RB_ROOT;
	party->light_at_ns = SS_FOREVER;
	party->weight = USUAL;
}

void ss_party_init_all(struct ss_policy *policy)
{
	struct parties *all = policy->state;
	u32 i;

	INIT_LIST_HEAD(&all->free);
	INIT_LIST_HEAD(&all->candidates);
	INIT_LIST_HEAD(&all->known);
	INIT_LIST_HEAD(&all->ready);
	party_init(&all->rest);
	party_init(&all->async);
	for (i = 0; i < NR_WEIGHED; i++)
		party_init(&all->weighed[i]);
	for (i = 0; i < NR_STREAMS; i++) {
		party_init(&all->stream[i]);
		ss_party_ends_at(all, &all->stream[i], NOWHERE);
		list_add_tail(&all->stream[i].node, &all->free);
	}
	all->switch_ns = policy->sched->curve.mean_random_ns;
}

/* The longest unused of @list that has nothing open, or NULL. */
static struct party *oldest_closed(const struct list_head *list)
{
	struct party *s;

	list_for_each_entry(s, list, node)
		if (!s->nr_open && is_idle(s))
			return s;
	return NULL;
}

/* A new candidate that ends where @rq does, or NULL. */
static struct party *new_candidate(struct parties *all, struct ss_request *rq)
{
	struct party *s = oldest_closed(&all->free);

	if (!s)
		s = oldest_closed(&all->candidates);
	if (!s)
		s = oldest_closed(&all->known);
	if (!s || s == all->turn || s == all->back)
		return NULL;
	list_del(&s->node);
	*s = (struct party){ .size = 1, .nr_open = 1 };
	party_init(s);
	ss_party_ends_at(all, s, ss_request_end(rq));
	list_add_tail(&s->node, &all->candidates);
	rq->stream = s;
	return s;
}

/* What going on from @s with a request at @sector costs, waiting included. */
static u64 child_cost_ns(const struct ss_policy *policy, const struct party *s,
			 u64 sector, u64 now_ns)
{
	const struct ss_curve *curve = &policy->sched->curve;
	u64 cost_ns = ss_curve_between(curve, s->end_sector, sector);

	if (cost_ns > curve->mean_random_ns / NEAR_PART)
		return SS_FOREVER;
	cost_ns += s->nr_open ? 0 : now_ns - s->idle_since_ns;
	return cost_ns < curve->mean_random_ns ? cost_ns : SS_FOREVER;
}

/* Is @s, at the same cost, the better stream for a request than @best? */
static bool is_better(const struct party *s, const struct party *best)
{
	return !best || (s->established && !best->established);
}

/* The stream that @rq goes on from at the least cost, which is *@cost_ns. */
static struct party *nearest(const struct ss_policy *policy,
			     const struct ss_request *rq, u64 *cost_ns,
			     u64 now_ns)
{
	struct parties *all = policy->state;
	const struct ss_curve *curve = &policy->sched->curve;
	u64 reach = ss_curve_reach_sectors(
		curve, curve->mean_random_ns / NEAR_PART + 1);
	struct party *best = NULL;
	u32 i;

	*cost_ns = SS_FOREVER;
	reach = min_t(u64, reach, NOWHERE / 2);
	for (i = 0; i < NR_STREAMS; i++) {
		struct party *s = &all->stream[i];
		u64 child_ns = 0;

		/* Farther either way costs too much. */
		if (rq->sector - all->end[i] + reach > 2 * reach)
			continue;
		if (s->end_sector != rq->sector && !list_empty(&s->members))
			continue;
		if (s->end_sector != rq->sector)
			child_ns = child_cost_ns(policy, s, rq->sector, now_ns);
		if (child_ns < *cost_ns ||
		    (child_ns == *cost_ns && is_better(s, best))) {
			*cost_ns = child_ns;
			best = s;
		}
	}
	return *cost_ns == SS_FOREVER ? NULL : best;
}

/* A pending request without a stream that @rq continues begins one. */
static struct party *pending_parent(const struct ss_policy *policy,
				    const struct ss_request *rq)
{
	struct parties *all = policy->state;
	struct ss_request *before;
	struct party *s;

	before = ss_sched_pending_before(policy->sched, rq->sector);
	if (!before || before->stream || !ss_request_is_awaited(before))
		return NULL;
	s = new_candidate(all, before);
	if (s)
		list_add_tail(&before->member_node, &s->members);
	return s;
}

/* The stream whose next member @rq is, or NULL. */
static struct party *find_stream(const struct ss_policy *policy,
				 const struct ss_request *rq, u64 now_ns)
{
	u64 cost_ns;
	struct party *s = nearest(policy, rq, &cost_ns, now_ns);

	if (!cost_ns)
		return s;
	return pending_parent(policy, rq) ?: s;
}

void ss_party_move(struct ss_policy *policy, struct ss_request *rq,
		   struct party *party, u64 now_ns)
{
	ss_party_take(policy, rq, true, now_ns);
	ss_party_add(policy, party, rq, now_ns);
}

void ss_party_has_members(struct ss_policy *policy, struct party *party,
			  u64 now_ns)
{
	while (!list_empty(&party->members))
		ss_party_move(policy,
			      list_first_entry(&party->members,
					       struct ss_request, member_node),
			      party, now_ns);
}

/* A candidate is long enough: what is pending of it is its own from now on. */
static void establish(struct ss_policy *policy, struct party *s, u64 from,
		      u64 now_ns)
{
	struct parties *all = policy->state;

	ss_party_has_members(policy, s, now_ns);
	s->turn_ended_ns = now_ns;
	/* It began in this turn, and the turn is its own from now on. */
	if (all->turn == &all->rest &&
	    (is_idle(&all->rest) || ss_answer_expected(all, from))) {
		/* Where parties wait their time counts, else the reader's. */
		if (!others_wait(all, &all->rest))
			all->began_ns = all->answer.began_ns;
		all->turn = s;
		ss_turn_note_late(policy);
	}
}

/* Is stream @s, whose latest request is @rq, to take turns? */
static bool is_party(const struct ss_policy *policy, struct party *s,
		     const struct ss_request *rq)
{
	const struct parties *all = policy->state;

	if (all->takes_turns &&
	    !all->takes_turns(policy->sched, rq, s->pause.mean_ns, &s->parts))
		return false;
	return s->size >= policy->value[STREAM_THRESHOLD];
}

void ss_stream_has_parts(struct ss_policy *policy,
			 bool (*takes_turns)(const struct ss_sched *sched,
					     const struct ss_request *rq,
					     u64 pause_ns,
					     struct ss_parts *parts))
{
	struct parties *all = policy->state;

	all->takes_turns = takes_turns;
}

static u32 weight_of(const struct ss_request *rq)
{
	return rq->weight ? rq->weight : USUAL;
}

/*
 * The party of @rq, which is in no stream: the rest, or where others have their
 * own weight all of nearly the same one.
 */
static struct party *rest_of(struct parties *all, const struct ss_request *rq)
{
	struct party *party, *best = NULL;
	u32 weight = weight_of(rq), off, least = U32_MAX, i;

	if (weight == USUAL || all->takes_turns)
		return &all->rest;
	for (i = 0; i < NR_WEIGHED; i++) {
		party = &all->weighed[i];
		off = max_t(u32, weight, party->weight) -
		      min_t(u32, weight, party->weight);
		/* Who has nothing pending may have any weight. */
		if (off && !party->nr_pending)
			off = 1;
		if (off < least) {
			least = off;
			best = party;
		}
	}
	return best;
}

struct party *ss_party_find(struct ss_policy *policy, struct ss_request *rq,
			    u64 now_ns)
{
	struct parties *all = policy->state;
	struct party *s;
	bool established;
	u64 from;

	rq->stream = NULL;
	INIT_LIST_HEAD(&rq->member_node);
	if (is_flat(policy))
		return &all->rest;
	if (!ss_request_is_awaited(rq))
		return all->trial.inner || all->takes_turns ? &all->rest :
							      &all->async;
	all->has_weights |= weight_of(rq) != USUAL;
	s = find_stream(policy, rq, now_ns);
	if (!s)
		return rest_of(all, rq);
	if (!s->nr_open)
		ss_pause_ends(policy, s, now_ns);
	s->size += s->size < U32_MAX;
	from = s->end_sector;
	ss_party_ends_at(policy->state, s, ss_request_end(rq));
	s->nr_open++;
	rq->stream = s;
	list_del(&s->node);
	established = s->established;
	s->established = is_party(policy, s, rq);
	if (!s->established) {
		list_add_tail(&s->node, &all->candidates);
		return rest_of(all, rq);
	}
	list_add_tail(&s->node, &all->known);
	if (!established)
		ss_sched_tell(policy->sched, SS_EVENT_ESTABLISHED,
			      s->end_sector, s->size);
	if (all->trial.inner)
		return &all->rest;
	if (!established)
		establish(policy, s, from, now_ns);
	return s;
}

/* @party, which @rq comes to, is of its weight. */
static void weigh(struct parties *all, struct party *party,
		  const struct ss_request *rq)
{
	if (party == &all->rest || party == &all->async)
		return;
	if (party->nr_pending)
		all->ready_weight += weight_of(rq) - party->weight;
	party->weight = weight_of(rq);
}

void ss_party_add(struct ss_policy *policy, struct party *party,
		  struct ss_request *rq, u64 now_ns)
{
	struct parties *all = policy->state;

	weigh(all, party, rq);
	if (party == &all->async)
		rq->stream = party;
	if (rq->stream && rq->stream != party)
		list_add_tail(&rq->member_node,
			      &((struct party *)rq->stream)->members);
	if (party == &all->rest) {
		rq->party = NULL;
		policy->inner->ops->arrived(policy->inner, rq, now_ns);
	} else {
		rq->party = party;
		/* Only the inner policy lets requests expire. */
		rq->expires_ns = SS_FOREVER;
		ss_sorted_add(&party->sorted, rq);
	}
	ss_add_by_age(&party->age, rq, age_node);
	if (!party->nr_pending++) {
		list_add_tail(&party->ready, &all->ready);
		all->nr_ready++;
		all->ready_weight += party->weight;
	}
}

void ss_party_take(struct ss_policy *policy, struct ss_request *rq,
		   bool removed, u64 now_ns)
{
	struct ss_policy *inner = policy->inner;
	struct parties *all = policy->state;
	struct party *party = party_of(all, rq);

	if (party != &all->rest)
		ss_sorted_del(&party->sorted, rq);
	else if (removed)
		inner->ops->removed(inner, rq, now_ns);
	else
		inner->ops->dispatched(inner, rq, now_ns);
	list_del_init(&rq->member_node);
	list_del_init(&rq->age_node);
	if (all->answer.rq == rq)
		all->answer.rq = NULL;
	if (!--party->nr_pending) {
		list_del_init(&party->ready);
		all->nr_ready--;
		all->ready_weight -= party->weight;
		ss_credit_clear(all, party);
	}
}

void ss_party_becomes_parent(struct ss_policy *policy, struct ss_request *rq)
{
	if (!rq->stream && ss_request_is_awaited(rq) && !is_flat(policy))
		new_candidate(policy->state, rq);
}

bool ss_party_closes(struct ss_request *rq)
{
	struct party *s = rq->stream;

	return s && s->nr_open && !--s->nr_open;
}
