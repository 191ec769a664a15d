// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler around the policies. See sched.h.
 *
 * Events go to the outermost policy; a wrapper hands them on to its inner
 * one. What all policies share is done here once: counters, the head's
 * position, idle time, learning the curve, merging.
 */
#include "sched.h"
#include "say.h"

#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

/* Less than this part of positioning is no positioning. */
#define CACHED_SHARE 4
/* What a drive may have read ahead: a track or two. */
#define READ_AHEAD_SHIFT 11
#define READ_AHEAD_SECTORS (1U << READ_AHEAD_SHIFT)

static const struct ss_policy_ops *find_policy(const char *name, size_t length)
{
	u32 i;

	for (i = 0; i < ss_nr_policies; i++)
		if (strlen(ss_policies[i]->name) == length &&
		    !memcmp(ss_policies[i]->name, name, length))
			return ss_policies[i];
	return NULL;
}

static int refuse_spec(const char *spec, const char *reason, char *why,
		       size_t why_bytes)
{
	why[0] = 0;
	ss_say(why, why_bytes, "policy \"");
	ss_say(why, why_bytes, spec);
	ss_say(why, why_bytes, "\": ");
	ss_say(why, why_bytes, reason);
	return -EINVAL;
}

/* Split @spec at its colons into ops[]; the count, or -EINVAL. */
static int parse_spec(const char *spec, const struct ss_policy_ops **ops,
		      char *why, size_t why_bytes)
{
	const char *part = spec;
	int nr = 0;

	for (;;) {
		const char *colon = strchr(part, ':');
		size_t length = colon ? (size_t)(colon - part) : strlen(part);

		if (nr == SS_MAX_DEPTH)
			return refuse_spec(
				spec,
				"too many colons; one wrapper and one inner policy are allowed",
				why, why_bytes);
		ops[nr] = find_policy(part, length);
		if (!ops[nr])
			return refuse_spec(spec, "no such policy", why,
					   why_bytes);
		if (nr && !(ops[nr]->flags & SS_WORK_CONSERVING))
			return refuse_spec(
				spec,
				"only a work-conserving policy can be wrapped",
				why, why_bytes);
		nr++;
		if (!(ops[nr - 1]->flags & SS_WRAPPER))
			break;
		if (!colon)
			return refuse_spec(
				spec,
				"name the inner policy after a colon, as in stream:deadline",
				why, why_bytes);
		part = colon + 1;
	}
	if (strchr(part, ':'))
		return refuse_spec(spec, "this policy wraps no other", why,
				   why_bytes);
	return nr;
}

/*
 * How many sequences have come to the part of the disk where @sector is, or to
 * one of those that share its count: a part is as long as a drive reads ahead.
 */
static u8 *recent_in(struct ss_sched *sched, u64 sector)
{
	return &sched->recent_in[(sector >> READ_AHEAD_SHIFT) %
				 SS_RECENT_PARTS];
}

int ss_sched_init(struct ss_sched *sched, const char *spec, u64 span_sectors,
		  char *why, size_t why_bytes)
{
	const struct ss_policy_ops *ops[SS_MAX_DEPTH];
	int nr = parse_spec(spec, ops, why, why_bytes);
	u32 used = 0, tunable;
	int i;

	if (nr < 0)
		return nr;
	memset(sched, 0, sizeof(*sched));
	sched->nr_policies = nr;
	sched->idle_since_ns = SS_FOREVER;
	*recent_in(sched, 0) = SS_RECENT;
	ss_curve_init_generic(&sched->curve, span_sectors);
	for (i = 0; i < nr; i++) {
		struct ss_policy *policy = &sched->policy[i];

		policy->ops = ops[i];
		policy->sched = sched;
		policy->inner = i + 1 < nr ? policy + 1 : NULL;
		policy->value = sched->value[i];
		policy->state = &sched->state[used / sizeof(u64)];
		used += (ops[i]->state_bytes + 7) & ~7U;
		if (WARN_ON_ONCE(used > SS_STATE_BYTES ||
				 ops[i]->nr_tunables > SS_MAX_TUNABLES))
			return refuse_spec(spec, "too large", why, why_bytes);
		for (tunable = 0; tunable < ops[i]->nr_tunables; tunable++)
			policy->value[tunable] =
				ops[i]->tunables[tunable].initial;
	}
	for (i = nr - 1; i >= 0; i--)
		ops[i]->init(&sched->policy[i]);
	return 0;
}

