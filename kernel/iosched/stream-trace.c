// SPDX-License-Identifier: GPL-2.0-only
/* stream: what its schedulers do, as the events of stream-trace.h. */
#include "stream-iosched.h"

#include <linux/blkdev.h>

#define CREATE_TRACE_POINTS
#include "stream-trace.h"

static void tell(struct ss_sched *sched, enum ss_event event, u64 sector,
		 u32 size)
{
	const struct iosched_data *io = sched->host;
	dev_t dev = io->queue->disk ? disk_devt(io->queue->disk) : 0;

	switch (event) {
	case SS_EVENT_ESTABLISHED:
		trace_stream_established(dev, sector, size);
		break;
	case SS_EVENT_HELD:
		trace_stream_held(dev, sector, size);
		break;
	case SS_EVENT_HIT:
		trace_stream_hit(dev, sector, size);
		break;
	case SS_EVENT_TIMEOUT:
		trace_stream_timed_out(dev, sector, size);
		break;
	case SS_EVENT_SLICE_ENDED:
		trace_stream_slice_ended(dev, sector, size);
		break;
	}
}

static void chosen(struct ss_sched *sched, const struct ss_request *rq,
		   enum ss_why why)
{
	const struct iosched_data *io = sched->host;
	dev_t dev = io->queue->disk ? disk_devt(io->queue->disk) : 0;

	/* Finding the party takes time: only if somebody reads the event. */
	if (!trace_stream_choose_enabled())
		return;
	trace_stream_choose(dev, rq->sector, rq->nr_sectors,
			    rq->dispatch_ns - rq->arrival_ns, ss_why_name[why],
			    iosched_name_of(io, sched),
			    ss_sched_index_of(sched, rq));
}

void stream_trace(struct ss_sched *sched)
{
	sched->tell = tell;
	sched->chosen = chosen;
}
