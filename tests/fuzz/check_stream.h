/* SPDX-License-Identifier: GPL-2.0-only */
/* What must hold within the policy stream after each event. */
#ifndef FUZZ_CHECK_STREAM_H
#define FUZZ_CHECK_STREAM_H

#include "../../core/sched.h"

/*
 * Sums of counts and weights, the order of who is due, one turn, whose each
 * pending request is. Nothing where @sched has another policy.
 */
void check_stream(const struct ss_sched *sched);

/* Head time that is charged to parties so far; 0 with another policy. */
u64 stream_charged_ns(const struct ss_sched *sched);

#endif
