// SPDX-License-Identifier: GPL-2.0-only
/*
 * The disk: command queue, mechanism, read and write cache.
 *
 * The mechanism does one thing after the other: a host's command, or a piece
 * of the write cache. A command that needs it waits in the queue until it is
 * chosen; from then on its end is known, so it moves to the list of commands
 * to pop. Commands that the caches can answer skip the queue.
 *
 * What the drive does on its own (reading ahead, writing out its cache) has
 * no events. It is worked out when somebody next looks: hdd_advance() catches
 * up with the time before anything else is done.
 */
#include "hdd.h"

#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "hdd_dirty.h"
#include "hdd_geometry.h"

/*
 * The write cache goes to the medium in pieces of at most this many sectors,
 * so that a read that comes meanwhile does not wait for all of it.
 */
#define HDD_PIECE_SECTORS 512

/*
 * Beside reads the write cache has its share in bursts that begin when it is
 * owed so many revolutions: then going there and back is a small part of one.
 * Half: a third of a burst is moving. Double: a read waits 130 ms for it.
 */
#define HDD_BURST_REVOLUTIONS 8

/* Setting up. */

static int hdd_check_common(const struct hdd_params *p, const char **why)
{
	*why = "capacity_sectors must be between 1 and 2^48";
	if (!p->capacity_sectors || p->capacity_sectors >> 48)
		return -EINVAL;
	*why = "queue_depth must be between 1 and 254";
	if (p->queue_depth < 1 || p->queue_depth > HDD_MAX_DEPTH)
		return -EINVAL;
	*why = "interface_bytes_per_s must be between 1000000 and 100000000000";
	if (p->interface_bytes_per_s < 1000000 ||
	    p->interface_bytes_per_s > 100000000000ULL)
		return -EINVAL;
	*why = "command_overhead_ns must be below 100000000";
	if (p->command_overhead_ns >= 100000000)
		return -EINVAL;
	*why = "flush_ns must be below 10000000000";
	if (p->flush_ns >= 10000000000ULL)
		return -EINVAL;
	*why = NULL;
	return 0;
}

static int hdd_check_caches(const struct hdd_params *p, const char **why)
{
	u32 i;

	*why = "read_watermark_permille must be between 0 and 1000";
	if (p->read_watermark_permille > 1000)
		return -EINVAL;
	*why = "watermark_of is not one of enum hdd_watermark";
	if (p->watermark_of > HDD_WATERMARK_OF_SEGMENT)
		return -EINVAL;
	*why = "write_series must be 0 or 1";
	if (p->write_series > 1)
		return -EINVAL;
	*why = "interface_unit_sectors must be between 1 and 65535";
	if (p->interface_unit_sectors < 1 || p->interface_unit_sectors > 65535)
		return -EINVAL;
	*why = "each of overhead_ns must be below 100000000";
	for (i = 0; i < 2 * HDD_CLASSES; i++)
		if (p->overhead_ns[i] >= 100000000)
			return -EINVAL;
	*why = "queue_order is not one of enum hdd_order";
	if (p->queue_order > HDD_ORDER_SPTF)
		return -EINVAL;
	*why = "queue_age_permille must be between 0 and 1000";
	if (p->queue_age_permille > 1000)
		return -EINVAL;
	*why = "segments must be between 1 and 64";
	if (p->segments < 1 || p->segments > HDD_MAX_SEGMENTS)
		return -EINVAL;
	*why = "segment_sectors must be at least 1";
	if (!p->segment_sectors)
		return -EINVAL;
	*why = "readahead_sectors must not be larger than segment_sectors";
	if (p->readahead_sectors > p->segment_sectors)
		return -EINVAL;
	*why = "ahead_until is not one of enum hdd_ahead";
	if (p->ahead_until > HDD_AHEAD_TRACKS)
		return -EINVAL;
	*why = "read_behind must be 0 or 1";
	if (p->read_behind > 1)
		return -EINVAL;
	*why = "segment_keeps_read, write_empties and write_cache_durable must be 0 or 1";
	if (p->segment_keeps_read > 1 || p->write_empties > 1 ||
	    p->write_cache_durable > 1)
		return -EINVAL;
	*why = "physical_sectors must be 1 or 8";
	if (p->physical_sectors != 1 && p->physical_sectors != 8)
		return -EINVAL;
	*why = "write_order is not one of enum hdd_write_order";
	if (p->write_order > HDD_WRITE_SPTF)
		return -EINVAL;
	*why = "write_share_permille must be between 0 and 900";
	if (p->write_share_permille > 900)
		return -EINVAL;
	*why = "write_cache_extents must be between 1 and 32768";
	if (p->write_cache_sectors && (p->write_cache_extents < 1 ||
				       p->write_cache_extents > HDD_MAX_DIRTY))
		return -EINVAL;
	*why = "write_idle_ns must be below 10000000000";
	if (p->write_idle_ns >= 10000000000ULL)
		return -EINVAL;
	*why = NULL;
	return 0;
}

