/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Senders: how many the rest are. So many parts of the disk are the rest's.
 *
 * Where a host says who sent a request, those who have one in the rest are
 * counted. But a process may serve many, and others are not known. Senders keep
 * to their places: what comes next after a request was served is mostly of the
 * same sender. If it is nearer to the one just served than all others that are
 * outstanding, its sender has no other one outstanding. If it is so by chance
 * alone, all are of one sender. The greater number holds.
 */
#ifndef SS_SENDERS_H
#define SS_SENDERS_H

#include "../policy.h"
#include "../request.h"

#include <linux/list.h>
#include <linux/types.h>

/* Known senders that are told apart at a time. Half: fewer; double: memory. */
#define NR_SENDERS 64

/* Of some requests: is the next one the nearest to the one just served? */
struct ss_nearest {
	u64 served_sector; /* where the one served last ended */
	bool open; /* and none has come since */
	/* Means, times SENDERS_ONE: */
	u16 own; /* 1 if it was, else 0 */
	u16 before; /* than how many others it was nearer; 0 if it was not */
};

/* A sender that a host, an area or a weight tells (apart.c). */
struct ss_sender {
	struct ss_nearest nearest; /* of what is in no stream */
	u64 owner; /* or SS_OWNER_NONE: nobody's */
	u64 came_ns; /* its latest request */
	u32 nr_rest; /* its requests that the rest has, or has sent */
	u32 nr_streamless; /* since one was of a stream that takes turns */
	bool several; /* it has more reads at once than some other */
};

struct ss_senders {
	struct ss_nearest nearest; /* of the rest */
	u32 nr_rest; /* of those below, with something in the rest */
	struct ss_sender sender[NR_SENDERS];
};

#define SENDERS_ONE 1024
/*
 * Of an area's until it is seen: more than half, so two at once are of two.
 * Half of it: two readers of a small file are one that has two; double: nobody
 * ever has two.
 */
#define SENDERS_SOME (SENDERS_ONE * 3 / 5)

/*
 * @rq comes. It is compared with others on @age (oldest first, by age_node):
 * with those of the party or sender @whose, or with all if that is NULL.
 */
void ss_nearest_arrived(struct ss_nearest *nearest, const struct ss_request *rq,
			const struct list_head *age, const void *whose);

/* @rq of @nearest is done. */
static inline void ss_nearest_completed(struct ss_nearest *nearest,
					const struct ss_request *rq)
{
	nearest->served_sector = ss_request_end(rq);
	nearest->open = true;
}

/* How many have sent @nr_outstanding of @nearest, at least 1; in percent. */
u32 ss_nearest_percent(const struct ss_nearest *nearest, u32 nr_outstanding);

#endif
