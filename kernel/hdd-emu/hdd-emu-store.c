// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is on the disk, in memory that exists only for blocks written to.
 *
 * A block has up to two contents: the medium's and, for the sectors in its
 * bit map, that of the drive's write cache, which a read sees and a failure of
 * power loses. Which data is in the write cache is the model's affair, and it
 * keeps account of places only; so this file follows it. A write that the
 * model caches goes to the cache here. It goes on to the medium when
 *
 * - a flush completes: then all of it,
 * - the model no longer holds any sector of its block, and what its mechanism
 *   had begun when that was noticed has ended: until then it may be on its way.
 *
 * Where that is not known for sure, data counts as not being on the medium:
 * whoever did not flush may lose it. Nothing that was flushed, or written with
 * FUA, is ever in the cache alone.
 *
 * All memory for a write is there before the drive takes it; neither a flush
 * nor a failing supply has to allocate. Everything but setting up and freeing
 * is called under the disk's lock.
 */
#include "hdd-emu.h"

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#define BLOCK_MASK ((u8)((1U << HDD_EMU_BLOCK_SECTORS) - 1))

/* A flat disk's model has no write cache of its own: 64 MiB of it. */
#define FLAT_CACHE_BLOCKS 16384

struct hdd_emu_block {
	struct list_head node; /* in store->cached or ->leaving */
	u64 index;
	void *medium; /* NULL: zeroes */
	void *cache;
	u32 users; /* writes on their way, which rely on its memory */
	u8 cached; /* sectors whose content is in cache, by bits */
	bool leaving;
};

/* The part of a range that lies in one block. */
struct piece {
	u64 index;
	u32 first; /* sector within the block */
	u32 nr;
};

static struct piece first_piece(u64 sector, u64 nr)
{
	struct piece piece = {
		.index = sector / HDD_EMU_BLOCK_SECTORS,
		.first = (u32)(sector % HDD_EMU_BLOCK_SECTORS),
	};

	piece.nr = (u32)min_t(u64, nr, HDD_EMU_BLOCK_SECTORS - piece.first);
	return piece;
}

static u8 piece_mask(const struct piece *piece)
{
	return (u8)(((1U << piece->nr) - 1) << piece->first);
}

/* Memory. */

static void *block_memory(struct hdd_emu_store *store, bool zero)
{
	void *memory = kmalloc(HDD_EMU_BLOCK_BYTES, GFP_NOWAIT | __GFP_NOWARN);

	if (!memory && store->reserve) {
		memory = store->reserve;
		store->reserve = *(void **)memory;
		store->nr_reserve--;
	}
	if (memory && zero)
		memset(memory, 0, HDD_EMU_BLOCK_BYTES);
	return memory;
}

void *hdd_emu_reserve_alloc(u32 nr, u32 *nr_got)
{
	void *list = NULL;

	for (*nr_got = 0; *nr_got < nr; ++*nr_got) {
		void *memory = kmalloc(HDD_EMU_BLOCK_BYTES,
				       GFP_NOIO | __GFP_RETRY_MAYFAIL |
					       __GFP_NOWARN);

		if (!memory)
			break;
		*(void **)memory = list;
		list = memory;
	}
	return list;
}

void hdd_emu_reserve_add(struct hdd_emu_store *store, void *list, u32 nr)
{
	void **last = &store->reserve;

	while (*last)
		last = *last;
	*last = list;
	store->nr_reserve += nr;
}

void hdd_emu_reserve_free(struct hdd_emu_store *store)
{
	while (store->reserve) {
		void *memory = store->reserve;

		store->reserve = *(void **)memory;
		kfree(memory);
	}
	store->nr_reserve = 0;
}

void hdd_emu_store_init(struct hdd_emu_store *store)
{
	xa_init_flags(&store->blocks, XA_FLAGS_LOCK_BH);
	INIT_LIST_HEAD(&store->cached);
	INIT_LIST_HEAD(&store->leaving);
	store->margin_pages = totalram_pages() / 16;
}

