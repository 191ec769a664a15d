/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parties: who takes turns, and what each has pending. Knows no turn.
 *
 * Each established stream is a party with a queue of its own. All other sync
 * requests are the inner policy's and together one more, the rest; senders that
 * are told apart have some of theirs in a party each (apart.c).
 * Async requests are the last party. Those that have something pending, but
 * for the one whose turn it is (turn.c), stand in one order: by when they are
 * due. That is the target after they began to wait, or earlier for one that
 * has used less than its part (credit.c).
 *
 * struct ss_parties is all of the policy's run-time state; its settings are
 * its tunables. Times are in ns, positions and lengths in sectors.
 */
#ifndef SS_PARTY_H
#define SS_PARTY_H

#include "../parts.h"
#include "../policy.h"
#include "../request.h"
#include "../sched.h"
#include "../sorted.h"
#include "areas.h"
#include "senders.h"
#include "streams.h"
#include "think.h"

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/rbtree.h>
#include <linux/types.h>

enum {
	STREAM_THRESHOLD,
	STREAM_WAIT_TARGET,
	STREAM_BACKWARD,
	STREAM_TUNABLES,
};

/* The weight of a request that has none, in percent. */
#define USUAL 100

/* Behind the streams' parties, which have the streams' numbers. */
enum {
	PARTY_REST = NR_STREAMS,
	PARTY_ASYNC,
	PARTY_SENDER,
	NR_PARTIES = PARTY_SENDER + NR_SENDERS,
};

struct ss_party {
	struct rb_node due_node; /* in due while it waits for a turn */
	struct rb_root sorted; /* its own queue, by position */
	u64 due_ns; /* its turn should begin, while something is pending */
	u64 debt_at_ns; /* until when the debt is paid */
	u64 sent_sectors; /* for looking inside: of requests dispatched, */
	u64 used_ns; /* the head time that they took, */
	u32 sent; /* and their number */
	u32 debt_us; /* head time used beyond its part */
	u32 service_us; /* from completion to completion, mean */
	u32 done[2]; /* sectors, in the last turns and under the inner policy */
	u32 weight; /* of its slice, its latest request's, in percent */
	u32 nr_pending;
	u32 nr_in_flight;
	bool light; /* when it is due it interrupts (credit.c) */
	bool had_turn; /* one of its turns has ended */
	bool was_paid; /* its debt, before it was charged last */
	bool flushes; /* what it writes, or did so once */
	u16 nr_done; /* requests in the last turns, U16_MAX at most */
};

/* The reader that was served last (answer.c). */
struct ss_answer {
	struct ss_think think;
	const struct ss_request *last; /* the one sent last, in flight */
	struct ss_request *rq; /* the answer, pending */
	u64 sector; /* where the reader just served is, */
	u64 since_ns; /* and since when */
	u64 began_ns; /* its slice */
	u64 instead_ns; /* what serving last instead costs */
	u64 together_ns; /* a request of the rest with others in the drive */
	bool open; /* there has been no arrival since */
};

/* Whose turn it is; turn.c alone writes it. */
struct ss_turn {
	struct ss_party *party; /* or NULL before the first */
	u64 began_ns;
	struct ss_reader *left; /* waited for in vain, nothing done since */
	struct ss_party *back; /* interrupted by the turn, or NULL */
	u64 back_used_ns; /* how much of its slice it had used */
	u64 back_sector; /* and where the head was */
	const struct ss_request *first; /* of the turn, in flight, or NULL */
	bool holding; /* the head waits for its party */
	bool moved; /* it was another's when it began */
	u64 charged_ns; /* up to when head time is charged */
	struct ss_party *wrote; /* last what is waited for, or NULL */
	const struct ss_sender *wrote_sender; /* in the rest, or NULL */
	u32 nr_flushes; /* under way; they are of the one that wrote */
	u64 flush_ns; /* since when */
	u32 nr_stuck; /* in flight, no longer waited for */
	u64 stuck_ns; /* ... all dispatched before that */
	u64 front_sector; /* where what was sent farthest at its place ends */
	u32 nr_behind; /* in flight, sent when others there were farther */
};

/* A stream may have gone on at another place (elsewhere.c). */
struct ss_elsewhere {
	struct ss_stream *stream; /* it, while that is not known, or NULL */
	u64 from; /* where it ended, */
	u64 to; /* and where it ends if it has gone on */
	bool went; /* it was believed to have */
};

