// SPDX-License-Identifier: GPL-2.0-only
/* What compat.h has to find out in the kernel that it is loaded into. */
#define COMPAT_SCHEDULER
#include "compat.h"

#include <linux/string.h>
#include <linux/tracepoint.h>

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

#ifdef CONFIG_TRACEPOINTS
struct compat_search {
	const char *event;
	struct tracepoint *found;
};

static void compat_look_at(struct tracepoint *point, void *data)
{
	struct compat_search *search = data;

	if (!strcmp(point->name, search->event))
		search->found = point;
}

int compat_trace(const char *event, void *probe, bool listen)
{
	struct compat_search search = { .event = event };

	for_each_kernel_tracepoint(compat_look_at, &search);
	if (!search.found)
		return -ENOENT;
	return listen ? tracepoint_probe_register(search.found, probe, NULL) :
			tracepoint_probe_unregister(search.found, probe, NULL);
}
#else
int compat_trace(const char *event, void *probe, bool listen)
{
	return -EOPNOTSUPP;
}
#endif
