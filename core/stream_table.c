// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: the table of streams.
 *
 * A stream is in one of three lists: free, waiting (its last member is
 * pending) or parents (in the device or done). As a parent it has what the
 * inner policy would do instead of waiting, which may come to be known later,
 * or change; that is how long a child may take.
 */
#include "stream.h"

#include <linux/kernel.h>
#include <linux/limits.h>

void ss_stream_let_go(struct stream *s)
{
	while (!list_empty(&s->members)) {
		struct ss_request *rq = list_first_entry(&s->members,
							 struct ss_request,
							 member_node);

		list_del(&rq->member_node);
		rq->stream = NULL;
	}
	s->nr_pending = 0;
}

bool ss_stream_make_room(const struct ss_policy *policy)
{
	struct stream_state_all *all = policy->state;
	struct stream *s;

	list_for_each_entry(s, &all->parents, node)
		if (s->state == STREAM_COMPLETED && s != all->held &&
		    !is_established(all, s)) {
			stream_free(all, s);
			return true;
		}
	return false;
}

void ss_stream_look_for_broken(const struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct list_head *at = all->parents.next, *next;
	u64 next_broken_ns = U64_MAX;

	for (; at != &all->parents; at = next) {
		struct stream *s = list_entry(at, struct stream, node);

		next = at->next;
		if (is_broken(s, now_ns))
			stream_breaks(policy, s);
		else
			next_broken_ns = min_t(u64, next_broken_ns,
					       s->broken_ns);
	}
	all->next_broken_ns = next_broken_ns;
}

void ss_stream_reconsider(const struct ss_policy *policy, u64 now_ns)
{
	struct stream_state_all *all = policy->state;
	struct ss_policy *inner = inner_of(policy);
	struct stream *s = all->held;
	struct ss_decision choice;
	u64 service_ns;

	if (!s || s->state == STREAM_PENDING || !policy->sched->nr_pending)
		return;
	choice = inner->ops->choose(inner, now_ns, NULL);
	if (choice.verdict != SS_DISPATCH)
		return;
	service_ns = ss_curve_service_ns(&policy->sched->curve, s->end_sector,
					 choice.rq->sector);
	if (service_ns < s->service_ns)
		change_instead(policy, s, service_ns, choice.rq);
}

void ss_stream_tip_removed(const struct ss_policy *policy, struct stream *s,
			   const struct ss_request *rq)
{
	struct stream_state_all *all = policy->state;
	struct ss_request *heir = ss_sched_pending_before(policy->sched,
							  ss_request_end(rq));

	if (heir && !heir->stream && ss_request_is_awaited(heir)) {
		heir->stream = s;
		heir->stream_size = rq->stream_size;
		list_add_tail(&heir->member_node, &s->members);
		s->nr_pending++;
	}
	if (s->nr_pending) {
		s->last = list_last_entry(&s->members, struct ss_request,
					  member_node);
		s->end_sector = ss_request_end(s->last);
		set_size(all, s, s->last->stream_size);
		s->before_completed_ns = 0;
	} else if (s->before_completed_ns) {
		s->last = NULL;
		s->state = STREAM_COMPLETED;
		s->end_sector = s->before_end_sector;
		s->completed_ns = s->before_completed_ns;
		set_size(all, s, s->size - 1);
		all->supposed |= s->supposed;
		set_patience(all, s);
		list_move_tail(&s->node, &all->parents);
		note_patience(all, s);
	} else {
		stream_free(all, s);
	}
}