static int hdd_check_flat(const struct hdd_params *p, const char **why)
{
	*why = "flat_channels must be between 1 and 32";
	if (p->flat_channels < 1 || p->flat_channels > HDD_MAX_CHANNELS)
		return -EINVAL;
	*why = "flat_read_ns and flat_write_ns must be below 1000000000";
	if (p->flat_read_ns >= 1000000000 || p->flat_write_ns >= 1000000000)
		return -EINVAL;
	*why = "flat_read_bytes_per_s and flat_write_bytes_per_s must be between 1000000 and 100000000000";
	if (p->flat_read_bytes_per_s < 1000000 ||
	    p->flat_read_bytes_per_s > 100000000000ULL ||
	    p->flat_write_bytes_per_s < 1000000 ||
	    p->flat_write_bytes_per_s > 100000000000ULL)
		return -EINVAL;
	*why = NULL;
	return 0;
}

/* Picoseconds for one sector. */
static u64 hdd_sector_ps(u64 bytes_per_s)
{
	return div64_u64(512 * 1000000000000ULL, bytes_per_s);
}

static u64 hdd_bus_ns(const struct hdd *hdd, u64 nr_sectors)
{
	return div_u64(nr_sectors * hdd->interface_ps, 1000);
}

static void hdd_init_segments(struct hdd *hdd)
{
	u32 last = hdd->params.segments - 1;
	u32 i;

	for (i = 0; i <= last; i++) {
		/* Empty, and next to no sector that exists. */
		hdd->segment_first[i] = U64_MAX;
		hdd->segment_length[i] = 0;
		hdd->segment_newer[i] = (u8)(i ? i - 1 : 0);
		hdd->segment_older[i] = (u8)(i < last ? i + 1 : last);
	}
	hdd->segment_newest = 0;
	hdd->segment_oldest = (u8)last;
}

int hdd_init(struct hdd *hdd, const struct hdd_params *params, const char **why)
{
	int err;

	/* The pool of the write cache needs no zeroes. */
	memset(hdd, 0, offsetof(struct hdd, dirty));
	hdd->params = *params;
	hdd->depth = params->queue_depth;
	hdd->bus = &hdd->own_bus;
	*why = "kind is not one of enum hdd_kind";
	if (params->kind > HDD_KIND_FLAT)
		return -EINVAL;
	err = hdd_check_common(params, why);
	if (err)
		return err;
	hdd->interface_ps = hdd_sector_ps(params->interface_bytes_per_s);
	if (params->kind == HDD_KIND_FLAT) {
		err = hdd_check_flat(params, why);
		if (err)
			return err;
		hdd->flat_ps[HDD_READ] = hdd_sector_ps(
			params->flat_read_bytes_per_s);
		hdd->flat_ps[HDD_WRITE] = hdd_sector_ps(
			params->flat_write_bytes_per_s);
		return 0;
	}
	err = hdd_check_caches(params, why);
	if (!err)
		err = hdd_geometry_init(hdd, why);
	if (err)
		return err;
	hdd->tail_ns = (u32)hdd_bus_ns(hdd, params->interface_unit_sectors);
	hdd_init_segments(hdd);
	hdd_dirty_init(hdd);
	return 0;
}

int hdd_set_queue_depth(struct hdd *hdd, u32 depth)
{
	if (depth < 1 || depth > hdd->params.queue_depth)
		return -EINVAL;
	if (hdd->in_flight)
		return -EBUSY;
	hdd->depth = depth;
	return 0;
}

bool hdd_full(const struct hdd *hdd)
{
	return hdd->in_flight >= hdd->depth;
}

u64 hdd_next_ns(const struct hdd *hdd)
{
	return hdd->done_first ? hdd->done_first->done_ns : U64_MAX;
}

/* Commands whose end is known. */

static void hdd_finish(struct hdd *hdd, struct hdd_cmd *cmd, u64 done_ns)
{
	struct hdd_cmd **link = &hdd->done_first;

	cmd->done_ns = done_ns;
	hdd->last_done_ns = max_t(u64, hdd->last_done_ns, done_ns);
	if (hdd->done_last && hdd->done_last->done_ns <= done_ns)
		link = &hdd->done_last->next;
	else
		while (*link && (*link)->done_ns <= done_ns)
			link = &(*link)->next;
	cmd->next = *link;
	*link = cmd;
	if (!cmd->next)
		hdd->done_last = cmd;
}

/* The controller's time for a command of @class that has just come. */
static u64 hdd_overhead_ns(const struct hdd *hdd, enum hdd_class class)
{
	return hdd->params
		.overhead_ns[class + (hdd->last_wrote ? HDD_CLASSES : 0)];
}

/*
 * The interface carries @cmd's data, not before @from_ns; gives its end. What
 * fits into a gap before data that the medium is yet to give goes there.
 */
static u64 hdd_bus_carry(struct hdd *hdd, const struct hdd_cmd *cmd,
			 u64 from_ns)
{
	struct hdd_bus *bus = hdd->bus;
	u64 took_ns, begin_ns = max_t(u64, from_ns, bus->gap_begin_ns);

	if (cmd->internal)
		return from_ns;
	took_ns = hdd_bus_ns(hdd, cmd->nr_sectors);
	if (begin_ns + took_ns <= bus->gap_end_ns) {
		bus->gap_begin_ns = begin_ns + took_ns;
		return bus->gap_begin_ns;
	}
	if (from_ns > bus->free_ns) {
		bus->gap_begin_ns = bus->free_ns;
		bus->gap_end_ns = from_ns;
	}
	bus->free_ns = max_t(u64, from_ns, bus->free_ns) + took_ns;
	return bus->free_ns;
}

