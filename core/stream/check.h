/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Assertions: what must hold between two events.
 *
 * They cost more than the scheduler itself. So only builds with SS_CHECKS have
 * them: fuzzers, the simulator's debug build and kernels with KASAN. In user
 * space what does not hold ends the program; in the kernel it is a warning.
 */
#ifndef SS_CHECK_H
#define SS_CHECK_H

#include "../policy.h"

#ifdef SS_CHECKS
/*
 * Sums of counts and weights, the order of who is due, one turn, whose each
 * pending request is.
 */
void ss_check(const struct ss_policy *policy);

/* Head time that is charged to parties so far; 0 with another policy. */
u64 ss_check_charged_ns(const struct ss_sched *sched);
#else
#define ss_check NULL
#endif

#endif
