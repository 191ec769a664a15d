// SPDX-License-Identifier: GPL-2.0-only
/* The tunables of the policies, as parameters. */
#include "config.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_TUNED 64

static struct {
	const struct ss_policy_ops *ops;
	const struct ss_tunable *row;
	u64 value;
} tuned[MAX_TUNED];
static u32 nr_tuned;

int set_tunable(const struct ss_policy_ops *ops, const struct ss_tunable *row,
		const char *text)
{
	char why[160];
	u64 value;
	u32 i;

	for (i = 0; i < nr_tuned; i++)
		if (tuned[i].row == row)
			return refuse_twice(row->name, text);
	if (ss_tunable_parse(row, text, &value, why, sizeof(why))) {
		nbdkit_error("%s=%s: %s", row->name, text, why);
		return -1;
	}
	if (nr_tuned == MAX_TUNED) {
		nbdkit_error("%s=%s: too many tunables", row->name, text);
		return -1;
	}
	tuned[nr_tuned].ops = ops;
	tuned[nr_tuned].row = row;
	tuned[nr_tuned++].value = value;
	return 0;
}

int config_tune(struct ss_sched *sched)
{
	char why[160];
	u32 i;

	for (i = 0; i < nr_tuned; i++) {
		const char *name = tuned[i].row->name;
		int error = ss_sched_tune(sched, name, tuned[i].value, 0, why,
					  sizeof(why));

		if (error == -ENOENT &&
		    !ss_policy_replaced(sched->policy[0].ops, name))
			nbdkit_error(
				"%s: a tunable of %s, which policy=%s does not use",
				name, tuned[i].ops->name, server.config.policy);
		else if (error)
			nbdkit_error("%s", why);
		if (error)
			return -1;
	}
	return 0;
}

void config_dump(void)
{
	char text[64], least[32], most[32];
	u32 i, t;

	for (i = 0; i < ss_nr_policies; i++) {
		const struct ss_policy_ops *ops = ss_policies[i];

		printf("streamsched_policy_%s=%s\n", ops->name, ops->help);
		for (t = 0; t < ops->nr_tunables; t++) {
			const struct ss_tunable *row = &ops->tunables[t];

			ss_tunable_show(row, row->initial, text, sizeof(text));
			ss_tunable_show(row, row->min, least, sizeof(least));
			ss_tunable_show(row, row->max, most, sizeof(most));
			printf("streamsched_tunable_%s_%s=%s (%s to %s): %s\n",
			       ops->name, row->name, text, least, most,
			       row->help);
		}
	}
}
