// SPDX-License-Identifier: GPL-2.0-only
/*
 * wfq: weighted fair queueing. Of the owners with pending requests, the one
 * goes whose next request would be finished first if all were served at once,
 * each at a rate in proportion to its weight.
 *
 * Demers, Keshav and Shenker, SIGCOMM 1989. Their virtual time would need the
 * disk's speed; here it is the start tag of the request last sent, as in
 * Goyal, Vin and Cheng, "Start-Time Fair Queuing", SIGCOMM 1996.
 */
#include "shares.h"

static void wfq_init(struct ss_policy *policy)
{
	ss_shares_init(policy->state, true);
}

const struct ss_policy_ops ss_wfq_ops = {
	.name = "wfq",
	.help = "shares by weight, the least finish time first (weighted fair queueing)",
	.flags = SS_WORK_CONSERVING | SS_USES_OWNER,
	.state_bytes = sizeof(struct shares),
	.init = wfq_init,
	SS_SHARES_CALLS,
};
