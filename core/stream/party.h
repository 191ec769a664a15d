/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of this folder share; nobody else includes this. Times are in
 * ns, positions and lengths in sectors of 512 bytes.
 *
 * The scheduler in a few sentences. Requests that go on from each other make a
 * stream, and a stream of some members is a party with a queue of its own. All
 * other requests are the inner policy's and together one more party, the rest.
 * Write-back is the last party (party.c). One party has the disk at a time, for
 * a slice (slice.c, choose.c). If the party has nothing to do the head waits
 * for it as long as that has paid (wait.c). Head time is charged to the party
 * that uses it, and an idle party with credit interrupts (credit.c). Where the
 * inner policy alone serves more, and nobody less, it has everything (trial.c).
 */
#ifndef SS_PARTY_H
#define SS_PARTY_H

#include "../parts.h"
#include "../policy.h"
#include "../request.h"
#include "../sched.h"

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

/*
 * Streams remembered at once, candidates included. Half: 64 readers no longer
 * fit. Double: 50 KiB of state, and each arrival looks at twice as many.
 */
#define NR_STREAMS 96

/* The weight of a request that has none, in percent. */
#define USUAL 100
/* Of what is in no stream, other weights that are told apart. */
#define NR_WEIGHED 3

/* The end of a stream that is free: far from all sectors. */
#define NOWHERE (U64_MAX / 2)

/* When a party's next request comes, and what waiting for it has won. */
struct pause {
	u64 mean_ns; /* from idle to the next request */
	u64 deviation_ns;
	s64 ledger_ns; /* what waits won less what they lost */
	u32 nr; /* samples, up to PAUSE_FEW */
};

struct party {
	struct list_head node; /* on free, candidates or parties */
	struct list_head ready; /* on ready while something is pending */
	struct list_head age; /* its pending requests, oldest first */
	struct list_head members; /* a candidate's, pending in the inner */
	struct rb_root sorted; /* its own queue, by position */
	u64 end_sector; /* where its last member ends, or NOWHERE */
	u64 idle_since_ns; /* the last open request was done */
	u64 turn_ended_ns;
	u64 light_at_ns; /* from then on it interrupts, or SS_FOREVER */
	u64 debt_ns; /* head time used beyond its part, at: */
	u64 debt_at_ns;
	u64 service_ns; /* from completion to completion, mean */
	u64 sent; /* for looking inside: requests dispatched, */
	u64 sent_sectors; /* their length, */
	u64 used_ns; /* and the head time that they took */
	u64 done[2]; /* sectors, in the last turns and under the inner policy */
	struct pause pause;
	struct ss_parts parts;
	u32 size; /* members so far */
	u32 weight; /* of its slice, its latest request's, in percent */
	u32 nr_pending;
	u32 nr_in_flight;
	u32 nr_open; /* members that are not done, in any queue */
	bool contended; /* others were pending when it became idle */
	bool had_turn; /* one of its turns has ended */
	bool established; /* it takes turns */
};

/* The reader that was served last (answers.c). */
struct answer {
	struct pause pause;
	const struct ss_request *last; /* the one sent last, in flight */
	struct ss_request *rq; /* the answer, pending */
	u64 sector; /* where the reader just served is, */
	u64 since_ns; /* and since when */
	u64 began_ns; /* its slice */
	u64 instead_ns; /* what serving last instead costs */
	u64 together_ns; /* a request of the rest with others in the drive */
	bool open; /* there has been no arrival since */
};

enum trial_part {
	TRIAL_OWN, /* turns, until the next trial */
	TRIAL_SETTLES, /* the inner policy has everything, for a trial */
	TRIAL_MEASURES, /* ... and is measured */
	TRIAL_INNER, /* ... and keeps it */
	TRIAL_CHECKS, /* turns again, for a trial */
};

/* Turns or the inner policy alone (trial.c). */
struct trial {
	enum trial_part part;
	bool inner; /* the inner policy has everything */
	bool won; /* the inner policy, last time */
	u32 alike; /* trials that ended alike since, up to TRIAL_DOUBLED */
	u64 since_ns; /* this part began, */
	u64 until_ns; /* and ends */
	u64 held_ns; /* the head has waited in it */
	u64 window_ns[2]; /* how long the done sectors took */
};

