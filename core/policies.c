// SPDX-License-Identifier: GPL-2.0-only
/* The list of policies. Adding one: its file, and a line here. */
#include "policies.h"

#include <linux/kernel.h>
#include <linux/string.h>

const struct ss_policy_ops *const ss_policies[] = {
	/* clang-format off */
	&ss_noop_ops,
	&ss_deadline_ops,
	&ss_cscan_ops,
	&ss_sptf_ops,
	&ss_linus_ops,
	&ss_stride_ops,
	&ss_wfq_ops,
	&ss_anticipatory_ops,
	&ss_cooperative_ops,
	&ss_cfq_ops,
	&ss_nwcs_ops,
	&ss_ss_ops,
	&ss_stream_ops,
	/* clang-format on */
};

const u32 ss_nr_policies = ARRAY_SIZE(ss_policies);

#ifndef SS_MAINLINE
_Static_assert(SS_WHY_ARRAY + 1 == SS_WHYS, "as many as there are");
#endif

const char *const ss_why_name[SS_WHYS] = {
	[SS_WHY_ORDER] = "order",   [SS_WHY_OWN] = "own",
	[SS_WHY_ANSWER] = "answer", [SS_WHY_OLDEST] = "oldest",
	[SS_WHY_LIGHT] = "light",   [SS_WHY_BACK] = "back",
	[SS_WHY_INNER] = "inner",   [SS_WHY_PAUSE] = "pause",
	[SS_WHY_DRAIN] = "drain",
#ifndef SS_MAINLINE
	[SS_WHY_ARRAY] = "array",
#endif
};

const char *ss_policy_replaced(const struct ss_policy_ops *ops,
			       const char *name)
{
	const struct ss_replaced *old = ops->replaced;

	for (; old && old->name; old++)
		if (!strcmp(old->name, name))
			return old->by;
	return NULL;
}
