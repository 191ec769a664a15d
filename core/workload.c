// SPDX-License-Identifier: GPL-2.0-only
/* What a workload looks like. See workload.h. */
#include "workload.h"
#include "request.h"

#include <linux/string.h>

void ss_workload_init(struct ss_workload *workload, u64 span_sectors)
{
	memset(workload, 0, sizeof(*workload));
	workload->near_sectors = span_sectors >> SS_WORKLOAD_NEAR_SHIFT;
}

/* The recent request that one at @sector continues, else the nearest one. */
static u32 nearest(const struct ss_workload *workload, u64 sector,
		   u64 *distance, bool *continues)
{
	u32 i, found = 0;

	*distance = ~0ULL;
	*continues = false;
	for (i = 0; i < workload->nr_recent; i++) {
		u64 end = workload->end_sector[i];
		u64 gap = sector < end ? end - sector : sector - end;

		if (gap >= *distance)
			continue;
		*distance = gap;
		found = i;
		*continues = sector >= end && gap <= SS_WORKLOAD_GAP_SECTORS;
	}
	return found;
}

static void remember(struct ss_workload *workload, u64 end_sector)
{
	u32 place = workload->oldest;

	if (workload->nr_recent < SS_WORKLOAD_RECENT)
		place = workload->nr_recent++;
	else
		workload->oldest = (place + 1) % SS_WORKLOAD_RECENT;
	workload->end_sector[place] = end_sector;
}

void ss_workload_arrived(struct ss_workload *workload, u64 sector,
			 u32 nr_sectors, u8 direction, bool sync)
{
	struct ss_workload_totals *totals = &workload->totals;
	u64 distance;
	bool continues;
	u32 found = nearest(workload, sector, &distance, &continues);

	totals->requests++;
	totals->sectors += nr_sectors;
	totals->reads += direction == SS_READ;
	totals->sync += sync;
	totals->continuing += continues;
	totals->near += continues || distance <= workload->near_sectors;
	if (continues)
		workload->end_sector[found] = sector + nr_sectors;
	else
		remember(workload, sector + nr_sectors);
}
