// SPDX-License-Identifier: GPL-2.0-only
/* See <linux/rbtree.h>. A missing child counts as black. */
#include <linux/rbtree.h>

static bool is_red(const struct rb_node *node)
{
	return node && node->rb_is_red;
}

/* Make @child stand where @node stood below @parent. */
static void replace_child(struct rb_root *root, struct rb_node *parent,
			  struct rb_node *node, struct rb_node *child)
{
	if (!parent)
		root->rb_node = child;
	else if (parent->rb_left == node)
		parent->rb_left = child;
	else
		parent->rb_right = child;
	if (child)
		child->rb_parent = parent;
}

static void rotate_left(struct rb_root *root, struct rb_node *node)
{
	struct rb_node *riser = node->rb_right;

	node->rb_right = riser->rb_left;
	if (node->rb_right)
		node->rb_right->rb_parent = node;
	replace_child(root, node->rb_parent, node, riser);
	riser->rb_left = node;
	node->rb_parent = riser;
}

static void rotate_right(struct rb_root *root, struct rb_node *node)
{
	struct rb_node *riser = node->rb_left;

	node->rb_left = riser->rb_right;
	if (node->rb_left)
		node->rb_left->rb_parent = node;
	replace_child(root, node->rb_parent, node, riser);
	riser->rb_right = node;
	node->rb_parent = riser;
}

void rb_insert_color(struct rb_node *node, struct rb_root *root)
{
	while (is_red(node->rb_parent)) {
		struct rb_node *parent = node->rb_parent;
		struct rb_node *grand = parent->rb_parent;
		bool left = parent == grand->rb_left;
		struct rb_node *uncle = left ? grand->rb_right : grand->rb_left;

		if (is_red(uncle)) {
			parent->rb_is_red = false;
			uncle->rb_is_red = false;
			grand->rb_is_red = true;
			node = grand;
			continue;
		}
		if (left) {
			if (node == parent->rb_right) {
				rotate_left(root, parent);
				parent = node;
			}
			rotate_right(root, grand);
		} else {
			if (node == parent->rb_left) {
				rotate_right(root, parent);
				parent = node;
			}
			rotate_left(root, grand);
		}
		parent->rb_is_red = false;
		grand->rb_is_red = true;
		break;
	}
	root->rb_node->rb_is_red = false;
}

/* The side below @parent at @node (possibly NULL) is one black short. */
static void erase_fixup(struct rb_root *root, struct rb_node *node,
			struct rb_node *parent)
{
	while (parent && !is_red(node)) {
		bool left = node == parent->rb_left;
		struct rb_node *sibling;

		sibling = left ? parent->rb_right : parent->rb_left;
		if (is_red(sibling)) {
			sibling->rb_is_red = false;
			parent->rb_is_red = true;
			if (left)
				rotate_left(root, parent);
			else
				rotate_right(root, parent);
			sibling = left ? parent->rb_right : parent->rb_left;
		}
		if (!is_red(sibling->rb_left) && !is_red(sibling->rb_right)) {
			sibling->rb_is_red = true;
			node = parent;
			parent = node->rb_parent;
			continue;
		}
		if (left) {
			if (!is_red(sibling->rb_right)) {
				sibling->rb_left->rb_is_red = false;
				sibling->rb_is_red = true;
				rotate_right(root, sibling);
				sibling = parent->rb_right;
			}
			sibling->rb_right->rb_is_red = false;
		} else {
			if (!is_red(sibling->rb_left)) {
				sibling->rb_right->rb_is_red = false;
				sibling->rb_is_red = true;
				rotate_left(root, sibling);
				sibling = parent->rb_left;
			}
			sibling->rb_left->rb_is_red = false;
		}
		sibling->rb_is_red = parent->rb_is_red;
		parent->rb_is_red = false;
		if (left)
			rotate_left(root, parent);
		else
			rotate_right(root, parent);
		return;
	}
	if (node)
		node->rb_is_red = false;
}

void rb_erase(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *child, *parent;
	bool removed_red;

	if (node->rb_left && node->rb_right) {
		struct rb_node *heir = node->rb_right;

		while (heir->rb_left)
			heir = heir->rb_left;
		child = heir->rb_right;
		removed_red = heir->rb_is_red;
		parent = heir->rb_parent;
		if (parent == node) {
			parent = heir;
		} else {
			parent->rb_left = child;
			if (child)
				child->rb_parent = parent;
			heir->rb_right = node->rb_right;
			heir->rb_right->rb_parent = heir;
		}
		replace_child(root, node->rb_parent, node, heir);
		heir->rb_left = node->rb_left;
		heir->rb_left->rb_parent = heir;
		heir->rb_is_red = node->rb_is_red;
	} else {
		child = node->rb_left ? node->rb_left : node->rb_right;
		parent = node->rb_parent;
		removed_red = node->rb_is_red;
		replace_child(root, parent, node, child);
	}
	if (!removed_red)
		erase_fixup(root, child, parent);
}

struct rb_node *rb_first(const struct rb_root *root)
{
	struct rb_node *node = root->rb_node;

	while (node && node->rb_left)
		node = node->rb_left;
	return node;
}

struct rb_node *rb_last(const struct rb_root *root)
{
	struct rb_node *node = root->rb_node;

	while (node && node->rb_right)
		node = node->rb_right;
	return node;
}

struct rb_node *rb_next(const struct rb_node *node)
{
	struct rb_node *up;

	if (node->rb_right) {
		node = node->rb_right;
		while (node->rb_left)
			node = node->rb_left;
		return (struct rb_node *)node;
	}
	for (up = node->rb_parent; up && node == up->rb_right;
	     up = up->rb_parent)
		node = up;
	return up;
}

struct rb_node *rb_prev(const struct rb_node *node)
{
	struct rb_node *up;

	if (node->rb_left) {
		node = node->rb_left;
		while (node->rb_right)
			node = node->rb_right;
		return (struct rb_node *)node;
	}
	for (up = node->rb_parent; up && node == up->rb_left;
	     up = up->rb_parent)
		node = up;
	return up;
}
