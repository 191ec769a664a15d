/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Senders: how many the rest are. So many parts of the disk are the rest's.
 *
 * Who sent a request is not known, but senders keep to their places: what
 * comes next after a request was served is mostly of the same sender. If it is
 * nearer to the one just served than all others that are outstanding, its
 * sender has no other one outstanding. If it is so by chance alone, all are of
 * one sender.
 */
#ifndef SS_SENDERS_H
#define SS_SENDERS_H

#include "../policy.h"
#include "../request.h"

#include <linux/list.h>
#include <linux/types.h>

struct ss_senders {
	u64 served_sector; /* where the one served last ended */
	bool open; /* and none has come since */
	u32 own; /* how often the next one was nearest, of SENDERS_ONE */
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

/* How many have sent @nr_outstanding requests, at least 1; in percent. */
u32 ss_senders_percent(const struct ss_senders *senders, u32 nr_outstanding);

#endif
