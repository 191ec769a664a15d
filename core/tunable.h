/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One row per tunable. What sets it, shows it and describes it is made from
 * its row: files in sysfs, and wherever else it has a name.
 */
#ifndef SS_TUNABLE_H
#define SS_TUNABLE_H

#include <linux/types.h>

enum ss_unit {
	SS_UNIT_NONE, /* a plain count */
	SS_UNIT_NS, /* a time; written and read with ns, us, ms or s */
	SS_UNIT_PERCENT,
	SS_UNIT_SECTORS, /* 512 bytes each */
	SS_UNIT_BOOL, /* 0 or 1 */
};

struct ss_tunable {
	const char *name;
	enum ss_unit unit;
	u64 initial; /* the default */
	u64 min;
	u64 max;
	const char *help; /* one sentence, with the source */
};

/* A tunable of former versions, and what is to be set instead of it. */
struct ss_replaced {
	const char *name;
	const char *by; /* the rest of a sentence: "... is gone: BY" */
};

#define SS_USEC 1000ULL
#define SS_MSEC 1000000ULL
#define SS_SEC 1000000000ULL

/*
 * The value of @text, as every host reads it: a decimal number, a blank or
 * none, and its unit, in large or small letters: ns, us, ms, s; %; sectors, or
 * bytes as k, m, g (also kib ...). A bool is on, off, yes, no, true, false, 1
 * or 0. What has a unit must say it, but 0 needs none. The value must be whole
 * in @row's unit and within its range. Returns 0, or -EINVAL with the rest of a
 * sentence in @why: "NAME=TEXT: WHY".
 */
int ss_tunable_parse(const struct ss_tunable *row, const char *text, u64 *value,
		     char *why, size_t why_bytes);

/* What ss_tunable_parse() reads back as @value. At most 32 bytes. */
void ss_tunable_show(const struct ss_tunable *row, u64 value, char *text,
		     size_t text_bytes);

#endif
