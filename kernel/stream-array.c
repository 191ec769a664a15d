// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: the members of an array coordinated, in configfs, stream-array/.
 *
 * A directory there describes an array that somebody else drives (md, device
 * mapper): its layout, and which part of which disk each member is. While 1
 * stands in its file "attached", those of its members that stream schedules
 * are coordinated (core/array.h); md knows nothing of it, and no request takes
 * another way. A member whose scheduler goes (another one is chosen, the disk
 * is removed) leaves; when there is a scheduler stream for a disk of that
 * number again, it returns.
 *
 * Only best-effort requests take part. The locks are told in stream-array.h.
 */
#include "stream-array.h"

#include "array.h"

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#if IS_ENABLED(CONFIG_CONFIGFS_FS)

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

static DEFINE_MUTEX(stream_members);
static LIST_HEAD(scheds); /* all struct stream_data, by members_node */
static LIST_HEAD(arrays); /* those that are attached */

static const char *const level_name[] = {
	[SS_ARRAY_LINEAR] = "linear",
	[SS_ARRAY_RAID0] = "raid0",
	[SS_ARRAY_RAID5] = "raid5",
	[SS_ARRAY_RAID10] = "raid10",
};

static const char *const layout_name[] = {
	[SS_ARRAY_LEFT_ASYMMETRIC] = "left-asymmetric",
	[SS_ARRAY_RIGHT_ASYMMETRIC] = "right-asymmetric",
	[SS_ARRAY_LEFT_SYMMETRIC] = "left-symmetric",
	[SS_ARRAY_RIGHT_SYMMETRIC] = "right-symmetric",
};

static struct stream_array *to_array(struct config_item *item)
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

static bool is_attached(const struct stream_array *array)
{
	return array->core;
}

/* ---- what the coordinator needs of its host ---- */

/* Interrupts are off already for a member's events, but not for a reader. */
static void array_lock(struct ss_array *core) __acquires(core)
{
	struct stream_array *array = core->host;
	unsigned long irq;

	spin_lock_irqsave(&array->lock, irq);
	array->irq = irq;
}

static void array_unlock(struct ss_array *core) __releases(core)
{
	struct stream_array *array = core->host;

	spin_unlock_irqrestore(&array->lock, array->irq);
}

/*
 * Comes with another member's lock held, so this one's is for a worker. The
 * member stays for as long as it is attached, which cannot change here.
 */
static void array_kick(struct ss_array *core, u32 member)
{
	struct stream_array *array = core->host;

	kblockd_schedule_work(&array->member[member].sd->kick);
}

/* ---- placing heads ---- */

/* Nobody waits for what was read, nor asks whether it could be. */
static void place_done(struct bio *bio)
{
	struct stream_data *sd = bio->bi_private;

	bio_put(bio);
	clear_bit_unlock(0, &sd->place_busy);
}

/* Memory for it, once; without it heads are not placed. */
static bool place_memory(struct stream_data *sd)
{
	u32 i;

	for (i = 0; i < STREAM_PLACE_PAGES; i++) {
		if (!sd->place_page[i])
			sd->place_page[i] = alloc_page(GFP_NOWAIT |
						       __GFP_NOWARN);
		if (!sd->place_page[i])
			return false;
	}
	return true;
}

/*
 * Read @nr_sectors from @sector of the disk on into memory that nobody looks
 * at. It goes through the scheduler as all requests do. It must not wait for a
 * queue that is frozen: whoever froze it may wait for this worker.
 */
static void place(struct stream_data *sd, u64 sector, u32 nr_sectors)
{
	u32 left = nr_sectors << SECTOR_SHIFT, i;
	struct bio *bio;

	bio = bio_alloc(sd->io.queue->disk->part0, STREAM_PLACE_PAGES,
			REQ_OP_READ | REQ_SYNC | REQ_NOMERGE | REQ_NOWAIT,
			GFP_NOWAIT | __GFP_NOWARN);
	if (!bio) {
		clear_bit_unlock(0, &sd->place_busy);
		return;
	}
	bio->bi_iter.bi_sector = sector;
	for (i = 0; left; i++) {
		u32 part = min_t(u32, left, PAGE_SIZE);

		__bio_add_page(bio, sd->place_page[i], part, 0);
		left -= part;
	}
	bio->bi_end_io = place_done;
	bio->bi_private = sd;
	submit_bio(bio);
}

