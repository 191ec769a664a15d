/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trials: is holding the head worth it, by what the disk really did?
 *
 * What waiting wins is an estimate by the curve. What the inner policy by
 * itself would make of the same requests can be far better than the curve
 * says: a drive may serve many readers out of its cache, or put a full queue
 * into an order that needs no holding. So the two are compared, as two modes:
 * holding, and the inner policy alone.
 *
 * Each mode's prices are what requests cost in it: the time from completion
 * to completion, less the transfer, by direction, size and whether the request
 * continued a stream. While one mode is tried, what it serves is priced by the
 * other: the difference is its loss. So a mode does not look better because
 * it serves what is cheap and leaves the rest.
 *
 * A trial that has lost its stake ends at once, so trying costs little where
 * it is clearly worse; where nothing is lost it goes on until it can be told.
 * The mode that lost is tried again after pauses that double, or grow by
 * TRIAL_BACK_OFF where it had clearly lost. Where holding serves at nearly the
 * rate at which the surface passes under the head there is nothing to win,
 * and nothing is tried.
 *
 * With a target for waits ("aimed") turns are longer and a trial puts them
 * out of step, so it begins later, may lose less, and must win something. There
 * is none while the framework has decided nothing, when holding is the inner
 * policy alone anyway. And a trial may be won by what the other mode had
 * brought into the drive's cache: so the prices of holding are kept, and where
 * the inner policy turns out to be dearer, its trial is lost later. With
 * several commands in the device there is one only where holding is dear.
 */
#ifndef SS_TRIAL_H
#define SS_TRIAL_H

#include "request.h"
#include "tunable.h"

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

enum ss_trial_mode { SS_TRIAL_HOLD, SS_TRIAL_ALONE, SS_TRIAL_MODES };

/* Classes of requests: 4 sizes, in a stream or not, read or write. */
#define TRIAL_SIZES 4
#define TRIAL_CLASSES (TRIAL_SIZES * 2 * SS_DIRECTIONS)
/* Fewer requests than this tell no price. */
#define TRIAL_FEW 4
/* Prices are means of about this many requests at most. */
#define TRIAL_MEMORY 8192
/* So long a mode lasts before its prices count; the drive's cache holds what
 * the other mode brought into it.
 */
#define TRIAL_HOLD_BEGINS (200 * SS_MSEC)
#define TRIAL_ALONE_BEGINS (60 * SS_MSEC)
/* Pauses before a mode is tried: the shortest ones, and the longest. */
#define TRIAL_ALONE_PAUSE (600 * SS_MSEC)
#define TRIAL_AIMED_PAUSE (1500 * SS_MSEC)
#define TRIAL_HOLD_PAUSE (5 * SS_SEC)
#define TRIAL_MOST_PAUSE (30 * SS_SEC)
#define TRIAL_BACK_OFF 4
/* Of the pause before it, a trial lasts a fourth and may lose a sixteenth. */
#define TRIAL_LENGTH 4
#define TRIAL_LEAST_LENGTH (600 * SS_MSEC)
#define TRIAL_MOST_LENGTH (2400 * SS_MSEC)
#define TRIAL_STAKE 16
#define TRIAL_LEAST_STAKE (100 * SS_MSEC)
#define TRIAL_MOST_STAKE (200 * SS_MSEC)
/* With a target: before it counts, and then. */
#define TRIAL_AIMED_FIRST_STAKE (20 * SS_MSEC)
#define TRIAL_AIMED_STAKE (40 * SS_MSEC)
/*
 * The inner policy has won, and has lost so much since, beyond a part of the
 * time: then its trial is lost.
 */
#define TRIAL_REGRET (200 * SS_MSEC)
#define TRIAL_REGRET_PART 25
/*
 * In thousandths of a trial's time: the inner policy alone may lose this, for
 * it makes nobody wait, or must win that where there is a target, more of it
 * with several commands in the device; and holding must win this.
 */
#define TRIAL_ALONE_LOSES 40
#define TRIAL_AIMED_WINS 50
#define TRIAL_DEEP_WINS 150
#define TRIAL_HOLD_WINS 150
/* From this share of the time spent transferring on there is no trial. */
#define TRIAL_MEDIA 900
#define TRIAL_AIMED_MEDIA 500
/*
 * With a target and several commands in the device, from this share: the drive
 * has to empty itself for a trial, and keeps no target where it orders them.
 */
