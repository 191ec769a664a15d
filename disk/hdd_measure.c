// SPDX-License-Identifier: GPL-2.0-only
/* Measuring a disk from outside. */
#include "hdd_measure.h"

#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

/* A 4 KiB command, the usual unit of random access. */
#define HDD_PROBE_SECTORS 8
/* Pairs per distance: a tenth of a revolution's spread averages to 1 %. */
#define HDD_PROBE_PAIRS 1000
#define HDD_PROBE_RANDOM 20000
#define HDD_PROBE_STREAM_SECTORS 2048
#define HDD_PROBE_STREAMS 200

/* A fixed sequence: the measurement gives the same every time. */
struct hdd_random {
	u64 state;
};

static u64 hdd_random_below(struct hdd_random *random, u64 below)
{
	u64 rest, x = random->state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	random->state = x;
	div64_u64_rem(x, below, &rest);
	return rest;
}

/* The next command that is done; *@now_ns becomes its end. */
static struct hdd_cmd *hdd_wait(struct hdd_drive *drive, u64 *now_ns)
{
	struct hdd_cmd *cmd;

	do {
		*now_ns = hdd_drive_next_ns(drive);
		cmd = hdd_drive_pop(drive, *now_ns);
	} while (!cmd);
	return cmd;
}

/* One command on an empty disk at @now_ns. Gives its end. */
static u64 hdd_probe(struct hdd_drive *drive, struct hdd_cmd *cmd, u64 sector,
		     u32 nr_sectors, u8 op, u64 now_ns)
{
	cmd->sector = sector;
	cmd->nr_sectors = nr_sectors;
	cmd->op = op;
	cmd->fua = op == HDD_WRITE;
	hdd_drive_submit(drive, cmd, now_ns);
	hdd_wait(drive, &now_ns);
	return now_ns;
}

/* Mean positioning time for @distance sectors from the end of a read. */
static u64 hdd_probe_distance(struct hdd_drive *drive,
			      struct hdd_random *random, u64 distance,
			      u64 *now_ns)
{
	u64 span = drive->params.capacity_sectors - distance -
		   2 * HDD_PROBE_SECTORS;
	u64 sector, sum_ns = 0;
	struct hdd_cmd cmd;
	u32 i;

	for (i = 0; i < HDD_PROBE_PAIRS; i++) {
		sector = hdd_random_below(random, span + 1);
		/* Not always at the same angle after the one before. */
		*now_ns += hdd_random_below(random, 20000000);
		*now_ns = hdd_probe(drive, &cmd, sector, HDD_PROBE_SECTORS,
				    HDD_READ, *now_ns);
		*now_ns = hdd_probe(drive, &cmd,
				    sector + HDD_PROBE_SECTORS + distance,
				    HDD_PROBE_SECTORS, HDD_READ, *now_ns);
		sum_ns += cmd.position_ns;
	}
	return div_u64(sum_ns, HDD_PROBE_PAIRS);
}

/* 8, doubled for every 8 in @eighths, in between by straight lines. */
static u64 hdd_eighths(u32 eighths)
{
	return (u64)(8 + eighths % 8) << (eighths / 8);
}

/*
 * The nearest curve that never falls: where it would, neighbours are replaced
 * by their mean. Distances just short of a revolution cost more than somewhat
 * longer ones, which the arm can shorten.
 */
static void hdd_never_fall(u64 *time_ns, u32 nr)
{
	u64 sum[HDD_MAX_CURVE_POINTS];
	u32 count[HDD_MAX_CURVE_POINTS];
	u32 i, j, nr_groups = 0;

	for (i = 0; i < nr; i++) {
		sum[nr_groups] = time_ns[i];
		count[nr_groups++] = 1;
		while (nr_groups > 1 &&
		       sum[nr_groups - 1] * count[nr_groups - 2] <
			       sum[nr_groups - 2] * count[nr_groups - 1]) {
			nr_groups--;
			sum[nr_groups - 1] += sum[nr_groups];
			count[nr_groups - 1] += count[nr_groups];
		}
	}
	for (i = 0, j = 0; j < nr_groups; j++) {
		u64 mean = div_u64(sum[j], count[j]);

		for (; count[j]; count[j]--)
			time_ns[i++] = mean;
	}
}

