// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which mirror serves a read. See mirror.h.
 */
#include "mirror.h"

#include <linux/limits.h>
#include <linux/minmax.h>

/*
 * A stream without a request for so long has ended. It is the default
 * wait_target: a request waits at most so long, and then its sender goes on.
 */
#define RECENT_NS 500000000ULL

static bool is_recent(const struct ss_mirror_stream *stream, u64 now_ns)
{
	return stream->nr_requests && now_ns - stream->last_ns < RECENT_NS;
}

/* A single request is no stream yet. */
static bool is_stream(const struct ss_mirror_stream *stream, u64 now_ns)
{
	return stream->nr_requests > 1 && is_recent(stream, now_ns);
}

/* An entry for a new sequence: the oldest, of streams only if all are. */
static struct ss_mirror_stream *replace(struct ss_mirrors *mirrors, u64 now_ns)
{
	struct ss_mirror_stream *oldest = &mirrors->stream[0];
	u32 i;

	for (i = 1; i < SS_MIRROR_STREAMS; i++) {
		struct ss_mirror_stream *stream = &mirrors->stream[i];
		bool keep = is_stream(stream, now_ns);
		bool keep_oldest = is_stream(oldest, now_ns);

		if (keep != keep_oldest ? keep_oldest :
					  stream->last_ns < oldest->last_ns)
			oldest = stream;
	}
	oldest->nr_requests = 0;
	return oldest;
}

/*
 * For a single request, or the first of a stream: one of the least loaded
 * mirrors, and of those the one with the nearest head. When all are busy one
 * request more is worth a shorter way.
 */
static u32 place(const struct ss_mirror *mirror, const u32 *streams, u32 nr)
{
	u32 i, least = U32_MAX, best = nr;

	for (i = 0; i < nr; i++)
		if (mirror[i].usable)
			least = min_t(u32, least,
				      streams[i] + mirror[i].nr_requests);
	for (i = 0; i < nr; i++)
		if (mirror[i].usable &&
		    streams[i] + mirror[i].nr_requests <= least + !!least &&
		    (best == nr || mirror[i].distance < mirror[best].distance))
			best = i;
	return best;
}

u32 ss_mirror_choose(struct ss_mirrors *mirrors, const struct ss_mirror *mirror,
		     u32 nr, u64 sector, u32 nr_sectors, u64 now_ns)
{
	struct ss_mirror_stream *at, *stream = NULL;
	u32 streams[SS_ARRAY_MEMBERS] = { 0 };
	u32 i, fewest = nr;

	for (i = 0; i < SS_MIRROR_STREAMS; i++) {
		at = &mirrors->stream[i];
		streams[at->mirror] += is_stream(at, now_ns);
		/* The one that the request goes on from. */
		if (!stream && at->end_sector == sector &&
		    is_recent(at, now_ns))
			stream = at;
	}
	for (i = 0; i < nr; i++)
		if (mirror[i].usable &&
		    (fewest == nr || streams[i] < streams[fewest]))
			fewest = i;
	if (!stream) {
		stream = replace(mirrors, now_ns);
		stream->mirror = place(mirror, streams, nr);
	} else if (!mirror[stream->mirror].usable ||
		   streams[stream->mirror] > streams[fewest] + 1) {
		/* One seek now; from then on each head has fewer places. */
		stream->mirror = fewest;
	}
	stream->end_sector = sector + nr_sectors;
	stream->last_ns = now_ns;
	stream->nr_requests += stream->nr_requests < 2;
	return stream->mirror;
}
