// SPDX-License-Identifier: GPL-2.0-only
/*
 * The page cache between buffered processes and the block layer: which 4 KiB
 * pages of the disk are in memory, Linux's readahead, write-back.
 *
 * Readahead follows Linux's on-demand algorithm (mm/readahead.c, alike from
 * 2.6.23 to 6.x): a window that starts at four times the request and doubles
 * up to the limit, with a marked page that triggers the next window before
 * the reader runs dry. Write-back follows mm/page-writeback.c in outline: a
 * flusher starts above a tenth of the cache or for data older than 30 s, and
 * writers sleep above a fifth, or what dirty_pct says.
 *
 * Pages live in chunks of 64, with a bit for each page and property.
 */
#include "cache.h"

#include <string.h>

#define CHUNK_PAGES 64
/*
 * Where the pages of a file lie, ext2 and ext3 keep for the first 12 of them
 * in the inode, for each further 1024 in a block right before these.
 */
#define INODE_PAGES 12
#define MAPPED_PAGES 1024
#define HASH_SIZE (1 << 16)

#define DIRTY_BACKGROUND_PCT 10
#define DIRTY_EXPIRE_NS (30 * SS_SEC)
#define FLUSHER_PERIOD_NS (5 * SS_SEC)
/* Chunks looked at for one that can be dropped. */
#define EVICT_TRIES 64

struct chunk {
	u64 number; /* of its first page, divided by CHUNK_PAGES */
	u64 present;
	u64 ready; /* present, and read in or written */
	u64 marked; /* a reader that comes here asks for more */
	u64 dirty;
	u64 writing;
	u64 dirtied_ns; /* when the first of its dirty pages became so */
	struct chunk *hash_next;
	struct list_head lru;
	struct list_head dirty_node; /* while anything is dirty */
	struct list_head writing_node; /* while anything is being written */
};

struct waiter {
	u32 job;
	u64 page;
};

/* An fsync under way. */
struct sync {
	struct sim_cache *cache;
	struct sync *next;
	u32 job;
	u64 first_page, end_page;
	bool flushing;
};

struct sim_cache {
	struct sim_block *block;
	struct sim_array *array;
	const struct sim_config *config;
	struct sim_clock *clock;
	struct sim_cache_users users;
	struct chunk *hash[HASH_SIZE];
	struct list_head lru; /* oldest first */
	struct list_head dirty; /* oldest first */
	struct list_head writing;
	u64 nr_pages, max_pages; /* present */
	u64 nr_dirty; /* pages */
	u64 limit, background; /* pages */
	u32 nr_writing; /* bios */
	bool flusher_timed;
	struct waiter *waiter;
	u32 nr_waiters, waiters_size;
	u32 *throttled; /* jobs asleep because too much is dirty */
	u32 nr_throttled, throttled_size;
	struct sync *syncs;
};

struct sim_cache *sim_cache_new(struct sim_block *block,
				struct sim_array *array,
				const struct sim_cache_users *users)
{
	struct sim_cache *cache = sim_alloc(sizeof(*cache));
	u64 pages = block->config->cache_bytes / PAGE_BYTES;

	cache->block = block;
	cache->array = array;
	cache->config = block->config;
	cache->clock = block->clock;
	cache->users = *users;
	INIT_LIST_HEAD(&cache->lru);
	INIT_LIST_HEAD(&cache->dirty);
	INIT_LIST_HEAD(&cache->writing);
	cache->max_pages = pages + CHUNK_PAGES;
	cache->limit = pages * cache->config->dirty_pct / 100 + 1;
	cache->background = pages * DIRTY_BACKGROUND_PCT / 100 + 1;
	return cache;
}

