// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a scheduler is doing, in debugfs, /sys/kernel/debug/block/DISK/sched/.
 *
 * counters, reasons, streams, parents (to be), waits; for people, not for
 * programs: the layout may change.
 */
#include "core-iosched.h"

#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

static void show_counters(struct iosched_data *sd, struct seq_file *m)
{
	bool plain = false, learning = false;

	iosched_for_each_class(sd, class) {
		struct ss_counters counters;
		u32 pending, in_flight;
		unsigned long irq;

		spin_lock_irqsave(&sd->lock, irq);
		counters = class->sched->counters;
		pending = class->sched->nr_pending;
		in_flight = class->sched->nr_in_flight;
		plain = class->sched->nr_policies == 1;
		learning = class->sched->curve.learning;
		spin_unlock_irqrestore(&sd->lock, irq);
		seq_printf(
			m,
			"%s: pending %u in_flight %u arrivals %llu dispatches %llu completions %llu merges %llu removals %llu seeks %llu waits %llu hits %llu timeouts %llu",
			iosched_name_of(sd, class->sched), pending, in_flight,
			counters.arrivals, counters.dispatches,
			counters.completions, counters.merges,
			counters.removals, counters.seeks, counters.waits,
			counters.hits, counters.timeouts);
		seq_printf(m, " second_chances %llu", counters.second_chances);
		seq_printf(m, " slices_ended %llu expired %llu idle_ns %llu\n",
			   counters.slices_ended, counters.expired,
			   counters.idle_ns);
	}
	seq_printf(
		m,
		"aged %llu returned %llu flushes %llu waiting %d plain %d write_depth %u async_depth %u learning %d\n",
		sd->aged, sd->returned, sd->flushes, sd->waiting, plain,
		sd->write_depth, sd->async_depth, learning);
}

/* One line for each stream of the kind that is asked for. */
static void show_streams(struct iosched_data *sd, struct seq_file *m,
			 bool established)
{
	u32 n;

	iosched_for_each_class(sd, class)
		for (n = 0;; n++) {
			struct ss_stream_info info;
			unsigned long irq;
			bool more;

			spin_lock_irqsave(&sd->lock, irq);
			more = ss_sched_stream_at(class->sched, n,
						  iosched_now_ns(), &info);
			spin_unlock_irqrestore(&sd->lock, irq);
			if (!more)
				break;
			if (!info.size || info.established != established)
				continue;
			seq_printf(
				m,
				"%s: party %u kind %s end %llu members %u pending %u paused_us %llu limit_us %llu sent %llu sectors %llu head_us %llu turn %d\n",
				iosched_name_of(sd, class->sched), n, info.kind,
				info.end_sector, info.size, info.nr_pending,
				div_u64(info.paused_ns, 1000),
				div_u64(info.limit_ns, 1000), info.sent,
				info.sent_sectors, div_u64(info.used_ns, 1000),
				info.turn);
		}
}

/* How many requests went for which reason, one line for each class. */
static void show_reasons(struct iosched_data *sd, struct seq_file *m)
{
	u64 by[SS_WHYS];
	int why;

	iosched_for_each_class(sd, class) {
		unsigned long irq;

		spin_lock_irqsave(&sd->lock, irq);
		memcpy(by, class->sched->dispatched_by, sizeof(by));
		spin_unlock_irqrestore(&sd->lock, irq);
		seq_printf(m, "%s:", iosched_name_of(sd, class->sched));
		for (why = 0; why < SS_WHYS; why++)
			seq_printf(m, " %s %llu", ss_why_name[why], by[why]);
		seq_putc(m, '\n');
	}
}

static void show_established(struct iosched_data *sd, struct seq_file *m)
{
	show_streams(sd, m, true);
}

static void show_parents(struct iosched_data *sd, struct seq_file *m)
{
	show_streams(sd, m, false);
}

static void show_waits(struct iosched_data *sd, struct seq_file *m)
{
	int i;

	seq_puts(m, "wait_below_us reads writes\n");
	for (i = 0; i < IOSCHED_WAITS; i++) {
		if (i == IOSCHED_WAITS - 1)
			seq_puts(m, "more");
		else
			seq_printf(m, "%llu",
				   div_u64(1ULL << (IOSCHED_WAITS_SHIFT + i),
					   1000));
		seq_printf(m, " %llu %llu\n",
			   READ_ONCE(sd->wait_histogram[SS_READ][i]),
			   READ_ONCE(sd->wait_histogram[SS_WRITE][i]));
	}
	seq_printf(m, "sum_us %llu %llu\n",
		   div_u64(READ_ONCE(sd->wait_ns[SS_READ]), 1000),
		   div_u64(READ_ONCE(sd->wait_ns[SS_WRITE]), 1000));
}

/*
 * The file outlives its scheduler for a moment when another one is chosen:
 * then there may be none, or one that is not ours.
 */
static int show(struct request_queue *q, struct seq_file *m,
		void (*of)(struct iosched_data *sd, struct seq_file *m))
{
	int ret = -EBUSY;

#ifdef HAVE_ELEVATOR_LOCK
	if (!mutex_trylock(&q->elevator_lock))
		return ret;
#endif
	if (q->elevator &&
	    q->elevator->type->queue_debugfs_attrs == iosched_debugfs_attrs) {
		of(q->elevator->elevator_data, m);
		ret = 0;
	}
#ifdef HAVE_ELEVATOR_LOCK
	mutex_unlock(&q->elevator_lock);
#endif
	return ret;
}

#define SHOW(name, of)                                                         \
	static int name##_show(void *queue, struct seq_file *m)                \
	{                                                                      \
		return show(queue, m, of);                                     \
	}
SHOW(counters, show_counters)
SHOW(reasons, show_reasons)
SHOW(streams, show_established)
SHOW(parents, show_parents)
SHOW(waits, show_waits)

const struct blk_mq_debugfs_attr iosched_debugfs_attrs[] = {
	{ "counters", 0400, counters_show }, { "reasons", 0400, reasons_show },
	{ "streams", 0400, streams_show },   { "parents", 0400, parents_show },
	{ "waits", 0400, waits_show },	     {},
};
