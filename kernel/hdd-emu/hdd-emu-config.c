// SPDX-License-Identifier: GPL-2.0-only
/*
 * Disks in configfs: a directory each, attributes by the rows of two tables.
 *
 * configfs does not tell an attribute's functions which attribute they are
 * called for, so every row expands to two functions of one line.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "hdd-emu.h"

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#define KIND_NONE 0 /* they have a default */
#define KIND_MECHANICAL BIT(HDD_KIND_MECHANICAL)
#define KIND_FLAT BIT(HDD_KIND_FLAT)
#define KIND_BOTH (KIND_MECHANICAL | KIND_FLAT)

struct field {
	struct configfs_attribute attribute;
	size_t offset; /* in struct hdd_emu */
	u8 bytes; /* of one value */
	u16 most_values;
	u8 kinds; /* of disks that need it */
	u64 least, most;
};

enum row {
#define HDD_EMU_FIELD(name, ...) ROW_##name,
#include "hdd-emu-fields.h"
#undef HDD_EMU_FIELD
	NR_ROWS,
};

static ssize_t show_field(struct config_item *item, enum row row, char *page);
static ssize_t store_field(struct config_item *item, enum row row,
			   const char *page, size_t count);

#define HDD_EMU_FIELD(name, ...)                                               \
	static ssize_t show_##name(struct config_item *item, char *page)       \
	{                                                                      \
		return show_field(item, ROW_##name, page);                     \
	}                                                                      \
	static ssize_t store_##name(struct config_item *item,                  \
				    const char *page, size_t count)            \
	{                                                                      \
		return store_field(item, ROW_##name, page, count);             \
	}
#include "hdd-emu-fields.h"
#undef HDD_EMU_FIELD

static struct field fields[] = {
#define HDD_EMU_FIELD(name, where, needs, values, from, to)                    \
	[ROW_##name] = {                                                       \
		.attribute = {                                                 \
			.ca_name = #name,                                      \
			.ca_mode = 0644,                                       \
			.ca_owner = THIS_MODULE,                               \
			.show = show_##name,                                   \
			.store = store_##name,                                 \
		},                                                             \
		.offset = offsetof(struct hdd_emu, where.name),                \
		.bytes = sizeof_field(struct hdd_emu, where.name) / (values),  \
		.most_values = values,                                         \
		.kinds = KIND_##needs,                                         \
		.least = from,                                                 \
		.most = to,                                                    \
	},
#include "hdd-emu-fields.h"
#undef HDD_EMU_FIELD
};

static const char *const backings[] = {
	[HDD_EMU_MEMORY] = "memory",
	[HDD_EMU_NONE] = "none",
};

static struct hdd_emu *to_disk(struct config_item *item)
{
	return container_of(item, struct hdd_emu, item);
}

/* Say in the log why a write to @name is refused; once for each. */
static __printf(4, 5) int refuse(struct hdd_emu *disk, const char *name,
				 int err, const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	pr_err("%s/%s: %pV\n", hdd_emu_name(disk), name, &vaf);
	va_end(args);
	return err;
}

static int refuse_on(struct hdd_emu *disk, const char *name)
{
	return refuse(disk, name, -EBUSY,
		      "the disk is on; write 0 to power before changing this");
}

/* Numbers and lists of numbers. */

static u64 get_value(const struct hdd_emu *disk, const struct field *field,
		     u32 i)
{
	const void *at = (const void *)disk + field->offset + i * field->bytes;

	return field->bytes == sizeof(u64) ? *(const u64 *)at :
					     *(const u32 *)at;
}

static void set_value(struct hdd_emu *disk, const struct field *field, u32 i,
		      u64 value)
{
	void *at = (void *)disk + field->offset + i * field->bytes;

	if (field->bytes == sizeof(u64))
		*(u64 *)at = value;
	else
		*(u32 *)at = (u32)value;
}

static ssize_t show_values(const struct hdd_emu *disk,
			   const struct field *field, u32 nr, char *page)
{
	ssize_t at = 0;
	u32 i;

	for (i = 0; i < nr; i++)
		at += scnprintf(page + at, PAGE_SIZE - at, i ? " %llu" : "%llu",
				get_value(disk, field, i));
	at += scnprintf(page + at, PAGE_SIZE - at, "\n");
	return at;
}

/* The values in @text, which is taken apart. Their number, or -EINVAL. */
static int parse_values(struct hdd_emu *disk, const struct field *field,
			char *text, u64 *values)
{
	u32 nr = 0;
	char *word;

	text = strim(text);
	while ((word = strsep(&text, " \t\n")) != NULL) {
		if (!*word && field->most_values > 1)
			continue;
		if (nr == 1 && field->most_values == 1)
			return refuse(
				disk, field->attribute.ca_name, -EINVAL,
				"more than one value; there may be only one");
		if (nr == field->most_values)
			return refuse(
				disk, field->attribute.ca_name, -EINVAL,
				"more than %u values; there may be 1 to %u", nr,
				nr);
		/* kstrtoull() takes a sign, and the log cuts off long lines. */
		if (!isdigit(*word) || kstrtoull(word, 10, &values[nr]) ||
		    values[nr] < field->least || values[nr] > field->most)
			return refuse(
				disk, field->attribute.ca_name, -EINVAL,
				"\"%.40s\"%s must be a whole number from %llu to %llu",
				word, strlen(word) > 40 ? "..." : "",
				field->least, field->most);
		nr++;
	}
	if (!nr)
		return refuse(disk, field->attribute.ca_name, -EINVAL,
			      "no value; there may be 1 to %u",
			      field->most_values);
	return (int)nr;
}

/* What was written, as a string of its own. */
static char *copy_text(const char *page, size_t count)
{
	return kmemdup_nul(page, count, GFP_KERNEL);
}

/* Write @page to @field. Gives the number of values, or why not. */
static int store_values(struct hdd_emu *disk, const struct field *field,
			const char *page, size_t count)
{
	char *text = copy_text(page, count);
	u64 *values;
	int i, nr = -ENOMEM;

	values = kcalloc(field->most_values, sizeof(*values), GFP_KERNEL);
	if (text && values)
		nr = parse_values(disk, field, text, values);
	if (nr > 0 && disk->gendisk)
		nr = refuse_on(disk, field->attribute.ca_name);
	for (i = 0; i < nr; i++)
		set_value(disk, field, (u32)i, values[i]);
	kfree(values);
	kfree(text);
	return nr;
}

static ssize_t show_field(struct config_item *item, enum row row, char *page)
{
	struct hdd_emu *disk = to_disk(item);
	ssize_t bytes;
	u32 nr;

	mutex_lock(&disk->mutex);
	nr = fields[row].most_values > 1 ? disk->list_length[row] : 1;
	bytes = show_values(disk, &fields[row], nr, page);
	mutex_unlock(&disk->mutex);
	return bytes;
}

static ssize_t store_field(struct config_item *item, enum row row,
			   const char *page, size_t count)
{
	struct hdd_emu *disk = to_disk(item);
	const struct field *field = &fields[row];
	u64 before;
	int nr;

	mutex_lock(&disk->mutex);
	before = get_value(disk, field, 0);
	nr = store_values(disk, field, page, count);
	if (nr > 0 &&
	    (row == ROW_logical_block_size || row == ROW_physical_block_size) &&
	    !is_power_of_2((unsigned long)get_value(disk, field, 0))) {
		set_value(disk, field, 0, before);
		nr = refuse(disk, field->attribute.ca_name, -EINVAL,
			    "must be 512, 1024, 2048 or 4096");
	}
	if (nr > 0) {
		disk->list_length[row] = (u16)nr;
		disk->fields_set |= BIT_ULL(row);
	}
	mutex_unlock(&disk->mutex);
	return nr > 0 ? (ssize_t)count : nr;
}

/* The other attributes. */

static ssize_t hdd_emu_backing_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  backings[to_disk(item)->config.backing]);
}

