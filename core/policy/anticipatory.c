// SPDX-License-Identifier: GPL-2.0-only
/*
 * anticipatory: Linux 2.6.31's anticipatory scheduler, by processes alone. It
 * is all in anticipation.c.
 */
#include "anticipation.h"

const struct ss_policy_ops ss_anticipatory_ops = {
	.name = "anticipatory",
	.help = "waits after a read for its process's next one (Linux 2.6.31)",
	.flags = SS_USES_OWNER,
	.state_bytes = sizeof(struct as_state),
	.tunables = ss_as_tunables,
	.nr_tunables = AS_TUNABLES,
	.init = ss_as_init,
	SS_AS_CALLS,
};