/* All of the policy's run-time state; its settings are its tunables. */
struct parties {
	struct list_head free;
	struct list_head candidates; /* too short for a party, oldest first */
	struct list_head known; /* established streams, oldest first */
	struct list_head ready; /* parties with something pending */
	u32 nr_ready;
	u32 ready_weight; /* the sum of their weights */
	u32 nr_light; /* of those: with a light_at_ns */
	/* Of a disk of parts (parts.h), else NULL. */
	bool (*takes_turns)(const struct ss_sched *sched,
			    const struct ss_request *rq, u64 pause_ns,
			    struct ss_parts *parts);
	struct party *turn; /* whose turn it is, or NULL */
	u64 began_ns; /* when it began */
	u64 late_ns; /* from then on somebody has waited beyond the target */
	struct party *back; /* interrupted by the turn, or NULL */
	u64 back_used_ns; /* how much of its slice it had used */
	u64 back_sector; /* and where the head was */
	const struct ss_request *first; /* of a turn, in flight, or NULL */
	bool holding; /* the head waits for the turn's party */
	struct pause
		young; /* the ledger of all whose stream is new, together */
	u64 switch_ns; /* what the first request of a turn costs, mean */
	u64 charged_ns; /* up to when head time is charged */
	u32 nr_stuck; /* in flight, no longer waited for */
	u64 stuck_ns; /* ... all dispatched before that */
	struct answer answer;
	struct trial trial;
	struct party rest;
	struct party async;
	struct party
		weighed[NR_WEIGHED]; /* of no stream, not of usual weight */
	bool has_weights; /* since the last trial, or now */
	struct party stream[NR_STREAMS];
	u64 end[NR_STREAMS]; /* of each its end_sector, to be searched fast */
};

/* The party whose turn serves @rq. */
static inline struct party *party_of(struct parties *all,
				     const struct ss_request *rq)
{
	return rq->party ? rq->party : &all->rest;
}

/* Is @party of what is in no stream, and waited for? */
static inline bool is_rest(const struct parties *all, const struct party *party)
{
	return party == &all->rest ||
	       (party >= all->weighed && party < all->weighed + NR_WEIGHED);
}

static inline bool is_idle(const struct party *party)
{
	return !party->nr_pending && !party->nr_in_flight;
}

/* Where positioning costs nothing there is nothing to do. */
static inline bool is_flat(const struct ss_policy *policy)
{
	return policy->sched->curve.flat;
}

/* Of the parties that want the disk, and of the one whose turn it is. */
static inline u32 weight_sum(const struct parties *all)
{
	u32 sum = all->ready_weight;

	if (all->turn && !all->turn->nr_pending)
		sum += all->turn->weight;
	return max_t(u32, sum, USUAL);
}

/*
 * How many in flight have to be waited for. A command that has not come back
 * for long (the drive or what is behind it may be trying again) holds nobody.
 */
static inline u32 nr_moving(const struct ss_policy *policy)
{
	const struct parties *all = policy->state;
	u32 nr = policy->sched->nr_in_flight;

	return nr - min_t(u32, nr, all->nr_stuck);
}

/* Until when they are waited for. */
static inline u64 stuck_at_ns(const struct ss_policy *policy)
{
	const struct parties *all = policy->state;

	return all->charged_ns + policy->value[STREAM_WAIT_TARGET];
}

/* Is somebody else pending? */
static inline bool others_wait(const struct parties *all,
			       const struct party *party)
{
	return all->nr_ready > (party->nr_pending > 0);
}

/* Has somebody else anything pending or in flight? */
static inline bool others_work(const struct ss_policy *policy,
			       const struct party *party)
{
	const struct ss_sched *sched = policy->sched;

	return sched->nr_pending + sched->nr_in_flight >
	       party->nr_pending + party->nr_in_flight + 1;
}

/* ---- party.c ---- */

void ss_party_init_all(struct ss_policy *policy);

/* Stream @s ends at @sector now. */
static inline void ss_party_ends_at(struct parties *all, struct party *s,
				    u64 sector)
{
	s->end_sector = sector;
	all->end[s - all->stream] = sector;
}

/*
 * The party of @rq, which has just arrived: its stream's if that is long
 * enough, else the rest or write-back.
 */
struct party *ss_party_find(struct ss_policy *policy, struct ss_request *rq,
			    u64 now_ns);

/* Is it so new that its own pauses say little? */
static inline bool ss_party_is_young(const struct ss_policy *policy,
				     const struct party *party)
{
	const struct parties *all = policy->state;

	return !is_rest(all, party) &&
	       party->size < 2 * policy->value[STREAM_THRESHOLD];
}

/* Puts @rq into the queue of @party. */
void ss_party_add(struct ss_policy *policy, struct party *party,
		  struct ss_request *rq, u64 now_ns);

/* Moves the pending @rq into the queue of @party. */
void ss_party_move(struct ss_policy *policy, struct ss_request *rq,
		   struct party *party, u64 now_ns);

/* What the inner policy has of the established @party becomes its own. */
void ss_party_has_members(struct ss_policy *policy, struct party *party,
			  u64 now_ns);

/* Takes @rq, dispatched or @removed, out of its party's queue. */
void ss_party_take(struct ss_policy *policy, struct ss_request *rq,
		   bool removed, u64 now_ns);

/* @rq is dispatched: others may go on from it. */
void ss_party_becomes_parent(struct ss_policy *policy, struct ss_request *rq);