void hdd_emu_store_free(struct hdd_emu_store *store)
{
	struct hdd_emu_block *block;
	unsigned long index;

	xa_for_each(&store->blocks, index, block) {
		kfree(block->medium);
		kfree(block->cache);
		kfree(block);
	}
	xa_destroy(&store->blocks);
	INIT_LIST_HEAD(&store->cached);
	INIT_LIST_HEAD(&store->leaving);
	store->nr_blocks = 0;
	store->nr_cache = 0;
	store->nr_cached = 0;
}

/* One block. */

/* Its write cache is not needed unless a write relies on the memory. */
static void block_trim(struct hdd_emu_store *store, struct hdd_emu_block *block)
{
	if (block->cached || block->users || !block->cache)
		return;
	kfree(block->cache);
	block->cache = NULL;
	store->nr_cache--;
}

/* No sector of it is in the write cache any more. */
static void block_uncache(struct hdd_emu_store *store,
			  struct hdd_emu_block *block)
{
	block->cached = 0;
	block->leaving = false;
	list_del_init(&block->node);
	store->nr_cached--;
	block_trim(store, block);
}

/* What the write cache has of it is on the medium now. */
static void block_settle(struct hdd_emu_store *store,
			 struct hdd_emu_block *block)
{
	u32 i;

	if (block->cached == BLOCK_MASK) {
		swap(block->medium, block->cache);
	} else {
		for (i = 0; i < HDD_EMU_BLOCK_SECTORS; i++)
			if (block->cached & (1U << i))
				memcpy(block->medium + i * SECTOR_SIZE,
				       block->cache + i * SECTOR_SIZE,
				       SECTOR_SIZE);
	}
	block_uncache(store, block);
}

/* May the model's write cache hold a sector of it at @now_ns? */
static bool block_dirty(const struct hdd_emu_block *block,
			const struct hdd_drive *drive, u64 now_ns)
{
	return hdd_drive_volatile(drive, block->index * HDD_EMU_BLOCK_SECTORS,
				  HDD_EMU_BLOCK_SECTORS, now_ns);
}

/* Is what the write cache has of it on the medium at @now_ns, for certain? */
static bool block_settled(const struct hdd_emu_store *store,
			  const struct hdd_emu_block *block,
			  const struct hdd_drive *drive, u64 now_ns)
{
	if (block->leaving)
		return now_ns >= store->leaving_ns;
	return !block_dirty(block, drive, now_ns);
}

/* A write on its way. */

static int block_prepare(struct hdd_emu_store *store, u64 index, bool cached)
{
	struct hdd_emu_block *block = xa_load(&store->blocks, index);
	int err;

	if (!block) {
		block = kzalloc(sizeof(*block), GFP_ATOMIC | __GFP_NOWARN);
		if (!block)
			return -ENOMEM;
		INIT_LIST_HEAD(&block->node);
		block->index = index;
		err = xa_err(xa_store(&store->blocks, index, block,
				      GFP_ATOMIC | __GFP_NOWARN));
		if (err) {
			kfree(block);
			return err;
		}
	}
	if (!block->medium) {
		if (store->nr_blocks >= store->max_blocks)
			return -ENOSPC;
		if (si_mem_available() < (long)store->margin_pages)
			return -ENOBUFS;
		block->medium = block_memory(store, true);
		if (!block->medium)
			return -ENOMEM;
		store->nr_blocks++;
	}
	if (cached && !block->cache) {
		block->cache = block_memory(store, false);
		if (!block->cache)
			return -ENOMEM;
		store->nr_cache++;
	}
	block->users++;
	return 0;
}

