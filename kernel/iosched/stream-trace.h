/* SPDX-License-Identifier: GPL-2.0-only */
/* The scheduler's tracepoints: events/stream/ in tracefs. */
/* clang-format off */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM stream

#if !defined(STREAM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define STREAM_TRACE_H

#include <linux/math64.h>
#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(stream_event,
	TP_PROTO(dev_t dev, u64 sector, u32 size),
	TP_ARGS(dev, sector, size),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, sector)
		__field(u32, size)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->sector = sector;
		__entry->size = size;
	),
	TP_printk("%d,%d end=%llu members=%u",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->sector, __entry->size)
);

#define DEFINE_STREAM_EVENT(name) \
DEFINE_EVENT(stream_event, name, \
	TP_PROTO(dev_t dev, u64 sector, u32 size), \
	TP_ARGS(dev, sector, size))

/* A stream has become long enough to be waited for. */
DEFINE_STREAM_EVENT(stream_established);

/* The disk is kept idle for the stream's next request, others are pending. */
DEFINE_STREAM_EVENT(stream_held);

/* The request that the disk was kept idle for came. */
DEFINE_STREAM_EVENT(stream_hit);

/* It did not come in time. */
DEFINE_STREAM_EVENT(stream_timed_out);

/* The stream's slice is over, others go on. */
DEFINE_STREAM_EVENT(stream_slice_ended);

/*
 * A request goes to the driver: how long it has waited, why it is next, and
 * whose it is, by the numbers of parties in debugfs.
 */
TRACE_EVENT(stream_choose,
	TP_PROTO(dev_t dev, u64 sector, u32 nr_sectors, u64 waited_ns,
		 const char *why, const char *class, s32 party),
	TP_ARGS(dev, sector, nr_sectors, waited_ns, why, class, party),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, sector)
		__field(u32, nr_sectors)
		__field(u64, waited_us)
		__array(char, why, 8)
		__array(char, class, 8)
		__field(s32, party)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->sector = sector;
		__entry->nr_sectors = nr_sectors;
		__entry->waited_us = div_u64(waited_ns, 1000);
		strscpy(__entry->why, why, sizeof(__entry->why));
		strscpy(__entry->class, class, sizeof(__entry->class));
		__entry->party = party;
	),
	TP_printk("%d,%d sector=%llu sectors=%u waited_us=%llu why=%s class=%s party=%d",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->sector, __entry->nr_sectors,
		  __entry->waited_us, __entry->why, __entry->class,
		  __entry->party)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE stream-trace
#include <trace/define_trace.h>