#define TRIAL_DEEP_MEDIA 250
/* Nor unless requests cost this part of a random one by itself, ... */
#define TRIAL_DEEP_PART 4
/* ... and not as long as they come to cost less by this part in a pause. */
#define TRIAL_DEEP_FALLS 8
/* A lost trial was clearly lost by this part of its time. */
#define TRIAL_CLEARLY 2
#define TRIAL_AIMED_CLEARLY 4
/* For so long what the framework decided makes a difference, or about. */
#define TRIAL_DECIDED (500 * SS_MSEC)

/* What requests of one class cost beyond their transfer. */
struct ss_trial_price {
	s64 sum_ns;
	u32 requests; /* as they came, before they were merged */
};

struct ss_trial {
	u8 mode; /* enum ss_trial_mode */
	bool open; /* this mode is on trial */
	bool begun; /* it has lasted long enough to count */
	bool settled; /* begun and not on trial */
	bool plain; /* settled, the inner policy alone, and not aimed */
	bool idle; /* nothing was to be done since last_ns */
	bool aimed; /* there is a target for waits */
	u64 since_ns; /* when the mode began */
	u64 last_ns; /* up to when time is accounted for */
	u64 counted_ns; /* this mode's time, or this trial's */
	u64 decided_ns; /* of which the framework made a difference */
	u64 last_decided_ns; /* when it did last; 0: not in this mode */
	u64 media_ns; /* of which transfer */
	u32 nr_counted; /* requests in that time */
	u64 deep_ns; /* with several commands: what a random one costs alone */
	u64 before_ns; /* what a request cost in the pause looked at before */
	s64 loss_ns; /* against the other mode's prices */
	s64 begun_loss_ns; /* of which before the trial counted */
	u64 pause_ns[SS_TRIAL_MODES]; /* before this mode is tried */
	u64 until_ns; /* of decided_ns: then the other mode is tried */
	u64 length_ns; /* of a trial of this mode */
	s64 stake_ns; /* which it may lose at once */
	struct ss_trial_price seen[SS_TRIAL_MODES][TRIAL_CLASSES];
	u32 nr_seen[SS_TRIAL_MODES];
	s64 price_ns[TRIAL_CLASSES]; /* by the other mode; S64_MAX: unknown */
};

/* What depends on the mode and the pauses, for each completion to look at. */
static inline void trial_set_limits(struct ss_trial *trial)
{
	u64 pause = trial->pause_ns[trial->mode];

	trial->until_ns = trial->pause_ns[!trial->mode];
	trial->stake_ns = (s64)min_t(u64, TRIAL_MOST_STAKE,
				     max_t(u64, TRIAL_LEAST_STAKE,
					   pause / TRIAL_STAKE));
	trial->length_ns = min_t(u64, TRIAL_MOST_LENGTH,
				 max_t(u64, TRIAL_LEAST_LENGTH,
				       pause / TRIAL_LENGTH));
}

/* The pause before @mode is tried, as long as it has not lost a trial. */
static inline u64 trial_first_pause(const struct ss_trial *trial, u32 mode)
{
	if (mode == SS_TRIAL_HOLD)
		return TRIAL_HOLD_PAUSE;
	return trial->aimed ? TRIAL_AIMED_PAUSE : TRIAL_ALONE_PAUSE;
}

/* There is a target for waits from now on (@aimed), or is none. */
static inline void ss_trial_aim(struct ss_trial *trial, bool aimed)
{
	u32 mode;

	trial->aimed = aimed;
	for (mode = 0; mode < SS_TRIAL_MODES; mode++)
		trial->pause_ns[mode] = trial_first_pause(trial, mode);
	trial_set_limits(trial);
}

static inline void ss_trial_init(struct ss_trial *trial)
{
	trial->idle = true;
	ss_trial_aim(trial, false);
}

/* The inner policy has the disk to itself. */
static inline bool ss_trial_is_alone(const struct ss_trial *trial)
{
	return trial->mode == SS_TRIAL_ALONE;
}

/* Of how many requests, as they came, @rq consists. */
static inline u32 trial_weight(const struct ss_request *rq)
{
	return 1 + rq->host_merges;
}

static inline u32 trial_class(const struct ss_request *rq)
{
	u32 nr = trial_weight(rq), sectors = rq->nr_sectors;
	u32 size = (sectors > 16 * nr) + (sectors > 64 * nr) +
		   (sectors > 128 * nr);

	return size + TRIAL_SIZES * (rq->stream_size > 1) +
	       2 * TRIAL_SIZES * rq->direction;
}

