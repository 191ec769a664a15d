// SPDX-License-Identifier: GPL-2.0-only
/* How many the rest are. See senders.h. */
#include "senders.h"
#include "../curve.h"

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

/* So many others are compared with. Half: less sure; double: costs more. */
#define SENDERS_COMPARED 8
/* Means of about so many requests. Half: noisy; double: learns late. */
#define SENDERS_MEMORY 32

void ss_senders_arrived(struct ss_senders *senders, const struct ss_request *rq,
			const struct list_head *age)
{
	u64 far = ss_distance(senders->served_sector, rq->sector);
	u32 compared = 0, own = SENDERS_ONE;
	const struct ss_request *other;

	if (!senders->open)
		return;
	senders->open = false;
	list_for_each_entry(other, age, age_node) {
		if (compared++ == SENDERS_COMPARED)
			break;
		if (ss_distance(ss_request_end(other), rq->sector) <= far)
			own = 0;
	}
	if (compared)
		senders->own = (senders->own * (SENDERS_MEMORY - 1) + own) /
			       SENDERS_MEMORY;
}

u32 ss_senders_percent(const struct ss_senders *senders, u32 nr_outstanding)
{
	u32 others = nr_outstanding - 1, compared, own, chance;

	if (nr_outstanding < 2)
		return 100;
	compared = min_t(u32, others, SENDERS_COMPARED);
	own = senders->own * compared;
	chance = (SENDERS_ONE - senders->own) * others;
	/* Of one that has d outstanding it is nearest once in about d times. */
	return max_t(u32, 100,
		     (u32)min_t(u64, NR_SENDERS * 100,
				div_u64((u64)nr_outstanding * own * 100,
					own + chance)));
}