static void hdd_finish_at(struct hdd *hdd, struct hdd_cmd *cmd, u64 done_ns)
{
	if (hdd->params.queue_order == HDD_ORDER_FIFO)
		done_ns = max_t(u64, done_ns, hdd->last_done_ns);
	hdd->quiet_since_ns = max_t(u64, hdd->quiet_since_ns, done_ns);
	hdd_finish(hdd, cmd, done_ns);
}

/* A command that the drive's electronics alone can answer. */
static void hdd_finish_bus(struct hdd *hdd, struct hdd_cmd *cmd, u64 start_ns)
{
	cmd->start_ns = start_ns;
	hdd_finish_at(hdd, cmd, hdd_bus_carry(hdd, cmd, start_ns));
}

/* How many of a read's sectors must be in the buffer before any is sent. */
static u64 hdd_watermark(const struct hdd *hdd, const struct hdd_cmd *cmd)
{
	const struct hdd_params *p = &hdd->params;
	u64 of = p->watermark_of == HDD_WATERMARK_OF_SEGMENT ?
			 p->segment_sectors :
			 cmd->nr_sectors;

	return min_t(u64, cmd->nr_sectors,
		     div_u64(of * p->read_watermark_permille, 1000));
}

/*
 * A read whose last @missing sectors were not in the buffer: they pass the head
 * from @first_ns to @medium_ns.
 */
static void hdd_finish_read(struct hdd *hdd, struct hdd_cmd *cmd, u64 missing,
			    u64 first_ns, u64 medium_ns)
{
	u64 bus_ns = hdd_bus_ns(hdd, cmd->nr_sectors);
	u64 there = cmd->nr_sectors - missing;
	u64 mark = hdd_watermark(hdd, cmd);

	if (mark > there)
		first_ns += div64_u64((medium_ns - first_ns) * (mark - there),
				      missing);
	first_ns = max_t(u64, first_ns, cmd->start_ns);
	if (cmd->internal || mark == cmd->nr_sectors)
		first_ns = medium_ns;
	else
		/* As late as it may, so that others can go before. */
		first_ns = max_t(u64, first_ns,
				 medium_ns + hdd->tail_ns -
					 min_t(u64, bus_ns,
					       medium_ns + hdd->tail_ns));
	hdd_finish_at(hdd, cmd, hdd_bus_carry(hdd, cmd, first_ns));
}

/* A write past the cache, whose data came until @bus_ns. */
static void hdd_finish_write(struct hdd *hdd, struct hdd_cmd *cmd, u64 bus_ns,
			     u64 medium_ns)
{
	hdd_finish_at(hdd, cmd, max_t(u64, medium_ns + hdd->tail_ns, bus_ns));
}

/* Read cache: segments in order of use, and the one that grows. */

static void hdd_segment_use(struct hdd *hdd, u32 i)
{
	u32 newer = hdd->segment_newer[i];
	u32 older = hdd->segment_older[i];

	if (i == hdd->segment_newest)
		return;
	if (i == hdd->segment_oldest) {
		hdd->segment_oldest = (u8)newer;
		hdd->segment_older[newer] = (u8)newer;
	} else {
		hdd->segment_older[newer] = (u8)older;
		hdd->segment_newer[older] = (u8)newer;
	}
	hdd->segment_older[i] = hdd->segment_newest;
	hdd->segment_newer[hdd->segment_newest] = (u8)i;
	hdd->segment_newest = (u8)i;
	hdd->segment_newer[i] = (u8)i;
}

/* The segment that holds @sector or ends just before it; -1 for none. */
static int hdd_segment_find(const struct hdd *hdd, u64 sector)
{
	u32 i, nr = hdd->params.segments;

	for (i = 0; i < nr; i++)
		if (sector - hdd->segment_first[i] <= hdd->segment_length[i])
			return (int)i;
	return -1;
}

/* The segment being filled ends at the head now; its start gives way. */
static void hdd_segment_grow(struct hdd *hdd)
{
	u32 i = hdd->segment_filled;
	u64 length = hdd->head_sector - hdd->segment_first[i];
	u64 most = hdd->params.segment_sectors;

	if (length > most) {
		hdd->segment_first[i] = hdd->head_sector - most;
		length = most;
	}
	hdd->segment_length[i] = length;
}

/* The host has what segment @i holds up to @end. */
static void hdd_segment_given(struct hdd *hdd, u32 i, u64 end)
{
	u64 past;

	if (hdd->params.segment_keeps_read || end <= hdd->segment_first[i])
		return;
	past = min_t(u64, end - hdd->segment_first[i], hdd->segment_length[i]);
	hdd->segment_first[i] += past;
	hdd->segment_length[i] -= past;
}

/* The sector behind the track of @sector. */
static u64 hdd_track_end(const struct hdd *hdd, u64 sector)
{
	struct hdd_place place;

	hdd_locate(hdd, sector, &place);
	return sector - place.sector + hdd->zone[place.zone].sectors_per_track;
}

/* The sector behind the cylinder of @sector. */
static u64 hdd_cylinder_end(const struct hdd *hdd, u64 sector)
{
	struct hdd_place place;
	const struct hdd_zone *zone;

	hdd_locate(hdd, sector, &place);
	zone = &hdd->zone[place.zone];
	return sector - place.sector +
	       (u64)zone->sectors_per_track *
		       (hdd->params.surfaces - place.head);
}