/* The class's price, or that of the most similar one of its direction. */
static inline s64 trial_price(const struct ss_trial_price *seen, u32 class)
{
	u32 kind, by, size = class % TRIAL_SIZES;

	for (kind = 0; kind < 2; kind++, class ^= TRIAL_SIZES) {
		const struct ss_trial_price *at = &seen[class - size];

		for (by = 0; by < TRIAL_SIZES; by++) {
			if (size >= by && at[size - by].requests >= TRIAL_FEW)
				return div_s64(at[size - by].sum_ns,
					       at[size - by].requests);
			if (size + by < TRIAL_SIZES &&
			    at[size + by].requests >= TRIAL_FEW)
				return div_s64(at[size + by].sum_ns,
					       at[size + by].requests);
		}
	}
	return S64_MAX;
}

static inline void trial_count_anew(struct ss_trial *trial)
{
	trial->counted_ns = 0;
	trial->decided_ns = 0;
	trial->media_ns = 0;
	trial->nr_counted = 0;
}

/* The other mode's turn: on trial, or because this one's trial was lost. */
static noinline void trial_change(struct ss_trial *trial, bool open, u64 now_ns)
{
	u32 i, mode = !trial->mode;

	for (i = 0; i < TRIAL_CLASSES; i++)
		trial->price_ns[i] = trial_price(trial->seen[trial->mode], i);
	for (i = 0; open && i < TRIAL_CLASSES; i++)
		trial->seen[mode][i] = (struct ss_trial_price){ 0 };
	if (open)
		trial->nr_seen[mode] = 0;
	trial->mode = mode;
	trial->open = open;
	trial->begun = false;
	trial->settled = false;
	trial->plain = false;
	trial->since_ns = now_ns;
	trial->last_decided_ns = 0;
	trial->loss_ns = 0;
	trial_count_anew(trial);
	trial_set_limits(trial);
}

/*
 * A request has come. Idling counts, for closed loops go on only then; but no
 * more of it than @most_ns, what could have been waited.
 */
static inline void ss_trial_arrived(struct ss_trial *trial, u64 most_ns,
				    u64 now_ns)
{
	if (trial->idle && now_ns > trial->last_ns + most_ns)
		trial->last_ns = now_ns - most_ns;
	trial->idle = false;
}

/* The mode is no longer on trial, and its prices count. */
static inline void trial_settles(struct ss_trial *trial)
{
	trial->settled = true;
	trial->plain = ss_trial_is_alone(trial) && !trial->aimed;
}

/* Old prices fade. */
static noinline void trial_forget(struct ss_trial *trial)
{
	struct ss_trial_price *seen = trial->seen[trial->mode];
	u32 i;

	for (i = 0; i < TRIAL_CLASSES; i++) {
		seen[i].sum_ns /= 2;
		seen[i].requests /= 2;
	}
	trial->nr_seen[trial->mode] /= 2;
}

/* There are so many prices of @mode that they are to fade. */
static inline bool trial_knows_enough(const struct ss_trial *trial, u32 mode)
{
	return trial->nr_seen[mode] > TRIAL_MEMORY;
}

/* A request cost @cost_ns in @mode beyond its transfer. */
static inline void trial_add(struct ss_trial *trial, u32 mode, u32 class,
			     u32 weight, s64 cost_ns)
{
	struct ss_trial_price *seen = &trial->seen[mode][class];

	seen->sum_ns += cost_ns;
	seen->requests += weight;
	trial->nr_seen[mode] += weight;
}

/* The same in the mode of now: remember it as a price. */
static inline void trial_note(struct ss_trial *trial, u32 class, u32 weight,
			      s64 cost_ns)
{
	trial_add(trial, trial->mode, class, weight, cost_ns);
	if (unlikely(trial_knows_enough(trial, trial->mode)))
		trial_forget(trial);
}

static inline void trial_lost(struct ss_trial *trial, u64 now_ns)
{
	u64 *pause = &trial->pause_ns[trial->mode];
	s64 part = trial->aimed ? TRIAL_AIMED_CLEARLY : TRIAL_CLEARLY;
	bool clearly = (trial->begun || trial->aimed) &&
		       part * trial->loss_ns > (s64)trial->counted_ns;

	*pause *= clearly || trial->mode == SS_TRIAL_HOLD ? TRIAL_BACK_OFF : 2;
	*pause = min_t(u64, *pause, TRIAL_MOST_PAUSE);
	trial_change(trial, false, now_ns);
}

