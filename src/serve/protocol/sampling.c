/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that all endpoints share: model, sampling, lengths, stops, bias. */
#include "serve/protocol/request_internal.h"

#include <float.h>
#include <math.h>

#include "core/math/fnv1a.h"
#include "core/math/random.h"

struct values {
	double temperature, top_p, min_p, repetition, presence, frequency;
	int64_t top_k, seed, n, best_of, max_tokens, max_completion_tokens, min_tokens, priority;
	bool stream, ignore_eos, include_stop, skip_special;
};

#define AT(name) offsetof(struct values, name)
static const struct field fields[] = {
	{"temperature", FIELD_NUMBER, AT(temperature), 0, 2, false},
	{"top_p", FIELD_NUMBER, AT(top_p), 0, 1, true},
	{"min_p", FIELD_NUMBER, AT(min_p), 0, 1, false},
	{"repetition_penalty", FIELD_NUMBER, AT(repetition), 0, 10, true},
	{"presence_penalty", FIELD_NUMBER, AT(presence), -2, 2, false},
	{"frequency_penalty", FIELD_NUMBER, AT(frequency), -2, 2, false},
	{"top_k", FIELD_INT, AT(top_k), -1, INT32_MAX, false},
	{"seed", FIELD_INT, AT(seed), (double)INT64_MIN, (double)INT64_MAX, false},
	{"n", FIELD_INT, AT(n), 1, REQUEST_N_MOST, false},
	{"best_of", FIELD_INT, AT(best_of), 1, REQUEST_N_MOST, false},
	{"max_tokens", FIELD_INT, AT(max_tokens), 0, INT32_MAX, false},
	{"max_completion_tokens", FIELD_INT, AT(max_completion_tokens), 0, INT32_MAX, false},
	{"min_tokens", FIELD_INT, AT(min_tokens), 0, INT32_MAX, false},
	{"priority", FIELD_INT, AT(priority), ENGINE_PRIORITY_FIRST, ENGINE_PRIORITY_LAST, false},
	{"stream", FIELD_BOOL, AT(stream), 0, 0, false},
	{"ignore_eos", FIELD_BOOL, AT(ignore_eos), 0, 0, false},
	{"include_stop_str_in_output", FIELD_BOOL, AT(include_stop), 0, 0, false},
	{"skip_special_tokens", FIELD_BOOL, AT(skip_special), 0, 0, false},
};
#undef AT

static double or_default(double value, double other)
{
	return isfinite(value) ? value : other;
}

/* What an absent field means: the model's own default, then OpenAI's. A model that does not sample has
 * temperature 0, and its limits of sampling are not used. */
static struct values defaults(const struct prompter *p)
{
	const struct generation_config *d = prompter_defaults(p);

	return (struct values){.temperature = d->greedy ? 0 : or_default(d->temperature, 1),
			       .top_p = d->greedy ? 1 : or_default(d->top_p, 1),
			       .min_p = d->greedy ? 0 : or_default(d->min_p, 0),
			       .repetition = or_default(d->repetition_penalty, 1),
			       .top_k = d->greedy ? -1 : d->top_k,
			       .seed = -1,
			       .n = 1,
			       .best_of = -1,
			       .max_tokens = -1,
			       .max_completion_tokens = -1,
			       .skip_special = true};
}

static bool read_model(struct request_reading *in, const json_t *body)
{
	const char *name = in->rules->models[0];
	bool known = false;

	if (!field_text(body, "model", &name, in->err))
		return false;
	in->r->engine.adapter = -1;
	for (size_t i = 0; in->rules->models[i] && !known; i++)
		known = !strcmp(name, in->rules->models[i]);
	for (size_t i = 0; in->rules->adapters && in->rules->adapters[i] && !known; i++)
		if (!strcmp(name, in->rules->adapters[i])) {
			in->r->engine.adapter = (int32_t)i;
			known = true;
		}
	if (!known) {
		api_fail(in->err, 404, "model_not_found",
			 "the model \"%.100s\" is not served here; GET "
			 "/v1/models lists the names",
			 name);
		text_copy(in->err->param, sizeof(in->err->param), "model");
		return false;
	}
	text_copy(in->r->model, sizeof(in->r->model), name);
	return true;
}