static ssize_t hdd_emu_backing_store(struct config_item *item, const char *page,
				     size_t count)
{
	struct hdd_emu *disk = to_disk(item);
	int backing = sysfs_match_string(backings, page);

	mutex_lock(&disk->mutex);
	if (backing < 0)
		backing = refuse(disk, "backing", -EINVAL,
				 "must be memory or none");
	else if (disk->gendisk)
		backing = refuse_on(disk, "backing");
	else
		disk->config.backing = (u32)backing;
	mutex_unlock(&disk->mutex);
	return backing < 0 ? backing : (ssize_t)count;
}

/* 0 or 1 in @page; else -EINVAL, and the log says so. */
static int parse_switch(struct hdd_emu *disk, const char *name,
			const char *page)
{
	if (sysfs_streq(page, "0"))
		return 0;
	if (sysfs_streq(page, "1"))
		return 1;
	return refuse(disk, name, -EINVAL, "must be 0 or 1");
}

/* Is a list as long as the number of its values says? */
static int check_list(struct hdd_emu *disk, enum row list, enum row length)
{
	u64 nr = get_value(disk, &fields[length], 0);

	if (disk->list_length[list] == nr)
		return 0;
	return refuse(disk, "power", -EINVAL,
		      "cannot be switched on: %s has %u values but %s is %llu",
		      fields[list].attribute.ca_name, disk->list_length[list],
		      fields[length].attribute.ca_name, nr);
}

