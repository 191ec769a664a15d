/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A scheduler at work: a policy (and what it wraps), the head's position, the
 * service-time curve, the index for merging and the counters. This is what a
 * host holds and calls; policies see it as their surroundings.
 *
 * The host calls arrived, merged, removed, dispatched and completed as these
 * things happen, with a clock that never runs backwards, and asks choose
 * whenever the disk can take a request.
 */
#ifndef SS_SCHED_H
#define SS_SCHED_H

#include "coordinator.h"
#include "curve.h"
#include "policy.h"

#define SS_MAX_DEPTH 2 /* policies in one spec: stream:deadline */
#define SS_MAX_TUNABLES 24 /* per policy */
#define SS_STATE_BYTES (232 << 10) /* for all policies of one spec together */
#define SS_HASH_BITS 8
#define SS_RECENT 32 /* more than a drive reads ahead of at once */
#define SS_RECENT_PARTS 256

/* Counters that every policy reports; all since the scheduler began. */
struct ss_counters {
	u64 arrivals;
	u64 dispatches;
	u64 completions;
	u64 merges;
	u64 removals;
	u64 seeks; /* dispatches not at the sector where the head was */
	u64 waits; /* the head was held idle with requests pending */
	u64 hits; /* a wait that ended with the request waited for */
	u64 timeouts; /* a wait that ended by time */
	u64 second_chances; /* ss: waits prolonged for a long stream */
	u64 slices_ended;
	u64 expired; /* dispatches because of age */
	u64 idle_ns; /* disk idle with requests pending */
};

/* What a host can have itself told of, for tracing. */
enum ss_event {
	SS_EVENT_ESTABLISHED, /* a stream has become long enough */
	SS_EVENT_HELD, /* the disk is kept idle for a stream's child */
	SS_EVENT_HIT, /* ... which came */
	SS_EVENT_TIMEOUT, /* ... which did not */
	SS_EVENT_SLICE_ENDED, /* the stream's turn is over, others wait */
};

struct ss_sched {
	/* Optional: @rq is about to go to the disk, and why. */
	void (*chosen)(struct ss_sched *sched, const struct ss_request *rq,
		       enum ss_why why);
	/* Optional: @sector and @size are the stream's end and length. */
	void (*tell)(struct ss_sched *sched, enum ss_event event, u64 sector,
		     u32 size);
	void *host; /* for the host's own use in tell() */
	struct ss_coordinator *coordinator; /* of an array, or NULL: array.h */
	struct ss_policy policy[SS_MAX_DEPTH]; /* outermost first */
	u32 nr_policies;
	u32 nr_pending;
	u32 nr_in_flight;
	u32 nr_async_in_flight; /* those of them that nobody waits for */
	u32 nr_pending_dir[SS_DIRECTIONS];
	u64 head_sector; /* where the last dispatched request ends */
	bool head_known; /* by learning: there was one that left it there */
	u64 now_ns; /* of the last event */
	u64 busy_since_ns; /* on a flat curve: the last completion */
	u64 idle_since_ns; /* SS_FOREVER unless idle with requests pending */
	struct ss_request
		*alone; /* in flight with nothing else, to learn from */
	bool alone_continues; /* it goes on where a recent one ended */
	u32 recent; /* the latest one's place in: */
	u64 recent_end[SS_RECENT]; /* where sequences have come to */
	u8 recent_in[SS_RECENT_PARTS]; /* how many, by part of the disk */
	struct ss_curve curve;
	struct ss_counters counters;
	u64 dispatched_by[SS_WHYS]; /* as the counters: by reason */
	u64 nr_trials; /* of turns against the inner policy alone, */
	u64 nr_trials_lost; /* and those that turns lost */
	struct hlist_head start_hash[1 << SS_HASH_BITS];
	struct hlist_head end_hash[1 << SS_HASH_BITS];
	u64 value[SS_MAX_DEPTH][SS_MAX_TUNABLES];
	u64 state[SS_STATE_BYTES / sizeof(u64)];
};