enum ss_trial_part {
	TRIAL_OWN, /* turns, until the next trial */
	TRIAL_SETTLES, /* the inner policy has everything, for a trial */
	TRIAL_MEASURES, /* ... and is measured */
	TRIAL_INNER, /* ... and keeps it */
	TRIAL_CHECKS, /* turns again, for a trial */
};

/* Turns or the inner policy alone (trial.c). */
struct ss_trial {
	enum ss_trial_part part;
	bool inner; /* the inner policy has everything */
	bool won; /* the inner policy, last time */
	u32 alike; /* trials that ended alike since, up to TRIAL_DOUBLED */
	u64 since_ns; /* this part began, */
	u64 until_ns; /* and ends */
	u64 held_ns; /* the head has waited in it, */
	u64 busy_ns; /* and worked */
	u64 done_before; /* requests were done when it began */
	u64 window_ns[2]; /* how long the done sectors took, */
	u64 sectors[2]; /* and how many they are */
};

struct ss_parties {
	struct rb_root_cached
		due; /* all ready but the turn's, first due first */
	struct ss_party *first_due; /* of these, or NULL */
	u32 nr_ready; /* with something pending */
	u32 ready_weight; /* the sum of their weights */
	u64 switch_ns; /* what the first request of a turn costs, mean */
	bool has_weights; /* since the last trial, or now */
	struct list_head age; /* the rest's pending, oldest first, */
	struct list_head age_own; /* and those in parties' own queues */
	/* Of a disk of parts (parts.h), else NULL and 0. */
	ss_takes_turns_fn takes_turns;
	u32 more_parts; /* than one */
	struct ss_request *cached; /* waits for no head (credit.c), or NULL */
	bool caches; /* the drive's cache took the last write waited for */
	struct ss_turn turn;
	struct ss_answer answer;
	struct ss_elsewhere elsewhere;
	struct ss_trial trial;
	struct ss_party party[NR_PARTIES];
	struct ss_reader reader[NR_PARTIES - NR_STREAMS]; /* behind streams */
	struct ss_senders senders; /* of the rest */
	struct ss_areas areas; /* of readers whom no host names */
	struct ss_streams streams;
};

/* The weight of @rq, USUAL if its host says none. */
static inline u32 ss_party_weight(const struct ss_request *rq)
{
	return rq->weight ? rq->weight : USUAL;
}

static inline struct ss_party *ss_party_rest(struct ss_parties *all)
{
	return &all->party[PARTY_REST];
}

/* The party of a dispatched or pending @rq. */
static inline struct ss_party *ss_party_of(struct ss_parties *all,
					   const struct ss_request *rq)
{
	return rq->party ? rq->party : ss_party_rest(all);
}

static inline u32 ss_party_index(const struct ss_parties *all,
				 const struct ss_party *party)
{
	return (u32)(party - all->party);
}

/* The stream of @party, or NULL. */
static inline struct ss_stream *ss_party_stream(struct ss_parties *all,
						const struct ss_party *party)
{
	u32 index = ss_party_index(all, party);

	return index < NR_STREAMS ? &all->streams.stream[index] : NULL;
}

static inline struct ss_party *ss_party_of_stream(struct ss_parties *all,
						  const struct ss_stream *s)
{
	return &all->party[ss_streams_index(&all->streams, s)];
}

/* The established stream of @rq, or NULL. */
static inline struct ss_stream *ss_established(const struct ss_request *rq)
{
	struct ss_stream *s = rq->stream;

	return s && s->established ? s : NULL;
}

/* What @sender has apart from the rest. */
static inline struct ss_party *ss_party_of_sender(
	struct ss_parties *all, const struct ss_sender *sender)
{
	return &all->party[PARTY_SENDER + (sender - all->senders.sender)];
}

/* The sender that has @party apart from the rest, or NULL. */
static inline struct ss_sender *ss_party_sender(struct ss_parties *all,
						const struct ss_party *party)
{
	u32 index = ss_party_index(all, party);

	return index < PARTY_SENDER ?
		       NULL :
		       &all->senders.sender[index - PARTY_SENDER];
}

/* Who sends the requests of @party. */
static inline struct ss_reader *ss_party_reader(struct ss_parties *all,
						const struct ss_party *party)
{
	u32 index = ss_party_index(all, party);

	return index < NR_STREAMS ? &all->streams.stream[index].reader :
				    &all->reader[index - NR_STREAMS];
}

static inline bool ss_party_is_async(const struct ss_parties *all,
				     const struct ss_party *party)
{
	return party == &all->party[PARTY_ASYNC];
}

