/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Proportional shares: each owner has a queue and a weight, and gets of the
 * disk, in sectors, in proportion to its weight while it has requests
 * pending. The policies stride and wfq differ in one thing: whether the
 * next owner is the one with the least start tag or the least finish tag.
 *
 * Tags are virtual time: sectors, scaled, divided by the weight. An owner's
 * start tag moves on by that for each request sent. Virtual time is the start
 * tag of the last request sent; an owner that has had nothing pending
 * goes on from there if it is behind, for a share that was not asked for is
 * not owed. So owners that send one request at a time are alternated with,
 * whatever their weights, unless the disk waits for them (nwcs).
 */
#ifndef SS_SHARES_H
#define SS_SHARES_H

#include "owner_table.h"
#include "../policies.h"

/* Of a tag: one sector at weight 1. */
#define SHARES_ONE (1ULL << 20)

struct shares_owner {
	struct ss_owner base; /* pinned by each request and by a weight */
	struct list_head queue; /* pending, in order of arrival */
	struct list_head backlog_node; /* while there are such */
	u64 start; /* tag of its next request */
	u32 weight;
	u32 last_sectors; /* length of its last request */
};

struct shares {
	bool by_finish;
	u64 virtual_time;
	struct list_head backlog; /* owners with pending requests */
	struct ss_owner_table table;
	struct shares_owner shared;
	struct shares_owner owner[SS_OWNERS];
};

void ss_shares_init(struct shares *shares, bool by_finish);

/* For struct ss_policy_ops; the state begins with struct shares. */
void ss_shares_arrived(struct ss_policy *policy, struct ss_request *rq,
		       u64 now_ns);
struct ss_decision ss_shares_choose(const struct ss_policy *policy, u64 now_ns,
				    const struct ss_request *skip);
void ss_shares_dispatched(struct ss_policy *policy, struct ss_request *rq,
			  u64 now_ns);
void ss_shares_completed(struct ss_policy *policy, struct ss_request *rq,
			 u64 now_ns);
void ss_shares_joins(struct ss_policy *policy, struct ss_request *rq,
		     const struct ss_request *next);
void ss_shares_removed(struct ss_policy *policy, struct ss_request *rq,
		       u64 now_ns);
bool ss_shares_prefers(const struct ss_policy *policy, u64 owner,
		       const struct ss_request *over);
int ss_shares_weigh(struct ss_policy *policy, u64 owner, u32 weight);

#define SS_SHARES_CALLS                                                        \
	.arrived = ss_shares_arrived, .choose = ss_shares_choose,              \
	.dispatched = ss_shares_dispatched, .completed = ss_shares_completed,  \
	.joins = ss_shares_joins, .removed = ss_shares_removed,                \
	.prefers = ss_shares_prefers, .weigh = ss_shares_weigh

#endif
