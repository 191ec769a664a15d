// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: arrays in configfs, stream-array/.
 *
 * A directory there describes an array: its layout, and which part of which
 * disk each member is. While 1 stands in its file "attached", its members are
 * coordinated (stream-array.c).
 */
#include "stream-array-internal.h"

#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#if IS_ENABLED(CONFIG_CONFIGFS_FS)

static const char *const level_name[] = {
	[SS_ARRAY_LINEAR] = "linear", [SS_ARRAY_RAID0] = "raid0",
	[SS_ARRAY_RAID5] = "raid5",   [SS_ARRAY_RAID10] = "raid10",
	[SS_ARRAY_RAID6] = "raid6",   [SS_ARRAY_RAID1] = "raid1",
};

static const char *const layout_name[] = {
	[SS_ARRAY_LEFT_ASYMMETRIC] = "left-asymmetric",
	[SS_ARRAY_RIGHT_ASYMMETRIC] = "right-asymmetric",
	[SS_ARRAY_LEFT_SYMMETRIC] = "left-symmetric",
	[SS_ARRAY_RIGHT_SYMMETRIC] = "right-symmetric",
	[SS_ARRAY_NEAR] = "near",
	[SS_ARRAY_FAR] = "far",
	[SS_ARRAY_OFFSET] = "offset",
};

/* The number at *@text, before one of @end; *@text becomes what follows. */
static int next_number(char **text, const char *end, u64 *value)
{
	char *word;

	if (!*text)
		return -EINVAL;
	*text = skip_spaces(*text);
	word = strsep(text, end);
	/* kstrtoull() takes a sign, too. */
	return isdigit(*word) ? kstrtoull(word, 10, value) : -EINVAL;
}

/* One line, "MAJOR:MINOR START SECTORS" or "missing". */
static int parse_member(char *line, struct stream_member *member)
{
	u64 major, minor;

	memset(member, 0, sizeof(*member));
	line = strim(line);
	if (!strcmp(line, "missing"))
		return 0;
	if (next_number(&line, ":", &major) ||
	    next_number(&line, " \t", &minor) ||
	    next_number(&line, " \t", &member->start_sector) ||
	    next_number(&line, " \t", &member->nr_sectors) || line ||
	    major >= 1U << (32 - MINORBITS) || minor > MINORMASK ||
	    !(major | minor) || !member->nr_sectors ||
	    member->nr_sectors > SS_ARRAY_SECTORS_MOST ||
	    member->start_sector > SS_ARRAY_SECTORS_MOST)
		return -EINVAL;
	member->dev = MKDEV((u32)major, (u32)minor);
	return 0;
}

/* The number of members in @text, or -EINVAL with a sentence in @why. */
static int parse_members(char *text, struct stream_member *member, char *why)
{
	char *line;
	int nr = 0, i;

	text = strim(text);
	while ((line = strsep(&text, "\n")) != NULL) {
		if (nr == SS_ARRAY_MEMBERS) {
			snprintf(why, WHY_BYTES, "more than %d members", nr);
			return -EINVAL;
		}
		if (parse_member(line, &member[nr])) {
			snprintf(
				why, WHY_BYTES,
				"line %d is neither MAJOR:MINOR START SECTORS, as in 8:16 2048 976000000, nor missing",
				nr + 1);
			return -EINVAL;
		}
		for (i = 0; i < nr; i++)
			if (member[nr].dev && member[i].dev == member[nr].dev) {
				snprintf(
					why, WHY_BYTES,
					"members %d and %d are on the same disk",
					i, nr);
				return -EINVAL;
			}
		nr++;
	}
	return nr;
}

static ssize_t stream_array_members_store(struct config_item *item,
					  const char *page, size_t count)
{
	struct stream_array *array = to_array(item);
	struct stream_member *member;
	char why[WHY_BYTES] = "out of memory";
	char *text = kmemdup_nul(page, count, GFP_KERNEL);
	int nr = -ENOMEM;

	member = kcalloc(SS_ARRAY_MEMBERS, sizeof(*member), GFP_KERNEL);
	if (text && member)
		nr = parse_members(text, member, why);
	mutex_lock(&stream_members);
	if (nr > 0 && !is_attached(array)) {
		memcpy(array->member, member, nr * sizeof(*member));
		array->nr_members = nr;
	} else if (nr > 0 && nr != array->nr_members) {
		snprintf(why, sizeof(why),
			 "an attached array keeps its number of members, %u",
			 array->nr_members);
		nr = -EBUSY;
	} else if (nr > 0) {
		int ret = stream_array_replace(array, member, nr, why);

		nr = ret ?: nr;
	}
	mutex_unlock(&stream_members);
	kfree(member);
	kfree(text);
	return nr < 0 ? refuse(array, "members", nr, "%s", why) : count;
}

