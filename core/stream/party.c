// SPDX-License-Identifier: GPL-2.0-only
/* Parties and their queues. See party.h. */
#include "party.h"

#include <linux/bug.h>

void ss_party_init(struct ss_party *party)
{
	WARN_ON_ONCE(party->nr_pending || party->nr_in_flight);
	*party = (struct ss_party){ .sorted = RB_ROOT, .weight = USUAL };
	RB_CLEAR_NODE(&party->due_node);
}

void ss_party_init_all(struct ss_policy *policy)
{
	struct ss_parties *all = policy->state;
	u32 i;

	all->due = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&all->age);
	INIT_LIST_HEAD(&all->age_own);
	ss_streams_init(&all->streams);
	for (i = 0; i < NR_PARTIES; i++)
		ss_party_init(&all->party[i]);
	all->switch_ns = policy->sched->curve.mean_random_ns;
}

void ss_stream_has_parts(struct ss_policy *policy,
			 ss_takes_turns_fn takes_turns, u32 nr_parts)
{
	struct ss_parties *all = policy->state;

	all->more_parts = nr_parts - 1;
	/* A trial moves the heads of all, so it begins later. */
	all->trial.alike = nr_parts > 1 ? 2 : 0;
	all->takes_turns = takes_turns;
}

/* ---- the order of who is due ---- */

static bool party_is_before(struct rb_node *node, const struct rb_node *other)
{
	return rb_entry(node, struct ss_party, due_node)->due_ns <
	       rb_entry(other, struct ss_party, due_node)->due_ns;
}

void ss_party_queues(struct ss_parties *all, struct ss_party *party)
{
	if (rb_add_cached(&party->due_node, &all->due, party_is_before))
		all->first_due = party;
}

void ss_party_leaves(struct ss_parties *all, struct ss_party *party)
{
	if (RB_EMPTY_NODE(&party->due_node))
		return;
	rb_erase_cached(&party->due_node, &all->due);
	RB_CLEAR_NODE(&party->due_node);
	all->first_due = rb_entry_safe(rb_first_cached(&all->due),
				       struct ss_party, due_node);
}

void ss_party_is_due(struct ss_parties *all, struct ss_party *party, u64 due_ns)
{
	bool queued = !RB_EMPTY_NODE(&party->due_node);

	ss_party_leaves(all, party);
	party->due_ns = due_ns;
	if (queued)
		ss_party_queues(all, party);
}

/* ---- queues ---- */

/* How many the rest are, with one more, in percent. */
static u32 party_rest_weight(const struct ss_parties *all)
{
	const struct ss_party *rest = &all->party[PARTY_REST];
	u32 nr = rest->nr_pending + rest->nr_in_flight + 1;
	u32 percent = ss_nearest_percent(&all->senders.nearest, nr);

	/* n senders at p parts are served as fast as (n + p - 1) / p at one. */
	if (all->more_parts)
		percent = (percent + USUAL * all->more_parts) /
			  (1 + all->more_parts);
	return percent;
}

/* @party, which @rq comes to, is of its weight. */
static void party_weighs(struct ss_parties *all, struct ss_party *party,
			 const struct ss_request *rq)
{
	u32 weight = ss_party_weight(rq);

	if (ss_party_is_async(all, party))
		return;
	if (party == ss_party_rest(all)) {
		ss_nearest_arrived(&all->senders.nearest, rq, &all->age, NULL);
		/* A process may serve many; weights say who is who. */
		weight = USUAL * max_t(u32, all->senders.nr_rest, 1);
		if (!all->has_weights)
			weight = max_t(u32, weight, party_rest_weight(all));
	}
	if (party->nr_pending)
		all->ready_weight += weight - party->weight;
	party->weight = weight;
}

void ss_party_add(struct ss_policy *policy, struct ss_party *party,
		  struct ss_request *rq, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_stream *s = rq->stream;
	struct ss_sender *sender = rq->sender;

	if (party != ss_party_rest(all))
		rq->sender = NULL;
	else if (rq->sender)
		all->senders.nr_rest += !sender->nr_rest++;
	party_weighs(all, party, rq);
	if (s && ss_party_stream(all, party) != s)
		s->nr_apart++;
	if (party == ss_party_rest(all)) {
		rq->party = NULL;
		ss_add_by_age(&all->age, rq, age_node);
		policy->inner->ops->arrived(policy->inner, rq, now_ns);
	} else {
		rq->party = party;
		/* Only the inner policy lets requests expire. */
		rq->expires_ns = SS_FOREVER;
		ss_sorted_add(&party->sorted, rq);
		ss_add_by_age(&all->age_own, rq, age_node);
	}
	if (party->nr_pending++)
		return;
	all->nr_ready++;
	all->ready_weight += party->weight;
	party->due_ns = rq->arrival_ns + policy->value[STREAM_WAIT_TARGET];
	if (party != all->turn.party)
		ss_party_queues(all, party);
}

