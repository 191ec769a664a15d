// SPDX-License-Identifier: GPL-2.0-only
/* The media cache: the log, its map, and the cleaning of bands. */
#include "hdd_media.h"

#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "hdd_geometry.h"

/*
 * Most sectors of an extent, and of a piece of a band that is read or written
 * at once. Half: twice the map for large writes. Double: a read of the host
 * waits twice as long for a piece, 10 ms.
 */
#define HDD_MEDIA_PIECE 2048

int hdd_media_check(const struct hdd_params *p, const char **why)
{
	bool any = p->media_sectors != 0;

	*why = "media_sectors must be 0, or between 8192 and 2^32 - 1";
	if ((any && p->media_sectors < 4 * HDD_MEDIA_PIECE) ||
	    p->media_sectors >> 32)
		return -EINVAL;
	*why = "media_extents must be between 16 and 262144";
	if ((any && p->media_extents < 16) ||
	    p->media_extents > HDD_MAX_MEDIA_EXTENTS)
		return -EINVAL;
	*why = "band_sectors must be between 4096 and 2^24";
	if ((any && p->band_sectors < 2 * HDD_MEDIA_PIECE) ||
	    p->band_sectors > 1 << 24)
		return -EINVAL;
	*why = "media_idle_ns must be below 10000000000";
	if (p->media_idle_ns >= 10000000000ULL)
		return -EINVAL;
	*why = "with a media cache queue_depth must be at most 253";
	if (any && p->queue_depth >= HDD_MAX_DEPTH)
		return -EINVAL;
	*why = NULL;
	return 0;
}

void hdd_media_init(struct hdd_drive *drive)
{
	struct hdd_media *media = drive->media;

	memset(media, 0, sizeof(*media));
	media->tree = RB_ROOT;
	media->work = hdd_drive_work(drive, NULL);
}

/* The map. */

static struct hdd_media_extent *hdd_extent_of(const struct rb_node *node)
{
	return node ? rb_entry(node, struct hdd_media_extent, node) : NULL;
}

static u64 hdd_extent_end(const struct hdd_media_extent *extent)
{
	return extent->sector + extent->nr_sectors;
}

static struct hdd_media_extent *hdd_extent(const struct hdd_drive *drive,
					   u64 number)
{
	u64 slot;

	div64_u64_rem(number, drive->params.media_extents, &slot);
	return &drive->media->extent[slot];
}

