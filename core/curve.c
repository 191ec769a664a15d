// SPDX-License-Identifier: GPL-2.0-only
/*
 * The service-time curve. See curve.h.
 *
 * Learning keeps one running mean per power of two of distance. A bucket that
 * has seen nothing keeps the generic curve's value, shifted with its seen
 * neighbours, so that a disk that has so far only been read sequentially still
 * has an estimate for a long seek, and an SSD's flat curve shows after a few
 * requests at each distance.
 */
#include "curve.h"
#include "say.h"

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/string.h>

/*
 * Generic 7200 rpm disk: half a revolution is 4.17 ms; seek times after the
 * curve published with DiskSim's 4 TB WD disk (1.4-1.8 ms short, 7.8 ms at a
 * third of the stroke, 15.7 ms full stroke). Distances in millionths of the
 * disk, times with the mean rotational latency added.
 */
static const struct {
	u32 ppm;
	u32 time_us;
} generic[] = {
	{ 1, 4600 },	   { 10, 5100 },      { 100, 5600 },
	{ 1000, 5900 },	   { 10000, 6600 },   { 50000, 7800 },
	{ 100000, 8800 },  { 200000, 10300 }, { 333333, 12000 },
	{ 500000, 14200 }, { 750000, 17200 }, { 1000000, 19900 },
};

/* Sequential: no positioning. A generic disk's track: 1 MiB. */
#define GENERIC_TRACK_SECTORS 2048
#define GENERIC_PS 3000000 /* for a sector: 170 MB/s */
#define GENERIC_RANDOM_NS 12000000

/* New samples count for at least 1/LEARN_WEIGHT: the curve follows changes. */
#define LEARN_WEIGHT 64
/* A bucket with fewer samples than this is not believed. */
#define LEARN_BELIEVE 4
/* So many times as long as the others of its distance took: a mishap. */
#define LATE 4
/* A flat curve is doubted by so many requests at a time. */
#define DOUBT_BATCH 64
/* Rebuild the points after this many samples. */
#define LEARN_BATCH 32

/*
 * A curve whose farthest distance costs less than this much more than its
 * nearest non-sequential one has no head to move. No rotating disk comes
 * near: half a turn at 15,000 rpm is 2 ms.
 */
#define FLAT_BELOW_NS 500000

/* Where two points are too far apart for a slope. */
#define NO_SLOPE U64_MAX

/* The least distance of a size. */
static u64 least_of(u32 size)
{
	return size < 8 ? size : (u64)(4 + size % 4) << (size / 4 - 1);
}

/* What look-ups need, after the points have changed. */
static void curve_index(struct ss_curve *curve)
{
	const struct ss_curve_point *point = curve->point;
	u32 last = curve->nr_points - 1, i, at = 0, before;

	curve->rough = false;
	for (i = 0; i <= last; i++) {
		struct ss_curve_segment *segment = &curve->segment[i];
		u64 rise, run;

		segment->first_sectors = point[i].distance_sectors;
		segment->last_sectors = U64_MAX;
		segment->first_ns = point[i].time_ns;
		segment->slope = (struct ss_ratio){ 0 };
		if (i == last)
			break;
		rise = point[i + 1].time_ns - point[i].time_ns;
		run = point[i + 1].distance_sectors - point[i].distance_sectors;
		segment->last_sectors = point[i + 1].distance_sectors - 1;
		if (run >> 32)
			segment->slope.whole = NO_SLOPE;
		else
			segment->slope = ss_ratio_of(rise, run);
		curve->rough |= segment->slope.whole == NO_SLOPE;
	}
	curve->most_ns = point[last].time_ns;
	for (i = 0; i < SS_CURVE_SIZES; i++) {
		before = at;
		while (at < last &&
		       point[at + 1].distance_sectors <= least_of(i))
			at++;
		curve->near[i] = (u8)at;
		/* From the last size's point the next one may be reached. */
		curve->rough |= at > before + 1;
	}
	at = 0;
	for (i = 0; i < SS_CURVE_TIMES; i++) {
		u64 steps_ns = (u64)i << SS_CURVE_STEP_SHIFT;

		while (at < last && point[at].time_ns < steps_ns)
			at++;
		curve->dear[i] = (u8)at;
	}
}

