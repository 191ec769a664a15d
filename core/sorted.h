/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pending requests in order of position, by their sort_node. Requests at the
 * same sector stand in the order of their arrival.
 */
#ifndef SS_SORTED_H
#define SS_SORTED_H

#include "request.h"

static inline void ss_sorted_add(struct rb_root *root, struct ss_request *rq)
{
	struct rb_node **link = &root->rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		if (rq->sector <
		    rb_entry(parent, struct ss_request, sort_node)->sector)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&rq->sort_node, parent, link);
	rb_insert_color(&rq->sort_node, root);
}

static inline void ss_sorted_del(struct rb_root *root, struct ss_request *rq)
{
	rb_erase(&rq->sort_node, root);
	RB_CLEAR_NODE(&rq->sort_node);
}

/* After the first sector of @rq changed (a merge at its front). */
static inline void ss_sorted_moved(struct rb_root *root, struct ss_request *rq)
{
	rb_erase(&rq->sort_node, root);
	ss_sorted_add(root, rq);
}

static inline struct ss_request *ss_sorted_entry(struct rb_node *node)
{
	return node ? rb_entry(node, struct ss_request, sort_node) : NULL;
}

static inline struct ss_request *ss_sorted_next(const struct ss_request *rq)
{
	return ss_sorted_entry(rb_next(&rq->sort_node));
}

static inline struct ss_request *ss_sorted_prev(const struct ss_request *rq)
{
	return ss_sorted_entry(rb_prev(&rq->sort_node));
}

static inline struct ss_request *ss_sorted_first(const struct rb_root *root)
{
	return ss_sorted_entry(rb_first(root));
}

/*
 * Which of two requests an elevator takes that may also go back a little
 * (anticipatory and CFQ of Linux 2.6.31): one that it can reach without a new
 * sweep (@ahead) before one that it cannot, then the one less @far (sectors,
 * with the penalty for going back); of two that need a new sweep the lowest.
 */
static inline struct ss_request *ss_sorted_better(struct ss_request *a,
						  bool a_ahead, u64 a_far,
						  struct ss_request *b,
						  bool b_ahead, u64 b_far)
{
	if (a_ahead != b_ahead)
		return a_ahead ? a : b;
	if (!a_ahead)
		return a->sector <= b->sector ? a : b;
	if (a_far != b_far)
		return a_far < b_far ? a : b;
	return a->sector >= b->sector ? a : b;
}

/* The first request at or after @sector, or NULL. */
static inline struct ss_request *ss_sorted_from(const struct rb_root *root,
						u64 sector)
{
	struct rb_node *node = root->rb_node;
	struct ss_request *found = NULL;

	while (node) {
		struct ss_request *rq = ss_sorted_entry(node);

		if (rq->sector >= sector) {
			found = rq;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/* As ss_sorted_from(), but for @skip, and then from the beginning; or NULL. */
static inline struct ss_request *ss_sorted_round(const struct rb_root *root,
						 u64 sector,
						 const struct ss_request *skip)
{
	struct ss_request *rq = ss_sorted_from(root, sector);

	if (rq && rq == skip)
		rq = ss_sorted_next(rq);
	if (!rq)
		rq = ss_sorted_first(root);
	if (rq && rq == skip)
		rq = ss_sorted_next(rq);
	return rq;
}

#endif