/* What was read up to @read_end went into the segment being filled. */
static void hdd_ahead_limit(struct hdd *hdd, u64 read_end)
{
	const struct hdd_params *p = &hdd->params;
	struct hdd_place place;
	u64 track_end, limit = min_t(u64, read_end + p->readahead_sectors,
				     p->capacity_sectors);

	if (p->ahead_until == HDD_AHEAD_SEGMENT) {
		limit = min_t(u64, limit,
			      hdd->segment_first[hdd->segment_filled] +
				      p->segment_sectors);
		limit = max_t(u64, limit, read_end);
	} else if (p->ahead_until == HDD_AHEAD_TRACK) {
		limit = min_t(u64, limit, hdd_track_end(hdd, read_end - 1));
	} else if (p->ahead_until == HDD_AHEAD_CYLINDER) {
		limit = min_t(u64, limit, hdd_cylinder_end(hdd, read_end - 1));
	} else if (p->ahead_until == HDD_AHEAD_TRACKS && read_end < limit) {
		track_end = hdd_track_end(hdd, read_end);
		hdd_locate(hdd, read_end, &place);
		if (hdd->segment_first[hdd->segment_filled] <
		    read_end - place.sector)
			track_end += hdd->zone[place.zone].sectors_per_track;
		limit = min_t(u64, limit, track_end);
	}
	hdd->ahead_limit = max_t(u64, hdd->ahead_limit, limit);
}

/* Reading ahead ends at @ns: see how far it has come. */
static void hdd_ahead_stop(struct hdd *hdd, u64 ns)
{
	u64 passed;

	if (!hdd->ahead)
		return;
	hdd->ahead = false;
	if (ns <= hdd->head_ns || hdd->ahead_limit <= hdd->head_sector)
		return;
	passed = hdd_stream_until(hdd, &hdd->head, ns - hdd->head_ns,
				  hdd->ahead_limit - hdd->head_sector);
	if (!passed)
		return;
	hdd->head_sector += passed;
	hdd_segment_grow(hdd);
}

/* A write of @sector up to @end at @ns: segments with some of it are old. */
static void hdd_segments_empty(struct hdd *hdd, u64 sector, u64 end, u64 ns)
{
	u32 i, nr = hdd->params.segments;

	/* It may be in the way of reading ahead, too. */
	i = hdd->segment_filled;
	if (hdd->ahead && sector < hdd->ahead_limit &&
	    end > hdd->segment_first[i])
		hdd_ahead_stop(hdd, ns);
	for (i = 0; i < nr; i++) {
		if (sector >= hdd->segment_first[i] + hdd->segment_length[i] ||
		    end <= hdd->segment_first[i])
			continue;
		hdd->segment_first[i] = U64_MAX;
		hdd->segment_length[i] = 0;
	}
}

/* Mechanism. */

/*
 * Transfer @nr_sectors from @sector at @place, starting at @start_ns with the
 * way there. Gives the time spent on the way; the end is in hdd->head_ns.
 */
static u64 hdd_transfer(struct hdd *hdd, u64 sector,
			const struct hdd_place *place, u32 angle_ns,
			u64 nr_sectors, bool write, u64 start_ns)
{
	u64 position_ns = hdd_position_ns(hdd, sector, place, angle_ns, write,
					  start_ns);

	hdd->head = *place;
	hdd->head_ns = start_ns + position_ns +
		       hdd_stream(hdd, &hdd->head, nr_sectors);
	hdd->head_sector = sector + nr_sectors;
	hdd->head_wrote = write;
	/* Part of a physical sector: it was read first, a revolution ago. */
	if (write &&
	    ((sector | nr_sectors) & (hdd->params.physical_sectors - 1)))
		hdd->head_ns += hdd->params.rotation_ns;
	hdd->free_ns = hdd->head_ns;
	return position_ns;
}

/* Write cache. */

/* Write one piece out, from @start_ns. Gives the time spent on the way. */
static u64 hdd_dirty_write(struct hdd *hdd, u64 start_ns)
{
	struct hdd_dirty *dirty;
	struct hdd_place place;
	u64 nr, position_ns;

	hdd_ahead_stop(hdd, start_ns);
	dirty = hdd_dirty_next(hdd, start_ns);
	nr = min_t(u64, dirty->nr_sectors, HDD_PIECE_SECTORS);
	hdd_locate(hdd, dirty->sector, &place);
	position_ns = hdd_transfer(hdd, dirty->sector, &place,
				   hdd_angle(hdd, &place), nr, true, start_ns);
	hdd_dirty_written(hdd, dirty, nr);
	return position_ns;
}

/* Half full: time to write out whenever the mechanism is free. */
static bool hdd_dirty_presses(const struct hdd *hdd)
{
	return hdd->dirty_sectors * 2 >= hdd->params.write_cache_sectors ||
	       hdd->nr_dirty * 2 >= hdd->params.write_cache_extents;
}

static bool hdd_cacheable(const struct hdd *hdd, const struct hdd_cmd *cmd)
{
	return cmd->op == HDD_WRITE &&
	       (!cmd->fua || hdd->params.write_cache_durable) &&
	       cmd->nr_sectors <= hdd->params.write_cache_sectors;
}

/* The medium served the host for @took_ns: write-out is owed its share. */
static void hdd_write_owe(struct hdd *hdd, u64 took_ns)
{
	u64 share = hdd->params.write_share_permille;

	if (!share || !hdd->nr_dirty || !hdd_dirty_presses(hdd))
		return;
	hdd->write_owed_ns += (s64)div64_u64(took_ns * share, 1000 - share);
}

