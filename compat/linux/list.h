/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for <linux/list.h>: circular doubly linked lists, and
 * the pointer-sized-head lists that hash tables use.
 */
#ifndef COMPAT_LINUX_LIST_H
#define COMPAT_LINUX_LIST_H

#include <linux/container_of.h>
#include <linux/types.h>

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline void list_link_between(struct list_head *node,
				     struct list_head *before,
				     struct list_head *after)
{
	node->prev = before;
	node->next = after;
	before->next = node;
	after->prev = node;
}

/* Put @node first. */
static inline void list_add(struct list_head *node, struct list_head *head)
{
	list_link_between(node, head, head->next);
}

/* Put @node last. */
static inline void list_add_tail(struct list_head *node, struct list_head *head)
{
	list_link_between(node, head->prev, head);
}

/* Take @node out; what it points to then must not be used. */
static inline void list_del(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

/* Take @node out and leave it a list of itself, so that list_empty() holds. */
static inline void list_del_init(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	INIT_LIST_HEAD(node);
}

static inline int list_empty(const struct list_head *head)
{
	return head->next == head;
}

/* Take @node out of the list it is in and put it first in another. */
static inline void list_move(struct list_head *node, struct list_head *head)
{
	list_del(node);
	list_add(node, head);
}

static inline void list_move_tail(struct list_head *node,
				  struct list_head *head)
{
	list_del(node);
	list_add_tail(node, head);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first_entry(head, type, member)                                   \
	list_entry((head)->next, type, member)
#define list_last_entry(head, type, member)                                    \
	list_entry((head)->prev, type, member)
#define list_next_entry(pos, member)                                           \
	list_entry((pos)->member.next, __typeof__(*(pos)), member)
#define list_for_each_entry(pos, head, member)                                 \
	for (pos = list_first_entry(head, __typeof__(*pos), member);           \
	     &pos->member != (head); pos = list_next_entry(pos, member))
/* The same where @pos may be taken out; @next is the one behind it. */
#define list_for_each_entry_safe(pos, next, head, member)                      \
	for (pos = list_first_entry(head, __typeof__(*pos), member),           \
	    next = list_next_entry(pos, member);                               \
	     &pos->member != (head);                                           \
	     pos = next, next = list_next_entry(next, member))

static inline void INIT_HLIST_NODE(struct hlist_node *node)
{
	node->next = NULL;
	node->pprev = NULL;
}

static inline int hlist_unhashed(const struct hlist_node *node)
{
	return !node->pprev;
}

static inline void hlist_add_head(struct hlist_node *node,
				  struct hlist_head *head)
{
	node->next = head->first;
	if (head->first)
		head->first->pprev = &node->next;
	head->first = node;
	node->pprev = &head->first;
}

static inline void hlist_del_init(struct hlist_node *node)
{
	if (hlist_unhashed(node))
		return;
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
	INIT_HLIST_NODE(node);
}

#define hlist_entry(ptr, type, member) container_of(ptr, type, member)
#define hlist_entry_or_null(ptr, type, member)                                 \
	((ptr) ? hlist_entry(ptr, type, member) : NULL)
#define hlist_for_each_entry(pos, head, member)                                \
	for (pos = hlist_entry_or_null((head)->first, __typeof__(*pos),        \
				       member);                                \
	     pos; pos = hlist_entry_or_null((pos)->member.next,                \
					    __typeof__(*pos), member))

#endif
