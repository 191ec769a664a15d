/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Apart: what a sender has in a party of its own, if a host says who it is, its
 * area does (areas.c) or its weight.
 *
 * In the rest each request has as much of the disk as any other. So a sender
 * with more reads at once than others would have more than its part there, and
 * one that has used less would wait with all others: these are apart. But a
 * server sends for many: what counts is how many one of these has. All else
 * is left to the inner policy, which serves many together better than one by
 * one. Who sends a stream that takes turns has its part by that.
 */
#ifndef SS_APART_H
#define SS_APART_H

#include "party.h"

/*
 * The party of @rq, which has just arrived and would else be of @party. If that
 * is the rest its sender is noted in it.
 */
struct ss_party *ss_apart_party(struct ss_policy *policy,
				struct ss_party *party, struct ss_request *rq,
				u64 now_ns);

#endif