int ss_sched_tune(struct ss_sched *sched, const char *name, u64 value,
		  u64 now_ns, char *why, size_t why_bytes)
{
	const struct ss_policy_ops *ops = sched->policy[0].ops;
	bool found = false;
	u32 i, t;

	for (i = 0; i < sched->nr_policies; i++) {
		struct ss_policy *policy = &sched->policy[i];

		for (t = 0; t < policy->ops->nr_tunables; t++) {
			const struct ss_tunable *row =
				&policy->ops->tunables[t];

			if (strcmp(row->name, name))
				continue;
			if (value < row->min || value > row->max) {
				why[0] = 0;
				ss_say(why, why_bytes, name);
				ss_say(why, why_bytes, " is ");
				ss_say_number(why, why_bytes, value);
				ss_say(why, why_bytes, ", not within ");
				ss_say_number(why, why_bytes, row->min);
				ss_say(why, why_bytes, " to ");
				ss_say_number(why, why_bytes, row->max);
				return -ERANGE;
			}
			policy->value[t] = value;
			if (policy->ops->tuned)
				policy->ops->tuned(policy, now_ns);
			found = true;
		}
	}
	if (found)
		return 0;
	why[0] = 0;
	ss_say(why, why_bytes, name);
	if (ss_policy_replaced(ops, name)) {
		ss_say(why, why_bytes, " is gone: ");
		ss_say(why, why_bytes, ss_policy_replaced(ops, name));
		return -ENOENT;
	}
	ss_say(why, why_bytes, " is no setting of ");
	ss_say(why, why_bytes, ops->name);
	return -ENOENT;
}

int ss_sched_weigh(struct ss_sched *sched, u64 owner, u64 weight)
{
	int ret = -ENOENT;
	u32 i;

	for (i = 0; i < sched->nr_policies; i++) {
		struct ss_policy *policy = &sched->policy[i];

		if (!policy->ops->weigh)
			continue;
		if (!weight || weight > SS_MAX_WEIGHT)
			return -ERANGE;
		ret = policy->ops->weigh(policy, owner, (u32)weight);
	}
	return ret;
}

/* Every event begins here: time passes, and may have passed in idleness. */
static void clock_moves(struct ss_sched *sched, u64 now_ns)
{
	WARN_ON_ONCE(now_ns < sched->now_ns);
	if (sched->policy[0].ops->check)
		sched->policy[0].ops->check(&sched->policy[0]);
	sched->now_ns = now_ns;
}

/* After every event: is the disk idle with requests pending? */
static void note_idleness(struct ss_sched *sched, u64 now_ns)
{
	bool idle = sched->nr_pending && !sched->nr_in_flight;

	if (idle && sched->idle_since_ns == SS_FOREVER) {
		sched->idle_since_ns = now_ns;
	} else if (!idle && sched->idle_since_ns != SS_FOREVER) {
		sched->counters.idle_ns += now_ns - sched->idle_since_ns;
		sched->idle_since_ns = SS_FOREVER;
	}
}

static u32 hash_of(u64 sector)
{
	/* Fibonacci hashing: the golden ratio's bits spread regular steps. */
	return (u32)((sector * 0x9e3779b97f4a7c15ULL) >> (64 - SS_HASH_BITS));
}

static void index_add(struct ss_sched *sched, struct ss_request *rq)
{
	hlist_add_head(&rq->start_hash,
		       &sched->start_hash[hash_of(rq->sector)]);
	hlist_add_head(&rq->end_hash,
		       &sched->end_hash[hash_of(ss_request_end(rq))]);
}

