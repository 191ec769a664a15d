/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for <linux/bug.h>. A program error found here has no
 * log to go to, so it stops the program with file, line and condition.
 */
#ifndef COMPAT_LINUX_BUG_H
#define COMPAT_LINUX_BUG_H

#include <stdio.h>
#include <stdlib.h>

#define COMPAT_BUG_ON(is, cond)                                                \
	do {                                                                   \
		if (__builtin_expect(is, 0)) {                                 \
			fprintf(stderr, "%s:%d: bug: %s\n", __FILE__,          \
				__LINE__, cond);                               \
			abort();                                               \
		}                                                              \
	} while (0)

#define BUG_ON(cond) COMPAT_BUG_ON(!!(cond), #cond)

/* Like the kernel's, gives back the condition; unlike it, never continues. */
#define WARN_ON_ONCE(cond)                                                     \
	({                                                                     \
		bool warn_cond_ = !!(cond);                                    \
		COMPAT_BUG_ON(warn_cond_, #cond);                              \
		warn_cond_;                                                    \
	})

#endif