/* Does the coordinator want the head somewhere? */
static void place_if_wanted(struct stream_data *sd)
{
	unsigned long irq;
	u32 nr_sectors;
	bool wanted;
	u64 sector;

	if (test_and_set_bit_lock(0, &sd->place_busy))
		return;
	wanted = place_memory(sd);
	spin_lock_irqsave(&sd->io.lock, irq);
	wanted = wanted && sd->array &&
		 ss_array_place(sd->array->core, sd->array_index, &sector,
				&nr_sectors);
	spin_unlock_irqrestore(&sd->io.lock, irq);
	if (wanted)
		place(sd, sector, nr_sectors);
	else
		clear_bit_unlock(0, &sd->place_busy);
}

static void kick_work(struct work_struct *work)
{
	struct stream_data *sd = container_of(work, struct stream_data, kick);

	place_if_wanted(sd);
	iosched_kick(&sd->io);
}

/* ---- members come and go ---- */

static dev_t dev_of(const struct stream_data *sd)
{
	return sd->io.queue->disk ? disk_devt(sd->io.queue->disk) : 0;
}

static struct stream_data *find_sched(dev_t dev)
{
	struct stream_data *sd;

	list_for_each_entry(sd, &scheds, members_node)
		if (dev_of(sd) == dev)
			return sd;
	return NULL;
}

/* The scheduler's lock is held. */
static int enter_core(struct stream_data *sd, char *why)
{
	return ss_array_attach(sd->array->core, sd->array_index,
			       sd->io.class[IOSCHED_CLASS_BE].sched, why,
			       WHY_BYTES);
}

/* May @sd be member @i? Else -EINVAL or -EBUSY and a sentence in @why. */
static int check_member(const struct stream_array *array, u32 i,
			const struct stream_member *member,
			const struct stream_data *sd, char *why)
{
	u64 capacity = get_capacity(sd->io.queue->disk);

	if (sd->array && sd->array != array) {
		snprintf(why, WHY_BYTES,
			 "member %u: %s is a member of %s already", i,
			 sd->io.queue->disk->disk_name,
			 config_item_name(&sd->array->item));
		return -EBUSY;
	}
	if (sd->plain) {
		snprintf(
			why, WHY_BYTES,
			"member %u: %s does not rotate; there is no head to bring anywhere",
			i, sd->io.queue->disk->disk_name);
		return -EINVAL;
	}
	if (member->start_sector + member->nr_sectors > capacity) {
		snprintf(
			why, WHY_BYTES,
			"member %u: %s has %llu sectors, not %llu from %llu on",
			i, sd->io.queue->disk->disk_name, capacity,
			member->nr_sectors, member->start_sector);
		return -EINVAL;
	}
	return 0;
}

static int enter(struct stream_array *array, u32 i, struct stream_data *sd,
		 char *why)
{
	unsigned long irq;
	int ret = check_member(array, i, &array->member[i], sd, why);

	if (ret)
		return ret;
	spin_lock_irqsave(&sd->io.lock, irq);
	array->member[i].sd = sd;
	sd->array = array;
	sd->array_index = i;
	ret = enter_core(sd, why);
	if (ret) {
		sd->array = NULL;
		array->member[i].sd = NULL;
	}
	spin_unlock_irqrestore(&sd->io.lock, irq);
	return ret;
}

static void leave(struct stream_data *sd)
{
	struct stream_array *array = sd->array;
	unsigned long irq;

	spin_lock_irqsave(&sd->io.lock, irq);
	ss_array_detach(array->core, sd->array_index, iosched_now_ns());
	sd->array = NULL;
	spin_unlock_irqrestore(&sd->io.lock, irq);
	array->member[sd->array_index].sd = NULL;
}

/* The coordinator may have kept it idle. */
static void leave_and_go_on(struct stream_data *sd)
{
	leave(sd);
	kblockd_schedule_work(&sd->kick);
}

void stream_array_join(struct stream_data *sd)
{
	struct stream_array *array;
	char why[WHY_BYTES];
	u32 i;

	INIT_WORK(&sd->kick, kick_work);
	sd->io.placed = place_done;
	mutex_lock(&stream_members);
	list_add(&sd->members_node, &scheds);
	list_for_each_entry(array, &arrays, node)
		for (i = 0; i < array->nr_members; i++)
			if (array->member[i].dev &&
			    array->member[i].dev == dev_of(sd) &&
			    !array->member[i].sd && !sd->array &&
			    enter(array, i, sd, why))
				pr_info("stream: %s: %s\n",
					config_item_name(&array->item), why);
	mutex_unlock(&stream_members);
}

