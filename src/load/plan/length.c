/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/length.h"

#include <math.h>
#include "core/text/text.h"
#include "core/text/units.h"

enum { NUMBERS_MOST = 4 };

static const struct {
	const char *word;
	enum load_length kind;
	size_t least, most; /* numbers */
} forms[] = {
	{"uniform", LOAD_UNIFORM, 2, 2}, {"normal", LOAD_NORMAL, 2, 4}, {"lognormal", LOAD_LOGNORMAL, 2, 4}};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

/* The count of the numbers between commas; 0: one of them is none, or there are too many. */
static size_t numbers_of(double out[NUMBERS_MOST], const char *text)
{
	size_t count = 0;

	for (;;) {
		size_t size = strcspn(text, ",");
		char one[64];

		if (count == NUMBERS_MOST || size >= sizeof(one))
			return 0;
		memcpy(one, text, size);
		one[size] = 0;
		if (units_parse(&out[count++], one, "", NULL))
			return 0;
		if (!text[size])
			return count;
		text += size + 1;
	}
}

static uint32_t tokens_of(double value)
{
	return value >= 1 && value <= LOAD_TOKENS_MOST && value == floor(value) ? (uint32_t)value : 0;
}

static bool take(struct load_length_spec *out, enum load_length kind, const double *number, size_t count)
{
	*out = (struct load_length_spec){.kind = kind, .mean = number[0], .min = 1, .max = LOAD_TOKENS_MOST};
	if (kind == LOAD_FIXED)
		return tokens_of(number[0]) != 0;
	out->spread = number[1];
	if (kind == LOAD_UNIFORM) {
		out->min = tokens_of(number[0]);
		out->max = tokens_of(number[1]);
		out->mean = (number[0] + number[1]) / 2;
		out->spread = (number[1] - number[0]) / 2;
	}
	if (count > 2)
		out->min = tokens_of(number[2]);
	if (count > 3)
		out->max = tokens_of(number[3]);
	return load_length_check(out, "", NULL) == STATUS_OK;
}

enum status load_length_read(struct load_length_spec *out, const char *text, struct error *err)
{
	double number[NUMBERS_MOST];
	size_t word = strcspn(text, ":"), count;

	if (!text[word] && numbers_of(number, text) == 1 && take(out, LOAD_FIXED, number, 1))
		return STATUS_OK;
	for (size_t i = 0; text[word] && i < FORMS; i++) {
		if (strlen(forms[i].word) != word || memcmp(text, forms[i].word, word) != 0)
			continue;
		count = numbers_of(number, text + word + 1);
		if (count >= forms[i].least && count <= forms[i].most &&
		    take(out, forms[i].kind, number, count))
			return STATUS_OK;
	}
	return error_set(err, STATUS_BAD_INPUT,
			 "\"%.60s\" is not a length in tokens; examples: 1000, uniform:500,1500, "
			 "normal:1000,200, lognormal:1000,300,1,4000 (mean, spread, least, most)",
			 text);
}

enum status load_length_check(const struct load_length_spec *s, const char *what, struct error *err)
{
	bool good = s->mean >= 1 && s->mean <= LOAD_TOKENS_MOST && s->spread >= 0 &&
		    s->spread <= LOAD_TOKENS_MOST && s->min >= 1 && s->min <= s->max &&
		    s->max <= LOAD_TOKENS_MOST;

	return good ? STATUS_OK
		    : error_set(err, STATUS_BAD_INPUT,
				"%s: lengths are from 1 to %d tokens, and the least is not above the most",
				what, LOAD_TOKENS_MOST);
}

static double unclamped(const struct load_length_spec *s, struct draw *d)
{
	double variance;

	switch (s->kind) {
	case LOAD_UNIFORM:
		return s->min + floor(draw_uniform(d) * ((double)s->max - s->min + 1));
	case LOAD_NORMAL:
		return s->mean + s->spread * draw_normal(d);
	case LOAD_LOGNORMAL: /* variance of the logarithm, from mean and deviation of the length */
		variance = log1p(s->spread * s->spread / (s->mean * s->mean));
		return s->mean * exp(sqrt(variance) * draw_normal(d) - variance / 2);
	default:
		return s->mean;
	}
}

uint32_t load_length_draw(const struct load_length_spec *s, struct draw *d)
{
	double value = floor(unclamped(s, d) + 0.5);

	if (value < s->min)
		return s->min;
	return value > s->max ? s->max : (uint32_t)value;
}
