// SPDX-License-Identifier: GPL-2.0-only
/*
 * nwcs: makes a work-conserving policy wait for the owner last served, where
 * that is worth it.
 *
 * Iyer and Druschel, "Anticipatory scheduling", SOSP 2001, from their slides.
 * Of each owner is estimated: the expected think time (from a completion to
 * its next request), the time within which 95 % of its next requests come,
 * and the expected positioning time to it. When the disk could begin a
 * request of another owner, waiting has as benefit the positioning to that
 * request less the expected one of the owner last served, and as cost that
 * owner's expected think time. If the benefit is greater the disk is held
 * until 95 % of the think times would be over; each request that comes
 * meanwhile has the question asked again.
 *
 * Over a policy that gives shares positioning is not what counts. There the
 * disk is held for any owner that has just been served, would be sent before
 * the request at hand if it had one (prefers), and usually thinks for less
 * than wait_limit: or else a share could never be used by those who send one
 * request at a time.
 *
 * Decided here: only requests that are waited for tell of think times; an
 * owner of which nothing is known yet is not waited for; nor is one that has
 * exited; requests that the inner policy calls expired go at once. The request
 * that was waited for goes next if it is nearer than the inner policy's choice
 * and that policy knows of age, which bounds what this costs others. Over any
 * other the choice is the inner policy's; if that does not go by position
 * (noop), it is seldom the request waited for, and nwcs pauses waiting. An
 * owner with a request still in the disk is about to think: the disk's queue
 * is not filled past it.
 */
#include "owner_table.h"
#include "../policies.h"
#include "../sched.h"

#include <linux/kernel.h>
#include <linux/string.h>

/* Think times by half powers of two, from 1 us to 1 s. */
#define NWCS_BUCKETS 40
/* When as many are counted all counts are halved. */
#define NWCS_MOST 256
#define NWCS_PERCENT 95
/* Requests waited for in vain after which there is no more waiting ... */
#define NWCS_FUTILE 8
/* ... for so long; twice as long each time that one more is in vain. */
#define NWCS_PAUSE_NS (1 * SS_SEC)
#define NWCS_MOST_PAUSE_NS (32 * SS_SEC)

enum { NWCS_WAIT_LIMIT };

static const struct ss_tunable nwcs_tunables[] = {
	[NWCS_WAIT_LIMIT] = { "wait_limit", SS_UNIT_NS, 20 * SS_MSEC, 0,
			      1 * SS_SEC,
			      .help = "longest wait for an owner's next request, 0 = never; as long as a seek over the whole disk" },
};

/* What an owner has done so far. */
struct nwcs_past {
	bool gone; /* it has exited */
	bool began; /* it has sent a sync request */
	bool served; /* one of them has completed */
	u64 last_end_sector; /* of its last sync request */
	u64 last_done_ns; /* when one last completed */
	struct ss_mean think_ns;
	struct ss_mean position_ns;
	u16 thinks[NWCS_BUCKETS]; /* how many think times were about so long */
	u16 nr_thinks;
};

struct nwcs_owner {
	struct ss_owner base; /* pinned by each request and by being last */
	u32 nr_pending;
	u32 nr_at_disk;
	struct nwcs_past past;
};

struct nwcs_state {
	struct nwcs_owner *last; /* served; NULL after an async request */
	struct ss_request *came; /* what was waited for, pending */
	bool holding;
	u64 hold_end_ns;
	u32 futile; /* in a row: what was waited for came and was not chosen */
	u64 pause_ns; /* how long nobody is waited for because of that */
	u64 pause_end_ns;
	struct ss_owner_table table;
	struct nwcs_owner shared;
	struct nwcs_owner owner[SS_OWNERS];
};

static u32 nwcs_bucket(u64 think_ns)
{
	u64 us = div_u64(think_ns, SS_USEC);
	u32 octave = 0, bucket;

	if (!us)
		return 0;
	while (us >> (octave + 1))
		octave++;
	/* The upper half of an octave begins at one and a half of its start. */
	bucket = 1 + 2 * octave + (2 * think_ns >= (3ULL << octave) * SS_USEC);
	return min_t(u32, bucket, NWCS_BUCKETS - 1);
}

/* Up to where the think times of a bucket reach. */
static u64 nwcs_bucket_end_ns(u32 bucket)
{
	u32 octave = (bucket - 1) / 2;

	if (!bucket)
		return SS_USEC;
	if (bucket % 2) /* the lower half */
		return (3ULL << octave) * SS_USEC / 2;
	return (2ULL << octave) * SS_USEC;
}

