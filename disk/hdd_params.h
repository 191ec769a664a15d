/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a disk is: every figure the model works with.
 *
 * A plain structure of integers, filled in from a file in disks/. The Python
 * binding reads this header as text, so it holds literal array sizes and no
 * macros but the limits. hdd_init() checks every range given here.
 */
#ifndef HDD_PARAMS_H
#define HDD_PARAMS_H

#include <linux/types.h>

#define HDD_MAX_ZONES 64
#define HDD_MAX_SEEK_POINTS 256
#define HDD_MAX_SEGMENTS 64
#define HDD_MAX_DIRTY 32768
#define HDD_MAX_DEPTH 254
#define HDD_MAX_CHANNELS 32
#define HDD_MAX_MEDIA_EXTENTS 262144

enum hdd_kind {
	HDD_KIND_MECHANICAL, /* platters and an arm */
	HDD_KIND_FLAT, /* an SSD: the same latency everywhere */
};

/* Which of the commands in its queue the drive does next. */
enum hdd_order {
	HDD_ORDER_FIFO, /* the one that came first */
	HDD_ORDER_SPTF, /* the one with the shortest positioning time */
};

/* Which of the write cache goes to the medium next. */
enum hdd_write_order {
	HDD_WRITE_SWEEP, /* upwards from the head, then from the start */
	HDD_WRITE_SPTF, /* the shortest positioning time near the head */
};

/* What a watermark is a part of. */
enum hdd_watermark {
	HDD_WATERMARK_OF_READ, /* the read's own sectors */
	HDD_WATERMARK_OF_SEGMENT, /* a segment of the read cache */
};

/* Where reading ahead ends, if not before. */
enum hdd_ahead {
	HDD_AHEAD_LIMIT, /* readahead_sectors behind the last read */
	HDD_AHEAD_SEGMENT, /* ... or the segment full, the last read in it */
	HDD_AHEAD_TRACK, /* ... or with the track that the last read ends on */
	HDD_AHEAD_CYLINDER, /* ... or with the cylinder that it ends on */
	/*
	 * ... or with the track behind the last read; one track later if the
	 * segment began on a track before, as reading in order does.
	 */
	HDD_AHEAD_TRACKS,
};

/* What a command needs, for its overhead. */
enum hdd_class {
	HDD_CLASS_READ_MISS, /* the medium */
	HDD_CLASS_READ_HIT, /* the cache alone */
	HDD_CLASS_WRITE_MISS,
	HDD_CLASS_WRITE_HIT,
	HDD_CLASSES,
};

struct hdd_params {
	u64 capacity_sectors; /* what the host sees, at least 1 */
	u32 kind; /* enum hdd_kind */

	/* Both kinds. */
	u32 queue_depth; /* commands in the drive at once, 1..254 */
	u64 interface_bytes_per_s; /* to and from the drive's cache */
	u32 command_overhead_ns; /* controller, per command; flat only */
	u64 flush_ns; /* fixed part of a flush that has work to do */

	/* Mechanical only, down to the flat ones. */
	/*
	 * So much must be in the buffer before the interface carries the first
	 * of a read, 0..1000; 1000 of the read: all of it, in series.
	 */
	u32 read_watermark_permille;
	u32 watermark_of; /* enum hdd_watermark */
	u32 write_series; /* 1: a write's data come first, 0: meanwhile */
	/* Sectors the host waits for after the medium's last: 1..65535. */
	u32 interface_unit_sectors;
	/*
	 * Controller, by enum hdd_class: for a command that comes after a
	 * read, then the same for one after a write; below 100 ms.
	 */
	u32 overhead_ns[8];
	u32 queue_order; /* enum hdd_order */
	/*
	 * SPTF: waiting 1000 ns counts as this many ns less positioning,
	 * 0..1000; and a command older than the limit goes first.
	 */
	u32 queue_age_permille;
	u64 queue_age_limit_ns;

	/*
	 * Arms that move independently, each with its half of the capacity:
	 * 1 or 2. What follows describes one of them.
	 */
	u32 actuators;

	/*
	 * Zones from the outer edge inwards. A zone is whole cylinders with
	 * one number of sectors per track; sectors are numbered along a
	 * track, then over the surfaces of a cylinder, then inwards. All
	 * zones but the last are used fully.
	 */
	u32 rotation_ns; /* one revolution, 1 ms..50 ms */
	u32 surfaces; /* recording surfaces (heads), 1..64 */
	u32 nr_zones; /* 1..64 */
	u32 zone_cylinders[64];
	u32 zone_sectors_per_track[64]; /* 8..65535 */

	/*
	 * How much later than the end of a track its successor begins, on
	 * the next surface and on the next cylinder; below one revolution.
	 */
	u32 track_skew_ns;
	u32 cylinder_skew_ns;
	u32 head_switch_ns; /* to another surface of the same cylinder */
	/* For a write after moving: extra, or saved if writes settle sooner. */
	u32 write_settle_ns; /* 0..50 ms */
	u32 write_saves_ns; /* 0..50 ms */
	u32 physical_sectors; /* of a sector of the medium: 1, or 8 (512e) */

	/*
	 * Seek time for reads by distance: cylinders ascending from 1 up to
	 * the full stroke or beyond, straight lines in between. A time may be
	 * below one of a shorter distance by a tenth of it: recorded tables
	 * fall by what their measurement was off.
	 */
	u32 nr_seek_points; /* 1..256 */
	u32 seek_cylinders[256];
	u32 seek_ns[256];

	/* The read cache: equal segments, least recently used goes. */
	u32 segments; /* 1..64 */
	u32 segment_sectors; /* size of one */
	u32 readahead_sectors; /* beyond the last one read; <= a segment */
	u32 segment_keeps_read; /* 1: what the host has had stays */
	u32 ahead_until; /* enum hdd_ahead */
	u32 read_behind; /* 1: what passes before a read stays, too */
	u32 write_empties; /* 1: a write empties segments it touches, 0: none */

	/* The write cache; write_cache_sectors 0 turns it off. */
	u32 write_cache_sectors;
	u32 write_cache_extents; /* separate places it can hold, 1..32768 */
	u32 write_cache_durable; /* 1: it survives a power cut, 0: no */
	u32 write_order; /* enum hdd_write_order */
	/* Of the time beside reads, once it is half full: 0..900. */
	u32 write_share_permille;
	u64 write_idle_ns; /* idle this long before writing it out */

	/*
	 * Drive-managed shingled recording (hdd_media.h): 0 sectors: none.
	 * The medium has these sectors beside the capacity, in front of it.
	 */
	u64 media_sectors; /* of the log: 0, or 8192..2^32 - 1 */
	u32 media_extents; /* that its map can hold, 16..262144 */
	u32 band_sectors; /* 4096..2^24 */
	u64 media_idle_ns; /* idle this long before cleaning */

	/* Flat only. */
	u32 flat_channels; /* commands served side by side, 1..32 */
	u32 flat_read_ns; /* latency of the medium */
	u32 flat_write_ns;
	u64 flat_read_bytes_per_s; /* of the whole drive */
	u64 flat_write_bytes_per_s;
};

#endif
