// SPDX-License-Identifier: GPL-2.0-only
/*
 * A FUSE file system that loses unsynced data at a power cut, as a disk's
 * write cache does. It shows the regular files of one folder; their sizes
 * cannot change.
 *
 *	forgetful FOLDER MOUNTPOINT SEED DELAY_US
 *
 * Every change is volatile until fsync(), fdatasync() or a write with O_DSYNC,
 * O_SYNC or RWF_DSYNC has made it durable. SIGUSR1 is the power cut: of the
 * volatile changes a random part, or all, is lost, by whole changes or by
 * sectors; the rest is written to FOLDER, and the process ends with everything
 * that is still under way unanswered. SIGTERM unmounts and loses nothing.
 *
 * Each write and each sync takes up to DELAY_US longer than it would, before
 * and after it has an effect, so that others come meanwhile. A sync covers
 * what was written before the sync began, and nothing that came later.
 *
 * The kernel's page cache is not in the way: every write reaches this process
 * before it returns, and as a whole (direct_io). Through the page cache a write
 * comes in two parts, cut at any byte, where a page of its buffer is not in
 * memory at that moment; a disk never loses a part of a sector.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 34
#include <fuse3/fuse_lowlevel.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILES 64
#define SECTOR 512

struct change {
	uint64_t number;
	off_t offset;
	size_t bytes;
	char *data; /* NULL: zeros */
	bool durable;
	struct change *next;
};

struct file {
	char name[256];
	int fd;
	size_t bytes;
	char *now; /* what reads get */
	char *durable; /* @now without the changes in the list */
	struct change *first, *last;
};

static struct file files[MAX_FILES];
static unsigned int nr_files;
static uint64_t nr_changes;
static unsigned int delay_us;
static unsigned int seed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned int below(unsigned int limit)
{
	return limit ? (unsigned int)rand_r(&seed) % limit : 0;
}

/* Called without the lock. */
static void dawdle(void)
{
	unsigned int us;

	pthread_mutex_lock(&lock);
	us = below(delay_us);
	pthread_mutex_unlock(&lock);
	if (us)
		usleep(us);
}

static struct file *file_of(fuse_ino_t ino)
{
	return &files[ino - FUSE_ROOT_ID - 1];
}

/* ---- changes, under the lock ---- */

static void apply(char *memory, const struct change *change)
{
	if (change->data)
		memcpy(memory + change->offset, change->data, change->bytes);
	else
		memset(memory + change->offset, 0, change->bytes);
}

static struct change *add(struct file *file, off_t offset, size_t bytes,
			  const char *data)
{
	struct change *change = calloc(1, sizeof(*change));

	if (!change || (data && !(change->data = malloc(bytes))))
		abort();
	change->number = ++nr_changes;
	change->offset = offset;
	change->bytes = bytes;
	if (data)
		memcpy(change->data, data, bytes);
	apply(file->now, change);
	if (file->first)
		file->last->next = change;
	else
		file->first = change;
	file->last = change;
	return change;
}

/* Make durable what came no later than change @number. */
static void settle(struct file *file, uint64_t number)
{
	struct change *change;

	while ((change = file->first) && change->number <= number) {
		file->first = change->next;
		apply(file->durable, change);
		free(change->data);
		free(change);
	}
}

/* ---- the end ---- */

static void store(const struct file *file, const char *memory)
{
	if (pwrite(file->fd, memory, file->bytes, 0) != (ssize_t)file->bytes)
		abort();
}

/* Some sectors of a change that is not durable. */
static void tear(struct file *file, const struct change *change)
{
	struct change part = *change;
	size_t done;

	for (done = 0; done < change->bytes; done += SECTOR) {
		part.offset = change->offset + (off_t)done;
		part.data = change->data ? change->data + done : NULL;
		part.bytes = change->bytes - done;
		if (part.bytes > SECTOR)
			part.bytes = SECTOR;
		if (below(2))
			apply(file->durable, &part);
	}
}

static void cut_power(void)
{
	unsigned int how = below(3), i;
	const struct change *change;

	for (i = 0; i < nr_files; i++) {
		for (change = files[i].first; change; change = change->next) {
			if (change->durable || (how == 1 && below(2)))
				apply(files[i].durable, change);
			else if (how == 2)
				tear(&files[i], change);
		}
		store(&files[i], files[i].durable);
	}
}

static void *await_cut(void *data)
{
	int number;

	sigwait(data, &number);
	pthread_mutex_lock(&lock);
	cut_power();
	_exit(0);
}

/* ---- what the kernel asks ---- */

static void fill(fuse_ino_t ino, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = ino;
	st->st_uid = getuid();
	st->st_gid = getgid();
	if (ino == FUSE_ROOT_ID) {
		st->st_mode = S_IFDIR | 0700;
		st->st_nlink = 2;
		return;
	}
	st->st_mode = S_IFREG | 0600;
	st->st_nlink = 1;
	st->st_size = (off_t)file_of(ino)->bytes;
	st->st_blocks = st->st_size / SECTOR;
	st->st_blksize = 4096;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = { .attr_timeout = 60,
					  .entry_timeout = 60 };
	unsigned int i;

	(void)parent;
	for (i = 0; i < nr_files; i++)
		if (!strcmp(files[i].name, name)) {
			entry.ino = FUSE_ROOT_ID + 1 + i;
			fill(entry.ino, &entry.attr);
			fuse_reply_entry(req, &entry);
			return;
		}
	fuse_reply_err(req, ENOENT);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *info)
{
	struct stat st;

	(void)info;
	fill(ino, &st);
	fuse_reply_attr(req, &st, 60);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
	if (ino == FUSE_ROOT_ID)
		fuse_reply_err(req, EISDIR);
	else if (info->flags & O_TRUNC)
		fuse_reply_err(req, EPERM);
	else {
		info->direct_io = 1;
		fuse_reply_open(req, info);
	}
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t bytes, off_t offset,
		    struct fuse_file_info *info)
{
	const struct file *file = file_of(ino);
	char *copy = malloc(bytes + 1);

