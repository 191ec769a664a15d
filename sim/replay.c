// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replaying a trace.
 *
 * Open: each request is sent at its time stamp, whatever has happened to
 * those before it; when all of the scheduler's requests are taken, reading
 * the trace pauses.
 *
 * Closed: a request waits for what it waited for when it was traced. Of its
 * owner's earlier requests, the last one that had completed by the time it
 * came is its parent: it is sent as long after the parent's completion as it
 * was then. If none had completed, it is sent as long after its predecessor
 * was sent. An owner's requests are sent in their order. Where the trace has no
 * completions, a request is taken to have completed after the time that the
 * curve gives it, or at the owner's next arrival if that is earlier; arrivals
 * closer than TOGETHER_NS were sent together.
 *
 * Memory is bounded: so many requests are known ahead, so many owners
 * remembered.
 */
#include "replay.h"

#include <string.h>

#define WINDOW (1 << 18)
#define WINDOW_PART 4096
#define OWNERS (1 << 14)
#define TOGETHER_NS (50 * SS_USEC)

/* A traced request from when it is read until it has completed. */
struct item {
	struct sim_replay *replay;
	struct trace_request traced;
	u64 complete_ns; /* in the trace; recorded or estimated */
	bool estimated;
	bool sent;
	bool due; /* it would be sent, but for an older one of its owner */
	u32 bios_left;
	/*
	 * In its owner's two lists: by age, and by completion in the trace,
	 * those that complete together by age.
	 */
	struct item *older, *younger; /* older: or the next free one */
	struct item *earlier, *later;
	struct item *after_done; /* children by completion */
	struct item *after_sent; /* children by sending */
	struct item *sibling;
	u64 think_ns; /* after the parent's event */
};

struct owner {
	u64 id;
	struct item *newest; /* of those not done */
	struct item *latest; /* of those not done, the last to complete */
	bool known;
	/* The one done that completed last in the trace. */
	u64 done_traced_ns, done_ns;
	/* The newest one. */
	u64 last_arrival_ns, last_sent_ns;
	u64 last_end_sector;
};

/* Memory for so many, allocated when the window comes to need it. */
struct item_part {
	struct item_part *next;
	struct item item[WINDOW_PART];
};

struct sim_replay {
	const struct sim_config *config;
	struct sim_clock *clock;
	struct sim_block *block;
	struct sim_array *array;
	struct sim_sources *sources;
	u64 first_start_ns, last_end_ns;
	u64 bytes[SS_DIRECTIONS];
	bool ended; /* the trace has */
	u64 in_flight; /* bios */
	u64 read; /* requests taken from the trace */
	bool have; /* open: next is set */
	struct trace_request next;
	/* closed */
	struct item_part *parts;
	struct item *free_item;
	u32 nr_items;
	struct owner *owner;
};

struct sim_replay *sim_replay_new(struct sim_block *block,
				  struct sim_array *array)
{
	struct sim_replay *replay = sim_alloc(sizeof(*replay));

	replay->config = block->config;
	replay->clock = block->clock;
	replay->block = block;
	replay->array = array;
	replay->sources = sim_sources_new();
	replay->first_start_ns = U64_MAX;
	if (replay->config->closed)
		replay->owner = sim_alloc(OWNERS * sizeof(*replay->owner));
	return replay;
}

void sim_replay_free(struct sim_replay *replay)
{
	if (!replay)
		return;
	while (replay->parts) {
		struct item_part *next = replay->parts->next;

		free(replay->parts);
		replay->parts = next;
	}
	sim_sources_free(replay->sources);
	free(replay->owner);
	free(replay);
}

struct sim_sources *sim_replay_sources(const struct sim_replay *replay)
{
	return replay->sources;
}

/* Bring a position onto the disk, or refuse it. */
static bool place(struct sim_replay *replay, struct trace_request *rq)
{
	u64 capacity = sim_array_capacity(replay->array);

	if (rq->nr_sectors <= capacity &&
	    rq->sector <= capacity - rq->nr_sectors)
		return true;
	if (!replay->config->wrap || rq->nr_sectors > capacity) {
		sim_fail(
			replay->clock,
			"%s %llu: sectors %llu to %llu lie beyond the disk's last sector %llu; choose a larger disk%s",
			trace_unit(sim_sources_reader(replay->sources)),
			(unsigned long long)rq->line,
			(unsigned long long)rq->sector,
			(unsigned long long)(rq->sector + rq->nr_sectors - 1),
			(unsigned long long)(capacity - 1),
			rq->nr_sectors > capacity ?
				"" :
				", or fold positions with --wrap");
		return false;
	}
	rq->sector %= capacity;
	if (rq->sector > capacity - rq->nr_sectors)
		rq->sector = capacity - rq->nr_sectors;
	return true;
}

/* So many bios of at most the largest size. */
static u32 nr_bios(const struct sim_replay *replay,
		   const struct trace_request *rq)
{
	u32 max = replay->config->max_request_sectors;

	return (rq->nr_sectors + max - 1) / max;
}