void sim_cache_free(struct sim_cache *cache)
{
	u32 i;

	for (i = 0; i < HASH_SIZE; i++)
		while (cache->hash[i]) {
			struct chunk *chunk = cache->hash[i];

			cache->hash[i] = chunk->hash_next;
			free(chunk);
		}
	while (cache->syncs) {
		struct sync *sync = cache->syncs;

		cache->syncs = sync->next;
		free(sync);
	}
	free(cache->waiter);
	free(cache->throttled);
	free(cache);
}

/* ---- chunks ---- */

static struct chunk **bucket_of(struct sim_cache *cache, u64 number)
{
	return &cache->hash[(number * 0x9e3779b97f4a7c15ULL) >> 48];
}

static struct chunk *find(struct sim_cache *cache, u64 page)
{
	u64 number = page / CHUNK_PAGES;
	struct chunk *chunk = *bucket_of(cache, number);

	while (chunk && chunk->number != number)
		chunk = chunk->hash_next;
	return chunk;
}

static u64 bit_of(u64 page)
{
	return 1ULL << page % CHUNK_PAGES;
}

static bool is_present(struct sim_cache *cache, u64 page)
{
	struct chunk *chunk = find(cache, page);

	return chunk && (chunk->present & bit_of(page));
}

static void remove_chunk(struct sim_cache *cache, struct chunk *chunk)
{
	struct chunk **link = bucket_of(cache, chunk->number);

	while (*link != chunk)
		link = &(*link)->hash_next;
	*link = chunk->hash_next;
	list_del_init(&chunk->lru);
	cache->nr_pages -= (u64)__builtin_popcountll(chunk->present);
	free(chunk);
}

/*
 * Drop the least recently used chunk that nothing is going on in. False: none
 * was found.
 */
static bool evict(struct sim_cache *cache)
{
	struct chunk *chunk;
	u32 tries = EVICT_TRIES;

	list_for_each_entry(chunk, &cache->lru, lru) {
		if (!tries--)
			return false;
		if (chunk->dirty || chunk->writing ||
		    chunk->present != chunk->ready)
			continue;
		remove_chunk(cache, chunk);
		return true;
	}
	return false;
}

/* The bits of those pages of @chunk that are within a range. */
static u64 bits_within(const struct chunk *chunk, u64 first_page, u64 end_page)
{
	u64 begin = chunk->number * CHUNK_PAGES, bits = ~0ULL;

	if (end_page <= begin || first_page >= begin + CHUNK_PAGES)
		return 0;
	if (first_page > begin)
		bits <<= first_page - begin;
	if (end_page < begin + CHUNK_PAGES)
		bits &= bit_of(end_page) - 1;
	return bits;
}

void sim_cache_drop(struct sim_cache *cache, u64 first_page, u64 end_page)
{
	struct list_head *at = cache->lru.next, *next;

	for (; at != &cache->lru; at = next) {
		struct chunk *chunk = list_entry(at, struct chunk, lru);
		u64 clean = chunk->ready & ~chunk->dirty & ~chunk->writing;

		next = at->next;
		clean &= bits_within(chunk, first_page, end_page);
		if (!clean)
			continue;
		if (clean == chunk->present) {
			remove_chunk(cache, chunk);
			continue;
		}
		chunk->present &= ~clean;
		chunk->ready &= ~clean;
		chunk->marked &= ~clean;
		cache->nr_pages -= (u64)__builtin_popcountll(clean);
	}
}

static struct chunk *get(struct sim_cache *cache, u64 page)
{
	struct chunk *chunk = find(cache, page);
	struct chunk **bucket;

	if (chunk) {
		list_move_tail(&chunk->lru, &cache->lru);
		return chunk;
	}
	while (cache->nr_pages >= cache->max_pages && evict(cache))
		;
	chunk = sim_alloc(sizeof(*chunk));
	chunk->number = page / CHUNK_PAGES;
	bucket = bucket_of(cache, chunk->number);
	chunk->hash_next = *bucket;
	*bucket = chunk;
	list_add_tail(&chunk->lru, &cache->lru);
	INIT_LIST_HEAD(&chunk->dirty_node);
	INIT_LIST_HEAD(&chunk->writing_node);
	return chunk;
}