/* The first that ends behind @sector, or NULL. */
static struct hdd_media_extent *hdd_extent_find(const struct hdd_media *media,
						u64 sector)
{
	struct rb_node *node = media->tree.rb_node;
	struct hdd_media_extent *best = NULL;

	while (node) {
		struct hdd_media_extent *extent = hdd_extent_of(node);

		if (hdd_extent_end(extent) > sector) {
			best = extent;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return best;
}

static void hdd_extent_insert(struct hdd_media *media,
			      struct hdd_media_extent *extent)
{
	struct rb_node **link = &media->tree.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = extent->sector < hdd_extent_of(parent)->sector ?
			       &parent->rb_left :
			       &parent->rb_right;
	}
	rb_link_node(&extent->node, parent, link);
	rb_insert_color(&extent->node, &media->tree);
}

/* Is there an extent with something on both sides of [sector, end)? */
static struct hdd_media_extent *hdd_extent_around(const struct hdd_media *media,
						  u64 sector, u64 end)
{
	struct hdd_media_extent *extent = hdd_extent_find(media, sector);

	if (extent && extent->sector < sector && hdd_extent_end(extent) > end)
		return extent;
	return NULL;
}

/* The log no longer counts for [sector, end), which no extent is around. */
static void hdd_extents_drop(struct hdd_media *media, u64 sector, u64 end)
{
	struct hdd_media_extent *extent, *next;
	u64 past;

	for (extent = hdd_extent_find(media, sector);
	     extent && extent->sector < end; extent = next) {
		next = hdd_extent_of(rb_next(&extent->node));
		if (extent->sector < sector) {
			extent->nr_sectors = sector - extent->sector;
		} else if (hdd_extent_end(extent) > end) {
			past = end - extent->sector;
			extent->sector += past;
			extent->log += past;
			extent->nr_sectors -= past;
		} else {
			rb_erase(&extent->node, &media->tree);
			extent->nr_sectors = 0;
		}
	}
}

u64 hdd_media_find(const struct hdd_drive *drive, u64 sector, u64 *nr)
{
	const struct hdd_media_extent *extent = hdd_extent_find(drive->media,
								sector);
	u64 place, size = drive->params.media_sectors;

	if (!extent || extent->sector > sector) {
		if (extent)
			*nr = min_t(u64, *nr, extent->sector - sector);
		return size + sector;
	}
	*nr = min_t(u64, *nr, hdd_extent_end(extent) - sector);
	div64_u64_rem(extent->log + sector - extent->sector, size, &place);
	return place;
}

/* The log. */

/*
 * Put [sector, end) at the end of the log: its place on the medium, or
 * U64_MAX when log or map is full.
 */
static u64 hdd_log_add(struct hdd_drive *drive, u64 sector, u64 end)
{
	u64 nr = end - sector, size = drive->params.media_sectors;
	struct hdd_media *media = drive->media;
	u64 begin = media->log_end, place, tail;
	struct hdd_media_extent *extent;

	while (media->oldest < media->newest &&
	       !hdd_extent(drive, media->oldest)->nr_sectors)
		media->oldest++;
	div64_u64_rem(begin, size, &place);
	/* In one piece. */
	if (place + nr > size) {
		begin += size - place;
		place = 0;
	}
	tail = media->oldest < media->newest ?
		       hdd_extent(drive, media->oldest)->log :
		       begin;
	if (begin + nr - tail > size ||
	    media->newest - media->oldest >= drive->params.media_extents)
		return U64_MAX;
	hdd_extents_drop(media, sector, end);
	extent = hdd_extent(drive, media->newest++);
	extent->sector = sector;
	extent->nr_sectors = nr;
	extent->log = begin;
	media->log_end = begin + nr;
	hdd_extent_insert(media, extent);
	return place;
}

/* Writes. */

void hdd_media_arrived(struct hdd_drive *drive, struct hdd_work *work)
{
	u64 sector = work->whole->sector, end, band, inside;
	struct hdd_media *media = drive->media;
	struct hdd_place place;
	u64 rest;

	end = sector + work->whole->nr_sectors;
	band = drive->params.band_sectors;
	if (sector != media->run_end) {
		if (media->run_past_log) {
			/* The last track lies over its successor. */
			hdd_locate(drive->actuator[0],
				   drive->params.media_sectors +
					   media->run_end - 1,
				   &place);
			media->save_sector = media->run_end;
			media->save_sectors = drive->actuator[0]
						      ->zone[place.zone]
						      .sectors_per_track;
		}
		media->run_past_log = false;
		media->run_begin = sector;
	}
	work->past_log = U64_MAX;
	if (media->run_past_log) {
		work->past_log = sector;
	} else if (sector - media->run_begin >= HDD_MEDIA_PIECE) {
		div64_u64_rem(sector, band, &rest);
		inside = rest ? band - rest : 0;
		if (sector + inside < end) {
			work->past_log = sector + inside;
			media->run_past_log = true;
		}
	}
	media->run_end = end;
}

/* What a run of sequential writes ended on; false: there is no room. */
static bool hdd_media_save(struct hdd_drive *drive, struct hdd_work *work,
			   u64 now_ns)
{
	u64 band = drive->params.band_sectors, rest;
	struct hdd_media *media = drive->media;
	u64 place, nr;

	div64_u64_rem(media->save_sector, band, &rest);
	nr = min_t(u64, media->save_sectors, HDD_MEDIA_PIECE);
	nr = min_t(u64, nr, rest ? band - rest : 0);
	nr = min_t(u64, nr,
		   drive->params.capacity_sectors - media->save_sector);
	/* What is around it in the log is safe already. */
	if (nr && !hdd_extent_around(media, media->save_sector,
				     media->save_sector + nr)) {
		place = hdd_log_add(drive, media->save_sector,
				    media->save_sector + nr);
		if (place == U64_MAX)
			return false;
		hdd_drive_send(drive, work, 0, HDD_WRITE, place, nr, false,
			       now_ns);
	}
	media->save_sectors = 0;
	return true;
}

/* Send the next part of the write @work; false: there is no room. */
static bool hdd_media_write(struct hdd_drive *drive, struct hdd_work *work,
			    u64 now_ns)
{
	const struct hdd_cmd *whole = work->whole;
	u64 sector = work->next_sector, end = whole->sector + whole->nr_sectors;
	struct hdd_media *media = drive->media;
	struct hdd_media_extent *around;
	u64 place, next;

	if (media->save_sectors) {
		if (!hdd_media_save(drive, work, now_ns))
			return false;
		if (work->nr_out)
			return true;
	}
	if (sector >= work->past_log &&
	    !hdd_extent_around(media, sector, end)) {
		hdd_extents_drop(media, sector, end);
		work->next_sector = end;
		hdd_drive_send(drive, work, 0, HDD_WRITE,
			       drive->params.media_sectors + sector,
			       end - sector, whole->fua, now_ns);
		return true;
	}
	end = min_t(u64, end, sector + HDD_MEDIA_PIECE);
	if (sector < work->past_log)
		end = min_t(u64, end, work->past_log);
	next = end;
	/* One that it would cut in two is written again with it. */
	around = hdd_extent_around(media, sector, end);
	if (around) {
		sector = around->sector;
		end = hdd_extent_end(around);
	}
	place = hdd_log_add(drive, sector, end);
	if (place == U64_MAX)
		return false;
	work->next_sector = next;
	hdd_drive_send(drive, work, 0, HDD_WRITE, place, end - sector,
		       whole->fua, now_ns);
	return true;
}

void hdd_media_go(struct hdd_drive *drive, struct hdd_work *work, u64 now_ns)
{
	const struct hdd_cmd *whole = work->whole;
	struct hdd_media *media = drive->media;
	u64 place, nr = whole->sector + whole->nr_sectors - work->next_sector;

	if (whole->op == HDD_READ) {
		place = hdd_media_find(drive, work->next_sector, &nr);
		work->next_sector += nr;
		hdd_drive_send(drive, work, 0, HDD_READ, place, nr, false,
			       now_ns);
		return;
	}
	if (!media->held_first && hdd_media_write(drive, work, now_ns))
		return;
	hdd_append(media->held, work);
	if (!media->cleaning)
		hdd_media_begin(drive, now_ns);
}

/* Cleaning. */

/* Of the band being cleaned: first sector, and its end. */
static u64 hdd_band(const struct hdd_drive *drive, u64 *end)
{
	u64 begin = drive->media->band * drive->params.band_sectors;

	*end = min_t(u64, begin + drive->params.band_sectors,
		     drive->params.capacity_sectors);
	return begin;
}

/* Go on along the band, reading or writing; false: it is through. */
static bool hdd_clean_piece(struct hdd_drive *drive, u8 op, u64 now_ns)
{
	struct hdd_media *media = drive->media;
	u64 end, sector = hdd_band(drive, &end) + media->done_sectors;
	u64 nr = min_t(u64, end - sector, HDD_MEDIA_PIECE);

	if (!nr)
		return false;
	media->done_sectors += nr;
	/* Not into the write cache: what is moved was safe where it was. */
	hdd_drive_send(drive, media->work, 0, op,
		       drive->params.media_sectors + sector, nr,
		       op == HDD_WRITE, now_ns);
	return true;
}

/* Read something of the band that the log has; false: it has nothing. */
static bool hdd_clean_log(struct hdd_drive *drive, u64 now_ns)
{
	const struct hdd_media_extent *extent;
	struct hdd_media *media = drive->media;
	u64 end, begin = hdd_band(drive, &end), place, nr;

	extent = hdd_extent_find(media, begin);
	if (!extent || extent->sector >= end)
		return false;
	begin = max_t(u64, begin, extent->sector);
	nr = end - begin;
	place = hdd_media_find(drive, begin, &nr);
	hdd_extents_drop(media, begin, begin + nr);
	hdd_drive_send(drive, media->work, 0, HDD_READ, place, nr, false,
		       now_ns);
	return true;
}

static void hdd_clean_step(struct hdd_drive *drive, u64 now_ns)
{
	struct hdd_media *media = drive->media;

	if (!media->writing) {
		if (hdd_clean_piece(drive, HDD_READ, now_ns) ||
		    hdd_clean_log(drive, now_ns))
			return;
		media->writing = true;
		media->done_sectors = 0;
	}
	if (!hdd_clean_piece(drive, HDD_WRITE, now_ns))
		media->cleaning = false;
}

void hdd_media_begin(struct hdd_drive *drive, u64 now_ns)
{
	struct hdd_media *media = drive->media;
	u64 sector;

	while (!hdd_extent(drive, media->oldest)->nr_sectors)
		media->oldest++;
	sector = hdd_extent(drive, media->oldest)->sector;
	media->band = div_u64(sector, drive->params.band_sectors);
	media->cleaning = true;
	media->writing = false;
	media->done_sectors = 0;
	hdd_clean_step(drive, now_ns);
}

void hdd_media_cleaned(struct hdd_drive *drive, u64 now_ns)
{
	struct hdd_media *media = drive->media;
	struct hdd_work *work;

	hdd_clean_step(drive, now_ns);
	while (!media->cleaning && media->held_first) {
		work = media->held_first;
		if (!hdd_media_write(drive, work, now_ns)) {
			hdd_media_begin(drive, now_ns);
			return;
		}
		media->held_first = work->next;
		if (!work->next)
			media->held_last = NULL;
		work->next = NULL;
	}
}

u64 hdd_media_idle_ns(const struct hdd_drive *drive)
{
	const struct hdd_media *media = drive->media;

	if (media->cleaning || drive->nr_works || RB_EMPTY_ROOT(&media->tree))
		return U64_MAX;
	return media->quiet_since_ns + drive->params.media_idle_ns;
}
