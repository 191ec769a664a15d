// SPDX-License-Identifier: GPL-2.0-only
/* Geometry: the checks, the tables, and transfers over a track's end. */
#include "hdd_geometry.h"

#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>

static int hdd_check_mechanics(const struct hdd_params *p, const char **why)
{
	u64 sectors = 0, before = 0, cylinders = 0;
	u32 i;

	*why = "rotation_ns must be between 1000000 and 50000000";
	if (p->rotation_ns < 1000000 || p->rotation_ns > 50000000)
		return -EINVAL;
	*why = "surfaces must be between 1 and 64";
	if (p->surfaces < 1 || p->surfaces > 64)
		return -EINVAL;
	*why = "there must be between 1 and 64 zones";
	if (p->nr_zones < 1 || p->nr_zones > HDD_MAX_ZONES)
		return -EINVAL;
	for (i = 0; i < p->nr_zones; i++) {
		*why = "a zone needs between 1 and 1000000 cylinders";
		if (p->zone_cylinders[i] < 1 || p->zone_cylinders[i] > 1000000)
			return -EINVAL;
		*why = "a zone needs between 8 and 65535 sectors per track";
		if (p->zone_sectors_per_track[i] < 8 ||
		    p->zone_sectors_per_track[i] > 65535)
			return -EINVAL;
		before = sectors;
		cylinders += p->zone_cylinders[i];
		sectors += (u64)p->zone_cylinders[i] * p->surfaces *
			   p->zone_sectors_per_track[i];
	}
	*why = "the zones hold fewer sectors than the capacity";
	if (p->capacity_sectors > sectors)
		return -EINVAL;
	*why = "the last zone lies wholly beyond the capacity";
	if (p->capacity_sectors <= before)
		return -EINVAL;
	*why = "a skew must be shorter than a revolution";
	if (p->track_skew_ns >= p->rotation_ns ||
	    p->cylinder_skew_ns >= p->rotation_ns)
		return -EINVAL;
	*why = "head_switch_ns, write_settle_ns and write_saves_ns must be at most 50000000";
	if (p->head_switch_ns > 50000000 || p->write_settle_ns > 50000000 ||
	    p->write_saves_ns > 50000000)
		return -EINVAL;
	*why = "there must be between 1 and 256 seek points";
	if (p->nr_seek_points < 1 || p->nr_seek_points > HDD_MAX_SEEK_POINTS)
		return -EINVAL;
	*why = "the first seek point must be for 1 cylinder";
	if (p->seek_cylinders[0] != 1)
		return -EINVAL;
	for (i = 0; i < p->nr_seek_points; i++) {
		*why = "a seek time must be below 200000000 ns";
		if (p->seek_ns[i] >= 200000000)
			return -EINVAL;
		if (!i)
			continue;
		*why = "seek points must have ascending distances";
		if (p->seek_cylinders[i] <= p->seek_cylinders[i - 1])
			return -EINVAL;
		*why = "a seek time is less than nine tenths of one for a shorter distance";
		if (p->seek_ns[i] < p->seek_ns[i - 1] - p->seek_ns[i - 1] / 10)
			return -EINVAL;
	}
	*why = "the last seek point must reach the full stroke";
	if ((u64)p->seek_cylinders[p->nr_seek_points - 1] + 1 < cylinders)
		return -EINVAL;
	/* Else a sequential transfer would miss each track's start. */
	*why = "head_switch_ns must not be longer than track_skew_ns";
	if (p->head_switch_ns > p->track_skew_ns)
		return -EINVAL;
	*why = "the seek to the next cylinder must not be longer than cylinder_skew_ns";
	if (p->seek_ns[0] > p->cylinder_skew_ns)
		return -EINVAL;
	*why = NULL;
	return 0;
}

/* The given curve at @cylinders, by straight lines; beyond its end, its end. */
static u32 hdd_seek_curve(const struct hdd_params *p, u64 cylinders)
{
	s64 across, rise;
	u32 i;

	if (!cylinders)
		return 0;
	for (i = 1; i < p->nr_seek_points; i++) {
		if (cylinders > p->seek_cylinders[i])
			continue;
		across = p->seek_cylinders[i] - p->seek_cylinders[i - 1];
		rise = (s64)p->seek_ns[i] - p->seek_ns[i - 1];
		rise *= (s64)cylinders - p->seek_cylinders[i - 1];
		return (u32)(p->seek_ns[i - 1] + div64_s64(rise, across));
	}
	return p->seek_ns[p->nr_seek_points - 1];
}

static void hdd_tabulate_seeks(struct hdd *hdd)
{
	const struct hdd_params *p = &hdd->params;
	u32 i;

	for (i = 0; i < HDD_SEEK_NEAR; i++)
		hdd->seek_near[i] = hdd_seek_curve(p, i);
	hdd->seek_shift = 0;
	while (hdd->cylinders >> hdd->seek_shift >= HDD_SEEK_FAR)
		hdd->seek_shift++;
	for (i = 0; i < HDD_SEEK_FAR + 2; i++)
		hdd->seek_far[i] = hdd_seek_curve(p, (u64)i << hdd->seek_shift);
}