/*
 * What positioning costs the disk. Theirs is the disk's time; that backwards
 * counts as more is how stream prefers one way (Xu and Jiang, FAST 2011, 3.2).
 */
static u64 nwcs_position_ns(const struct ss_policy *policy, u64 from_sector,
			    const struct ss_request *rq)
{
	return ss_curve_distance_ns(&policy->sched->curve,
				    ss_distance(from_sector, rq->sector));
}

/* From where the head is. */
static u64 nwcs_cost_ns(const struct ss_policy *policy,
			const struct ss_request *rq)
{
	return nwcs_position_ns(policy, policy->sched->head_sector, rq);
}

static u64 nwcs_most_think_ns(const struct nwcs_past *past)
{
	u32 below = 0, bucket;

	for (bucket = 0; bucket < NWCS_BUCKETS - 1; bucket++) {
		below += past->thinks[bucket];
		if (100 * below >= NWCS_PERCENT * (u32)past->nr_thinks)
			break;
	}
	return nwcs_bucket_end_ns(bucket);
}

static void nwcs_learn_think(struct nwcs_past *past, u64 think_ns, u64 limit_ns)
{
	u32 bucket;

	past->thinks[nwcs_bucket(think_ns)]++;
	if (++past->nr_thinks >= NWCS_MOST) {
		past->nr_thinks = 0;
		for (bucket = 0; bucket < NWCS_BUCKETS; bucket++) {
			past->thinks[bucket] /= 2;
			past->nr_thinks += past->thinks[bucket];
		}
	}
	/* One long pause must not shape the mean for long. */
	ss_mean_add(&past->think_ns, min_t(u64, think_ns, 2 * limit_ns));
}

/* @rq of @owner has come. */
static void nwcs_learn(struct ss_policy *policy, struct nwcs_owner *owner,
		       const struct ss_request *rq, u64 now_ns)
{
	struct nwcs_past *past = &owner->past;

	if (!ss_request_is_sync(rq))
		return;
	if (past->served) {
		bool thought = !owner->nr_pending && !owner->nr_at_disk;

		nwcs_learn_think(past,
				 thought ? now_ns - past->last_done_ns : 0,
				 policy->value[NWCS_WAIT_LIMIT]);
	}
	if (past->began)
		ss_mean_add(&past->position_ns,
			    nwcs_position_ns(policy, past->last_end_sector,
					     rq));
	past->began = true;
	past->last_end_sector = ss_request_end(rq);
}

/* Until when @owner's next request is expected; 0: it is not. */
static u64 nwcs_expected_ns(const struct ss_policy *policy,
			    const struct nwcs_owner *owner)
{
	const struct nwcs_past *past = &owner->past;
	u64 limit_ns = policy->value[NWCS_WAIT_LIMIT];

	if (owner->nr_pending || past->gone || !past->nr_thinks || !limit_ns)
		return 0;
	if (owner->nr_at_disk)
		return SS_FOREVER;
	return past->last_done_ns +
	       min_t(u64, nwcs_most_think_ns(past), limit_ns);
}

/* Until when to wait for the owner last served, when @rq could go; 0: not. */
static u64 nwcs_wait_for_last(const struct ss_policy *policy,
			      const struct ss_request *rq, u64 now_ns)
{
	const struct nwcs_state *nwcs = policy->state;
	const struct nwcs_past *past = &nwcs->last->past;
	u64 cost_ns = nwcs_cost_ns(policy, rq);

	if (now_ns < nwcs->pause_end_ns || !past->position_ns.samples ||
	    cost_ns <= past->position_ns.mean + past->think_ns.mean)
		return 0;
	return nwcs_expected_ns(policy, nwcs->last);
}

/* The same for all owners with a better claim to the disk than @rq has. */
static u64 nwcs_wait_for_share(const struct ss_policy *policy,
			       const struct ss_request *rq)
{
	const struct nwcs_state *nwcs = policy->state;
	const struct ss_policy *inner = policy->inner;
	u64 until_ns = 0;
	u32 i;

	for (i = 0; i < SS_OWNERS; i++) {
		const struct nwcs_owner *owner = &nwcs->owner[i];

		if (owner->past.think_ns.mean <
			    policy->value[NWCS_WAIT_LIMIT] &&
		    nwcs_expected_ns(policy, owner) > until_ns &&
		    inner->ops->prefers(inner, owner->base.id, rq))
			until_ns = nwcs_expected_ns(policy, owner);
	}
	return until_ns;
}

