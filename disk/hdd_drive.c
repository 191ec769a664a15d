// SPDX-License-Identifier: GPL-2.0-only
/*
 * The drive: a host's commands in parts for its actuators, and the parts put
 * together again.
 *
 * What the actuators complete is taken from them in order of time, each at its
 * own time, so that what follows from it begins then however late the host
 * looks.
 */
#include "hdd_drive.h"

#include <linux/bug.h>
#include <linux/container_of.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "hdd_media.h"

static u32 hdd_nr_actuators(const struct hdd_params *p)
{
	return p->kind == HDD_KIND_MECHANICAL && p->actuators == 2 ? 2 : 1;
}

static bool hdd_has_media(const struct hdd_params *p)
{
	return p->kind == HDD_KIND_MECHANICAL && p->media_sectors;
}

static u64 hdd_media_bytes(const struct hdd_params *p)
{
	if (!hdd_has_media(p))
		return 0;
	return sizeof(struct hdd_media) +
	       min_t(u64, p->media_extents, HDD_MAX_MEDIA_EXTENTS) *
		       sizeof(struct hdd_media_extent);
}

u64 hdd_drive_bytes(const struct hdd_params *params)
{
	return sizeof(struct hdd_drive) +
	       hdd_nr_actuators(params) * sizeof(struct hdd) +
	       hdd_media_bytes(params);
}

static int hdd_drive_check(const struct hdd_params *p, const char **why)
{
	if (p->kind != HDD_KIND_MECHANICAL)
		return 0;
	*why = "actuators must be 1 or 2";
	if (p->actuators < 1 || p->actuators > HDD_MAX_ACTUATORS)
		return -EINVAL;
	*why = "with two actuators capacity_sectors must be a multiple of 16";
	if (p->actuators == 2 && p->capacity_sectors % 16)
		return -EINVAL;
	*why = "a disk with a media cache has one actuator";
	if (p->actuators == 2 && p->media_sectors)
		return -EINVAL;
	return hdd_media_check(p, why);
}

int hdd_drive_init(struct hdd_drive *drive, const struct hdd_params *params,
		   const char **why)
{
	struct hdd *actuator = (struct hdd *)(drive + 1);
	int err = hdd_drive_check(params, why);
	struct hdd_params *one = &drive->params;
	u32 i;

	if (err)
		return err;
	drive->nr_actuators = hdd_nr_actuators(params);
	drive->range_sectors = params->capacity_sectors;
	*one = *params;
	if (drive->nr_actuators == 2) {
		drive->range_sectors /= 2;
		one->capacity_sectors = drive->range_sectors;
	} else if (hdd_has_media(params)) {
		one->capacity_sectors += params->media_sectors;
		one->queue_depth++; /* the drive's own */
	}
	for (i = 0; i < drive->nr_actuators; i++) {
		drive->actuator[i] = &actuator[i];
		err = hdd_init(&actuator[i], one, why);
		if (err)
			return err;
		actuator[i].bus = &actuator[0].own_bus;
	}
	*one = *params;
	drive->depth = params->queue_depth;
	drive->in_flight = 0;
	drive->nr_works = 0;
	drive->clock_ns = 0;
	drive->done_first = NULL;
	drive->done_last = NULL;
	drive->free = NULL;
	for (i = 0; i < HDD_MAX_DEPTH + 1; i++) {
		drive->work[i].next = drive->free;
		drive->free = &drive->work[i];
	}
	drive->media = NULL;
	if (hdd_has_media(params)) {
		drive->media = (struct hdd_media *)&actuator[1];
		hdd_media_init(drive);
	}
	drive->plain = drive->nr_actuators == 1 && !drive->media;
	return 0;
}

int hdd_drive_set_queue_depth(struct hdd_drive *drive, u32 depth)
{
	if (drive->plain)
		return hdd_set_queue_depth(drive->actuator[0], depth);
	if (depth < 1 || depth > drive->params.queue_depth)
		return -EINVAL;
	if (drive->in_flight)
		return -EBUSY;
	drive->depth = depth;
	return 0;
}

