/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include "engine/grammar/automaton/marks.h"
#include "engine/grammar/schema/number_range.h"

enum { MULTIPLES_MOST = 2000, REMAINDERS_MOST = 100, INTEGER_DIGITS = 19, REMAINDER_DIGITS = 18 };

struct decimal decimal_from_integer(int64_t value)
{
	struct decimal d = {.negative = value < 0};
	uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;

	d.whole = magnitude < INTEGER_MOST ? magnitude : INTEGER_MOST;
	return d;
}

/* Moves the digits of "d.ddde[+-]xx" to whole and fraction. */
static bool place_digits(struct decimal *out, const char *digits, int exponent)
{
	size_t used = 0, size = strlen(digits);

	for (int i = exponent < 0 ? exponent : 0; i < (int)size || i <= exponent; i++) {
		char digit = i >= 0 && i < (int)size ? digits[i] : '0';

		if (i <= exponent && i >= 0)
			out->whole = out->whole * 10 + (uint64_t)(digit - '0');
		else if (i > exponent && used < FRACTION_DIGITS)
			out->fraction[used++] = digit;
		else if (i > exponent && digit != '0')
			return false;
	}
	while (used && out->fraction[used - 1] == '0')
		used--;
	out->fraction[used] = '\0';
	return true;
}

bool decimal_from_double(struct decimal *out, double value)
{
	char text[40], digits[24];
	size_t used = 0;
	int exponent;

	*out = (struct decimal){.negative = value < 0};
	if (fabs(value) >= (double)INTEGER_MOST) {
		out->whole = INTEGER_MOST;
		return true;
	}
	if (value == 0)
		return true;
	for (int precision = 14; precision <= 16; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, fabs(value));
		if (strtod(text, NULL) == fabs(value))
			break;
	}
	exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
	for (const char *at = text; *at != 'e'; at++)
		if (*at != '.')
			digits[used++] = *at;
	while (used > 1 && digits[used - 1] == '0')
		used--;
	digits[used] = '\0';
	if (exponent < -FRACTION_DIGITS)
		return false;
	/* A negative exponent needs zeros before the digits: 0.00d.. */
	if (exponent < 0) {
		size_t zeros = (size_t)(-exponent - 1);

		if (zeros + used > FRACTION_DIGITS)
			return false;
		memset(out->fraction, '0', zeros);
		memcpy(out->fraction + zeros, digits, used + 1);
		return true;
	}
	return place_digits(out, digits, exponent);
}

static struct expr *digits(struct builder *b, uint32_t min, uint32_t max)
{
	return expr_repeat(b, expr_range(b, '0', '9', ENCODE_RAW), min, max);
}

static struct expr *pair(struct builder *b, struct expr *first, struct expr *second)
{
	return expr_add(b, expr_add(b, expr_group(b, EXPR_SEQUENCE), first), second);
}

/* Digit strings of one length from low to high. */
static struct expr *same_length(struct builder *b, const char *low, const char *high)
{
	size_t size = strlen(low);
	struct expr *choice;
	char first = low[0], last = high[0];

	if (strspn(low, "0") == size && strspn(high, "9") == size)
		return digits(b, (uint32_t)size, (uint32_t)size);
	if (first == last)
		return pair(b, expr_text(b, low, 1), same_length(b, low + 1, high + 1));
	choice = expr_group(b, EXPR_CHOICE);
	if (strspn(low + 1, "0") != size - 1) {
		expr_add(b, choice,
			 pair(b, expr_text(b, low, 1),
			      same_length(b, low + 1, "9999999999999999999" + INTEGER_DIGITS - (size - 1))));
		first++;
	}
	if (strspn(high + 1, "9") != size - 1) {
		expr_add(b, choice,
			 pair(b, expr_text(b, high, 1),
			      same_length(b, "0000000000000000000" + INTEGER_DIGITS - (size - 1), high + 1)));
		last--;
	}
	if (first <= last)
		expr_add(b, choice,
			 pair(b, expr_range(b, (unsigned char)first, (unsigned char)last, ENCODE_RAW),
			      digits(b, (uint32_t)size - 1, (uint32_t)size - 1)));
	return choice;
}

/* Integers from low to high, at most INTEGER_MOST. NULL: none. */
static struct expr *unsigned_range(struct builder *b, uint64_t low, uint64_t high)
{
	struct expr *choice = expr_group(b, EXPR_CHOICE);
	uint64_t least = 0, most = 9;