int hdd_measure_curve(struct hdd_drive *scratch,
		      const struct hdd_params *params, u32 max_points,
		      u64 *distance_sectors, u64 *time_ns, const char **why)
{
	struct hdd_random random = { .state = 0x9e3779b97f4a7c15ULL };
	u64 longest, distance = 0, now_ns = 0;
	u32 i = 0, eighths = 0;
	int err;

	*why = "a curve has between 2 and 40 points";
	if (max_points < 2 || max_points > HDD_MAX_CURVE_POINTS)
		return -EINVAL;
	err = hdd_drive_init(scratch, params, why);
	if (err)
		return err;
	*why = "the disk is too small to measure: less than 64 sectors";
	if (params->capacity_sectors < 64)
		return -EINVAL;
	*why = NULL;
	/* Short of the whole, so that there are many places to begin. */
	longest = params->capacity_sectors - params->capacity_sectors / 64 -
		  2 * HDD_PROBE_SECTORS;
	while (hdd_eighths(eighths + 1) < longest)
		eighths++;
	for (;;) {
		distance_sectors[i] = distance;
		time_ns[i] = hdd_probe_distance(scratch, &random, distance,
						&now_ns);
		i++;
		if (distance == longest) {
			hdd_never_fall(time_ns, i);
			return (int)i;
		}
		/* 8, then steps of equal ratio, the last one the longest. */
		if (i + 1 == max_points) {
			distance = longest;
		} else {
			distance = hdd_eighths((i - 1) * eighths /
					       (max_points - 2));
			distance = max_t(u64, distance,
					 distance_sectors[i - 1] + 8);
			distance = min_t(u64, distance, longest);
		}
	}
}

static u64 hdd_measure_random(struct hdd_drive *drive, u8 op)
{
	struct hdd_random random = { .state = 88172645463325252ULL };
	u64 span = drive->params.capacity_sectors / HDD_PROBE_SECTORS;
	struct hdd_cmd cmd;
	u64 now_ns = 0;
	u32 i;

	for (i = 0; i < HDD_PROBE_RANDOM; i++)
		now_ns = hdd_probe(drive, &cmd,
				   HDD_PROBE_SECTORS *
					   hdd_random_below(&random, span),
				   HDD_PROBE_SECTORS, op, now_ns);
	return div_u64(now_ns, HDD_PROBE_RANDOM);
}

/*
 * The mean time of a 4 KiB command with @depth of them in the disk all the
 * time; of writes once the cache is full.
 */
static u64 hdd_measure_deep(struct hdd_drive *drive, struct hdd_cmd *cmds,
			    u32 depth, u8 op)
{
	struct hdd_random random = { .state = 88172645463325252ULL };
	u64 span = drive->params.capacity_sectors / HDD_PROBE_SECTORS;
	struct hdd_cmd *cmd;
	u64 now_ns = 0, start_ns = 0;
	u32 i, warm = 0;

	if (op == HDD_WRITE && drive->params.write_cache_sectors)
		warm = 2 * drive->params.write_cache_extents;
	for (i = 0; i < warm + HDD_PROBE_RANDOM + depth; i++) {
		if (i == warm + depth)
			start_ns = now_ns;
		cmd = i < depth ? &cmds[i] : hdd_wait(drive, &now_ns);
		cmd->sector = HDD_PROBE_SECTORS *
			      hdd_random_below(&random, span);
		cmd->nr_sectors = HDD_PROBE_SECTORS;
		cmd->op = op;
		cmd->fua = false;
		hdd_drive_submit(drive, cmd, now_ns);
	}
	return div_u64(now_ns - start_ns, HDD_PROBE_RANDOM);
}

/* Bytes per second of reading or writing on from @sector, 1 MiB each. */
static u64 hdd_measure_stream(struct hdd_drive *drive, u64 sector, u8 op)
{
	u64 now_ns = 0, start_ns = 0, capacity = drive->params.capacity_sectors;
	u32 i, warm, nr = HDD_PROBE_STREAM_SECTORS;
	struct hdd_cmd cmd = { .fua = false };

	if (capacity < (u64)nr * HDD_PROBE_STREAMS)
		nr = (u32)div_u64(capacity, HDD_PROBE_STREAMS);
	nr = max_t(u32, nr, 1);
	/* The first ones bring the head there and fill the write cache. */
	warm = HDD_PROBE_STREAMS / 4;
	if (op == HDD_WRITE)
		warm += 4 * (drive->params.write_cache_sectors / nr);
	for (i = 0; i < warm + HDD_PROBE_STREAMS * 3 / 4; i++) {
		if (sector + nr > capacity)
			sector = 0;
		cmd.sector = sector;
		cmd.nr_sectors = nr;
		cmd.op = op;
		hdd_drive_submit(drive, &cmd, now_ns);
		hdd_wait(drive, &now_ns);
		if (i + 1 == warm)
			start_ns = now_ns;
		sector += nr;
	}
	nr *= HDD_PROBE_STREAMS * 3 / 4;
	return div64_u64(nr * 512ULL * 1000000000ULL, now_ns - start_ns);
}