static struct ss_decision nwcs_choose(const struct ss_policy *policy,
				      u64 now_ns, const struct ss_request *skip)
{
	const struct nwcs_state *nwcs = policy->state;
	const struct ss_policy *inner = policy->inner;
	struct ss_decision own = inner->ops->choose(inner, now_ns, skip);
	u64 until_ns = 0;

	if (own.verdict != SS_DISPATCH)
		return own;
	if (inner->ops->overdue && inner->ops->overdue(inner, now_ns))
		return own;
	if (nwcs->came && nwcs->came != skip &&
	    nwcs_cost_ns(policy, nwcs->came) < nwcs_cost_ns(policy, own.rq))
		return ss_dispatch(nwcs->came);
	if (inner->ops->prefers)
		until_ns = nwcs_wait_for_share(policy, own.rq);
	else if (nwcs->last && own.rq->stream != nwcs->last)
		until_ns = nwcs_wait_for_last(policy, own.rq, now_ns);
	if (until_ns != SS_FOREVER && inner->ops->next_expiry)
		until_ns = min_t(u64, until_ns, inner->ops->next_expiry(inner));
	return until_ns > now_ns ? ss_wait(until_ns) : own;
}

/* First in every event: a wait may have ended since the last one. */
static void nwcs_catch_up(struct ss_policy *policy, u64 now_ns)
{
	struct nwcs_state *nwcs = policy->state;

	if (!nwcs->holding || now_ns < nwcs->hold_end_ns)
		return;
	nwcs->holding = false;
	policy->sched->counters.timeouts++;
}

/* What was waited for has come and is not chosen. */
static void nwcs_in_vain(struct nwcs_state *nwcs, u64 now_ns)
{
	if (++nwcs->futile < NWCS_FUTILE)
		return;
	nwcs->pause_ns = nwcs->pause_ns ? min_t(u64, 2 * nwcs->pause_ns,
						NWCS_MOST_PAUSE_NS) :
					  NWCS_PAUSE_NS;
	nwcs->pause_end_ns = now_ns + nwcs->pause_ns;
}

/*
 * Last in every event: is an idle disk held now, or no longer? @rq, which has
 * just come, is what was waited for if it goes next.
 */
static void nwcs_settle(struct ss_policy *policy, const struct ss_request *rq,
			u64 now_ns)
{
	struct nwcs_state *nwcs = policy->state;
	struct ss_decision answer = nwcs_choose(policy, now_ns, NULL);
	bool hold = answer.verdict == SS_WAIT && !policy->sched->nr_in_flight;

	if (nwcs->holding && !hold && rq && ss_dispatches(&answer, rq)) {
		policy->sched->counters.hits++;
		nwcs->futile = 0;
		nwcs->pause_ns = 0;
	} else if (nwcs->holding && !hold && rq && rq->stream == nwcs->last) {
		nwcs_in_vain(nwcs, now_ns);
	}
	if (hold && !nwcs->holding)
		policy->sched->counters.waits++;
	nwcs->holding = hold;
	if (hold)
		nwcs->hold_end_ns = answer.until_ns;
}

static void nwcs_init(struct ss_policy *policy)
{
	struct nwcs_state *nwcs = policy->state;
	u32 i;

	ss_owner_table_init(&nwcs->table, &nwcs->shared.base);
	for (i = 0; i < SS_OWNERS; i++)
		ss_owner_table_add(&nwcs->table, &nwcs->owner[i].base);
}

static void nwcs_tuned(struct ss_policy *policy, u64 now_ns)
{
	nwcs_catch_up(policy, now_ns);
	nwcs_settle(policy, NULL, now_ns);
}

static void nwcs_arrived(struct ss_policy *policy, struct ss_request *rq,
			 u64 now_ns)
{
	struct nwcs_state *nwcs = policy->state;
	struct nwcs_owner *owner;
	bool fresh;

	nwcs_catch_up(policy, now_ns);
	owner = container_of(ss_owner_get(&nwcs->table, rq->owner, &fresh),
			     struct nwcs_owner, base);
	/* A number that comes back after an exit is another process's. */
	if (fresh || owner->past.gone)
		memset(&owner->past, 0, sizeof(owner->past));
	nwcs_learn(policy, owner, rq, now_ns);
	rq->stream = owner;
	ss_owner_pin(&owner->base);
	owner->nr_pending++;
	policy->inner->ops->arrived(policy->inner, rq, now_ns);
	if (nwcs->holding && owner == nwcs->last &&
	    policy->inner->ops->overdue && !policy->inner->ops->prefers)
		nwcs->came = rq;
	nwcs_settle(policy, rq, now_ns);
}

