// SPDX-License-Identifier: GPL-2.0-only
/*
 * The members obey: what is released, and what a member sends of that.
 */
#include "internal.h"

#include <linux/kernel.h>

/* A member's longest wait, in case nobody tells it to go on. */
#define ASKED_NS SS_SEC

void ss_array_release_one(struct ss_array_request *request, enum ss_why why)
{
	struct ss_array_member *member = request->member;
	struct ss_array *array = member->array;

	ss_sched_dispatched(&array->sched, &request->rq, why, array->now_ns);
	request->released = true;
	member->nr_held--;
	member->nr_released++;
	ss_array_note_released(request);
}

void ss_array_release(struct ss_array *array)
{
	struct ss_decision decision;
	u64 until_ns;
	u32 i, woken = 0;

	for (;;) {
		struct ss_array_request *request;

		decision = ss_sched_choose(&array->sched, array->now_ns);
		if (decision.verdict != SS_DISPATCH)
			break;
		request = container_of(decision.rq, struct ss_array_request,
				       rq);
		ss_array_release_one(request, decision.why);
		woken |= 1U << request->member->index;
	}
	until_ns = decision.verdict == SS_WAIT ? decision.until_ns : SS_FOREVER;
	/* Who waits for longer, or by its own policy, is to ask again. */
	for (i = 0; i < array->geometry.nr_members; i++) {
		const struct ss_array_member *member = &array->member[i];
		bool may = member->nr_released || member->nr_plain;

		if ((woken & (1U << i)) ||
		    (member->nr_held && until_ns < array->until_ns) ||
		    (may && array->turn && !array->had_turn))
			ss_array_kick(array, i);
	}
	array->until_ns = until_ns;
	array->had_turn = array->turn;
}

/* Of what is released the next one where the member's head goes round. */
static struct ss_request *next_released(const struct ss_array_member *member)
{
	const struct ss_array_request *request;
	struct ss_request *best = NULL;
	u64 head = member->sched->head_sector;

	list_for_each_entry(request, &member->requests, node) {
		struct ss_request *rq = request->real;

		if (!request->released || request->sent)
			continue;
		/* What is behind the head is farther than all before it. */
		if (!best || rq->sector - head < best->sector - head)
			best = rq;
	}
	return best;
}

/* The member is to ask again when the array does, at the latest. */
static u64 asks_at(const struct ss_array *array)
{
	return min_t(u64, max_t(u64, array->until_ns, array->now_ns + 1),
		     array->now_ns + ASKED_NS);
}

/*
 * In the turn of the rest: what the member's own policy says. It knows of what
 * is held, too. False: it would send that, or wait for what others have in the
 * drive.
 */
static bool choose_own(const struct ss_array_member *member,
		       struct ss_decision *decision)
{
	const struct ss_policy *policy = &member->sched->policy[0];
	const struct ss_array_request *request;

	*decision = policy->ops->choose(policy, member->array->now_ns, NULL);
	if (decision->verdict == SS_DISPATCH) {
		request = decision->rq->array_request;
		return request && request->released;
	}
	decision->until_ns = min_t(u64, decision->until_ns,
				   asks_at(member->array));
	return decision->verdict == SS_WAIT && decision->why == SS_WHY_PAUSE;
}

bool ss_array_choose(const struct ss_array_member *member,
		     struct ss_decision *decision)
{
	const struct ss_array *array = member->array;
	u32 known = member->nr_plain + member->nr_held + member->nr_released;

	/*
	 * What it had before it was attached is in no turn, and in that of the
	 * rest each has its own order.
	 */
	if (member->sched->curve.flat || known < member->sched->nr_pending ||
	    (!array->turn && !member->nr_held))
		return false;
	if (member->nr_plain)
		*decision = ss_dispatch(list_first_entry(
			&member->plain, struct ss_request, array_node));
	else if (!member->nr_released)
		*decision = ss_wait(asks_at(array));
	else if (array->turn || !choose_own(member, decision))
		*decision = ss_dispatch(next_released(member));
	return true;
}
