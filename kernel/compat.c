// SPDX-License-Identifier: GPL-2.0-only
/* What compat.h has to find out when the scheduler is loaded. */
#define COMPAT_SCHEDULER
#include "compat.h"

bool compat_shallow_is_total;

int compat_init(void)
{
	const u32 word_shift = 3, word = 1 << word_shift;
	u32 taken = 0;
	struct sbitmap_queue sbq;
	int ret;

	/* Of two words, how many bits may be taken when a word's is said? */
	ret = sbitmap_queue_init_node(&sbq, 2 * word, word_shift, false,
				      GFP_KERNEL, NUMA_NO_NODE);
	if (ret)
		return ret;
	sbitmap_queue_min_shallow_depth(&sbq, word);
	while (taken < 2 * word && sbitmap_queue_get_shallow(&sbq, word) >= 0)
		taken++;
	compat_shallow_is_total = taken < 2 * word;
	sbitmap_queue_free(&sbq);
	return 0;
}
