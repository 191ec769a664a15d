// SPDX-License-Identifier: GPL-2.0-only
/*
 * See layers.h. Nearly all of it is read from sysfs, which needs no privilege.
 */
#include "layers.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SECTOR_BYTES 512

/* A file of sysfs, without its last newline; false if nothing is in it. */
static bool read_text(const char *path, char *text, size_t bytes)
{
	FILE *stream = fopen(path, "re");
	size_t length = stream ? fread(text, 1, bytes - 1, stream) : 0;

	if (stream)
		fclose(stream);
	if (length && text[length - 1] == '\n')
		length--;
	text[length] = 0;
	return length;
}

static bool read_number(const char *path, uint64_t *number)
{
	char line[32];

	return read_text(path, line, sizeof(line)) &&
	       sscanf(line, "%lu", number) == 1;
}

static bool read_dev(const char *path, dev_t *dev)
{
	unsigned int major_number, minor_number;
	char line[32];

	if (!read_text(path, line, sizeof(line)) ||
	    sscanf(line, "%u:%u", &major_number, &minor_number) != 2)
		return false;
	*dev = makedev(major_number, minor_number);
	return true;
}

#define SYSFS_PATH 640

static void sysfs_path(char *path, dev_t dev, const char *what)
{
	snprintf(path, SYSFS_PATH, "/sys/dev/block/%u:%u/%s", major(dev),
		 minor(dev), what);
}

static bool same_place(const struct layer *a, const struct layer *b)
{
	return a->block == b->block && a->dev == b->dev && a->ino == b->ino;
}

static bool overlap(const struct layer *a, const struct layer *b)
{
	return same_place(a, b) && a->begin < b->end && b->begin < a->end;
}

static void add(struct layers *layers, struct layer layer);

static void add_device(struct layers *layers, dev_t dev, uint64_t begin,
		       uint64_t end, bool some)
{
	struct layer layer = { .block = true, .dev = dev };

	layer.begin = begin;
	layer.end = end;
	layer.some = some;
	add(layers, layer);
}

static void below_partition(struct layers *layers, const struct layer *top)
{
	char path[SYSFS_PATH];
	uint64_t start, size;
	dev_t disk;

	sysfs_path(path, top->dev, "start");
	if (!read_number(path, &start))
		return;
	sysfs_path(path, top->dev, "size");
	if (!read_number(path, &size))
		return;
	sysfs_path(path, top->dev, "../dev");
	if (!read_dev(path, &disk))
		return;
	start *= SECTOR_BYTES;
	size *= SECTOR_BYTES;
	if (top->end < size)
		size = top->end;
	add_device(layers, disk, start + top->begin, start + size, top->some);
}

static void set_place(struct layer *layer, const struct stat *st)
{
	layer->block = S_ISBLK(st->st_mode);
	layer->dev = layer->block ? st->st_rdev : st->st_dev;
	layer->ino = layer->block ? 0 : st->st_ino;
}

bool layer_is(const struct layer *layer, const struct stat *st)
{
	struct layer place;

	set_place(&place, st);
	return same_place(layer, &place);
}

/* The kernel's way to put a device number in 64 bits. */
static dev_t decode_dev(uint64_t code)
{
	return makedev((code >> 8) & 0xfff,
		       (code & 0xff) | ((code >> 12) & 0xfff00));
}

/*
 * Ask the loop device itself. The name of its file may have gone to another
 * file since, or be one of another mount namespace.
 */
static bool ask_loop(dev_t dev, struct layer *layer)
{
	char path[SYSFS_PATH], link[PATH_MAX], node[PATH_MAX];
	struct loop_info64 info;
	struct stat st;
	ssize_t length;
	bool answer;
	int fd;

	sysfs_path(path, dev, "");
	path[strlen(path) - 1] = 0; /* the link itself, not what it is to */
	length = readlink(path, link, sizeof(link) - 1);
	if (length < 0)
		return false;
	link[length] = 0;
	snprintf(node, sizeof(node), "/dev%s", strrchr(link, '/'));
	fd = open(node, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	answer = !fstat(fd, &st) && S_ISBLK(st.st_mode) && st.st_rdev == dev &&
		 !ioctl(fd, LOOP_GET_STATUS64, &info);
	close(fd);
	if (!answer)
		return false;
	/* Of a regular file the second is 0, or the first again (Linux 4). */
	layer->block = info.lo_rdevice && info.lo_rdevice != info.lo_device;
	layer->dev = decode_dev(layer->block ? info.lo_rdevice :
					       info.lo_device);
	layer->ino = layer->block ? 0 : info.lo_inode;
	return true;
}

/* A loop device's file, as far as the device shows it; false if it is none. */
static bool loop_file(dev_t dev, struct layer *layer, char *name)
{
	char path[SYSFS_PATH];
	uint64_t limit = 0;
	struct stat st;

	sysfs_path(path, dev, "loop/backing_file");
	if (!read_text(path, name, PATH_MAX))
		return false;
	memset(layer, 0, sizeof(*layer));
	if (!ask_loop(dev, layer)) {
		if (stat(name, &st))
			return false;
		set_place(layer, &st);
	}
	sysfs_path(path, dev, "loop/offset");
	read_number(path, &layer->begin);
	sysfs_path(path, dev, "loop/sizelimit");
	read_number(path, &limit);
	layer->end = limit ? layer->begin + limit : UINT64_MAX;
	return true;
}

static void below_loop(struct layers *layers, const struct layer *top)
{
	char name[PATH_MAX];
	struct layer layer;
	uint64_t offset;

	if (!loop_file(top->dev, &layer, name))
		return;
	offset = layer.begin;
	layer.begin += top->begin;
	if (top->end < layer.end - offset)
		layer.end = offset + top->end;
	layer.some = top->some;
	layer.path = strdup(name);
	add(layers, layer);
}

/* Of the device mapper and of md: somewhere on these devices. */
static void below_mapped(struct layers *layers, const struct layer *top)
{
	char path[SYSFS_PATH], name[512];
	struct dirent *entry;
	dev_t dev;
	DIR *dir;

	sysfs_path(path, top->dev, "slaves");
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		snprintf(name, sizeof(name), "slaves/%s/dev", entry->d_name);
		sysfs_path(path, top->dev, name);
		if (entry->d_name[0] != '.' && read_dev(path, &dev))
			add_device(layers, dev, 0, UINT64_MAX, true);
	}
	if (dir)
		closedir(dir);
}