/* Is everything there that this kind of disk needs? */
static int check_complete(struct hdd_emu *disk)
{
	int err = 0;
	u32 i;

	for (i = 0; i < NR_ROWS; i++) {
		if (disk->fields_set & BIT_ULL(i) ||
		    !(fields[i].kinds & BIT(disk->params.kind)))
			continue;
		return refuse(disk, "power", -EINVAL,
			      "cannot be switched on: %s has not been written",
			      fields[i].attribute.ca_name);
	}
	if (disk->params.kind == HDD_KIND_FLAT)
		return 0;
	err = check_list(disk, ROW_zone_cylinders, ROW_nr_zones);
	if (!err)
		err = check_list(disk, ROW_zone_sectors_per_track,
				 ROW_nr_zones);
	if (!err)
		err = check_list(disk, ROW_seek_cylinders, ROW_nr_seek_points);
	if (!err)
		err = check_list(disk, ROW_seek_ns, ROW_nr_seek_points);
	if (!err && disk->list_length[ROW_overhead_ns] != 2 * HDD_CLASSES)
		err = refuse(
			disk, "power", -EINVAL,
			"cannot be switched on: overhead_ns has %u values, not %u",
			disk->list_length[ROW_overhead_ns], 2 * HDD_CLASSES);
	return err;
}

static ssize_t hdd_emu_power_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!to_disk(item)->gendisk);
}

static ssize_t hdd_emu_power_store(struct config_item *item, const char *page,
				   size_t count)
{
	struct hdd_emu *disk = to_disk(item);
	const char *why;
	int on, err = 0;

	mutex_lock(&disk->mutex);
	on = parse_switch(disk, "power", page);
	if (on < 0) {
		err = on;
	} else if (on && !disk->gendisk) {
		err = check_complete(disk);
		if (!err) {
			err = hdd_emu_power_on(disk, &why);
			if (err)
				refuse(disk, "power", err,
				       "cannot be switched on: %s", why);
		}
	} else if (!on && disk->gendisk) {
		err = hdd_emu_power_off(disk, false, &why);
		if (err)
			refuse(disk, "power", err, "cannot be switched off: %s",
			       why);
	}
	mutex_unlock(&disk->mutex);
	return err ?: (ssize_t)count;
}

static ssize_t hdd_emu_power_cut_show(struct config_item *item, char *page)
{
	struct hdd_emu *disk = to_disk(item);
	bool cut;

	mutex_lock(&disk->mutex);
	cut = disk->gendisk && disk->cut;
	mutex_unlock(&disk->mutex);
	return sysfs_emit(page, "%d\n", cut);
}

