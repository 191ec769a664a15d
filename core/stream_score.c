// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: does waiting pay, and is the curve right?
 *
 * A score of how waiting would have ended, by length of stream, kept whether
 * or not the head was held; and what positioning really took, against the
 * curve. Both are running means; with the inner policy alone they stand still.
 */
#include "stream.h"

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

/* The score forgets by 1/SCORE_MEMORY at each outcome. */
#define SCORE_MEMORY 64
/*
 * Waiting must have won this many times what it lost. More than once: what it
 * wins is an estimate by the curve, what it loses is a time that passed.
 */
#define SCORE_FACTOR 2
/* And so many children must have come for each time that none did. */
#define SCORE_CHILDREN 1
/*
 * Of the time spent waiting for a child that came, this part counts as lost:
 * the others' processes would have been thinking while they were served.
 */
#define SCORE_IDLE 6
/* What the curve's estimates came to: a mean of about this many. */
#define TRUTH_MEMORY 16
/* One that took longer than this many thousandths of it met something else. */
#define TRUTH_MOST 4000
/*
 * For so long in its turn a stream may grow to lengths of which nothing is
 * known. Not longer: those that are new, too, wait meanwhile.
 */
#define GROWING (200 * SS_MSEC)
/* The first span of children, in ns: a power of two, about 65 us. */
#define SPAN_SHIFT 16
/* After so many outcomes the time is found anew; then half is forgotten. */
#define ENOUGH_MEMORY 32
/* A number that is halved again and again is kept in these parts of one. */
#define ENOUGH_PART 16
/* A child may take so much longer than it has paid to wait for such, as 2^n. */
#define ENOUGH_SLACK 3
/* So much more than twice the curve's time makes a child doubtful. */
#define CHILD_DOUBT_NS (2 * SS_MSEC)

/* A child came, or none did: what waiting won, or cost. */
static void score_add(const struct ss_policy *policy, const struct stream *s,
		      u64 won_ns, u64 lost_ns)
{
	struct stream_state_all *all = policy->state;
	struct score *score = &all->score[s->rank];

	score->won_ns += won_ns - score->won_ns / SCORE_MEMORY;
	score->lost_ns += lost_ns - score->lost_ns / SCORE_MEMORY;
	score->children -= score->children / SCORE_MEMORY;
	score->misses -= score->misses / SCORE_MEMORY;
	if (won_ns)
		score->children += 1000;
	else
		score->misses += 1000;
}

/*
 * How long is it worth to wait? Up to the end of each span in turn: what those
 * won that came till then, less what all others would have cost.
 */
static u64 enough_ns(const struct score *score)
{
	u64 missed_ns = div_u64(score->missed_ns, max_t(u32, score->missed, 1));
	u64 end_ns, until_ns = U64_MAX;
	u32 i, late = 0;
	s64 won_ns = 0, sum_ns, most_ns = S64_MIN;

	for (i = 0; i < NR_SPANS; i++)
		late += score->came[i];
	for (i = 0; i < NR_SPANS; i++) {
		end_ns = 1ULL << (SPAN_SHIFT + i);
		won_ns += score->came_won_ns[i];
		late -= score->came[i];
		sum_ns = won_ns - (s64)(late * end_ns) -
			 (s64)(score->missed * min_t(u64, end_ns, missed_ns));
		if (sum_ns <= most_ns)
			continue;
		most_ns = sum_ns;
		until_ns = end_ns << ENOUGH_SLACK;
	}
	return until_ns;
}

/* After each outcome. */
static void look_at_spans(struct score *score)
{
	u32 i;

	if (++score->nr_seen < ENOUGH_MEMORY)
		return;
	score->nr_seen = 0;
	score->enough_ns = enough_ns(score);
	score->missed /= 2;
	score->missed_ns /= 2;
	for (i = 0; i < NR_SPANS; i++) {
		score->came[i] /= 2;
		score->came_won_ns[i] /= 2;
	}
}