/*
 * Mean over two uniformly random positions: the distance d (as a share of
 * the disk) has density 2(1 - d). Sixteen strips are exact enough. The extra
 * cost of backward distances is left out: it says which way to prefer to go,
 * and with it every forward distance would look cheaper than the mean.
 */
static void curve_summarise(struct ss_curve *curve)
{
	u64 sum = 0, weight = 0, far, near;
	u32 strip;

	curve_index(curve);
	for (strip = 0; strip < 16; strip++) {
		u64 distance = div_u64(curve->span_sectors, 32) *
			       (2 * strip + 1);
		u32 w = 31 - 2 * strip;

		sum += w * ss_curve_distance_ns(curve, distance);
		weight += w;
	}
	curve->mean_random_ns = div64_u64(sum, weight);
	far = ss_curve_distance_ns(curve, curve->span_sectors);
	near = ss_curve_distance_ns(curve, 1);
	curve->flat = far < near + FLAT_BELOW_NS;
}

/* Linear between (@from, @from_ns) and (@to, @to_ns). */
static u64 between(u64 at, u64 from, u64 from_ns, u64 to, u64 to_ns)
{
	return from_ns +
	       mul_u64_u64_div_u64(to_ns - from_ns, at - from, to - from);
}

/* The generic curve's time for a distance on a disk of @span_sectors. */
static u64 generic_ns(u64 span_sectors, u64 distance)
{
	u64 last = GENERIC_TRACK_SECTORS,
	    last_ns = generic[0].time_us * 1000ULL;
	u32 i;

	if (distance <= last)
		return between(distance, 0, 0, last, last_ns);
	for (i = 0; i < ARRAY_SIZE(generic); i++) {
		u64 at = mul_u64_u64_div_u64(span_sectors, generic[i].ppm,
					     1000000);
		u64 at_ns = generic[i].time_us * 1000ULL;

		if (at <= last)
			continue;
		if (distance <= at)
			return between(distance, last, last_ns, at, at_ns);
		last = at;
		last_ns = at_ns;
	}
	return last_ns;
}

void ss_curve_set_backward(struct ss_curve *curve, u32 percent)
{
	curve->dearer[false] = ss_ratio_of(1, 1);
	curve->dearer[true] = ss_ratio_of(percent, 100);
}

void ss_curve_init_generic(struct ss_curve *curve, u64 span_sectors)
{
	u64 last = GENERIC_TRACK_SECTORS;
	u32 i, nr = 0;

	memset(curve, 0, sizeof(*curve));
	ss_curve_set_backward(curve, 150);
	curve->span_sectors = max_t(u64, span_sectors, 1);
	curve->transfer_ps = GENERIC_PS;
	curve->point[nr++] = (struct ss_curve_point){ 0, 0 };
	curve->point[nr++] = (struct ss_curve_point){
		GENERIC_TRACK_SECTORS, generic[0].time_us * 1000ULL
	};
	for (i = 0; i < ARRAY_SIZE(generic); i++) {
		u64 distance = mul_u64_u64_div_u64(curve->span_sectors,
						   generic[i].ppm, 1000000);

		if (distance <= last)
			continue;
		last = distance;
		curve->point[nr++] = (struct ss_curve_point){
			distance, generic[i].time_us * 1000ULL
		};
	}
	curve->nr_points = nr;
	curve->learning = true;
	curve_summarise(curve);
}

