/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What md's stripe cache holds of RAID 5 and 6. A stripe is a page at the same
 * place of each member (drivers/md/raid5.h, struct stripe_head); of those that
 * were used last the cache keeps as many as stripe_cache_size says.
 */
#ifndef SIM_STRIPES_H
#define SIM_STRIPES_H

#include "common.h"

struct sim_stripes;

/* Room for @size stripes, at least 1. */
struct sim_stripes *sim_stripes_new(u32 size);
void sim_stripes_free(struct sim_stripes *stripes);
/* The members whose page at @sector is here, as bits. */
u32 sim_stripes_have(const struct sim_stripes *stripes, u64 sector);
/*
 * The pages from @sector on, @length sectors, of @members are known now. Both
 * are whole pages.
 */
void sim_stripes_keep(struct sim_stripes *stripes, u64 sector, u64 length,
		      u32 members);

#endif
