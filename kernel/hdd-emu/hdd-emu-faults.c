// SPDX-License-Identifier: GPL-2.0-only
/* Ranges of sectors that fail or are slow: read from text, shown, looked up. */
#include "hdd-emu.h"

#include <linux/kernel.h>
#include <linux/string.h>

/* An hour: more is a mistake in the unit. */
#define MAX_DELAY_NS (3600ULL * NSEC_PER_SEC)

#define MAX_SECTORS (1ULL << 48)

static const char *const kinds[] = {
	[HDD_EMU_EIO] = "EIO",
	[HDD_EMU_TIMEOUT] = "timeout",
	[HDD_EMU_BUSY] = "busy",
};

static int parse_direction(struct hdd_emu_fault *fault, const char *word)
{
	fault->read = !strcmp(word, "read") || !strcmp(word, "both");
	fault->write = !strcmp(word, "write") || !strcmp(word, "both");
	return fault->read || fault->write ? 0 : -EINVAL;
}

static int parse_kind(struct hdd_emu_fault *fault, const char *word,
		      bool delays)
{
	int kind;

	if (delays) {
		fault->kind = HDD_EMU_DELAY;
		if (kstrtoull(word, 10, &fault->delay_ns))
			return -EINVAL;
		return fault->delay_ns <= MAX_DELAY_NS ? 0 : -EINVAL;
	}
	kind = match_string(kinds, ARRAY_SIZE(kinds), word);
	if (kind < 0)
		return -EINVAL;
	fault->kind = kind;
	return 0;
}

static int parse_line(struct hdd_emu_fault *fault, char *line, bool delays,
		      const char **why)
{
	char *word[4], *next;
	u32 nr = 0;

	while ((next = strsep(&line, " \t")) != NULL) {
		if (!*next)
			continue;
		if (nr == ARRAY_SIZE(word)) {
			nr++;
			break;
		}
		word[nr++] = next;
	}
	*why = delays ? "must be START LENGTH read|write|both NANOSECONDS" :
			"must be START LENGTH read|write|both EIO|timeout|busy";
	if (nr != ARRAY_SIZE(word))
		return -EINVAL;
	*why = "the first sector must be a number below 2^48";
	if (kstrtoull(word[0], 10, &fault->sector) ||
	    fault->sector >= MAX_SECTORS)
		return -EINVAL;
	*why = "the number of sectors must be from 1 to 2^48";
	if (kstrtoull(word[1], 10, &fault->nr_sectors) || !fault->nr_sectors ||
	    fault->nr_sectors > MAX_SECTORS)
		return -EINVAL;
	*why = "the third word must be read, write or both";
	if (parse_direction(fault, word[2]))
		return -EINVAL;
	*why = delays ? "the delay must be from 0 to 3600000000000 ns" :
			"the last word must be EIO, timeout or busy";
	return parse_kind(fault, word[3], delays);
}

int hdd_emu_faults_parse(struct hdd_emu_faults *faults, char *text, bool delays,
			 u32 *line, const char **why)
{
	char *next;
	int err;

	faults->nr = 0;
	*line = 0;
	while ((next = strsep(&text, "\n")) != NULL) {
		++*line;
		next = strim(next);
		if (!*next)
			continue;
		*why = "there may be 64 ranges at most";
		if (faults->nr == HDD_EMU_MAX_RANGES)
			return -EINVAL;
		err = parse_line(&faults->row[faults->nr], next, delays, why);
		if (err)
			return err;
		faults->nr++;
	}
	return 0;
}

ssize_t hdd_emu_faults_show(const struct hdd_emu_faults *faults, char *page)
{
	ssize_t at = 0;
	u32 i;

	for (i = 0; i < faults->nr; i++) {
		const struct hdd_emu_fault *fault = &faults->row[i];
		const char *direction = !fault->write ? "read" :
					!fault->read  ? "write" :
							"both";

		at += scnprintf(page + at, PAGE_SIZE - at, "%llu %llu %s ",
				fault->sector, fault->nr_sectors, direction);
		if (fault->kind == HDD_EMU_DELAY)
			at += scnprintf(page + at, PAGE_SIZE - at, "%llu\n",
					fault->delay_ns);
		else
			at += scnprintf(page + at, PAGE_SIZE - at, "%s\n",
					kinds[fault->kind]);
	}
	return at;
}

const struct hdd_emu_fault *hdd_emu_faults_find(
	const struct hdd_emu_faults *faults, u64 sector, u32 nr, bool write)
{
	u32 i;

	for (i = 0; i < faults->nr; i++) {
		const struct hdd_emu_fault *fault = &faults->row[i];

		if ((write ? fault->write : fault->read) &&
		    sector < fault->sector + fault->nr_sectors &&
		    fault->sector < sector + nr)
			return fault;
	}
	return NULL;
}
