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

/* A sender that a host or an area tells; what it has apart is apart.c's. */
struct ss_sender {
	u64 owner; /* or SS_OWNER_NONE: nobody's */
	u64 came_ns; /* its latest request */
	u32 nr_rest; /* its requests that the rest has, or has sent */
	u32 nr_streamless; /* since one was of a stream that takes turns */
	u32 nr_alone; /* came one after another while it had no other */
	bool several; /* before these it had more reads at once than others */
};

struct ss_senders {
	u64 served_sector; /* where the one served last ended */
	bool open; /* and none has come since */
	u32 own; /* how often the next one was nearest, of SENDERS_ONE */
	u32 nr_rest; /* of those below, with something in the rest */
	struct ss_sender sender[NR_SENDERS];
};

#define SENDERS_ONE 1024

/*
 * @rq comes to the rest, whose others pending are on @age, oldest first, by
 * their age_node.
 */
void ss_senders_arrived(struct ss_senders *senders, const struct ss_request *rq,
			const struct list_head *age);

/* @rq of the rest is done. */
static inline void ss_senders_completed(struct ss_senders *senders,
					const struct ss_request *rq)
{
	senders->served_sector = ss_request_end(rq);
	senders->open = true;
}

/* @sender has one request more in the rest, or one less. */
static inline void ss_senders_joined(struct ss_senders *senders,
				     struct ss_sender *sender)
{
	senders->nr_rest += !sender->nr_rest++;
}

static inline void ss_senders_left(struct ss_senders *senders,
				   struct ss_sender *sender)
{
	senders->nr_rest -= !--sender->nr_rest;
}

/* How many have sent @nr_outstanding requests, at least 1; in percent. */
u32 ss_senders_percent(const struct ss_senders *senders, u32 nr_outstanding);

#endif
