/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy interface: a policy chooses, a host obeys.
 *
 * A policy is one file with one struct ss_policy_ops. It is told of events in
 * the order in which they happen and asked, as often as the host likes, what
 * to do next. It reads no clock, allocates nothing and never sleeps; the host
 * serialises the calls.
 */
#ifndef SS_POLICY_H
#define SS_POLICY_H

#include "request.h"
#include "tunable.h"

#include <linux/limits.h>

struct ss_policy;
struct ss_sched;

enum ss_verdict {
	SS_NOTHING, /* nothing is pending */
	SS_DISPATCH, /* send this request now */
	SS_WAIT, /* send nothing until a time, or until the next event */
};

/* With SS_WAIT: no time set, only an event can change the answer. */
#define SS_FOREVER U64_MAX

/* Why: each decision carries its reason, which the host hands back. */
enum ss_why {
	SS_WHY_ORDER, /* the policy's order, or that of what it wraps */
	SS_WHY_OWN, /* the party whose turn it is goes on */
	SS_WHY_ANSWER, /* the reader just served goes on at its place */
	SS_WHY_OLDEST, /* the party, or reader, that has waited longest */
	SS_WHY_LIGHT, /* a party that uses little interrupts */
	SS_WHY_BACK, /* ... and the interrupted turn goes on */
	SS_WHY_INNER, /* the inner policy has everything */
	SS_WHY_PAUSE, /* waits for who has nothing pending in its turn */
	SS_WHY_DRAIN, /* waits for what others have in the drive */
#ifndef SS_MAINLINE
	SS_WHY_ARRAY, /* the array's turn; the last one */
};
#define SS_WHYS 10 /* so many there are */
#else
	SS_WHYS, /* so many there are */
};
#endif

/* Small enough to be returned in two registers. */
struct ss_decision {
	enum ss_verdict verdict;
	enum ss_why why;
	union {
		struct ss_request *rq; /* SS_DISPATCH; else not to be read */
		u64 until_ns; /* SS_WAIT */
	};
};

/* Properties of a policy. */
#define SS_WORK_CONSERVING 0x01 /* never answers SS_WAIT; may be wrapped */
#define SS_USES_OWNER 0x02 /* decides by who sent a request */
#define SS_WRAPPER 0x04 /* needs an inner policy */
#define SS_MERGES_SAME 0x08 /* two requests for the same sectors are one */
#define SS_WEIGHS_REQUESTS 0x10 /* gives shares by the requests' weights */

/* What a policy that knows streams tells of one of its parties. */
struct ss_stream_info {
	const char *kind; /* "stream", "rest", "write-back" or "sender" */
	u64 end_sector; /* where its last member ends */
	u64 sent; /* requests that went to the disk in its turns, */
	u64 sent_sectors; /* their length, */
	u64 used_ns; /* and the head's time that they took, switches too */
	u64 paused_ns; /* of a stream: since nothing is pending or in flight */
	u64 limit_ns; /* how long the head waits for it at most, in its turn */
	u32 size; /* members so far; 0: the place is free */
	u32 nr_pending;
	bool established;
	bool turn; /* it is this stream's */
};

struct ss_policy_ops {
	const char *name;
	const char *help; /* one line */
	u32 flags;
	u32 state_bytes;
	const struct ss_tunable *tunables;
	u32 nr_tunables;
	/* Tunables of former versions, up to one without a name. Optional. */
	const struct ss_replaced *replaced;

	/* State is zeroed and tunables are set before init. */
	void (*init)(struct ss_policy *policy);
	/* A tunable has a new, valid value. Optional. */
	void (*tuned)(struct ss_policy *policy, u64 now_ns);