static void index_del(struct ss_request *rq)
{
	hlist_del_init(&rq->start_hash);
	hlist_del_init(&rq->end_hash);
}

void ss_sched_arrived(struct ss_sched *sched, struct ss_request *rq, u64 now_ns)
{
	rq->arrival_ns = now_ns;
	rq->host_merges = 0;
	ss_sched_taken_over(sched, rq, now_ns);
}

void ss_sched_taken_over(struct ss_sched *sched, struct ss_request *rq,
			 u64 now_ns)
{
	struct ss_policy *policy = &sched->policy[0];

	clock_moves(sched, now_ns);
	WARN_ON_ONCE(!rq->nr_sectors || rq->direction >= SS_DIRECTIONS);
	WARN_ON_ONCE(rq->arrival_ns > now_ns);
	INIT_LIST_HEAD(&rq->fifo_node);
	RB_CLEAR_NODE(&rq->sort_node);
	rq->expires_ns = SS_FOREVER;
	rq->array_request = NULL;
	INIT_LIST_HEAD(&rq->array_node);
	sched->counters.arrivals++;
	sched->nr_pending++;
	sched->nr_pending_dir[rq->direction]++;
	/* First: a coordinator may say who sent it (rq->owner). */
	if (sched->coordinator)
		sched->coordinator->ops->arrived(sched->coordinator, rq,
						 now_ns);
	policy->ops->arrived(policy, rq, now_ns);
	index_add(sched, rq);
	note_idleness(sched, now_ns);
}

struct ss_decision ss_sched_choose(const struct ss_sched *sched, u64 now_ns)
{
	const struct ss_policy *policy = &sched->policy[0];

	if (!sched->nr_pending)
		return ss_nothing();
	if (sched->coordinator) {
		struct ss_decision decision;

		if (sched->coordinator->ops->choose(sched->coordinator, now_ns,
						    &decision))
			return ss_because(decision, SS_WHY_ARRAY);
	}
	return policy->ops->choose(policy, now_ns, NULL);
}

/* @rq, pending until now, is no longer. */
static void leaves(struct ss_sched *sched, struct ss_request *rq)
{
	WARN_ON_ONCE(!sched->nr_pending);
	sched->nr_pending--;
	sched->nr_pending_dir[rq->direction]--;
	index_del(rq);
}

/*
 * Does @rq go on where an earlier one ended, or soon behind it (RAID 5 leaves
 * out the parity)? Then it is where that has come to.
 */
static bool continues_recent(struct ss_sched *sched,
			     const struct ss_request *rq)
{
	u32 i = sched->recent, tried = 0;

	/* Mostly there is none in this part of the disk or the one before. */
	if (!*recent_in(sched, rq->sector) &&
	    !*recent_in(sched, rq->sector - READ_AHEAD_SECTORS))
		tried = SS_RECENT;
	for (; tried < SS_RECENT; tried++) {
		if (rq->sector - sched->recent_end[i] <= READ_AHEAD_SECTORS)
			break;
		i = (i + 1) % SS_RECENT;
	}
	/* In order of time, so the one behind the latest is the oldest. */
	if (tried)
		sched->recent = (sched->recent + 1) % SS_RECENT;
	if (tried == SS_RECENT)
		i = sched->recent;
	--*recent_in(sched, sched->recent_end[i]);
	sched->recent_end[i] = sched->recent_end[sched->recent];
	sched->recent_end[sched->recent] = ss_request_end(rq);
	++*recent_in(sched, ss_request_end(rq));
	return tried < SS_RECENT;
}

/*
 * The drive has read ahead what goes on where an earlier request ended. What
 * of that comes much sooner than positioning takes says nothing about it.
 */
static bool came_from_cache(const struct ss_sched *sched,
			    const struct ss_request *rq, u64 now_ns)
{
	return sched->alone_continues && rq->sector != rq->from_sector &&
	       now_ns - rq->dispatch_ns <
		       ss_sched_positioning_ns(sched, rq) / CACHED_SHARE;
}