static ssize_t hdd_emu_power_cut_store(struct config_item *item,
				       const char *page, size_t count)
{
	struct hdd_emu *disk = to_disk(item);
	int cut;

	mutex_lock(&disk->mutex);
	cut = parse_switch(disk, "power_cut", page);
	if (cut >= 0 && !disk->gendisk)
		cut = refuse(disk, "power_cut", -EINVAL,
			     "the disk is off; write 1 to power first");
	else if (cut == 1)
		hdd_emu_power_cut(disk);
	else if (cut == 0)
		hdd_emu_power_back(disk);
	mutex_unlock(&disk->mutex);
	return cut < 0 ? cut : (ssize_t)count;
}

static ssize_t show_faults(struct config_item *item, bool delays, char *page)
{
	struct hdd_emu *disk = to_disk(item);
	ssize_t bytes;

	mutex_lock(&disk->mutex);
	bytes = hdd_emu_faults_show(delays ? &disk->delays : &disk->bad_ranges,
				    page);
	mutex_unlock(&disk->mutex);
	return bytes;
}

static ssize_t store_faults(struct config_item *item, bool delays,
			    const char *page, size_t count)
{
	struct hdd_emu *disk = to_disk(item);
	struct hdd_emu_faults *faults;
	char *text = copy_text(page, count);
	const char *why;
	int err = -ENOMEM;
	u32 line;

	faults = kzalloc(sizeof(*faults), GFP_KERNEL);
	mutex_lock(&disk->mutex);
	if (text && faults) {
		err = hdd_emu_faults_parse(faults, text, delays, &line, &why);
		if (err)
			refuse(disk, delays ? "delays" : "bad_ranges", err,
			       "line %u: %s", line, why);
	}
	if (!err) {
		/* They are looked at with every command. */
		spin_lock_bh(&disk->lock);
		*(delays ? &disk->delays : &disk->bad_ranges) = *faults;
		spin_unlock_bh(&disk->lock);
	}
	mutex_unlock(&disk->mutex);
	kfree(faults);
	kfree(text);
	return err ?: (ssize_t)count;
}

static ssize_t hdd_emu_bad_ranges_show(struct config_item *item, char *page)
{
	return show_faults(item, false, page);
}

static ssize_t hdd_emu_bad_ranges_store(struct config_item *item,
					const char *page, size_t count)
{
	return store_faults(item, false, page, count);
}

static ssize_t hdd_emu_delays_show(struct config_item *item, char *page)
{
	return show_faults(item, true, page);
}

static ssize_t hdd_emu_delays_store(struct config_item *item, const char *page,
				    size_t count)
{
	return store_faults(item, true, page, count);
}

static ssize_t hdd_emu_volatile_sectors_show(struct config_item *item,
					     char *page)
{
	struct hdd_emu *disk = to_disk(item);
	u64 nr;

	mutex_lock(&disk->mutex);
	nr = disk->gendisk ? hdd_emu_volatile_sectors(disk) : 0;
	mutex_unlock(&disk->mutex);
	return sysfs_emit(page, "%llu\n", nr);
}

static ssize_t hdd_emu_memory_bytes_show(struct config_item *item, char *page)
{
	struct hdd_emu *disk = to_disk(item);
	u64 nr;

	spin_lock_bh(&disk->lock);
	nr = disk->store.nr_blocks + disk->store.nr_cache;
	spin_unlock_bh(&disk->lock);
	return sysfs_emit(page, "%llu\n", nr << HDD_EMU_BLOCK_SHIFT);
}

CONFIGFS_ATTR(hdd_emu_, backing);
CONFIGFS_ATTR(hdd_emu_, power);
CONFIGFS_ATTR(hdd_emu_, power_cut);
CONFIGFS_ATTR(hdd_emu_, bad_ranges);
CONFIGFS_ATTR(hdd_emu_, delays);
CONFIGFS_ATTR_RO(hdd_emu_, volatile_sectors);
CONFIGFS_ATTR_RO(hdd_emu_, memory_bytes);

