/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text/units.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>

__extension__ typedef unsigned __int128 u128;

struct suffix {
	const char *text;
	uint64_t factor; /* in the dimension's smallest unit, so that the ratio of two units is exact */
};

static const struct suffix bytes[] = {
	{"B", 1},
	{"kB", 1000},
	{"MB", 1000000},
	{"GB", 1000000000},
	{"TB", 1000000000000},
	{"KiB", 1ull << 10},
	{"MiB", 1ull << 20},
	{"GiB", 1ull << 30},
	{"TiB", 1ull << 40},
	{"K", 1ull << 10},
	{"M", 1ull << 20},
	{"G", 1ull << 30},
	{"T", 1ull << 40},
	{NULL, 0},
};
static const struct suffix seconds[] = {
	{"ns", 1},	   {"us", 1000},	 {"ms", 1000000},
	{"s", 1000000000}, {"min", 60000000000}, {"h", 3600000000000},
	{NULL, 0},
};
static const struct suffix watts[] = {{"mW", 1}, {"W", 1000}, {"kW", 1000000}, {NULL, 0}};
static const struct suffix hertz[] = {
	{"Hz", 1}, {"kHz", 1000}, {"MHz", 1000000}, {"GHz", 1000000000}, {NULL, 0},
};
static const struct suffix *const dimensions[] = {bytes, seconds, watts, hertz};

static const struct suffix *suffix_find(const struct suffix *table, const char *text, size_t size)
{
	for (; table->text; table++)
		if (strlen(table->text) == size && !memcmp(table->text, text, size))
			return table;
	return NULL;
}

/* The table that contains `unit`. NULL for a unit without relatives ("", "C"): only that unit itself may
 * follow a number. */
static const struct suffix *dimension_of(const char *unit)
{
	size_t i;

	for (i = 0; i < sizeof(dimensions) / sizeof(dimensions[0]); i++)
		if (suffix_find(dimensions[i], unit, strlen(unit)))
			return dimensions[i];
	return NULL;
}

/* Length of the decimal number at `s`, for example "12.5e3"; 0 if there is none. Hex, "nan" and "inf" are
 * not accepted. */
static size_t number_size(const char *s)
{
	size_t i = 0, digits = 0, e;

	if (s[i] == '+' || s[i] == '-')
		i++;
	for (; isdigit((unsigned char)s[i]); i++)
		digits++;
	if (s[i] == '.')
		for (i++; isdigit((unsigned char)s[i]); i++)
			digits++;
	if (!digits)
		return 0;
	if (s[i] != 'e' && s[i] != 'E')
		return i;
	e = i + 1;
	if (s[e] == '+' || s[e] == '-')
		e++;
	if (!isdigit((unsigned char)s[e]))
		return i;
	while (isdigit((unsigned char)s[e]))
		e++;
	return e;
}

static enum status refuse_unit(const struct suffix *table, const char *text, const char *unit,
			       struct error *err)
{
	char known[128] = "";
	size_t used = 0;

	for (; table && table->text; table++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, " %s", table->text);
	if (used)
		return error_set(err, STATUS_BAD_INPUT, "\"%.80s\" does not end in one of the units%s", text,
				 known);
	if (unit[0])
		return error_set(err, STATUS_BAD_INPUT, "\"%.80s\" is not a number of %s", text, unit);
	return error_set(err, STATUS_BAD_INPUT, "\"%.80s\" is not a plain number", text);
}

/* Finds the length of the number in `text` and the ratio of its unit to `unit`. */
static enum status split(const char *text, const char *unit, size_t *size, uint64_t *multiply,
			 uint64_t *divide, struct error *err)
{
	const struct suffix *table = dimension_of(unit), *found;
	const char *rest;

	*multiply = *divide = 1;
	*size = number_size(text);
	if (!*size)
		return error_set(err, STATUS_BAD_INPUT, "\"%.80s\" is not a finite decimal number", text);
	rest = text + *size;
	if (*rest == ' ')
		rest++;
	if (!*rest)
		return text[*size] ? refuse_unit(table, text, unit, err) : STATUS_OK;
	if (!table)
		return unit[0] && !strcmp(rest, unit) ? STATUS_OK : refuse_unit(table, text, unit, err);
	found = suffix_find(table, rest, strlen(rest));
	if (!found)
		return refuse_unit(table, text, unit, err);
	*multiply = found->factor;
	*divide = suffix_find(table, unit, strlen(unit))->factor;
	return STATUS_OK;
}

enum status units_parse(double *out, const char *text, const char *unit, struct error *err)
{
	uint64_t multiply, divide;
	enum status st;
	double value;
	size_t size;

	st = split(text, unit ? unit : "", &size, &multiply, &divide, err);
	if (st)
		return st;
	/* The decimal point is always '.': main sets only LC_CTYPE. strtod stops where number_size did. */
	value = strtod(text, NULL);
	if (multiply != divide)
		value = value * (double)multiply / (double)divide;
	if (!isfinite(value))
		return error_set(err, STATUS_BAD_INPUT, "\"%.80s\" is too large", text);
	*out = value;
	return STATUS_OK;
}

/* Converts a decimal to mantissa * 10^exponent without trailing zeros. False if it has a sign or needs
 * more than 19 digits. */