/* A burst of write-out from @at_ns, if it is due. Gives its end. */
static u64 hdd_write_burst(struct hdd *hdd, u64 at_ns)
{
	s64 due_ns = (s64)hdd->params.rotation_ns * HDD_BURST_REVOLUTIONS;

	if (hdd->write_owed_ns < due_ns)
		return at_ns;
	while (hdd->write_owed_ns > 0 && hdd->nr_dirty) {
		hdd_dirty_write(hdd, at_ns);
		hdd->write_owed_ns -= (s64)(hdd->free_ns - at_ns);
		at_ns = hdd->free_ns;
	}
	return at_ns;
}

/* Commands on the mechanism. */

/*
 * Sectors before @cmd's first one on its track that pass the head while it
 * waits for that, when it starts at @at_ns.
 */
static u64 hdd_behind(const struct hdd *hdd, const struct hdd_cmd *cmd,
		      u64 at_ns)
{
	const struct hdd_zone *zone = &hdd->zone[cmd->place.zone];
	u64 wait_ns, passed;

	if (!hdd->params.read_behind || cmd->sector == hdd->head_sector)
		return 0;
	wait_ns = hdd_position_ns(hdd, cmd->sector, &cmd->place, cmd->angle_ns,
				  false, at_ns);
	wait_ns -= hdd_move_ns(hdd, hdd_cylinder(hdd, &cmd->place),
			       cmd->place.head, false);
	passed = min_t(u64, div64_u64(wait_ns << 20, zone->sector_ns_20),
		       cmd->place.sector);
	return min_t(u64, passed,
		     hdd->params.segment_sectors -
			     min_t(u64, cmd->nr_sectors,
				   hdd->params.segment_sectors));
}

static void hdd_start_read(struct hdd *hdd, struct hdd_cmd *cmd, u64 at_ns)
{
	u64 end = cmd->sector + cmd->nr_sectors;
	u64 from = cmd->sector;
	int i = hdd_segment_find(hdd, from);

	if (i < 0) {
		i = hdd->segment_oldest;
		hdd->segment_length[i] = hdd_behind(hdd, cmd, at_ns);
		hdd->segment_first[i] = from - hdd->segment_length[i];
	}
	hdd_segment_use(hdd, (u32)i);
	hdd->segment_filled = (u8)i;
	from = hdd->segment_first[i] + hdd->segment_length[i];
	if (from >= end) {
		/* Came into the cache while it waited. */
		hdd_segment_given(hdd, (u32)i, end);
		hdd_finish_bus(hdd, cmd, at_ns);
		hdd->work_end_ns = at_ns;
		return;
	}
	if (from != cmd->sector) {
		hdd_locate(hdd, from, &cmd->place);
		cmd->angle_ns = hdd_angle(hdd, &cmd->place);
	}
	cmd->position_ns = hdd_transfer(hdd, from, &cmd->place, cmd->angle_ns,
					end - from, false, at_ns);
	hdd_write_owe(hdd, hdd->head_ns - at_ns);
	hdd_segment_grow(hdd);
	hdd_segment_given(hdd, (u32)i, end);
	hdd->ahead = true;
	hdd->ahead_limit = 0;
	hdd_ahead_limit(hdd, end);
	hdd->work_end_ns = hdd->head_ns;
	hdd_finish_read(hdd, cmd, end - from, at_ns + cmd->position_ns,
			hdd->head_ns);
}

static void hdd_start_write(struct hdd *hdd, struct hdd_cmd *cmd, u64 at_ns)
{
	u64 bus_ns;

	if (!hdd_cacheable(hdd, cmd)) {
		bus_ns = hdd_bus_carry(hdd, cmd, at_ns);
		if (hdd->params.write_series)
			at_ns = bus_ns;
		cmd->position_ns = hdd_transfer(hdd, cmd->sector, &cmd->place,
						cmd->angle_ns, cmd->nr_sectors,
						true, at_ns);
		hdd_dirty_drop(hdd, cmd->sector, cmd->sector + cmd->nr_sectors);
		hdd->work_end_ns = hdd->head_ns;
		hdd_finish_write(hdd, cmd, bus_ns, hdd->head_ns);
		return;
	}
	/* It waits for room; that it might overlap has been tried before. */
	while (!hdd_dirty_has_room(hdd, cmd->nr_sectors)) {
		/* Going on at once, or a revolution would be lost. */
		cmd->position_ns += hdd_dirty_write(
			hdd, max_t(u64, hdd->free_ns, cmd->submit_ns));
		at_ns = max_t(u64, at_ns, hdd->free_ns);
	}
	hdd_dirty_add(hdd, cmd->sector, cmd->nr_sectors);
	hdd->work_end_ns = at_ns;
	hdd_finish_bus(hdd, cmd, at_ns);
}

static void hdd_start_flush(struct hdd *hdd, struct hdd_cmd *cmd, u64 at_ns)
{
	while (hdd->nr_dirty && !hdd->params.write_cache_durable) {
		cmd->position_ns += hdd_dirty_write(hdd, at_ns);
		at_ns = hdd->free_ns;
	}
	if (hdd->wrote && !hdd->params.write_cache_durable)
		at_ns += hdd->params.flush_ns;
	hdd->wrote = false;
	at_ns = max_t(u64, at_ns, hdd->last_done_ns);
	hdd->work_end_ns = at_ns;
	hdd->free_ns = at_ns;
	hdd->flush_end_ns = at_ns;
	hdd->quiet_since_ns = at_ns;
	hdd_finish(hdd, cmd, at_ns);
}

