// SPDX-License-Identifier: GPL-2.0-only
/* What stride and wfq have in common. See shares.h. */
#include "shares.h"

#include <linux/errno.h>
#include <linux/kernel.h>

static struct shares_owner *shares_owner_entry(struct ss_owner *base)
{
	return container_of(base, struct shares_owner, base);
}

static struct shares_owner *shares_get(struct shares *shares, u64 id)
{
	struct shares_owner *owner;
	bool fresh;

	owner = shares_owner_entry(ss_owner_get(&shares->table, id, &fresh));
	if (fresh) {
		owner->start = 0;
		owner->weight = 1;
		owner->last_sectors = 1;
	}
	return owner;
}

/* Of @sectors for @owner; rounded up, so that nobody gains by rounding. */
static u64 shares_cost(const struct shares_owner *owner, u32 sectors)
{
	return div_u64(sectors * SHARES_ONE + owner->weight - 1, owner->weight);
}

/* By what an owner is chosen whose next request is of @sectors. */
static u64 shares_key(const struct shares *shares,
		      const struct shares_owner *owner, u64 start, u32 sectors)
{
	return shares->by_finish ? start + shares_cost(owner, sectors) : start;
}

static void shares_owner_init(struct shares_owner *owner)
{
	INIT_LIST_HEAD(&owner->queue);
	INIT_LIST_HEAD(&owner->backlog_node);
	owner->weight = 1;
	owner->last_sectors = 1;
}

void ss_shares_init(struct shares *shares, bool by_finish)
{
	u32 i;

	shares->by_finish = by_finish;
	INIT_LIST_HEAD(&shares->backlog);
	shares_owner_init(&shares->shared);
	ss_owner_table_init(&shares->table, &shares->shared.base);
	for (i = 0; i < SS_OWNERS; i++) {
		shares_owner_init(&shares->owner[i]);
		ss_owner_table_add(&shares->table, &shares->owner[i].base);
	}
}

void ss_shares_arrived(struct ss_policy *policy, struct ss_request *rq,
		       u64 now_ns)
{
	struct shares *shares = policy->state;
	struct shares_owner *owner = shares_get(shares, rq->owner);

	(void)now_ns;
	rq->queue = owner;
	ss_owner_pin(&owner->base);
	if (list_empty(&owner->queue)) {
		owner->start = max_t(u64, owner->start, shares->virtual_time);
		list_add_tail(&owner->backlog_node, &shares->backlog);
	}
	ss_add_by_age(&owner->queue, rq, fifo_node);
}

struct ss_decision ss_shares_choose(const struct ss_policy *policy, u64 now_ns,
				    const struct ss_request *skip)
{
	const struct shares *shares = policy->state;
	const struct shares_owner *owner;
	struct ss_request *best = NULL;
	u64 best_key = 0;

	(void)now_ns;
	list_for_each_entry(owner, &shares->backlog, backlog_node) {
		struct ss_request *rq = ss_first_but(&owner->queue, skip);
		u64 key;

		if (!rq)
			continue;
		key = shares_key(shares, owner, owner->start, rq->nr_sectors);
		if (!best || key < best_key) {
			best = rq;
			best_key = key;
		}
	}
	return best ? ss_dispatch(best) : ss_nothing();
}

/* @rq is pending no longer. */
static void shares_take(struct shares_owner *owner, struct ss_request *rq)
{
	list_del_init(&rq->fifo_node);
	if (list_empty(&owner->queue))
		list_del_init(&owner->backlog_node);
}

void ss_shares_dispatched(struct ss_policy *policy, struct ss_request *rq,
			  u64 now_ns)
{
	struct shares *shares = policy->state;
	struct shares_owner *owner = rq->queue;

	(void)now_ns;
	/* Not always the least: wfq goes by the end, a wrapper as it likes. */
	shares->virtual_time = max_t(u64, shares->virtual_time, owner->start);
	owner->start += shares_cost(owner, rq->nr_sectors);
	owner->last_sectors = rq->nr_sectors;
	shares_take(owner, rq);
}

void ss_shares_completed(struct ss_policy *policy, struct ss_request *rq,
			 u64 now_ns)
{
	struct shares *shares = policy->state;
	struct shares_owner *owner = rq->queue;

	(void)now_ns;
	ss_owner_unpin(&shares->table, &owner->base);
}

void ss_shares_joins(struct ss_policy *policy, struct ss_request *rq,
		     const struct ss_request *next)
{
	struct shares_owner *owner = rq->queue;

	(void)policy;
	(void)next;
	ss_older(&owner->queue, rq, fifo_node);
}

void ss_shares_removed(struct ss_policy *policy, struct ss_request *rq,
		       u64 now_ns)
{
	shares_take(rq->queue, rq);
	ss_shares_completed(policy, rq, now_ns);
}

bool ss_shares_prefers(const struct ss_policy *policy, u64 id,
		       const struct ss_request *over)
{
	const struct shares *shares = policy->state;
	const struct shares_owner *owner, *other = over->queue;
	struct ss_owner *base = ss_owner_find(&shares->table, id);
	u64 start;

	if (!base || !list_empty(&shares_owner_entry(base)->queue))
		return false;
	owner = shares_owner_entry(base);
	start = max_t(u64, owner->start, shares->virtual_time);
	return shares_key(shares, owner, start, owner->last_sectors) <
	       shares_key(shares, other, other->start, over->nr_sectors);
}

int ss_shares_weigh(struct ss_policy *policy, u64 id, u32 weight)
{
	struct shares *shares = policy->state;
	struct shares_owner *owner = shares_get(shares, id);

	if (owner == &shares->shared && id != SS_OWNER_NONE)
		return -ENOSPC;
	/* Once: its place must not go to another owner. */
	if (owner->weight == 1)
		ss_owner_pin(&owner->base);
	if (weight == 1)
		ss_owner_unpin(&shares->table, &owner->base);
	owner->weight = weight;
	return 0;
}
