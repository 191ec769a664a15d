/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a wrapper hands on to the policy that it wraps: calls that are optional
 * for that policy, and calls with which the wrapper does nothing itself.
 */
#ifndef SS_POLICY_INNER_H
#define SS_POLICY_INNER_H

#include "../policy.h"

static inline struct ss_decision ss_inner_choose(const struct ss_policy *policy,
						 u64 now_ns,
						 const struct ss_request *skip)
{
	return policy->inner->ops->choose(policy->inner, now_ns, skip);
}

static inline void ss_inner_completed(struct ss_policy *policy,
				      struct ss_request *rq, u64 now_ns)
{
	if (policy->inner->ops->completed)
		policy->inner->ops->completed(policy->inner, rq, now_ns);
}

static inline void ss_inner_merged(struct ss_policy *policy,
				   struct ss_request *rq, u64 old_sector,
				   u64 now_ns)
{
	if (policy->inner->ops->merged)
		policy->inner->ops->merged(policy->inner, rq, old_sector,
					   now_ns);
}

static inline void ss_inner_joins(struct ss_policy *policy,
				  struct ss_request *rq,
				  const struct ss_request *next)
{
	if (policy->inner->ops->joins)
		policy->inner->ops->joins(policy->inner, rq, next);
}

static inline struct ss_request *ss_inner_expired(
	const struct ss_policy *policy, u64 now_ns)
{
	const struct ss_policy *inner = policy->inner;

	return inner->ops->overdue ? inner->ops->overdue(inner, now_ns) : NULL;
}

/* When to ask again because a request may have expired by then. */
static inline u64 ss_inner_next_expiry(const struct ss_policy *policy,
				       u64 now_ns)
{
	const struct ss_policy *inner = policy->inner;
	u64 next_ns = SS_FOREVER;

	if (inner->ops->next_expiry)
		next_ns = inner->ops->next_expiry(inner);
	/* One that need not go although it has expired ends no wait. */
	return next_ns > now_ns ? next_ns : SS_FOREVER;
}

static inline void ss_inner_owner_gone(struct ss_policy *policy, u64 owner,
				       u64 now_ns)
{
	if (policy->inner->ops->owner_gone)
		policy->inner->ops->owner_gone(policy->inner, owner, now_ns);
}

#endif