static ssize_t stream_array_members_show(struct config_item *item, char *page)
{
	struct stream_array *array = to_array(item);
	int at = 0;
	u32 i;

	mutex_lock(&stream_members);
	for (i = 0; i < array->nr_members; i++) {
		const struct stream_member *member = &array->member[i];

		if (!member->dev)
			at += sysfs_emit_at(page, at, "missing\n");
		else
			at += sysfs_emit_at(page, at, "%u:%u %llu %llu\n",
					    MAJOR(member->dev),
					    MINOR(member->dev),
					    member->start_sector,
					    member->nr_sectors);
	}
	mutex_unlock(&stream_members);
	return at;
}

/* Set *@field, which an attached array keeps. */
static ssize_t store_fixed(struct stream_array *array, const char *name,
			   u32 *field, u32 value, size_t count)
{
	bool set;

	mutex_lock(&stream_members);
	set = !is_attached(array);
	if (set)
		*field = value;
	mutex_unlock(&stream_members);
	if (set)
		return count;
	return refuse(
		array, name, -EBUSY,
		"the array is attached; write 0 to attached before changing this");
}

static ssize_t stream_array_level_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  level_name[READ_ONCE(to_array(item)->level)]);
}

static ssize_t stream_array_level_store(struct config_item *item,
					const char *page, size_t count)
{
	struct stream_array *array = to_array(item);
	int level = sysfs_match_string(level_name, page);

	if (level < 0)
		return refuse(
			array, "level", -EINVAL,
			"must be linear, raid0, raid1, raid5, raid6 or raid10");
	return store_fixed(array, "level", &array->level, level, count);
}

static ssize_t stream_array_layout_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  layout_name[READ_ONCE(to_array(item)->layout)]);
}

static ssize_t stream_array_layout_store(struct config_item *item,
					 const char *page, size_t count)
{
	struct stream_array *array = to_array(item);
	int layout = sysfs_match_string(layout_name, page);

	if (layout < 0)
		return refuse(
			array, "layout", -EINVAL,
			"must be left-asymmetric, right-asymmetric, left-symmetric, right-symmetric, near, far or offset");
	return store_fixed(array, "layout", &array->layout, layout, count);
}

static ssize_t stream_array_chunk_sectors_show(struct config_item *item,
					       char *page)
{
	return sysfs_emit(page, "%u\n",
			  READ_ONCE(to_array(item)->chunk_sectors));
}

static ssize_t stream_array_chunk_sectors_store(struct config_item *item,
						const char *page, size_t count)
{
	struct stream_array *array = to_array(item);
	u32 sectors;

	if (kstrtou32(page, 10, &sectors) || sectors < SS_ARRAY_CHUNK_LEAST ||
	    sectors > SS_ARRAY_CHUNK_MOST)
		return refuse(array, "chunk_sectors", -EINVAL,
			      "must be a whole number from %d to %d",
			      SS_ARRAY_CHUNK_LEAST, SS_ARRAY_CHUNK_MOST);
	return store_fixed(array, "chunk_sectors", &array->chunk_sectors,
			   sectors, count);
}

static ssize_t stream_array_attached_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(to_array(item)->core));
}

static ssize_t stream_array_attached_store(struct config_item *item,
					   const char *page, size_t count)
{
	struct stream_array *array = to_array(item);
	int ret = 0;

	if (sysfs_streq(page, "1"))
		ret = stream_array_attach(array);
	else if (sysfs_streq(page, "0"))
		stream_array_detach(array);
	else
		ret = refuse(array, "attached", -EINVAL, "must be 0 or 1");
	return ret ?: (ssize_t)count;
}