/* ---- reading ---- */

static void read_done(struct sim_bio *bio)
{
	struct sim_cache *cache = bio->context;
	u64 first = bio->sector / PAGE_SECTORS, page;
	u64 end = first + (bio->nr_sectors + PAGE_SECTORS - 1) / PAGE_SECTORS;
	u32 i = 0;

	for (page = first; page < end; page++) {
		struct chunk *chunk = find(cache, page);

		if (chunk)
			chunk->ready |= chunk->present & bit_of(page);
	}
	while (i < cache->nr_waiters) {
		struct waiter waiter = cache->waiter[i];

		if (waiter.page < first || waiter.page >= end) {
			i++;
			continue;
		}
		/* Those behind move up: who waited first is woken first. */
		memmove(&cache->waiter[i], &cache->waiter[i + 1],
			(--cache->nr_waiters - i) * sizeof(waiter));
		cache->users.wake(cache->users.context, waiter.job);
	}
}

static void send_read(struct sim_cache *cache, u32 job, u64 page, u64 nr)
{
	const struct sim_bio like = {
		.direction = SS_READ,
		.flags = SS_SYNC,
		.job = job,
		.wanted_ns = cache->clock->now_ns,
		.done = read_done,
		.context = cache,
	};

	sim_submit_range(cache->array, &like, page * PAGE_SECTORS,
			 nr * PAGE_SECTORS,
			 cache->config->max_request_sectors / PAGE_SECTORS *
				 PAGE_SECTORS);
}

/* Is @page one that says where others are? */
static bool is_map(const struct readahead *ra, u64 page)
{
	u64 at = page - ra->file_page;

	return ra->maps && at >= INODE_PAGES &&
	       (at - INODE_PAGES) % (MAPPED_PAGES + 1) == 0;
}

/*
 * Read in what is missing of @nr pages from @start; mark page @mark. Of those
 * behind a map that has yet to come nobody knows where they are: they remain
 * to be read.
 */
static void read_pages(struct sim_cache *cache, struct readahead *ra, u32 job,
		       u64 start, u64 nr, u64 mark, u64 end_page)
{
	u64 page, run = 0;

	if (start >= end_page)
		return;
	if (nr > end_page - start)
		nr = end_page - start;
	for (page = start; page < start + nr; page++) {
		struct chunk *chunk = get(cache, page);

		if (chunk->present & bit_of(page)) {
			send_read(cache, job, page - run, run);
			run = 0;
		} else {
			chunk->present |= bit_of(page);
			cache->nr_pages++;
			if (page == mark)
				chunk->marked |= bit_of(page);
			run++;
		}
		if (is_map(ra, page) && !(chunk->ready & bit_of(page))) {
			ra->rest = page + 1;
			ra->rest_pages = start + nr - ra->rest;
			ra->rest_mark = mark;
			page++;
			break;
		}
	}
	send_read(cache, job, page - run, run);
}

/*
 * The first window: enough for the request, four times a small one. (Up to
 * 2.6.10 it was half of the largest one: struct readahead has a field for it.)
 */
static u32 first_window(u32 wanted, u32 max)
{
	u32 size = 1;

	while (size < wanted)
		size *= 2;
	if (size <= max / 32)
		size *= 4;
	else if (size <= max / 4)
		size *= 2;
	return size < max ? size : max;
}

static u32 next_window(u32 size, u32 max)
{
	size *= size < max / 16 ? 4 : 2;
	return size < max ? size : max;
}

/* How many pages in a row before @page are present, at most @max. */
static u32 history(struct sim_cache *cache, u64 page, u32 max)
{
	u32 nr = 0;

	while (nr < max && page > nr && is_present(cache, page - 1 - nr))
		nr++;
	return nr;
}

/*
 * Choose the window for a reader at @page. True: it is in @ra. False: this is
 * a random read, of @wanted pages and no more.
 */
