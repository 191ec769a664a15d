// SPDX-License-Identifier: GPL-2.0-only
/*
 * linus: the elevator of Linux 2.4, one queue in order of position in which a
 * request may be overtaken only so often.
 *
 * Love, "Kernel Korner: I/O Schedulers", Linux Journal 2004, describes it. The
 * rules are those of Linux 2.4.20, drivers/block/elevator.c (elevator_linus)
 * and include/linux/elevator.h, where Axboe set its accounts right: "elevator
 * seek accounting fixes", linux-kernel, 15 August 2002. Until 2.4.19 the
 * defaults were 8192 and 16384 and a merge cost its sectors; from 2.4.22 on
 * they are 128 and 512, and a seek costs 1 (ELV_LINUS_SEEK_COST).
 *
 * Two requests for the same sectors are one (Love's example: of 10, 500, 12,
 * 502, 14, 504 and 12 six are served). In 2.4 they are for the same buffer,
 * which is sent once; where each has its own memory, as in this project's block
 * server and kernel modules, both go.
 *
 * 2.4 hands in buffers of a page, so that all of a longer request but its
 * first buffer are merges, which whoever is behind pays for likewise.
 *
 * A new request is sorted in where it fits between two neighbours, looking
 * from the tail on; where it fits nowhere it goes to the tail. Neighbours are
 * ascending, or one ends a sweep and the other begins the next. Whoever is
 * behind a newcomer pays for it from a budget; the search ends at one whose
 * budget is used up, so nobody is sorted in before it. Merging goes on there:
 * it costs the disk no seek. A request joined with another gets the smaller of
 * their budgets, and the place that is served sooner. (In 2.4 it keeps its own
 * place, so that a chain of joins can put it off without end.)
 *
 * 2.4 keeps the request that the disk works on at the head of the queue and
 * sorts nothing before the one behind it; here that one is gone from the
 * queue, with the same result.
 */
#include "../policies.h"
#include "../sched.h"

#include <linux/kernel.h>

/* What a buffer costs those behind it that merges. */
#define LINUS_MERGE_COST 1
#define LINUS_BUFFER_SECTORS 8
/* More than any queue can use up. */
#define LINUS_MOST (1 << 30)

enum {
	LINUS_READ_PASSOVERS,
	LINUS_WRITE_PASSOVERS,
	LINUS_SEEK_COST,
};

static const struct ss_tunable linus_tunables[] = {
	[LINUS_READ_PASSOVERS] = { "read_passovers", SS_UNIT_NONE, 2048, 0,
				   LINUS_MOST,
				   .help = "how often a read may be overtaken, seek_cost for a seek and 1 for a merge (elvtune -r, Linux 2.4.20)" },
	[LINUS_WRITE_PASSOVERS] = { "write_passovers", SS_UNIT_NONE, 8192, 0,
				    LINUS_MOST,
				    .help = "how often a write may be overtaken, counted likewise (elvtune -w, Linux 2.4.20)" },
	[LINUS_SEEK_COST] = { "seek_cost", SS_UNIT_NONE, 16, 1, 1000,
			      .help = "what a request sorted in before others costs them (16 in Linux 2.4.20, 1 from 2.4.22 on)" },
};

struct linus_state {
	struct list_head queue; /* by fifo_node; rq->budget is what is left */
};

static struct ss_request *linus_entry(struct list_head *node)
{
	return list_entry(node, struct ss_request, fifo_node);
}

/* Whether @sector belongs right behind @rq, which has a neighbour there. */
static bool linus_fits_behind(const struct ss_request *rq, u64 sector)
{
	const struct ss_request *next = linus_entry(rq->fifo_node.next);

	if (rq->sector < next->sector)
		return rq->sector < sector && sector < next->sector;
	return sector > rq->sector || sector < next->sector;
}

/* All behind @rq have let somebody pass. */
static void linus_charge_behind(struct linus_state *linus,
				const struct ss_request *rq, u32 cost)
{
	struct list_head *node = rq->fifo_node.next;

	for (; node != &linus->queue; node = node->next) {
		struct ss_request *passed = linus_entry(node);

		passed->budget -= cost < passed->budget ? cost : passed->budget;
	}
}

/* What @rq costs those behind it: its first buffer a seek, the others merge. */
static u32 linus_cost(const struct ss_policy *policy,
		      const struct ss_request *rq)
{
	return (u32)policy->value[LINUS_SEEK_COST] +
	       (rq->nr_sectors - 1) / LINUS_BUFFER_SECTORS * LINUS_MERGE_COST;
}

static void linus_init(struct ss_policy *policy)
{
	struct linus_state *linus = policy->state;

	INIT_LIST_HEAD(&linus->queue);
}

static void linus_arrived(struct ss_policy *policy, struct ss_request *rq,
			  u64 now_ns)
{
	struct linus_state *linus = policy->state;
	struct list_head *place = linus->queue.prev, *node = place;

	(void)now_ns;
	rq->budget = (u32)policy->value[rq->direction == SS_READ ?
						LINUS_READ_PASSOVERS :
						LINUS_WRITE_PASSOVERS];
	for (; node != &linus->queue; node = node->prev) {
		struct ss_request *before = linus_entry(node);

		if (!before->budget)
			break;
		if (node->next != &linus->queue &&
		    linus_fits_behind(before, rq->sector)) {
			place = node;
			break;
		}
	}
	list_add(&rq->fifo_node, place);
	linus_charge_behind(linus, rq, linus_cost(policy, rq));
}

static struct ss_decision linus_choose(const struct ss_policy *policy,
				       u64 now_ns,
				       const struct ss_request *skip)
{
	const struct linus_state *linus = policy->state;
	struct ss_request *rq = ss_first_but(&linus->queue, skip);

	(void)now_ns;
	return rq ? ss_dispatch(rq) : ss_nothing();
}

/* A merge goes before those behind; one at the front costs @rq itself, too. */
static void linus_merged(struct ss_policy *policy, struct ss_request *rq,
			 u64 old_sector, u64 now_ns)
{
	(void)now_ns;
	if (rq->sector != old_sector && rq->budget)
		rq->budget -= LINUS_MERGE_COST;
	linus_charge_behind(policy->state, rq, LINUS_MERGE_COST);
}

static void linus_joins(struct ss_policy *policy, struct ss_request *rq,
			const struct ss_request *next)
{
	struct linus_state *linus = policy->state;
	struct list_head *node = rq->fifo_node.prev;

	if (next->budget < rq->budget)
		rq->budget = next->budget;
	while (node != &linus->queue && node != &next->fifo_node)
		node = node->prev;
	if (node != &linus->queue)
		list_move(&rq->fifo_node, node);
}

static void linus_gone(struct ss_policy *policy, struct ss_request *rq,
		       u64 now_ns)
{
	(void)policy;
	(void)now_ns;
	list_del_init(&rq->fifo_node);
}

const struct ss_policy_ops ss_linus_ops = {
	.name = "linus",
	.help = "sorted queue, overtaking bounded by a budget (Linux 2.4.20)",
	.flags = SS_WORK_CONSERVING | SS_MERGES_SAME,
	.state_bytes = sizeof(struct linus_state),
	SS_TUNABLES(linus_tunables),
	.init = linus_init,
	.arrived = linus_arrived,
	.choose = linus_choose,
	.dispatched = linus_gone,
	.merged = linus_merged,
	.joins = linus_joins,
	.removed = linus_gone,
};
