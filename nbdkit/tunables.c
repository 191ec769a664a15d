// SPDX-License-Identifier: GPL-2.0-only
/* The tunables of the policies, as parameters. */
#include "config.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TUNED 64

static struct {
	const struct ss_policy_ops *ops;
	const struct ss_tunable *row;
	u64 value;
} tuned[MAX_TUNED];
static u32 nr_tuned;

static const struct {
	const char *name;
	enum ss_unit unit;
	u64 value;
} units[] = {
	{ "ns", SS_UNIT_NS, 1 },       { "us", SS_UNIT_NS, SS_USEC },
	{ "ms", SS_UNIT_NS, SS_MSEC }, { "s", SS_UNIT_NS, SS_SEC },
	{ "%", SS_UNIT_PERCENT, 1 },   { "sectors", SS_UNIT_SECTORS, 1 },
};

/* As parse_value() reads it back. */
static void show_value(const struct ss_tunable *row, u64 value, char *text,
		       size_t bytes)
{
	u64 scale = 1;
	const char *unit = "";
	u32 i;

	if (row->unit == SS_UNIT_BOOL) {
		snprintf(text, bytes, "%s", value ? "on" : "off");
		return;
	}
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].unit == row->unit && value % units[i].value == 0) {
			scale = units[i].value;
			unit = units[i].name;
		}
	if (!value && row->unit == SS_UNIT_NS) {
		scale = 1;
		unit = "ns";
	}
	snprintf(text, bytes, "%lu%s", value / scale, unit);
}

static bool parse_value(const struct ss_tunable *row, const char *text,
			u64 *value)
{
	char *end;
	u32 i;

	if (row->unit == SS_UNIT_BOOL) {
		*value = !strcmp(text, "on") || !strcmp(text, "1");
		return *value || !strcmp(text, "off") || !strcmp(text, "0");
	}
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno || end == text || !isdigit(*text))
		return false;
	/* What has a unit must say it, but nothing is 0 in every unit. */
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].unit == row->unit && !strcmp(end, units[i].name) &&
		    *value <= U64_MAX / units[i].value) {
			*value *= units[i].value;
			break;
		}
	if (i == ARRAY_SIZE(units) &&
	    (*end || (row->unit != SS_UNIT_NONE && *value)))
		return false;
	return *value >= row->min && *value <= row->max;
}

/* What a bare number lacks, as a list; empty where it lacks nothing. */
static void show_units(const struct ss_tunable *row, const char *text,
		       char *list, size_t bytes)
{
	size_t used = 0;
	u32 i;

	*list = 0;
	if (!*text || text[strspn(text, "0123456789")])
		return;
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].unit == row->unit)
			used += snprintf(list + used, bytes - used, "%s%s",
					 used ? ", " : "", units[i].name);
}

int set_tunable(const struct ss_policy_ops *ops, const struct ss_tunable *row,
		const char *text)
{
	char least[32], most[32], wanted[32];
	u64 value;

	if (!parse_value(row, text, &value)) {
		show_value(row, row->min, least, sizeof(least));
		show_value(row, row->max, most, sizeof(most));
		/* 500 is within 10ms to 60s, some would say. */
		show_units(row, text, wanted, sizeof(wanted));
		nbdkit_error("%s=%s: %s%s%smust be within %s to %s", row->name,
			     text, *wanted ? "has no unit (" : "", wanted,
			     *wanted ? "); " : "", least, most);
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

			show_value(row, row->initial, text, sizeof(text));
			show_value(row, row->min, least, sizeof(least));
			show_value(row, row->max, most, sizeof(most));
			printf("streamsched_tunable_%s_%s=%s (%s to %s): %s\n",
			       ops->name, row->name, text, least, most,
			       row->help);
		}
	}
}
