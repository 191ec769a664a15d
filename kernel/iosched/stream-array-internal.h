/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An array as its members (stream-array.c) and its directory in configfs
 * (stream-array-configfs.c) know it.
 */
#ifndef STREAM_ARRAY_INTERNAL_H
#define STREAM_ARRAY_INTERNAL_H

#include "stream-array.h"

#include "array/array.h"

#include <linux/configfs.h>
#include <linux/mutex.h>

#define WHY_BYTES 160

struct stream_member {
	dev_t dev; /* of the whole disk; 0: missing */
	u64 start_sector; /* of the array's room on the disk */
	u64 nr_sectors;
	struct stream_data *sd; /* its scheduler, while there is one */
};

/* The fields are under stream_members, but where something else is said. */
struct stream_array {
	struct config_item item;
	struct list_head node; /* of all that are attached */
	u32 level; /* enum ss_array_level */
	u32 layout; /* enum ss_array_layout */
	u32 chunk_sectors;
	u32 nr_members;
	struct stream_member member[SS_ARRAY_MEMBERS];
	struct ss_array *core; /* NULL: not attached */
	spinlock_t lock; /* of what is in *core */
	unsigned long irq; /* the lock's */
};

/* The outermost of the locks that stream-array.h tells of. */
extern struct mutex stream_members;

/* Of what is in array->core. */
void stream_array_lock(struct ss_array *core) __acquires(core);
void stream_array_unlock(struct ss_array *core) __releases(core);

/*
 * Coordinate @array's members from now on, or no longer; each takes
 * stream_members. The first returns 0 or a negative errno after a report.
 */
int stream_array_attach(struct stream_array *array);
void stream_array_detach(struct stream_array *array);

/*
 * The @nr members of an attached array, as many as it has, are @member from
 * now on. stream_members is held. 0, or -EINVAL with a sentence in @why, of
 * WHY_BYTES; nothing is changed then.
 */
int stream_array_replace(struct stream_array *array,
			 const struct stream_member *member, u32 nr, char *why);

static inline struct stream_array *to_array(struct config_item *item)
{
	return container_of(item, struct stream_array, item);
}

/* Say in the log why a write to the array's file @name is refused. */
#define refuse(array, name, err, format, ...)                                  \
	({                                                                     \
		pr_err("stream: %s/%s: " format "\n",                          \
		       config_item_name(&(array)->item), name, ##__VA_ARGS__); \
		(err);                                                         \
	})

static inline bool is_attached(const struct stream_array *array)
{
	return array->core;
}

#endif
