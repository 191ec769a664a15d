// SPDX-License-Identifier: GPL-2.0-only
/* How long the head stays for an idle party. See wait.h. */
#include "wait.h"

void ss_wait_ends(struct ss_policy *policy, const struct ss_party *party,
		  u64 now_ns)
{
	struct ss_parties *all = policy->state;
	struct ss_reader *reader = ss_party_reader(all, party);
	u64 think_ns = now_ns - reader->idle_since_ns;

	/*
	 * The head has left it and something else was done. Only a request that
	 * comes at once after that may have come because of it.
	 */
	reader->think.left &= now_ns - all->turn.charged_ns <
			      all->switch_ns / SS_THINK_LEAST;
	if (reader->contended || ss_party_others_work(policy, party))
		ss_think_tell(&reader->think, think_ns, (s64)all->switch_ns,
			      all->switch_ns);
	else
		ss_think_note(&reader->think, think_ns, all->switch_ns);
}

u64 ss_wait_until_ns(const struct ss_policy *policy,
		     const struct ss_party *party)
{
	struct ss_parties *all = policy->state;
	const struct ss_reader *reader = ss_party_reader(all, party);
	const struct ss_stream *s = ss_party_stream(all, party);
	const struct ss_party *first = all->first_due;
	const struct ss_sched *sched = policy->sched;
	bool is_new = s && s->size < 2 * policy->value[STREAM_THRESHOLD];

	/* For a new stream the head waits once waiting would have paid. */
	if (!reader->idle_since_ns || ss_party_is_async(all, party) ||
	    reader->think.ledger_us < is_new)
		return 0;
	/* The paper's inequality: who is due first would be served before. */
	if (party == all->turn.party && first &&
	    ss_curve_between(&sched->curve, sched->head_sector,
			     ss_party_next(policy, first)->sector) <
		    1000ULL * reader->think.mean_us)
		return 0;
	return reader->idle_since_ns +
	       ss_think_limit_ns(&reader->think, all->switch_ns);
}
