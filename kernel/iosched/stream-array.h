/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Schedulers of disks that are members of one array, coordinated: what
 * stream-array.c and stream-array-configfs.c offer to the rest of the module.
 *
 * Which locks there are, in the order in which they are taken:
 *
 *	stream_members	a mutex: which disks are scheduled by stream, which
 *			arrays there are, and which disk is which one's member
 *	sd->io.lock	one scheduler's
 *	array->lock	what the members of one array share; core/array/array.h
 *
 * The first is taken with a queue frozen, when its scheduler comes or goes: so
 * no memory is asked for under it, and nothing is waited for. sd->array
 * changes with both of the first two held.
 */
#ifndef STREAM_ARRAY_H
#define STREAM_ARRAY_H

#include "stream-iosched.h"

#if IS_ENABLED(CONFIG_CONFIGFS_FS)

int stream_array_register(void);
void stream_array_unregister(void);

/* @sd's scheduler is there, and may be some array's member; it can sleep. */
void stream_array_join(struct stream_data *sd);
/* No longer; after this nobody asks for @sd. It can sleep. */
void stream_array_leave(struct stream_data *sd);

/*
 * The scheduler in core/ of @sd's best-effort requests has been replaced, but
 * the old one is still there, and no request has been told to the new one:
 * that is the member from now on. The scheduler's lock is held.
 */
void stream_array_renew(struct stream_data *sd);

#else

static inline int stream_array_register(void)
{
	return 0;
}

static inline void stream_array_unregister(void)
{
}

static inline void stream_array_join(struct stream_data *sd)
{
}

static inline void stream_array_leave(struct stream_data *sd)
{
}

static inline void stream_array_renew(struct stream_data *sd)
{
}

#endif
#endif
