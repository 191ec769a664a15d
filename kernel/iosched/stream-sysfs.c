// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: its files in sysfs, /sys/block/DISK/queue/iosched/.
 *
 * One file for each tunable of each policy that can be inside, made from the
 * core's rows; the inner policy; the service-time curve. A write that is
 * refused leaves all as it was and tells the reason in the kernel log.
 *
 * The block layer's show and store functions are not told which file they
 * are called for, so each file needs functions of its own: SETTINGS lists
 * them, and loading fails when a row of the core is missing there.
 */
#include "stream-iosched.h"

#include "../../core/policies.h"

#include <linux/blkdev.h>
#include <linux/ctype.h>
#include <linux/math64.h>
#include <linux/module.h>

#define SETTINGS(X)                                                            \
	X(stream_threshold)                                                    \
	X(wait_target)                                                         \
	X(backward_cost)                                                       \
	X(read_expire)                                                         \
	X(write_expire)                                                        \
	X(writes_starved)                                                      \
	X(fifo_batch)                                                          \
	X(batch_over_gaps)                                                     \
	X(age_limit)                                                           \
	X(read_passovers)                                                      \
	X(write_passovers)                                                     \
	X(seek_cost)

#define SETTING_NAME(name) #name,
static const char *const setting_name[] = { SETTINGS(SETTING_NAME) };

/* SETTINGS as numbers, to find the row by. */
#define SETTING_INDEX(name) SETTING_##name,
enum { SETTINGS(SETTING_INDEX) };

/* The row of each, found when the module is loaded. */
static const struct ss_tunable *setting_row[ARRAY_SIZE(setting_name)];

/* The policies that can be set here: stream and what it can wrap. */
static bool is_offered(const struct ss_policy_ops *ops)
{
	if (ops->flags & SS_WRAPPER)
		return ops == &ss_stream_ops;
	return (ops->flags & SS_WORK_CONSERVING) &&
	       !(ops->flags & SS_USES_OWNER);
}

int stream_settings_check(void)
{
	u32 p, t;
	int i;

	BUILD_BUG_ON(ARRAY_SIZE(setting_name) > STREAM_SETTINGS);
	for (p = 0; p < ss_nr_policies; p++) {
		const struct ss_policy_ops *ops = ss_policies[p];

		if (!is_offered(ops))
			continue;
		for (t = 0; t < ops->nr_tunables; t++) {
			const char *name = ops->tunables[t].name;

			i = match_string(setting_name, ARRAY_SIZE(setting_name),
					 name);
			if (WARN(i < 0, "stream: %s has no file\n", name))
				return -EINVAL;
			setting_row[i] = &ops->tunables[t];
		}
	}
	for (i = 0; i < ARRAY_SIZE(setting_name); i++)
		if (WARN(!setting_row[i], "stream: %s is no tunable\n",
			 setting_name[i]))
			return -EINVAL;
	return 0;
}

void stream_settings_default(struct stream_data *sd)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(setting_name); i++)
		sd->setting[i] = setting_row[i]->initial;
}

void stream_settings_apply(struct stream_data *sd, struct ss_sched *sched,
			   u64 now_ns)
{
	char why[160];
	int i;

	/* Those that these policies do not have are for other ones. */
	for (i = 0; i < ARRAY_SIZE(setting_name); i++)
		ss_sched_tune(sched, setting_name[i], sd->setting[i], now_ns,
			      why, sizeof(why));
}

/* ---- numbers with units ---- */

static const struct {
	const char *name;
	u64 ns;
} time_unit[] = {
	{ "s", SS_SEC },
	{ "ms", SS_MSEC },
	{ "us", SS_USEC },
	{ "ns", 1 },
};

static int show_time(char *page, u64 ns)
{
	u64 amount, rest;
	int i = 0;

	do
		amount = div64_u64_rem(ns, time_unit[i].ns, &rest);
	while (time_unit[i].ns > 1 && (!ns || rest) && ++i);
	return sysfs_emit(page, "%llu%s\n", amount, time_unit[i].name);
}

static const char *unit_wanted(const struct ss_tunable *row)
{
	switch (row->unit) {
	case SS_UNIT_NS:
		return "a time as in 500ms (units ns, us, ms, s)";
	case SS_UNIT_PERCENT:
		return "a whole number of percent as in 50 or 50%";
	case SS_UNIT_SECTORS:
		return "a whole number of 512-byte sectors";
	case SS_UNIT_BOOL:
		return "0 or 1";
	default:
		return "a whole number";
	}
}