/* Until @cmd, which goes into the write cache, has room there, from @at_ns. */
static u64 hdd_room_ns(const struct hdd *hdd, const struct hdd_cmd *cmd,
		       u64 at_ns)
{
	const struct hdd_dirty *dirty;

	if (hdd_dirty_has_room(hdd, cmd->nr_sectors))
		return 0;
	dirty = hdd_dirty_next(hdd, at_ns);
	return hdd_position_at_ns(hdd, dirty->sector, dirty->cylinder,
				  dirty->head, dirty->angle_ns, true, at_ns);
}

/* Which of the queue goes next. Nothing passes a flush. */
static u32 hdd_choose(const struct hdd *hdd, u64 at_ns)
{
	u64 cost_ns, best_ns = U64_MAX, room_ns = U64_MAX;
	u64 oldest_ns = hdd->queue[0]->submit_ns;
	u32 i, best = 0;

	if (hdd->nr_queued == 1 || hdd->params.queue_order == HDD_ORDER_FIFO ||
	    at_ns - oldest_ns >= hdd->params.queue_age_limit_ns)
		return 0;
	for (i = 0; i < hdd->nr_queued; i++) {
		const struct hdd_cmd *cmd = hdd->queue[i];

		if (cmd->op == HDD_FLUSH)
			break;
		if (hdd_cacheable(hdd, cmd)) {
			/* Waits for room; any piece written out gives some. */
			if (room_ns == U64_MAX)
				room_ns = hdd_room_ns(hdd, cmd, at_ns);
			cost_ns = room_ns;
		} else {
			cost_ns = hdd_position_ns(hdd, cmd->sector, &cmd->place,
						  cmd->angle_ns,
						  cmd->op == HDD_WRITE, at_ns);
		}
		/* What came later counts as that much further away. */
		cost_ns += div_u64((cmd->submit_ns - oldest_ns) *
					   hdd->params.queue_age_permille,
				   1000);
		if (cost_ns < best_ns) {
			best_ns = cost_ns;
			best = i;
		}
	}
	return best;
}

/* The mechanism has no host's command from @at_ns on: take one. */
static void hdd_start_next(struct hdd *hdd, u64 at_ns)
{
	struct hdd_cmd *cmd;
	u32 i;

	at_ns = max_t(u64, at_ns, hdd->free_ns);
	at_ns = max_t(u64, at_ns, hdd->queue[0]->ready_ns);
	hdd_ahead_stop(hdd, at_ns);
	at_ns = hdd_write_burst(hdd, at_ns);
	i = hdd_choose(hdd, at_ns);
	cmd = hdd->queue[i];
	/* A newer one than queue[0] may still be being decoded. */
	at_ns = max_t(u64, at_ns, cmd->ready_ns);
	hdd->nr_queued--;
	memmove(&hdd->queue[i], &hdd->queue[i + 1],
		(hdd->nr_queued - i) * sizeof(hdd->queue[0]));
	cmd->start_ns = at_ns;
	if (cmd->op == HDD_READ) {
		hdd_start_read(hdd, cmd, at_ns);
	} else if (cmd->op == HDD_WRITE) {
		hdd_start_write(hdd, cmd, at_ns);
	} else {
		hdd->nr_flushes--;
		hdd_start_flush(hdd, cmd, at_ns);
	}
}

/* When reading ahead has come to its end. */
static u64 hdd_ahead_end_ns(const struct hdd *hdd)
{
	struct hdd_place stop = hdd->head;

	if (!hdd->ahead || hdd->ahead_limit <= hdd->head_sector)
		return 0;
	return hdd->head_ns +
	       hdd_stream(hdd, &stop, hdd->ahead_limit - hdd->head_sector);
}

/* Idle at @now_ns: what of the write cache went to the medium until then? */
static void hdd_advance_idle(struct hdd *hdd, u64 now_ns)
{
	u64 at_ns;

	while (hdd->nr_dirty) {
		/* What could start before the last look was done then. */
		at_ns = max_t(u64, hdd->free_ns, hdd->clock_ns);
		/* Else each pause between two reads would cost two seeks. */
		at_ns = max_t(u64, at_ns, hdd_ahead_end_ns(hdd));
		if (!hdd_dirty_presses(hdd))
			at_ns = max_t(u64, at_ns,
				      hdd->quiet_since_ns +
					      hdd->params.write_idle_ns);
		if (at_ns >= now_ns)
			return;
		hdd_dirty_write(hdd, at_ns);
	}
}

/* Bring the disk up to @now_ns. */
static inline u64 hdd_advance(struct hdd *hdd, u64 now_ns)
{
	now_ns = max_t(u64, now_ns, hdd->clock_ns);
	while (hdd->nr_queued && hdd->work_end_ns <= now_ns)
		hdd_start_next(hdd, hdd->work_end_ns);
	if (hdd->nr_dirty && !hdd->nr_queued && hdd->work_end_ns <= now_ns)
		hdd_advance_idle(hdd, now_ns);
	hdd->clock_ns = now_ns;
	return now_ns;
}

/* Commands that the caches answer. */

