/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy that is not of the core: written in another language, it is told of
 * events and asked by the calls of struct sim_foreign. core/ knows nothing of
 * it: to the scheduler it is a table of calls like any other policy's.
 */
#ifndef SIM_FOREIGN_H
#define SIM_FOREIGN_H

#include "../core/policy.h"

struct sim_clock;

/*
 * The calls are those of struct ss_policy_ops. @rq is a number that is the
 * same for a request from its arrival to its completion, never 0. Each returns
 * 0, or something else if it failed: then the simulation fails, and nothing is
 * called any more.
 */
struct sim_foreign {
	void *context; /* the first argument of each */
	int (*arrived)(void *context, u64 rq, u64 sector, u32 nr_sectors,
		       bool write, bool sync, u64 owner, u64 arrival_ns,
		       u64 now_ns);
	/*
	 * With requests pending. An enum ss_verdict, or less than 0 if it
	 * failed; of SS_DISPATCH the request, of SS_WAIT the time in *@answer.
	 */
	int (*choose)(void *context, u64 now_ns, u64 head_sector, u64 *answer);
	int (*dispatched)(void *context, u64 rq, u64 now_ns);
	int (*completed)(void *context, u64 rq, u64 now_ns); /* optional */
	int (*merged)(void *context, u64 rq, u64 sector, u32 nr_sectors,
		      u64 now_ns);
	/* @rq is as old as @arrival_ns now; @next is removed next. */
	int (*joins)(void *context, u64 rq, u64 next, u64 arrival_ns);
	int (*removed)(void *context, u64 rq, u64 now_ns);

	/* foreign.c's own: a scheduler's memory changes with events only. */
	bool failed;
	u64 held_from_ns; /* the idle disk waits since then, plus 1; 0: no */
	u64 held_until_ns;
};

/*
 * @sched, which has begun with any other policy that wraps none, and has been
 * told of nothing, has this one instead. What @foreign points to must last as
 * long. The simulation of @clock, if not NULL, fails when a call does.
 */
void sim_foreign_begin(struct ss_sched *sched, struct sim_foreign *foreign,
		       struct sim_clock *clock);

#endif