static void add(struct layers *layers, struct layer layer)
{
	unsigned int i;

	/* Two parts of a set may lie on one disk, each on its own bytes. */
	for (i = 0; i < layers->nr; i++)
		if (same_place(&layers->layer[i], &layer) &&
		    layers->layer[i].begin == layer.begin)
			break;
	if (i < layers->nr || layers->nr == MAX_LAYERS) {
		free(layer.path);
		return;
	}
	layer.fd = -1;
	layers->layer[layers->nr++] = layer;
	if (layer.block) {
		below_partition(layers, &layer);
		below_loop(layers, &layer);
		below_mapped(layers, &layer);
	} else if (major(layer.dev)) {
		add_device(layers, layer.dev, 0, UINT64_MAX, true);
	}
}

void layers_find(struct layers *layers, const struct stat *st)
{
	struct layer top = { .end = UINT64_MAX };

	set_place(&top, st);
	layers->nr = 0;
	add(layers, top);
}

void layers_free(struct layers *layers)
{
	while (layers->nr) {
		struct layer *layer = &layers->layer[--layers->nr];

		if (layer->fd >= 0)
			close(layer->fd);
		free(layer->path);
	}
}

bool layers_meet(const struct layers *a, const struct layers *b)
{
	unsigned int i, j;

	for (i = 0; i < a->nr; i++)
		for (j = 0; j < b->nr; j++)
			/* Two volumes of one disk have each their own part. */
			if (overlap(&a->layer[i], &b->layer[j]) &&
			    !(a->layer[i].some && b->layer[j].some))
				return true;
	return false;
}

bool layers_have(const struct layers *layers, const struct stat *st)
{
	unsigned int i;

	for (i = 0; i < layers->nr; i++)
		if (layer_is(&layers->layer[i], st))
			return true;
	return false;
}

bool layer_locked(const struct layer *layer, bool shared)
{
	FILE *locks = fopen("/proc/locks", "re");
	unsigned int major_number, minor_number;
	char line[256], mode[8], last[24];
	uint64_t ino, first;
	bool locked = false;

	while (locks && !locked && fgets(line, sizeof(line), locks))
		locked = sscanf(line, "%*u: %*s %*s %7s %*d %x:%x:%lu %lu %23s",
				mode, &major_number, &minor_number, &ino,
				&first, last) == 6 &&
			 makedev(major_number, minor_number) == layer->dev &&
			 ino == layer->ino && first < layer->end &&
			 (!strcmp(last, "EOF") ||
			  strtoull(last, NULL, 10) >= layer->begin) &&
			 (!shared || !strcmp(mode, "WRITE"));
	if (locks)
		fclose(locks);
	return locked;
}

static bool is_other_loop(const struct layers *layers, dev_t dev)
{
	struct layer loop = { .block = true, .dev = dev }, below;
	char name[PATH_MAX];
	bool over = false;
	unsigned int i;

	if (!loop_file(dev, &below, name))
		return false;
	for (i = 0; i < layers->nr; i++) {
		if (same_place(&layers->layer[i], &loop))
			return false;
		/* Some part of a device need not be the loop device's. */
		over |= overlap(&layers->layer[i], &below) &&
			!(layers->layer[i].block && layers->layer[i].some);
	}
	return over;
}

int layers_other_loop(const struct layers *layers)
{
	DIR *dir = opendir("/sys/block");
	char path[SYSFS_PATH];
	struct dirent *entry;
	int number = -1, found = -1;
	dev_t dev;

	while (dir && found < 0 && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "loop%d", &number) != 1)
			continue;
		snprintf(path, sizeof(path), "/sys/block/loop%d/dev", number);
		if (read_dev(path, &dev) && is_other_loop(layers, dev))
			found = number;
	}
	if (dir)
		closedir(dir);
	return found;
}