/* The digits at *@text, which becomes what follows them. */
static int parse_number(const char **text, u64 *value)
{
	const char *at = *text;
	u64 sum = 0;

	if (!isdigit(*at))
		return -EINVAL;
	for (; isdigit(*at); at++)
		if (check_mul_overflow(sum, (u64)10, &sum) ||
		    check_add_overflow(sum, (u64)(*at - '0'), &sum))
			return -EINVAL;
	*text = at;
	*value = sum;
	return 0;
}

static int parse_time(const char *text, u64 *ns)
{
	int i;

	if (parse_number(&text, ns))
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(time_unit); i++)
		if (!strcmp(text, time_unit[i].name))
			return check_mul_overflow(*ns, time_unit[i].ns, ns) ?
				       -EINVAL :
				       0;
	/* Nothing is zero in every unit. */
	return *ns || *text ? -EINVAL : 0;
}

static int parse_value(const struct ss_tunable *row, const char *text,
		       u64 *value)
{
	if (row->unit == SS_UNIT_NS)
		return parse_time(text, value);
	if (parse_number(&text, value))
		return -EINVAL;
	if (row->unit == SS_UNIT_PERCENT && *text == '%')
		text++;
	return *text ? -EINVAL : 0;
}

/* What was written, without blanks around it; -EINVAL when too long. */
static int copy_word(char *word, size_t word_bytes, const char *page,
		     size_t count)
{
	while (count && isspace(page[count - 1]))
		count--;
	while (count && isspace(*page)) {
		page++;
		count--;
	}
	if (count >= word_bytes)
		return -EINVAL;
	memcpy(word, page, count);
	word[count] = 0;
	return 0;
}

static const char *disk_name(const struct stream_data *sd)
{
	return sd->io.queue->disk ? sd->io.queue->disk->disk_name : "?";
}