static bool choose_window(struct sim_cache *cache, struct readahead *ra,
			  u64 page, u32 wanted, u32 max, bool at_mark)
{
	u32 before;

	if (ra->size && (page == ra->start + ra->size - ra->async_size ||
			 page == ra->start + ra->size)) {
		/* As expected: go on. */
		ra->start += ra->size;
		ra->size = next_window(ra->size, max);
		ra->async_size = ra->size;
		return true;
	}
	if (at_mark) {
		/* A mark that another reader left: find where it ends. */
		u64 start = page + 1;

		while (start - page <= max && is_present(cache, start))
			start++;
		if (start - page > max)
			return false;
		ra->start = start;
		ra->size = next_window((u32)(start - page) + wanted, max);
		ra->async_size = ra->size;
		return true;
	}
	if (wanted > max || ra->previous == U64_MAX ||
	    page - ra->previous <= 1) {
		ra->start = page;
		ra->size = ra->first ? min_t(u32, ra->first, max) :
				       first_window(wanted, max);
		ra->async_size = ra->size > wanted ? ra->size - wanted :
						     ra->size;
		return true;
	}
	before = history(cache, page, max);
	if (before <= wanted)
		return false;
	ra->start = page;
	ra->size = before + wanted < max ? before + wanted : max;
	ra->async_size = 1;
	return true;
}

static void readahead(struct sim_cache *cache, struct readahead *ra, u32 job,
		      u64 page, u32 wanted, u64 end_page, bool at_mark)
{
	u32 max = ra->max;

	if (!max || !choose_window(cache, ra, page, wanted < max ? wanted : max,
				   max, at_mark)) {
		if (!at_mark)
			read_pages(cache, ra, job, page, wanted, U64_MAX,
				   end_page);
		return;
	}
	/* The mark would be hit at once: take the next window along. */
	if (page == ra->start && ra->size == ra->async_size) {
		u32 more = next_window(ra->size, max);

		if (ra->size + more <= max) {
			ra->async_size = more;
			ra->size += more;
		} else {
			ra->size = max;
			ra->async_size = max / 2;
		}
	}
	read_pages(cache, ra, job, ra->start, ra->size,
		   ra->start + ra->size - ra->async_size, end_page);
}

static void wait_for(struct sim_cache *cache, u32 job, u64 page)
{
	cache->waiter = sim_room(cache->waiter, cache->nr_waiters,
				 &cache->waiters_size, sizeof(*cache->waiter));
	cache->waiter[cache->nr_waiters++] = (struct waiter){ job, page };
}

/*
 * What a map has kept from being read; it is read as far as the next one.
 * False: that has yet to come, and its reader waits.
 */
static bool read_rest(struct sim_cache *cache, struct readahead *ra, u32 job)
{
	while (ra->rest_pages) {
		const struct chunk *chunk = find(cache, ra->rest - 1);
		u64 nr = ra->rest_pages;

		if (chunk &&
		    (chunk->present & ~chunk->ready & bit_of(ra->rest - 1))) {
			wait_for(cache, job, ra->rest - 1);
			return false;
		}
		ra->rest_pages = 0;
		read_pages(cache, ra, job, ra->rest, nr, ra->rest_mark,
			   U64_MAX);
	}
	return true;
}

