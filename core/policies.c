// SPDX-License-Identifier: GPL-2.0-only
/* The list of policies. Adding one: its file, and a line here. */
#include "policies.h"

#include <linux/kernel.h>

const struct ss_policy_ops *const ss_policies[] = {
	&ss_noop_ops,	&ss_deadline_ops,     &ss_cscan_ops,
	&ss_sptf_ops,	&ss_linus_ops,	      &ss_stride_ops,
	&ss_wfq_ops,	&ss_anticipatory_ops, &ss_cooperative_ops,
	&ss_cfq_ops,	&ss_nwcs_ops,	      &ss_ss_ops,
	&ss_stream_ops, &ss_turns_ops,
};

const u32 ss_nr_policies = ARRAY_SIZE(ss_policies);
