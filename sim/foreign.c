// SPDX-License-Identifier: GPL-2.0-only
/* A policy in another language: see foreign.h. */
#include "foreign.h"

#include "../core/sched.h"
#include "clock.h"

struct foreign_state {
	struct sim_foreign *foreign;
	struct sim_clock *clock;
};

static u64 number_of(const struct ss_request *rq)
{
	return (u64)(uintptr_t)rq;
}

static void failed(struct foreign_state *state)
{
	state->foreign->failed = true;
	if (state->clock && !state->clock->failed)
		sim_fail(state->clock, "the policy failed");
}

/* Call it, unless an earlier call has failed. */
#define tell(state, event, ...)                                                \
	do {                                                                   \
		if (!(state)->foreign->failed && (state)->foreign->event &&    \
		    (state)->foreign->event((state)->foreign->context,         \
					    __VA_ARGS__))                      \
			failed(state);                                         \
	} while (0)

static void foreign_init(struct ss_policy *policy)
{
	(void)policy;
}

static void foreign_arrived(struct ss_policy *policy, struct ss_request *rq,
			    u64 now_ns)
{
	struct foreign_state *state = policy->state;

	tell(state, arrived, number_of(rq), rq->sector, rq->nr_sectors,
	     rq->direction == SS_WRITE, ss_request_is_awaited(rq), rq->owner,
	     rq->arrival_ns, now_ns);
}

static struct ss_decision foreign_choose(const struct ss_policy *policy,
					 u64 now_ns,
					 const struct ss_request *skip)
{
	struct foreign_state *state = policy->state;
	struct sim_foreign *foreign = state->foreign;
	u64 answer = SS_FOREVER;
	int verdict;

	(void)skip; /* only for what is wrapped */
	if (foreign->failed)
		return ss_wait(SS_FOREVER);
	verdict = foreign->choose(foreign->context, now_ns,
				  policy->sched->head_sector, &answer);
	if (verdict == SS_DISPATCH)
		return ss_dispatch((struct ss_request *)(uintptr_t)answer);
	if (verdict < 0)
		failed(state);
	if (!policy->sched->nr_in_flight) {
		if (!foreign->held_from_ns)
			foreign->held_from_ns = now_ns + 1;
		foreign->held_until_ns = answer;
	}
	return ss_wait(answer);
}

/* Whom it has waited for is not said: a hit is any request that came since. */
static void end_wait(const struct ss_policy *policy,
		     const struct ss_request *rq, u64 now_ns)
{
	const struct foreign_state *state = policy->state;
	struct sim_foreign *foreign = state->foreign;
	struct ss_counters *counters = &policy->sched->counters;

	if (!foreign->held_from_ns)
		return;
	counters->waits++;
	if (rq->arrival_ns >= foreign->held_from_ns)
		counters->hits++;
	else if (now_ns >= foreign->held_until_ns)
		counters->timeouts++;
	foreign->held_from_ns = 0;
}

static void foreign_dispatched(struct ss_policy *policy, struct ss_request *rq,
			       u64 now_ns)
{
	struct foreign_state *state = policy->state;

	end_wait(policy, rq, now_ns);
	tell(state, dispatched, number_of(rq), now_ns);
}

static void foreign_completed(struct ss_policy *policy, struct ss_request *rq,
			      u64 now_ns)
{
	struct foreign_state *state = policy->state;

	tell(state, completed, number_of(rq), now_ns);
}

static void foreign_merged(struct ss_policy *policy, struct ss_request *rq,
			   u64 old_sector, u64 now_ns)
{
	struct foreign_state *state = policy->state;

	(void)old_sector; /* it knows where the request was */
	tell(state, merged, number_of(rq), rq->sector, rq->nr_sectors, now_ns);
}

static void foreign_joins(struct ss_policy *policy, struct ss_request *rq,
			  const struct ss_request *next)
{
	struct foreign_state *state = policy->state;

	tell(state, joins, number_of(rq), number_of(next), rq->arrival_ns);
}

static void foreign_removed(struct ss_policy *policy, struct ss_request *rq,
			    u64 now_ns)
{
	struct foreign_state *state = policy->state;

	tell(state, removed, number_of(rq), now_ns);
}

static const struct ss_policy_ops foreign_ops = {
	.name = "foreign",
	.help = "a policy in another language",
	.state_bytes = sizeof(struct foreign_state),
	.init = foreign_init,
	.arrived = foreign_arrived,
	.choose = foreign_choose,
	.dispatched = foreign_dispatched,
	.completed = foreign_completed,
	.merged = foreign_merged,
	.joins = foreign_joins,
	.removed = foreign_removed,
};

void sim_foreign_begin(struct ss_sched *sched, struct sim_foreign *foreign,
		       struct sim_clock *clock)
{
	struct ss_policy *policy = &sched->policy[0];
	struct foreign_state *state = policy->state;

	policy->ops = &foreign_ops;
	*state = (struct foreign_state){ .foreign = foreign, .clock = clock };
}
