// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a command on the export to pieces of members: RAID 0. Chunk k of the
 * export is chunk k / n of member k % n, so all of a command's chunks on one
 * member lie there one behind the other, and become few pieces.
 */
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pieces {
	struct piece *piece;
	struct iovec *iov;
	u32 nr, nr_iov;
};

/* What lies on one member in one piece. */
static u64 chunk_bytes(void)
{
	return server.nr_members > 1 ? server.config.chunk :
				       server.config.max_request;
}

/* The unit in which commands are cut up: both are powers of two. */
static u64 unit_bytes(void)
{
	u64 chunk = chunk_bytes();

	return chunk < server.config.max_request ? chunk :
						   server.config.max_request;
}

void stripe_map(u64 offset, u32 *index, u64 *member_offset, u64 *left)
{
	u64 bytes = server.config.chunk;
	u64 chunk = offset / bytes, inside = offset % bytes;

	if (server.nr_members == 1) {
		*index = 0;
		*member_offset = offset;
		*left = server.bytes - offset;
		return;
	}
	*index = (u32)(chunk % server.nr_members);
	*member_offset = chunk / server.nr_members * bytes + inside;
	*left = bytes - inside;
}

u64 stripe_below(u64 offset, u32 index)
{
	u64 chunk = server.config.chunk, row = chunk * server.nr_members;
	u64 rest = offset % row, before = index * chunk;

	if (server.nr_members == 1)
		return offset;
	rest = rest > before ? rest - before : 0;
	return offset / row * chunk + (rest < chunk ? rest : chunk);
}

/* @bytes at @memory belong to @sector: more of the last piece, or a new one. */
static void append(struct pieces *pieces, u32 begin, void *memory, u64 sector,
		   u32 bytes, const struct piece *like)
{
	struct piece *piece = &pieces->piece[pieces->nr];
	struct iovec *iov = &pieces->iov[pieces->nr_iov++];
	u32 nr_sectors = bytes / SECTOR_BYTES;

	iov->iov_base = memory;
	iov->iov_len = bytes;
	if (pieces->nr > begin && piece[-1].nr_iov < MAX_SEGMENTS &&
	    (u64)(piece[-1].nr_sectors + nr_sectors) * SECTOR_BYTES <=
		    server.config.max_request) {
		piece[-1].nr_iov++;
		piece[-1].nr_sectors += nr_sectors;
		piece[-1].rq.nr_sectors += nr_sectors;
		return;
	}
	*piece = *like;
	piece->sector = sector;
	piece->nr_sectors = nr_sectors;
	piece->iov = iov;
	piece->nr_iov = 1;
	piece->rq.sector = sector;
	piece->rq.nr_sectors = nr_sectors;
	pieces->nr++;
}

/* Add the pieces of member @index. */
static void cut(struct pieces *pieces, u32 index, char *buffer, u32 bytes,
		u64 offset, const struct piece *like)
{
	u64 size = chunk_bytes(), unit = unit_bytes(), end = offset + bytes;
	u32 nr = server.nr_members, begin = pieces->nr;
	u64 chunk = offset / size;

	chunk += (index + nr - chunk % nr) % nr;
	for (; chunk * size < end; chunk += nr) {
		u64 from = chunk * size, stop = from + size, to;

		if (from < offset)
			from = offset;
		if (stop > end)
			stop = end;
		for (; from < stop; from = to) {
			u64 at = chunk / nr * size + from % size;

			to = from - from % unit + unit;
			if (to > stop)
				to = stop;
			append(pieces, begin, buffer + (from - offset),
			       at / SECTOR_BYTES, (u32)(to - from), like);
		}
	}
}

/* All within one unit, so on one member: what most commands are. */
static void cut_one(struct pieces *pieces, u32 *end, char *buffer, u32 bytes,
		    u64 offset, const struct piece *like)
{
	u64 at, left;
	u32 index, i;

	stripe_map(offset, &index, &at, &left);
	append(pieces, 0, buffer, at / SECTOR_BYTES, bytes, like);
	for (i = 0; i < server.nr_members; i++)
		end[i] = i >= index;
}

