// SPDX-License-Identifier: GPL-2.0-only
/* The values of tunables as text, read and written alike by every host. */
#include "tunable.h"

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

#include "say.h"

#define MAX_UNIT_BYTES 8

/* Of a time the largest that divides it is shown, else the first. */
static const struct {
	enum ss_unit unit;
	const char *name;
	u32 factor;
} units[] = {
	{ SS_UNIT_NS, "ns", 1 },
	{ SS_UNIT_NS, "us", SS_USEC },
	{ SS_UNIT_NS, "ms", SS_MSEC },
	{ SS_UNIT_NS, "s", SS_SEC },
	{ SS_UNIT_PERCENT, "%", 1 },
	{ SS_UNIT_SECTORS, "sectors", 1 },
	{ SS_UNIT_SECTORS, "sector", 1 },
	{ SS_UNIT_SECTORS, "k", 1 << 1 },
	{ SS_UNIT_SECTORS, "kib", 1 << 1 },
	{ SS_UNIT_SECTORS, "m", 1 << 11 },
	{ SS_UNIT_SECTORS, "mib", 1 << 11 },
	{ SS_UNIT_SECTORS, "g", 1 << 21 },
	{ SS_UNIT_SECTORS, "gib", 1 << 21 },
};

/* The units that somebody who wrote none may have meant, likeliest first. */
static const char *const guesses[] = { "ms", "s",	"us", "ns",
				       "%",  "sectors", "k" };

static const struct {
	const char *name;
	bool value;
} words[] = {
	{ "on", true },	 { "off", false }, { "1", true },    { "0", false },
	{ "yes", true }, { "no", false },  { "true", true }, { "false", false },
};

/* Of each unit what its values are, and what they are written with. */
static const struct {
	const char *what;
	const char *units;
} said[] = {
	[SS_UNIT_NONE] = { "a whole number", "" },
	[SS_UNIT_NS] = { "a time", "ns, us, ms or s" },
	[SS_UNIT_PERCENT] = { "a percentage", "%" },
	[SS_UNIT_SECTORS] = { "a length", "sectors, or bytes with k, m or g" },
	[SS_UNIT_BOOL] = { "on or off", "" },
};

void ss_tunable_show(const struct ss_tunable *row, u64 value, char *text,
		     size_t text_bytes)
{
	const char *unit = "";
	u64 shown = value, amount, rest;
	u32 i;

	text[0] = 0;
	if (row->unit == SS_UNIT_BOOL) {
		ss_say(text, text_bytes, value ? "on" : "off");
		return;
	}
	for (i = 0; i < ARRAY_SIZE(units); i++) {
		if (units[i].unit != row->unit ||
		    (*unit && (row->unit != SS_UNIT_NS || !value)))
			continue;
		amount = div64_u64_rem(value, units[i].factor, &rest);
		if (rest)
			continue;
		shown = amount;
		unit = units[i].name;
	}
	ss_say_number(text, text_bytes, shown);
	ss_say(text, text_bytes, unit);
}