static void send(struct sim_replay *replay, const struct trace_request *rq,
		 u64 wanted_ns, void (*done)(struct sim_bio *), void *context)
{
	const struct sim_bio like = {
		.direction = rq->direction,
		.flags = rq->flags | (rq->direction == SS_READ ? SS_SYNC : 0),
		.job = (u32)rq->owner,
		.wanted_ns = wanted_ns,
		.done = done,
		.context = context,
	};

	if (replay->first_start_ns == U64_MAX)
		replay->first_start_ns = replay->clock->now_ns;
	replay->in_flight += nr_bios(replay, rq);
	sim_submit_range(replay->array, &like, rq->sector, rq->nr_sectors,
			 replay->config->max_request_sectors);
}

static void count_done(struct sim_replay *replay, const struct sim_bio *bio)
{
	replay->in_flight--;
	replay->bytes[bio->direction] += (u64)bio->nr_sectors * SECTOR_BYTES;
	replay->last_end_ns = replay->clock->now_ns;
}

/* ---- open ---- */

static void open_done(struct sim_bio *bio)
{
	count_done(bio->context, bio);
}

/* ---- closed ---- */

static void closed_send(void *context);

/* All of @list, linked by sibling, follow their parent's event, now. */
static void release(struct sim_clock *clock, struct item *list)
{
	struct item *next;

	for (; list; list = next) {
		next = list->sibling;
		sim_timer(clock, clock->now_ns + list->think_ns, closed_send,
			  list);
	}
}

static struct owner *owner_of(struct sim_replay *replay, u64 id)
{
	struct owner *owner =
		&replay->owner[(id * 0x9e3779b97f4a7c15ULL) >> 50];

	/* Two owners may meet here; the place changes hands when it is idle. */
	if (!owner->known || (owner->id != id && !owner->newest)) {
		memset(owner, 0, sizeof(*owner));
		owner->id = id;
	}
	return owner;
}

/* Put @item where its completion belongs; mostly near the end. */
static void sort_in(struct owner *owner, struct item *item)
{
	struct item *at = owner->latest, *above = NULL;

	while (at && at->complete_ns > item->complete_ns) {
		above = at;
		at = at->earlier;
	}
	item->earlier = at;
	item->later = above;
	if (at)
		at->later = item;
	if (above)
		above->earlier = item;
	else
		owner->latest = item;
}

static void sort_out(struct owner *owner, struct item *item)
{
	if (item->earlier)
		item->earlier->later = item->later;
	if (item->later)
		item->later->earlier = item->earlier;
	else
		owner->latest = item->earlier;
}

static void owner_add(struct owner *owner, struct item *item)
{
	item->older = owner->newest;
	if (item->older)
		item->older->younger = item;
	owner->newest = item;
	sort_in(owner, item);
}

static void owner_remove(struct owner *owner, struct item *item)
{
	if (item->older)
		item->older->younger = item->younger;
	if (item->younger)
		item->younger->older = item->older;
	else
		owner->newest = item->older;
	sort_out(owner, item);
}

static void closed_done(struct sim_bio *bio)
{
	struct item *item = bio->context;
	struct sim_replay *replay = item->replay;
	struct owner *owner = owner_of(replay, item->traced.owner);

	count_done(replay, bio);
	if (--item->bios_left)
		return;
	owner_remove(owner, item);
	if (item->complete_ns >= owner->done_traced_ns) {
		owner->done_traced_ns = item->complete_ns;
		owner->done_ns = replay->clock->now_ns;
	}
	release(replay->clock, item->after_done);
	item->older = replay->free_item;
	replay->free_item = item;
	replay->nr_items--;
}

static void closed_send(void *context)
{
	struct item *item = context, *younger;
	struct sim_replay *replay = item->replay;
	struct sim_clock *clock = replay->clock;
	struct owner *owner = owner_of(replay, item->traced.owner);
	u64 apart_ns;

	/* Who reads ahead never asks for what is behind first. */
	item->due = true;
	if (item->older && !item->older->sent)
		return;
	item->sent = true;
	younger = item->younger;
	/* What did not come at the same moment is not merged at once. */
	apart_ns = younger ? min_t(u64, TOGETHER_NS,
				   younger->traced.arrival_ns -
					   item->traced.arrival_ns) :
			     0;
	item->bios_left = nr_bios(replay, &item->traced);
	owner->last_sent_ns = clock->now_ns;
	release(clock, item->after_sent);
	item->after_sent = NULL;
	send(replay, &item->traced, clock->now_ns, closed_done, item);
	if (younger && younger->due)
		sim_timer(clock, clock->now_ns + apart_ns, closed_send,
			  younger);
}

static u64 estimate_ns(const struct sim_replay *replay,
		       const struct owner *owner,
		       const struct trace_request *rq)
{
	const struct ss_curve *curve = &replay->block->disk[0].sched[0].curve;

	return ss_curve_service_ns(curve, owner->last_end_sector, rq->sector) +
	       curve->transfer_ps * rq->nr_sectors / 1000;
}

