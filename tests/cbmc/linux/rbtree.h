/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For the model checker: the kernel's cached tree as an array in order, which
 * does what tests/core/test_rbtree.py says that the tree does. There is one
 * tree, of four nodes at most. It holds their numbers, because pointers that
 * may be one of several are what a model checker has most trouble with.
 */
#ifndef CBMC_LINUX_RBTREE_H
#define CBMC_LINUX_RBTREE_H

#include <linux/types.h>

#define RB_NODES 4

struct rb_node {
	bool in_tree;
};

struct rb_root {
	u32 nothing;
};

struct rb_root_cached {
	u8 at[RB_NODES];
	u32 nr;
};

#define RB_ROOT ((struct rb_root){ 0 })
#define RB_ROOT_CACHED ((struct rb_root_cached){ { 0 }, 0 })
#define RB_EMPTY_NODE(node) (!(node)->in_tree)
#define RB_CLEAR_NODE(node) ((node)->in_tree = false)

/* Node @k, and the structure that it is in: due.c. */
static struct rb_node *rb_node_at(u32 k);
static void *rb_owner(const struct rb_node *node);

#define rb_entry(ptr, type, member) ((type *)rb_owner(ptr))
#define rb_entry_safe(ptr, type, member) ((type *)rb_owner(ptr))

static inline struct rb_node *rb_node_or_null(u32 k, bool is_one)
{
	u32 i;

	for (i = 0; i < RB_NODES; i++)
		if (is_one && k == i)
			return rb_node_at(i);
	return NULL;
}

static inline struct rb_node *rb_first_cached(const struct rb_root_cached *tree)
{
	return rb_node_or_null(tree->at[0], tree->nr > 0);
}

static inline u8 rb_number(const struct rb_node *node)
{
	u8 i;

	for (i = 0; i < RB_NODES; i++)
		if (node == rb_node_at(i))
			return i;
	return RB_NODES;
}

/* Is @node less than node @k? */
static inline bool rb_is_less(struct rb_node *node, u8 k,
			      bool (*less)(struct rb_node *,
					   const struct rb_node *))
{
	u32 i;

	for (i = 0; i < RB_NODES; i++)
		if (k == i)
			return less(node, rb_node_at(i));
	return false;
}

/* Behind all that @node is not less than, looking from the end on. */
static inline struct rb_node *rb_add_cached(
	struct rb_node *node, struct rb_root_cached *tree,
	bool (*less)(struct rb_node *, const struct rb_node *))
{
	u32 i, at = tree->nr;

	__CPROVER_assert(tree->nr < RB_NODES, "there is room");
	__CPROVER_assert(!node->in_tree, "it is not in it yet");
	for (i = RB_NODES - 1; i > 0; i--) {
		if (at != i || !rb_is_less(node, tree->at[i - 1], less))
			continue;
		tree->at[i] = tree->at[i - 1];
		at = i - 1;
	}
	for (i = 0; i < RB_NODES; i++)
		if (at == i)
			tree->at[i] = rb_number(node);
	tree->nr++;
	node->in_tree = true;
	return at ? NULL : node;
}

static inline void rb_erase_cached(struct rb_node *node,
				   struct rb_root_cached *tree)
{
	u8 k = rb_number(node);
	bool found = false;
	u32 i;

	for (i = 0; i < RB_NODES; i++) {
		found |= i < tree->nr && tree->at[i] == k;
		if (found && i + 1 < RB_NODES)
			tree->at[i] = tree->at[i + 1];
	}
	__CPROVER_assert(found, "what is taken out was in it");
	tree->nr--;
}

/* Only asked for the least weight, which this does not look at. */
#define rb_next(node) ((struct rb_node *)NULL)

#endif
