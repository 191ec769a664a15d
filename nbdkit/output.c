// SPDX-License-Identifier: GPL-2.0-only
/* See output.h. */
#include "output.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static int refuse(const struct output *output, const char *why)
{
	nbdkit_error("%s=%s: %s", output->key, output->path, why);
	return -1;
}

static bool is_ours(const struct output *output, const struct stat *st)
{
	return output->written_ino && st->st_ino == output->written_ino &&
	       st->st_dev == output->written_dev;
}

/* A server that writes its log keeps a lock on it. */
static bool is_locked(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

static bool is_mount_point(int fd)
{
#ifdef STATX_ATTR_MOUNT_ROOT
	struct statx stx;

	return !statx(fd, "", AT_EMPTY_PATH, 0, &stx) &&
	       (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
#else
	(void)fd;
	return false;
#endif
}

/*
 * In a folder that others may write to, what is there may be from anybody; its
 * owner and mode, which the new file is to have, would be theirs to choose.
 */
static bool is_foreign(const struct output *output, const struct stat *st)
{
	struct stat folder;

	return st->st_uid != geteuid() &&
	       (fstat(output->folder, &folder) ||
		((folder.st_mode & (S_IWGRP | S_IWOTH)) &&
		 st->st_uid != folder.st_uid));
}

static int check_file(const struct output *output, int fd,
		      const struct stat *st)
{
	if (is_foreign(output, st))
		return refuse(
			output,
			"belongs to another user, in a folder that others may write to; name a new file");
	if (st->st_size && !output->force && !is_ours(output, st))
		return refuse(
			output,
			"is there; name a new file, or add force=yes to replace it");
	/* Nothing can be renamed over it. */
	if (is_mount_point(fd))
		return refuse(output, "is a mount point; name a new file");
	if (is_locked(fd))
		return refuse(
			output,
			"another server is writing to it; name a new file");
	return 0;
}

/* What is there now may be replaced; if there is nothing @st's mode is 0. */
static int check_old(const struct output *output, struct stat *st,
		     bool (*served)(const struct stat *st))
{
	int fd, error;

	memset(st, 0, sizeof(*st));
	if (fstatat(output->folder, output->name, st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : refuse(output, strerror(errno));
	if (S_ISLNK(st->st_mode))
		return refuse(output,
			      "is a symbolic link; name the file itself");
	if (!S_ISREG(st->st_mode))
		return refuse(output, "is there, and no regular file");
	fd = openat(output->folder, output->name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, st))
		error = refuse(output, strerror(errno));
	else if (served && served(st))
		error = refuse(output, "is what is to be served or read");
	else
		error = check_file(output, fd, st);
	if (fd >= 0)
		close(fd);
	return error;
}

static int open_folder(struct output *output)
{
	const char *slash = strrchr(output->path, '/');
	char *folder;

	output->name = slash + 1;
	if (!*output->name)
		return refuse(output, "is a folder's name; name a file in it");
	folder = slash == output->path ?
			 strdup("/") :
			 strndup(output->path, (size_t)(slash - output->path));
	if (!folder)
		return refuse(output, strerror(errno));
	output->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (output->folder < 0)
		nbdkit_error("%s=%s: %s: %s", output->key, output->path, folder,
			     strerror(errno));
	free(folder);
	return output->folder < 0 ? -1 : 0;
}

/* A name that nobody can foresee, so that nothing can be put in its place. */
static int open_new(const struct output *output, char *name)
{
	uint64_t number;
	int fd;

	do {
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -1;
		snprintf(name, OUTPUT_NAME, ".streamsched-%016lx", number);
		fd = openat(output->folder, name,
			    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0644);
	} while (fd < 0 && errno == EEXIST);
	return fd;
}

int output_try(const struct output *output,
	       bool (*served)(const struct stat *st))
{
	char name[OUTPUT_NAME];
	struct stat st;
	bool error;
	int fd;

	if (!output->path)
		return 0;
	if (check_old(output, &st, served))
		return -1;
	/* Better told now than when there is something to be written. */
	fd = open_new(output, name);
	error = fd < 0 || write(fd, "\n", 1) < 0;
	if (error)
		nbdkit_error("%s=%s: no file can be made there: %s",
			     output->key, output->path, strerror(errno));
	if (fd >= 0) {
		close(fd);
		output_forget(output, name);
	}
	return error ? -1 : 0;
}

int output_check(struct output *output, bool (*served)(const struct stat *st))
{
	output->folder = -1;
	return output->path && open_folder(output) ? -1 :
						     output_try(output, served);
}

int output_distinct(const struct output *a, const struct output *b)
{
	struct stat st_a, st_b;

	if (!a->path || !b->path || strcmp(a->name, b->name) ||
	    fstat(a->folder, &st_a) || fstat(b->folder, &st_b) ||
	    st_a.st_dev != st_b.st_dev || st_a.st_ino != st_b.st_ino)
		return 0;
	nbdkit_error("%s=%s: the same file as %s=; each needs its own", b->key,
		     b->path, a->key);
	return -1;
}

/* As the old one was, where we may. */
static void keep_owner_and_mode(int fd, const struct stat *old)
{
	struct stat st;

	if (fstat(fd, &st))
		return;
	if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) &&
	    fchown(fd, old->st_uid, old->st_gid))
		return;
	fchmod(fd, old->st_mode & 0666);
}

FILE *output_begin(const struct output *output, char *name)
{
	struct stat old;
	FILE *stream;
	int fd;

	if (check_old(output, &old, NULL))
		return NULL;
	fd = open_new(output, name);
	stream = fd < 0 ? NULL : fdopen(fd, "w");
	if (!stream) {
		refuse(output, strerror(errno));
		if (fd >= 0) {
			close(fd);
			output_forget(output, name);
		}
		return NULL;
	}
	if (old.st_mode)
		keep_owner_and_mode(fd, &old);
	return stream;
}

/* The new file gets the name. Where there was none, none may have come. */
static int put_in_place(const struct output *output, const char *name,
			bool was_there)
{
	int folder = output->folder;

	if (!was_there && !output->force) {
		if (!renameat2(folder, name, folder, output->name,
			       RENAME_NOREPLACE))
			return 0;
		/* Not every file system can tell. */
		if (errno != EINVAL)
			return -1;
	}
	return renameat(folder, name, folder, output->name);
}

int output_replace(struct output *output, const char *name)
{
	struct stat old, new;

	/* Something else may be there by now. */
	if (!check_old(output, &old, NULL)) {
		if (!fstatat(output->folder, name, &new, AT_SYMLINK_NOFOLLOW) &&
		    !put_in_place(output, name, old.st_mode)) {
			output->written_dev = new.st_dev;
			output->written_ino = new.st_ino;
			return 0;
		}
		refuse(output, strerror(errno));
	}
	output_forget(output, name);
	return -1;
}

void output_forget(const struct output *output, const char *name)
{
	unlinkat(output->folder, name, 0);
}

void output_close(struct output *output)
{
	if (output->path && output->folder >= 0)
		close(output->folder);
	free((void *)output->path);
	output->path = NULL;
}
