/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hdd-emu: an emulated rotating disk. The parts of the module:
 *
 * hdd-emu.c         block driver: requests to and from the model in disk/
 * hdd-emu-store.c   what is on the disk: sparse memory, medium and write cache
 * hdd-emu-faults.c  ranges of sectors that fail or are slow
 * hdd-emu-config.c  configfs
 */
#ifndef HDD_EMU_H
#define HDD_EMU_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/configfs.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../../disk/hdd_drive.h"

/* The store: see hdd-emu-store.c. */

/* A unit of the store, whatever the machine's page size. */
#define HDD_EMU_BLOCK_SHIFT 12
#define HDD_EMU_BLOCK_BYTES (1U << HDD_EMU_BLOCK_SHIFT)
#define HDD_EMU_BLOCK_SECTORS (HDD_EMU_BLOCK_BYTES >> SECTOR_SHIFT)

/* Blocks kept for moments when the kernel has none at once: 4 MiB. */
#define HDD_EMU_RESERVE 1024

struct hdd_emu_store {
	struct xarray blocks;
	u64 max_blocks; /* on the medium */
	unsigned long margin_pages; /* the kernel keeps at least these */
	u64 nr_blocks; /* of memory, on the medium */
	u64 nr_cache; /* of memory, for the write cache */

	/*
	 * Blocks with data that the medium lacks. What the model has taken out
	 * of its cache is leaving, and on the medium at leaving_ns.
	 */
	struct list_head cached;
	struct list_head leaving;
	u64 nr_cached; /* on both lists */
	u64 leaving_ns;

	/* Memory for the next blocks: a list through their first words. */
	void *reserve;
	u32 nr_reserve;
	bool exhausted; /* the last attempt to fill the reserve failed */
};

void hdd_emu_store_init(struct hdd_emu_store *store);
/* Forget all data. */
void hdd_emu_store_free(struct hdd_emu_store *store);

/*
 * The reserve. Taking fills up the part of it that is missing from memory
 * that the caller may have slept for: hdd_emu_reserve_alloc() gives a list of
 * at most @nr blocks, to be added under the disk's lock.
 */
void *hdd_emu_reserve_alloc(u32 nr, u32 *nr_got);
void hdd_emu_reserve_add(struct hdd_emu_store *store, void *list, u32 nr);
void hdd_emu_reserve_free(struct hdd_emu_store *store);

/*
 * A write to [sector, sector + nr) is coming: have memory for it, in the write
 * cache too if it is @cached. 0; -ENOSPC when max_blocks does not allow it;
 * -ENOBUFS when less than the margin would be left; -ENOMEM when there is no
 * memory at once. Each success must be followed by
 * hdd_emu_store_done().
 */
int hdd_emu_store_prepare(struct hdd_emu_store *store, u64 sector, u32 nr,
			  bool cached);
void hdd_emu_store_done(struct hdd_emu_store *store, u64 sector, u32 nr);

/* Any number of whole sectors. */
void hdd_emu_store_read(struct hdd_emu_store *store, u64 sector, void *to,
			u32 nr);
void hdd_emu_store_write(struct hdd_emu_store *store, u64 sector,
			 const void *from, u32 nr, bool cached, u64 now_ns);
/* Zeroes on the medium; memory for whole blocks is given back. */
void hdd_emu_store_zero(struct hdd_emu_store *store, u64 sector, u64 nr);

/* All that is in the write cache is on the medium now. */
void hdd_emu_store_sync(struct hdd_emu_store *store);
/* What the model, brought up to @now_ns, has written out of its cache is. */
void hdd_emu_store_drain(struct hdd_emu_store *store,
			 const struct hdd_drive *drive, u64 now_ns);
/* The same at once, for the blocks of one range that is to be rewritten. */
void hdd_emu_store_settle(struct hdd_emu_store *store,
			  const struct hdd_drive *drive, u64 sector, u32 nr,
			  u64 now_ns);
/* How many sectors hdd_emu_store_cut() would lose. */
u64 hdd_emu_store_volatile(struct hdd_emu_store *store,
			   const struct hdd_drive *drive, u64 now_ns);
