/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for <linux/types.h>.
 *
 * The compat headers exist so that core/ and disk/ compile unchanged outside
 * the kernel. Each offers only what those two folders use, under the kernel's
 * names and with the kernel's documented meaning.
 */
#ifndef COMPAT_LINUX_TYPES_H
#define COMPAT_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

/* A list node: see <linux/list.h>. */
struct list_head {
	struct list_head *next, *prev;
};

/* A list whose head is one pointer, for hash tables: see <linux/list.h>. */
struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

#endif