void stream_array_leave(struct stream_data *sd)
{
	u32 i;

	mutex_lock(&stream_members);
	list_del(&sd->members_node);
	if (sd->array)
		leave(sd);
	mutex_unlock(&stream_members);
	cancel_work_sync(&sd->kick);
	/* The queue is frozen: what was read into them has ended. */
	for (i = 0; i < STREAM_PLACE_PAGES; i++)
		if (sd->place_page[i])
			__free_page(sd->place_page[i]);
}

void stream_array_renew(struct stream_data *sd)
{
	char why[WHY_BYTES];

	lockdep_assert_held(&sd->io.lock);
	if (!sd->array)
		return;
	ss_array_detach(sd->array->core, sd->array_index, iosched_now_ns());
	/* Where it never waits, as on a flat disk, it is none for now. */
	enter_core(sd, why);
}

/* ---- arrays ---- */

static void make_geometry(const struct stream_array *array,
			  const struct stream_member *member, u32 nr,
			  struct ss_array_geometry *geometry)
{
	u64 size = U64_MAX;
	u32 i;

	for (i = 0; i < nr; i++)
		if (member[i].dev)
			size = min_t(u64, size, member[i].nr_sectors);
	*geometry = (struct ss_array_geometry){
		.level = array->level,
		.layout = array->layout,
		.chunk_sectors = array->chunk_sectors,
		.nr_members = nr,
	};
	for (i = 0; i < nr; i++) {
		geometry->start_sector[i] = member[i].start_sector;
		geometry->member_sectors[i] = member[i].dev ?
						      member[i].nr_sectors :
						      size;
	}
}

static int check_present(struct stream_array *array,
			 const struct stream_member *member, u32 nr, char *why)
{
	u32 i, present = 0;
	int ret;

	for (i = 0; i < nr; i++) {
		struct stream_data *sd;

		if (!member[i].dev)
			continue;
		present++;
		sd = find_sched(member[i].dev);
		if (!sd) {
			snprintf(
				why, WHY_BYTES,
				"member %u: the disk %u:%u is not scheduled by stream",
				i, MAJOR(member[i].dev), MINOR(member[i].dev));
			return -EINVAL;
		}
		ret = check_member(array, i, &member[i], sd, why);
		if (ret)
			return ret;
	}
	if (present >= 2)
		return 0;
	snprintf(why, WHY_BYTES, "fewer than 2 members are there");
	return -EINVAL;
}

static void detach_all(struct stream_array *array)
{
	u32 i;

	for (i = 0; i < array->nr_members; i++)
		if (array->member[i].sd)
			leave_and_go_on(array->member[i].sd);
	list_del(&array->node);
}

static int attach_all(struct stream_array *array, struct ss_array *core,
		      struct ss_array_geometry *geometry, char *why)
{
	int ret;
	u32 i;

	make_geometry(array, array->member, array->nr_members, geometry);
	ret = ss_array_geometry_init(geometry, why, WHY_BYTES);
	if (!ret)
		ret = check_present(array, array->member, array->nr_members,
				    why);
	if (ret)
		return ret;
	core->lock = array_lock;
	core->unlock = array_unlock;
	core->kick = array_kick;
	core->places = true;
	core->host = array;
	ss_array_init(core, geometry);
	array->core = core;
	list_add(&array->node, &arrays);
	for (i = 0; i < array->nr_members && !ret; i++)
		if (array->member[i].dev)
			ret = enter(array, i, find_sched(array->member[i].dev),
				    why);
	if (ret) {
		detach_all(array);
		array->core = NULL;
	}
	return ret;
}

static int attach(struct stream_array *array)
{
	struct ss_array_geometry *geometry;
	struct ss_array *core;
	char why[WHY_BYTES] = "out of memory";
	int ret = -ENOMEM;

	geometry = kzalloc(sizeof(*geometry), GFP_KERNEL);
	core = kvzalloc(sizeof(*core), GFP_KERNEL);
	mutex_lock(&stream_members);
	if (is_attached(array)) {
		snprintf(why, sizeof(why), "it is attached already");
		ret = -EBUSY;
	} else if (geometry && core) {
		ret = attach_all(array, core, geometry, why);
	}
	if (!ret)
		core = NULL;
	mutex_unlock(&stream_members);
	kvfree(core);
	kfree(geometry);
	return ret ? refuse(array, "attached", ret, "%s", why) : 0;
}