/* "service curve, point @nr: @value @rule" */
static int refuse_point(u32 nr, u64 value, const char *rule, char *why,
			size_t why_bytes)
{
	ss_say_all(why, why_bytes, "service curve, point ", nr, ": ");
	ss_say_number(why, why_bytes, value);
	ss_say(why, why_bytes, rule);
	return -EINVAL;
}

int ss_curve_check(const struct ss_curve_point *points, u32 nr, char *why,
		   size_t why_bytes)
{
	u64 last_sectors = 0, last_ns = 0;
	u32 i;

	if (!nr || nr > SS_CURVE_POINTS) {
		ss_say_all(why, why_bytes, "service curve: must have 1 to ",
			   SS_CURVE_POINTS, " points");
		return -EINVAL;
	}
	for (i = 0; i < nr; i++) {
		u64 sectors = points[i].distance_sectors;
		u64 time_ns = points[i].time_ns;

		if (i ? sectors <= last_sectors : sectors != 0)
			return refuse_point(
				i + 1, sectors,
				" sectors, but distances must be ascending from 0",
				why, why_bytes);
		if (time_ns > SS_CURVE_MOST_NS)
			return refuse_point(
				i + 1, time_ns,
				" ns is not within 0 to 1000000000 (1 s)", why,
				why_bytes);
		if (time_ns < last_ns)
			return refuse_point(i + 1, time_ns,
					    " ns, but times must never fall",
					    why, why_bytes);
		last_sectors = sectors;
		last_ns = time_ns;
	}
	return 0;
}

int ss_curve_set(struct ss_curve *curve, const struct ss_curve_point *points,
		 u32 nr, u64 span_sectors)
{
	char why[160];

	if (!span_sectors || ss_curve_check(points, nr, why, sizeof(why)))
		return -EINVAL;
	memcpy(curve->point, points, nr * sizeof(*points));
	curve->nr_points = nr;
	curve->span_sectors = span_sectors;
	curve->learning = false;
	curve_summarise(curve);
	return 0;
}

/* In a segment that is too long for a slope. */
static u64 divided_ns(const struct ss_curve *curve,
		      const struct ss_curve_segment *at, u64 behind)
{
	const struct ss_curve_point *point = &curve->point[at - curve->segment];

	return point[0].time_ns +
	       mul_u64_u64_div_u64(point[1].time_ns - point[0].time_ns, behind,
				   point[1].distance_sectors -
					   point[0].distance_sectors);
}

u64 ss_curve_rough_ns(const struct ss_curve *curve, u64 distance_sectors)
{
	const struct ss_curve_segment *at;
	u64 behind;

	at = &curve->segment[curve->near[ss_curve_size(distance_sectors)]];
	while (distance_sectors > at->last_sectors)
		at++;
	behind = distance_sectors - at->first_sectors;
	if (at->slope.whole == NO_SLOPE)
		return divided_ns(curve, at, behind);
	return at->first_ns + ss_ratio_times(&at->slope, behind);
}

u64 ss_curve_distance_ns(const struct ss_curve *curve, u64 distance_sectors)
{
	return ss_curve_look_up(curve, distance_sectors);
}

u64 ss_curve_service_ns(const struct ss_curve *curve, u64 from_sector,
			u64 to_sector)
{
	return ss_curve_between(curve, from_sector, to_sector);
}

/* Bucket 0 is distance 0, bucket b holds distances of b binary digits. */
static u32 learn_bucket(u64 distance)
{
	return min_t(u32, fls64(distance), SS_CURVE_BUCKETS - 1);
}

/* The middle of a bucket's range. */
static u64 bucket_distance(u32 bucket)
{
	u64 low = bucket ? 1ULL << (bucket - 1) : 0;

	return low + (low >> 1);
}

/* What @size of a bucket takes to move at @ps for a sector. */
static u64 moved_ns(u64 ps, u64 size)
{
	return mul_u64_u64_div_u64(ps, size, 1000 << SS_CURVE_SIZE_SHIFT);
}

