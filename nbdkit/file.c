// SPDX-License-Identifier: GPL-2.0-only
/* See file.h. */
#include "file.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define SECTOR_BYTES 512
#define PAGE_BYTES 4096
#define LOCK_S 1
#define LOCK_STEP_US 10000

/* A number that the kernel tells of a device's queue; -1 when it does not. */
static long queue_number(dev_t dev, const char *what)
{
	/* A partition's queue is its disk's. */
	static const char *const place[] = { "", "../" };
	char path[128];
	long value = -1;
	size_t i;

	for (i = 0; i < 2 && value < 0; i++) {
		FILE *stream;

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s%s",
			 major(dev), minor(dev), place[i], what);
		stream = fopen(path, "re");
		if (!stream)
			continue;
		if (fscanf(stream, "%ld", &value) != 1)
			value = -1;
		fclose(stream);
	}
	return value;
}

static void look_at_device(struct file *file, dev_t dev)
{
	long depth = queue_number(dev, "device/queue_depth");
	long rotational = queue_number(dev, "queue/rotational");

	file->depth = depth > 0 ? (uint32_t)depth : 0;
	file->rotational = rotational < 0 ? -1 : rotational > 0;
}

/*
 * What direct I/O asks of memory and positions. Where the kernel does not tell
 * (before 6.1), what has always been enough: trying does not help, for file
 * systems let in anything that meets a hole.
 */
static void find_alignment(struct file *file, dev_t dev)
{
	long logical = queue_number(dev, "queue/logical_block_size");
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (!statx(file->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) &&
	    (stx.stx_mask & STATX_DIOALIGN) && stx.stx_dio_offset_align) {
		file->align = stx.stx_dio_mem_align;
		if (stx.stx_dio_offset_align > file->block_bytes)
			file->block_bytes = stx.stx_dio_offset_align;
		return;
	}
#endif
	if (file->memory)
		return;
	file->align = PAGE_BYTES;
	if (!file->block)
		file->block_bytes = logical > 0 ? (uint32_t)logical :
						  PAGE_BYTES;
}

/* Some file systems take O_DIRECT and then refuse to read. */
static int try_direct(const struct file *file)
{
	char *memory;
	int error = 0;

	if (posix_memalign((void **)&memory, PAGE_BYTES, PAGE_BYTES))
		return ENOMEM;
	if (pread(file->fd, memory, PAGE_BYTES, 0) < 0)
		error = errno;
	free(memory);
	return error;
}

/*
 * A server that was killed holds its locks until the kernel has cleaned up its
 * io_uring, which may be after it is gone.
 */
