// SPDX-License-Identifier: GPL-2.0-only
/*
 * stride: of the owners with pending requests, the one with the least pass
 * goes; a request moves its owner's pass on by its length over the weight.
 *
 * Waldspurger and Weihl, "Stride Scheduling: Deterministic Proportional-Share
 * Resource Management", MIT/LCS/TM-528, 1995. A request is a quantum, charged
 * by its length. Where theirs keeps what a client owed when it left, here an
 * owner that comes back has its old pass, or that of the last one served if
 * that is more.
 */
#include "shares.h"

static void stride_init(struct ss_policy *policy)
{
	ss_shares_init(policy->state, false);
}

const struct ss_policy_ops ss_stride_ops = {
	.name = "stride",
	.help = "shares by weight, the least pass first (Waldspurger and Weihl, 1995)",
	.flags = SS_WORK_CONSERVING | SS_USES_OWNER,
	.state_bytes = sizeof(struct shares),
	.init = stride_init,
	SS_SHARES_CALLS,
};
