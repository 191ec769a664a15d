/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for <linux/limits.h>: the widest value of each type.
 * libc's own <limits.h> includes this name too, for PATH_MAX and the like.
 */
#ifndef COMPAT_LINUX_LIMITS_H
#define COMPAT_LINUX_LIMITS_H

#include_next <linux/limits.h>

#include <linux/types.h>

#define U8_MAX ((u8)~0U)
#define U16_MAX ((u16)~0U)
#define U32_MAX ((u32)~0U)
#define U64_MAX ((u64)~0ULL)
#define S32_MAX ((s32)(U32_MAX >> 1))
#define S64_MAX ((s64)(U64_MAX >> 1))
#define S64_MIN ((s64)(-S64_MAX - 1))

#endif
