/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for <linux/string.h>: the functions shared with libc. */
#ifndef COMPAT_LINUX_STRING_H
#define COMPAT_LINUX_STRING_H

#include <string.h>

#endif