static void nwcs_dispatched(struct ss_policy *policy, struct ss_request *rq,
			    u64 now_ns)
{
	struct nwcs_state *nwcs = policy->state;
	struct nwcs_owner *owner = rq->stream;

	nwcs_catch_up(policy, now_ns);
	nwcs->came = NULL;
	owner->nr_pending--;
	owner->nr_at_disk++;
	if (nwcs->last)
		ss_owner_unpin(&nwcs->table, &nwcs->last->base);
	nwcs->last = ss_request_is_sync(rq) ? owner : NULL;
	if (nwcs->last)
		ss_owner_pin(&owner->base);
	policy->inner->ops->dispatched(policy->inner, rq, now_ns);
	nwcs_settle(policy, NULL, now_ns);
}

static void nwcs_completed(struct ss_policy *policy, struct ss_request *rq,
			   u64 now_ns)
{
	struct nwcs_state *nwcs = policy->state;
	struct nwcs_owner *owner = rq->stream;

	nwcs_catch_up(policy, now_ns);
	owner->nr_at_disk--;
	if (ss_request_is_sync(rq)) {
		owner->past.served = true;
		owner->past.last_done_ns = now_ns;
	}
	ss_owner_unpin(&nwcs->table, &owner->base);
	if (policy->inner->ops->completed)
		policy->inner->ops->completed(policy->inner, rq, now_ns);
	nwcs_settle(policy, NULL, now_ns);
}

static void nwcs_merged(struct ss_policy *policy, struct ss_request *rq,
			u64 old_sector, u64 now_ns)
{
	nwcs_catch_up(policy, now_ns);
	if (policy->inner->ops->merged)
		policy->inner->ops->merged(policy->inner, rq, old_sector,
					   now_ns);
	nwcs_settle(policy, rq, now_ns);
}

static void nwcs_joins(struct ss_policy *policy, struct ss_request *rq,
		       const struct ss_request *next)
{
	if (policy->inner->ops->joins)
		policy->inner->ops->joins(policy->inner, rq, next);
}

static void nwcs_removed(struct ss_policy *policy, struct ss_request *rq,
			 u64 now_ns)
{
	struct nwcs_state *nwcs = policy->state;
	struct nwcs_owner *owner = rq->stream;

	nwcs_catch_up(policy, now_ns);
	if (nwcs->came == rq)
		nwcs->came = NULL;
	owner->nr_pending--;
	ss_owner_unpin(&nwcs->table, &owner->base);
	policy->inner->ops->removed(policy->inner, rq, now_ns);
	nwcs_settle(policy, NULL, now_ns);
}

static struct ss_request *nwcs_expired(const struct ss_policy *policy,
				       u64 now_ns)
{
	const struct ss_policy *inner = policy->inner;

	return inner->ops->overdue ? inner->ops->overdue(inner, now_ns) : NULL;
}

static void nwcs_owner_gone(struct ss_policy *policy, u64 id, u64 now_ns)
{
	struct nwcs_state *nwcs = policy->state;
	struct ss_owner *base = ss_owner_find(&nwcs->table, id);

	nwcs_catch_up(policy, now_ns);
	if (base)
		container_of(base, struct nwcs_owner, base)->past.gone = true;
	if (policy->inner->ops->owner_gone)
		policy->inner->ops->owner_gone(policy->inner, id, now_ns);
	nwcs_settle(policy, NULL, now_ns);
}

const struct ss_policy_ops ss_nwcs_ops = {
	.name = "nwcs",
	.help = "waits for the owner last served where that pays (Iyer and Druschel, SOSP 2001)",
	.flags = SS_WRAPPER | SS_USES_OWNER,
	.state_bytes = sizeof(struct nwcs_state),
	SS_TUNABLES(nwcs_tunables),
	.init = nwcs_init,
	.tuned = nwcs_tuned,
	.arrived = nwcs_arrived,
	.choose = nwcs_choose,
	.dispatched = nwcs_dispatched,
	.completed = nwcs_completed,
	.merged = nwcs_merged,
	.joins = nwcs_joins,
	.removed = nwcs_removed,
	.overdue = nwcs_expired,
	.owner_gone = nwcs_owner_gone,
};