void hdd_emu_store_done(struct hdd_emu_store *store, u64 sector, u32 nr)
{
	struct hdd_emu_block *block;
	struct piece piece;

	for (; nr; sector += piece.nr, nr -= piece.nr) {
		piece = first_piece(sector, nr);
		block = xa_load(&store->blocks, piece.index);
		block->users--;
		block_trim(store, block);
	}
}

int hdd_emu_store_prepare(struct hdd_emu_store *store, u64 sector, u32 nr,
			  bool cached)
{
	struct piece piece;
	u32 ready = 0;
	int err;

	while (ready < nr) {
		piece = first_piece(sector + ready, nr - ready);
		err = block_prepare(store, piece.index, cached);
		if (err) {
			hdd_emu_store_done(store, sector, ready);
			return err;
		}
		ready += piece.nr;
	}
	return 0;
}

static void block_write(struct hdd_emu_store *store,
			struct hdd_emu_block *block, const struct piece *piece,
			const void *from, bool cached)
{
	u8 mask = piece_mask(piece);

	memcpy((cached ? block->cache : block->medium) +
		       piece->first * SECTOR_SIZE,
	       from, piece->nr * SECTOR_SIZE);
	if (cached) {
		if (!block->cached)
			store->nr_cached++;
		block->cached |= mask;
		block->leaving = false;
		list_move_tail(&block->node, &store->cached);
	} else if (block->cached) {
		block->cached &= ~mask;
		if (!block->cached)
			block_uncache(store, block);
	}
}

void hdd_emu_store_write(struct hdd_emu_store *store, u64 sector,
			 const void *from, u32 nr, bool cached, u64 now_ns)
{
	struct hdd_emu_block *block;
	struct piece piece;

	for (; nr; sector += piece.nr, nr -= piece.nr) {
		piece = first_piece(sector, nr);
		block = xa_load(&store->blocks, piece.index);
		/* What has left by now is not to be lost with what comes. */
		if (block->leaving && now_ns >= store->leaving_ns)
			block_settle(store, block);
		block_write(store, block, &piece, from, cached);
		from += piece.nr * SECTOR_SIZE;
	}
}

static void block_read(const struct hdd_emu_block *block,
		       const struct piece *piece, void *to)
{
	u8 mask = piece_mask(piece);
	u32 i, at = piece->first * SECTOR_SIZE;

	if (!block || !block->medium) {
		memset(to, 0, piece->nr * SECTOR_SIZE);
	} else if (!(block->cached & mask)) {
		memcpy(to, block->medium + at, piece->nr * SECTOR_SIZE);
	} else if ((block->cached & mask) == mask) {
		memcpy(to, block->cache + at, piece->nr * SECTOR_SIZE);
	} else {
		for (i = 0; i < piece->nr; i++) {
			bool cached = block->cached &
				      (1U << (piece->first + i));

			memcpy(to + i * SECTOR_SIZE,
			       (cached ? block->cache : block->medium) + at +
				       i * SECTOR_SIZE,
			       SECTOR_SIZE);
		}
	}
}

void hdd_emu_store_read(struct hdd_emu_store *store, u64 sector, void *to,
			u32 nr)
{
	struct piece piece;

	for (; nr; sector += piece.nr, nr -= piece.nr) {
		piece = first_piece(sector, nr);
		block_read(xa_load(&store->blocks, piece.index), &piece, to);
		to += piece.nr * SECTOR_SIZE;
	}
}

static void block_zero(struct hdd_emu_store *store, struct hdd_emu_block *block,
		       u32 first, u32 nr)
{
	struct piece piece = { .first = first, .nr = nr };

	if (block->cached) {
		block->cached &= ~piece_mask(&piece);
		if (!block->cached)
			block_uncache(store, block);
	}
	if (nr == HDD_EMU_BLOCK_SECTORS && !block->users) {
		if (block->medium)
			store->nr_blocks--;
		xa_erase(&store->blocks, block->index);
		kfree(block->medium);
		kfree(block);
	} else if (block->medium) {
		memset(block->medium + first * SECTOR_SIZE, 0,
		       nr * SECTOR_SIZE);
	}
}