static int lock_bytes(int fd, short type, uint64_t begin, uint64_t end)
{
	struct flock lock = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)begin,
		.l_len = end == UINT64_MAX ? 0 : (off_t)(end - begin),
	};
	struct timespec now, until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOCK_S;
	do {
		if (!fcntl(fd, F_OFD_SETLK, &lock))
			return 0;
		if (errno != EAGAIN && errno != EACCES)
			return errno;
		usleep(LOCK_STEP_US); /* less if SIGUSR1 comes */
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < until.tv_sec ||
		 (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
	return EBUSY;
}

/* The name may be another file's by now; that one is not ours to lock. */
static int open_below(struct layer *layer, bool shared)
{
	struct stat st;

	layer->fd = open(layer->path,
			 (shared ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK);
	if (layer->fd < 0)
		return errno;
	if (!fstat(layer->fd, &st) && layer_is(layer, &st))
		return 0;
	close(layer->fd);
	layer->fd = -1;
	return ESTALE;
}

/*
 * The file that a loop device lies on: other members and other servers may
 * have other bytes of it, as partitions. Which bytes a volume of the device
 * mapper has is not known; its lock is only against whoever has all.
 */
static int lock_below(const struct file *file, struct layer *layer,
		      bool readonly)
{
	bool shared = readonly || layer->some;
	int error;

	error = open_below(layer, shared);
	if (!error)
		error = lock_bytes(layer->fd, shared ? F_RDLCK : F_WRLCK,
				   layer->begin, layer->end);
	if (error == EBUSY || (error && layer_locked(layer, shared))) {
		nbdkit_error(
			"%s: lies on %s, which is in use by another server or program (it holds a lock); stop that one first",
			file->name, layer->path);
		return -1;
	}
	/* Whoever is below a whole file system locks nothing of it. */
	if (error && !layer->some)
		fprintf(stderr,
			"nbdkit: streamsched: %s: lies on %s, which cannot be locked (%s), so another server of it is not noticed\n",
			file->name, layer->path,
			error == ESTALE ? "the name is another file's now" :
					  strerror(error));
	return 0;
}

int file_lock(struct file *file, bool readonly)
{
	int loop, error = lock_bytes(file->fd, readonly ? F_RDLCK : F_WRLCK, 0,
				     UINT64_MAX);
	unsigned int i;

	if (error == EBUSY) {
		nbdkit_error(
			"%s: in use by another server or program (it holds a lock); stop that one first",
			file->name);
		return -1;
	}
	if (error) {
		nbdkit_error("%s: cannot lock it: %s", file->name,
			     strerror(error));
		return -1;
	}
	for (i = 1; i < file->layers.nr; i++)
		if (file->layers.layer[i].path &&
		    lock_below(file, &file->layers.layer[i], readonly))
			return -1;
	loop = readonly ? -1 : layers_other_loop(&file->layers);
	if (loop < 0)
		return 0;
	/* Detached, it stays until its last user is gone. */
	nbdkit_error(
		"%s: in use by this machine as /dev/loop%d; stop what uses that device and detach it (losetup --detach), or serve the file with readonly=yes",
		file->name, loop);
	return -1;
}

static int find_kind(struct file *file)
{
	struct statfs fs;
	struct stat st;
	int logical;

	if (fstat(file->fd, &st) || fstatfs(file->fd, &fs)) {
		nbdkit_error("%s: %s", file->name, strerror(errno));
		return -1;
	}
	file->block_bytes = SECTOR_BYTES;
	file->align = 1;
	layers_find(&file->layers, &st);
	if (S_ISBLK(st.st_mode)) {
		file->block = true;
		if (ioctl(file->fd, BLKGETSIZE64, &file->bytes) ||
		    ioctl(file->fd, BLKSSZGET, &logical)) {
			nbdkit_error("%s: cannot find its size: %s", file->name,
				     strerror(errno));
			return -1;
		}
		file->block_bytes = (uint32_t)logical;
		look_at_device(file, st.st_rdev);
	} else {
		file->bytes = (uint64_t)st.st_size;
		file->memory = fs.f_type == TMPFS_MAGIC ||
			       fs.f_type == RAMFS_MAGIC;
		look_at_device(file, st.st_dev);
		if (file->memory)
			file->rotational = 0;
	}
	return 0;
}

/* The page cache is in the way of scheduling; say so where it cannot go. */
static int set_direct(struct file *file, int direct)
{
	int flags = fcntl(file->fd, F_GETFL), error = 0;

	if (!direct)
		return 0;
	/* In memory there is nothing to get past. */
	if (file->memory && direct < 0)
		return 0;
	if (fcntl(file->fd, F_SETFL, flags | O_DIRECT))
		error = errno;
	else
		error = try_direct(file);
	if (!error) {
		find_alignment(file, file->layers.layer[0].dev);
		file->direct = true;
		return 0;
	}
	if (direct > 0) {
		nbdkit_error(
			"%s: direct I/O is not possible here: %s; leave out direct=yes",
			file->name, strerror(error));
		return -1;
	}
	fcntl(file->fd, F_SETFL, flags);
	fprintf(stderr,
		"nbdkit: streamsched: %s: direct I/O is not possible here (%s), so the page cache is used\n",
		file->name, strerror(error));
	return 0;
}

int file_writable(const char *name)
{
	int error = access(name, W_OK) ? errno : 0;
	int fd, protected = 0;
	struct stat st;

	if (error == EACCES || error == EPERM || error == EROFS)
		return error;
	if (stat(name, &st) || !S_ISBLK(st.st_mode))
		return 0;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ioctl(fd, BLKROGET, &protected);
	close(fd);
	return protected ? EROFS : 0;
}

static int refuse_open(const char *name, bool readonly, int error)
{
	if (error == EBUSY)
		nbdkit_error(
			"%s: in use by this machine, mounted for example; unmount it, or serve it with readonly=yes",
			name);
	else if (!readonly &&
		 (error == EACCES || error == EROFS || error == EPERM))
		nbdkit_error(
			"%s: cannot be written (%s); serve it with readonly=yes, or make it writable",
			name, strerror(error));
	else
		nbdkit_error("%s: %s", name, strerror(error));
	return -1;
}

int file_open(struct file *file, const char *name, bool readonly, int direct)
{
	int flags = (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC, error;
	struct stat st;

	memset(file, 0, sizeof(*file));
	file->name = name;
	/* To open a pipe is to wait, and a device may act upon it. */
	if (stat(name, &st)) {
		nbdkit_error("%s: %s", name, strerror(errno));
		return -1;
	}
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
		nbdkit_error("%s: is neither a regular file nor a block device",
			     name);
		return -1;
	}
	/* A device that is write-protected can be opened for writing. */
	error = readonly ? 0 : file_writable(name);
	if (error)
		return refuse_open(name, readonly, error);
	/* A disk with a mounted file system must not be written to. */
	if (!readonly && S_ISBLK(st.st_mode))
		flags |= O_EXCL;
	file->fd = open(name, flags);
	if (file->fd < 0)
		return refuse_open(name, readonly, errno);
	if (find_kind(file) || set_direct(file, direct)) {
		file_close(file);
		return -1;
	}
	return 0;
}

int file_memory(struct file *file, uint64_t bytes)
{
	memset(file, 0, sizeof(*file));
	file->name = "memory";
	file->memory = true;
	file->bytes = bytes;
	file->block_bytes = SECTOR_BYTES;
	file->align = 1;
	file->fd = memfd_create("streamsched", MFD_CLOEXEC);
	if (file->fd < 0 || ftruncate(file->fd, (off_t)bytes)) {
		nbdkit_error("memory for the emulated disk: %s",
			     strerror(errno));
		if (file->fd >= 0)
			close(file->fd);
		return -1;
	}
	return 0;
}

void file_close(struct file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	layers_free(&file->layers);
}

int file_reaches(const struct file *file, uint64_t end)
{
	struct stat st;

	if (file->block)
		return 0;
	if (fstat(file->fd, &st))
		return errno;
	return (uint64_t)st.st_size >= end ? 0 : EIO;
}

int file_sync(const struct file *file)
{
	return fdatasync(file->fd) ? errno : 0;
}

/* "Cannot" has several names; nbdkit's is ENOTSUP. */
static int refusal(int error)
{
	if (error == ENOSYS || error == EOPNOTSUPP || error == ENODEV ||
	    error == ENOTTY)
		return ENOTSUP;
	return error;
}

int file_trim(const struct file *file, uint64_t offset, uint64_t bytes)
{
	uint64_t range[2] = { offset, bytes };
	int error = file_reaches(file, offset + bytes);

	if (error)
		return error;
	if (file->block)
		error = ioctl(file->fd, BLKDISCARD, range) ? errno : 0;
	else
		error = fallocate(file->fd,
				  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  (off_t)offset, (off_t)bytes) ?
				errno :
				0;
	/* It was only advice. */
	return refusal(error) == ENOTSUP ? 0 : error;
}

int file_zero(const struct file *file, uint64_t offset, uint64_t bytes,
	      bool may_trim, bool fast)
{
	int error = file_reaches(file, offset + bytes);

	if (error)
		return error;
	/*
	 * On a device the kernel writes zeros itself for ZERO_RANGE when it
	 * has no quicker way, and does not tell; PUNCH_HOLE is quick or fails.
	 */
	if (may_trim &&
	    !fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		       (off_t)offset, (off_t)bytes))
		return 0;
	if (may_trim && refusal(errno) != ENOTSUP)
		return errno;
	if (file->block && fast)
		return ENOTSUP;
	if (!fallocate(file->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
		       (off_t)offset, (off_t)bytes))
		return 0;
	return refusal(errno);
}

int file_cache(const struct file *file, uint64_t offset, uint64_t bytes)
{
	int error = file_reaches(file, offset + bytes);

	if (error)
		return error;
	return posix_fadvise(file->fd, (off_t)offset, (off_t)bytes,
			     POSIX_FADV_WILLNEED);
}

bool file_has_extents(const struct file *file)
{
	return !file->block && lseek(file->fd, 0, SEEK_HOLE) >= 0;
}

int file_extent(const struct file *file, uint64_t offset, uint64_t bytes,
		uint64_t *alike, bool *hole)
{
	off_t at, end = lseek(file->fd, 0, SEEK_END);

	/* Cut off: reads fail there, so it is no hole. */
	if (end <= (off_t)offset)
		return end < 0 ? errno : EIO;
	if ((uint64_t)end - offset < bytes)
		bytes = (uint64_t)end - offset;
	at = lseek(file->fd, (off_t)offset, SEEK_DATA);
	*hole = at < 0 || (uint64_t)at > offset;
	*alike = bytes;
	if (at < 0 && errno != ENXIO) /* ENXIO: a hole up to the end */
		return errno;
	if (!*hole)
		at = lseek(file->fd, (off_t)offset, SEEK_HOLE);
	else if (at < 0)
		return 0;
	if (at < 0)
		return errno;
	if ((uint64_t)at - offset < bytes)
		*alike = (uint64_t)at - offset;
	return 0;
}
