/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Choosing: which party goes on, and with which of its requests. A pure
 * question: nothing here writes anything.
 */
#ifndef SS_CHOOSE_H
#define SS_CHOOSE_H

#include "party.h"

struct ss_decision ss_choose(const struct ss_policy *policy, u64 now_ns,
			     const struct ss_request *skip);

/* What would be done if nobody went on at the place that is served. */
struct ss_decision ss_choose_instead(const struct ss_policy *policy,
				     u64 now_ns);

#endif
