// SPDX-License-Identifier: GPL-2.0-only
/*
 * blktrace's binary events: what blktrace -o - and blkparse -d write, and the
 * kernel's blk tracer with its bin option. A record is 48 bytes in the byte
 * order of the machine that was traced, then pdu_len bytes that belong to it:
 *
 *	0 magic  4 sequence  8 time  16 sector  24 bytes  28 action
 *	32 pid  36 device  40 cpu  44 error  46 pdu_len
 */
#include "trace_events.h"

#define MAGIC 0x65617407U /* "eat", version 7 */
#define RECORD_BYTES 48

/* The high half of the action: categories. */
#define TC_WRITE (1U << 17)
#define TC_SYNC (1U << 19)
#define TC_PC (1U << 25) /* a command of its own, not a read or write */
#define TC_NOTIFY (1U << 26)
#define TC_META (1U << 28)
#define TC_DISCARD (1U << 29)
#define TC_DRIVER (1U << 30)
/* The low half: what happened, and that a cgroup's number is in the pdu. */
#define TA_MASK 0xffffU
#define TA_CGROUP 0x100U
#define TA_QUEUE 1
#define TA_ISSUE 7
#define TA_COMPLETE 8

struct blktrace_state {
	struct trace_events events;
	bool known_order;
	bool swap;
	bool lost; /* behind a bad record, looking for the next one */
};

static inline u32 get32(const u8 *at, bool swap)
{
	u32 value;

	memcpy(&value, at, sizeof(value));
	return swap ? __builtin_bswap32(value) : value;
}

static inline u64 get64(const u8 *at, bool swap)
{
	u64 value;

	memcpy(&value, at, sizeof(value));
	return swap ? __builtin_bswap64(value) : value;
}

static inline u16 get16(const u8 *at, bool swap)
{
	u16 value;

	memcpy(&value, at, sizeof(value));
	return swap ? __builtin_bswap16(value) : value;
}

static bool detect(const u8 *bytes, u64 nr)
{
	return nr >= 4 &&
	       (get32(bytes, false) == MAGIC || get32(bytes, true) == MAGIC);
}

u64 trace_to_magic(const u8 *bytes, u64 nr)
{
	u64 at = 0;

	while (at + 4 <= nr && !detect(bytes + at, nr - at))
		at++;
	return at;
}

void trace_cut_records(const u8 *bytes, u64 nr, u64 until_ns, u64 most,
		       struct trace_cut *cut)
{
	u64 length, time_ns = 0;
	bool swap;

	memset(cut, 0, sizeof(*cut));
	cut->next_ns = TRACE_NO_TIME;
	while (nr - cut->bytes >= RECORD_BYTES) {
		swap = get32(bytes, false) != MAGIC;
		if (swap && get32(bytes, true) != MAGIC) {
			cut->bad = true;
			return;
		}
		length = RECORD_BYTES + get16(bytes + 46, swap);
		if (nr - cut->bytes < length)
			return;
		/* A message belongs to no request; its time is no order. */
		if (!(get32(bytes + 28, swap) & TC_NOTIFY))
			time_ns = get64(bytes + 8, swap);
		if (time_ns > until_ns || cut->nr == most) {
			cut->next_ns = time_ns;
			return;
		}
		cut->bytes += length;
		cut->nr++;
		bytes += length;
	}
}

static u8 action_of(u32 action)
{
	if (action & (TC_NOTIFY | TC_DRIVER | TC_DISCARD | TC_PC))
		return EVENT_OTHER;
	switch (action & TA_MASK & ~TA_CGROUP) {
	case TA_QUEUE:
		return EVENT_QUEUE;
	case TA_ISSUE:
		return EVENT_ISSUE;
	case TA_COMPLETE:
		return EVENT_COMPLETE;
	}
	return EVENT_OTHER;
}

/* The magic number; the first one tells the byte order. */
static inline bool is_magic(struct blktrace_state *state, const u8 *at)
{
	if (likely(get32(at, state->swap) == MAGIC)) {
		state->known_order = true;
		return true;
	}
	if (state->known_order || get32(at, true) != MAGIC)
		return false;
	state->known_order = true;
	state->swap = true;
	return true;
}

/* Behind a bad record: go on where the next magic number stands. */
static enum trace_step resync(struct trace_reader *reader,
			      struct blktrace_state *state)
{
	u64 nr = trace_ready(reader), at = 0;
	const u8 *bytes = reader->bytes + reader->head;

	while (at + 4 <= nr && !is_magic(state, bytes + at))
		at++;
	state->lost = at + 4 > nr;
	if (state->lost && reader->last)
		at = nr;
	trace_consume(reader, at);
	return state->lost ? TRACE_MORE : TRACE_SKIP;
}