enum cache_answer sim_cache_read(struct sim_cache *cache, struct readahead *ra,
				 u32 job, u64 page, u32 wanted, u64 end_page,
				 bool may_send)
{
	struct chunk *chunk;
	u64 bit = bit_of(page);

	if (ra->rest_pages && !may_send)
		return CACHE_SENDS;
	if (!read_rest(cache, ra, job))
		return CACHE_BLOCKED;
	chunk = find(cache, page);

	if (!chunk || !(chunk->present & bit)) {
		if (!may_send)
			return CACHE_SENDS;
		readahead(cache, ra, job, page, wanted, end_page, false);
		if (!read_rest(cache, ra, job))
			return CACHE_BLOCKED;
		if (!is_present(cache, page))
			read_pages(cache, ra, job, page, 1, U64_MAX, end_page);
	} else {
		bool ready = chunk->ready & bit;

		if (chunk->marked & bit) {
			if (!may_send)
				return CACHE_SENDS;
			chunk->marked &= ~bit;
			/* What it reads may take the place of this chunk. */
			readahead(cache, ra, job, page, wanted, end_page, true);
			if (!read_rest(cache, ra, job))
				return CACHE_BLOCKED;
		}
		if (ready) {
			ra->previous = page;
			return CACHE_READY;
		}
	}
	if (!may_send)
		return CACHE_SENDS;
	wait_for(cache, job, page);
	return CACHE_BLOCKED;
}

/* ---- writing ---- */

static void flusher(struct sim_cache *cache);
static void check_syncs(struct sim_cache *cache);

static void write_done(struct sim_bio *bio)
{
	struct sim_cache *cache = bio->context;
	u64 page = bio->sector / PAGE_SECTORS;
	u64 end = page + bio->nr_sectors / PAGE_SECTORS;

	for (; page < end; page++) {
		struct chunk *chunk = find(cache, page);

		if (!chunk)
			continue;
		chunk->writing &= ~bit_of(page);
		if (!chunk->writing)
			list_del_init(&chunk->writing_node);
	}
	cache->nr_writing--;
	while (cache->nr_throttled && cache->nr_dirty < cache->limit) {
		u32 job = cache->throttled[0];

		memmove(cache->throttled, cache->throttled + 1,
			--cache->nr_throttled * sizeof(u32));
		cache->users.wake(cache->users.context, job);
	}
	check_syncs(cache);
	flusher(cache);
}

static u32 flusher_number(const struct sim_cache *cache)
{
	return cache->users.flusher(cache->users.context);
}

/* Send the dirty pages of @chunk, run by run. */
static void write_chunk(struct sim_cache *cache, struct chunk *chunk, u32 job,
			u8 flags)
{
	u64 dirty = chunk->dirty & ~chunk->writing;
	u32 max = cache->config->max_request_sectors / PAGE_SECTORS;

	if (!max)
		max = 1;
	chunk->dirty &= ~dirty;
	chunk->writing |= dirty;
	if (dirty)
		list_move_tail(&chunk->writing_node, &cache->writing);
	cache->nr_dirty -= (u64)__builtin_popcountll(dirty);
	if (!chunk->dirty)
		list_del_init(&chunk->dirty_node);
	while (dirty) {
		u32 first = (u32)__builtin_ctzll(dirty), nr = 0;
		struct sim_bio *bio = sim_bio_new(cache->block);

		while (first + nr < CHUNK_PAGES && nr < max &&
		       (dirty >> (first + nr) & 1)) {
			dirty &= ~(1ULL << (first + nr));
			nr++;
		}
		bio->sector = (chunk->number * CHUNK_PAGES + first) *
			      PAGE_SECTORS;
		bio->nr_sectors = nr * PAGE_SECTORS;
		bio->direction = SS_WRITE;
		bio->flags = flags;
		bio->job = job;
		bio->wanted_ns = cache->clock->now_ns;
		bio->done = write_done;
		bio->context = cache;
		cache->nr_writing++;
		sim_submit(cache->array, bio);
	}
}

/* Write back while too much is dirty, or it is too old. */
static void flusher(struct sim_cache *cache)
{
	while (!list_empty(&cache->dirty) &&
	       cache->nr_writing < cache->config->nr_requests) {
		struct chunk *chunk = list_first_entry(&cache->dirty,
						       struct chunk,
						       dirty_node);

		if (cache->nr_dirty <= cache->background &&
		    cache->clock->now_ns < chunk->dirtied_ns + DIRTY_EXPIRE_NS)
			break;
		if (!(chunk->dirty & ~chunk->writing))
			break;
		write_chunk(cache, chunk, flusher_number(cache), 0);
	}
}

