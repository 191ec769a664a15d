/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One row per tunable. Command line, sysfs, plugin parameters and the
 * documentation's table are all made from these rows.
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
	/* A word that stands for a value, such as "auto"; NULL if none. */
	const char *word;
	u64 word_value;
	bool word_serves; /* it is the default where programs wait; see below */
	const char *help; /* one sentence, with the source */
};

/*
 * The default of a host that serves programs, as the kernel and the block
 * server do. Not the paper's slice: how long programs may wait is what
 * wait_target says. The simulator has the paper's (.initial).
 */
static inline u64 ss_tunable_serving(const struct ss_tunable *row)
{
	return row->word_serves ? row->word_value : row->initial;
}

#define SS_USEC 1000ULL
#define SS_MSEC 1000000ULL
#define SS_SEC 1000000000ULL

#endif