/*
 * Begin with @spec, as in "deadline" or "stream:deadline"; the curve starts
 * as the generic one for a disk of @span_sectors. On failure returns -EINVAL
 * with one sentence in @why (at least 160 bytes).
 */
int ss_sched_init(struct ss_sched *sched, const char *spec, u64 span_sectors,
		  char *why, size_t why_bytes);

/*
 * Set a tunable of any policy of the spec. @value is in the tunable's unit.
 * -ENOENT when no policy of the spec has it, -ERANGE when out of range: then
 * nothing is changed and @why (at least 160 bytes) says what would be right.
 */
int ss_sched_tune(struct ss_sched *sched, const char *name, u64 value,
		  u64 now_ns, char *why, size_t why_bytes);

void ss_sched_arrived(struct ss_sched *sched, struct ss_request *rq,
		      u64 now_ns);
/*
 * As arrived, for @rq that arrived at another scheduler, from which this one
 * takes over: its age stays. Oldest first, after which those come that arrive.
 */
void ss_sched_taken_over(struct ss_sched *sched, struct ss_request *rq,
			 u64 now_ns);
struct ss_decision ss_sched_choose(const struct ss_sched *sched, u64 now_ns);
/* With the reason that ss_sched_choose() gave for @rq. */
void ss_sched_dispatched(struct ss_sched *sched, struct ss_request *rq,
			 enum ss_why why, u64 now_ns);
void ss_sched_completed(struct ss_sched *sched, struct ss_request *rq,
			u64 now_ns);
/*
 * @rq is in the disk no longer and has not been served (an error, a requeue
 * by the driver): as completed, but nothing is learned from the time it took.
 */
void ss_sched_returned(struct ss_sched *sched, struct ss_request *rq,
		       u64 now_ns);
void ss_sched_removed(struct ss_sched *sched, struct ss_request *rq,
		      u64 now_ns);
/*
 * A flush of the drive's cache @begins, or has ended. It is no request: the
 * host sends it past the scheduler. Each end has its beginning; several may be
 * under way. A host that does not see them says nothing.
 */
void ss_sched_flushes(struct ss_sched *sched, bool begins, u64 now_ns);

/*
 * The pending request of this direction that begins at @sector and came with
 * these flags, or NULL: for a merge at its front. Whether its owner may be
 * another the host must know.
 */
struct ss_request *ss_sched_find_front(const struct ss_sched *sched, u64 sector,
				       u8 direction, u8 flags);

/*
 * @rq, which touches pending @into, became part of it. A host that also merges
 * what somebody waits for with what nobody does says so by @rq's flags: he
 * waits for the whole.
 */
void ss_sched_merged(struct ss_sched *sched, struct ss_request *into,
		     const struct ss_request *rq, u64 now_ns);

/*
 * After a back or front merge: the pending request that now touches @rq and
 * could be joined with it, or NULL. To join them the host calls
 * ss_sched_joined(), after which @next is no longer pending and @rq is as old
 * as the older of them. (What ss_sched_merged() takes in is always younger.)
 */
struct ss_request *ss_sched_find_join(struct ss_sched *sched,
				      const struct ss_request *rq,
				      u32 max_sectors);
void ss_sched_joined(struct ss_sched *sched, struct ss_request *rq,
		     struct ss_request *next, u64 now_ns);

#ifndef SS_MAINLINE
/* ---- of no use to the block layer by itself ---- */

#define SS_MAX_WEIGHT 1000 /* of an owner's share */

/*
 * Give @owner's requests the share of @weight (1 to SS_MAX_WEIGHT) owners of
 * weight 1, which all are at first. -ENOENT when no policy of the spec has
 * weights, -ERANGE for another weight, -ENOSPC for too many owners.
 */
int ss_sched_weigh(struct ss_sched *sched, u64 owner, u64 weight);

void ss_sched_owner_gone(struct ss_sched *sched, u64 owner, u64 now_ns);

/*
 * The pending @rq is where @grown is now, as old as the older of them, and
 * awaited if either is: for an array, whose member's request has grown.
 */