static struct configfs_attribute *const others[] = {
	&hdd_emu_attr_backing,	    &hdd_emu_attr_power,
	&hdd_emu_attr_power_cut,    &hdd_emu_attr_bad_ranges,
	&hdd_emu_attr_delays,	    &hdd_emu_attr_volatile_sectors,
	&hdd_emu_attr_memory_bytes,
};

/* All of them, put together by hdd_emu_config_register(). */
static struct configfs_attribute
	*hdd_emu_attrs[NR_ROWS + ARRAY_SIZE(others) + 1];

/* Directories. */

static void hdd_emu_release(struct config_item *item)
{
	struct hdd_emu *disk = to_disk(item);

	hdd_emu_store_free(&disk->store);
	kfree(disk);
}

static struct configfs_item_operations hdd_emu_item_ops = {
	.release = hdd_emu_release,
};

static const struct config_item_type hdd_emu_item_type = {
	.ct_owner = THIS_MODULE,
	.ct_item_ops = &hdd_emu_item_ops,
	.ct_attrs = hdd_emu_attrs,
};

/* A name that can be one in /dev. */
static bool name_is_good(const char *name)
{
	const char *c;

	for (c = name; *c; c++)
		if (!isalnum(*c) && *c != '-' && *c != '_')
			return false;
	return *name && c - name < DISK_NAME_LEN;
}

static struct config_item *hdd_emu_make_item(struct config_group *group,
					     const char *name)
{
	struct hdd_emu *disk;

	if (!name_is_good(name)) {
		pr_err("%s: a disk's name must be 1 to %d letters, digits, - and _\n",
		       name, DISK_NAME_LEN - 1);
		return ERR_PTR(-EINVAL);
	}
	disk = kzalloc(sizeof(*disk), GFP_KERNEL);
	if (!disk)
		return ERR_PTR(-ENOMEM);
	BUILD_BUG_ON(ARRAY_SIZE(disk->list_length) < NR_ROWS);
	disk->config.memory_limit_bytes = (u64)totalram_pages() / 2
					  << PAGE_SHIFT;
	disk->config.logical_block_size = SECTOR_SIZE;
	disk->config.physical_block_size = 4096;
	disk->config.discard = 1;
	disk->config.hardware_queues = 1;
	hdd_emu_disk_init(disk);
	config_item_init_type_name(&disk->item, name, &hdd_emu_item_type);
	return &disk->item;
}

static void hdd_emu_drop_item(struct config_group *group,
			      struct config_item *item)
{
	struct hdd_emu *disk = to_disk(item);
	const char *why;

	/* configfs lets nobody refuse this; so it is torn out. */
	mutex_lock(&disk->mutex);
	if (disk->gendisk)
		hdd_emu_power_off(disk, true, &why);
	mutex_unlock(&disk->mutex);
	config_item_put(item);
}

static struct configfs_group_operations hdd_emu_group_ops = {
	.make_item = hdd_emu_make_item,
	.drop_item = hdd_emu_drop_item,
};

static const struct config_item_type hdd_emu_group_type = {
	.ct_owner = THIS_MODULE,
	.ct_group_ops = &hdd_emu_group_ops,
};

static struct configfs_subsystem hdd_emu_subsystem = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = "hdd-emu",
			.ci_type = &hdd_emu_group_type,
		},
	},
};

int hdd_emu_config_register(void)
{
	u32 i;

	for (i = 0; i < NR_ROWS; i++)
		hdd_emu_attrs[i] = &fields[i].attribute;
	for (i = 0; i < ARRAY_SIZE(others); i++)
		hdd_emu_attrs[NR_ROWS + i] = others[i];
	config_group_init(&hdd_emu_subsystem.su_group);
	mutex_init(&hdd_emu_subsystem.su_mutex);
	return configfs_register_subsystem(&hdd_emu_subsystem);
}

void hdd_emu_config_unregister(void)
{
	configfs_unregister_subsystem(&hdd_emu_subsystem);
}
