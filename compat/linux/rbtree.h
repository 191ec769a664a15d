/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for <linux/rbtree.h>: a red-black tree whose nodes live
 * inside the caller's structures. As in the kernel the caller walks to the
 * place itself, links the node with rb_link_node() and rebalances with
 * rb_insert_color(). Written from the textbook algorithm (Cormen et al.,
 * Introduction to Algorithms, chapter 13) with parent pointers.
 */
#ifndef COMPAT_LINUX_RBTREE_H
#define COMPAT_LINUX_RBTREE_H

#include <linux/container_of.h>
#include <linux/types.h>

struct rb_node {
	struct rb_node *rb_parent; /* itself when not in a tree */
	struct rb_node *rb_left;
	struct rb_node *rb_right;
	bool rb_is_red;
};

struct rb_root {
	struct rb_node *rb_node;
};

#define RB_ROOT                                                                \
	(struct rb_root)                                                       \
	{                                                                      \
		NULL                                                           \
	}
#define rb_entry(ptr, type, member) container_of(ptr, type, member)
#define RB_EMPTY_ROOT(root) ((root)->rb_node == NULL)
#define RB_EMPTY_NODE(node) ((node)->rb_parent == (node))
#define RB_CLEAR_NODE(node) ((node)->rb_parent = (node))

static inline void rb_link_node(struct rb_node *node, struct rb_node *parent,
				struct rb_node **link)
{
	node->rb_parent = parent;
	node->rb_left = NULL;
	node->rb_right = NULL;
	node->rb_is_red = true;
	*link = node;
}

/* Rebalance after rb_link_node(). */
void rb_insert_color(struct rb_node *node, struct rb_root *root);
/* Take @node out; it must be in the tree. Its own fields are left stale. */
void rb_erase(struct rb_node *node, struct rb_root *root);
/* The neighbours in order, and the ends; NULL where there is none. */
struct rb_node *rb_next(const struct rb_node *node);
struct rb_node *rb_prev(const struct rb_node *node);
struct rb_node *rb_first(const struct rb_root *root);
struct rb_node *rb_last(const struct rb_root *root);

/* A tree that knows its first node. */
struct rb_root_cached {
	struct rb_root rb_root;
	struct rb_node *rb_leftmost;
};

#define RB_ROOT_CACHED                                                         \
	(struct rb_root_cached)                                                \
	{                                                                      \
		{ NULL }, NULL                                                 \
	}
#define rb_first_cached(root) ((root)->rb_leftmost)
#define rb_entry_safe(ptr, type, member)                                       \
	((ptr) ? rb_entry(ptr, type, member) : NULL)

/* Add @node behind all that it is not @less than; @node if it is the first. */
static inline struct rb_node *rb_add_cached(
	struct rb_node *node, struct rb_root_cached *tree,
	bool (*less)(struct rb_node *, const struct rb_node *))
{
	struct rb_node **link = &tree->rb_root.rb_node, *parent = NULL;
	bool first = true;

	while (*link) {
		parent = *link;
		if (less(node, parent)) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			first = false;
		}
	}
	if (first)
		tree->rb_leftmost = node;
	rb_link_node(node, parent, link);
	rb_insert_color(node, &tree->rb_root);
	return first ? node : NULL;
}

/* Take @node out; the new first node if it was the first one, or NULL. */
static inline struct rb_node *rb_erase_cached(struct rb_node *node,
					      struct rb_root_cached *tree)
{
	struct rb_node *first = NULL;

	if (tree->rb_leftmost == node)
		first = tree->rb_leftmost = rb_next(node);
	rb_erase(node, &tree->rb_root);
	return first;
}

#endif