static void detach(struct stream_array *array)
{
	struct ss_array *core;

	mutex_lock(&stream_members);
	core = array->core;
	if (core)
		detach_all(array);
	array->core = NULL;
	mutex_unlock(&stream_members);
	/* No member's lock leads there any more. */
	kvfree(core);
}

/* ---- other disks for an array's members ---- */

static bool is_same(const struct stream_member *a,
		    const struct stream_member *b)
{
	return a->dev == b->dev && a->start_sector == b->start_sector &&
	       a->nr_sectors == b->nr_sectors;
}

/* Member @i of an attached array is another disk, or none, from now on. */
static void replace(struct stream_array *array, u32 i,
		    const struct stream_member *member)
{
	struct stream_member *place = &array->member[i];
	struct ss_array_geometry *geometry = &array->core->geometry;
	struct stream_data *sd;
	char why[WHY_BYTES];

	if (place->sd)
		leave_and_go_on(place->sd);
	*place = *member;
	if (!place->dev)
		return;
	array_lock(array->core);
	geometry->start_sector[i] = place->start_sector;
	array_unlock(array->core);
	sd = find_sched(place->dev);
	if (sd && !sd->array && enter(array, i, sd, why))
		pr_info("stream: %s: %s\n", config_item_name(&array->item),
			why);
}

static int replace_all(struct stream_array *array,
		       const struct stream_member *member, u32 nr, char *why)
{
	u64 least = array->core->geometry.rows * array->chunk_sectors;
	u32 i;

	for (i = 0; i < nr; i++) {
		struct stream_data *sd = find_sched(member[i].dev);
		int ret;

		if (!member[i].dev || is_same(&member[i], &array->member[i]))
			continue;
		if (array->level == SS_ARRAY_LINEAR ||
		    member[i].nr_sectors < least) {
			snprintf(
				why, WHY_BYTES,
				"member %u: another disk must have the %llu sectors that the array uses",
				i, least);
			return -EINVAL;
		}
		ret = sd ? check_member(array, i, &member[i], sd, why) : 0;
		if (ret)
			return ret;
	}
	/* Two members may have changed places. */
	for (i = 0; i < nr; i++)
		if (!is_same(&member[i], &array->member[i]) &&
		    array->member[i].sd)
			leave_and_go_on(array->member[i].sd);
	for (i = 0; i < nr; i++)
		if (!is_same(&member[i], &array->member[i]))
			replace(array, i, &member[i]);
	return 0;
}

/* ---- configfs ---- */

/* One line, "MAJOR:MINOR START SECTORS" or "missing". */
static int parse_member(char *line, struct stream_member *member)
{
	u32 major, minor;
	char rest;

	memset(member, 0, sizeof(*member));
	if (!strcmp(strim(line), "missing"))
		return 0;
	if (sscanf(line, "%u:%u %llu %llu %c", &major, &minor,
		   &member->start_sector, &member->nr_sectors, &rest) != 4 ||
	    major >= 1U << (32 - MINORBITS) || minor > MINORMASK ||
	    !(major | minor) || !member->nr_sectors ||
	    member->nr_sectors > SS_ARRAY_SECTORS_MOST ||
	    member->start_sector > SS_ARRAY_SECTORS_MOST)
		return -EINVAL;
	member->dev = MKDEV(major, minor);
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
		int ret = replace_all(array, member, nr, why);

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
		return refuse(array, "level", -EINVAL,
			      "must be linear, raid0, raid5 or raid10");
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
			"must be left-asymmetric, right-asymmetric, left-symmetric or right-symmetric");
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
		ret = attach(array);
	else if (sysfs_streq(page, "0"))
		detach(array);
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
	array_lock(array->core);
	coordinated = array->core->attached & BIT(i);
	array_unlock(array->core);
	return coordinated ? "coordinated" : "does not rotate";
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
	u64 verdicts = 0, refusals = 0;

	mutex_lock(&stream_members);
	if (is_attached(array)) {
		ss_array_counters(array->core, &counters);
		array_lock(array->core);
		verdicts = array->core->trial.verdicts;
		refusals = array->core->trial.refusals;
		array_unlock(array->core);
	}
	mutex_unlock(&stream_members);
	return sysfs_emit(
		page,
		"turns %llu\nslices_ended %llu\nestablished %llu\nunusable %llu\ntrials %llu\ntrials_lost %llu\n",
		counters.turns, counters.slices_ended, counters.established,
		counters.unusable, verdicts, refusals);
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
	detach(to_array(item));
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
