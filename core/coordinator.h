/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a scheduler tells, and asks, whoever coordinates it with others.
 *
 * ss_sched_*() call these, if there is a coordinator, with the calls'
 * own serialisation: one at a time for each scheduler.
 */
#ifndef SS_COORDINATOR_H
#define SS_COORDINATOR_H

#include "policy.h"

struct ss_coordinator;

struct ss_coordinator_ops {
	/* Events, after the policy was told; but dispatched before it is. */
	void (*arrived)(struct ss_coordinator *coordinator,
			struct ss_request *rq, u64 now_ns);
	void (*dispatched)(struct ss_coordinator *coordinator,
			   struct ss_request *rq, u64 now_ns);
	void (*completed)(struct ss_coordinator *coordinator,
			  struct ss_request *rq, u64 now_ns);
	void (*merged)(struct ss_coordinator *coordinator,
		       struct ss_request *rq, u64 now_ns);
	void (*removed)(struct ss_coordinator *coordinator,
			struct ss_request *rq, u64 now_ns);
	/* A flush of the cache begins, or has ended. */
	void (*flushes)(struct ss_coordinator *coordinator, bool begins,
			u64 now_ns);
	/*
	 * Before the policy is asked: true and the answer in @decision, or
	 * false when the policy shall decide. As often as it is asked at one
	 * time the answer is the same.
	 */
	bool (*choose)(const struct ss_coordinator *coordinator, u64 now_ns,
		       struct ss_decision *decision);
};

struct ss_coordinator {
	const struct ss_coordinator_ops *ops;
};

#endif