u32 hdd_drive_in_flight(const struct hdd_drive *drive)
{
	return drive->plain ? drive->actuator[0]->in_flight : drive->in_flight;
}

bool hdd_drive_full(const struct hdd_drive *drive)
{
	return drive->plain ? hdd_full(drive->actuator[0]) :
			      drive->in_flight >= drive->depth;
}

/* Parts. */

struct hdd_work *hdd_drive_work(struct hdd_drive *drive, struct hdd_cmd *whole)
{
	struct hdd_work *work = drive->free;

	drive->free = work->next;
	work->whole = whole;
	work->nr_out = 0;
	work->next = NULL;
	return work;
}

void hdd_drive_send(struct hdd_drive *drive, struct hdd_work *work, u32 i,
		    u8 op, u64 sector, u64 nr, bool fua, u64 now_ns)
{
	struct hdd_part *part = &work->part[i];

	part->work = work;
	part->cmd.op = op;
	part->cmd.sector = sector;
	part->cmd.nr_sectors = (u32)nr;
	part->cmd.fua = fua;
	part->cmd.internal = !work->whole;
	work->nr_out++;
	hdd_submit(drive->actuator[i], &part->cmd, now_ns);
}

/* Send what there is to send of @work. */
static void hdd_drive_go(struct hdd_drive *drive, struct hdd_work *work,
			 u64 now_ns)
{
	const struct hdd_cmd *whole = work->whole;
	u64 end = whole->sector + whole->nr_sectors;
	u32 i;

	if (drive->media && whole->op != HDD_FLUSH) {
		hdd_media_go(drive, work, now_ns);
		return;
	}
	for (i = 0; i < drive->nr_actuators; i++) {
		u64 base = i * drive->range_sectors;
		u64 from = max_t(u64, whole->sector, base);
		u64 to = min_t(u64, end, base + drive->range_sectors);

		if (whole->op == HDD_FLUSH)
			hdd_drive_send(drive, work, i, HDD_FLUSH, 0, 0, false,
				       now_ns);
		else if (from < to)
			hdd_drive_send(drive, work, i, whole->op, from - base,
				       to - from, whole->fua, now_ns);
	}
	work->next_sector = end;
}

/* All of @work's parts are back at @now_ns, and nothing is left to send. */
static void hdd_drive_done(struct hdd_drive *drive, struct hdd_work *work,
			   u64 now_ns)
{
	struct hdd_cmd *whole = work->whole;

	whole->done_ns = now_ns;
	hdd_append(drive->done, whole);
	drive->nr_works--;
	if (drive->media && !drive->nr_works)
		drive->media->quiet_since_ns = now_ns;
	work->next = drive->free;
	drive->free = work;
}

static void hdd_drive_part_back(struct hdd_drive *drive,
				const struct hdd_cmd *cmd)
{
	struct hdd_work *work = container_of(cmd, struct hdd_part, cmd)->work;
	struct hdd_cmd *whole = work->whole;

	work->nr_out--;
	if (!whole) {
		hdd_media_cleaned(drive, cmd->done_ns);
		return;
	}
	whole->start_ns = min_t(u64, whole->start_ns, cmd->start_ns);
	whole->position_ns += cmd->position_ns;
	if (work->nr_out)
		return;
	if (whole->op != HDD_FLUSH &&
	    work->next_sector < whole->sector + whole->nr_sectors)
		hdd_drive_go(drive, work, cmd->done_ns);
	else
		hdd_drive_done(drive, work, cmd->done_ns);
}

/* The actuator whose next command is done first. */
static struct hdd *hdd_drive_first(const struct hdd_drive *drive)
{
	struct hdd *first = drive->actuator[0];