/* A decimal number: @digits of which @places stand behind the point. */
struct number {
	u64 digits;
	u32 places;
	bool too_large;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char small(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static void add_digit(struct number *number, char c)
{
	u64 digit = (u64)(c - '0');

	if (number->digits > div_u64(U64_MAX - digit, 10))
		number->too_large = true;
	else
		number->digits = number->digits * 10 + digit;
}

/* Whether there is one at *@text, which becomes what follows it. */
static bool read_number(const char **text, struct number *number)
{
	const char *at = *text;
	u32 zeros = 0;

	*number = (struct number){ 0 };
	if (!is_digit(*at))
		return false;
	for (; is_digit(*at); at++)
		add_digit(number, *at);
	if (*at == '.') {
		if (!is_digit(*++at))
			return false;
		for (; is_digit(*at); at++) {
			/* Zeros at the end say nothing. */
			if (*at == '0') {
				zeros++;
				continue;
			}
			for (; zeros; zeros--, number->places++)
				add_digit(number, '0');
			add_digit(number, *at);
			number->places++;
		}
	}
	*text = at;
	return true;
}

/* @number times @factor; false: it is not whole. */
static bool whole(struct number *number, u32 factor, u64 *value)
{
	u64 power = 1, rest;
	u32 i;

	if (number->too_large)
		return true;
	if (number->places > 18)
		return false;
	/* What is left of ten to the power of places over @factor. */
	for (i = 0; i < number->places; i++) {
		u32 left = 10;

		if (factor % 2 == 0) {
			factor /= 2;
			left /= 2;
		}
		if (factor % 5 == 0) {
			factor /= 5;
			left /= 5;
		}
		power *= left;
	}
	*value = div64_u64_rem(number->digits, power, &rest);
	if (rest)
		return false;
	number->too_large = *value > div_u64(U64_MAX, factor);
	*value *= factor;
	return true;
}

static void say_value(const struct ss_tunable *row, u64 value, char *why,
		      size_t why_bytes)
{
	char shown[32];

	ss_tunable_show(row, value, shown, sizeof(shown));
	ss_say(why, why_bytes, shown);
}

/* "... write a time such as 500ms" */
static int refuse(const struct ss_tunable *row, const char *problem, char *why,
		  size_t why_bytes)
{
	ss_say(why, why_bytes, problem);
	ss_say(why, why_bytes, "; write ");
	ss_say(why, why_bytes, said[row->unit].what);
	if (row->unit == SS_UNIT_BOOL)
		return -EINVAL;
	ss_say(why, why_bytes, " such as ");
	say_value(row, row->initial, why, why_bytes);
	return -EINVAL;
}

/* @text has no unit; which one makes a value of it that could be meant? */
static int refuse_bare(const struct ss_tunable *row, const char *text,
		       struct number *number, char *why, size_t why_bytes)
{
	u64 value;
	u32 g, i;

	for (g = 0; g < ARRAY_SIZE(guesses); g++)
		for (i = 0; i < ARRAY_SIZE(units); i++) {
			if (units[i].unit != row->unit ||
			    strcmp(units[i].name, guesses[g]) ||
			    number->too_large ||
			    !whole(number, units[i].factor, &value) ||
			    number->too_large || value < row->min ||
			    value > row->max)
				continue;
			ss_say(why, why_bytes, "has no unit; write ");
			ss_say(why, why_bytes, said[row->unit].what);
			ss_say(why, why_bytes, " such as ");
			ss_say(why, why_bytes, text);
			ss_say(why, why_bytes, units[i].name);
			return -EINVAL;
		}
	return refuse(row, "has no unit", why, why_bytes);
}

/* The word at @text without blanks around it, in small letters. */
static bool read_word(const char *text, char *word, size_t word_bytes)
{
	size_t used = 0;

	while (*text == ' ')
		text++;
	for (; *text && used + 1 < word_bytes; text++)
		word[used++] = small(*text);
	while (used && word[used - 1] == ' ')
		used--;
	word[used] = 0;
	return !*text;
}

static int read_bool(const struct ss_tunable *row, const char *text, u64 *value,
		     char *why, size_t why_bytes)
{
	char word[MAX_UNIT_BYTES];
	u32 i;

	if (read_word(text, word, sizeof(word)))
		for (i = 0; i < ARRAY_SIZE(words); i++)
			if (!strcmp(word, words[i].name)) {
				*value = words[i].value;
				return 0;
			}
	return refuse(row, "is neither on nor off", why, why_bytes);
}

int ss_tunable_parse(const struct ss_tunable *row, const char *text, u64 *value,
		     char *why, size_t why_bytes)
{
	bool bare = row->unit == SS_UNIT_NONE;
	char unit[MAX_UNIT_BYTES];
	struct number number;
	const char *at = text;
	u32 i, factor = 1;

	why[0] = 0;
	if (row->unit == SS_UNIT_BOOL)
		return read_bool(row, text, value, why, why_bytes);
	while (*at == ' ')
		at++;
	text = at;
	if (!read_number(&at, &number))
		return refuse(row, "is no value", why, why_bytes);
	if (!read_word(at, unit, sizeof(unit)))
		unit[0] = '?'; /* it is longer than any */
	if (!*unit && !bare && number.digits)
		return refuse_bare(row, text, &number, why, why_bytes);
	if (*unit && bare)
		return refuse(row, "is no plain count, which has no unit", why,
			      why_bytes);
	for (i = 0; *unit && i < ARRAY_SIZE(units); i++)
		if (units[i].unit == row->unit &&
		    !strcmp(unit, units[i].name)) {
			factor = units[i].factor;
			break;
		}
	if (*unit && i == ARRAY_SIZE(units)) {
		ss_say(why, why_bytes, "is not in a unit of ");
		ss_say(why, why_bytes, said[row->unit].what);
		ss_say(why, why_bytes, "; write ");
		ss_say(why, why_bytes, said[row->unit].units);
		return -EINVAL;
	}
	if (!whole(&number, factor, value))
		return refuse(row, "is a fraction of the smallest unit", why,
			      why_bytes);
	if (*value >= row->min && *value <= row->max && !number.too_large)
		return 0;
	ss_say(why, why_bytes, "must be within ");
	say_value(row, row->min, why, why_bytes);
	ss_say(why, why_bytes, " to ");
	say_value(row, row->max, why, why_bytes);
	return -EINVAL;
}
