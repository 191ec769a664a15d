/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The request as the scheduler sees it.
 *
 * A host embeds struct ss_request in its own request. The fields of the first
 * part are the host's: set before the request is handed to
 * ss_sched_arrived(), changed only through the calls of sched.h. The rest is
 * the scheduler's and means nothing to a host.
 */
#ifndef SS_REQUEST_H
#define SS_REQUEST_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

/* Directions; they index per-direction arrays. */
#define SS_READ 0
#define SS_WRITE 1
#define SS_DIRECTIONS 2

/* Somebody waits for it: every read, a direct or fsync'ed write. */
#define SS_SYNC 0x01
/* File system metadata. */
#define SS_META 0x02
#ifndef SS_MAINLINE
/* Nobody wants its data: it is to bring the head there (core/array/array.h). */
#define SS_PLACING 0x04
#endif
/* Metadata that nobody needs soon, read ahead: nobody waits for it. */
#define SS_AHEAD 0x08
/*
 * A write with SS_SYNC that was handed on, as a loop device does: whether
 * somebody waited for it where it came from is no longer known.
 */
#define SS_HANDED_ON 0x10

/* The owner of a request is an opaque number; this one means "not known". */
#define SS_OWNER_NONE 0

struct ss_request {
	u64 sector; /* first sector, in 512-byte sectors */
	u32 nr_sectors; /* length, at least 1 */
	u8 direction; /* SS_READ or SS_WRITE */
	u8 flags; /* SS_SYNC ...; stream changes who is waited for */
	bool behind; /* stream: when it was dispatched others were farther */
	bool cached; /* stream: it went to the disk without the head */
	u64 owner; /* who sent it, SS_OWNER_NONE if not known */
	u32 weight; /* of its sender, in percent of the usual; 0: usual */

	/* Set by the scheduler; a host may read them. */
	u64 arrival_ns;
	u64 dispatch_ns;
	u64 from_sector; /* where the head was when it was dispatched */

	/* The scheduler's own, below. */
	u32 host_merges; /* requests that this one has absorbed */
	void *party; /* stream: its queue is this one's; NULL: the inner's */
	struct hlist_node start_hash; /* merge index: by first sector */
	struct hlist_node end_hash; /* merge index: by the sector behind it */

	struct rb_node sort_node; /* the policy's order by position */
	/* Side by side: taking it out touches the same neighbours twice. */
	struct list_head fifo_node; /* the policy's order by age */
	struct list_head age_node; /* stream: all pending, oldest first */
	u64 expires_ns; /* when the policy calls it expired, or U64_MAX */
	void *stream; /* the stream it is of (or group, or owner) */
	void *sender; /* stream: who sent it, while the rest has it, or NULL */

#ifndef SS_MAINLINE
	void *queue; /* the policy's queue it stands in */
	u32 budget; /* linus: what others may still cost it */
	u32 stream_size; /* ss: its place in its stream, from 1 */
	struct list_head array_node; /* array: pending, and in no turn */
	void *array_request; /* array: what it is there, or NULL */
#endif
};

static inline u64 ss_request_end(const struct ss_request *rq)
{
	return rq->sector + rq->nr_sectors;
}

/* The first request of a list by fifo_node that is not @skip, or NULL. */
static inline struct ss_request *ss_first_but(const struct list_head *fifo,
					      const struct ss_request *skip)
{
	struct ss_request *rq;

	list_for_each_entry(rq, fifo, fifo_node)
		if (rq != skip)
			return rq;
	return NULL;
}

/*
 * @rq, whose arrival is earlier now, takes its place by age again: on the list
 * @head, oldest first, on which it is by its @node.
 */
#define ss_older(head, rq, node)                                               \
	ss_older_at(head, rq, offsetof(struct ss_request, node))

static inline void ss_older_at(struct list_head *head, struct ss_request *rq,
			       size_t node_at)
{
	struct list_head *node = (struct list_head *)((char *)rq + node_at);
	struct list_head *at = node->prev;

	for (; at != head; at = at->prev) {
		const struct ss_request *before =
			(struct ss_request *)((char *)at - node_at);

		if (before->arrival_ns <= rq->arrival_ns)
			break;
	}
	list_move(node, at);
}

/*
 * Puts @rq on a list in order of age: at its end, unless it was taken over and
 * is older than what is there.
 */
#define ss_add_by_age(head, rq, node)                                          \
	ss_add_by_age_at(head, rq, offsetof(struct ss_request, node))

static inline void ss_add_by_age_at(struct list_head *head,
				    struct ss_request *rq, size_t node_at)
{
	list_add_tail((struct list_head *)((char *)rq + node_at), head);
	ss_older_at(head, rq, node_at);
}

static inline bool ss_request_is_sync(const struct ss_request *rq)
{
	return rq->direction == SS_READ || (rq->flags & SS_SYNC);
}

/*
 * Does somebody wait for @rq, or will as soon as it is sent? For a read unless
 * SS_AHEAD is set, for a write if SS_SYNC is. Without a branch: no processor
 * can foresee the direction.
 */
static inline bool ss_request_is_awaited(const struct ss_request *rq)
{
	u32 flag = rq->direction == SS_READ ? SS_AHEAD : SS_SYNC;

	return (rq->flags ^ SS_AHEAD) & flag;
}

#endif
