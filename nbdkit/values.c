// SPDX-License-Identifier: GPL-2.0-only
/* What parameters may be: sizes, numbers, words, a curve. */
#include "config.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int parse_bytes(const char *key, const char *text, u64 *bytes)
{
	static const char units[] = "kmgtp";
	const char *unit;
	u64 scale = 1, step;
	char *end;

	errno = 0;
	*bytes = strtoull(text, &end, 10);
	unit = end != text && *end ? strchr(units, tolower(*end)) : NULL;
	if (unit) {
		step = end[1] == 'B' ? 1000 : 1024;
		end += end[1] == 'B' ? 2 : 1;
		do
			scale *= step;
		while (unit-- > units);
	}
	if (errno || end == text || *end || !isdigit(*text) ||
	    *bytes > (U64_MAX >> 1) / scale) {
		nbdkit_error(
			"%s=%s: must be a size in bytes, with k, M, G, T or P in powers of 1024 (kB, MB, ...: of 1000), as in %s=64k",
			key, text, key);
		return -1;
	}
	*bytes *= scale;
	return 0;
}

int parse_number(const char *key, const char *text, u32 least, u32 most,
		 u32 *number)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || !isdigit(*text) || value < least ||
	    value > most) {
		nbdkit_error("%s=%s: must be a whole number from %u to %u", key,
			     text, least, most);
		return -1;
	}
	*number = (u32)value;
	return 0;
}

int parse_word(const char *key, const char *text, const char *const words[],
	       int *place)
{
	char all[128] = "";
	int i;

	for (i = 0; words[i]; i++) {
		if (!strcmp(words[i], text)) {
			*place = i;
			return 0;
		}
		if (i)
			strcat(all, words[i + 1] ? ", " : " or ");
		strcat(all, words[i]);
	}
	/* Its name of former versions. */
	if (!strcmp(text, "auto") && !strcmp(words[i - 1], "detect"))
		nbdkit_error("%s=auto: write %s=detect; auto chooses policies",
			     key, key);
	else
		nbdkit_error("%s=%s: must be %s", key, text, all);
	return -1;
}

int parse_bool(const char *key, const char *text, bool *value)
{
	static const char *const words[] = { "no", "yes", NULL };
	int place;

	if (parse_word(key, text, words, &place))
		return -1;
	*value = place;
	return 0;
}

int parse_detect(const char *key, const char *text, int *value)
{
	static const char *const words[] = { "no", "yes", "detect", NULL };

	if (parse_word(key, text, words, value))
		return -1;
	if (*value == 2)
		*value = -1;
	return 0;
}

bool parse_whole(const char **at, u64 *value)
{
	char *end;

	if (!isdigit(**at))
		return false;
	errno = 0;
	*value = strtoull(*at, &end, 10);
	*at = end;
	return !errno;
}

/* "SECTORS:NS SECTORS:NS ...", as the kernel's service_curve; or "learn". */
int parse_curve(const char *text)
{
	struct config *config = &server.config;
	const char *at = text;
	char why[160];
	u32 nr = 0;

	config->nr_curve = 0;
	if (!strcmp(text, "learn"))
		return 0;
	while (nr < SS_CURVE_POINTS) {
		struct ss_curve_point *point = &config->curve[nr];

		if (!parse_whole(&at, &point->distance_sectors) ||
		    *at++ != ':' || !parse_whole(&at, &point->time_ns) ||
		    (*at && *at != ' '))
			break;
		nr++;
		while (*at == ' ')
			at++;
		if (*at)
			continue;
		if (ss_curve_check(config->curve, nr, why, sizeof(why))) {
			nbdkit_error("curve=%s: %s", text, why);
			return -1;
		}
		config->nr_curve = nr;
		return 0;
	}
	nbdkit_error(
		"curve=%s: must be \"learn\" or 1 to %u points DISTANCE_SECTORS:TIME_NS with blanks between",
		text, SS_CURVE_POINTS);
	return -1;
}
