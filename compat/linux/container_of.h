/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for <linux/container_of.h>. */
#ifndef COMPAT_LINUX_CONTAINER_OF_H
#define COMPAT_LINUX_CONTAINER_OF_H

#include <stddef.h>

/* The structure of type @type whose field @member is at @ptr. */
#define container_of(ptr, type, member)                                        \
	((type *)((char *)(ptr) - offsetof(type, member)))

#endif