void ss_sched_dispatched(struct ss_sched *sched, struct ss_request *rq,
			 enum ss_why why, u64 now_ns)
{
	struct ss_policy *policy = &sched->policy[0];

	clock_moves(sched, now_ns);
	rq->dispatch_ns = now_ns;
	rq->from_sector = sched->head_sector;
	leaves(sched, rq);
	sched->counters.dispatches++;
	sched->dispatched_by[why]++;
	if (sched->chosen)
		sched->chosen(sched, rq, why);
	sched->counters.seeks += rq->sector != sched->head_sector;
	sched->alone = NULL;
	if (sched->curve.learning) {
		if (sched->head_known && !sched->nr_in_flight &&
		    rq->direction == SS_READ &&
		    rq->sector >= sched->head_sector)
			sched->alone = rq;
		sched->alone_continues = continues_recent(sched, rq);
		sched->head_known = true;
	}
	sched->nr_in_flight++;
	sched->nr_async_in_flight += !ss_request_is_awaited(rq);
	sched->head_sector = ss_request_end(rq);
	if (sched->coordinator)
		sched->coordinator->ops->dispatched(sched->coordinator, rq,
						    now_ns);
	policy->ops->dispatched(policy, rq, now_ns);
	note_idleness(sched, now_ns);
}

/* Reads alone: what drives do with writes is not positioning. */
static noinline void doubt_flat(struct ss_sched *sched,
				const struct ss_request *rq, u64 now_ns)
{
	if (rq->direction == SS_READ && !sched->nr_async_in_flight)
		ss_curve_doubt(&sched->curve, rq->nr_sectors,
			       now_ns - max_t(u64, sched->busy_since_ns,
					      rq->dispatch_ns));
	sched->busy_since_ns = now_ns;
}

void ss_sched_completed(struct ss_sched *sched, struct ss_request *rq,
			u64 now_ns)
{
	struct ss_policy *policy = &sched->policy[0];

	clock_moves(sched, now_ns);
	WARN_ON_ONCE(!sched->nr_in_flight);
	sched->nr_in_flight--;
	sched->nr_async_in_flight -= !ss_request_is_awaited(rq);
	sched->counters.completions++;
	if (sched->alone == rq && !came_from_cache(sched, rq, now_ns))
		ss_curve_learn(&sched->curve, rq->sector - rq->from_sector,
			       rq->nr_sectors, now_ns - rq->dispatch_ns);
	sched->alone = NULL;
	if (sched->curve.flat && sched->curve.learning)
		doubt_flat(sched, rq, now_ns);
	if (policy->ops->completed)
		policy->ops->completed(policy, rq, now_ns);
	if (sched->coordinator)
		sched->coordinator->ops->completed(sched->coordinator, rq,
						   now_ns);
	note_idleness(sched, now_ns);
}

void ss_sched_returned(struct ss_sched *sched, struct ss_request *rq,
		       u64 now_ns)
{
	sched->alone = NULL;
	/* It may not have come where it was sent. */
	sched->head_known = false;
	ss_sched_completed(sched, rq, now_ns);
}

static void taken_out(struct ss_sched *sched, struct ss_request *rq, u64 now_ns)
{
	struct ss_policy *policy = &sched->policy[0];

	policy->ops->removed(policy, rq, now_ns);
	if (sched->coordinator)
		sched->coordinator->ops->removed(sched->coordinator, rq,
						 now_ns);
}

void ss_sched_removed(struct ss_sched *sched, struct ss_request *rq, u64 now_ns)
{
	clock_moves(sched, now_ns);
	leaves(sched, rq);
	sched->counters.removals++;
	taken_out(sched, rq, now_ns);
	note_idleness(sched, now_ns);
}