/* `place`: "stop", or "stop[1]" in an array. */
static bool add_stop(struct request_reading *in, const json_t *stop, const char *place)
{
	struct request *r = in->r;
	size_t size = json_string_length(stop);

	if (!json_is_string(stop))
		return api_wrong(in->err, place, "%s is %s; stop must be a text or an array of texts", place,
				 field_type_name(stop));
	if (!size)
		return true; /* clients send "" for none */
	if (size > REQUEST_STOP_BYTES_MOST)
		return api_wrong(in->err, place, "%s has %zu bytes; %d is the most", place, size,
				 REQUEST_STOP_BYTES_MOST);
	if (r->stop_count == REQUEST_STOPS_MOST)
		return api_wrong(in->err, "stop", "stop has more than %d texts", REQUEST_STOPS_MOST);
	r->stops[r->stop_count] = strdup(json_string_value(stop));
	return r->stops[r->stop_count++] || request_out_of_memory(in->err);
}

static bool read_stops(struct request_reading *in, const json_t *body)
{
	const json_t *stops = field_value(body, "stop"), *stop;
	struct request *r = in->r;
	struct error err = {0};
	char place[32];
	size_t i;

	if (stops && !json_is_array(stops) && !add_stop(in, stops, "stop"))
		return false;
	json_array_foreach(stops, i, stop)
	{
		snprintf(place, sizeof(place), "stop[%zu]", i);
		if (!add_stop(in, stop, place))
			return false;
	}
	return !r->stop_count ||
	       !stop_texts_create(&r->stop_texts, (const char *const *)(const void *)r->stops, r->stop_count,
				  &err) ||
	       api_from(in->err, "stop", &err);
}

static bool read_stop_ids(struct request_reading *in, const json_t *body, bool ignore_eos)
{
	struct request *r = in->r;
	const json_t *ids = NULL;
	size_t own;
	const int32_t *ends = prompter_ends(in->rules->prompter, &own);
	struct prompt_ids given = {0};

	for (size_t i = 0; i < own && !ignore_eos; i++)
		r->stop_ids[r->engine.stops++] = ends[i];
	if (!field_array(body, "stop_token_ids", &ids, ENGINE_STOPS_MOST - own, in->err))
		return false;
	if (ids && !request_ids(ids, "stop_token_ids", prompter_size(in->rules->prompter), ENGINE_STOPS_MOST,
				&given, in->err))
		return false;
	for (size_t i = 0; i < given.count; i++)
		r->stop_ids[r->engine.stops++] = given.ids[i];
	free(given.ids);
	r->engine.stop = r->stop_ids;
	return true;
}

/* An id in JSON's notation of numbers, so that it has one: without zeros before it. -1: it is none. */
static long read_id(const char *text)
{
	const size_t size = strlen(text);
	const bool digits = size && strspn(text, "0123456789") == size;

	return digits && (size == 1 || *text != '0') ? strtol(text, NULL, 10) : -1;
}

static bool add_bias(struct request_reading *in, const char *key, const json_t *value)
{
	struct engine_request *e = &in->r->engine;
	const long id = read_id(key);

	if (id < 0 || id >= prompter_size(in->rules->prompter))
		return api_wrong(in->err, "logit_bias",
				 "logit_bias: \"%.40s\" is not a token id of the model", key);
	if (!json_is_number(value) || !(fabs(json_number_value(value)) <= 100))
		return api_wrong(in->err, "logit_bias",
				 "logit_bias of token %ld must be a number from -100 to 100", id);
	/* -100 means "never" in OpenAI's documentation */
	in->r->bias[e->biases++] = (struct engine_bias){
		.id = (int32_t)id,
		.add = json_number_value(value) <= -100 ? -INFINITY : (float)json_number_value(value)};
	return true;
}

static bool read_bias(struct request_reading *in, const json_t *body)
{
	const json_t *bias = NULL, *value;
	const char *key;

	if (!field_object(body, "logit_bias", &bias, in->err))
		return false;
	if (!json_object_size(bias))
		return true;
	if (json_object_size(bias) > ENGINE_BIAS_MOST)
		return api_wrong(in->err, "logit_bias", "logit_bias has %zu entries; %d is the most",
				 json_object_size(bias), ENGINE_BIAS_MOST);
	in->r->bias = calloc(json_object_size(bias), sizeof(*in->r->bias));
	if (!in->r->bias)
		return request_out_of_memory(in->err);
	in->r->engine.bias = in->r->bias;
	/* a key that is there twice was one entry already for jansson */
	for (void *at = json_object_iter((json_t *)(uintptr_t)bias); at;
	     at = json_object_iter_next((json_t *)(uintptr_t)bias, at)) {
		key = json_object_iter_key(at);
		value = json_object_iter_value(at);
		if (!add_bias(in, key, value))
			return false;
	}
	return true;
}