void hdd_emu_store_zero(struct hdd_emu_store *store, u64 sector, u64 nr)
{
	u64 end = sector + nr;
	struct hdd_emu_block *block;
	unsigned long index;

	/* Only blocks that exist, however large the range. */
	xa_for_each_range(&store->blocks, index, block,
			  sector / HDD_EMU_BLOCK_SECTORS,
			  (end - 1) / HDD_EMU_BLOCK_SECTORS) {
		u64 first = (u64)index * HDD_EMU_BLOCK_SECTORS;
		u64 from = max(sector, first);
		u64 to = min(end, first + HDD_EMU_BLOCK_SECTORS);

		block_zero(store, block, (u32)(from - first), (u32)(to - from));
	}
}

/* From the write cache to the medium. */

void hdd_emu_store_sync(struct hdd_emu_store *store)
{
	struct hdd_emu_block *block, *next;

	list_splice_init(&store->leaving, &store->cached);
	list_for_each_entry_safe(block, next, &store->cached, node)
		block_settle(store, block);
}

void hdd_emu_store_drain(struct hdd_emu_store *store,
			 const struct hdd_drive *drive, u64 now_ns)
{
	struct hdd_emu_block *block, *next;
	u64 held, sectors;
	u32 extents;

	if (!store->nr_cached)
		return;
	if (drive->params.kind == HDD_KIND_FLAT) {
		if (store->nr_cached > FLAT_CACHE_BLOCKS)
			hdd_emu_store_sync(store);
		return;
	}
	/* Worth the walk only when a fifth or more has gone. */
	hdd_drive_dirty(drive, &sectors, &extents);
	held = sectors / HDD_EMU_BLOCK_SECTORS + 2 * extents;
	if (store->nr_cached <= held + held / 4 + 256)
		return;
	if (!list_empty(&store->leaving) && now_ns < store->leaving_ns)
		return;
	list_for_each_entry_safe(block, next, &store->leaving, node)
		block_settle(store, block);
	list_for_each_entry_safe(block, next, &store->cached, node) {
		if (block_dirty(block, drive, U64_MAX))
			continue;
		block->leaving = true;
		list_move_tail(&block->node, &store->leaving);
	}
	store->leaving_ns = hdd_drive_free_ns(drive);
}

void hdd_emu_store_settle(struct hdd_emu_store *store,
			  const struct hdd_drive *drive, u64 sector, u32 nr,
			  u64 now_ns)
{
	struct hdd_emu_block *block;
	struct piece piece;

	if (!store->nr_cached)
		return;
	for (; nr; sector += piece.nr, nr -= piece.nr) {
		piece = first_piece(sector, nr);
		block = xa_load(&store->blocks, piece.index);
		if (block && block->cached &&
		    block_settled(store, block, drive, now_ns))
			block_settle(store, block);
	}
}

u64 hdd_emu_store_volatile(struct hdd_emu_store *store,
			   const struct hdd_drive *drive, u64 now_ns)
{
	struct hdd_emu_block *block;
	u64 nr = 0;

	list_for_each_entry(block, &store->cached, node)
		if (!block_settled(store, block, drive, now_ns))
			nr += hweight8(block->cached);
	list_for_each_entry(block, &store->leaving, node)
		if (!block_settled(store, block, drive, now_ns))
			nr += hweight8(block->cached);
	return nr;
}

void hdd_emu_store_cut(struct hdd_emu_store *store,
		       const struct hdd_drive *drive, u64 now_ns)
{
	struct hdd_emu_block *block, *next;

	list_splice_init(&store->leaving, &store->cached);
	list_for_each_entry_safe(block, next, &store->cached, node) {
		if (block_settled(store, block, drive, now_ns))
			block_settle(store, block);
		else
			block_uncache(store, block);
	}
}
