/* SPDX-License-Identifier: GPL-2.0-only */
/* The blk-mq scheduler "stream": what its files share. */
#ifndef STREAM_IOSCHED_H
#define STREAM_IOSCHED_H

#include "core-iosched.h"

/* Tunables that one policy or another has; see stream-sysfs.c. */
#ifndef SS_MAINLINE
#define STREAM_SETTINGS 24
#define STREAM_SPEC_BYTES 40
#else
#define STREAM_SETTINGS 8
#endif

/* So many cgroups may have a weight of their own. */
#define STREAM_WEIGHTS 64

struct stream_weight {
	struct cgroup *cgroup; /* held */
	u32 percent; /* of the usual weight */
};

struct stream_data {
	struct iosched_data io; /* the first: elevator_data points to it */

	/* Settings, under the lock. */
	bool plain; /* the inner policy alone: positioning is free here */
	u64 setting[STREAM_SETTINGS];
	struct stream_weight weight[STREAM_WEIGHTS];
	u32 nr_weights;
#ifndef SS_MAINLINE
	char spec[STREAM_SPEC_BYTES]; /* the policies: stream:INNER */

	/* stream-array.c */
	struct list_head members_node; /* of all that may be members */
	struct stream_array *array; /* whose member this is; NULL: none's */
	u32 array_index;
	struct work_struct kick; /* iosched_kick() for other members */
	struct stream_place *place; /* NULL: no head was placed yet */
#endif
};

static inline struct stream_data *stream_data_of(
	const struct elevator_queue *eq)
{
	return container_of(eq->elevator_data, struct stream_data, io);
}

/* iosched_restart(); when @plain with the inner policy alone. */
int stream_restart(struct stream_data *sd, bool plain, char *why,
		   size_t why_bytes);

/* stream-trace.c: @sched tells what it does by trace events. */
void stream_trace(struct ss_sched *sched);

/* stream-sysfs.c */
extern struct elv_fs_entry stream_attrs[];
int stream_settings_init(void);
void stream_settings_default(struct stream_data *sd);
void stream_settings_apply(struct stream_data *sd, struct ss_sched *sched,
			   u64 now_ns);

/*
 * stream-weights.c: the file "cgroup_weights". Storing gives 0 or an error with
 * its reason in @why, and changes nothing then.
 */
ssize_t stream_weights_show(struct stream_data *sd, char *page);
int stream_weights_store(struct stream_data *sd, const char *page, size_t count,
			 char *why, size_t why_bytes);
void stream_weights_begin(struct stream_data *sd);
void stream_weights_end(struct stream_data *sd);

#endif
