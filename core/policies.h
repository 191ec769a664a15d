/* SPDX-License-Identifier: GPL-2.0-only */
/* Every policy's ops table, by the file that holds it. */
#ifndef SS_POLICIES_H
#define SS_POLICIES_H

#include "policy.h"

extern const struct ss_policy_ops ss_noop_ops; /* policy/noop.c */
extern const struct ss_policy_ops ss_deadline_ops; /* policy/deadline.c */
extern const struct ss_policy_ops ss_cscan_ops; /* policy/cscan.c */
extern const struct ss_policy_ops ss_sptf_ops; /* policy/sptf.c */
extern const struct ss_policy_ops ss_linus_ops; /* policy/linus.c */
extern const struct ss_policy_ops ss_stride_ops; /* policy/stride.c */
extern const struct ss_policy_ops ss_wfq_ops; /* policy/wfq.c */
extern const struct ss_policy_ops
	ss_anticipatory_ops; /* policy/anticipatory.c */
extern const struct ss_policy_ops ss_cooperative_ops; /* policy/cooperative.c */
extern const struct ss_policy_ops ss_cfq_ops; /* policy/cfq.c */
extern const struct ss_policy_ops ss_nwcs_ops; /* policy/nwcs.c */
extern const struct ss_policy_ops ss_ss_ops; /* policy/ss.c */
extern const struct ss_policy_ops ss_stream_ops; /* stream/stream.c */

#endif