void ss_sched_flushes(struct ss_sched *sched, bool begins, u64 now_ns)
{
	struct ss_policy *policy = &sched->policy[0];

	clock_moves(sched, now_ns);
	if (policy->ops->flushes)
		policy->ops->flushes(policy, begins, now_ns);
	if (sched->coordinator)
		sched->coordinator->ops->flushes(sched->coordinator, begins,
						 now_ns);
}

void ss_sched_owner_gone(struct ss_sched *sched, u64 owner, u64 now_ns)
{
	struct ss_policy *policy = &sched->policy[0];

	clock_moves(sched, now_ns);
	if (policy->ops->owner_gone)
		policy->ops->owner_gone(policy, owner, now_ns);
}

bool ss_sched_stream_at(const struct ss_sched *sched, u32 index, u64 now_ns,
			struct ss_stream_info *info)
{
	const struct ss_policy *policy = &sched->policy[0];

	return policy->ops->stream_at &&
	       policy->ops->stream_at(policy, index, now_ns, info);
}

s32 ss_sched_index_of(const struct ss_sched *sched, const struct ss_request *rq)
{
	const struct ss_policy *policy = &sched->policy[0];

	return policy->ops->index_of ? (s32)policy->ops->index_of(policy, rq) :
				       -1;
}

struct ss_request *ss_sched_pending_before(const struct ss_sched *sched,
					   u64 sector)
{
	struct ss_request *at;

	hlist_for_each_entry(at, &sched->end_hash[hash_of(sector)], end_hash)
		if (ss_request_end(at) == sector)
			return at;
	return NULL;
}

/*
 * Have they come with the same flags? Of what was handed on stream may take
 * SS_SYNC away when it arrives: that makes no difference.
 */
static bool same_flags(u8 a, u8 b)
{
	u8 differ = a ^ b;

	if (a & b & SS_HANDED_ON)
		differ &= (u8)~SS_SYNC;
	return !differ;
}

/* May @part become a part of pending @rq? */
static bool mergeable(const struct ss_request *rq,
		      const struct ss_request *part, u32 max_sectors)
{
	return rq->direction == part->direction &&
	       same_flags(rq->flags, part->flags) &&
	       (u64)rq->nr_sectors + part->nr_sectors <= max_sectors;
}

/* Does the policy mind it? */
static bool merge_minded(const struct ss_sched *sched,
			 const struct ss_request *rq,
			 const struct ss_request *part)
{
	const struct ss_policy *policy = &sched->policy[0];

	return policy->ops->may_merge &&
	       !policy->ops->may_merge(policy, rq, part);
}

enum ss_merge ss_sched_find_merge(struct ss_sched *sched,
				  const struct ss_request *rq, u32 max_sectors,
				  struct ss_request **into)
{
	struct ss_request *at;

	hlist_for_each_entry(at, &sched->end_hash[hash_of(rq->sector)],
			     end_hash)
		if (ss_request_end(at) == rq->sector &&
		    mergeable(at, rq, max_sectors) &&
		    !merge_minded(sched, at, rq)) {
			*into = at;
			return SS_MERGE_BACK;
		}
	hlist_for_each_entry(at,
			     &sched->start_hash[hash_of(ss_request_end(rq))],
			     start_hash)
		if (at->sector == ss_request_end(rq) &&
		    mergeable(at, rq, max_sectors) &&
		    !merge_minded(sched, at, rq)) {
			*into = at;
			return SS_MERGE_FRONT;
		}
	return SS_MERGE_NONE;
}

struct ss_request *ss_sched_find_front(const struct ss_sched *sched, u64 sector,
				       u8 direction, u8 flags)
{
	struct ss_request *at;

	hlist_for_each_entry(at, &sched->start_hash[hash_of(sector)],
			     start_hash)
		if (at->sector == sector && at->direction == direction &&
		    same_flags(at->flags, flags))
			return at;
	return NULL;
}

