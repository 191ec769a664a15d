// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a request to system calls: which bytes of which pieces, memory that
 * direct I/O accepts, short results, and errors that belong to one piece only.
 */
#include "server.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The pieces that the call under way is about: @only, or all. */
static struct piece *first_of(const struct transfer *transfer)
{
	return transfer->only ? transfer->only : transfer->leader->first;
}

static struct piece *next_of(const struct transfer *transfer,
			     const struct piece *piece)
{
	return transfer->only ? NULL : piece->next;
}

static bool aligned(const struct transfer *transfer, u32 align)
{
	const struct piece *piece;
	u32 i;

	for (piece = first_of(transfer); piece;
	     piece = next_of(transfer, piece))
		for (i = 0; i < piece->nr_iov; i++)
			if ((uintptr_t)piece->iov[i].iov_base & (align - 1))
				return false;
	return true;
}

/* Copy between the bounce memory and the pieces'. */
static void copy(struct transfer *transfer, bool to_bounce)
{
	char *bounce = transfer->bounce;
	const struct piece *piece;
	u32 i;

	for (piece = first_of(transfer); piece;
	     piece = next_of(transfer, piece))
		for (i = 0; i < piece->nr_iov; i++) {
			const struct iovec *iov = &piece->iov[i];

			if (to_bounce)
				memcpy(bounce, iov->iov_base, iov->iov_len);
			else
				memcpy(iov->iov_base, bounce, iov->iov_len);
			bounce += iov->iov_len;
		}
}

/* Begin a call's worth: all pieces, or the only one. */
static void begin(struct transfer *transfer, const struct member *member)
{
	const struct piece *leader = transfer->leader;
	const struct file *file = &member->file;
	u64 sector = leader->rq.sector, nr_sectors = leader->rq.nr_sectors;
	bool write = leader->direction == SS_WRITE;

	if (transfer->only) {
		sector = transfer->only->sector;
		nr_sectors = transfer->only->nr_sectors;
	}
	transfer->begin = sector * SECTOR_BYTES;
	transfer->bytes = nr_sectors * SECTOR_BYTES;
	transfer->moved = 0;
	transfer->failed = 0;
	transfer->fault = fault_find(member->index,
				     write ? FAULT_WRITE : FAULT_READ,
				     transfer->begin, transfer->bytes);
	/* A write past the end would succeed, and the file grow. */
	if (write)
		transfer->failed = file_reaches(file, transfer->begin +
							      transfer->bytes);
	transfer->bounced = file->direct && !aligned(transfer, file->align);
	if (transfer->bounced && !transfer->bounce &&
	    posix_memalign(&transfer->bounce, 4096, server.config.max_request))
		transfer->failed = ENOMEM;
	else if (transfer->bounced && write)
		copy(transfer, true);
}

void transfer_begin(struct transfer *transfer, const struct member *member,
		    struct piece *leader)
{
	transfer->leader = leader;
	transfer->only = NULL;
	begin(transfer, member);
}

/* The segments that are left; their number. */
static u32 segments(struct transfer *transfer, const struct iovec **iov)
{
	const struct piece *piece = first_of(transfer);
	u64 skip = transfer->moved;
	u32 nr = 0, i;

	if (transfer->bounced) {
		transfer->iov[0].iov_base = (char *)transfer->bounce + skip;
		transfer->iov[0].iov_len = transfer->bytes - skip;
		*iov = transfer->iov;
		return 1;
	}
	if (!skip && !next_of(transfer, piece)) {
		*iov = piece->iov;
		return piece->nr_iov;
	}
	for (; piece; piece = next_of(transfer, piece))
		for (i = 0; i < piece->nr_iov; i++) {
			struct iovec left = piece->iov[i];

			if (skip >= left.iov_len) {
				skip -= left.iov_len;
				continue;
			}
			left.iov_base = (char *)left.iov_base + skip;
			left.iov_len -= skip;
			skip = 0;
			transfer->iov[nr++] = left;
		}
	*iov = transfer->iov;
	return nr;
}

/* Cut the segments to half of what was asked for. */
static u32 halve(struct transfer *transfer, const struct iovec **iov, u32 nr)
{
	u64 left = (transfer->bytes / 2) & ~(u64)(SECTOR_BYTES - 1);
	u32 i;

	if (transfer->moved)
		return 0;
	memmove(transfer->iov, *iov, nr * sizeof(**iov));
	*iov = transfer->iov;
	for (i = 0; i < nr && left; i++) {
		if (transfer->iov[i].iov_len > left)
			transfer->iov[i].iov_len = left;
		left -= transfer->iov[i].iov_len;
	}
	return i;
}

