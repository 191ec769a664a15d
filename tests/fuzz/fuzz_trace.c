// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: the trace readers. The input is a trace; its last two bytes
 * say the format (or that it is to be detected), whether bad records are
 * skipped, and into what pieces it is cut on its way in.
 */
#include "../../sim/trace.h"
#include "check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DETECT 0x40
#define SKIP_BAD 0x80

static void check_request(const struct trace_request *rq, u64 last_ns)
{
	CHECK(rq->nr_sectors);
	CHECK(rq->direction <= 1);
	CHECK(rq->line);
	CHECK(rq->arrival_ns >= last_ns);
	CHECK(rq->complete_ns == TRACE_NO_TIME ||
	      rq->complete_ns >= rq->arrival_ns);
}

/* Take out what there is; false when the trace is bad or at its end. */
static bool take_all(struct trace_reader *reader, bool skip_bad, u64 *last_ns)
{
	struct trace_request rq;
	const char *why;
	int got;

	while ((got = trace_next(reader, &rq)) > 0) {
		check_request(&rq, *last_ns);
		*last_ns = rq.arrival_ns;
	}
	if (got == 0)
		return true;
	CHECK(got == -1);
	(void)skip_bad; /* some errors, such as a bad header, end it anyway */
	why = trace_why(reader);
	CHECK(why && why[0]);
	CHECK(!strchr(why, '\n'));
	return false;
}

/* Cut them as the files of several processors are. */
static void cut_all(const uint8_t *bytes, u64 nr, u64 most)
{
	struct trace_cut cut;
	u64 at = 0;

	while (at < nr) {
		trace_cut_records(bytes + at, nr - at, ~0ULL - 1, most, &cut);
		CHECK(cut.nr <= most && cut.bytes <= nr - at);
		at += cut.bytes;
		if (!cut.bad && (!cut.nr || cut.next_ns == TRACE_NO_TIME))
			break;
		if (cut.bad) {
			CHECK(nr - at >= 48);
			at += trace_to_magic(bytes + at, nr - at);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr)
{
	struct trace_reader *reader;
	const char *format;
	u64 last_ns = 0, at = 0, piece;
	bool skip_bad, good = true;
	uint8_t how;

	if (nr < 2)
		return 0;
	nr -= 2;
	how = bytes[nr];
	cut_all(bytes, nr, 1 + how);
	piece = 1 + bytes[nr + 1] * 16U;
	skip_bad = how & SKIP_BAD;
	format = trace_formats[(how & 63) % trace_nr_formats].name;
	if (how & DETECT)
		format = trace_detect(bytes, nr);
	if (!format)
		return 0;
	reader = trace_open(format, skip_bad);
	CHECK(reader);
	while (good && at < nr) {
		if (piece > nr - at)
			piece = nr - at;
		CHECK(!trace_feed(reader, bytes + at, piece, at + piece == nr));
		at += piece;
		good = take_all(reader, skip_bad, &last_ns);
	}
	if (good && !nr)
		CHECK(!trace_feed(reader, bytes, 0, true));
	if (good && take_all(reader, skip_bad, &last_ns))
		CHECK(trace_at_end(reader));
	trace_close(reader);
	return 0;
}
