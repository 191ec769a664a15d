/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Areas: who sends what is in no stream, where no host says.
 *
 * Senders keep to their places, so what comes next after a request was served
 * is mostly of its sender. Such a pair is a link. A place that hardly any of
 * the latest links passes over is the border of two senders' areas. Of one
 * area, or of very many, none is told apart.
 */
#ifndef SS_AREAS_H
#define SS_AREAS_H

#include "../request.h"

#include <linux/types.h>

/*
 * The latest links, of which half tell apart at first. Half: who is seldom
 * served is lost; double: learns late.
 */
#define NR_LINKS 512
/* Of more, none counts. Half: few tell apart; double: two are taken for one. */
#define NR_AREAS 12

struct ss_area {
	u64 begin_sector;
	u64 end_sector;
	u64 owner; /* stands for its sender; 0: given on */
};

struct ss_areas {
	u64 served_sector; /* where the one served last ended */
	bool open; /* and none has come since */
	u32 nr_links; /* until now */
	u32 nr; /* of those below, by position */
	u64 last_owner; /* given */
	struct ss_area area[NR_AREAS];
	u32 link[NR_LINKS][2]; /* both ends, as areas.c has them */
	u32 nr_ends; /* of those below, two for each link */
	u32 end[2 * NR_LINKS]; /* the same in order */
};

/*
 * Who may have sent @rq, which has just come, has no known owner and is of no
 * established stream: an owner that no host has, or SS_OWNER_NONE.
 * @place_sectors: how wide a stream's place is.
 */
u64 ss_areas_owner(struct ss_areas *areas, const struct ss_request *rq,
		   u64 place_sectors);

/* @rq, which was of no established stream, is done. */
static inline void ss_areas_completed(struct ss_areas *areas,
				      const struct ss_request *rq)
{
	areas->served_sector = ss_request_end(rq);
	areas->open = true;
}

#endif