	if (low > high)
		return NULL;
	for (unsigned length = 1; length <= INTEGER_DIGITS; length++) {
		uint64_t from = low > least ? low : least, to = high < most ? high : most;
		char first[24], last[24];

		if (from <= to) {
			snprintf(first, sizeof(first), "%" PRIu64, from);
			snprintf(last, sizeof(last), "%" PRIu64, to);
			expr_add(b, choice, same_length(b, first, last));
		}
		least = most + 1;
		most = most * 10 + 9;
	}
	return choice;
}

struct expr *integer_range(struct builder *b, int64_t low, int64_t high)
{
	struct expr *choice = expr_group(b, EXPR_CHOICE), *part;

	if (low > high)
		return NULL;
	if (high >= 0)
		expr_add(b, choice, unsigned_range(b, low > 0 ? (uint64_t)low : 0, (uint64_t)high));
	if (low < 0) {
		part = unsigned_range(b, high < 0 ? (uint64_t)-high : 1, (uint64_t)-low);
		expr_add(b, choice, pair(b, expr_words(b, "-"), part));
	}
	return b->status ? NULL : choice;
}

/* The digits behind a point, between two bounds of which each may be decided already. */
struct fraction {
	struct builder *b;
	const char *low, *high;
	size_t low_size, high_size, most;
	bool low_open, high_open;
};

/* May the text end behind `at` digits, all equal to those of a bound that is still tight? */
static bool may_end(const struct fraction *f, size_t at, bool low, bool high)
{
	return (!low || (at >= f->low_size && !f->low_open)) && (!high || at < f->high_size || !f->high_open);
}

/* One digit or more behind `at` digits. NULL: none fits. */
static struct expr *fraction_digits(const struct fraction *f, size_t at, bool low, bool high)
{
	struct builder *b = f->b;
	struct expr *choice = expr_group(b, EXPR_CHOICE), *rest;
	int l = low && at < f->low_size ? f->low[at] - '0' : 0, h = 9;
	bool any = false;

	if (low && at >= f->low_size && !f->low_open)
		low = false;
	if (high)
		h = at < f->high_size ? f->high[at] - '0' : 0;
	if (at >= f->most || l > h || (high && at >= f->high_size && f->high_open))
		return NULL;
	if (!low && !high)
		return digits(b, 1, (uint32_t)(f->most - at));
	for (int digit = l; digit <= h && !b->status; digit++) {
		bool low_tight = low && digit == l, high_tight = high && digit == h;
		bool end = may_end(f, at + 1, low_tight, high_tight);
		char text = (char)('0' + digit);

		rest = fraction_digits(f, at + 1, low_tight, high_tight);
		if (!rest && !end)
			continue;
		any = true;
		if (rest && end)
			rest = expr_repeat(b, rest, 0, 1);
		expr_add(b, choice, rest ? pair(b, expr_text(b, &text, 1), rest) : expr_text(b, &text, 1));
	}
	return any && !b->status ? choice : NULL;
}

/* A whole part as text, then what may follow it. */
static void add_edge_part(struct builder *b, struct expr *choice, uint64_t whole, const struct fraction *f,
			  bool low, bool high)
{
	struct expr *digits_part = fraction_digits(f, 0, low, high), *tail = NULL;
	bool end = may_end(f, 0, low, high);
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, whole);
	if (digits_part)
		tail = pair(b, expr_words(b, "."), digits_part);
	if (tail && end)
		tail = expr_repeat(b, tail, 0, 1);
	if (tail)
		expr_add(b, choice, pair(b, expr_words(b, text), tail));
	else if (end)
		expr_add(b, choice, expr_words(b, text));
}

static size_t count_digits(uint64_t n)
{
	size_t count = 1;

	while (n /= 10)
		count++;
	return count;
}

/* At an open bound, texts of at most 15 significant digits stay apart from it when they become doubles. */
static size_t digits_allowed(bool open, uint64_t whole)
{
	size_t used = count_digits(whole);

	if (!open)
		return FRACTION_DIGITS;
	return used < 14 ? 15 - used : 1;
}

/* Magnitudes from low to high. */
static struct expr *magnitudes(struct builder *b, const struct decimal *low, const struct decimal *high)
{
	struct expr *choice = expr_group(b, EXPR_CHOICE), *between;
	struct fraction f = {.b = b,
			     .low = low->fraction,
			     .high = high->fraction,
			     .low_size = strlen(low->fraction),
			     .high_size = strlen(high->fraction),
			     .low_open = low->open,
			     .high_open = high->open};