/* Count for the connection; @error, or else the pieces' first. */
static int account(struct batch *batch, const struct pieces *pieces, u32 bytes,
		   int error)
{
	struct stats_connection *stats = &batch->connection->stats;
	u32 i;

	for (i = 0; i < pieces->nr && !error; i++)
		error = pieces->piece[i].error;
	pthread_mutex_lock(&stats->lock);
	stats_flow(&stats->flow[pieces->piece[0].direction], bytes, error);
	for (i = 0; i < pieces->nr; i++) {
		const struct piece *piece = &pieces->piece[i];

		stats_time(&stats->wait,
			   piece->dispatched_ns - piece->wanted_ns);
		stats_time(&stats->service,
			   piece->done_ns - piece->dispatched_ns);
	}
	pthread_mutex_unlock(&stats->lock);
	return error;
}

/* Send all pieces to their members and wait for them. */
static void perform(struct batch *batch, struct pieces *pieces, const u32 *end)
{
	struct member *last = NULL;
	struct piece *mine = NULL;
	u32 nr = server.nr_members, begin = 0, i, j;

	batch->left = (int)pieces->nr;
	sem_init(&batch->done, 0, 0);
	for (i = 0; i < nr; begin = end[i++])
		if (end[i] > begin) {
			/* Only the last: the others must not wait for it. */
			last = server.member[i];
			mine = member_submit(last, &pieces->piece[begin],
					     end[i] - begin,
					     end[i] == pieces->nr);
		}
	if (mine)
		member_do(last, mine);
	while (sem_wait(&batch->done))
		;
	sem_destroy(&batch->done);
	if (!server.config.emulate)
		return;
	/* The time has passed; now the bytes. */
	for (i = 0, begin = 0; i < nr; begin = end[i++])
		for (j = begin; j < end[i]; j++)
			transfer_piece(server.member[i], &pieces->piece[j]);
}

/* Make durable what is not yet; the first error. */
static int finish_fua(const u32 *end)
{
	u32 begin = 0, i;
	int error = 0;

	for (i = 0; i < server.nr_members; begin = end[i++])
		if (end[i] > begin && !error)
			error = member_finish_fua(server.member[i]);
	return error;
}

int stripe_rw(struct connection *connection, u8 direction, void *buffer,
	      u32 bytes, u64 offset, bool fua)
{
	struct batch batch = { .connection = connection };
	struct piece one, like = {
		.rq.direction = direction,
		.rq.owner = connection->owner,
		.batch = &batch,
		.direction = direction,
		.fua = fua,
	};
	struct iovec one_iov;
	struct pieces pieces = { .piece = &one, .iov = &one_iov };
	u64 unit = unit_bytes();
	/* Units are powers of two: no slow division. */
	u32 shift = (u32)__builtin_ctzll(unit);
	u64 most = ((offset + bytes - 1) >> shift) - (offset >> shift) + 1;
	u32 end[MAX_MEMBERS], i;
	int error = ENOMEM;

	if (direction == SS_READ || fua || server.config.sync_writes)
		like.rq.flags = SS_SYNC;
	if (most > 1) {
		pieces.piece = calloc(most, sizeof(*pieces.piece));
		pieces.iov = calloc(most, sizeof(*pieces.iov));
	}
	if (pieces.piece && pieces.iov) {
		if (most == 1)
			cut_one(&pieces, end, buffer, bytes, offset, &like);
		for (i = 0; most > 1 && i < server.nr_members; i++) {
			cut(&pieces, i, buffer, bytes, offset, &like);
			end[i] = pieces.nr;
		}
		perform(&batch, &pieces, end);
		error = fua ? finish_fua(end) : 0;
		error = account(&batch, &pieces, bytes, error);
	}
	if (most > 1) {
		free(pieces.piece);
		free(pieces.iov);
	}
	return error;
}