/*
 * What the requests of a bucket took beside their transfer. Of a small
 * sequential request most is what any request costs: what is larger than they
 * were is taken to move at the generic rate at least, or nothing would be left
 * for positioning.
 */
static u64 seen_ns_of(const struct ss_curve *curve, u32 bucket)
{
	const struct ss_curve_bucket *seen = &curve->bucket[bucket];
	u64 ps = curve->transfer_ps, size = seen->mean_size, moving_ns = 0;
	u64 known_size = curve->bucket[0].mean_size;

	if (ps > GENERIC_PS && size > known_size) {
		moving_ns = moved_ns(GENERIC_PS, size - known_size);
		size = known_size;
	}
	moving_ns += moved_ns(ps, size);
	return bucket && seen->mean_ns > moving_ns ? seen->mean_ns - moving_ns :
						     0;
}

/*
 * What was seen, made to never fall with distance: neighbours that contradict
 * each other share their mean, each as heavy as its samples are many (pool
 * adjacent violators; Ayer et al., 1955). So a few slow samples of one distance
 * do not make all longer ones dear.
 */
static void smooth_seen(const struct ss_curve *curve, u32 nr,
			struct ss_curve_point *point)
{
	struct {
		u64 sum_ns;
		u32 weight;
		u32 first; /* bucket */
	} pool[SS_CURVE_BUCKETS];
	u32 bucket, pools = 0, i = 0;

	for (bucket = 0; bucket < nr; bucket++) {
		u32 weight = curve->bucket[bucket].samples;

		if (weight < LEARN_BELIEVE)
			continue;
		pool[pools].sum_ns = seen_ns_of(curve, bucket) * weight;
		pool[pools].weight = weight;
		pool[pools++].first = bucket;
		while (pools > 1 &&
		       div_u64(pool[pools - 2].sum_ns, pool[pools - 2].weight) >
			       div_u64(pool[pools - 1].sum_ns,
				       pool[pools - 1].weight)) {
			pools--;
			pool[pools - 1].sum_ns += pool[pools].sum_ns;
			pool[pools - 1].weight += pool[pools].weight;
		}
	}
	for (bucket = 0; bucket < nr; bucket++) {
		if (curve->bucket[bucket].samples < LEARN_BELIEVE)
			continue;
		while (i + 1 < pools && pool[i + 1].first <= bucket)
			i++;
		point[bucket].time_ns = div_u64(pool[i].sum_ns, pool[i].weight);
	}
}

/*
 * Points at the middle of each bucket's range. A bucket that has seen too
 * little follows the generic curve, in proportion to the nearest shorter
 * distance that was seen, and is not above a longer one that was: positioning
 * never gets cheaper with distance.
 */
static void learn_rebuild(struct ss_curve *curve)
{
	struct ss_curve_point point[SS_CURVE_POINTS];
	u32 bucket, top = learn_bucket(curve->span_sectors);
	u64 seen_ns = 1, guessed_ns = 1, least = U64_MAX, last = 0;
	u32 nr = min_t(u32, top + 1, SS_CURVE_BUCKETS);

	smooth_seen(curve, nr, point);
	for (bucket = 0; bucket < nr; bucket++) {
		u64 distance = bucket_distance(bucket);
		u64 guess = generic_ns(curve->span_sectors, distance);

		point[bucket].distance_sectors = distance;
		if (curve->bucket[bucket].samples < LEARN_BELIEVE) {
			point[bucket].time_ns = mul_u64_u64_div_u64(guess,
								    seen_ns,
								    guessed_ns);
			continue;
		}
		/* Within a track the generic curve is too coarse to compare. */
		if (distance >= GENERIC_TRACK_SECTORS) {
			seen_ns = point[bucket].time_ns;
			guessed_ns = guess;
		}
	}
	for (bucket = nr; bucket-- > 0;) {
		if (curve->bucket[bucket].samples >= LEARN_BELIEVE)
			least = min_t(u64, least, point[bucket].time_ns);
		else
			point[bucket].time_ns = min_t(u64,
						      point[bucket].time_ns,
						      least);
	}
	for (bucket = 0; bucket < nr; bucket++) {
		last = max_t(u64, last, point[bucket].time_ns);
		last = min_t(u64, last, SS_CURVE_MOST_NS);
		point[bucket].time_ns = last;
	}
	memcpy(curve->point, point, nr * sizeof(*point));
	curve->nr_points = nr;
	curve_summarise(curve);
}

