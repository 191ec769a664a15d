// SPDX-License-Identifier: GPL-2.0-only
/*
 * The write cache: extents in a tree by position, from a fixed pool.
 */
#include "hdd_dirty.h"

#include <linux/minmax.h>

#include "hdd_geometry.h"

/*
 * Extents looked at on each side of the head for the shortest positioning time.
 * Half: writes take a third longer. Double: a tenth less, for twice the work.
 */
#define HDD_LOOK 16

static struct hdd_dirty *hdd_dirty_of(const struct rb_node *node)
{
	return node ? rb_entry(node, struct hdd_dirty, node) : NULL;
}

static u64 hdd_dirty_end(const struct hdd_dirty *dirty)
{
	return dirty->sector + dirty->nr_sectors;
}

void hdd_dirty_init(struct hdd *hdd)
{
	hdd->dirty_tree = RB_ROOT;
	hdd->dirty_free = NULL;
	hdd->nr_dirty = 0;
	hdd->nr_dirty_used = 0;
	hdd->dirty_sectors = 0;
}

/* @dirty begins at @sector. */
static void hdd_dirty_begins(const struct hdd *hdd, struct hdd_dirty *dirty,
			     u64 sector)
{
	struct hdd_place place;

	dirty->sector = sector;
	hdd_locate(hdd, sector, &place);
	dirty->cylinder = hdd_cylinder(hdd, &place);
	dirty->head = place.head;
	dirty->angle_ns = hdd_angle(hdd, &place);
}

/* The first extent that ends behind @sector, or NULL. */
static struct hdd_dirty *hdd_dirty_find(const struct hdd *hdd, u64 sector)
{
	struct rb_node *node = hdd->dirty_tree.rb_node;
	struct hdd_dirty *best = NULL;