struct ss_request *ss_sched_find_same(const struct ss_sched *sched,
				      const struct ss_request *rq)
{
	const struct ss_policy *last = &sched->policy[sched->nr_policies - 1];
	struct ss_request *at;

	if (!(last->ops->flags & SS_MERGES_SAME))
		return NULL;
	hlist_for_each_entry(at, &sched->start_hash[hash_of(rq->sector)],
			     start_hash)
		if (at->sector == rq->sector &&
		    at->nr_sectors == rq->nr_sectors &&
		    mergeable(at, rq, U32_MAX) && !merge_minded(sched, at, rq))
			return at;
	return NULL;
}

void ss_sched_shared(struct ss_sched *sched, const struct ss_request *into,
		     u64 now_ns)
{
	(void)into;
	clock_moves(sched, now_ns);
	sched->counters.merges++;
}

/* @into takes in @part, which touches it. */
static void grow(struct ss_sched *sched, struct ss_request *into,
		 const struct ss_request *part, u64 now_ns)
{
	struct ss_policy *policy = &sched->policy[0];
	u64 old_sector = into->sector;

	index_del(into);
	if (part->sector < into->sector)
		into->sector = part->sector;
	into->nr_sectors += part->nr_sectors;
	into->host_merges++;
	index_add(sched, into);
	sched->counters.merges++;
	if (policy->ops->awaited && !ss_request_is_awaited(into) &&
	    ss_request_is_awaited(part))
		policy->ops->awaited(policy, into, part, now_ns);
	if (policy->ops->merged)
		policy->ops->merged(policy, into, old_sector, now_ns);
	if (sched->coordinator)
		sched->coordinator->ops->merged(sched->coordinator, into,
						now_ns);
}

void ss_sched_becomes(struct ss_sched *sched, struct ss_request *rq,
		      const struct ss_request *grown, u64 now_ns)
{
	struct ss_policy *policy = &sched->policy[0];
	u64 old_sector = rq->sector;

	clock_moves(sched, now_ns);
	index_del(rq);
	rq->sector = grown->sector;
	rq->nr_sectors = grown->nr_sectors;
	index_add(sched, rq);
	if (grown->arrival_ns < rq->arrival_ns) {
		rq->arrival_ns = grown->arrival_ns;
		if (policy->ops->joins)
			policy->ops->joins(policy, rq, rq);
	}
	if (policy->ops->awaited && !ss_request_is_awaited(rq) &&
	    ss_request_is_awaited(grown))
		policy->ops->awaited(policy, rq, grown, now_ns);
	if (policy->ops->merged)
		policy->ops->merged(policy, rq, old_sector, now_ns);
}

void ss_sched_merged(struct ss_sched *sched, struct ss_request *into,
		     const struct ss_request *rq, u64 now_ns)
{
	clock_moves(sched, now_ns);
	WARN_ON_ONCE(ss_request_end(into) != rq->sector &&
		     ss_request_end(rq) != into->sector);
	grow(sched, into, rq, now_ns);
}

struct ss_request *ss_sched_find_join(struct ss_sched *sched,
				      const struct ss_request *rq,
				      u32 max_sectors)
{
	struct ss_request *at;

	hlist_for_each_entry(at,
			     &sched->start_hash[hash_of(ss_request_end(rq))],
			     start_hash)
		if (at != rq && at->sector == ss_request_end(rq) &&
		    mergeable(rq, at, max_sectors) &&
		    !merge_minded(sched, rq, at))
			return at;
	return NULL;
}

void ss_sched_joined(struct ss_sched *sched, struct ss_request *rq,
		     struct ss_request *next, u64 now_ns)
{
	struct ss_policy *policy = &sched->policy[0];

	clock_moves(sched, now_ns);
	WARN_ON_ONCE(ss_request_end(rq) != next->sector);
	rq->arrival_ns = min_t(u64, rq->arrival_ns, next->arrival_ns);
	rq->expires_ns = min_t(u64, rq->expires_ns, next->expires_ns);
	if (policy->ops->joins)
		policy->ops->joins(policy, rq, next);
	leaves(sched, next);
	taken_out(sched, next, now_ns);
	grow(sched, rq, next, now_ns);
	note_idleness(sched, now_ns);
}
