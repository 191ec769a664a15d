// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: the members of an array coordinated.
 *
 * Somebody else drives the array (md, device mapper); of it only its layout is
 * known, and which part of which disk each member is (stream-array-configfs.c).
 * While it is attached, those of its members that stream schedules are
 * coordinated (core/array/array.h); md knows nothing of it, and no request
 * takes another way. A member whose scheduler goes (another one is chosen, the
 * disk is removed) leaves; when there is a scheduler stream for a disk of that
 * number again, it returns.
 *
 * Only best-effort requests take part. The locks are told in stream-array.h.
 */
#include "stream-array-internal.h"

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/module.h>
#include <linux/refcount.h>
#include <linux/slab.h>

#if IS_ENABLED(CONFIG_CONFIGFS_FS)

DEFINE_MUTEX(stream_members);
static LIST_HEAD(scheds); /* all struct stream_data, by members_node */
static LIST_HEAD(arrays); /* those that are attached */

/* ---- what the coordinator needs of its host ---- */

/* Interrupts are off already for a member's events, but not for a reader. */
void stream_array_lock(struct ss_array *core) __acquires(core)
{
	struct stream_array *array = core->host;
	unsigned long irq;

	spin_lock_irqsave(&array->lock, irq);
	array->irq = irq;
}

void stream_array_unlock(struct ss_array *core) __releases(core)
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

/* A placing read has 64 KiB at most. */
#define PLACE_PAGES DIV_ROUND_UP(65536, PAGE_SIZE)

/*
 * What a placing read uses. cgroup v1 may throttle the root, and the read then
 * waits outside the queue: a frozen queue does not mean that it has ended. So
 * the read may outlive the scheduler, and holds this and the module itself.
 */
struct stream_place {
	refcount_t users; /* the scheduler, and the read under way */
	unsigned long busy; /* bit 0: a read is under way */
	struct page *page[PLACE_PAGES]; /* read into, for nobody */
};

static void put_place(struct stream_place *place)
{
	u32 i;

	if (!place || !refcount_dec_and_test(&place->users))
		return;
	for (i = 0; i < PLACE_PAGES; i++)
		if (place->page[i])
			__free_page(place->page[i]);
	kfree(place);
}

/* Nobody waits for what was read, nor asks whether it could be. */
static void place_done(struct bio *bio)
{
	struct stream_place *place = bio->bi_private;

	bio_put(bio);
	clear_bit_unlock(0, &place->busy);
	put_place(place);
	module_put(THIS_MODULE);
}

/* Memory for it, once; without it heads are not placed. */
static bool place_memory(struct stream_data *sd)
{
	const gfp_t gfp = GFP_NOWAIT | __GFP_NOWARN;
	u32 i;

	if (!sd->place) {
		sd->place = kzalloc(sizeof(*sd->place), gfp);
		if (!sd->place)
			return false;
		refcount_set(&sd->place->users, 1);
	}
	for (i = 0; i < PLACE_PAGES; i++) {
		if (!sd->place->page[i])
			sd->place->page[i] = alloc_page(gfp);
		if (!sd->place->page[i])
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

	bio = bio_alloc(sd->io.queue->disk->part0, PLACE_PAGES,
			REQ_OP_READ | REQ_SYNC | REQ_NOMERGE | REQ_NOWAIT,
			GFP_NOWAIT | __GFP_NOWARN);
	if (!bio)
		return;
	bio->bi_iter.bi_sector = sector;
	for (i = 0; left; i++) {
		u32 part = min_t(u32, left, PAGE_SIZE);

		__bio_add_page(bio, sd->place->page[i], part, 0);
		left -= part;
	}
	bio->bi_end_io = place_done;
	bio->bi_private = sd->place;
	__set_bit(0, &sd->place->busy);
	refcount_inc(&sd->place->users);
	/* The scheduler holds it already, so it is not about to go. */
	__module_get(THIS_MODULE);
	submit_bio(bio);
}

/* Does the coordinator want the head somewhere? */
static void place_if_wanted(struct stream_data *sd)
{
	unsigned long irq;
	u32 nr_sectors;
	bool wanted;
	u64 sector;

	if (sd->place && test_bit_acquire(0, &sd->place->busy))
		return;
	if (!place_memory(sd))
		return;
	spin_lock_irqsave(&sd->io.lock, irq);
	wanted = sd->array && ss_array_place(sd->array->core, sd->array_index,
					     &sector, &nr_sectors);
	spin_unlock_irqrestore(&sd->io.lock, irq);
	if (wanted)
		place(sd, sector, nr_sectors);
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
			       iosched_usual(&sd->io), why, WHY_BYTES);
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
	if (sd->io.heads.nr > 1) {
		snprintf(
			why, WHY_BYTES,
			"member %u: %s has two actuators; arrays of such disks are not coordinated",
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
	mutex_lock(&stream_members);
	list_del(&sd->members_node);
	if (sd->array)
		leave(sd);
	mutex_unlock(&stream_members);
	cancel_work_sync(&sd->kick);
	put_place(sd->place);
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
	core->lock = stream_array_lock;
	core->unlock = stream_array_unlock;
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

int stream_array_attach(struct stream_array *array)
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

void stream_array_detach(struct stream_array *array)
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
	stream_array_lock(array->core);
	geometry->start_sector[i] = place->start_sector;
	stream_array_unlock(array->core);
	sd = find_sched(place->dev);
	if (sd && !sd->array && enter(array, i, sd, why))
		pr_info("stream: %s: %s\n", config_item_name(&array->item),
			why);
}

int stream_array_replace(struct stream_array *array,
			 const struct stream_member *member, u32 nr, char *why)
{
	u64 least = array->core->geometry.used_sectors;
	u32 i;

	for (i = 0; i < nr; i++) {
		struct stream_data *sd = find_sched(member[i].dev);
		int ret;

		if (!member[i].dev || is_same(&member[i], &array->member[i]))
			continue;
		if (array->level == SS_ARRAY_LINEAR) {
			snprintf(
				why, WHY_BYTES,
				"member %u: an attached linear array keeps its disks",
				i);
			return -EINVAL;
		}
		if (member[i].nr_sectors < least) {
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

#endif
