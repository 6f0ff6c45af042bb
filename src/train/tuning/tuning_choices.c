/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuning/tuning_choices.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/json/member.h"

/* 64-bit words as hexadecimal text, because JSON numbers cannot hold them exactly. */
static json_t *words_json(const uint64_t words[MATMUL_ALGORITHM_WORDS])
{
	char text[MATMUL_ALGORITHM_WORDS * 16 + 1];

	for (int i = 0; i < MATMUL_ALGORITHM_WORDS; i++)
		snprintf(text + (size_t)16 * i, 17, "%016" PRIx64, words[i]);
	return json_string(text);
}

static bool words_parse(uint64_t words[MATMUL_ALGORITHM_WORDS], const char *text)
{
	if (!text || strlen(text) != (size_t)MATMUL_ALGORITHM_WORDS * 16 ||
	    strspn(text, "0123456789abcdef") != (size_t)MATMUL_ALGORITHM_WORDS * 16)
		return false;
	for (int i = 0; i < MATMUL_ALGORITHM_WORDS; i++) {
		char word[17];

		snprintf(word, sizeof(word), "%.16s", text + (size_t)16 * i);
		words[i] = strtoull(word, NULL, 16);
	}
	return true;
}

static json_t *product_json(const struct backend *back, size_t i)
{
	struct gpu_choice c;

	if (!gpu_backend_choice(back, i, &c))
		return NULL;
	return json_pack("{s:s, s:s, s:f, s:f, s:b, s:b, s:b, s:o}", "product", c.product, "algorithm",
			 c.algorithm, "seconds", c.seconds, "first_seconds", c.first_seconds, "recalled",
			 c.recalled, "alike", c.alike, "cached", c.cached, "words", words_json(c.words));
}

json_t *tuning_choices_since(const struct backend *back, size_t *emitted)
{
	json_t *list = NULL, *one;

	for (; (one = product_json(back, *emitted)); ++*emitted) {
		list = list ? list : json_array();
		json_array_append_new(list, one);
	}
	return list;
}

json_t *tuning_choices_json(const struct backend *back)
{
	json_t *attention = json_array(), *products;
	struct gpu_attention_choice at;
	size_t emitted = 0;

	products = tuning_choices_since(back, &emitted);
	for (size_t i = 0; gpu_backend_attention_choice(back, i, &at); i++)
		json_array_append_new(attention,
				      json_pack("{s:I, s:I, s:b, s:s, s:b, s:b}", "docs", (json_int_t)at.docs,
						"length", (json_int_t)at.length, "by_own", at.by_own,
						"candidate", at.candidate, "recalled", at.recalled, "cached",
						at.cached));
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "device", gpu_name(gpu_backend_device(back)), "gemm",
			 gpu_backend_gemm(back), "attention_by", gpu_backend_attention(back), "products",
			 products ? products : json_array(), "attention", attention);
}

size_t tuning_choices_kind_size(const char *device)
{
	const char *address = strrchr(device, '(');

	return address ? (size_t)(address - device) : strlen(device);
}

/* Whether the earlier choices are valid here. Adds a line to *note for each change of GPU or library. */
static bool is_same(const struct backend *back, const json_t *before, struct text *note)
{
	const char *device = gpu_name(gpu_backend_device(back)), *was = json_member_text(before, "device");
	const struct {
		const char *key, *now;
	} libraries[] = {{"gemm", gpu_backend_gemm(back)}, {"attention_by", gpu_backend_attention(back)}};
	const size_t size = tuning_choices_kind_size(device);
	bool same = size == tuning_choices_kind_size(was) && !strncmp(device, was, size);

	if (strcmp(device, was))
		text_addf(note, "the run was started on %s and continues on %s%s\n", was, device,
			  same ? "" : ": kernel candidates are timed again");
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		const char *by = json_member_text(before, libraries[i].key);

		if (!strcmp(by, libraries[i].now))
			continue;
		text_addf(note,
			  "the run was started with %s and continues with %s: kernel candidates are timed "
			  "again\n",
			  by, libraries[i].now);
		same = false;
	}
	return same;
}