/* Is @party of what is in no stream, and sync? */
static inline bool ss_party_is_rest(const struct ss_parties *all,
				    const struct ss_party *party)
{
	return ss_party_index(all, party) >= NR_STREAMS &&
	       !ss_party_is_async(all, party);
}

static inline bool ss_party_is_idle(const struct ss_party *party)
{
	return !party->nr_pending && !party->nr_in_flight;
}

/* Has @sender nothing pending or in flight, but in streams? */
static inline bool ss_sender_is_idle(struct ss_parties *all,
				     const struct ss_sender *sender)
{
	return !sender->nr_rest &&
	       ss_party_is_idle(ss_party_of_sender(all, sender));
}

/* Where positioning costs nothing there is nothing to do. */
static inline bool ss_is_flat(const struct ss_policy *policy)
{
	return policy->sched->curve.flat;
}

/* Of those that want the disk, are at work in a flush, or have the turn. */
static inline u32 ss_party_weights(const struct ss_parties *all)
{
	const struct ss_party *turn = all->turn.party;
	const struct ss_party *wrote = all->turn.wrote;
	u32 sum = all->ready_weight;

	if (turn && !turn->nr_pending)
		sum += turn->weight;
	if (all->turn.nr_flushes && wrote && wrote != turn &&
	    !wrote->nr_pending)
		sum += wrote->weight;
	return max_t(u32, sum, USUAL);
}

/* Is somebody else pending? */
static inline bool ss_party_others_wait(const struct ss_parties *all,
					const struct ss_party *party)
{
	return all->nr_ready > (party->nr_pending > 0);
}

/* Has somebody else anything pending or in flight, a new request aside? */
static inline bool ss_party_others_work(const struct ss_policy *policy,
					const struct ss_party *party)
{
	const struct ss_sched *sched = policy->sched;

	return sched->nr_pending + sched->nr_in_flight >
	       party->nr_pending + party->nr_in_flight + 1;
}

/*
 * The next request of @party, which has one pending: by position from where the
 * head is, in the rest the oldest.
 */
static inline struct ss_request *ss_party_next(const struct ss_policy *policy,
					       const struct ss_party *party)
{
	const struct ss_parties *all = policy->state;

	if (party == &all->party[PARTY_REST])
		return list_first_entry(&all->age, struct ss_request, age_node);
	return ss_sorted_round(&party->sorted, policy->sched->head_sector,
			       NULL);
}

/* When the oldest pending request of the rest, which has one, is due. */
static inline u64 ss_party_rest_due_ns(const struct ss_policy *policy)
{
	const struct ss_parties *all = policy->state;

	return ss_party_next(policy, &all->party[PARTY_REST])->arrival_ns +
	       policy->value[STREAM_WAIT_TARGET];
}

/* @rq, which the rest has or has sent, is done or goes elsewhere. */
static inline void ss_party_rest_loses(struct ss_parties *all,
				       struct ss_request *rq)
{
	struct ss_sender *sender = rq->sender;

	if (sender)
		all->senders.nr_rest -= !--sender->nr_rest;
	rq->sender = NULL;
}

/* The idle @party is another one's from now on. */
void ss_party_init(struct ss_party *party);
void ss_party_init_all(struct ss_policy *policy);

/*
 * The party of sync @rq, which has just arrived: its stream's if that is long
 * enough, else the rest. What others have of a stream that takes turns from
 * this request on goes to it.
 */
struct ss_party *ss_party_assign(struct ss_policy *policy,
				 struct ss_request *rq, u64 now_ns);

/* Puts @rq into the queue of @party. */
void ss_party_add(struct ss_policy *policy, struct ss_party *party,
		  struct ss_request *rq, u64 now_ns);

/* Moves the pending @rq into the queue of @party. */
void ss_party_move(struct ss_policy *policy, struct ss_request *rq,
		   struct ss_party *party, u64 now_ns);

/* Takes @rq, dispatched or @removed, out of its party's queue. */
void ss_party_take(struct ss_policy *policy, struct ss_request *rq,
		   bool removed, u64 now_ns);

/* @party, which has something pending, is due at @due_ns. */
void ss_party_is_due(struct ss_parties *all, struct ss_party *party,
		     u64 due_ns);

/* @party takes part in the order of who is due, or (it has the turn) not. */
void ss_party_queues(struct ss_parties *all, struct ss_party *party);
void ss_party_leaves(struct ss_parties *all, struct ss_party *party);

#endif