	/* @rq->arrival_ns is earlier than @now_ns if it was taken over. */
	void (*arrived)(struct ss_policy *policy, struct ss_request *rq,
			u64 now_ns);
	/*
	 * A pure question: asking twice changes nothing. @skip, if not NULL,
	 * is a pending request to be looked past, as if it had not arrived.
	 */
	struct ss_decision (*choose)(const struct ss_policy *policy, u64 now_ns,
				     const struct ss_request *skip);
	/*
	 * @rq, pending until now, goes to the disk. A wrapper may send another
	 * request than this policy would have chosen.
	 */
	void (*dispatched)(struct ss_policy *policy, struct ss_request *rq,
			   u64 now_ns);
	void (*completed)(struct ss_policy *policy, struct ss_request *rq,
			  u64 now_ns);
	/*
	 * May @part, which is pending or about to come, become a part of
	 * pending @rq? Of the same direction and flags. Optional.
	 */
	bool (*may_merge)(const struct ss_policy *policy,
			  const struct ss_request *rq,
			  const struct ss_request *part);
	/* A pending request grew: at its front if its first sector moved. */
	void (*merged)(struct ss_policy *policy, struct ss_request *rq,
		       u64 old_sector, u64 now_ns);
	/*
	 * Then @rq, for which nobody waited, has taken in @part, for which
	 * somebody does. For one that asks ss_request_is_awaited(); optional.
	 */
	void (*awaited)(struct ss_policy *policy, struct ss_request *rq,
			const struct ss_request *part, u64 now_ns);
	/*
	 * Pending @rq is about to take in pending @next, which is then removed;
	 * after that @rq has merged. It is already as old as the older of them
	 * (arrival_ns) and expires when the earlier would (expires_ns). For one
	 * that keeps requests in order of age; optional.
	 */
	void (*joins)(struct ss_policy *policy, struct ss_request *rq,
		      const struct ss_request *next);
	/* The host takes a pending request back: it will not be dispatched. */
	void (*removed)(struct ss_policy *policy, struct ss_request *rq,
			u64 now_ns);
	/* The pending request that must go at once because of its age. */
	struct ss_request *(*overdue)(const struct ss_policy *policy,
				      u64 now_ns);
	/*
	 * When the next request expires that has not yet, or SS_FOREVER. With
	 * overdue; it may name one that will not have to go then after all.
	 */
	u64 (*next_expiry)(const struct ss_policy *policy);
	/*
	 * For looking inside: the party in place @index of the policy's
	 * table, from 0. False behind its end. Optional.
	 */
	bool (*stream_at)(const struct ss_policy *policy, u32 index, u64 now_ns,
			  struct ss_stream_info *info);
	/* The index of the party that the pending @rq is of. With stream_at. */
	u32 (*index_of)(const struct ss_policy *policy,
			const struct ss_request *rq);
	/* A flush of the drive's cache begins, or has ended. Optional. */
	void (*flushes)(struct ss_policy *policy, bool begins, u64 now_ns);
	/*
	 * For one that gives shares: would a request of @owner, which has none
	 * pending, go before the pending @over if it came now? Optional.
	 */
	bool (*prefers)(const struct ss_policy *policy, u64 owner,
			const struct ss_request *over);
	/*
	 * @owner's share is to be that of @weight others. -ENOSPC when no more
	 * owners can have a weight. Optional.
	 */
	int (*weigh)(struct ss_policy *policy, u64 owner, u32 weight);
	/* @owner will send no more (its process has exited). Optional. */
	void (*owner_gone)(struct ss_policy *policy, u64 owner, u64 now_ns);
	/* Ends the program, or warns, if its state is not right. Optional. */
	void (*check)(const struct ss_policy *policy);
};

#ifndef SS_MAINLINE
/* For struct ss_policy_ops: a whole table of tunables. */
#define SS_TUNABLES(rows) .tunables = (rows), .nr_tunables = ARRAY_SIZE(rows)
#endif

/* One policy at work; its state follows it in memory. */
struct ss_policy {
	const struct ss_policy_ops *ops;
	struct ss_sched *sched; /* head, curve and counters */
	struct ss_policy *inner; /* NULL unless a wrapper */
	u64 *value; /* of each tunable, in the order of ops->tunables */
	void *state;
};

/* All policies there are, in the order in which they are listed. */
extern const struct ss_policy_ops *const ss_policies[];
extern const u32 ss_nr_policies;

/* The reasons in one word each, by enum ss_why. */
extern const char *const ss_why_name[SS_WHYS];

/*
 * What replaces a tunable that a former version of @ops had, as the end of a
 * sentence; NULL: it never had one of this name.
 */
const char *ss_policy_replaced(const struct ss_policy_ops *ops,
			       const char *name);

static inline struct ss_decision ss_nothing(void)
{
	return (struct ss_decision){ .verdict = SS_NOTHING };
}

static inline struct ss_decision ss_because(struct ss_decision decision,
					    enum ss_why why)
{
	decision.why = why;
	return decision;
}

static inline bool ss_dispatches(const struct ss_decision *decision,
				 const struct ss_request *rq)
{
	return decision->verdict == SS_DISPATCH && decision->rq == rq;
}

static inline struct ss_decision ss_dispatch(struct ss_request *rq)
{
	return (struct ss_decision){ .verdict = SS_DISPATCH, .rq = rq };
}

static inline struct ss_decision ss_wait(u64 until_ns)
{
	return (struct ss_decision){ .verdict = SS_WAIT, .until_ns = until_ns };
}

#endif
