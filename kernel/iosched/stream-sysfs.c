// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: its files in sysfs, /sys/block/DISK/queue/iosched/.
 *
 * One file for each tunable of each policy, made from its rows; the
 * service-time curve; the weights of cgroups. A write that is refused leaves
 * all as it was and tells the reason in the kernel log.
 *
 * The block layer's show and store functions are not told which file they
 * are called for, so each file needs functions of its own. Those of tunables
 * have numbers, and get their names when the module is loaded.
 */
#include "stream-iosched.h"

#include "../../core/policies.h"

#include <linux/blkdev.h>
#include <linux/ctype.h>
#include <linux/module.h>

/* The functions that there are: 0 to STREAM_SETTINGS - 1. */
#ifndef SS_MAINLINE
#define FIRST_8(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define SECOND_8(X) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define THIRD_8(X) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#define NUMBERS(X) FIRST_8(X) SECOND_8(X) THIRD_8(X)
#else
#define NUMBERS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#endif

/* The tunable of each number. */
static const struct ss_tunable *setting_row[STREAM_SETTINGS];
static u32 nr_settings;

static const struct ss_tunable prio_aging_row = {
	.name = "prio_aging_expire",
	.unit = SS_UNIT_NS,
	.initial = IOSCHED_PRIO_AGING_NS,
	.min = 1,
	.max = 3600 * SS_SEC,
};

static const struct ss_tunable background_row = {
	.name = "background_weight",
	.unit = SS_UNIT_PERCENT,
	.initial = IOSCHED_BACKGROUND_WEIGHT,
	.min = 1,
	.max = 100,
};

#ifndef SS_MAINLINE

/* Other policies than those that can be set here: stream, what it can wrap. */
static bool is_foreign(const struct ss_policy_ops *ops)
{
	if (ops->flags & SS_WRAPPER)
		return ops != &ss_stream_ops;
	return !(ops->flags & SS_WORK_CONSERVING) ||
	       (ops->flags & SS_USES_OWNER);
}

/* The inner policy's name. */
static const char *inner_of(const struct stream_data *sd)
{
	return sd->spec + strlen("stream:");
}

static void set_inner(struct stream_data *sd, const char *name)
{
	snprintf(sd->spec, sizeof(sd->spec), "stream:%s", name);
}

#endif

void stream_settings_default(struct stream_data *sd)
{
	u32 i;

	for (i = 0; i < nr_settings; i++)
		sd->setting[i] = setting_row[i]->initial;
	set_inner(sd, "deadline");
}

void stream_settings_apply(struct stream_data *sd, struct ss_sched *sched,
			   u64 now_ns)
{
	char why[160];
	u32 i;

	/* Those that these policies do not have are for other ones. */
	for (i = 0; i < nr_settings; i++)
		ss_sched_tune(sched, setting_row[i]->name, sd->setting[i],
			      now_ns, why, sizeof(why));
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

static ssize_t show_value(const struct ss_tunable *row, u64 value, char *page)
{
	char text[32];

	ss_tunable_show(row, value, text, sizeof(text));
	return sysfs_emit(page, "%s\n", text);
}

/* The value that was written; else why it is none is told. */
static int read_value(const struct stream_data *sd,
		      const struct ss_tunable *row, const char *page,
		      size_t count, u64 *value)
{
	char word[32], why[160];

	if (copy_word(word, sizeof(word), page, count)) {
		refuse(sd, row->name, "what was written is too long");
		return -EINVAL;
	}
	if (ss_tunable_parse(row, word, value, why, sizeof(why))) {
		refuse(sd, row->name, "%s %s", word, why);
		return -EINVAL;
	}
	return 0;
}

static ssize_t setting_show(struct elevator_queue *eq, char *page, int i)
{
	struct stream_data *sd = stream_data_of(eq);

	return show_value(setting_row[i], READ_ONCE(sd->setting[i]), page);
}

static ssize_t setting_store(struct elevator_queue *eq, const char *page,
			     size_t count, int i)
{
	struct stream_data *sd = stream_data_of(eq);
	const struct ss_tunable *row = setting_row[i];
	unsigned long irq;
	char why[160];
	u64 value;

	if (read_value(sd, row, page, count, &value))
		return -EINVAL;
	spin_lock_irqsave(&sd->io.lock, irq);
	WRITE_ONCE(sd->setting[i], value);
	iosched_for_each_class(&sd->io, class)
		ss_sched_tune(class->sched, row->name, value, iosched_now_ns(),
			      why, sizeof(why));
	spin_unlock_irqrestore(&sd->io.lock, irq);
	iosched_kick(&sd->io);
	return count;
}

#define SETTING_FUNCTIONS(n)                                                   \
	static ssize_t setting_##n##_show(struct elevator_queue *eq,           \
					  char *page)                          \
	{                                                                      \
		return setting_show(eq, page, n);                              \
	}                                                                      \
	static ssize_t setting_##n##_store(struct elevator_queue *eq,          \
					   const char *page, size_t count)     \
	{                                                                      \
		return setting_store(eq, page, count, n);                      \
	}