/*
 * A read of what reading ahead has brought or is about to bring. Only with an
 * empty queue: then the head goes on from where it is, and no revolution is
 * lost however late the command came.
 */
static bool hdd_read_ahead(struct hdd *hdd, struct hdd_cmd *cmd, u64 now_ns)
{
	u64 start_ns = now_ns + hdd_overhead_ns(hdd, HDD_CLASS_READ_HIT);
	u64 end = cmd->sector + cmd->nr_sectors;
	u64 first_ns = 0, first = hdd->segment_first[hdd->segment_filled];
	u64 missing = 0;
	struct hdd_place stop, place;
	u64 stop_ns, wait_ns = 0;
	bool here;

	if (cmd->sector < first || cmd->sector > hdd->ahead_limit ||
	    cmd->sector > hdd->head_sector + hdd->params.readahead_sectors)
		return false;
	/* Over a gap the arm may be quicker than reading on. */
	if (cmd->sector > hdd->head_sector) {
		stop = hdd->head;
		stop_ns = hdd->head_ns +
			  hdd_stream(hdd, &stop,
				     cmd->sector - hdd->head_sector);
		hdd_locate(hdd, cmd->sector, &place);
		wait_ns = hdd_position_ns(hdd, cmd->sector, &place,
					  hdd_angle(hdd, &place), false,
					  start_ns);
		if (stop_ns > start_ns + wait_ns)
			return false;
		wait_ns = 0;
	}
	/* Has it stopped, its segment being full? At the limit, then. */
	if (now_ns > hdd->head_ns) {
		stop = hdd->head;
		stop_ns = hdd->head_ns +
			  hdd_stream(hdd, &stop,
				     hdd->ahead_limit - hdd->head_sector);
		if (stop_ns <= now_ns) {
			hdd->head = stop;
			hdd->head_sector = hdd->ahead_limit;
			hdd_segment_grow(hdd);
			/* It starts again, once the place comes round. */
			wait_ns = hdd_position_ns(hdd, hdd->head_sector,
						  &hdd->head,
						  hdd_angle(hdd, &hdd->head),
						  false, start_ns);
			hdd->head_ns = start_ns + wait_ns;
		}
	}
	hdd_ahead_limit(hdd, end);
	here = end <= hdd->head_sector && hdd->work_end_ns <= now_ns;
	if (end > hdd->head_sector) {
		/* Passing over a gap is the way to what was asked for. */
		if (cmd->sector > hdd->head_sector) {
			u64 gap = cmd->sector - hdd->head_sector;

			gap = hdd_stream(hdd, &hdd->head, gap);
			hdd->head_ns += gap;
			hdd->head_sector = cmd->sector;
			wait_ns += gap;
		}
		/* What had been passed over before it came cost it nothing. */
		if (hdd->head_ns <= now_ns)
			wait_ns = 0;
		cmd->position_ns = min_t(u64, wait_ns, hdd->head_ns - now_ns);
		first_ns = hdd->head_ns;
		missing = end - hdd->head_sector;
		hdd->head_ns += hdd_stream(hdd, &hdd->head, missing);
		hdd->head_sector = end;
		hdd_segment_grow(hdd);
	}
	hdd_segment_given(hdd, hdd->segment_filled, end);
	if (here || hdd->head_ns <= start_ns) {
		hdd_finish_bus(hdd, cmd, start_ns);
		return true;
	}
	cmd->start_ns = start_ns;
	hdd->free_ns = hdd->head_ns;
	hdd->work_end_ns = hdd->head_ns;
	hdd_finish_read(hdd, cmd, missing, first_ns, hdd->head_ns);
	return true;
}

static bool hdd_read_cached(struct hdd *hdd, struct hdd_cmd *cmd, u64 now_ns)
{
	u64 start_ns = now_ns + hdd_overhead_ns(hdd, HDD_CLASS_READ_HIT);
	u64 end = cmd->sector + cmd->nr_sectors;
	int i;

	if (hdd->ahead && !hdd->nr_queued && hdd_read_ahead(hdd, cmd, now_ns))
		return true;
	i = hdd_segment_find(hdd, cmd->sector);
	if (i >= 0 && end <= hdd->segment_first[i] + hdd->segment_length[i]) {
		hdd_segment_use(hdd, (u32)i);
		/* The end of this one may not be there yet. */
		if (i == hdd->segment_filled)
			start_ns = max_t(u64, start_ns, hdd->work_end_ns);
		hdd_segment_given(hdd, (u32)i, end);
	} else if (!hdd->nr_dirty ||
		   !hdd_dirty_holds(hdd, cmd->sector, cmd->nr_sectors)) {
		return false;
	}
	hdd_finish_bus(hdd, cmd, start_ns);
	return true;
}

static bool hdd_write_cached(struct hdd *hdd, struct hdd_cmd *cmd, u64 now_ns)
{
	if (!hdd_cacheable(hdd, cmd) ||
	    !hdd_dirty_add(hdd, cmd->sector, cmd->nr_sectors))
		return false;
	hdd_finish_bus(hdd, cmd,
		       now_ns + hdd_overhead_ns(hdd, HDD_CLASS_WRITE_HIT));
	return true;
}

/* Flat. */

/* The channel that is free first; its time. */
static u64 *hdd_flat_channel(struct hdd *hdd)
{
	u64 *best = &hdd->channel_free_ns[0];
	u32 i;

	for (i = 1; i < hdd->params.flat_channels; i++)
		if (hdd->channel_free_ns[i] < *best)
			best = &hdd->channel_free_ns[i];
	return best;
}