/* One word for what a member of an attached array does. */
static const char *state_of(struct stream_array *array, u32 i)
{
	const struct stream_member *member = &array->member[i];
	bool coordinated;

	if (!member->dev)
		return "missing";
	if (!member->sd)
		return "not scheduled by stream";
	stream_array_lock(array->core);
	coordinated = array->core->attached & BIT(i);
	stream_array_unlock(array->core);
	if (coordinated)
		return "coordinated";
	return "does not rotate";
}

static ssize_t stream_array_status_show(struct config_item *item, char *page)
{
	struct stream_array *array = to_array(item);
	int at = 0;
	u32 i;

	mutex_lock(&stream_members);
	for (i = 0; is_attached(array) && i < array->nr_members; i++)
		at += sysfs_emit_at(page, at, "%u %u:%u %s\n", i,
				    MAJOR(array->member[i].dev),
				    MINOR(array->member[i].dev),
				    state_of(array, i));
	mutex_unlock(&stream_members);
	return at;
}

static ssize_t stream_array_counters_show(struct config_item *item, char *page)
{
	struct stream_array *array = to_array(item);
	struct ss_array_counters counters = {};

	mutex_lock(&stream_members);
	if (is_attached(array))
		ss_array_counters(array->core, &counters);
	mutex_unlock(&stream_members);
	return sysfs_emit(
		page,
		"turns %llu\nslices_ended %llu\nestablished %llu\ntrials %llu\ntrials_lost %llu\n",
		counters.turns, counters.slices_ended, counters.established,
		counters.trials, counters.trials_lost);
}

CONFIGFS_ATTR(stream_array_, level);
CONFIGFS_ATTR(stream_array_, layout);
CONFIGFS_ATTR(stream_array_, chunk_sectors);
CONFIGFS_ATTR(stream_array_, members);
CONFIGFS_ATTR(stream_array_, attached);
CONFIGFS_ATTR_RO(stream_array_, status);
CONFIGFS_ATTR_RO(stream_array_, counters);

static struct configfs_attribute *stream_array_attrs[] = {
	&stream_array_attr_level,	  &stream_array_attr_layout,
	&stream_array_attr_chunk_sectors, &stream_array_attr_members,
	&stream_array_attr_attached,	  &stream_array_attr_status,
	&stream_array_attr_counters,	  NULL,
};

static void stream_array_release(struct config_item *item)
{
	kfree(to_array(item));
}

static struct configfs_item_operations stream_array_item_ops = {
	.release = stream_array_release,
};

static const struct config_item_type stream_array_item_type = {
	.ct_owner = THIS_MODULE,
	.ct_item_ops = &stream_array_item_ops,
	.ct_attrs = stream_array_attrs,
};

static struct config_item *stream_array_make_item(struct config_group *group,
						  const char *name)
{
	struct stream_array *array = kzalloc(sizeof(*array), GFP_KERNEL);

	if (!array)
		return ERR_PTR(-ENOMEM);
	array->level = SS_ARRAY_RAID0;
	array->layout = SS_ARRAY_LEFT_SYMMETRIC;
	array->chunk_sectors = SS_ARRAY_CHUNK_MOST / 2;
	spin_lock_init(&array->lock);
	config_item_init_type_name(&array->item, name, &stream_array_item_type);
	return &array->item;
}

static void stream_array_drop_item(struct config_group *group,
				   struct config_item *item)
{
	stream_array_detach(to_array(item));
	config_item_put(item);
}

static struct configfs_group_operations stream_array_group_ops = {
	.make_item = stream_array_make_item,
	.drop_item = stream_array_drop_item,
};

static const struct config_item_type stream_array_group_type = {
	.ct_owner = THIS_MODULE,
	.ct_group_ops = &stream_array_group_ops,
};

static struct configfs_subsystem stream_array_subsystem = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = "stream-array",
			.ci_type = &stream_array_group_type,
		},
	},
};

int stream_array_register(void)
{
	config_group_init(&stream_array_subsystem.su_group);
	mutex_init(&stream_array_subsystem.su_mutex);
	return configfs_register_subsystem(&stream_array_subsystem);
}

void stream_array_unregister(void)
{
	configfs_unregister_subsystem(&stream_array_subsystem);
}

#endif
