// SPDX-License-Identifier: GPL-2.0-only
/* See faults.h. */
#include "server.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FAULTS 32

static struct fault faults[MAX_FAULTS];
static u32 nr_faults;

static const struct {
	const char *name;
	int error;
} errors[] = {
	{ "EIO", EIO },	    { "ENOSPC", ENOSPC }, { "ENXIO", ENXIO },
	{ "EPERM", EPERM }, { "ENOMEM", ENOMEM }, { "ESHUTDOWN", ESHUTDOWN },
};

static const struct {
	const char *name;
	u32 ops;
} ops[] = {
	{ "read", 1 << FAULT_READ },
	{ "write", 1 << FAULT_WRITE },
	{ "flush", 1 << FAULT_FLUSH },
	{ "any", 1 << FAULT_READ | 1 << FAULT_WRITE | 1 << FAULT_FLUSH },
};

static bool parse_effect(struct fault *fault, const char *text)
{
	char tail;
	u32 i, ms;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (!strcmp(text, errors[i].name)) {
			fault->error = errors[i].error;
			return true;
		}
	if (!strcmp(text, "short")) {
		fault->is_short = true;
		return true;
	}
	if (sscanf(text, "%ums%c", &ms, &tail) == 1 && strstr(text, "ms")) {
		fault->delay_ns = ms * SS_MSEC;
		return true;
	}
	return false;
}

static bool parse(struct fault *fault, char *rule)
{
	char *op, *effect, *range, *rest = rule, tail;
	u32 i;

	if (sscanf(strsep(&rest, ":"), "%u%c", &fault->member, &tail) != 1)
		return false;
	op = strsep(&rest, ":");
	effect = strsep(&rest, ":");
	range = rest;
	if (!op || !effect || !parse_effect(fault, effect))
		return false;
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		if (!strcmp(op, ops[i].name))
			fault->ops = ops[i].ops;
	fault->end = U64_MAX;
	if (range && (sscanf(range, "%lu-%lu%c", &fault->begin, &fault->end,
			     &tail) != 2 ||
		      fault->begin >= fault->end))
		return false;
	return fault->ops;
}

int fault_add(const char *rule)
{
	struct fault *fault = &faults[nr_faults];
	char *copy;
	bool good;

	if (nr_faults == MAX_FAULTS) {
		nbdkit_error("fault=%s: there are %d already, the most", rule,
			     MAX_FAULTS);
		return -1;
	}
	copy = strdup(rule);
	good = copy && parse(fault, copy);
	free(copy);
	if (!good) {
		nbdkit_error(
			"fault=%s: must be MEMBER:read|write|flush|any:EIO|ENOSPC|ENXIO|EPERM|ENOMEM|ESHUTDOWN|short|<N>ms[:BEGIN-END], as in fault=0:read:EIO:4096-8192",
			rule);
		return -1;
	}
	nr_faults++;
	return 0;
}

const struct fault *fault_find(u32 member, enum fault_op op, u64 offset,
			       u64 bytes)
{
	u32 i;

	for (i = 0; i < nr_faults; i++) {
		const struct fault *fault = &faults[i];

		if (fault->member == member && (fault->ops & 1U << op) &&
		    offset < fault->end && fault->begin < offset + bytes)
			return fault;
	}
	return NULL;
}

int fault_check(u32 nr_members)
{
	u32 i;

	for (i = 0; i < nr_faults; i++)
		if (faults[i].member >= nr_members) {
			nbdkit_error(
				"fault=%u:...: there is no such member, they are 0 to %u",
				faults[i].member, nr_members - 1);
			return -1;
		}
	return 0;
}