static bool read_stream_options(struct request_reading *in, const json_t *body)
{
	const json_t *options = NULL;

	if (!field_object(body, "stream_options", &options, in->err))
		return false;
	if (options && !in->r->stream)
		return api_wrong(in->err, "stream_options", "stream_options needs stream to be true");
	return field_bool_in(options, "stream_options", "include_usage", &in->r->include_usage, in->err) &&
	       field_bool_in(options, "stream_options", "continuous_usage_stats", &in->r->usage_always,
			     in->err);
}

static uint64_t new_seed(void)
{
	char hex[17] = "0";

	return random_hex(hex, sizeof(hex)) ? strtoull(hex, NULL, 16) : 0;
}

/* A number above 0 as a float above 0. */
static float positive(double x)
{
	return x > 0 && x < FLT_MIN ? FLT_MIN : (float)x;
}

static void take(struct request *r, const struct values *v)
{
	int64_t most = v->max_completion_tokens >= 0 ? v->max_completion_tokens : v->max_tokens;

	r->engine.sampling = (struct engine_sampling){.temperature = (float)v->temperature,
						      .top_p = positive(v->top_p),
						      .min_p = (float)v->min_p,
						      .repetition = positive(v->repetition),
						      .presence = (float)v->presence,
						      .frequency = (float)v->frequency,
						      .top_k = v->top_k > 0 ? (int32_t)v->top_k : 0,
						      .seed = (uint64_t)v->seed};
	r->n = (size_t)v->n;
	r->stream = v->stream;
	r->include_stop = v->include_stop;
	r->control = !v->skip_special;
	r->engine.max_tokens = most;
	r->engine.min_tokens = v->min_tokens;
	r->engine.priority = (int32_t)v->priority;
}

bool request_default_length(struct request_reading *in, int64_t usual)
{
	const int64_t own = prompter_defaults(in->rules->prompter)->max_new_tokens;
	struct engine_request *e = &in->r->engine;

	in->r->own_length = own > 0;
	e->max_tokens = own > INT32_MAX ? INT32_MAX : own > 0 ? own : usual;
	return !e->max_tokens || e->min_tokens <= e->max_tokens ||
	       api_wrong(in->err, "min_tokens",
			 "min_tokens is %lld, more than %lld, the default of max_tokens; give max_tokens too",
			 (long long)e->min_tokens, (long long)e->max_tokens);
}

const char *request_length_field(const json_t *body)
{
	return field_value(body, "max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
}

bool request_common(struct request_reading *in, const json_t *body)
{
	struct values v = defaults(in->rules->prompter);
	const char *salt = NULL, *user = NULL;
	const json_t *metadata;

	if (!read_model(in, body) ||
	    !fields_read(body, fields, sizeof(fields) / sizeof(fields[0]), &v, in->err))
		return false;
	if (v.best_of >= 0 && v.best_of != v.n)
		return api_wrong(in->err, "best_of",
				 "best_of is %lld and n is %lld; only equal values are "
				 "supported",
				 (long long)v.best_of, (long long)v.n);
	take(in->r, &v);
	if (in->r->engine.max_tokens > 0 && v.min_tokens > in->r->engine.max_tokens)
		return api_wrong(in->err, "min_tokens", "min_tokens is %lld, more than the %lld of %s",
				 (long long)v.min_tokens, (long long)in->r->engine.max_tokens,
				 request_length_field(body));
	if (!field_value(body, "seed"))
		in->r->engine.sampling.seed = new_seed();
	if (!field_text(body, "cache_salt", &salt, in->err) || !field_text(body, "user", &user, in->err) ||
	    !field_object(body, "metadata", &metadata, in->err))
		return false;
	in->r->engine.cache_salt = salt && *salt ? fnv1a_add(FNV1A_BEGIN, salt, strlen(salt)) : 0;
	return read_stops(in, body) && read_stop_ids(in, body, v.ignore_eos) && read_bias(in, body) &&
	       read_stream_options(in, body);
}
