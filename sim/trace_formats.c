// SPDX-License-Identifier: GPL-2.0-only
/*
 * The formats there are: one row each. The order is that of the tables in
 * the documentation and of `streamsched list formats`.
 */
#include "trace_internal.h"

const struct trace_format trace_formats[] = {
	{
		.name = "blkparse",
		.help = "text that blkparse prints, in its default layout",
		.ops = &trace_blkparse_ops,
	},
	{
		.name = "blktrace",
		.help = "binary events: blktrace -o - or blkparse -d, either byte order",
		.binary = true,
		.ops = &trace_blktrace_ops,
	},
	{
		.name = "ftrace",
		.help = "text of the kernel's block:* events: tracefs, perf script",
		.ops = &trace_ftrace_ops,
	},
	{
		.name = "fio-v2",
		.help = "fio's iolog version 2, times from its wait lines",
		.ops = &trace_fio2_ops,
	},
	{
		.name = "fio-v3",
		.help = "fio's iolog version 3 (fio 3.31 and later)",
		.ops = &trace_fio3_ops,
	},
	{
		.name = "msr",
		.help = "MSR Cambridge CSV (SNIA 388), with response times",
		.ops = &trace_msr_ops,
	},
	{
		.name = "spc",
		.help = "SPC, as the UMass Financial and WebSearch traces",
		.ops = &trace_spc_ops,
	},
	{
		.name = "alibaba",
		.help = "Alibaba cloud block traces of 2020, CSV",
		.ops = &trace_alibaba_ops,
	},
	{
		.name = "tencent",
		.help = "Tencent cloud block storage CSV (SNIA 27917)",
		.ops = &trace_tencent_ops,
	},
	{
		.name = "systor",
		.help = "SYSTOR '17 CSV (SNIA 4928), with response times",
		.ops = &trace_systor_ops,
	},
	{
		.name = "fiu",
		.help = "FIU text (SNIA 391), with a hash of the contents",
		.ops = &trace_fiu_ops,
	},
	{
		.name = "vscsi",
		.help = "CloudPhysics vscsi version 1, binary",
		.binary = true,
		.ops = &trace_vscsi1_ops,
	},
	{
		.name = "vscsi2",
		.help = "CloudPhysics vscsi version 2, binary, with response times",
		.binary = true,
		.ops = &trace_vscsi2_ops,
	},
	{
		.name = "disksim",
		.help = "DiskSim's ascii format",
		.ops = &trace_disksim_ops,
	},
	{
		.name = "mqsim",
		.help = "MQSim's ascii format, times in nanoseconds",
		.ops = &trace_mqsim_ops,
	},
};

const u32 trace_nr_formats = sizeof(trace_formats) / sizeof(trace_formats[0]);