static enum trace_step bad_magic(struct trace_reader *reader,
				 struct blktrace_state *state, u32 magic)
{
	bool stop;

	reader->line++;
	stop = trace_fail(
		reader,
		"record %llu (byte %llu): bad magic 0x%08x, expected 0x%08x",
		(unsigned long long)reader->line,
		(unsigned long long)reader->offset, magic, MAGIC);
	if (stop)
		return TRACE_BAD;
	trace_consume(reader, 1);
	state->lost = true;
	return TRACE_SKIP;
}

/* The slow way to say whether the device of the record counts. */
static enum trace_step other_device(struct trace_reader *reader, u64 device)
{
	struct trace_record record = { .device = device };

	return trace_check_device(reader, &record);
}

static enum trace_step too_large(struct trace_reader *reader, u64 sector)
{
	bool stop = trace_fail(
		reader, "record %llu (byte %llu): sector %llu is too large",
		(unsigned long long)reader->line,
		(unsigned long long)reader->offset, (unsigned long long)sector);

	return stop ? TRACE_BAD : TRACE_SKIP;
}

/* An event that may concern a request. */
static inline enum trace_step add_event(struct trace_reader *reader,
					struct blktrace_state *state,
					const u8 *at, u32 action, u8 what,
					const bool swap)
{
	struct trace_event *event;
	u64 sector = get64(at + 16, swap), device = get32(at + 36, swap);
	u64 nr = get32(at + 24, swap) + TRACE_SECTOR_BYTES - 1;
	enum trace_step step;

	if (unlikely(!reader->have_device || reader->device != device)) {
		step = other_device(reader, device);
		if (step != TRACE_REQUEST)
			return step;
	}
	nr >>= TRACE_SECTOR_SHIFT;
	if (unlikely(sector > TRACE_MAX_SECTORS - nr))
		return too_large(reader, sector);
	step = trace_events_add(reader, &state->events, what,
				get64(at + 8, swap), get32(at + 40, swap),
				&event);
	if (step != TRACE_REQUEST)
		return step;
	event->sector = sector;
	event->nr_sectors = nr;
	event->line = reader->line;
	event->owner = get32(at + 32, swap);
	event->direction = action & TC_WRITE ? SS_WRITE : SS_READ;
	event->flags = (action & TC_SYNC ? SS_SYNC : 0) |
		       (action & TC_META ? SS_META : 0);
	return TRACE_REQUEST;
}

/* One record, of the byte order that is known. */
static inline enum trace_step take_whole(struct trace_reader *reader,
					 struct blktrace_state *state,
					 const bool swap)
{
	const u8 *at = reader->bytes + reader->head;
	u64 ready = trace_ready(reader);
	u64 nr = RECORD_BYTES + get16(at + 46, swap);
	enum trace_step step = TRACE_SKIP;
	u32 action;
	u8 what;

	if (unlikely(ready < nr)) {
		if (!reader->last)
			return TRACE_MORE;
		return trace_fail_truncated(reader, ready, nr);
	}
	reader->line++;
	action = get32(at + 28, swap);
	what = action_of(action);
	if (what != EVENT_OTHER && get32(at + 24, swap)) {
		step = add_event(reader, state, at, action, what, swap);
		if (step == TRACE_BAD)
			return TRACE_BAD;
	}
	trace_consume(reader, nr);
	return step;
}

static inline enum trace_step take_record(struct trace_reader *reader)
{
	struct blktrace_state *state = reader->state;
	const u8 *at = reader->bytes + reader->head;
	u64 ready = trace_ready(reader);

	if (unlikely(state->lost))
		return resync(reader, state);
	if (unlikely(ready < RECORD_BYTES)) {
		if (!ready || !reader->last)
			return TRACE_MORE;
		return trace_fail_truncated(reader, ready, RECORD_BYTES);
	}
	if (unlikely(!is_magic(state, at)))
		return bad_magic(reader, state, get32(at, state->swap));
	/* Twice, so that neither asks for the order at each number. */
	if (state->swap)
		return take_whole(reader, state, true);
	return take_whole(reader, state, false);
}

static enum trace_step next(struct trace_reader *reader,
			    struct trace_request *rq)
{
	struct blktrace_state *state = reader->state;

	return trace_events_drive(reader, &state->events, take_record, rq);
}

static void close(struct trace_reader *reader)
{
	struct blktrace_state *state = reader->state;

	trace_events_close(&state->events);
}

const struct trace_ops trace_blktrace_ops = {
	.state_size = sizeof(struct blktrace_state),
	.parse_device = trace_parse_major_minor,
	.print_device = trace_print_major_minor,
	.next = next,
	.detect = detect,
	.close = close,
};
