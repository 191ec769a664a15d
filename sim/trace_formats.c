// SPDX-License-Identifier: GPL-2.0-only
/*
 * The formats there are: one row each. The order is that of the tables in
 * the documentation and of `streamsched formats`.
 */
#include "trace_internal.h"

#define FORMATS(row)                                                           \
	row("blkparse", false, trace_blkparse_ops,                             \
	    "text that blkparse prints, its default layout")                   \
	row("blktrace", true, trace_blktrace_ops,                              \
	    "binary events of blktrace -o - or blkparse -d, either byte order") \
	row("fio-v2", false, trace_fio2_ops,                                   \
	    "fio's write_iolog version 2, times from its wait lines")          \
	row("fio-v3", false, trace_fio3_ops,                                   \
	    "fio's write_iolog version 3, with microseconds")                  \
	row("msr", false, trace_msr_ops,                                       \
	    "MSR Cambridge CSV, with response times (SNIA 388)")               \
	row("spc", false, trace_spc_ops,                                       \
	    "SPC, as the UMass Financial and WebSearch traces")                \
	row("alibaba", false, trace_alibaba_ops,                               \
	    "Alibaba Cloud block traces of 2020, CSV")                         \
	row("tencent", false, trace_tencent_ops,                               \
	    "Tencent cloud block storage CSV (SNIA 27917)")                    \
	row("systor", false, trace_systor_ops,                                 \
	    "SYSTOR '17 virtual desktop CSV, with response times (SNIA 4964)") \
	row("fiu", false, trace_fiu_ops,                                       \
	    "FIU traces with a content hash per line (SNIA 391)")              \
	row("vscsi", true, trace_vscsi1_ops,                                   \
	    "CloudPhysics vscsi, binary, version 1, 32 bytes a record")        \
	row("vscsi2", true, trace_vscsi2_ops,                                  \
	    "CloudPhysics vscsi, binary, version 2, 40 bytes a record")        \
	row("disksim", false, trace_disksim_ops, "DiskSim's ascii format")

#define AS_FORMAT(name, binary, ops, help) { name, help, binary },
#define AS_OPS(name, binary, ops, help) &ops,

const struct trace_format trace_formats[] = { FORMATS(AS_FORMAT) };

static const struct trace_ops *const all_ops[] = { FORMATS(AS_OPS) };

const u32 trace_nr_formats = sizeof(all_ops) / sizeof(all_ops[0]);

const struct trace_ops *trace_format_ops(u32 format)
{
	return all_ops[format];
}