static void flusher_tick(void *context);

static void time_flusher(struct sim_cache *cache)
{
	cache->flusher_timed = true;
	sim_timer(cache->clock, cache->clock->now_ns + FLUSHER_PERIOD_NS,
		  flusher_tick, cache);
}

static void flusher_tick(void *context)
{
	struct sim_cache *cache = context;

	cache->flusher_timed = false;
	flusher(cache);
	if (!list_empty(&cache->dirty))
		time_flusher(cache);
}

bool sim_cache_write(struct sim_cache *cache, u32 job, u64 page)
{
	struct chunk *chunk;
	u64 bit = bit_of(page);

	if (cache->nr_dirty >= cache->limit) {
		cache->throttled = sim_room(cache->throttled,
					    cache->nr_throttled,
					    &cache->throttled_size,
					    sizeof(u32));
		cache->throttled[cache->nr_throttled++] = job;
		flusher(cache);
		return false;
	}
	chunk = get(cache, page);
	cache->nr_pages += !(chunk->present & bit);
	chunk->present |= bit;
	chunk->ready |= bit;
	if (chunk->dirty & bit)
		return true;
	if (!chunk->dirty) {
		chunk->dirtied_ns = cache->clock->now_ns;
		list_add_tail(&chunk->dirty_node, &cache->dirty);
	}
	chunk->dirty |= bit;
	cache->nr_dirty++;
	if (cache->nr_dirty > cache->background)
		flusher(cache);
	if (!cache->flusher_timed)
		time_flusher(cache);
	return true;
}

/* ---- fsync: all of a range on the medium, then the disk's cache empty ---- */

static void flush_done(struct sim_bio *bio)
{
	struct sync *sync = bio->context, **link = &sync->cache->syncs;
	const struct sim_cache_users *users = &sync->cache->users;

	while (*link != sync)
		link = &(*link)->next;
	*link = sync->next;
	users->synced(users->context, sync->job);
	free(sync);
}

static bool is_writing(struct sim_cache *cache, const struct sync *sync)
{
	const struct chunk *chunk;

	list_for_each_entry(chunk, &cache->writing, writing_node)
		if (chunk->number >= sync->first_page / CHUNK_PAGES &&
		    chunk->number * CHUNK_PAGES < sync->end_page)
			return true;
	return false;
}

/* Those whose pages are all written go on to flush the disk. */
static void check_syncs(struct sim_cache *cache)
{
	struct sync *sync;

	for (sync = cache->syncs; sync; sync = sync->next) {
		struct sim_bio *bio;

		if (sync->flushing || is_writing(cache, sync))
			continue;
		sync->flushing = true;
		bio = sim_bio_new(cache->block);
		bio->flush = true;
		bio->job = sync->job;
		bio->done = flush_done;
		bio->context = sync;
		sim_submit(cache->array, bio);
	}
}

void sim_cache_sync(struct sim_cache *cache, u32 job, u64 first_page,
		    u64 end_page, u8 flags)
{
	struct sync *sync = sim_alloc(sizeof(*sync));
	struct list_head *at = cache->dirty.next, *next;

	sync->cache = cache;
	sync->next = cache->syncs;
	sync->job = job;
	sync->first_page = first_page;
	sync->end_page = end_page;
	cache->syncs = sync;
	for (; at != &cache->dirty; at = next) {
		struct chunk *chunk = list_entry(at, struct chunk, dirty_node);

		next = at->next;
		if (chunk->number >= first_page / CHUNK_PAGES &&
		    chunk->number * CHUNK_PAGES < end_page)
			write_chunk(cache, chunk,
				    flags & SS_SYNC ? job :
						      flusher_number(cache),
				    flags);
	}
	check_syncs(cache);
}