void ss_stream_span_miss(struct score *score, u64 worth_ns)
{
	score->missed += ENOUGH_PART;
	score->missed_ns += ENOUGH_PART * worth_ns;
	look_at_spans(score);
}

void ss_stream_score_miss(const struct ss_policy *policy,
			  const struct stream *s)
{
	struct stream_state_all *all = policy->state;
	struct score *score = &all->score[s->rank];

	if (is_alone(all))
		return;
	ss_stream_span_miss(score, s->patience_ns);
	score_add(policy, s, 0, s->patience_ns);
}

void ss_stream_span_add(struct score *score, u64 wait_ns, s64 won_ns)
{
	u32 span = min_t(u32, fls64(wait_ns >> SPAN_SHIFT), NR_SPANS - 1);

	score->came[span] += ENOUGH_PART;
	score->came_won_ns[span] += ENOUGH_PART * won_ns;
	look_at_spans(score);
}

/* Where too little is known of streams so long it is as with shorter ones. */
static u64 believed_enough_ns(const struct stream_state_all *all, u32 rank)
{
	while (rank && all->score[rank].enough_ns == U64_MAX)
		rank--;
	return all->score[rank].enough_ns;
}

u64 ss_stream_hold_end_ns(const struct ss_policy *policy,
			  const struct stream *s)
{
	const struct stream_state_all *all = policy->state;
	u64 enough = max_t(u64, believed_enough_ns(all, s->rank),
			   2 * s->slowest_ns);

	if (policy->value[STREAM_TIME_SLICE] != SLICE_AUTO ||
	    enough >= s->patience_ns)
		return s->broken_ns;
	return s->completed_ns + enough;
}

void ss_stream_score_child(const struct ss_policy *policy,
			   const struct stream *s, u32 nr_sectors, u64 cost_ns,
			   u64 wait_ns)
{
	struct stream_state_all *all = policy->state;
	u64 moving_ns = transfer_ns(policy->sched, nr_sectors);
	/* While it is waited for, the drive reads ahead into its cache. */
	u64 own_ns = cost_ns - wait_ns + max_t(u64, wait_ns, moving_ns);
	u64 instead_ns = s->service_ns;
	u32 truth = all->truth[s->instead_direction];
	u64 won_ns = 0, lost_ns, sectors;

	/* A drive that writes out its cache in every gap makes them dear. */
	if (all->child_took_ns > 2 * all->child_expected_ns + CHILD_DOUBT_NS)
		own_ns += all->child_took_ns - all->child_expected_ns;
	if (truth < TRUTH_DOUBT)
		instead_ns = div_u64(instead_ns * truth, 1000);
	if (s->instead_sectors > nr_sectors) {
		sectors = min_t(u64, s->instead_sectors, 2ULL * nr_sectors);
		instead_ns += transfer_ns(policy->sched, sectors);
		instead_ns = div64_u64(instead_ns * nr_sectors, sectors);
	} else {
		instead_ns += moving_ns;
	}
	if (own_ns < instead_ns) {
		won_ns = instead_ns - own_ns;
		lost_ns = div_u64(wait_ns, SCORE_IDLE);
	} else {
		lost_ns = own_ns - instead_ns;
	}
	/* It may come whenever somebody else is served; see note_wait(). */
	if (s->vain)
		ss_stream_span_miss(&all->score[s->rank], s->patience_ns);
	else
		ss_stream_span_add(&all->score[s->rank], wait_ns,
				   (s64)won_ns - (s64)lost_ns);
	score_add(policy, s, won_ns, lost_ns);
}

static bool is_unknown(const struct score *score)
{
	return !score->won_ns && !score->lost_ns;
}

