/* SPDX-License-Identifier: GPL-2.0-only */
/* Every policy's ops table, by the file that holds it. */
#ifndef SS_POLICIES_H
#define SS_POLICIES_H

#include "policy.h"

extern const struct ss_policy_ops ss_noop_ops; /* noop.c */
extern const struct ss_policy_ops ss_deadline_ops; /* deadline.c */
extern const struct ss_policy_ops ss_cscan_ops; /* cscan.c */
extern const struct ss_policy_ops ss_sptf_ops; /* sptf.c */
extern const struct ss_policy_ops ss_linus_ops; /* linus.c */
extern const struct ss_policy_ops ss_stride_ops; /* stride.c */
extern const struct ss_policy_ops ss_wfq_ops; /* wfq.c */
extern const struct ss_policy_ops ss_anticipatory_ops; /* anticipatory.c */
extern const struct ss_policy_ops ss_cooperative_ops; /* cooperative.c */
extern const struct ss_policy_ops ss_cfq_ops; /* cfq.c */
extern const struct ss_policy_ops ss_nwcs_ops; /* nwcs.c */
extern const struct ss_policy_ops ss_ss_ops; /* ss.c */
extern const struct ss_policy_ops ss_stream_ops; /* stream.c */

#endif