/* Has the inner policy lost by now what it had won the disk with? */
static inline bool trial_is_regretted(const struct ss_trial *trial)
{
	u64 allowed_ns = TRIAL_REGRET +
			 div_u64(trial->counted_ns, TRIAL_REGRET_PART);

	return trial->aimed && ss_trial_is_alone(trial) &&
	       trial->loss_ns > (s64)allowed_ns;
}

/*
 * Is there nothing that the inner policy by itself could win, or not yet? What
 * a request costs now is kept for the next time.
 */
static inline bool trial_is_vain(struct ss_trial *trial)
{
	bool deep = trial->aimed && trial->deep_ns;
	u64 most = deep		? TRIAL_DEEP_MEDIA :
		   trial->aimed ? TRIAL_AIMED_MEDIA :
				  TRIAL_MEDIA;
	u64 before_ns = trial->before_ns, cost_ns;

	if (trial->media_ns * 1000 > trial->counted_ns * most)
		return true;
	if (!deep)
		return false;
	cost_ns = div_u64(trial->counted_ns - trial->media_ns,
			  max_t(u32, trial->nr_counted, 1));
	trial->before_ns = cost_ns;
	return cost_ns * TRIAL_DEEP_PART < trial->deep_ns || !before_ns ||
	       cost_ns < before_ns - before_ns / TRIAL_DEEP_FALLS;
}

/* The mode has been settled for long: is it time for a trial? */
static noinline void trial_due(struct ss_trial *trial, u64 now_ns)
{
	if (trial_is_regretted(trial)) {
		trial_lost(trial, now_ns);
		return;
	}
	if (trial->aimed && ss_trial_is_alone(trial))
		trial->pause_ns[SS_TRIAL_ALONE] = TRIAL_AIMED_PAUSE;
	if (!ss_trial_is_alone(trial) && trial_is_vain(trial)) {
		trial_count_anew(trial);
		return;
	}
	trial_change(trial, true, now_ns);
}

static inline void trial_won(struct ss_trial *trial)
{
	trial->open = false;
	trial_settles(trial);
	trial->loss_ns = 0;
	trial_count_anew(trial);
	/* With a target, it is not won before its time is over. */
	if (!trial->aimed || !ss_trial_is_alone(trial))
		trial->pause_ns[trial->mode] = trial_first_pause(trial,
								 trial->mode);
}

/* What the mode on trial has lost; what it won at first was in the cache. */
static inline s64 trial_loss_ns(const struct ss_trial *trial)
{
	s64 before_ns = trial->begun ? trial->begun_loss_ns : 0;

	return trial->loss_ns - min_t(s64, before_ns, 0);
}

/* Has the trial lost its stake? */
static inline bool trial_is_lost(const struct ss_trial *trial)
{
	if (!trial->aimed || !ss_trial_is_alone(trial))
		return trial->loss_ns > trial->stake_ns;
	return trial_loss_ns(trial) > (s64)(trial->begun ?
						    TRIAL_AIMED_STAKE :
						    TRIAL_AIMED_FIRST_STAKE);
}

/* A trial is under way: has it been decided? */
static inline void trial_judge(struct ss_trial *trial, u64 now_ns)
{
	s64 loss_ns, allowed = TRIAL_ALONE_LOSES;

	if (trial_is_lost(trial)) {
		trial_lost(trial, now_ns);
		return;
	}
	if (!trial->begun || trial->counted_ns < trial->length_ns)
		return;
	loss_ns = trial_loss_ns(trial);
	if (trial->mode == SS_TRIAL_HOLD)
		allowed = -TRIAL_HOLD_WINS;
	else if (trial->aimed)
		allowed = trial->deep_ns ? -TRIAL_DEEP_WINS : -TRIAL_AIMED_WINS;
	if (loss_ns * 1000 > (s64)trial->counted_ns * allowed)
		trial_lost(trial, now_ns);
	else
		trial_won(trial);
}

/* @took_ns passed in this mode; at its end the framework @decided, or not. */
static inline void trial_count(struct ss_trial *trial, u64 took_ns,
			       u64 transfer_ns, bool decided, u64 now_ns)
{
	trial->counted_ns += took_ns;
	trial->nr_counted++;
	trial->media_ns += transfer_ns;
	if (decided)
		trial->last_decided_ns = now_ns;
	if (!trial->aimed || (trial->last_decided_ns &&
			      now_ns <= trial->last_decided_ns + TRIAL_DECIDED))
		trial->decided_ns += took_ns;
}