NUMBERS(SETTING_FUNCTIONS)

#define SETTING_ENTRY(n)                                                       \
	{ .show = setting_##n##_show, .store = setting_##n##_store },
static const struct elv_fs_entry setting_entry[] = { NUMBERS(SETTING_ENTRY) };

/* ---- what is the host's own ---- */

static ssize_t prio_aging_expire_show(struct elevator_queue *eq, char *page)
{
	struct stream_data *sd = stream_data_of(eq);

	return show_value(&prio_aging_row, READ_ONCE(sd->io.prio_aging_ns),
			  page);
}

static ssize_t prio_aging_expire_store(struct elevator_queue *eq,
				       const char *page, size_t count)
{
	struct stream_data *sd = stream_data_of(eq);
	u64 ns;

	if (read_value(sd, &prio_aging_row, page, count, &ns))
		return -EINVAL;
	WRITE_ONCE(sd->io.prio_aging_ns, ns);
	iosched_kick(&sd->io);
	return count;
}

static ssize_t background_weight_show(struct elevator_queue *eq, char *page)
{
	struct stream_data *sd = stream_data_of(eq);

	return show_value(&background_row, READ_ONCE(sd->io.background_weight),
			  page);
}

static ssize_t background_weight_store(struct elevator_queue *eq,
				       const char *page, size_t count)
{
	struct stream_data *sd = stream_data_of(eq);
	u64 percent;

	if (read_value(sd, &background_row, page, count, &percent))
		return -EINVAL;
	WRITE_ONCE(sd->io.background_weight, percent);
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
	curve = kmalloc_obj(*curve, GFP_NOIO);
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
		ret = stream_restart(sd, false, why, sizeof(why));
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

/* The host's own; stream_settings_init() adds those of the core's rows. */
#define STREAM_FILES 48
struct elv_fs_entry stream_attrs[STREAM_FILES] __ro_after_init = {
	__ATTR(prio_aging_expire, 0644, prio_aging_expire_show,
	       prio_aging_expire_store),
	__ATTR(background_weight, 0644, background_weight_show,
	       background_weight_store),
	__ATTR(cgroup_weights, 0644, cgroup_weights_show, cgroup_weights_store),
	__ATTR(service_curve, 0644, service_curve_show, service_curve_store),
};

static int __init add_file(const struct elv_fs_entry *entry, const char *name,
			   umode_t mode)
{
	struct elv_fs_entry *file = stream_attrs;

	while (file->attr.name)
		file++;
	/* The last one is without a name: the block layer stops there. */
	if (WARN(file == &stream_attrs[STREAM_FILES - 1],
		 "stream: no room for the file %s\n", name))
		return -ENOSPC;
	*file = *entry;
	file->attr.name = name;
	file->attr.mode = mode;
	return 0;
}

/* Several policies may have it: it is one file. */
static int __init add_setting(const struct ss_tunable *row)
{
	u32 i;

	for (i = 0; i < nr_settings; i++)
		if (!strcmp(setting_row[i]->name, row->name))
			return 0;
	if (WARN(nr_settings == STREAM_SETTINGS, "stream: no number for %s\n",
		 row->name))
		return -ENOSPC;
	setting_row[nr_settings] = row;
	return add_file(&setting_entry[nr_settings++], row->name, 0644);
}

#ifndef SS_MAINLINE

/* ---- the inner policy, and what is no more ---- */

static ssize_t inner_show(struct elevator_queue *eq, char *page)
{
	struct stream_data *sd = stream_data_of(eq);
	const char *inner = inner_of(sd);
	int at = 0;
	u32 p;

	/* As the block layer shows its schedulers: the one in use in []. */
	for (p = 0; p < ss_nr_policies; p++) {
		const char *name = ss_policies[p]->name;
		bool used = !strcmp(name, inner);

		if (!(ss_policies[p]->flags & SS_WORK_CONSERVING) ||
		    is_foreign(ss_policies[p]))
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
	char word[32], before[32], why[160];
	int ret;
	u32 p;

	if (copy_word(word, sizeof(word), page, count))
		word[0] = 0;
	for (p = 0; p < ss_nr_policies; p++)
		if (!strcmp(word, ss_policies[p]->name) &&
		    (ss_policies[p]->flags & SS_WORK_CONSERVING) &&
		    !is_foreign(ss_policies[p]))
			break;
	if (p == ss_nr_policies) {
		refuse(sd, "inner",
		       "what was written is no work-conserving policy; reading the file lists them");
		return -EINVAL;
	}
	strscpy(before, inner_of(sd), sizeof(before));
	set_inner(sd, word);
	ret = stream_restart(sd, sd->plain, why, sizeof(why));
	if (ret) {
		set_inner(sd, before);
		refuse(sd, "inner", "%s", why);
		return ret;
	}
	iosched_kick(&sd->io);
	return count;
}

/*
 * Settings of former versions, so that a udev rule which sets one is told what
 * replaces it. They cannot be read.
 */
#define REPLACED(X) FIRST_8(X)

static ssize_t refuse_replaced(struct elevator_queue *eq, int n)
{
	const struct ss_replaced *old = &ss_stream_ops.replaced[n];

	refuse(stream_data_of(eq), old->name, "is gone: %s", old->by);
	return -EINVAL;
}

#define REPLACED_FUNCTION(n)                                                   \
	static ssize_t replaced_##n##_store(struct elevator_queue *eq,         \
					    const char *page, size_t count)    \
	{                                                                      \
		return refuse_replaced(eq, n);                                 \
	}
REPLACED(REPLACED_FUNCTION)

#define REPLACED_ENTRY(n) { .store = replaced_##n##_store },
static const struct elv_fs_entry replaced_entry[] = {
	REPLACED(REPLACED_ENTRY)
};

static int __init add_others(const struct ss_policy_ops *ops)
{
	static const struct elv_fs_entry inner = { .show = inner_show,
						   .store = inner_store };
	int ret = add_file(&inner, "inner", 0644);
	int i;

	for (i = 0; !ret && ops->replaced && ops->replaced[i].name; i++) {
		if (WARN_ON(i == ARRAY_SIZE(replaced_entry)))
			return -ENOSPC;
		ret = add_file(&replaced_entry[i], ops->replaced[i].name, 0200);
	}
	return ret;
}

#endif

int __init stream_settings_init(void)
{
	int ret = 0;
	u32 p, t;

	BUILD_BUG_ON(ARRAY_SIZE(setting_entry) != STREAM_SETTINGS);
	for (p = 0; p < ss_nr_policies; p++) {
		const struct ss_policy_ops *ops = ss_policies[p];

		if (is_foreign(ops))
			continue;
		for (t = 0; !ret && t < ops->nr_tunables; t++)
			ret = add_setting(&ops->tunables[t]);
	}
	if (!ret)
		ret = add_others(&ss_stream_ops);
	return ret;
}