/* @mean moves to @sample, which is one of @samples. */
static void move_mean(u64 *mean, u64 sample, u32 samples)
{
	if (sample > *mean)
		*mean += div_u64(sample - *mean, samples);
	else
		*mean -= div_u64(*mean - sample, samples);
}

/*
 * The longest that a request is believed to take. What goes beyond it was a
 * retry, or a drive that had to wake up. Who goes on may have lost a
 * revolution, and some always do. It grows with what is learned: slow disks
 * are believed, too, but none beyond what a curve may say.
 */
static u64 believed_ns(const struct ss_curve *curve, u64 distance_sectors,
		       u32 nr_sectors, u64 mean_ns)
{
	u64 ps = max_t(u64, curve->transfer_ps, GENERIC_PS);
	u64 position_ns = GENERIC_RANDOM_NS;

	if (distance_sectors)
		position_ns = max_t(u64, curve->mean_random_ns, position_ns);
	position_ns = max_t(u64, position_ns, LATE * mean_ns);
	return div_u64(ps * nr_sectors, 1000) +
	       min_t(u64, position_ns, SS_CURVE_MOST_NS);
}

void ss_curve_learn(struct ss_curve *curve, u64 distance_sectors,
		    u32 nr_sectors, u64 service_ns)
{
	struct ss_curve_bucket *bucket;

	if (!curve->learning)
		return;
	bucket = &curve->bucket[learn_bucket(distance_sectors)];
	service_ns = min_t(u64, service_ns,
			   believed_ns(curve, distance_sectors, nr_sectors,
				       bucket->mean_ns));
	if (bucket->samples < LEARN_WEIGHT)
		bucket->samples++;
	move_mean(&bucket->mean_ns, service_ns, bucket->samples);
	move_mean(&bucket->mean_size, (u64)nr_sectors << SS_CURVE_SIZE_SHIFT,
		  bucket->samples);
	/* A sequential request is all transfer. */
	if (!distance_sectors && bucket->samples >= LEARN_BELIEVE)
		curve->transfer_ps = div64_u64((bucket->mean_ns * 1000)
						       << SS_CURVE_SIZE_SHIFT,
					       bucket->mean_size);
	if (++curve->unseen >= LEARN_BATCH) {
		curve->unseen = 0;
		learn_rebuild(curve);
	}
}

void ss_curve_forget(struct ss_curve *curve)
{
	struct ss_ratio backward = curve->dearer[true];

	ss_curve_init_generic(curve, curve->span_sectors);
	curve->dearer[true] = backward;
}

/*
 * On a flat curve nobody is waited for, so that of several readers hardly any
 * request is alone in the disk: if it was learned to be flat from what a cache
 * held, nothing would ever be learned again. But a device without a head is
 * busy for no longer with each of many than with one alone.
 */
void ss_curve_doubt(struct ss_curve *curve, u32 nr_sectors, u64 busy_ns)
{
	u64 moving_ns = div_u64(curve->transfer_ps * nr_sectors, 1000);
	bool holds;

	curve->too_slow += busy_ns >
			   FLAT_BELOW_NS + 2 * (curve->most_ns + moving_ns);
	if (++curve->doubted < DOUBT_BATCH)
		return;
	holds = 2 * curve->too_slow < DOUBT_BATCH;
	curve->doubted = 0;
	curve->too_slow = 0;
	if (!holds)
		ss_curve_forget(curve);
}