/* What a request of @class lost against the other mode's price. */
static inline s64 trial_request_loss(const struct ss_trial *trial, u32 class,
				     u32 weight, s64 cost_ns)
{
	if (trial->price_ns[class] == S64_MAX)
		return 0;
	return cost_ns - trial->price_ns[class] * weight;
}

/*
 * The disk has done @rq, whose data took @transfer_ns to pass its head, while
 * the mode is settled. @idle: that was the last one for now. @decided: the
 * framework had a say in it. Returns whether it is time to try the other mode:
 * then trial_due() is to be called.
 */
static inline bool ss_trial_settled(struct ss_trial *trial,
				    const struct ss_request *rq,
				    u64 transfer_ns, bool idle, bool decided,
				    u64 now_ns)
{
	u64 took_ns = now_ns - trial->last_ns;
	s64 cost_ns = (s64)took_ns - (s64)transfer_ns;
	u32 class = trial_class(rq), weight = trial_weight(rq);

	trial->last_ns = now_ns;
	trial->idle = idle;
	/* From before: the mode did not choose it. */
	if (rq->dispatch_ns < trial->since_ns)
		return false;
	trial_count(trial, took_ns, transfer_ns, decided, now_ns);
	trial_note(trial, class, weight, cost_ns);
	if (ss_trial_is_alone(trial)) {
		trial->loss_ns += trial_request_loss(trial, class, weight,
						     cost_ns);
		/* What it has won before does not pay for long. */
		trial->loss_ns = max_t(s64, trial->loss_ns, -(s64)TRIAL_REGRET);
	}
	return trial->decided_ns > trial->until_ns || trial_is_regretted(trial);
}

/*
 * As ss_trial_settled() while the mode is plain: what it has lost so far, and
 * what of its time was transfer, nobody asks then. Returns whether old prices
 * are to fade, or it is time to try the other mode.
 */
static inline bool ss_trial_plain(struct ss_trial *trial,
				  const struct ss_request *rq, u64 transfer_ns,
				  bool idle, u64 now_ns)
{
	u64 took_ns = now_ns - trial->last_ns;

	trial->last_ns = now_ns;
	trial->idle = idle;
	if (rq->dispatch_ns < trial->since_ns)
		return false;
	trial->decided_ns += took_ns;
	trial_add(trial, SS_TRIAL_ALONE, trial_class(rq), trial_weight(rq),
		  (s64)took_ns - (s64)transfer_ns);
	return trial_knows_enough(trial, SS_TRIAL_ALONE) ||
	       trial->decided_ns > trial->until_ns;
}

/* The disk has done @rq on trial, or before the mode's prices count. */
static noinline void trial_goes_on(struct ss_trial *trial,
				   const struct ss_request *rq, u64 transfer_ns,
				   bool idle, bool decided, u64 now_ns)
{
	u64 took_ns = now_ns - trial->last_ns;
	s64 cost_ns = (s64)took_ns - (s64)transfer_ns;
	u32 class = trial_class(rq), weight = trial_weight(rq);
	u64 begins = ss_trial_is_alone(trial) ? TRIAL_ALONE_BEGINS :
						TRIAL_HOLD_BEGINS;

	trial->last_ns = now_ns;
	trial->idle = idle;
	if (rq->dispatch_ns < trial->since_ns)
		return;
	trial_count(trial, took_ns, transfer_ns, decided, now_ns);
	if (trial->begun)
		trial_note(trial, class, weight, cost_ns);
	if (trial->open)
		trial->loss_ns += trial_request_loss(trial, class, weight,
						     cost_ns);
	if (!trial->begun && trial->counted_ns > begins) {
		trial->begun = true;
		if (!trial->open)
			trial_settles(trial);
		trial->begun_loss_ns = trial->loss_ns;
		if (trial->open)
			trial->counted_ns = 0;
	}
	if (trial->open)
		trial_judge(trial, now_ns);
	else if (trial->decided_ns > trial->until_ns)
		trial_due(trial, now_ns);
}

/* The same, whether the mode is settled or not. */
static inline void ss_trial_completed(struct ss_trial *trial,
				      const struct ss_request *rq,
				      u64 transfer_ns, bool idle, bool decided,
				      u64 now_ns)
{
	if (!trial->settled)
		trial_goes_on(trial, rq, transfer_ns, idle, decided, now_ns);
	else if (ss_trial_settled(trial, rq, transfer_ns, idle, decided,
				  now_ns))
		trial_due(trial, now_ns);
}

#endif
