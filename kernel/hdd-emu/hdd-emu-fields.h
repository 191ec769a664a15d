/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The attributes that are numbers or lists of numbers, a row each: name and
 * field; the struct it is in, within struct hdd_emu; which kind of disk is
 * incomplete without it; how many values it may have (1: a number, not a
 * list); range of each value.
 *
 * The ranges of parameters are those of hdd_drive_init(), which also looks at
 * how they agree. This file is included with HDD_EMU_FIELD defined, several
 * times.
 */
HDD_EMU_FIELD(capacity_sectors, params, BOTH, 1, 1, (1ULL << 48) - 1)
HDD_EMU_FIELD(kind, params, BOTH, 1, 0, HDD_KIND_FLAT)
HDD_EMU_FIELD(queue_depth, params, BOTH, 1, 1, HDD_MAX_DEPTH)
HDD_EMU_FIELD(interface_bytes_per_s, params, BOTH, 1, 1000000, 100000000000ULL)
HDD_EMU_FIELD(command_overhead_ns, params, BOTH, 1, 0, 99999999)
HDD_EMU_FIELD(flush_ns, params, BOTH, 1, 0, 9999999999ULL)
HDD_EMU_FIELD(interface_order, params, MECHANICAL, 1, 0, HDD_INTERFACE_SERIES)
HDD_EMU_FIELD(interface_unit_sectors, params, MECHANICAL, 1, 1, 65535)
HDD_EMU_FIELD(overhead_ns, params, MECHANICAL, 2 * HDD_CLASSES, 0, 99999999)
HDD_EMU_FIELD(queue_order, params, MECHANICAL, 1, 0, HDD_ORDER_SPTF)
HDD_EMU_FIELD(queue_age_permille, params, MECHANICAL, 1, 0, 1000)
HDD_EMU_FIELD(queue_age_limit_ns, params, MECHANICAL, 1, 0, U64_MAX)
HDD_EMU_FIELD(actuators, params, MECHANICAL, 1, 1, HDD_MAX_ACTUATORS)
HDD_EMU_FIELD(rotation_ns, params, MECHANICAL, 1, 1000000, 50000000)
HDD_EMU_FIELD(surfaces, params, MECHANICAL, 1, 1, 64)
HDD_EMU_FIELD(nr_zones, params, MECHANICAL, 1, 1, HDD_MAX_ZONES)
HDD_EMU_FIELD(zone_cylinders, params, MECHANICAL, HDD_MAX_ZONES, 1, 1000000)
HDD_EMU_FIELD(zone_sectors_per_track, params, MECHANICAL, HDD_MAX_ZONES, 8,
	      65535)
HDD_EMU_FIELD(track_skew_ns, params, MECHANICAL, 1, 0, 49999999)
HDD_EMU_FIELD(cylinder_skew_ns, params, MECHANICAL, 1, 0, 49999999)
HDD_EMU_FIELD(head_switch_ns, params, MECHANICAL, 1, 0, 50000000)
HDD_EMU_FIELD(write_settle_ns, params, MECHANICAL, 1, 0, 50000000)
HDD_EMU_FIELD(write_saves_ns, params, MECHANICAL, 1, 0, 50000000)
HDD_EMU_FIELD(physical_sectors, params, MECHANICAL, 1, 1, 8)
HDD_EMU_FIELD(nr_seek_points, params, MECHANICAL, 1, 1, HDD_MAX_SEEK_POINTS)
HDD_EMU_FIELD(seek_cylinders, params, MECHANICAL, HDD_MAX_SEEK_POINTS, 1,
	      U32_MAX)
HDD_EMU_FIELD(seek_ns, params, MECHANICAL, HDD_MAX_SEEK_POINTS, 0, 199999999)
HDD_EMU_FIELD(segments, params, MECHANICAL, 1, 1, HDD_MAX_SEGMENTS)
HDD_EMU_FIELD(segment_sectors, params, MECHANICAL, 1, 1, U32_MAX)
HDD_EMU_FIELD(readahead_sectors, params, MECHANICAL, 1, 0, U32_MAX)
HDD_EMU_FIELD(segment_keeps_read, params, MECHANICAL, 1, 0, 1)
HDD_EMU_FIELD(ahead_until, params, MECHANICAL, 1, 0, HDD_AHEAD_TRACK)
HDD_EMU_FIELD(read_behind, params, MECHANICAL, 1, 0, 1)
HDD_EMU_FIELD(write_empties, params, MECHANICAL, 1, 0, 1)
HDD_EMU_FIELD(write_cache_sectors, params, MECHANICAL, 1, 0, U32_MAX)
HDD_EMU_FIELD(write_cache_extents, params, MECHANICAL, 1, 1, HDD_MAX_DIRTY)
HDD_EMU_FIELD(write_cache_durable, params, MECHANICAL, 1, 0, 1)
HDD_EMU_FIELD(write_order, params, MECHANICAL, 1, 0, HDD_WRITE_SPTF)
HDD_EMU_FIELD(write_share_permille, params, MECHANICAL, 1, 0, 900)
HDD_EMU_FIELD(write_idle_ns, params, MECHANICAL, 1, 0, 9999999999ULL)
HDD_EMU_FIELD(media_sectors, params, MECHANICAL, 1, 0, U32_MAX)
HDD_EMU_FIELD(media_extents, params, MECHANICAL, 1, 0, HDD_MAX_MEDIA_EXTENTS)
HDD_EMU_FIELD(band_sectors, params, MECHANICAL, 1, 0, 1 << 24)
HDD_EMU_FIELD(media_idle_ns, params, MECHANICAL, 1, 0, 9999999999ULL)
HDD_EMU_FIELD(flat_channels, params, FLAT, 1, 1, HDD_MAX_CHANNELS)
HDD_EMU_FIELD(flat_read_ns, params, FLAT, 1, 0, 999999999)
HDD_EMU_FIELD(flat_write_ns, params, FLAT, 1, 0, 999999999)
HDD_EMU_FIELD(flat_read_bytes_per_s, params, FLAT, 1, 1000000, 100000000000ULL)
HDD_EMU_FIELD(flat_write_bytes_per_s, params, FLAT, 1, 1000000, 100000000000ULL)
HDD_EMU_FIELD(size_sectors, config, NONE, 1, 0, (1ULL << 48) - 1)
HDD_EMU_FIELD(memory_limit_bytes, config, NONE, 1, HDD_EMU_BLOCK_BYTES, U64_MAX)
HDD_EMU_FIELD(logical_block_size, config, NONE, 1, SECTOR_SIZE, 4096)
HDD_EMU_FIELD(physical_block_size, config, NONE, 1, SECTOR_SIZE, 4096)
HDD_EMU_FIELD(discard, config, NONE, 1, 0, 1)
HDD_EMU_FIELD(hardware_queues, config, NONE, 1, 1, HDD_EMU_MAX_QUEUES)