/*
 * Latency on a channel, beside the others; then the controller and the
 * transfer, one command after the other.
 */
static void hdd_flat_submit(struct hdd *hdd, struct hdd_cmd *cmd, u64 now_ns)
{
	const struct hdd_params *p = &hdd->params;
	u64 *channel = hdd_flat_channel(hdd);
	u64 medium_ns, bus_ps, done_ns;

	cmd->start_ns = now_ns;
	if (cmd->op == HDD_FLUSH) {
		done_ns = now_ns + p->command_overhead_ns;
		if (hdd->wrote)
			done_ns += p->flush_ns;
		hdd->wrote = false;
		done_ns = max_t(u64, done_ns, hdd->last_done_ns);
		hdd_finish(hdd, cmd, done_ns);
		return;
	}
	if (cmd->op == HDD_WRITE)
		hdd->wrote = true;
	cmd->start_ns = max_t(u64, now_ns, *channel);
	cmd->position_ns = cmd->op == HDD_READ ? p->flat_read_ns :
						 p->flat_write_ns;
	medium_ns = cmd->start_ns + cmd->position_ns;
	*channel = medium_ns;
	bus_ps = max_t(u64, hdd->interface_ps, hdd->flat_ps[cmd->op]);
	done_ns = max_t(u64, medium_ns, hdd->bus->free_ns) +
		  p->command_overhead_ns +
		  div_u64(cmd->nr_sectors * bus_ps, 1000);
	hdd->bus->free_ns = done_ns;
	hdd_finish(hdd, cmd, done_ns);
}

/* The interface. */

static void hdd_enqueue(struct hdd *hdd, struct hdd_cmd *cmd)
{
	enum hdd_class class = HDD_CLASS_WRITE_HIT;

	if (cmd->op == HDD_FLUSH) {
		hdd->nr_flushes++;
	} else if (!hdd_cacheable(hdd, cmd)) {
		class = cmd->op == HDD_READ ? HDD_CLASS_READ_MISS :
					      HDD_CLASS_WRITE_MISS;
		hdd_locate(hdd, cmd->sector, &cmd->place);
		cmd->angle_ns = hdd_angle(hdd, &cmd->place);
	}
	cmd->ready_ns = cmd->submit_ns + hdd_overhead_ns(hdd, class);
	hdd->queue[hdd->nr_queued++] = cmd;
	if (hdd->work_end_ns <= hdd->clock_ns)
		hdd_start_next(hdd, hdd->clock_ns);
}

void hdd_submit(struct hdd *hdd, struct hdd_cmd *cmd, u64 now_ns)
{
	bool in_order;

	BUG_ON(hdd_full(hdd));
	hdd->in_flight++;
	now_ns = max_t(u64, now_ns, hdd->clock_ns);
	cmd->submit_ns = now_ns;
	cmd->position_ns = 0;
	BUG_ON(cmd->op != HDD_FLUSH &&
	       (!cmd->nr_sectors ||
		cmd->sector + cmd->nr_sectors > hdd->params.capacity_sectors));
	if (hdd->params.kind == HDD_KIND_FLAT) {
		hdd->clock_ns = now_ns;
		hdd_flat_submit(hdd, cmd, now_ns);
		return;
	}
	hdd_advance(hdd, now_ns);
	/* The look-up by angle is quicker for times not far from the epoch. */
	if (unlikely((now_ns - hdd->epoch_ns) >> 39))
		hdd->epoch_ns = now_ns - hdd_phase(hdd, now_ns);

	if (cmd->op == HDD_WRITE && hdd->params.write_empties)
		hdd_segments_empty(hdd, cmd->sector,
				   cmd->sector + cmd->nr_sectors, now_ns);
	/* Nothing may pass a flush, nor in FIFO order a waiting command. */
	in_order = hdd->nr_queued && hdd->params.queue_order == HDD_ORDER_FIFO;
	if (in_order || hdd->nr_flushes || hdd->flush_end_ns > now_ns ||
	    !(cmd->op == HDD_READ  ? hdd_read_cached(hdd, cmd, now_ns) :
	      cmd->op == HDD_WRITE ? hdd_write_cached(hdd, cmd, now_ns) :
				     false))
		hdd_enqueue(hdd, cmd);
	if (cmd->op != HDD_FLUSH)
		hdd->last_wrote = cmd->op == HDD_WRITE;
}

struct hdd_cmd *hdd_pop(struct hdd *hdd, u64 now_ns)
{
	struct hdd_cmd *cmd;

	if (hdd->params.kind == HDD_KIND_MECHANICAL)
		hdd_advance(hdd, now_ns);
	cmd = hdd->done_first;
	if (!cmd || cmd->done_ns > now_ns)
		return NULL;
	hdd->done_first = cmd->next;
	if (!cmd->next)
		hdd->done_last = NULL;
	hdd->in_flight--;
	return cmd;
}

bool hdd_volatile(const struct hdd *hdd, u64 sector, u64 nr, u64 now_ns)
{
	if (hdd->params.kind == HDD_KIND_FLAT)
		return true;
	if (hdd->params.write_cache_durable)
		return false;
	/* What has left the cache may be on its way still. */
	return now_ns < hdd->free_ns || hdd_dirty_touches(hdd, sector, nr);
}
