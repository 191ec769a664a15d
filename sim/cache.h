/* SPDX-License-Identifier: GPL-2.0-only */
/* The page cache: what is read and written through it, and by whom. */
#ifndef SIM_CACHE_H
#define SIM_CACHE_H

#include "array.h"

/* A reader's readahead window, in pages (Linux struct file_ra_state). */
struct readahead {
	u64 start;
	u32 size;
	u32 async_size;
	u64 previous; /* last page read, U64_MAX: none */
	u32 max; /* the largest window, 0: no readahead */
	u32 first; /* the first window, 0: by what is asked for */
	bool maps; /* blocks between the data say where these are */
	u64 file_page; /* where the file begins */
	u64 rest; /* what remains to be read when a map has come, ... */
	u64 rest_pages; /* ... so many; 0: nothing */
	u64 rest_mark;
};

enum cache_answer {
	CACHE_READY, /* the page is there */
	CACHE_BLOCKED, /* wait: wake() will be called */
	CACHE_SENDS, /* I/O would be sent: ask again with @may_send */
};

/* Those who use it, by the numbers of their jobs. */
struct sim_cache_users {
	void *context;
	/* What @job waited for is there, or no longer too much is dirty. */
	void (*wake)(void *context, u32 job);
	/* What @job wanted to be on the disk is there. */
	void (*synced)(void *context, u32 job);
	/* The flusher's number, which is no job's. */
	u32 (*flusher)(void *context);
};

struct sim_cache;

struct sim_cache *sim_cache_new(struct sim_block *block,
				struct sim_array *array,
				const struct sim_cache_users *users);
void sim_cache_free(struct sim_cache *cache);
/*
 * Read @page for @job, whose region ends before @end_page and whose system
 * call wants @wanted pages from here.
 */
enum cache_answer sim_cache_read(struct sim_cache *cache, struct readahead *ra,
				 u32 job, u64 page, u32 wanted, u64 end_page,
				 bool may_send);
/* Dirty @page; false: too much is dirty, wait until wake() is called. */
bool sim_cache_write(struct sim_cache *cache, u32 job, u64 page);
/* The pages of a range that are read in and clean leave the cache. */
void sim_cache_drop(struct sim_cache *cache, u64 first_page, u64 end_page);
/*
 * Write out [first, end); synced() is called when all is on the disk. With
 * SS_SYNC in @flags the writes are waited for by @job (fsync), without they
 * are nobody's (sync).
 */
void sim_cache_sync(struct sim_cache *cache, u32 job, u64 first_page,
		    u64 end_page, u8 flags);

#endif