static void hdd_tabulate_zones(struct hdd *hdd)
{
	const struct hdd_params *p = &hdd->params;
	u64 first = 0, angle = 0;
	struct hdd_zone *zone;
	u32 i, z;

	hdd->rotation_inv = div_u64((u64)1 << 54, p->rotation_ns);
	hdd->cylinders = 0;
	for (i = 0; i < p->nr_zones; i++) {
		zone = &hdd->zone[i];
		zone->cylinders = p->zone_cylinders[i];
		zone->sectors_per_track = p->zone_sectors_per_track[i];
		zone->sectors_per_track_inv = (u32)div_u64(
			(u64)1 << 32, zone->sectors_per_track);
		zone->sectors_per_cylinder = zone->sectors_per_track *
					     p->surfaces;
		zone->sectors_per_cylinder_inv = (u32)div_u64(
			(u64)1 << 32, zone->sectors_per_cylinder);
		zone->first_sector = first;
		first += (u64)zone->cylinders * zone->sectors_per_cylinder;
		zone->end_sector = first;
		zone->first_cylinder = hdd->cylinders;
		hdd->cylinders += zone->cylinders;
		/* Rounded up: a whole track takes a whole revolution. */
		zone->sector_ns_20 = div_u64(((u64)p->rotation_ns << 20) +
						     zone->sectors_per_track -
						     1,
					     zone->sectors_per_track);
		zone->cylinder_angle_ns = hdd_mod_rotation(
			hdd, (u64)p->track_skew_ns * (p->surfaces - 1) +
				     p->cylinder_skew_ns);
		zone->start_angle_ns = (u32)angle;
		angle += (u64)zone->cylinders * zone->cylinder_angle_ns;
		angle = hdd_mod_rotation(hdd, angle);
	}

	hdd->zone_shift = 0;
	while ((p->capacity_sectors - 1) >> hdd->zone_shift >= HDD_ZONE_INDEX)
		hdd->zone_shift++;
	for (i = 0, z = 0; i < HDD_ZONE_INDEX; i++) {
		while (z + 1 < p->nr_zones &&
		       (u64)i << hdd->zone_shift >= hdd->zone[z].end_sector)
			z++;
		hdd->zone_index[i] = (u8)z;
	}
}

int hdd_geometry_init(struct hdd *hdd, const char **why)
{
	int err = hdd_check_mechanics(&hdd->params, why);

	if (err)
		return err;
	hdd_tabulate_zones(hdd);
	hdd_tabulate_seeks(hdd);
	return 0;
}

u64 hdd_stream_far(const struct hdd *hdd, struct hdd_place *place,
		   u64 nr_sectors)
{
	const struct hdd_params *p = &hdd->params;
	u64 ns = 0;

	for (;;) {
		const struct hdd_zone *zone = &hdd->zone[place->zone];
		u64 here, take, end, tracks, cylinders;
		u32 rest;

		here = (u64)place->cylinder * zone->sectors_per_cylinder +
		       (u64)place->head * zone->sectors_per_track +
		       place->sector;
		take = zone->end_sector - zone->first_sector - here;
		take = min_t(u64, take, nr_sectors);
		if (take) {
			end = place->sector + take;
			/* Ending with a track is not yet being on the next. */
			tracks = hdd_divide(end - 1, zone->sectors_per_track,
					    zone->sectors_per_track_inv, &rest);
			end -= tracks * zone->sectors_per_track;
			cylinders = div_u64(place->head + tracks, p->surfaces);
			ns += tracks * p->rotation_ns +
			      (tracks - cylinders) * p->track_skew_ns +
			      cylinders * p->cylinder_skew_ns +
			      hdd_offset_ns(zone, end) -
			      hdd_offset_ns(zone, place->sector);
			place->head = (u32)(place->head + tracks -
					    cylinders * p->surfaces);
			place->cylinder += (u32)cylinders;
			place->sector = (u32)end;
			nr_sectors -= take;
		}
		if (!nr_sectors)
			return ns;
		place->zone++;
		place->cylinder = 0;
		place->head = 0;
		place->sector = 0;
		ns += p->cylinder_skew_ns;
	}
}

/*
 * Move @place over the sectors that have passed the head completely within
 * @ns, at most @max_sectors. Gives their number.
 */
u64 hdd_stream_until(const struct hdd *hdd, struct hdd_place *place, u64 ns,
		     u64 max_sectors)
{
	const struct hdd_params *p = &hdd->params;
	u64 passed = 0;

	while (passed < max_sectors) {
		const struct hdd_zone *zone = &hdd->zone[place->zone];
		u64 until, skew, left = zone->sectors_per_track - place->sector;
		u32 sector = place->sector;

		left = min_t(u64, left, max_sectors - passed);
		until = hdd_offset_ns(zone, sector) + ns;
		if (until < hdd_offset_ns(zone, sector + left)) {
			/* Within these: an estimate, put right. */
			sector = (u32)div_u64(until * zone->sectors_per_track,
					      p->rotation_ns);
			while (hdd_offset_ns(zone, sector) > until)
				sector--;
			while (hdd_offset_ns(zone, sector + 1) <= until)
				sector++;
			passed += sector - place->sector;
			place->sector = sector;
			return passed;
		}
		ns -= hdd_offset_ns(zone, sector + left) -
		      hdd_offset_ns(zone, sector);
		passed += left;
		place->sector += (u32)left;
		if (passed == max_sectors)
			return passed;
		skew = place->head + 1 < p->surfaces ? p->track_skew_ns :
						       p->cylinder_skew_ns;
		if (ns < skew)
			return passed;
		ns -= skew;
		place->sector = 0;
		if (++place->head < p->surfaces)
			continue;
		place->head = 0;
		if (++place->cylinder < zone->cylinders)
			continue;
		place->cylinder = 0;
		place->zone++;
	}
	return passed;
}

void hdd_map(const struct hdd *hdd, u64 sector, u32 *cylinder, u32 *head,
	     u32 *angle_ns)
{
	struct hdd_place place;

	hdd_locate(hdd, sector, &place);
	*cylinder = hdd_cylinder(hdd, &place);
	*head = place.head;
	*angle_ns = hdd_angle(hdd, &place);
}

u64 hdd_seek_time_ns(const struct hdd *hdd, u32 cylinders)
{
	return hdd_seek_ns(hdd, min_t(u32, cylinders, hdd->cylinders));
}