	if (low->whole > high->whole)
		return NULL;
	f.most = digits_allowed(low->open || (low->whole == high->whole && high->open), low->whole);
	add_edge_part(b, choice, low->whole, &f, true, low->whole == high->whole);
	if (low->whole < high->whole) {
		f.most = digits_allowed(high->open, high->whole);
		add_edge_part(b, choice, high->whole, &f, false, true);
		between = high->whole - low->whole > 1 ? unsigned_range(b, low->whole + 1, high->whole - 1)
						       : NULL;
		if (between)
			expr_add(b, choice,
				 pair(b, between,
				      expr_repeat(b,
						  pair(b, expr_words(b, "."), digits(b, 1, FRACTION_DIGITS)),
						  0, 1)));
	}
	return choice && choice->first && !b->status ? choice : NULL;
}

static bool is_zero(const struct decimal *d)
{
	return !d->whole && !d->fraction[0];
}

struct expr *decimal_range(struct builder *b, const struct decimal *low, const struct decimal *high)
{
	struct expr *choice = expr_group(b, EXPR_CHOICE), *part;
	struct decimal least = low ? *low : (struct decimal){.negative = true, .whole = INTEGER_MOST};
	struct decimal most = high ? *high : (struct decimal){.whole = INTEGER_MOST};
	struct decimal zero = {0};

	least.negative &= !is_zero(&least);
	most.negative &= !is_zero(&most);
	if (!most.negative) {
		part = magnitudes(b, least.negative ? &zero : &least, &most);
		if (part)
			expr_add(b, choice, part);
	}
	if (least.negative) {
		zero.open = is_zero(&most) && most.open;
		part = magnitudes(b, most.negative ? &most : &zero, &least);
		if (part)
			expr_add(b, choice, pair(b, expr_words(b, "-"), part));
	}
	return choice && choice->first && !b->status ? choice : NULL;
}

static struct expr *listed_multiples(struct builder *b, int64_t step, int64_t low, int64_t high)
{
	struct expr *choice = expr_group(b, EXPR_CHOICE);
	char text[24];

	for (int64_t i = low; i <= high && !b->status; i++) {
		snprintf(text, sizeof(text), "%" PRId64, i * step);
		expr_add(b, choice, expr_words(b, text));
	}
	return b->status ? NULL : choice;
}

/* Digits of a number of at most 18 digits, with a node per remainder and number of digits. */
static struct expr *remainders(struct builder *b, uint32_t step, bool sign)
{
	uint32_t rule = build_rule(b), end = build_node(b), start = rule_start(b, rule), minus = start;
	uint32_t level[REMAINDERS_MOST], next[REMAINDERS_MOST];

	if (b->status)
		return NULL;
	build_end(b, end);
	build_byte(b, start, '0', '0', end);
	if (sign) {
		minus = build_node(b);
		build_byte(b, start, '-', '-', minus);
	}
	for (uint32_t r = 0; r < step; r++)
		level[r] = build_node(b);
	for (unsigned digit = 1; digit < 10; digit++) {
		build_byte(b, start, '0' + digit, '0' + digit, level[digit % step]);
		if (sign)
			build_byte(b, minus, '0' + digit, '0' + digit, level[digit % step]);
	}
	for (unsigned place = 1; place <= REMAINDER_DIGITS && !b->status; place++) {
		build_empty(b, level[0], end);
		for (uint32_t r = 0; r < step && place < REMAINDER_DIGITS; r++)
			next[r] = build_node(b);
		for (uint32_t r = 0; r < step && place < REMAINDER_DIGITS; r++)
			for (unsigned digit = 0; digit < 10; digit++)
				build_byte(b, level[r], '0' + digit, '0' + digit,
					   next[(r * 10 + digit) % step]);
		if (place < REMAINDER_DIGITS)
			memcpy(level, next, step * sizeof(level[0]));
	}
	return expr_rule(b, rule);
}

static int64_t divide_down(int64_t a, int64_t step)
{
	return a / step - (a % step < 0);
}

struct expr *multiple_range(struct builder *b, int64_t step, int64_t low, int64_t high, bool *too_many)
{
	int64_t first, last;

	*too_many = false;
	if (low > high)
		return NULL;
	first = -divide_down(-low, step);
	last = divide_down(high, step);
	if (first > last)
		return NULL;
	if (last - first < MULTIPLES_MOST)
		return listed_multiples(b, step, first, last);
	if (step <= REMAINDERS_MOST && high == INTEGER_MOST && (low == -INTEGER_MOST || low == 0))
		return remainders(b, (uint32_t)step, low < 0);
	*too_many = true;
	return NULL;
}