/* @rq is done or removed. True if nothing of its stream is open any more. */
bool ss_party_closes(struct ss_request *rq);

/* ---- wait.c ---- */

/* @party has become idle. */
static inline void ss_pause_begins(const struct parties *all,
				   struct party *party, u64 now_ns)
{
	party->idle_since_ns = now_ns;
	party->contended = others_wait(all, party);
}

/* The idle @party has a request again. */
void ss_pause_ends(const struct ss_policy *policy, struct party *party,
		   u64 now_ns);

/*
 * A request came @pause_ns after what it was waited for, and serving it then
 * saves @saves_ns: books what waiting won or lost. True if it won.
 */
bool ss_pause_note(const struct ss_policy *policy, struct pause *pause,
		   u64 pause_ns, s64 saves_ns);

/* The head has waited for @party in vain. Its next request may never come. */
void ss_pause_in_vain(const struct ss_policy *policy,
		      const struct party *party);

/* Has it paid to wait? */
static inline bool ss_pause_pays(const struct pause *pause)
{
	return pause->ledger_ns >= 0;
}

/* How long to wait at most. */
u64 ss_pause_limit_ns(const struct parties *all, const struct pause *pause);

/* Until when the head waits for the idle @party; 0: it does not. */
u64 ss_pause_until_ns(const struct ss_policy *policy,
		      const struct party *party);

/* ---- credit.c ---- */

/* @party has used @used_ns of the head's time. */
void ss_credit_charge(const struct ss_policy *policy, struct party *party,
		      u64 used_ns, u64 now_ns);

/* The idle @party has a request: from when on may it interrupt? */
void ss_credit_arrived(const struct ss_policy *policy, struct party *party,
		       u64 now_ns);

/* It has the disk, or nothing pending: it interrupts no longer. */
void ss_credit_clear(struct parties *all, struct party *party);

/* ---- answers.c ---- */

/* @rq comes to @party, which has it not yet: is it the answer? */
void ss_answer_arrived(const struct ss_policy *policy,
		       const struct party *party, struct ss_request *rq,
		       u64 now_ns);
/* @rq, whose turn it is now, goes to the disk. */
void ss_answer_dispatched(const struct ss_policy *policy,
			  const struct ss_request *rq, u64 now_ns);
/* @rq is done. */
void ss_answer_completed(const struct ss_policy *policy,
			 const struct ss_request *rq, u64 now_ns);
/* The disk goes to another place. */
void ss_answer_ends(struct parties *all, u64 now_ns);
/* Is the next arrival the answer of the reader that was at @sector last? */
static inline bool ss_answer_expected(const struct parties *all, u64 sector)
{
	return all->answer.open && !all->answer.last &&
	       all->answer.sector == sector;
}

/* Have answers paid, and has somebody been served who may send one? */
bool ss_answer_pays(const struct parties *all);
/* Until when the head waits for one; 0: it does not. */
u64 ss_answer_until_ns(const struct parties *all);
/* What answers say of the rest's turn; SS_NOTHING: the inner policy chooses. */
struct ss_decision ss_answer_choose(const struct ss_policy *policy, u64 now_ns);

/* ---- slice.c ---- */

/* How long a turn of @weight lasts while others wait, and what these weigh. */
u64 ss_turn_slice_ns(const struct ss_policy *policy, u32 weight, u32 nr_others,
		     u32 others_weight);

/* Is the turn of @party over? */
bool ss_turn_is_over(const struct ss_policy *policy, const struct party *party,
		     u64 now_ns);

/* A turn begins: from when on has somebody waited for too long? */
void ss_turn_note_late(const struct ss_policy *policy);

/* @rq of @party goes to the disk: a turn may begin with it. */
void ss_turn_dispatched(struct ss_policy *policy, struct party *party,
			const struct ss_request *rq, u64 now_ns);

/* @rq of @party is done. */
void ss_turn_completed(struct ss_policy *policy, struct party *party,
		       const struct ss_request *rq, u64 now_ns);

/* Counts waits: is the head idle for the turn's party by now? */
void ss_turn_note_holding(const struct ss_policy *policy, u64 now_ns);

/* ---- trial.c ---- */

/* At each arrival and completion: is it time to try the other way? */
void ss_trial_time_passes(struct ss_policy *policy, u64 now_ns);

/* @rq is done. */
void ss_trial_done(struct ss_policy *policy, const struct ss_request *rq);

/* ---- choose.c ---- */

/* What would be done if nobody went on at the place that is served. */
struct ss_decision ss_turn_instead(const struct ss_policy *policy, u64 now_ns);

/* Since when has the party but @turn waited that has waited longest? */
u64 ss_turn_oldest_ns(const struct parties *all, const struct party *turn);

struct ss_decision ss_turn_choose(const struct ss_policy *policy, u64 now_ns,
				  const struct ss_request *skip);

#endif
