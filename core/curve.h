/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The service-time curve: what it costs to position the head, by distance.
 *
 * Xu and Jiang (FAST 2011, section 3.2) send pairs of requests at various
 * distances to the disk, fit a smooth curve through the times and use it as
 * calculate_service_time(); a backward distance costs 50 % more. Here the
 * curve is piecewise linear over the distance in sectors, given as a table or
 * learned from completions. It holds positioning alone, without the transfer.
 */
#ifndef SS_CURVE_H
#define SS_CURVE_H

#include "ratio.h"

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/types.h>

#define SS_CURVE_POINTS 40
#define SS_CURVE_BUCKETS 36
#define SS_CURVE_SIZES 252
/* Times are looked up by steps of 2^18 ns. */
#define SS_CURVE_TIMES 128
#define SS_CURVE_STEP_SHIFT 18
/*
 * No point costs more. It is twice what the slowest disk takes that can be
 * described (its longest seek and a turn, each with all that may be added: less
 * than half a second), so what says more is a mistake. What is allowed bounds
 * how long a disk may stay idle with requests pending: so long, times
 * backward_cost and what tolerance_factor adds; 2.25 s as these are set.
 */
#define SS_CURVE_MOST_NS 1000000000ULL
/* Mean sizes are kept in parts of a sector. */
#define SS_CURVE_SIZE_SHIFT 8

struct ss_curve_point {
	u64 distance_sectors;
	u64 time_ns;
};

/* A point and the way to the next one, for looking up without division. */
struct ss_curve_segment {
	u64 first_sectors;
	u64 last_sectors; /* U64_MAX behind the last point */
	u64 first_ns;
	struct ss_ratio slope; /* ns per sector; NO_SLOPE: to be divided */
};

/*
 * What learning knows about one range of distances: what its requests took as
 * a whole, and their size, so that a better rate of transfer corrects all that
 * was learned before.
 */
struct ss_curve_bucket {
	u64 mean_ns;
	u64 mean_size; /* sectors << SS_CURVE_SIZE_SHIFT */
	u32 samples;
};

struct ss_curve {
	/* In use; ascending distance, time never falling. */
	struct ss_curve_point point[SS_CURVE_POINTS];
	u32 nr_points;
	struct ss_ratio dearer[2]; /* what a distance costs, backward [1] */
	u64 span_sectors; /* size of the disk, for the mean */
	u64 mean_random_ns; /* mean over random pairs, by distance alone */
	bool flat; /* positioning costs the same everywhere */
	/* Made of the points, for looking up. */
	struct ss_curve_segment segment[SS_CURVE_POINTS];
	u64 most_ns; /* of all points */
	bool rough; /* a size holds several points, or a slope is missing */
	u8 near[SS_CURVE_SIZES]; /* last point no farther than this size */
	u8 dear[SS_CURVE_TIMES]; /* first point of at least this many steps */

	/* Learning: forward distances, one bucket per power of two. */
	bool learning;
	struct ss_curve_bucket bucket[SS_CURVE_BUCKETS];
	u64 transfer_ps; /* per sector, 10^-12 s; from sequential requests */
	u32 unseen; /* samples since the points were last rebuilt */
	u32 doubted; /* requests that were compared with a flat curve, ... */
	u32 too_slow; /* ... and those of them that contradict it */
};

/* The start for learning: a generic 7200 rpm disk of @span_sectors. */
void ss_curve_init_generic(struct ss_curve *curve, u64 span_sectors);

/* Learn anew; what backward distances cost more stays. */
void ss_curve_forget(struct ss_curve *curve);

/*
 * Is this a curve: 1 to SS_CURVE_POINTS points, distances ascending from 0 and
 * times never falling, none above SS_CURVE_MOST_NS? If not, -EINVAL with one
 * sentence in @why (at least 160 bytes).
 */
int ss_curve_check(const struct ss_curve_point *points, u32 nr, char *why,
		   size_t why_bytes);