void transfer_ask(struct transfer *transfer, const struct member *member,
		  struct engine_io *io)
{
	const struct fault *fault = transfer->fault;

	io->fd = member->file.fd;
	io->write = transfer->leader->direction == SS_WRITE;
	/* Through the page cache the flush afterwards does it (stripe.c). */
	io->dsync = transfer->leader->led_fua && member->file.direct;
	io->nr_iov = segments(transfer, &io->iov);
	io->offset = transfer->begin + transfer->moved;
	io->delay_ns = fault && !transfer->moved ? fault->delay_ns : 0;
	if (fault && fault->is_short)
		io->nr_iov = halve(transfer, &io->iov, io->nr_iov);
	if (fault && fault->error)
		transfer->failed = fault->error;
	if (transfer->failed)
		io->nr_iov = 0; /* moves nothing, and says so in its turn */
}

/* The client sees only a number; who runs the server wants to know where. */
static int report(const struct transfer *transfer, const struct member *member,
		  int error)
{
	u64 end = transfer->begin + transfer->bytes;
	const char *why = "";

	if (transfer->fault)
		why = " (injected)";
	else if (error == EIO && file_reaches(&member->file, end))
		why = " (the file has become shorter)";
	if (error)
		nbdkit_error("%s: %s of %lu bytes at %lu: %s%s",
			     member->file.name,
			     transfer->leader->direction == SS_READ ? "read" :
								      "write",
			     transfer->bytes, transfer->begin, strerror(error),
			     why);
	return error;
}

/*
 * Direct I/O ends within a block only where the member does, and cannot go on
 * from there.
 */
static bool cut_short(const struct transfer *transfer,
		      const struct member *member)
{
	return member->file.direct &&
	       transfer->moved & (member->file.block_bytes - 1);
}

bool transfer_answer(struct transfer *transfer, const struct member *member,
		     int result)
{
	struct piece *leader = transfer->leader;
	int error = transfer->failed;

	if (!error && (result == -EINTR || result == -EAGAIN))
		return false;
	if (!error && result > 0) {
		transfer->moved += (u64)result;
		if (transfer->moved < transfer->bytes &&
		    !cut_short(transfer, member))
			return false;
		if (transfer->moved < transfer->bytes)
			error = EIO;
	} else if (!error) {
		/* 0: the member has become shorter than it was. */
		error = result ? -result : EIO;
	}
	if (!error && transfer->bounced && leader->direction == SS_READ)
		copy(transfer, false);
	if (!transfer->only && (!error || !leader->first->next)) {
		leader->first->error = report(transfer, member, error);
		return true;
	}
	/* One of several is at fault: which? */
	if (transfer->only) {
		transfer->only->error = report(transfer, member, error);
		transfer->only = transfer->only->next;
	} else {
		transfer->only = leader->first;
	}
	if (transfer->only)
		begin(transfer, member);
	return !transfer->only;
}

static void run(struct transfer *transfer, const struct member *member)
{
	struct engine_io io;

	do
		transfer_ask(transfer, member, &io);
	while (!transfer_answer(transfer, member, engine_do(&io)));
}

void transfer_run(struct transfer *transfer, const struct member *member,
		  struct piece *leader)
{
	transfer_begin(transfer, member, leader);
	run(transfer, member);
}

void transfer_piece(const struct member *member, struct piece *piece)
{
	/* As if it had never led or been led. */
	struct piece alone = *piece;
	struct transfer transfer;

	alone.rq.sector = piece->sector;
	alone.rq.nr_sectors = piece->nr_sectors;
	alone.led_fua = piece->fua;
	alone.first = &alone;
	alone.last = &alone;
	alone.next = NULL;
	transfer.bounce = NULL;
	transfer_run(&transfer, member, &alone);
	free(transfer.bounce);
	piece->error = alone.error;
}

int transfer_flush(const struct member *member, u64 number)
{
	const struct fault *fault = fault_find(member->index, FAULT_FLUSH,
					       number, 1);
	int error;

	if (fault) {
		engine_delay(fault->delay_ns);
		if (fault->error)
			return fault->error;
	}
	error = member->file.memory ? 0 : file_sync(&member->file);
	if (error)
		nbdkit_error("%s: flush: %s", member->file.name,
			     strerror(error));
	return error;
}
