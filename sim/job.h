/* SPDX-License-Identifier: GPL-2.0-only */
/* A process, as it is described: what fio says of one, and a little more. */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include <linux/types.h>

/* What a process does. */
enum sim_rw {
	SIM_RW_READ = 1, /* bit 0: reads */
	SIM_RW_WRITE = 2, /* bit 1: writes */
	SIM_RW_RANDOM = 4, /* bit 2: at random positions */
};

/* Where the blocks of a random job lie. */
enum sim_places {
	SIM_PLACES_UNIFORM,
	SIM_PLACES_TABLE, /* by weight: sim_set_places() */
	SIM_PLACES_NORMAL, /* the mean of twelve uniform ones */
};

#define SIM_MAX_SPLITS 16
#define SIM_MAX_POOLS 64
#define SIM_MAX_THREADS 64
#define SIM_READAHEAD_SAME 0xffffffffU /* as struct sim_config says */

/* Which of several files is next. */
enum sim_files {
	SIM_FILES_ROUND, /* each that is open in turn */
	SIM_FILES_SEQUENTIAL, /* one after the other */
	SIM_FILES_RANDOM,
};

/* Whom the end of one process ends, as exitall and exit_what of fio say. */
enum sim_exits {
	SIM_EXITS_NOBODY,
	SIM_EXITS_GROUP, /* those with its exit_group */
	SIM_EXITS_RUNNING, /* those that have begun, and to count too */
	SIM_EXITS_ALL,
};

/* One process. Bytes and positions are multiples of 512. */
struct sim_job {
	char name[64];
	u32 section; /* index of the job file's section it is a clone of */
	u32 group; /* what SIM_OWNERS_GROUP tells apart */
	u32 rw; /* SIM_RW_ bits */
	u32 read_pct; /* for mixed jobs, 0..100 */
	u64 offset; /* first byte of its region on the disk */
	u64 size; /* bytes in its region */
	u64 io_bytes; /* transfer this much, then stop */
	/* Block sizes: one entry, or several with weights that sum to 100. */
	u32 nr_splits[2]; /* for reads, for writes */
	u32 split_bytes[2][SIM_MAX_SPLITS];
	u32 split_pct[2][SIM_MAX_SPLITS];
	/* A range instead: uniform in [min, max] by multiples of align. */
	u32 range_min[2];
	u32 range_max[2]; /* 0: no range, use the split */
	u32 align_bytes; /* alignment of random positions */
	s64 seq_skip; /* bytes skipped after each sequential block */
	bool direct;
	bool norandommap;
	bool drops_pages; /* of its region, before each pass over it */
	u32 iodepth; /* requests kept in flight; 1 for buffered jobs */
	u64 thinktime_ns;
	u32 thinktime_blocks; /* think after this many blocks, at least 1 */
	u64 startdelay_ns;
	u64 runtime_ns; /* 0: no limit */
	bool time_based; /* begin again until runtime is over */
	u32 fsync_blocks; /* fsync after this many writes, 0: never */
	bool end_fsync;
	u64 seed;
	u32 stage; /* a stage starts when all before it are done */
	u64 zone_size; /* zonemode=strided: 0 none */
	u64 zone_range;
	u64 zone_skip;
	/* Of a random job's blocks: so many of 100 go on where it is. */
	u32 in_order_pct[2];
	u32 random_every; /* only every so many goes elsewhere; 0: as 1 */
	bool stays; /* the others are the same one again */
	bool sizes_by_order; /* the split of reads is for them, not for reads */
	u32 places; /* enum sim_places: where random blocks are */
	bool scattered; /* what lies together there does not on the disk */
	bool scattered_alike; /* ... and all processes share what is popular */
	u64 places_shift; /* units of align_bytes, in a circle */
	u64 normal_spread; /* the same; added on both sides of the mean */
	u64 rate[2]; /* at most so many bytes/s, 0: no limit */
	u32 rate_unit[2]; /* its smallest block */
	bool rate_poisson;
	bool rate_forgives; /* what was not done while thinking */
	bool offload; /* before it waits for its rate, nothing need be done */
	u64 ramp_ns; /* statistics begin so late */
	char wait_for[64]; /* a name: start when all of that job are done */
	/*
	 * Several files, one behind the other: each file_stride bytes, of which
	 * file_size are used. Then size is that of all together.
	 */
	u32 nr_files; /* 0 or 1: the region is one */
	u64 file_stride;
	u64 file_size;
	u32 open_files; /* at once, at least 1 */
	u32 file_service; /* enum sim_files */
	u32 file_service_blocks; /* before another one has its turn */
	u32 exits; /* enum sim_exits: when it is done, who is too */
	u32 exit_group;

	/* What fio has no word for. */

	/* Work file by file: of these lengths, with weights that sum to 100. */
	u32 nr_file_splits; /* 0: the region is one file */
	u32 file_bytes[SIM_MAX_SPLITS];
	u32 file_pct[SIM_MAX_SPLITS];
	/*
	 * At random: files lie in the beginning of groups, as file systems have
	 * them. What is written is new, and goes into its group's free space.
	 */
	u64 group_bytes; /* 0: anywhere, and a file is written where it lies */
	u64 group_files_bytes; /* of each group, for files */
	/* Of what is written: so many of 100 are added to a file instead. */
	u32 append_pct;
	u32 append_bytes; /* after its last page has been read and rewritten */
	/* In order: so many files lie together, the next ones elsewhere. */
	u32 directory_files; /* 0: all lie together */
	/* A process for each file, this long after the last one has gone. */
	bool new_process;
	u64 spawn_ns;
	/* After so many blocks wait until all of the same number have come. */
	u32 barrier; /* 0: none */
	u32 barrier_blocks;
	bool turns; /* of these only one goes on at a time, then the next */
	/* Blocks are done by whichever thread of this pool is free. */
	u32 pool; /* below SIM_MAX_POOLS; 0: none */
	u32 pool_threads; /* at most SIM_MAX_THREADS */
	/* Every so many blocks, think until the disk serves somebody else. */
	u32 stall_blocks; /* 0: never; else at most thinktime_ns at a time */
	u32 readahead_pages; /* its largest window; SIM_READAHEAD_SAME */
	u32 first_window_pages; /* of a file; 0: as Linux since 2.6.23 */
	bool maps; /* of the file lie between its data, as in ext2 and ext3 */
	bool end_sync; /* the last one to end writes all back, as sync(2) */
	bool background; /* goes on until all others are done */
};

#endif
