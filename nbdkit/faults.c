// SPDX-License-Identifier: GPL-2.0-only
/* See faults.h. */
#include "config.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FAULTS 32
#define MAX_DELAY_MS 3600000

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

/* A whole number up to @most, with @after behind it. */
static bool parse_upto(const char *text, u64 most, const char *after,
		       u64 *number)
{
	return parse_whole(&text, number) && !strcmp(text, after) &&
	       *number <= most;
}

static bool parse_effect(struct fault *fault, const char *text)
{
	u64 ms;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (!strcmp(text, errors[i].name)) {
			fault->error = errors[i].error;
			return true;
		}
	if (!strcmp(text, "short")) {
		fault->is_short = true;
		return true;
	}
	if (!parse_upto(text, MAX_DELAY_MS, "ms", &ms))
		return false;
	fault->delay_ns = ms * SS_MSEC;
	return true;
}

static bool parse_range(struct fault *fault, char *text)
{
	char *begin = strsep(&text, "-");

	return text && parse_upto(begin, U64_MAX, "", &fault->begin) &&
	       parse_upto(text, U64_MAX, "", &fault->end) &&
	       fault->begin < fault->end;
}

static bool parse(struct fault *fault, char *rule)
{
	char *op, *effect, *rest = rule;
	u64 member;
	u32 i;

	if (!parse_upto(strsep(&rest, ":"), U32_MAX, "", &member))
		return false;
	fault->member = (u32)member;
	op = strsep(&rest, ":");
	effect = strsep(&rest, ":");
	if (!op || !effect || !parse_effect(fault, effect))
		return false;
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		if (!strcmp(op, ops[i].name))
			fault->ops = ops[i].ops;
	fault->end = U64_MAX;
	if (rest && !parse_range(fault, rest))
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
			"fault=%s: must be MEMBER:read|write|flush|any:EIO|ENOSPC|ENXIO|EPERM|ENOMEM|ESHUTDOWN|short|<N>ms[:BEGIN-END] with N from 0 to %d and BEGIN below END, as in fault=0:read:EIO:4096-8192",
			rule, MAX_DELAY_MS);
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