void ss_sched_becomes(struct ss_sched *sched, struct ss_request *rq,
		      const struct ss_request *grown, u64 now_ns);

enum ss_merge { SS_MERGE_NONE, SS_MERGE_BACK, SS_MERGE_FRONT };

/*
 * The pending request that @rq, not yet arrived, continues (BACK) or comes
 * just before (FRONT): same direction and synchrony, together at most
 * @max_sectors, and the policy allows it. Of @rq the host has set the sectors,
 * direction, flags and owner.
 */
enum ss_merge ss_sched_find_merge(struct ss_sched *sched,
				  const struct ss_request *rq, u32 max_sectors,
				  struct ss_request **into);

/*
 * The pending request for the same sectors as @rq, not yet arrived, with which
 * @rq need not be sent, or NULL. For a host whose requests share their memory,
 * so that one transfer does for both; the policy must ask for it.
 */
struct ss_request *ss_sched_find_same(const struct ss_sched *sched,
				      const struct ss_request *rq);

/* @rq, found by ss_sched_find_same(), is served together with pending @into. */
void ss_sched_shared(struct ss_sched *sched, const struct ss_request *into,
		     u64 now_ns);
#endif

/*
 * For policies: a pending request that ends where @sector begins, or NULL.
 * During arrived() the new request itself is not yet found.
 */
struct ss_request *ss_sched_pending_before(const struct ss_sched *sched,
					   u64 sector);

/*
 * Something that is not of this scheduler was sent to the same disk and ends
 * at @end_sector: the head will be there.
 */
static inline void ss_sched_head_taken(struct ss_sched *sched, u64 end_sector)
{
	sched->head_sector = end_sector;
	sched->head_known = true;
	sched->alone = NULL;
}

/* See ss_policy_ops.stream_at; false also when the policy knows no streams. */
bool ss_sched_stream_at(const struct ss_sched *sched, u32 index, u64 now_ns,
			struct ss_stream_info *info);

/* The index there of pending @rq's party; -1 when the policy knows none. */
s32 ss_sched_index_of(const struct ss_sched *sched,
		      const struct ss_request *rq);

/* For policies: something happened that a host may want to know. */
static inline void ss_sched_tell(struct ss_sched *sched, enum ss_event event,
				 u64 sector, u32 size)
{
	if (sched->tell)
		sched->tell(sched, event, sector, size);
}

/* For policies: what positioning to @rq costs from where the head is. */
static inline u64 ss_sched_cost_ns(const struct ss_sched *sched,
				   const struct ss_request *rq)
{
	return ss_curve_service_ns(&sched->curve, sched->head_sector,
				   rq->sector);
}

/*
 * For policies: what positioning to @rq, dispatched, should take by the
 * distance alone, without what makes backward ones dearer.
 */
static inline u64 ss_sched_positioning_ns(const struct ss_sched *sched,
					  const struct ss_request *rq)
{
	u64 distance = ss_distance(rq->from_sector, rq->sector);

	if (!distance)
		return sched->curve.point[0].time_ns;
	return ss_curve_look_up(&sched->curve, distance);
}

/*
 * For hosts: the actuators of one disk. Each serves a range of its sectors with
 * a scheduler of its own: what others do neither delays it nor moves its head.
 * They share the drive's queue, so each in turn is asked first.
 */
#define SS_HEADS 2

struct ss_heads {
	u32 nr; /* 1, or SS_HEADS */
	u32 first; /* is asked first */
	u64 second_sector; /* where the second one's range begins */
};

/* The one that has @sector. */
static inline u32 ss_heads_of(const struct ss_heads *heads, u64 sector)
{
	return heads->nr > 1 && sector >= heads->second_sector ? 1 : 0;
}

/* The one to be asked after @nr others. */
static inline u32 ss_heads_at(const struct ss_heads *heads, u32 nr)
{
	return (heads->first + nr) % heads->nr;
}

/* A request of @head is sent to the drive. */
static inline void ss_heads_sent(struct ss_heads *heads, u32 head)
{
	heads->first = head + 1;
}

#endif