/*
 * Use @nr points. -EINVAL when ss_curve_check() refuses them; the curve is then
 * unchanged. Learning stops.
 */
int ss_curve_set(struct ss_curve *curve, const struct ss_curve_point *points,
		 u32 nr, u64 span_sectors);

/* What a backward distance costs: 150 = +50 % */
void ss_curve_set_backward(struct ss_curve *curve, u32 percent);

/* Positioning time from the sector where the head is to @to_sector, in ns. */
u64 ss_curve_service_ns(const struct ss_curve *curve, u64 from_sector,
			u64 to_sector);

/* Positioning time by forward distance alone, in ns. */
u64 ss_curve_distance_ns(const struct ss_curve *curve, u64 distance_sectors);

/* The same for any curve, step by step. */
u64 ss_curve_rough_ns(const struct ss_curve *curve, u64 distance_sectors);

/* Without a branch: which way it is no processor can foresee. */
static inline u64 ss_distance(u64 from_sector, u64 to_sector)
{
	u64 back = to_sector < from_sector;

	return ((to_sector - from_sector) ^ -back) + back;
}

/*
 * Distances by size: the position of the highest bit and the two bits below
 * it, so that few points are in one size. Below 8 each is a size of its own.
 */
static inline u32 ss_curve_size(u64 distance)
{
	u32 shift = fls64(distance | 7) - 3;

	return 4 * shift + (u32)(distance >> shift);
}

/*
 * As ss_curve_distance_ns(). Whether the only point of a size is passed no
 * processor can foresee: so it is not asked with a branch.
 */
static inline u64 ss_curve_look_up(const struct ss_curve *curve,
				   u64 distance_sectors)
{
	u32 near = curve->near[ss_curve_size(distance_sectors)];
	const struct ss_curve_segment *at;

	if (unlikely(curve->rough))
		return ss_curve_rough_ns(curve, distance_sectors);
	near += distance_sectors > curve->segment[near].last_sectors;
	at = &curve->segment[near];
	return at->first_ns +
	       ss_ratio_times(&at->slope, distance_sectors - at->first_sectors);
}

/*
 * As ss_curve_service_ns(). Multiplied forward as well: of requests that arrive
 * no processor can foresee the direction.
 */
static inline u64 ss_curve_between(const struct ss_curve *curve,
				   u64 from_sector, u64 to_sector)
{
	const struct ss_ratio *dearer = &curve->dearer[to_sector < from_sector];
	u64 distance = ss_distance(from_sector, to_sector);

	return ss_ratio_times(dearer, ss_curve_look_up(curve, distance));
}

/* The nearest point from which on a forward distance costs @service_ns. */
static inline u64 ss_curve_reach_sectors(const struct ss_curve *curve,
					 u64 service_ns)
{
	const struct ss_curve_point *point = curve->point;
	u64 steps = service_ns >> SS_CURVE_STEP_SHIFT;
	u32 at = curve->dear[min_t(u64, steps, SS_CURVE_TIMES - 1)];

	if (curve->most_ns < service_ns)
		return U64_MAX;
	/* As in ss_curve_distance_ns(): one step cannot be foreseen. */
	at += point[at].time_ns < service_ns;
	while (unlikely(point[at].time_ns < service_ns))
		at++;
	return point[at].distance_sectors;
}

/*
 * Learn from one request that the disk served with nothing else in it:
 * @service_ns from dispatch to completion, @forward_sectors from where the
 * head was to the request's start (negative distances are not learned from).
 */
void ss_curve_learn(struct ss_curve *curve, u64 distance_sectors,
		    u32 nr_sectors, u64 service_ns);

/*
 * A read kept the disk busy for @busy_ns, with others in it or not. Where the
 * curve was learned to be flat and half of them take much longer than it says,
 * it is learned anew.
 */
void ss_curve_doubt(struct ss_curve *curve, u32 nr_sectors, u64 busy_ns);

#endif