static size_t parse_products(struct gpu_choice *out, const json_t *list)
{
	const json_t *one;
	size_t i, count = 0;

	json_array_foreach(list, i, one)
	{
		struct gpu_choice *c = &out[count];

		*c = (struct gpu_choice){.seconds = json_number_value(json_object_get(one, "seconds")),
					 .first_seconds =
						 json_number_value(json_object_get(one, "first_seconds")),
					 .alike = json_is_true(json_object_get(one, "alike"))};
		text_copy(c->product, sizeof(c->product), json_member_text(one, "product"));
		count += words_parse(c->words, json_string_value(json_object_get(one, "words")));
	}
	return count;
}

static size_t parse_attention(struct gpu_attention_choice *out, const json_t *list)
{
	const json_t *one;
	size_t i, count = 0;

	json_array_foreach(list, i, one)
	{
		struct gpu_attention_choice *c = &out[count];

		*c = (struct gpu_attention_choice){.docs = json_integer_value(json_object_get(one, "docs")),
						   .length =
							   json_integer_value(json_object_get(one, "length")),
						   .by_own = json_is_true(json_object_get(one, "by_own"))};
		text_copy(c->candidate, sizeof(c->candidate), json_member_text(one, "candidate"));
		count += c->docs >= 0 && c->length >= 0;
	}
	return count;
}

enum status tuning_choices_parse(struct gpu_choice **products, size_t *count,
				 struct gpu_attention_choice **ways, size_t *way_count, const json_t *before,
				 struct error *err)
{
	const json_t *list = json_object_get(before, "products"),
		     *attention = json_object_get(before, "attention");

	*products = calloc(json_array_size(list) + 1, sizeof(**products));
	*ways = calloc(json_array_size(attention) + 1, sizeof(**ways));
	if (!*products || !*ways)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the earlier tuning choices");
	*count = parse_products(*products, list);
	*way_count = parse_attention(*ways, attention);
	return STATUS_OK;
}

/* Parsed choices, in the form that the back end takes. */
struct lists {
	struct gpu_choice *products;
	struct gpu_attention_choice *ways;
	size_t count, way_count;
};

static void lists_release(struct lists *l)
{
	free(l->products);
	free(l->ways);
}

static enum status lists_parse(struct lists *l, const json_t *chosen, struct error *err)
{
	return tuning_choices_parse(&l->products, &l->count, &l->ways, &l->way_count, chosen, err);
}

/* Appends *more to *to. If two entries match, the back end takes the first. */
static enum status lists_append(struct lists *to, const struct lists *more, struct error *err)
{
	const size_t count = to->count + more->count, way_count = to->way_count + more->way_count;
	struct gpu_choice *products = realloc(to->products, (count + 1) * sizeof(*products));
	struct gpu_attention_choice *ways;

	to->products = products ? products : to->products;
	ways = products ? realloc(to->ways, (way_count + 1) * sizeof(*ways)) : NULL;
	if (!ways)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the earlier tuning choices");
	to->ways = ways;
	memcpy(products + to->count, more->products, more->count * sizeof(*products));
	memcpy(ways + to->way_count, more->ways, more->way_count * sizeof(*ways));
	to->count = count;
	to->way_count = way_count;
	return STATUS_OK;
}

static void mark_cached(struct lists *l)
{
	for (size_t i = 0; i < l->count; i++)
		l->products[i].cached = true;
	for (size_t i = 0; i < l->way_count; i++)
		l->ways[i].cached = true;
}

enum status tuning_choices_recall(struct backend *back, const json_t *before, const json_t *cached,
				  struct text *note, struct error *err)
{
	struct lists known = {0}, others = {0};
	enum status st;

	if (back->kind != BACKEND_GPU)
		return STATUS_OK;
	if (before && !is_same(back, before, note))
		before = NULL;
	if (!before && !cached)
		return STATUS_OK;
	st = lists_parse(&known, before, err);
	if (!st)
		st = lists_parse(&others, cached, err);
	if (!st) {
		mark_cached(&others);
		st = lists_append(&known, &others, err);
	}
	if (!st)
		st = gpu_backend_recall(back, known.products, known.count, known.ways, known.way_count, err);
	lists_release(&known);
	lists_release(&others);
	return st;
}
