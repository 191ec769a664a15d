// SPDX-License-Identifier: GPL-2.0-only
/* How many the rest are, or one sender is. See senders.h. */
#include "senders.h"
#include "../curve.h"

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

/* So many others are compared with. Half: less sure; double: costs more. */
#define SENDERS_COMPARED 8
/* Means of about so many requests. Half: noisy; double: learns late. */
#define SENDERS_MEMORY 32

static void nearest_mean(u16 *mean, u32 value)
{
	value *= SENDERS_ONE;
	*mean = (u16)((*mean * (SENDERS_MEMORY - 1) + value) / SENDERS_MEMORY);
}

void ss_nearest_arrived(struct ss_nearest *nearest, const struct ss_request *rq,
			const struct list_head *age, const void *whose)
{
	u64 far = ss_distance(nearest->served_sector, rq->sector);
	u32 looked = 0, compared = 0;
	const struct ss_request *other;
	bool first = true;

	if (!nearest->open)
		return;
	nearest->open = false;
	list_for_each_entry(other, age, age_node) {
		if (looked++ == SENDERS_COMPARED)
			break;
		if (whose && other->party != whose && other->sender != whose)
			continue;
		compared++;
		if (ss_distance(ss_request_end(other), rq->sector) <= far)
			first = false;
	}
	if (!compared)
		return;
	nearest_mean(&nearest->before, first ? compared : 0);
	nearest_mean(&nearest->own, first);
}

u32 ss_nearest_percent(const struct ss_nearest *nearest, u32 nr_outstanding)
{
	u32 before = nearest->before, behind = SENDERS_ONE - nearest->own;
	u64 percent;

	if (nr_outstanding < 2)
		return 100;
	/* Of one that has d outstanding it is nearest once in about d times. */
	percent = div_u64((u64)nr_outstanding * before * 100,
			  before + behind * (nr_outstanding - 1));
	return max_t(u32, 100, (u32)min_t(u64, NR_SENDERS * 100, percent));
}
