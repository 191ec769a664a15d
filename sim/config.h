/* SPDX-License-Identifier: GPL-2.0-only */
/* What is simulated: all but the disks themselves and who uses them. */
#ifndef SIM_CONFIG_H
#define SIM_CONFIG_H

#include <linux/types.h>

/* How owners are shown to the scheduler. */
enum sim_owners {
	SIM_OWNERS_PROCESS, /* each process its own */
	SIM_OWNERS_GROUP, /* one per group, as a host sees its VMs */
	SIM_OWNERS_NONE, /* all the same unknown one */
};

#define SIM_MAX_TRACES 256
/* Of several traces a number stands above its owners, pids of up to 22 bits. */
#define SIM_OWNER_BITS 24

struct sim_config {
	char policy[64]; /* "stream:deadline" */
	u32 owners; /* enum sim_owners */
	u32 queue_depth; /* of the device, 1..32 */
	u32 nr_requests; /* the scheduler's, as in Linux */
	u32 max_request_sectors; /* merging stops there */
	u64 cache_bytes; /* page cache */
	u32 dirty_pct; /* of it: with more dirty, writers sleep */
	u32 readahead_pages; /* largest window, 4 KiB pages; 0: no readahead */
	u64 page_copy_ns; /* CPU time for one page of a buffered read */
	u64 wake_ns; /* from a completion until its sender runs again */
	bool wrap; /* fold trace positions beyond the disk */
	bool closed; /* replay by dependency, not by time stamp */
	bool one_owner; /* replay only the requests of this owner: */
	u64 the_owner;
	u64 stop_ns; /* end of the world, 0: none */
};

#define SIM_NO_MEMBER 0xffffffffU

/* How disks are put together; see core/array/geometry.h. */
struct sim_array_config {
	u32 level; /* enum ss_array_level */
	u32 layout; /* enum ss_array_layout; of RAID 5, 6 and 10 */
	u32 chunk_sectors;
	u32 stripes; /* of RAID 5 and 6: md's stripe_cache_size, at least 1 */
	bool coordinated; /* members under stream help each other */
	u32 failed_member; /* SIM_NO_MEMBER: none fails */
	u64 fail_at_ns; /* 0: it is missing from the start */
};

#endif
