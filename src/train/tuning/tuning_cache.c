/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuning/tuning_cache.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "train/tuning/tuning_choices.h"

enum {
	PRODUCTS_MOST = 1024, /* limit per entry; packs differ in their number of rows */
	WAYS_MOST = 64,
	DOCS_MOST = 1 << 30,
	NAME_MOST = 159
};
#define SECONDS_MOST 100.0 /* limit for the time of one GEMM */

char *tuning_cache_key_text(const struct tuning_cache_key *k)
{
	json_t *j =
		json_pack("{s:s, s:s, s:s, s:i, s:f, s:s, s:s, s:s, s:s}", "card", k->card, "driver",
			  k->driver, "mig", k->mig, "sms", (int)k->sms, "power_limit_w", k->power_limit_w,
			  "gemm", k->gemm, "attention", k->attention, "build", k->build, "shape", k->shape);
	char *text = j ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	json_decref(j);
	return text;
}

void tuning_cache_shape(struct text *out, const struct shape *s, const struct config *c)
{
	const struct config_training *t = &c->training;

	text_addf(out, "family %d hidden %lld layers %lld heads %lld %lld %lld ffn %lld vocab %lld",
		  (int)s->family, (long long)s->hidden, (long long)s->layers, (long long)s->heads,
		  (long long)s->kv_heads, (long long)s->head_dim, (long long)s->ffn, (long long)s->vocab);
	if (c->has_lora)
		text_addf(out, ", LoRA %u", c->lora.r);
	text_addf(out, ", rows %u x %llu, attention %u, adapters %u, recompute %u",
		  t->per_device_train_batch_size, (unsigned long long)c->data.max_seq_length, t->attention,
		  t->adapters, t->recompute);
}

/* ---- checks of a cached entry ---- */

/* Whether it is printable and not too long. */
static bool is_name(const json_t *j, bool empty)
{
	const char *s = json_string_value(j);

	if (!s || (!*s && !empty) || strlen(s) > NAME_MOST)
		return false;
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			return false;
	return true;
}

static bool is_time(const json_t *j)
{
	const double s = json_number_value(j);

	return json_is_number(j) && isfinite(s) && s >= 0 && s <= SECONDS_MOST;
}

static bool is_count(const json_t *j)
{
	return json_is_integer(j) && json_integer_value(j) >= 0 && json_integer_value(j) <= DOCS_MOST;
}

static bool is_product(const json_t *j)
{
	const char *words = json_string_value(json_object_get(j, "words"));
	const json_t *alike = json_object_get(j, "alike"), *seconds = json_object_get(j, "seconds");

	return is_name(json_object_get(j, "product"), false) &&
	       is_name(json_object_get(j, "algorithm"), true) && is_time(seconds) &&
	       is_time(json_object_get(j, "first_seconds")) && json_is_boolean(alike) &&
	       (json_is_true(alike) || json_number_value(seconds) > 0) && words &&
	       strlen(words) == (size_t)MATMUL_ALGORITHM_WORDS * 16 &&
	       strspn(words, "0123456789abcdef") == (size_t)MATMUL_ALGORITHM_WORDS * 16;
}

static bool is_way(const json_t *j)
{
	return is_count(json_object_get(j, "docs")) && is_count(json_object_get(j, "length")) &&
	       json_is_boolean(json_object_get(j, "by_own")) &&
	       is_name(json_object_get(j, "candidate"), true);
}

static bool all_are(const json_t *list, bool (*is)(const json_t *), size_t most)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > most)
		return false;
	json_array_foreach(list, i, one)
	{
		if (!is(one))
			return false;
	}
	return true;
}

json_t *tuning_cache_parse(const char *text, struct error *err)
{
	json_error_t why;
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &why);

	if (!j) {
		error_set(err, STATUS_BAD_INPUT, "it is not JSON: %s", why.text);
		return NULL;
	}
	if (all_are(json_object_get(j, "products"), is_product, PRODUCTS_MOST) &&
	    all_are(json_object_get(j, "attention"), is_way, WAYS_MOST))
		return j;
	error_set(err, STATUS_BAD_INPUT, "a tuning choice in it has an unknown name or an impossible number");
	json_decref(j);
	return NULL;
}

/* ---- merging ---- */

static bool is_set(const json_t *one, const char *key)
{
	return json_is_true(json_object_get(one, key));
}

/* Whether this process timed the choice itself. */
static bool is_own(const json_t *one)
{
	return !is_set(one, "cached") && !is_set(one, "recalled");
}

static bool is_own_product(const json_t *one)
{
	return is_own(one) && is_product(one);
}

static bool is_own_way(const json_t *one)
{
	return is_own(one) && is_way(one);
}

static bool same_product(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "product"), json_object_get(b, "product"));
}

static bool same_way(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "docs"), json_object_get(b, "docs")) &&
	       json_equal(json_object_get(a, "length"), json_object_get(b, "length"));
}

/* One kind of tuning choice. */
struct kind {
	const char *list;
	bool (*own)(const json_t *);
	bool (*same)(const json_t *, const json_t *);
	size_t most;
};

static bool has(const json_t *list, const json_t *one, const struct kind *k)
{
	const json_t *other;
	size_t i;

	json_array_foreach(list, i, other)
	{
		if (k->same(one, other))
			return true;
	}
	return false;
}

/* The new choices, then those cached entries that have no new choice. *added: number of new ones. Owner:
 * caller. */
static json_t *merged(const json_t *kept, const json_t *chosen, const struct kind *k, size_t *added)
{
	json_t *out = json_array(), *one;
	size_t i;

	json_array_foreach(json_object_get(chosen, k->list), i, one)
	{
		if (k->own(one) && json_array_size(out) < k->most && !has(out, one, k))
			json_array_append(out, one);
	}
	*added += json_array_size(out);
	json_array_foreach(json_object_get(kept, k->list), i, one)
	{
		if (json_array_size(out) < k->most && !has(out, one, k))
			json_array_append(out, one);
	}
	return out;
}

char *tuning_cache_merge(const json_t *kept, const json_t *chosen)
{
	static const struct kind products = {"products", is_own_product, same_product, PRODUCTS_MOST},
				 ways = {"attention", is_own_way, same_way, WAYS_MOST};
	size_t added = 0;
	json_t *list = merged(kept, chosen, &products, &added);
	json_t *j =
		json_pack("{s:o, s:o}", "products", list, "attention", merged(kept, chosen, &ways, &added));
	char *text = j && added ? json_dumps(j, JSON_COMPACT) : NULL;

	json_decref(j);
	return text;
}
