/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Injected faults: requests that a rule hits fail, come back short or take
 * longer, so that clients and this server can be tried against bad disks.
 */
#ifndef NBDKIT_FAULTS_H
#define NBDKIT_FAULTS_H

#include <linux/types.h>

enum fault_op { FAULT_READ, FAULT_WRITE, FAULT_FLUSH };

struct fault {
	u32 member;
	u32 ops; /* bits of enum fault_op */
	int error; /* an errno, or 0 */
	bool is_short; /* half of what was asked for, then nothing */
	u64 delay_ns;
	u64 begin, end; /* bytes of the member; of flushes: their number */
};

/* Add "MEMBER:OP:EFFECT[:BEGIN-END]"; 0, or -1 after nbdkit_error(). */
int fault_add(const char *rule);
/* The first rule that hits, or NULL. */
const struct fault *fault_find(u32 member, enum fault_op op, u64 offset,
			       u64 bytes);
/* No rule is for a member from @nr_members on; 0, or -1. */
int fault_check(u32 nr_members);

#endif
