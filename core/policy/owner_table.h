/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who sends requests, for the policies that decide by it.
 *
 * Linux keeps a context per process and per device, made on the first request
 * and freed with the process. Here the places are fixed: a new owner takes
 * the place of the one longest without a request, and when every owner has
 * requests at work (is pinned) the rest share one place. The requests that
 * name no owner stand in that shared place too: they are as one process.
 *
 * The means decay as Linux's do: each sample weighs an eighth, the first ones
 * more, in fixed point with 256 for 1.
 */
#ifndef SS_OWNER_TABLE_H
#define SS_OWNER_TABLE_H

#include "../request.h"

#include <linux/math64.h>

#define SS_OWNERS 128 /* more processes at one disk are rare */
#define SS_OWNER_HASH_BITS 7
#define SS_MEAN_ONE 256

/* Seek samples up to here belong to a process that has only begun. */
#define SS_SEEK_EARLY_SAMPLES 60
/* How much a single seek may stand out of four times the mean, in sectors. */
#define SS_SEEK_EARLY_SECTORS (2 * 1024 * 1024)
#define SS_SEEK_LATER_SECTORS (2 * 1024 * 64)

/* A mean in which old samples fade. */
struct ss_mean {
	u64 total;
	u64 mean;
	u32 samples; /* weight of all samples, 256 = one; 0 = none yet */
};

/* One place of the table; a policy embeds it first in its own structure. */
struct ss_owner {
	u64 id;
	u32 pins; /* reasons why it must stay */
	struct hlist_node hash_node;
	struct list_head idle_node;
};

struct ss_owner_table {
	struct hlist_head hash[1 << SS_OWNER_HASH_BITS];
	struct list_head idle; /* without pins, longest unused first */
	struct ss_owner *shared;
};

static inline void ss_mean_add(struct ss_mean *mean, u64 value)
{
	mean->samples = (7 * mean->samples + SS_MEAN_ONE) / 8;
	mean->total = (7 * mean->total + SS_MEAN_ONE * value) / 8;
	mean->mean = div_u64(mean->total + mean->samples / 2, mean->samples);
}

static inline u64 ss_sectors_between(u64 a, u64 b)
{
	return a < b ? b - a : a - b;
}

/* A seek of @sectors; one that stands out too far counts as less. */
static inline void ss_mean_add_seek(struct ss_mean *mean, u64 sectors)
{
	u64 most = mean->mean * 4 + (mean->samples <= SS_SEEK_EARLY_SAMPLES ?
					     SS_SEEK_EARLY_SECTORS :
					     SS_SEEK_LATER_SECTORS);

	ss_mean_add(mean, sectors < most ? sectors : most);
}

/* @shared is no place of its own and is never given up. */
static inline void ss_owner_table_init(struct ss_owner_table *table,
				       struct ss_owner *shared)
{
	u32 i;

	for (i = 0; i < 1 << SS_OWNER_HASH_BITS; i++)
		table->hash[i].first = NULL;
	INIT_LIST_HEAD(&table->idle);
	INIT_LIST_HEAD(&shared->idle_node);
	INIT_HLIST_NODE(&shared->hash_node);
	shared->id = SS_OWNER_NONE;
	shared->pins = 1;
	table->shared = shared;
}

/* One more place, empty. */
static inline void ss_owner_table_add(struct ss_owner_table *table,
				      struct ss_owner *owner)
{
	owner->id = SS_OWNER_NONE;
	owner->pins = 0;
	INIT_HLIST_NODE(&owner->hash_node);
	list_add_tail(&owner->idle_node, &table->idle);
}

static inline u32 ss_owner_hash(u64 id)
{
	/* Fibonacci hashing: the golden ratio's bits spread regular steps. */
	return (u32)((id * 0x9e3779b97f4a7c15ULL) >> (64 - SS_OWNER_HASH_BITS));
}

/* The place of @id, or NULL when it has none of its own. */
static inline struct ss_owner *ss_owner_find(const struct ss_owner_table *table,
					     u64 id)
{
	struct ss_owner *owner;

	hlist_for_each_entry(owner, &table->hash[ss_owner_hash(id)], hash_node)
		if (owner->id == id)
			return owner;
	return NULL;
}

/* The place of @id; sets *@fresh if it was made and is still to be filled. */
static inline struct ss_owner *ss_owner_get(struct ss_owner_table *table,
					    u64 id, bool *fresh)
{
	struct ss_owner *owner;

	*fresh = false;
	if (id == SS_OWNER_NONE)
		return table->shared;
	owner = ss_owner_find(table, id);
	if (owner)
		return owner;
	if (list_empty(&table->idle))
		return table->shared;
	owner = list_first_entry(&table->idle, struct ss_owner, idle_node);
	hlist_del_init(&owner->hash_node);
	owner->id = id;
	hlist_add_head(&owner->hash_node, &table->hash[ss_owner_hash(id)]);
	*fresh = true;
	return owner;
}

static inline void ss_owner_pin(struct ss_owner *owner)
{
	if (!owner->pins++)
		list_del_init(&owner->idle_node);
}

static inline void ss_owner_unpin(struct ss_owner_table *table,
				  struct ss_owner *owner)
{
	if (!--owner->pins)
		list_add_tail(&owner->idle_node, &table->idle);
}

#endif
