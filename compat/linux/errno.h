/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for <linux/errno.h>. libc's own <errno.h> includes this
 * name to get the numbers, so they must come from where libc has them.
 */
#ifndef COMPAT_LINUX_ERRNO_H
#define COMPAT_LINUX_ERRNO_H

#include <asm/errno.h>

#endif
