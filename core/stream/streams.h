/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Streams: which requests go on from each other. Knows no turn and no queue.
 *
 * By the paper's inequality (FAST 2011, section 2.1) a request is the child of
 * a stream if waiting for it and positioning to it cost less than positioning
 * to what would be done instead. A stream too short to take turns is a
 * candidate. party.c asks for the stream of each sync request that arrives.
 */
#ifndef SS_STREAMS_H
#define SS_STREAMS_H

#include "../curve.h"
#include "../places.h"
#include "../policy.h"
#include "../request.h"
#include "think.h"

#include <linux/list.h>
#include <linux/types.h>

/* Streams remembered at once, candidates included. */
#define NR_STREAMS SS_PLACES

/* Who may be waited for. */
struct ss_reader {
	struct ss_think think;
	u64 idle_since_ns; /* its last open request was done */
	bool contended; /* others were pending when it became idle */
	u32 owner; /* of a stream's latest member, its low half */
};

struct ss_stream {
	struct list_head node; /* on free, candidates or known */
	struct ss_reader reader;
	u32 size; /* members so far */
	u32 nr_open; /* members that are not done, in any queue */
	u32 nr_apart; /* of those pending: not in its party's own queue */
	u16 with; /* its reader's place is that of this stream, by number */
	bool is_new : 1; /* its number was another's: no party of it yet */
	bool established : 1; /* it takes turns */
	bool roams : 1; /* it has gone on elsewhere before */
	bool kept : 1; /* it has the turn, or will go on in it */
};

struct ss_streams {
	struct list_head free;
	struct list_head candidates; /* too short for a party, oldest first */
	struct list_head known; /* established streams, oldest first */
	struct ss_stream stream[NR_STREAMS];
	struct ss_places places; /* where each ends, by its number */
};

void ss_streams_init(struct ss_streams *streams);

/*
 * The stream that sync @rq, which has just arrived, goes on from, or NULL. At
 * the place of a stream that takes turns it is a new one where there is none.
 * @together_ns: what a request takes where several are in the drive, or 0.
 */
struct ss_stream *ss_streams_find(struct ss_streams *streams,
				  const struct ss_policy *policy,
				  struct ss_request *rq, u64 together_ns,
				  u64 now_ns);

/*
 * How many sectors a place is wide: what the disk moves in the time of a switch
 * to another place and back. 0 while the curve knows no transfer rate.
 */
u64 ss_streams_place_sectors(const struct ss_curve *curve);

/*
 * @s ends at @end_sector now. Streams that end at one place are one: the result
 * is, of those there that take turns and are in use, the one of the lowest
 * number, so that all name the same; or @s itself. If it @stays it does not
 * join others before it takes turns: weights say who is who.
 */
struct ss_stream *ss_streams_goes_on(struct ss_streams *streams,
				     const struct ss_curve *curve,
				     struct ss_stream *s, u64 end_sector,
				     bool stays, u64 now_ns);

/* @s, established or not, is the last to be given to another. */
void ss_streams_used(struct ss_streams *streams, struct ss_stream *s);

/* A new candidate that ends where @rq does; NULL: all places are in use. */
struct ss_stream *ss_streams_begin(struct ss_streams *streams,
				   struct ss_request *rq);

static inline u32 ss_streams_index(const struct ss_streams *streams,
				   const struct ss_stream *s)
{
	return (u32)(s - streams->stream);
}

/* Where the last member of @s ends. */
static inline u64 ss_streams_end(const struct ss_streams *streams,
				 const struct ss_stream *s)
{
	return streams->places.place[ss_streams_index(streams, s)].sector;
}

/* @s ends at @sector now. */
static inline void ss_streams_ends_at(struct ss_streams *streams,
				      const struct ss_stream *s, u64 sector)
{
	ss_places_move(&streams->places, (u16)ss_streams_index(streams, s),
		       sector);
}

/* A member of @s is done or removed. True if none is open any more. */
static inline bool ss_streams_closes(struct ss_stream *s)
{
	return s->nr_open && !--s->nr_open;
}

#endif