#define refuse(sd, file, format, ...)                                          \
	pr_err("stream: %s: %s: " format "\n", disk_name(sd), file,            \
	       ##__VA_ARGS__)

/* ---- tunables ---- */

static ssize_t setting_show(struct elevator_queue *eq, char *page, int i)
{
	struct stream_data *sd = stream_data_of(eq);
	const struct ss_tunable *row = setting_row[i];
	u64 value = READ_ONCE(sd->setting[i]);

	if (row->unit == SS_UNIT_NS)
		return show_time(page, value);
	return sysfs_emit(page, "%llu\n", value);
}

static ssize_t setting_store(struct elevator_queue *eq, const char *page,
			     size_t count, int i)
{
	struct stream_data *sd = stream_data_of(eq);
	const struct ss_tunable *row = setting_row[i];
	char word[32], why[160];
	unsigned long irq;
	u64 value;

	if (copy_word(word, sizeof(word), page, count) ||
	    parse_value(row, word, &value)) {
		refuse(sd, row->name, "what was written is not %s",
		       unit_wanted(row));
		return -EINVAL;
	}
	if (value < row->min || value > row->max) {
		refuse(sd, row->name, "%llu is not within %llu to %llu%s",
		       value, row->min, row->max,
		       row->unit == SS_UNIT_NS ? " (ns)" : "");
		return -EINVAL;
	}
	spin_lock_irqsave(&sd->io.lock, irq);
	WRITE_ONCE(sd->setting[i], value);
	iosched_for_each_class(&sd->io, class)
		ss_sched_tune(class->sched, row->name, value, iosched_now_ns(),
			      why, sizeof(why));
	spin_unlock_irqrestore(&sd->io.lock, irq);
	iosched_kick(&sd->io);
	return count;
}

#define SETTING_FUNCTIONS(name)                                                \
	static ssize_t name##_show(struct elevator_queue *eq, char *page)      \
	{                                                                      \
		return setting_show(eq, page, SETTING_##name);                 \
	}                                                                      \
	static ssize_t name##_store(struct elevator_queue *eq,                 \
				    const char *page, size_t count)            \
	{                                                                      \
		return setting_store(eq, page, count, SETTING_##name);         \
	}
SETTINGS(SETTING_FUNCTIONS)

/*
 * Settings of former versions, so that a udev rule which sets one is told what
 * replaces it. They cannot be read.
 */
#define REPLACED(X)                                                            \
	X(stream_time_slice)                                                   \
	X(tolerance_factor)                                                    \
	X(answer_time)                                                         \
	X(trials)

static ssize_t refuse_replaced(struct elevator_queue *eq, const char *name)
{
	refuse(stream_data_of(eq), name, "is gone: %s",
	       ss_policy_replaced(&ss_stream_ops, name) ?:
							  "nothing replaces it");
	return -EINVAL;
}

#define REPLACED_FUNCTION(name)                                                \
	static ssize_t name##_store(struct elevator_queue *eq,                 \
				    const char *page, size_t count)            \
	{                                                                      \
		return refuse_replaced(eq, #name);                             \
	}
REPLACED(REPLACED_FUNCTION)

/* ---- what is the host's own ---- */

static ssize_t prio_aging_expire_show(struct elevator_queue *eq, char *page)
{
	struct stream_data *sd = stream_data_of(eq);

	return show_time(page, READ_ONCE(sd->io.prio_aging_ns));
}

static ssize_t prio_aging_expire_store(struct elevator_queue *eq,
				       const char *page, size_t count)
{
	struct stream_data *sd = stream_data_of(eq);
	char word[32];
	u64 ns;

	if (copy_word(word, sizeof(word), page, count) ||
	    parse_time(word, &ns) || !ns || ns > 3600 * SS_SEC) {
		refuse(sd, "prio_aging_expire",
		       "what was written is not a time from 1ns to 3600s");
		return -EINVAL;
	}
	WRITE_ONCE(sd->io.prio_aging_ns, ns);
	iosched_kick(&sd->io);
	return count;
}

static ssize_t background_weight_show(struct elevator_queue *eq, char *page)
{
	struct stream_data *sd = stream_data_of(eq);

	return sysfs_emit(page, "%u\n", READ_ONCE(sd->io.background_weight));
}

static ssize_t background_weight_store(struct elevator_queue *eq,
				       const char *page, size_t count)
{
	struct stream_data *sd = stream_data_of(eq);
	const char *text;
	char word[32];
	u64 percent;

	text = word;
	if (copy_word(word, sizeof(word), page, count) ||
	    parse_number(&text, &percent) || (*text && strcmp(text, "%")) ||
	    !percent || percent > 100) {
		refuse(sd, "background_weight",
		       "what was written is not a whole number of percent from 1 to 100");
		return -EINVAL;
	}
	WRITE_ONCE(sd->io.background_weight, percent);
	return count;
}

static ssize_t inner_show(struct elevator_queue *eq, char *page)
{
	struct stream_data *sd = stream_data_of(eq);
	int at = 0;
	u32 p;

	/* As the block layer shows its schedulers: the one in use in []. */
	for (p = 0; p < ss_nr_policies; p++) {
		const char *name = ss_policies[p]->name;
		bool used = !strcmp(name, sd->inner);

		if (!(ss_policies[p]->flags & SS_WORK_CONSERVING) ||
		    !is_offered(ss_policies[p]))
			continue;
		at += sysfs_emit_at(page, at, "%s%s%s%s", at ? " " : "",
				    used ? "[" : "", name, used ? "]" : "");
	}
	return at + sysfs_emit_at(page, at, "\n");
}

static ssize_t inner_store(struct elevator_queue *eq, const char *page,
			   size_t count)
{
	struct stream_data *sd = stream_data_of(eq);
	char word[STREAM_SPEC_BYTES], why[160];
	int ret;
	u32 p;

	if (copy_word(word, sizeof(word), page, count))
		word[0] = 0;
	for (p = 0; p < ss_nr_policies; p++)
		if (!strcmp(word, ss_policies[p]->name) &&
		    (ss_policies[p]->flags & SS_WORK_CONSERVING) &&
		    is_offered(ss_policies[p]))
			break;
	if (p == ss_nr_policies) {
		refuse(sd, "inner",
		       "what was written is no work-conserving policy; reading the file lists them");
		return -EINVAL;
	}
	ret = stream_restart(sd, word, sd->plain, why, sizeof(why));
	if (ret) {
		refuse(sd, "inner", "%s", why);
		return ret;
	}
	iosched_kick(&sd->io);
	return count;
}

/* ---- the service-time curve ---- */

static ssize_t service_curve_show(struct elevator_queue *eq, char *page)
{
	struct stream_data *sd = stream_data_of(eq);
	struct ss_curve *curve;
	unsigned long irq;
	int at = 0;
	u32 i;

	/* The queue may be frozen: memory must be had without it. */
	curve = kmalloc(sizeof(*curve), GFP_NOIO);
	if (!curve)
		return -ENOMEM;
	spin_lock_irqsave(&sd->io.lock, irq);
	*curve = iosched_usual(&sd->io)->curve;
	spin_unlock_irqrestore(&sd->io.lock, irq);
	for (i = 0; i < curve->nr_points; i++)
		at += sysfs_emit_at(page, at, "%s%llu:%llu", i ? " " : "",
				    curve->point[i].distance_sectors,
				    curve->point[i].time_ns);
	at += sysfs_emit_at(page, at, "\n");
	kfree(curve);
	return at;
}

/* "SECTORS:NS SECTORS:NS ...", as shown; the number of points or -EINVAL. */
static int parse_points(const char *text, struct ss_curve_point *point)
{
	int nr = 0;

	for (;;) {
		while (isspace(*text))
			text++;
		if (!*text)
			return nr;
		if (nr == SS_CURVE_POINTS ||
		    parse_number(&text, &point[nr].distance_sectors) ||
		    *text++ != ':' || parse_number(&text, &point[nr].time_ns) ||
		    (*text && !isspace(*text)))
			return -EINVAL;
		nr++;
	}
}

/* The points that were written make a curve: how many are they? */
static int parse_curve(const char *text, struct ss_curve_point *point,
		       char *why, size_t why_bytes)
{
	int nr = parse_points(text, point);

	if (nr > 0)
		return ss_curve_check(point, nr, why, why_bytes) ?: nr;
	snprintf(
		why, why_bytes,
		"what was written is neither \"learn\" nor 1 to %d points DISTANCE_SECTORS:TIME_NS",
		SS_CURVE_POINTS);
	return -EINVAL;
}

/* @nr valid points, or 0: learn anew. */
static void set_curve(struct stream_data *sd,
		      const struct ss_curve_point *point, int nr)
{
	unsigned long irq;

	spin_lock_irqsave(&sd->io.lock, irq);
	iosched_for_each_class(&sd->io, class) {
		struct ss_curve *curve = &class->sched->curve;

		if (nr)
			ss_curve_set(curve, point, nr, curve->span_sectors);
		else
			ss_curve_forget(curve);
		curve->learning = !nr && !sd->plain;
	}
	spin_unlock_irqrestore(&sd->io.lock, irq);
}

static ssize_t service_curve_store(struct elevator_queue *eq, const char *page,
				   size_t count)
{
	struct stream_data *sd = stream_data_of(eq);
	struct ss_curve_point *point;
	char why[160];
	int nr, ret;

	if (sysfs_streq(page, "learn")) {
		set_curve(sd, NULL, 0);
		return count;
	}
	point = kcalloc(SS_CURVE_POINTS, sizeof(*point), GFP_NOIO);
	if (!point) {
		refuse(sd, "service_curve", "out of memory");
		return -ENOMEM;
	}
	nr = parse_curve(page, point, why, sizeof(why));
	ret = min(nr, 0);
	/* Somebody knows that positioning costs something here. */
	if (!ret && sd->plain)
		ret = stream_restart(sd, sd->inner, false, why, sizeof(why));
	if (!ret)
		set_curve(sd, point, nr);
	kfree(point);
	if (ret) {
		refuse(sd, "service_curve", "%s", why);
		return ret;
	}
	iosched_kick(&sd->io);
	return count;
}

static ssize_t cgroup_weights_show(struct elevator_queue *eq, char *page)
{
	return stream_weights_show(stream_data_of(eq), page);
}

static ssize_t cgroup_weights_store(struct elevator_queue *eq, const char *page,
				    size_t count)
{
	struct stream_data *sd = stream_data_of(eq);
	char why[240];
	int ret = stream_weights_store(sd, page, count, why, sizeof(why));

	if (!ret)
		return count;
	refuse(sd, "cgroup_weights", "%s", why);
	return ret;
}

#define REPLACED_ATTR(name) __ATTR(name, 0200, NULL, name##_store),
#define SETTING_ATTR(name) __ATTR(name, 0644, name##_show, name##_store),

const struct elv_fs_entry stream_attrs[] = {
	SETTINGS(SETTING_ATTR) REPLACED(REPLACED_ATTR)
		__ATTR(prio_aging_expire, 0644, prio_aging_expire_show,
		       prio_aging_expire_store),
	__ATTR(background_weight, 0644, background_weight_show,
	       background_weight_store),
	__ATTR(inner, 0644, inner_show, inner_store),
	__ATTR(cgroup_weights, 0644, cgroup_weights_show, cgroup_weights_store),
	__ATTR(service_curve, 0644, service_curve_show, service_curve_store),
	__ATTR_NULL,
};
