// SPDX-License-Identifier: GPL-2.0-only
/*
 * cooperative: the anticipatory scheduler, waiting for groups of processes too.
 *
 * Seelam, Romero and Teller, "Enhancements to Linux I/O Scheduling", OLS 2005:
 * anticipation fails where each file is read by a process of its own, for the
 * process that is waited for has gone. The next one reads nearby, though:
 * processes that request nearby blocks are a group. The group is waited for
 * as a process is; it lives on when members, or all of them, have gone; and a
 * process that has only just begun is known by its group.
 *
 * The slides say no more. Decided here:
 *
 * - A sync request at most group_distance ahead of a group's last one, or half
 *   as far behind it, makes its process a member, if it is far from its own
 *   group's last one. One that is near no group begins a group.
 * - A group is waited for when more than one process has belonged to it and
 *   the mean time from a completion to its next request, whoever sends that,
 *   is at most antic_expire. A member with pending requests is not waited for,
 *   as in anticipatory.
 * - A request of the group ends the wait as one of the process itself would.
 *   One other does: that of a process that came after the awaited one had
 *   gone, when nobody else has anything pending. It is the next one, that has
 *   gone on elsewhere, and there is nobody to keep the disk from. (In the
 *   paper's Table 3 one tree is read as fast as by anticipatory.)
 * - A group that takes longer is no reason to wait for a process of which
 *   nothing else is known. For all others anticipatory's rules hold.
 *
 * A group that is not heard of for the longest time makes room for a new one.
 */
#include "anticipation.h"

#include <linux/kernel.h>

/* As many as processes: a process that has no company is a group, too. */
#define COOP_GROUPS SS_OWNERS

struct coop_group {
	struct list_head age_node; /* longest without a request first */
	u32 nr_at_work; /* requests pending or at the disk */
	bool many; /* more than one process has belonged to it */
	bool served; /* a request of it has completed ... */
	u64 last_done_ns; /* ... at this time */
	u64 last_end_sector; /* of its last request */
	struct ss_mean think_ns; /* from a completion to its next request */
};

struct coop_state {
	struct as_state as; /* first: anticipation.c knows only this */
	struct list_head by_age;
	struct coop_group group[COOP_GROUPS];
};

static bool coop_is_near(const struct ss_policy *policy,
			 const struct coop_group *group, u64 sector)
{
	u64 distance = policy->value[AS_GROUP_DISTANCE];

	if (sector >= group->last_end_sector)
		return sector - group->last_end_sector <= distance;
	return group->last_end_sector - sector <= distance / 2;
}

/* The group that @sector is near, the one with the latest request first. */
static struct coop_group *coop_find(const struct ss_policy *policy, u64 sector)
{
	struct coop_state *coop = policy->state;
	struct list_head *node = coop->by_age.prev;

	for (; node != &coop->by_age; node = node->prev) {
		struct coop_group *group = list_entry(node, struct coop_group,
						      age_node);

		if ((group->served || group->nr_at_work) &&
		    coop_is_near(policy, group, sector))
			return group;
	}
	return NULL;
}

/* An empty group in the place of the oldest; NULL when all are at work. */
static struct coop_group *coop_begin(struct coop_state *coop)
{
	struct list_head *node = coop->by_age.next;
	u32 i;

	for (; node != &coop->by_age; node = node->next) {
		struct coop_group *group = list_entry(node, struct coop_group,
						      age_node);

		if (group->nr_at_work)
			continue;
		for (i = 0; i < SS_OWNERS; i++)
			if (coop->as.owner[i].past.group == group)
				coop->as.owner[i].past.group = NULL;
		if (coop->as.shared.past.group == group)
			coop->as.shared.past.group = NULL;
		group->many = false;
		group->served = false;
		group->think_ns = (struct ss_mean){ 0 };
		return group;
	}
	return NULL;
}