void ss_party_take(struct ss_policy *policy, struct ss_request *rq,
		   bool removed, u64 now_ns)
{
	struct ss_policy *inner = policy->inner;
	struct ss_parties *all = policy->state;
	struct ss_party *party = ss_party_of(all, rq);
	struct ss_stream *s = rq->stream;

	if (s && ss_party_stream(all, party) != s)
		s->nr_apart--;
	if (party != ss_party_rest(all))
		ss_sorted_del(&party->sorted, rq);
	else if (!removed)
		inner->ops->dispatched(inner, rq, now_ns);
	else
		inner->ops->removed(inner, rq, now_ns);
	if (removed)
		ss_party_rest_loses(all, rq);
	list_del_init(&rq->age_node);
	if (all->answer.rq == rq)
		all->answer.rq = NULL;
	if (all->cached == rq)
		all->cached = NULL;
	if (--party->nr_pending)
		return;
	all->nr_ready--;
	all->ready_weight -= party->weight;
	party->light = false;
	ss_party_leaves(all, party);
}

void ss_party_move(struct ss_policy *policy, struct ss_request *rq,
		   struct ss_party *party, u64 now_ns)
{
	ss_party_take(policy, rq, true, now_ns);
	ss_party_add(policy, party, rq, now_ns);
}

/*
 * Is @rq of @s, or does somebody read at its place what the rest has? That may
 * be of a stream too, which takes no turns yet, unless weights say who is who.
 */
static bool party_is_at(struct ss_parties *all, const struct ss_request *rq,
			const struct ss_stream *s, u64 place_sectors)
{
	if (rq->stream == s || rq->party || (rq->stream && all->has_weights))
		return rq->stream == s;
	return ss_request_is_awaited(rq) &&
	       ss_distance(rq->sector, ss_streams_end(&all->streams, s)) <=
		       place_sectors;
}

/* What is at @s and in another's queue, of those on @age, oldest first. */
static void party_fetches(struct ss_policy *policy, struct ss_party *party,
			  const struct ss_stream *s, struct list_head *age,
			  u64 now_ns)
{
	u64 place = ss_streams_place_sectors(&policy->sched->curve);
	struct ss_request *rq, *next;

	list_for_each_entry_safe(rq, next, age, age_node)
		if (rq->party != party &&
		    party_is_at(policy->state, rq, s, place))
			ss_party_move(policy, rq, party, now_ns);
}

/* ---- whose a request is ---- */

struct ss_party *ss_party_assign(struct ss_policy *policy,
				 struct ss_request *rq, u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_stream *s = rq->stream;
	struct ss_party *party;
	bool was;

	all->has_weights |= ss_party_weight(rq) != USUAL;
	if (!s)
		return ss_party_rest(all);
	was = s->established;
	s->established = s->size >= policy->value[STREAM_THRESHOLD];
	if (all->takes_turns &&
	    !all->takes_turns(policy->sched, rq,
			      1000ULL * s->reader.think.mean_us,
			      ss_streams_index(&all->streams, s), s->roams))
		s->established = false;
	ss_streams_used(&all->streams, s);
	if (!s->established)
		return ss_party_rest(all);
	if (!was)
		ss_sched_tell(policy->sched, SS_EVENT_ESTABLISHED,
			      ss_streams_end(&all->streams, s), s->size);
	/* Its place in the table was another stream's, whose queue is empty. */
	party = ss_party_of_stream(all, s);
	if (s->is_new)
		ss_party_init(party);
	s->is_new = false;
	if (all->trial.inner)
		return ss_party_rest(all);
	if (was)
		return party;
	/* What others have of it becomes its own. */
	party_fetches(policy, party, s, &all->age, now_ns);
	if (s->nr_apart)
		party_fetches(policy, party, s, &all->age_own, now_ns);
	return party;
}