	if (drive->nr_actuators > 1 &&
	    hdd_next_ns(drive->actuator[1]) < hdd_next_ns(first))
		first = drive->actuator[1];
	return first;
}

/* All that has happened up to @now_ns. */
static void hdd_drive_run(struct hdd_drive *drive, u64 now_ns)
{
	for (;;) {
		struct hdd *first = hdd_drive_first(drive);
		u64 next_ns = hdd_next_ns(first);
		u64 idle_ns = drive->media ? hdd_media_idle_ns(drive) : U64_MAX;

		if (min_t(u64, next_ns, idle_ns) > now_ns)
			break;
		if (next_ns <= idle_ns)
			hdd_drive_part_back(drive, hdd_pop(first, next_ns));
		else
			hdd_media_begin(drive, idle_ns);
	}
	drive->clock_ns = max_t(u64, drive->clock_ns, now_ns);
}

void hdd_drive_submit(struct hdd_drive *drive, struct hdd_cmd *cmd, u64 now_ns)
{
	struct hdd_work *work;

	if (likely(drive->plain)) {
		hdd_submit(drive->actuator[0], cmd, now_ns);
		return;
	}
	BUG_ON(hdd_drive_full(drive));
	now_ns = max_t(u64, now_ns, drive->clock_ns);
	hdd_drive_run(drive, now_ns);
	drive->in_flight++;
	drive->nr_works++;
	cmd->submit_ns = now_ns;
	cmd->start_ns = U64_MAX;
	cmd->position_ns = 0;
	work = hdd_drive_work(drive, cmd);
	work->next_sector = cmd->sector;
	if (drive->media && cmd->op == HDD_WRITE)
		hdd_media_arrived(drive, work);
	hdd_drive_go(drive, work, now_ns);
}

u64 hdd_drive_next_ns(const struct hdd_drive *drive)
{
	if (likely(drive->plain))
		return hdd_next_ns(drive->actuator[0]);
	if (drive->done_first)
		return drive->done_first->done_ns;
	return drive->in_flight ? hdd_next_ns(hdd_drive_first(drive)) : U64_MAX;
}

struct hdd_cmd *hdd_drive_pop(struct hdd_drive *drive, u64 now_ns)
{
	struct hdd_cmd *cmd;

	if (likely(drive->plain))
		return hdd_pop(drive->actuator[0], now_ns);
	hdd_drive_run(drive, now_ns);
	cmd = drive->done_first;
	if (!cmd)
		return NULL;
	drive->done_first = cmd->next;
	if (!cmd->next)
		drive->done_last = NULL;
	drive->in_flight--;
	return cmd;
}

/* The write caches. */

bool hdd_drive_volatile(const struct hdd_drive *drive, u64 sector, u64 nr,
			u64 now_ns)
{
	u64 end = sector + nr;

	while (sector < end) {
		u64 place = sector, here = end - sector;
		u32 i = 0;

		if (drive->media) {
			place = hdd_media_find(drive, sector, &here);
		} else if (sector >= drive->range_sectors) {
			i = 1;
			place -= drive->range_sectors;
		} else {
			here = min_t(u64, here, drive->range_sectors - sector);
		}
		if (hdd_volatile(drive->actuator[i], place, here, now_ns))
			return true;
		sector += here;
	}
	return false;
}

u64 hdd_drive_free_ns(const struct hdd_drive *drive)
{
	u64 free_ns = 0;
	u32 i;

	for (i = 0; i < drive->nr_actuators; i++)
		free_ns = max_t(u64, free_ns, drive->actuator[i]->free_ns);
	return free_ns;
}

void hdd_drive_dirty(const struct hdd_drive *drive, u64 *sectors, u32 *extents)
{
	u32 i;

	*sectors = 0;
	*extents = 0;
	for (i = 0; i < drive->nr_actuators; i++) {
		*sectors += drive->actuator[i]->dirty_sectors;
		*extents += drive->actuator[i]->nr_dirty;
	}
}