bool ss_stream_waiting_pays(const struct ss_policy *policy,
			    const struct stream *s, u64 now_ns)
{
	const struct stream_state_all *all = policy->state;
	const struct ss_sched *sched = policy->sched;
	const struct score *score = &all->score[s->rank];

	/*
	 * Nothing known yet: with the device otherwise empty trying is cheap,
	 * but to empty it of other commands for a guess is not. Unless only
	 * writes are kept waiting, or it is the turn of this stream that grew,
	 * and the device has hardly anything else: there, as it was with
	 * shorter ones.
	 */
	if (is_unknown(score) && sched->nr_in_flight <= 1)
		return true;
	while (is_unknown(score) && score > all->score &&
	       ((s == all->held && sched->nr_in_flight - s->nr_in_flight <= 1 &&
		 now_ns < all->slice_start_ns + GROWING) ||
		sched->nr_pending_dir[SS_READ] <= s->nr_pending))
		score--;
	if (is_unknown(score))
		return false;
	if (score->misses > score->children / SCORE_CHILDREN)
		return false;
	return score->won_ns >= SCORE_FACTOR * score->lost_ns;
}

/*
 * Positioning took @took_ns where the curve said @expected_ns. A drive that
 * answers far requests from its cache makes them cheap, and waiting must not
 * be credited with what the curve says of them.
 */
static void truth_add(const struct ss_policy *policy, u8 direction, u64 took_ns,
		      u64 expected_ns)
{
	struct stream_state_all *all = policy->state;
	u32 *truth = &all->truth[direction];
	u64 sample;

	if (expected_ns <= policy->sched->curve.mean_random_ns / 4)
		return;
	sample = min_t(u64, TRUTH_MOST, div64_u64(took_ns * 1000, expected_ns));
	*truth += (u32)sample / TRUTH_MEMORY;
	*truth -= *truth / TRUTH_MEMORY;
}

void ss_stream_turn_ends(const struct ss_policy *policy)
{
	struct stream_state_all *all = policy->state;

	if (!is_alone(all))
		truth_add(policy, SS_READ, all->turn_took_ns,
			  all->turn_expected_ns);
	all->turn_took_ns = 0;
	all->turn_expected_ns = 0;
}

/*
 * @rq is done after writes that nobody waits for. What it took longer than
 * positioning and its transfer, the drive needed to empty its cache of them:
 * that is time of theirs within this turn. By itself it needs @own_ns.
 */
static void note_behind(struct stream_state_all *all,
			const struct ss_request *rq, u64 took_ns, u64 own_ns)
{
	if (!all->async_ns || took_ns <= own_ns ||
	    rq->dispatch_ns > all->async_ns + ASYNC_APART)
		return;
	all->turn_behind_ns += took_ns - own_ns;
}

/*
 * The disk served @rq, of the stream whose turn it is, in @took_ns, of which it
 * moved data for @moving_ns. Did that agree with the curve, which says that
 * positioning takes @expected_ns?
 */
static void note_turn(struct stream_state_all *all, const struct ss_request *rq,
		      u64 took_ns, u64 expected_ns, u64 moving_ns)
{
	u64 positioning_ns = took_ns - min_t(u64, took_ns, moving_ns);

	note_behind(all, rq, took_ns, expected_ns + moving_ns);
	all->turn_took_ns += positioning_ns;
	if (rq == all->first_of_turn) {
		all->turn_expected_ns = expected_ns;
		return;
	}
	/* The drive was still busy with what it had before the turn. */
	if (rq->dispatch_ns < all->async_ns)
		return;
	all->child_took_ns += positioning_ns / TRUTH_MEMORY;
	all->child_took_ns -= all->child_took_ns / TRUTH_MEMORY;
	all->child_expected_ns += expected_ns / TRUTH_MEMORY;
	all->child_expected_ns -= all->child_expected_ns / TRUTH_MEMORY;
}

void ss_stream_note_service(const struct ss_policy *policy,
			    const struct ss_request *rq, u64 took_ns,
			    u64 moving_ns)
{
	struct stream_state_all *all = policy->state;
	u64 expected_ns = ss_sched_positioning_ns(policy->sched, rq);

	if (all->held && rq->stream == all->held)
		note_turn(all, rq, took_ns, expected_ns, moving_ns);
	else
		truth_add(policy, rq->direction,
			  took_ns - min_t(u64, took_ns, moving_ns),
			  expected_ns);
}
