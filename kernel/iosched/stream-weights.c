// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: weights of cgroups, in /sys/block/DISK/queue/iosched/cgroup_weights.
 *
 * A request tells its cgroup also where nobody knows its process any more: loop
 * devices, device mapper and md hand that on. The weights of its cgroups that
 * have one here multiply: who weighs half in a group that weighs double weighs
 * as much as others.
 */
#include "stream-iosched.h"

#include <linux/blk-cgroup.h>
#include <linux/cgroup.h>
#include <linux/ctype.h>
#include <linux/slab.h>
#include <linux/string.h>

#ifdef CONFIG_BLK_CGROUP

#define USUAL 100
/* As io.weight has it. */
#define MOST 10000

/*
 * A product of weights, in percent: value / 2^shift. Only the end of a chain of
 * cgroups is rounded and limited to a weight, so that no level loses what the
 * next one gives back, whatever their order.
 */
struct product {
	u64 value; /* of VALUE_BITS bits: times a weight it fits in 64 */
	int shift;
};

#define VALUE_BITS 48
#define USUAL_SHIFT 41

static void multiply(struct product *product, u32 percent)
{
	int less;

	product->value = div_u64(product->value * percent, USUAL);
	less = VALUE_BITS - fls64(product->value);
	product->value = less < 0 ? product->value >> -less :
				    product->value << less;
	product->shift += less;
}

static u32 to_weight(const struct product *product)
{
	int shift = product->shift;

	if (shift > VALUE_BITS)
		return 1;
	if (shift < VALUE_BITS / 2)
		return MOST;
	return clamp_t(u64, (product->value + (1ULL << (shift - 1))) >> shift,
		       1, MOST);
}

static u32 weight_of(const struct iosched_data *io, const struct request *rq)
{
	const struct stream_data *sd = container_of(io, struct stream_data, io);
	struct product product = { .value = (u64)USUAL << USUAL_SHIFT,
				   .shift = USUAL_SHIFT };
	struct cgroup_subsys_state *css;
	struct cgroup *cgroup;
	u32 i;

	if (!sd->nr_weights || !rq->bio)
		return USUAL;
	css = bio_blkcg_css(rq->bio);
	for (cgroup = css ? css->cgroup : NULL; cgroup;
	     cgroup = cgroup_parent(cgroup))
		for (i = 0; i < sd->nr_weights; i++)
			if (sd->weight[i].cgroup == cgroup)
				multiply(&product, sd->weight[i].percent);
	return to_weight(&product);
}

static bool is_gone(const struct cgroup *cgroup)
{
	return !(cgroup->self.flags & CSS_ONLINE);
}

/*
 * @cgroup, a reference to which is given away, has the weight @percent from now
 * on; 0: none of its own. Those that are no more are forgotten.
 */
static int set_weight(struct stream_data *sd, struct cgroup *cgroup,
		      u32 percent)
{
	struct cgroup *put[STREAM_WEIGHTS + 1];
	u32 nr_put = 0, nr = 0, i;
	unsigned long irq;
	int ret = 0;

	spin_lock_irqsave(&sd->io.lock, irq);
	for (i = 0; i < sd->nr_weights; i++) {
		struct stream_weight *old = &sd->weight[i];

		if (old->cgroup == cgroup || is_gone(old->cgroup))
			put[nr_put++] = old->cgroup;
		else
			sd->weight[nr++] = *old;
	}
	if (percent && nr < STREAM_WEIGHTS) {
		sd->weight[nr].cgroup = cgroup;
		sd->weight[nr++].percent = percent;
	} else {
		ret = percent ? -ENOSPC : 0;
		put[nr_put++] = cgroup;
	}
	sd->nr_weights = nr;
	spin_unlock_irqrestore(&sd->io.lock, irq);
	while (nr_put)
		cgroup_put(put[--nr_put]);
	return ret;
}

ssize_t stream_weights_show(struct stream_data *sd, char *page)
{
	struct cgroup *cgroup[STREAM_WEIGHTS];
	u32 percent[STREAM_WEIGHTS], nr = 0, i;
	unsigned long irq;
	int at = 0, bytes;

	spin_lock_irqsave(&sd->io.lock, irq);
	for (i = 0; i < sd->nr_weights; i++) {
		if (is_gone(sd->weight[i].cgroup))
			continue;
		cgroup_get(sd->weight[i].cgroup);
		cgroup[nr] = sd->weight[i].cgroup;
		percent[nr++] = sd->weight[i].percent;
	}
	spin_unlock_irqrestore(&sd->io.lock, irq);
	for (i = 0; i < nr; i++) {
		bytes = cgroup_path(cgroup[i], page + at, PAGE_SIZE - at);
		if (bytes > 0 && at + bytes < PAGE_SIZE)
			at += bytes + sysfs_emit_at(page, at + bytes, " %u\n",
						    percent[i]);
		cgroup_put(cgroup[i]);
	}
	page[at] = 0;
	return at;
}

/* "PATH WEIGHT" or "PATH default"; in @text the path is left. */
static int parse(char *text, u32 *percent)
{
	char *word = strrchr(strim(text), ' ');

	if (!word || *text != '/')
		return -EINVAL;
	*word++ = 0;
	strim(text);
	*percent = 0;
	if (!strcmp(word, "default"))
		return 0;
	if (!isdigit(*word) || kstrtou32(word, 10, percent) || !*percent ||
	    *percent > MOST)
		return -EINVAL;
	return 0;
}

int stream_weights_store(struct stream_data *sd, const char *page, size_t count,
			 char *why, size_t why_bytes)
{
	char *text = kmemdup_nul(page, count, GFP_NOIO);
	struct cgroup *cgroup;
	u32 percent;
	int ret = 0;

	if (!text) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	if (parse(text, &percent)) {
		snprintf(
			why, why_bytes,
			"what was written is neither CGROUP WEIGHT, as in /machine.slice 200, with a weight from 1 to %d, nor CGROUP default",
			MOST);
		ret = -EINVAL;
		goto out;
	}
	cgroup = cgroup_get_from_path(text);
	if (IS_ERR(cgroup)) {
		snprintf(why, why_bytes, "%.80s is no cgroup of version 2",
			 text);
		ret = -EINVAL;
		goto out;
	}
	ret = set_weight(sd, cgroup, percent);
	if (ret)
		snprintf(why, why_bytes,
			 "%d cgroups have a weight; write CGROUP default first",
			 STREAM_WEIGHTS);
out:
	kfree(text);
	return ret;
}

void stream_weights_begin(struct stream_data *sd)
{
	sd->io.weight = weight_of;
}

void stream_weights_end(struct stream_data *sd)
{
	while (sd->nr_weights)
		cgroup_put(sd->weight[--sd->nr_weights].cgroup);
}

#else

ssize_t stream_weights_show(struct stream_data *sd, char *page)
{
	return 0;
}

int stream_weights_store(struct stream_data *sd, const char *page, size_t count,
			 char *why, size_t why_bytes)
{
	snprintf(why, why_bytes,
		 "this kernel has no cgroups for disks (CONFIG_BLK_CGROUP)");
	return -EOPNOTSUPP;
}

void stream_weights_begin(struct stream_data *sd)
{
}

void stream_weights_end(struct stream_data *sd)
{
}

#endif