	(void)info;
	if (!copy)
		abort();
	if ((size_t)offset > file->bytes)
		bytes = 0;
	else if (bytes > file->bytes - (size_t)offset)
		bytes = file->bytes - (size_t)offset;
	pthread_mutex_lock(&lock);
	memcpy(copy, file->now + offset, bytes);
	pthread_mutex_unlock(&lock);
	fuse_reply_buf(req, copy, bytes);
	free(copy);
}

/* Whether the bytes are in the file; replies when not. */
static bool inside(fuse_req_t req, const struct file *file, off_t offset,
		   off_t bytes)
{
	if (offset >= 0 && bytes >= 0 && (size_t)offset <= file->bytes &&
	    (size_t)bytes <= file->bytes - (size_t)offset)
		return true;
	fuse_reply_err(req, ENOSPC);
	return false;
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *data,
		     size_t bytes, off_t offset, struct fuse_file_info *info)
{
	struct file *file = file_of(ino);
	struct change *change;

	if (!inside(req, file, offset, (off_t)bytes))
		return;
	dawdle();
	pthread_mutex_lock(&lock);
	change = add(file, offset, bytes, data);
	pthread_mutex_unlock(&lock);
	/*
	 * The kernel tells of RWF_DSYNC as of O_DSYNC here, also where no
	 * FUSE_FSYNC follows.
	 */
	if (info->flags & O_DSYNC) {
		uint64_t number = change->number;

		dawdle();
		pthread_mutex_lock(&lock);
		/* Unless a sync of all came first, and freed it. */
		for (change = file->first; change; change = change->next)
			if (change->number == number)
				change->durable = true;
		pthread_mutex_unlock(&lock);
	}
	dawdle();
	fuse_reply_write(req, bytes);
}

static void do_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
			 off_t bytes, struct fuse_file_info *info)
{
	struct file *file = file_of(ino);

	(void)info;
	if (mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) &&
	    mode != (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE)) {
		fuse_reply_err(req, EOPNOTSUPP);
		return;
	}
	if (!inside(req, file, offset, bytes))
		return;
	dawdle();
	pthread_mutex_lock(&lock);
	add(file, offset, (size_t)bytes, NULL);
	pthread_mutex_unlock(&lock);
	dawdle();
	fuse_reply_err(req, 0);
}

static void do_fsync(fuse_req_t req, fuse_ino_t ino, int data_only,
		     struct fuse_file_info *info)
{
	uint64_t number;

	(void)data_only;
	(void)info;
	pthread_mutex_lock(&lock);
	number = nr_changes;
	pthread_mutex_unlock(&lock);
	dawdle();
	pthread_mutex_lock(&lock);
	settle(file_of(ino), number);
	pthread_mutex_unlock(&lock);
	dawdle();
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops operations = {
	.lookup = do_lookup,
	.getattr = do_getattr,
	.open = do_open,
	.read = do_read,
	.write = do_write,
	.fallocate = do_fallocate,
	.fsync = do_fsync,
};

/* ---- the beginning ---- */

static int load(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		struct file *file = &files[nr_files];

		if (entry->d_name[0] == '.')
			continue;
		if (nr_files == MAX_FILES)
			return -1;
		file->fd = openat(dirfd(dir), entry->d_name, O_RDWR);
		if (file->fd < 0 || fstat(file->fd, &st))
			return -1;
		snprintf(file->name, sizeof(file->name), "%s", entry->d_name);
		file->bytes = (size_t)st.st_size;
		file->now = malloc(file->bytes);
		file->durable = malloc(file->bytes);
		if (!file->now || !file->durable ||
		    pread(file->fd, file->now, file->bytes, 0) != st.st_size)
			return -1;
		memcpy(file->durable, file->now, file->bytes);
		nr_files++;
	}
	return dir ? closedir(dir) : -1;
}

int main(int argc, char **argv)
{
	char *arguments[] = { argv[0], "-o", "fsname=forgetful", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, arguments);
	struct fuse_loop_config config = { .max_idle_threads = 16 };
	struct fuse_session *session;
	pthread_t thread;
	sigset_t signals;
	unsigned int i;

	if (argc != 5) {
		fputs("usage: forgetful FOLDER MOUNTPOINT SEED DELAY_US\n",
		      stderr);
		return 2;
	}
	if (load(argv[1])) {
		perror(argv[1]);
		return 1;
	}
	seed = (unsigned int)strtoul(argv[3], NULL, 10);
	delay_us = (unsigned int)strtoul(argv[4], NULL, 10);
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	session = fuse_session_new(&args, &operations, sizeof(operations),
				   NULL);
	if (!session || fuse_set_signal_handlers(session) ||
	    pthread_create(&thread, NULL, await_cut, &signals) ||
	    fuse_session_mount(session, argv[2]))
		return 1;
	if (fuse_session_loop_mt(session, &config) < 0)
		return 1;
	fuse_session_unmount(session);
	for (i = 0; i < nr_files; i++)
		store(&files[i], files[i].now);
	return 0;
}