	while (node) {
		struct hdd_dirty *dirty = hdd_dirty_of(node);

		if (hdd_dirty_end(dirty) > sector) {
			best = dirty;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return best;
}

/* A new extent of the pool, in the tree; the pool has one. */
static void hdd_dirty_insert(struct hdd *hdd, u64 sector, u64 nr_sectors)
{
	struct rb_node **link = &hdd->dirty_tree.rb_node, *parent = NULL;
	struct hdd_dirty *dirty = hdd->dirty_free;

	if (dirty)
		hdd->dirty_free = dirty->next_free;
	else
		dirty = &hdd->dirty[hdd->nr_dirty_used++];
	hdd->nr_dirty++;
	hdd_dirty_begins(hdd, dirty, sector);
	dirty->nr_sectors = nr_sectors;
	while (*link) {
		parent = *link;
		link = sector < hdd_dirty_of(parent)->sector ?
			       &parent->rb_left :
			       &parent->rb_right;
	}
	rb_link_node(&dirty->node, parent, link);
	rb_insert_color(&dirty->node, &hdd->dirty_tree);
}

static void hdd_dirty_remove(struct hdd *hdd, struct hdd_dirty *dirty)
{
	rb_erase(&dirty->node, &hdd->dirty_tree);
	dirty->next_free = hdd->dirty_free;
	hdd->dirty_free = dirty;
	hdd->nr_dirty--;
}

bool hdd_dirty_holds(const struct hdd *hdd, u64 sector, u64 nr_sectors)
{
	const struct hdd_dirty *dirty = hdd_dirty_find(hdd, sector);

	return dirty && dirty->sector <= sector &&
	       hdd_dirty_end(dirty) >= sector + nr_sectors;
}

bool hdd_dirty_touches(const struct hdd *hdd, u64 sector, u64 nr_sectors)
{
	const struct hdd_dirty *dirty = hdd_dirty_find(hdd, sector);

	return dirty && dirty->sector < sector + nr_sectors;
}

bool hdd_dirty_add(struct hdd *hdd, u64 sector, u64 nr_sectors)
{
	const struct hdd_params *p = &hdd->params;
	u64 end = sector + nr_sectors, fresh = nr_sectors;
	struct hdd_dirty *first, *dirty;

	/* From the one that touches its start to that which touches its end. */
	first = hdd_dirty_find(hdd, sector ? sector - 1 : 0);
	for (dirty = first; dirty && dirty->sector <= end;
	     dirty = hdd_dirty_of(rb_next(&dirty->node))) {
		u64 from = max_t(u64, sector, dirty->sector);
		u64 to = min_t(u64, end, hdd_dirty_end(dirty));

		fresh -= to > from ? to - from : 0;
	}
	if (hdd->dirty_sectors + fresh > p->write_cache_sectors)
		return false;
	if ((!first || first->sector > end) &&
	    hdd->nr_dirty >= p->write_cache_extents)
		return false;
	hdd->dirty_sectors += fresh;
	hdd->wrote = true;
	if (!first || first->sector > end) {
		hdd_dirty_insert(hdd, sector, nr_sectors);
		return true;
	}
	sector = min_t(u64, sector, first->sector);
	end = max_t(u64, end, hdd_dirty_end(first));
	while ((dirty = hdd_dirty_of(rb_next(&first->node))) &&
	       dirty->sector <= end) {
		end = max_t(u64, end, hdd_dirty_end(dirty));
		hdd_dirty_remove(hdd, dirty);
	}
	if (sector != first->sector)
		hdd_dirty_begins(hdd, first, sector);
	first->nr_sectors = end - sector;
	return true;
}

bool hdd_dirty_has_room(const struct hdd *hdd, u64 nr_sectors)
{
	const struct hdd_params *p = &hdd->params;

	return hdd->nr_dirty < p->write_cache_extents &&
	       hdd->dirty_sectors + nr_sectors <= p->write_cache_sectors;
}

void hdd_dirty_drop(struct hdd *hdd, u64 sector, u64 end)
{
	struct hdd_dirty *dirty, *next;

	for (dirty = hdd_dirty_find(hdd, sector); dirty && dirty->sector < end;
	     dirty = next) {
		u64 from = dirty->sector, to = hdd_dirty_end(dirty);

		next = hdd_dirty_of(rb_next(&dirty->node));
		if (from < sector && to > end) {
			/* No room for two pieces: the hole is written again. */
			if (hdd->nr_dirty >= HDD_MAX_DIRTY)
				return;
			dirty->nr_sectors = sector - from;
			hdd_dirty_insert(hdd, end, to - end);
			hdd->dirty_sectors -= end - sector;
			return;
		}
		hdd->dirty_sectors -= min_t(u64, to, end) -
				      max_t(u64, from, sector);
		if (from < sector) {
			dirty->nr_sectors = sector - from;
		} else if (to > end) {
			hdd_dirty_begins(hdd, dirty, end);
			dirty->nr_sectors = to - end;
		} else {
			hdd_dirty_remove(hdd, dirty);
		}
	}
}

void hdd_dirty_written(struct hdd *hdd, struct hdd_dirty *dirty, u64 nr_sectors)
{
	hdd->dirty_sectors -= nr_sectors;
	dirty->nr_sectors -= nr_sectors;
	if (dirty->nr_sectors)
		hdd_dirty_begins(hdd, dirty, dirty->sector + nr_sectors);
	else
		hdd_dirty_remove(hdd, dirty);
}

static u64 hdd_dirty_cost(const struct hdd *hdd, const struct hdd_dirty *dirty,
			  u64 at_ns)
{
	return hdd_position_at_ns(hdd, dirty->sector, dirty->cylinder,
				  dirty->head, dirty->angle_ns, true, at_ns);
}

struct hdd_dirty *hdd_dirty_next(const struct hdd *hdd, u64 at_ns)
{
	struct hdd_dirty *up, *down, *best = NULL;
	u64 cost_ns, best_ns = U64_MAX;
	u32 i;

	up = hdd_dirty_find(hdd, hdd->head_sector);
	/* Not in the midst of one: it begins at its start. */
	if (hdd->params.write_order == HDD_WRITE_SWEEP) {
		if (up && up->sector < hdd->head_sector)
			up = hdd_dirty_of(rb_next(&up->node));
		return up ? up : hdd_dirty_of(rb_first(&hdd->dirty_tree));
	}
	down = hdd_dirty_of(up ? rb_prev(&up->node) :
				 rb_last(&hdd->dirty_tree));
	for (i = 0; i < HDD_LOOK && (up || down); i++) {
		if (up) {
			cost_ns = hdd_dirty_cost(hdd, up, at_ns);
			if (cost_ns < best_ns) {
				best_ns = cost_ns;
				best = up;
			}
			up = hdd_dirty_of(rb_next(&up->node));
		}
		if (down) {
			cost_ns = hdd_dirty_cost(hdd, down, at_ns);
			if (cost_ns < best_ns) {
				best_ns = cost_ns;
				best = down;
			}
			down = hdd_dirty_of(rb_prev(&down->node));
		}
	}
	return best;
}
