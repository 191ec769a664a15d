/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for <linux/kernel.h>: what the kernel gathers there. */
#ifndef COMPAT_LINUX_KERNEL_H
#define COMPAT_LINUX_KERNEL_H

#include <linux/container_of.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define likely(cond) __builtin_expect(!!(cond), 1)
#define unlikely(cond) __builtin_expect(!!(cond), 0)
#define noinline __attribute__((__noinline__))

#endif