/* Where the process of @rq belongs from now on; NULL if there is no room. */
static struct coop_group *coop_group_of(struct ss_policy *policy,
					const struct ss_request *rq)
{
	struct as_owner *owner = rq->queue;
	struct coop_group *own = owner->past.group, *near;

	if (own && coop_is_near(policy, own, rq->sector))
		return own;
	near = coop_find(policy, rq->sector);
	if (near) {
		near->many = true;
		owner->past.group = near;
	} else if (!own || own->many) {
		owner->past.group = coop_begin(policy->state);
	}
	return owner->past.group;
}

static void coop_arrived(struct ss_policy *policy, struct ss_request *rq,
			 u64 now_ns)
{
	struct coop_state *coop = policy->state;
	struct coop_group *group = NULL;
	u64 think_ns = 0;

	if (ss_request_is_sync(rq))
		group = coop_group_of(policy, rq);
	rq->stream = group;
	if (!group)
		return;
	if (group->served) {
		if (!group->nr_at_work)
			think_ns = min_t(u64, now_ns - group->last_done_ns,
					 AS_THINK_MAX_NS);
		ss_mean_add(&group->think_ns, think_ns);
	}
	group->nr_at_work++;
	group->last_end_sector = ss_request_end(rq);
	list_move_tail(&group->age_node, &coop->by_age);
}

static void coop_left(struct ss_policy *policy, struct ss_request *rq,
		      bool done, u64 now_ns)
{
	struct coop_group *group = rq->stream;

	(void)policy;
	if (!group)
		return;
	group->nr_at_work--;
	if (done) {
		group->served = true;
		group->last_done_ns = now_ns;
	}
}

/*
 * Whether @rq is of a process that came after the awaited one had gone, and
 * nobody else has anything pending.
 */
static bool coop_succeeds(const struct coop_state *coop,
			  const struct ss_request *rq)
{
	const struct as_past *gone = &coop->as.awaited->past;
	const struct as_owner *owner = rq->queue;
	const struct ss_request *other;

	if (!ss_request_is_sync(rq) || !gone->gone || owner->past.served)
		return false;
	list_for_each_entry(other, &coop->as.fifo[AS_SYNC], fifo_node)
		if (other->queue != owner || other->arrival_ns < gone->gone_ns)
			return false;
	return true;
}

static bool coop_is_mate(const struct ss_policy *policy,
			 const struct ss_request *rq)
{
	const struct coop_state *coop = policy->state;

	return (rq->stream && rq->stream == coop->as.awaited->past.group) ||
	       coop_succeeds(coop, rq);
}

static bool coop_knows(const struct ss_policy *policy, u64 *think_ns)
{
	const struct coop_state *coop = policy->state;
	const struct coop_group *group = coop->as.awaited->past.group;

	if (!group || !group->many || !group->think_ns.samples)
		return false;
	*think_ns = group->think_ns.mean;
	return true;
}

static const struct as_groups coop_groups = {
	.arrived = coop_arrived,
	.left = coop_left,
	.is_mate = coop_is_mate,
	.knows = coop_knows,
};

static void coop_init(struct ss_policy *policy)
{
	struct coop_state *coop = policy->state;
	u32 i;

	ss_as_init(policy);
	coop->as.groups = &coop_groups;
	INIT_LIST_HEAD(&coop->by_age);
	for (i = 0; i < COOP_GROUPS; i++)
		list_add_tail(&coop->group[i].age_node, &coop->by_age);
}

const struct ss_policy_ops ss_cooperative_ops = {
	.name = "cooperative",
	.help = "anticipatory, and waits for groups that read nearby (Seelam et al., OLS 2005)",
	.flags = SS_USES_OWNER,
	.state_bytes = sizeof(struct coop_state),
	.tunables = ss_as_tunables,
	.nr_tunables = AS_COOPERATIVE_TUNABLES,
	.init = coop_init,
	SS_AS_CALLS,
};
