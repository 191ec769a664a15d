// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a process sends its next block, and from when on it counts: rates,
 * pauses and the ramp before the statistics, as fio has them.
 *
 * A rate is kept on the average since the start: a process that was held up
 * sends what it missed as fast as it can, then waits again.
 */
#include "process_state.h"

#include <string.h>

#define NS_PER_S 1000000000ULL
/* ln 2, in parts of 2^32. */
#define LN2_32 2977044472ULL
#define LOG_BITS 32

/*
 * -ln(x / 2^64) in parts of 2^32, by squaring: no floating point, so that it
 * is the same everywhere.
 */
static u64 minus_log(u64 x)
{
	u32 shift = (u32)__builtin_clzll(x | 1), i;
	u64 mantissa = (x | 1) << shift, log2 = (u64)(63 - shift) << LOG_BITS;

	for (i = LOG_BITS; i--;) {
		unsigned __int128 square = (unsigned __int128)mantissa *
					   mantissa;

		if (square >> 127) {
			log2 |= 1ULL << i;
			mantissa = (u64)(square >> 64);
		} else {
			mantissa = (u64)(square >> 63);
		}
	}
	return (u64)((unsigned __int128)((64ULL << LOG_BITS) - log2) * LN2_32 >>
		     32);
}

static bool has_rate(const struct sim_process *p)
{
	return p->job.rate[SS_READ] || p->job.rate[SS_WRITE];
}

void process_pace_from(struct sim_process *p, u64 now_ns)
{
	p->rate_from_ns = now_ns;
	memset(p->rate_bytes, 0, sizeof(p->rate_bytes));
	memset(p->rate_poisson_ns, 0, sizeof(p->rate_poisson_ns));
	memset(p->rate_next_ns, 0, sizeof(p->rate_next_ns));
}

static bool is_mixed(const struct sim_job *job)
{
	return (job->rw & SIM_RW_READ) && (job->rw & SIM_RW_WRITE) &&
	       job->read_pct && job->read_pct < 100;
}

/*
 * The direction is drawn first; if it is not yet time for it the other one may
 * go, and if not that either, whichever may go first does.
 */
u64 process_pace(struct sim_process *p)
{
	const u64 *next = p->rate_next_ns;
	u64 now = own_time(p), at;
	u8 dir, other;

	if (!has_rate(p))
		return 0;
	if (!p->direction_chosen)
		p->next_direction = process_choose_direction(p);
	p->direction_chosen = true;
	dir = p->next_direction;
	other = dir == SS_READ ? SS_WRITE : SS_READ;
	if (next[dir] > now && is_mixed(&p->job) && next[other] < next[dir])
		dir = other;
	p->next_direction = dir;
	if (next[dir] <= now)
		return 0;
	/* Before it sleeps it sees to it that nothing is under way. */
	if (p->in_flight && !p->job.offload)
		return U64_MAX;
	at = next[dir];
	/* A rate begins anew when the ramp is over. */
	if (p->ramping)
		at = min_t(u64, at, p->begin_ns + p->job.ramp_ns);
	else if (p->job.runtime_ns)
		at = min_t(u64, at, p->begin_ns + p->job.runtime_ns);
	return at;
}

/* When as much as was sent is due; and by chance, as often on the average. */
void process_pace_sent(struct sim_process *p)
{
	u8 dir = p->direction;
	u64 rate = p->job.rate[dir], due;

	if (!rate)
		return;
	p->rate_bytes[dir] += p->bytes;
	if (p->job.rate_poisson) {
		u64 mean_ns = NS_PER_S * p->job.rate_unit[dir] / rate;

		p->rate_poisson_ns[dir] +=
			(u64)((unsigned __int128)mean_ns *
				      minus_log(sim_random(&p->seed)) >>
			      32);
		due = p->rate_poisson_ns[dir];
	} else {
		due = (u64)((unsigned __int128)p->rate_bytes[dir] * NS_PER_S /
			    rate);
	}
	p->rate_next_ns[dir] = p->rate_from_ns + due;
}

/* What it would have sent while it thought, less one block: that one goes. */
static void forgive(struct sim_process *p, u8 dir)
{
	u64 rate = p->job.rate[dir], think = p->job.thinktime_ns;
	u64 missed, block = p->job.rate_unit[dir];

	if (!rate)
		return;
	missed = (u64)((unsigned __int128)rate * think / NS_PER_S);
	p->rate_bytes[dir] += missed > block ? missed - block : 0;
	p->rate_poisson_ns[dir] += think;
}

u64 process_think_until(struct sim_process *p, u8 direction, u64 now_ns)
{
	if (!p->job.thinktime_ns || p->job.stall_blocks ||
	    ++p->blocks_to_think < p->job.thinktime_blocks)
		return 0;
	p->blocks_to_think = 0;
	if (p->job.rate_forgives)
		forgive(p, direction);
	return now_ns + p->job.thinktime_ns;
}

/* ---- from when on it counts ---- */

static void begin_to_count(struct sim_processes *all, u64 now_ns)
{
	if (now_ns < all->first_start_ns)
		all->first_start_ns = now_ns;
	if (now_ns > all->last_end_ns)
		all->last_end_ns = now_ns;
}

/* It begins anew where it is: its time, its rates, how much it does. */
static void end_ramp(void *context)
{
	struct sim_process *p = context;

	if (p->step == STEP_DONE)
		return;
	p->ramping = false;
	p->begin_ns = p->clock->now_ns;
	p->end_ns = p->clock->now_ns;
	p->issued = 0;
	memset(p->moved, 0, sizeof(p->moved));
	memset(p->blocks, 0, sizeof(p->blocks));
	memset(p->latency, 0, sizeof(p->latency));
	memset(&p->wait, 0, sizeof(p->wait));
	process_pace_from(p, p->clock->now_ns);
	begin_to_count(p->all, p->clock->now_ns);
}

void process_ramp(struct sim_process *p)
{
	if (!p->job.ramp_ns) {
		if (p->begin_ns < p->all->first_start_ns)
			p->all->first_start_ns = p->begin_ns;
		return;
	}
	p->ramping = true;
	sim_timer(p->clock, p->begin_ns + p->job.ramp_ns, end_ramp, p);
}