/* Power fails: the write cache forgets. */
void hdd_emu_store_cut(struct hdd_emu_store *store,
		       const struct hdd_drive *drive, u64 now_ns);

/* Faults: see hdd-emu-faults.c. */

#define HDD_EMU_MAX_RANGES 64

enum hdd_emu_fault_kind {
	HDD_EMU_EIO,
	HDD_EMU_TIMEOUT,
	HDD_EMU_BUSY,
	HDD_EMU_DELAY,
};

struct hdd_emu_fault {
	u64 sector;
	u64 nr_sectors;
	bool read;
	bool write;
	enum hdd_emu_fault_kind kind;
	u64 delay_ns;
};

struct hdd_emu_faults {
	u32 nr;
	struct hdd_emu_fault row[HDD_EMU_MAX_RANGES];
};

/*
 * One line per range: "START LENGTH read|write|both EIO|timeout|busy", or with
 * @delays "START LENGTH read|write|both NS". 0, or -EINVAL with the number
 * of the line and what is wrong with it. @text is taken apart.
 */
int hdd_emu_faults_parse(struct hdd_emu_faults *faults, char *text, bool delays,
			 u32 *line, const char **why);
ssize_t hdd_emu_faults_show(const struct hdd_emu_faults *faults, char *page);
/* The first line that concerns [sector, sector + nr); NULL for none. */
const struct hdd_emu_fault *hdd_emu_faults_find(
	const struct hdd_emu_faults *faults, u64 sector, u32 nr, bool write);

/* A disk. */

/* How a disk keeps its data. */
enum hdd_emu_backing {
	HDD_EMU_MEMORY,
	HDD_EMU_NONE, /* reads give zeroes, writes are forgotten */
};

/* Of an adapter that has a command queue for each processor, and then some. */
#define HDD_EMU_MAX_QUEUES 64

/* What configfs says of a disk besides struct hdd_params. */
struct hdd_emu_config {
	u64 size_sectors; /* 0: as many as the parameters say */
	u64 memory_limit_bytes;
	u32 logical_block_size;
	u32 physical_block_size;
	u32 discard;
	u32 hardware_queues;
	u32 backing; /* enum hdd_emu_backing */
};

struct hdd_emu {
	struct config_item item;
	struct hdd_params params;
	struct hdd_emu_config config;
	u64 fields_set; /* bit map by row of the table of parameters */
	u16 list_length[64]; /* by row, for those that are lists */

	/* Switching on and off, changing what is above. */
	struct mutex mutex;
	struct gendisk *gendisk; /* NULL when off */
	bool going; /* being switched off: may not be opened */
	struct blk_mq_tag_set tags;
	struct work_struct refill;

	/* All below, and the commands. Taken with bottom halves off. */
	spinlock_t lock;
	struct hdd_drive *drive;
	u64 base_ns; /* the kernel's clock at the model's time 0 */
	struct hrtimer timer;
	u64 armed_ns; /* model's time the timer is set to, U64_MAX for none */
	struct list_head in_model; /* commands that the model has */
	struct list_head held; /* ... that wait for their due_ns */
	struct list_head hung; /* ... that the block layer must time out */
	bool cut; /* no power: every command fails */
	bool write_cache;
	struct hdd_emu_store store;
	struct hdd_emu_faults bad_ranges;
	struct hdd_emu_faults delays;
};

#define hdd_emu_name(disk) ((disk)->item.ci_name)

/* With disk->mutex held. @why is one clause for the log when they fail. */
int hdd_emu_power_on(struct hdd_emu *disk, const char **why);
/* Not when open, unless @unplug: then as if it were torn out. */
int hdd_emu_power_off(struct hdd_emu *disk, bool unplug, const char **why);

/* A disk that is on: its supply fails, or is back. */
void hdd_emu_power_cut(struct hdd_emu *disk);
void hdd_emu_power_back(struct hdd_emu *disk);
u64 hdd_emu_volatile_sectors(struct hdd_emu *disk);

void hdd_emu_disk_init(struct hdd_emu *disk);

int hdd_emu_config_register(void);
void hdd_emu_config_unregister(void);

#endif
