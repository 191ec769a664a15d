/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Geometry: where a sector is, when it passes the head, how long the arm
 * takes. Private to disk/.
 *
 * Sectors are numbered along a track, then over the surfaces of its cylinder,
 * then on the next cylinder inwards. An angle is a time: how long after the
 * index mark it passes the head. Each track begins later than the one before
 * it ends, by the track skew or, on a new cylinder, the cylinder skew, which
 * gives the head time to get there. Everything is whole nanoseconds, so that
 * a sequential transfer split into any pieces takes exactly the time of the
 * whole: a rounding error of 1 ns would cost a revolution.
 */
#ifndef HDD_GEOMETRY_H
#define HDD_GEOMETRY_H

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/types.h>

#include "hdd.h"

/* Check the geometry in hdd->params and prepare it. 0 or -EINVAL, *@why. */
int hdd_geometry_init(struct hdd *hdd, const char **why);

/* The parts of the next two that cross a track's end. */
u64 hdd_stream_far(const struct hdd *hdd, struct hdd_place *place,
		   u64 nr_sectors);
u64 hdd_stream_until(const struct hdd *hdd, struct hdd_place *place, u64 ns,
		     u64 max_sectors);

/*
 * @x / @divisor and the remainder, with inv = 2^32 / divisor rounded down.
 * For x below 2^32 the estimate is at most one too small; division proper
 * costs several times as much.
 */
static inline u64 hdd_divide(u64 x, u32 divisor, u32 inv, u32 *rest)
{
	u64 quotient;

	if (unlikely(x >> 32))
		quotient = div_u64(x, divisor);
	else
		quotient = (x * inv) >> 32;
	x -= quotient * divisor;
	if (x >= divisor) {
		x -= divisor;
		quotient++;
	}
	*rest = (u32)x;
	return quotient;
}

/*
 * @ns modulo one revolution. rotation_inv = 2^54 / rotation_ns: below 2^40 ns
 * the estimate is at most one revolution short, as rotation_ns >= 10^6.
 */
static inline u32 hdd_mod_rotation(const struct hdd *hdd, u64 ns)
{
	u32 rotation_ns = hdd->params.rotation_ns;
	u64 rest;

	if (unlikely(ns >> 40)) {
		div64_u64_rem(ns, rotation_ns, &rest);
		return (u32)rest;
	}
	rest = ns - (((ns >> 12) * hdd->rotation_inv) >> 42) * rotation_ns;
	if (rest >= rotation_ns)
		rest -= rotation_ns;
	return (u32)rest;
}

/* The angle under the heads at @ns. */
static inline u32 hdd_phase(const struct hdd *hdd, u64 ns)
{
	if (likely(ns >= hdd->epoch_ns))
		ns -= hdd->epoch_ns;
	return hdd_mod_rotation(hdd, ns);
}

/* How long after its track's start sector @sector of the track begins. */
static inline u64 hdd_offset_ns(const struct hdd_zone *zone, u64 sector)
{
	return (sector * zone->sector_ns_20) >> 20;
}

static inline void hdd_locate(const struct hdd *hdd, u64 sector,
			      struct hdd_place *place)
{
	u32 z = hdd->zone_index[sector >> hdd->zone_shift];
	const struct hdd_zone *zone;
	u32 rest;

	while (unlikely(sector >= hdd->zone[z].end_sector))
		z++;
	zone = &hdd->zone[z];
	place->zone = z;
	place->cylinder = (u32)hdd_divide(sector - zone->first_sector,
					  zone->sectors_per_cylinder,
					  zone->sectors_per_cylinder_inv,
					  &rest);
	place->head = (u32)hdd_divide(rest, zone->sectors_per_track,
				      zone->sectors_per_track_inv,
				      &place->sector);
}

static inline u32 hdd_angle(const struct hdd *hdd,
			    const struct hdd_place *place)
{
	const struct hdd_zone *zone = &hdd->zone[place->zone];

	return hdd_mod_rotation(
		hdd, zone->start_angle_ns +
			     (u64)place->cylinder * zone->cylinder_angle_ns +
			     (u64)place->head * hdd->params.track_skew_ns +
			     hdd_offset_ns(zone, place->sector));
}

static inline u32 hdd_cylinder(const struct hdd *hdd,
			       const struct hdd_place *place)
{
	return hdd->zone[place->zone].first_cylinder + place->cylinder;
}

static inline u32 hdd_seek_ns(const struct hdd *hdd, u32 cylinders)
{
	u32 i, from;

	if (cylinders < HDD_SEEK_NEAR)
		return hdd->seek_near[cylinders];
	i = cylinders >> hdd->seek_shift;
	from = hdd->seek_far[i];
	cylinders -= i << hdd->seek_shift;
	return (u32)(from + ((((s64)hdd->seek_far[i + 1] - from) * cylinders) >>
			     hdd->seek_shift));
}

/* Getting to surface @head of cylinder @to by the arm and the switch alone. */
static inline u32 hdd_move_ns(const struct hdd *hdd, u32 to, u32 head,
			      bool write)
{
	const struct hdd_params *p = &hdd->params;
	u32 from = hdd_cylinder(hdd, &hdd->head);
	u32 ns;

	if (from != to)
		ns = hdd_seek_ns(hdd, from < to ? to - from : from - to);
	else if (head != hdd->head.head)
		ns = p->head_switch_ns;
	else if (write && !hdd->head_wrote)
		return p->write_settle_ns;
	else
		return 0;
	if (!write)
		return ns;
	ns += p->write_settle_ns;
	return ns > p->write_saves_ns ? ns - p->write_saves_ns : 0;
}

/*
 * From @start_ns until @sector, on this cylinder and surface, is under the
 * head. Going on behind the last sector transferred needs no move: the head
 * follows at each track's end, within the skew.
 */
static inline u64 hdd_position_at_ns(const struct hdd *hdd, u64 sector,
				     u32 cylinder, u32 head, u32 angle_ns,
				     bool write, u64 start_ns)
{
	u64 move_ns = 0;
	u32 phase;

	if (sector != hdd->head_sector || (write && !hdd->head_wrote))
		move_ns = hdd_move_ns(hdd, cylinder, head, write);
	phase = hdd_phase(hdd, start_ns + move_ns);
	if (angle_ns < phase)
		angle_ns += hdd->params.rotation_ns;
	return move_ns + angle_ns - phase;
}

static inline u64 hdd_position_ns(const struct hdd *hdd, u64 sector,
				  const struct hdd_place *place, u32 angle_ns,
				  bool write, u64 start_ns)
{
	return hdd_position_at_ns(hdd, sector, hdd_cylinder(hdd, place),
				  place->head, angle_ns, write, start_ns);
}

/*
 * Move @place over @nr_sectors as they pass the head, skew included. Gives
 * the time that takes when @place is under the head at its start.
 */
static inline u64 hdd_stream(const struct hdd *hdd, struct hdd_place *place,
			     u64 nr_sectors)
{
	const struct hdd_zone *zone = &hdd->zone[place->zone];
	u64 end = place->sector + nr_sectors;
	u64 ns;

	if (unlikely(end > zone->sectors_per_track))
		return hdd_stream_far(hdd, place, nr_sectors);
	ns = hdd_offset_ns(zone, end) - hdd_offset_ns(zone, place->sector);
	place->sector = (u32)end;
	return ns;
}

#endif