static bool decimal(const char *s, size_t size, uint64_t *mantissa, long *exponent)
{
	long zeros = 0, scale = 0;
	bool point = false;
	size_t i;
	int k;

	*mantissa = 0;
	for (i = s[0] == '+'; i < size && s[i] != 'e' && s[i] != 'E'; i++) {
		if (s[i] == '.') {
			point = true;
			continue;
		}
		scale -= point;
		if (s[i] == '0') {
			zeros++;
			continue;
		}
		for (k = 0; *mantissa && k <= zeros; k++)
			if (__builtin_mul_overflow(*mantissa, 10u, mantissa))
				return false;
		zeros = 0;
		if (__builtin_add_overflow(*mantissa, (uint64_t)(s[i] - '0'), mantissa))
			return false;
	}
	*exponent = scale + zeros;
	if (i < size && __builtin_add_overflow(*exponent, strtol(s + i + 1, NULL, 10), exponent))
		return false; /* strtol saturates here: far out of range */
	return true;
}

static enum status refuse_integer(const char *text, const char *why, struct error *err)
{
	return error_set(err, STATUS_BAD_INPUT, "\"%.80s\" %s", text, why);
}

enum status units_parse_u64(uint64_t *out, const char *text, const char *unit, struct error *err)
{
	uint64_t multiply, divide, mantissa;
	u128 top, bottom;
	enum status st;
	long exponent;
	size_t size;

	st = split(text, unit ? unit : "", &size, &multiply, &divide, err);
	if (st)
		return st;
	if (text[0] == '-')
		return refuse_integer(text, "is negative", err);
	if (!decimal(text, size, &mantissa, &exponent))
		return refuse_integer(text, "has more digits than a 64-bit number", err);
	if (!mantissa) {
		*out = 0;
		return STATUS_OK;
	}
	if (exponent > 19)
		return refuse_integer(text, "is too large", err);
	if (exponent < -19)
		return refuse_integer(text, "is not a whole number", err);
	top = (u128)mantissa * multiply; /* below 2^64 * 2^42 */
	bottom = divide;
	for (; exponent < 0; exponent++)
		bottom *= 10; /* below 2^42 * 2^64 */
	for (; exponent > 0; exponent--)
		if (__builtin_mul_overflow(top, (u128)10, &top))
			return refuse_integer(text, "is too large", err);
	if (top % bottom)
		return refuse_integer(text, "is not a whole number", err);
	if (top / bottom > UINT64_MAX)
		return refuse_integer(text, "is too large", err);
	*out = (uint64_t)(top / bottom);
	return STATUS_OK;
}

struct shown {
	const char *unit, *base; /* base: unit printed after the prefix */
	double scale;		 /* value * scale is in `base` */
	int low, high;		 /* powers of 1000 that are usual for this unit */
};

static const struct shown shown_rows[] = {
	{"B", "B", 1, 0, 5},	       {"B/s", "B/s", 1, 0, 5},	    {"FLOP", "FLOP", 1, 0, 7},
	{"FLOP/s", "FLOP/s", 1, 0, 6}, {"FLOPS", "FLOPS", 1, 0, 6}, {"OP/s", "OP/s", 1, 0, 6},
	{"Hz", "Hz", 1, 0, 3},	       {"W", "W", 1, -1, 2},	    {"mW", "W", 1e-3, -1, 2},
	{"J", "J", 1, -2, 3},	       {"mJ", "J", 1e-3, -2, 3},    {"s", "s", 1, -3, 0},
	{"ms", "s", 1e-3, -3, 0},      {"us", "s", 1e-6, -3, 0},    {"ns", "s", 1e-9, -3, 0},
	{"1/s", "/s", 1, 0, 4},
};

/* Power of ten of the value after rounding to three digits: 999.7 gives 3. */
static int exponent_of(double value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%.2e", value);
	return (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
}

void units_format(char *out, size_t size, double value, const char *unit)
{
	static const char *const prefixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Z"};
	const struct shown *row = NULL;
	int exponent, power, decimals;
	size_t i;

	for (i = 0; i < sizeof(shown_rows) / sizeof(shown_rows[0]); i++)
		if (unit && !strcmp(shown_rows[i].unit, unit))
			row = &shown_rows[i];
	if (!isfinite(value)) {
		snprintf(out, size, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
		return;
	}
	if (!row) {
		snprintf(out, size, fabs(value) < 1e15 && floor(value) == value ? "%.0f%s%s" : "%.3g%s%s",
			 value, unit && unit[0] ? " " : "", unit ? unit : "");
		return;
	}
	value *= row->scale;
	exponent = value == 0 ? 0 : exponent_of(value);
	power = (exponent - (exponent < 0 ? 2 : 0)) / 3; /* floor */
	if (value == 0)
		power = 0;
	power = power < row->low ? row->low : power > row->high ? row->high : power;
	decimals = 2 - (exponent - 3 * power);
	decimals = value == 0 || decimals < 0 ? 0 : decimals > 6 ? 6 : decimals;
	snprintf(out, size, "%.*f %s%s", decimals, value / pow(1000, power), prefixes[power + 3], row->base);
}

void units_format_clock(char *out, size_t size, double time_s)
{
	const unsigned long s = time_s > 0 ? (unsigned long)(time_s + 0.5) : 0;

	if (s >= 3600)
		snprintf(out, size, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(out, size, "%lu:%02lu", s / 60, s % 60);
}