static u64 hdd_measure_mean(struct hdd_drive *drive,
			    const struct hdd_params *params, u64 span,
			    const char **why)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < 16; i++) {
		hdd_drive_init(drive, params, why);
		sum += hdd_measure_stream(
			drive,
			div_u64((params->capacity_sectors - span) * i, 15),
			HDD_READ);
	}
	return sum / 16;
}

static u64 hdd_measure_flush(struct hdd_drive *drive)
{
	struct hdd_random random = { .state = 88172645463325252ULL };
	u64 span = drive->params.capacity_sectors / HDD_PROBE_SECTORS;
	struct hdd_cmd cmd = { .nr_sectors = HDD_PROBE_SECTORS };
	u64 now_ns = 0;
	u32 i;

	for (i = 0; i <= 64; i++) {
		cmd.sector = HDD_PROBE_SECTORS *
			     hdd_random_below(&random, span);
		cmd.op = i < 64 ? HDD_WRITE : HDD_FLUSH;
		hdd_drive_submit(drive, &cmd, now_ns);
		hdd_wait(drive, &now_ns);
	}
	return cmd.done_ns - cmd.submit_ns;
}

static void hdd_measure_seeks(const struct hdd *hdd, struct hdd_figures *f)
{
	struct hdd_random random = { .state = 362436069521288629ULL };
	u64 sum_ns = 0;
	u32 i, from, to, head, angle_ns;

	f->track_to_track_ns = hdd_seek_time_ns(hdd, 1);
	f->full_stroke_ns = hdd_seek_time_ns(hdd, hdd->cylinders - 1);
	for (i = 0; i < HDD_PROBE_RANDOM; i++) {
		hdd_map(hdd,
			hdd_random_below(&random, hdd->params.capacity_sectors),
			&from, &head, &angle_ns);
		hdd_map(hdd,
			hdd_random_below(&random, hdd->params.capacity_sectors),
			&to, &head, &angle_ns);
		sum_ns += hdd_seek_time_ns(hdd,
					   from < to ? to - from : from - to);
	}
	f->mean_seek_ns = div_u64(sum_ns, HDD_PROBE_RANDOM);
}

int hdd_measure_figures(struct hdd_drive *scratch, struct hdd_cmd *cmds,
			const struct hdd_params *params,
			struct hdd_figures *figures, const char **why)
{
	u64 capacity = params->capacity_sectors;
	u64 span, ns;
	int err;

	*figures = (struct hdd_figures){ 0 };
	err = hdd_drive_init(scratch, params, why);
	if (err)
		return err;
	*why = "the disk is too small to measure: less than 65536 sectors";
	if (capacity < 65536)
		return -EINVAL;
	*why = NULL;
	figures->random_read_ns = hdd_measure_random(scratch, HDD_READ);
	figures->read_iops_1000 = div64_u64(1000000000000ULL,
					    figures->random_read_ns);
	hdd_drive_init(scratch, params, why);
	figures->random_write_ns = hdd_measure_random(scratch, HDD_WRITE);
	hdd_drive_init(scratch, params, why);
	ns = hdd_measure_deep(scratch, cmds,
			      min_t(u32, 16, params->queue_depth), HDD_READ);
	figures->read_iops_16_1000 = div64_u64(1000000000000ULL, ns);
	hdd_drive_init(scratch, params, why);
	ns = hdd_measure_deep(scratch, cmds, params->queue_depth, HDD_READ);
	figures->read_iops_deep_1000 = div64_u64(1000000000000ULL, ns);
	hdd_drive_init(scratch, params, why);
	ns = hdd_measure_deep(scratch, cmds,
			      min_t(u32, 16, params->queue_depth), HDD_WRITE);
	figures->write_iops_16_1000 = div64_u64(1000000000000ULL, ns);

	span = min_t(u64, capacity,
		     (u64)HDD_PROBE_STREAM_SECTORS * HDD_PROBE_STREAMS);
	hdd_drive_init(scratch, params, why);
	figures->outer_bytes_per_s = hdd_measure_stream(scratch, 0, HDD_READ);
	hdd_drive_init(scratch, params, why);
	figures->middle_bytes_per_s = hdd_measure_stream(scratch,
							 (capacity - span) / 2,
							 HDD_READ);
	hdd_drive_init(scratch, params, why);
	figures->inner_bytes_per_s = hdd_measure_stream(scratch,
							capacity - span,
							HDD_READ);
	figures->mean_bytes_per_s = hdd_measure_mean(scratch, params, span,
						     why);
	hdd_drive_init(scratch, params, why);
	figures->flush_64_ns = hdd_measure_flush(scratch);
	hdd_drive_init(scratch, params, why);
	figures->outer_write_bytes_per_s = hdd_measure_stream(scratch, 0,
							      HDD_WRITE);
	if (params->kind == HDD_KIND_MECHANICAL)
		hdd_measure_seeks(scratch->actuator[0], figures);
	return 0;
}
