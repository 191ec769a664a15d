/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Elsewhere: a stream whose reader goes on at another place, as where a file is
 * in pieces.
 *
 * While a stream has nothing pending in its own turn, the first request that is
 * of no stream may be its reader's next. It was if others go on from it before
 * any goes on from the stream. A reader that has done so once is believed the
 * next time: its stream has the request and goes on there, with its turn and
 * what it owes. If a request then comes to where the stream was, the one that
 * was believed was another's.
 */
#ifndef SS_ELSEWHERE_H
#define SS_ELSEWHERE_H

#include "party.h"

/*
 * The stream that @rq goes on from elsewhere, or NULL. @rq is sync, has just
 * arrived, and goes on from no stream at its place.
 */
struct ss_stream *ss_elsewhere_find(const struct ss_policy *policy,
				    const struct ss_request *rq);

/* @rq goes on from @s at its place. */
void ss_elsewhere_goes_on(const struct ss_policy *policy, struct ss_stream *s,
			  const struct ss_request *rq);

#endif
