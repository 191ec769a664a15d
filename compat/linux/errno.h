/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for <linux/errno.h>: libc's numbers are the kernel's. */
#ifndef COMPAT_LINUX_ERRNO_H
#define COMPAT_LINUX_ERRNO_H

#include <errno.h>

#endif