/*
 * Several that had completed together with @parent may have been waited for,
 * each by one of those that then came: the first that nobody waits for yet.
 */
static struct item *of_several(struct item *parent)
{
	struct item *first = parent;

	while (first->earlier &&
	       first->earlier->complete_ns + TOGETHER_NS >= parent->complete_ns)
		first = first->earlier;
	while (first != parent && first->after_done)
		first = first->later;
	return first;
}

/* Find what @item waits for, and hang it there. */
static void closed_link(struct sim_clock *clock, struct owner *owner,
			struct item *item)
{
	u64 arrival = item->traced.arrival_ns, at;
	struct item *newest = owner->newest, *parent;

	if (newest && newest->estimated && arrival < newest->complete_ns &&
	    arrival >= newest->traced.arrival_ns + TOGETHER_NS) {
		sort_out(owner, newest);
		newest->complete_ns = arrival;
		sort_in(owner, newest);
	}
	for (parent = owner->latest; parent; parent = parent->earlier)
		if (parent->complete_ns <= arrival)
			break;
	if (parent && parent->complete_ns >= owner->done_traced_ns) {
		parent = of_several(parent);
		item->think_ns = arrival - parent->complete_ns;
		item->sibling = parent->after_done;
		parent->after_done = item;
		return;
	}
	if (owner->known && owner->done_ns) {
		at = owner->done_ns + (arrival > owner->done_traced_ns ?
					       arrival - owner->done_traced_ns :
					       0);
	} else if (newest && !newest->sent) {
		item->think_ns = arrival - newest->traced.arrival_ns;
		item->sibling = newest->after_sent;
		newest->after_sent = item;
		return;
	} else if (owner->known) {
		at = owner->last_sent_ns + arrival - owner->last_arrival_ns;
	} else {
		at = arrival;
	}
	sim_timer(clock, max_t(u64, at, clock->now_ns), closed_send, item);
}

static struct item *item_new(struct sim_replay *replay)
{
	struct item_part *part;
	u32 i;

	if (!replay->free_item) {
		part = sim_alloc(sizeof(*part));
		part->next = replay->parts;
		replay->parts = part;
		for (i = 0; i < WINDOW_PART; i++) {
			part->item[i].older = replay->free_item;
			replay->free_item = &part->item[i];
		}
	}
	return replay->free_item;
}

static void closed_take(struct sim_replay *replay,
			const struct trace_request *rq)
{
	struct owner *owner = owner_of(replay, rq->owner);
	struct item *item = item_new(replay);

	replay->free_item = item->older;
	replay->nr_items++;
	*item = (struct item){ .replay = replay, .traced = *rq };
	item->complete_ns = rq->complete_ns;
	if (rq->complete_ns == TRACE_NO_TIME) {
		item->estimated = true;
		item->complete_ns = rq->arrival_ns +
				    estimate_ns(replay, owner, rq);
	}
	closed_link(replay->clock, owner, item);
	owner_add(owner, item);
	owner->known = true;
	owner->last_arrival_ns = rq->arrival_ns;
	owner->last_end_sector = rq->sector + rq->nr_sectors;
}

/* ---- both ---- */

static bool wants_more(const struct sim_replay *replay)
{
	if (replay->ended)
		return false;
	if (replay->config->closed)
		return replay->nr_items < WINDOW;
	return !replay->have && !sim_congested(replay->block);
}

enum sim_state sim_replay_fill(struct sim_replay *replay)
{
	const struct sim_config *config = replay->config;

	while (wants_more(replay)) {
		struct trace_request rq;
		enum sim_state state = sim_sources_next(replay->sources, &rq);

		if (state == SIM_FAILED)
			sim_fail(
				replay->clock, "%s",
				trace_why(sim_sources_reader(replay->sources)));
		if (state == SIM_FAILED || state == SIM_INPUT)
			return state;
		if (state == SIM_DONE) {
			replay->ended = true;
			break;
		}
		if (config->one_owner && rq.owner != config->the_owner)
			continue;
		if (!place(replay, &rq))
			return SIM_FAILED;
		replay->read++;
		if (config->closed) {
			closed_take(replay, &rq);
		} else {
			replay->next = rq;
			replay->have = true;
		}
	}
	return SIM_MORE;
}

u64 sim_replay_next_ns(const struct sim_replay *replay)
{
	return replay->have ? replay->next.arrival_ns : U64_MAX;
}

void sim_replay_send(struct sim_replay *replay)
{
	replay->have = false;
	send(replay, &replay->next, replay->next.arrival_ns, open_done, replay);
}

bool sim_replay_over(const struct sim_replay *replay)
{
	return replay->ended && !replay->have && !replay->in_flight &&
	       !replay->nr_items;
}

void sim_replay_result(const struct sim_replay *replay,
		       struct sim_result *result)
{
	if (replay->first_start_ns != U64_MAX)
		result->duration_ns = replay->last_end_ns -
				      replay->first_start_ns;
	result->process_bytes[SS_READ] = replay->bytes[SS_READ];
	result->process_bytes[SS_WRITE] = replay->bytes[SS_WRITE];
}
