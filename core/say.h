/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sentences for people, put together in a buffer of the host's. What does not
 * fit is cut off; the buffer always ends with a zero.
 */
#ifndef SS_SAY_H
#define SS_SAY_H

#include <linux/string.h>
#include <linux/types.h>

/* Append to the sentence in @why. */
static inline void ss_say(char *why, size_t why_bytes, const char *text)
{
	size_t used = strlen(why);

	while (*text && used + 1 < why_bytes)
		why[used++] = *text++;
	why[used] = 0;
}

static inline void ss_say_number(char *why, size_t why_bytes, u64 number)
{
	char digits[24];
	u32 i = sizeof(digits) - 1;

	digits[i] = 0;
	do {
		digits[--i] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	ss_say(why, why_bytes, digits + i);
}

/* The sentence is @before, @number and @after. */
static inline void ss_say_all(char *why, size_t why_bytes, const char *before,
			      u64 number, const char *after)
{
	why[0] = 0;
	ss_say(why, why_bytes, before);
	ss_say_number(why, why_bytes, number);
	ss_say(why, why_bytes, after);
}

#endif
