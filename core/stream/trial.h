/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The comparison: does the inner policy serve more, and nobody less?
 *
 * While the head waits for three quarters of the time, a drive whose cache
 * works for several at once might serve the others meanwhile. So the inner
 * policy has everything for a moment, now and then, and keeps it where the
 * disk served more that way and no party clearly less. Then turns are tried
 * now and then.
 */
#ifndef SS_TRIAL_H
#define SS_TRIAL_H

#include "party.h"

/* At each arrival and completion: is it time to try the other way? */
void ss_trial_time_passes(struct ss_policy *policy, u64 now_ns);

/* @rq is done. */
void ss_trial_done(struct ss_policy *policy, const struct ss_request *rq);

#endif
