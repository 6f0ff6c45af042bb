/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tuning choices of other runs on the same kind of GPU, and emits this run's choices. The
 * supervisor writes them to the cache. */
#include <stdlib.h>
#include <string.h>
#include "core/process/process.h"
#include "core/file/user_cache.h"
#include "core/json/member.h"
#include "train/tuning/tuning_choices.h"
#include "train/tuning/tuning_cache.h"
#include "train/run/internal.h"

/* The cache key of this run. NULL: no memory. Owner: caller, free(). */
static char *key_of(const struct train *t)
{
	const struct backend *back = &t->stepper.back;
	const struct gpu_device *device = gpu_backend_device(back);
	const char *name = gpu_name(device);
	char card[128], build[PROCESS_BUILD];
	struct tuning_cache_key k = {
		.card = card,
		.driver = json_member_text(t->job->card, "driver"),
		.mig = json_member_text(t->job->card, "mig"),
		.power_limit_w = json_number_value(json_object_get(t->job->card, "power_limit_w")),
		.sms = gpu_sm_count(device),
		.gemm = gpu_backend_gemm(back),
		.attention = gpu_backend_attention(back),
		.build = build};
	struct text shape = {0};
	char *text;

	snprintf(card, sizeof(card), "%.*s", (int)tuning_choices_kind_size(name), name);
	process_build(build);
	tuning_cache_shape(&shape, &t->weights.shape, &t->config);
	k.shape = text_str(&shape);
	text = tuning_cache_key_text(&k);
	text_release(&shape);
	return text;
}

/* OK with NULL: the cache has no entry. */
static enum status read_kept(json_t **out, const char *key, struct error *err)
{
	struct error why = {0};
	struct user_cache cache;
	char *body = NULL;
	enum status st = user_cache_open(&cache, TUNING_CACHE_FOLDER, err);

	*out = NULL;
	if (st) /* without a cache folder the run continues */
		return STATUS_OK;
	st = user_cache_read(&cache, key, &body, err);
	if (!st && body) {
		*out = tuning_cache_parse(body, &why);
		if (!*out)
			st = error_set(err, STATUS_BAD_INPUT, "%s: %s", cache.dir, why.text);
	}
	free(body);
	return st;
}

json_t *run_cached(struct train *t)
{
	struct error why = {0};
	json_t *kept;

	if (!t->job->card || t->stepper.back.kind != BACKEND_GPU || !t->config.training.tune ||
	    t->config.training.deterministic)
		return NULL;
	t->cache_key = key_of(t);
	if (!t->cache_key)
		return NULL;
	if (read_kept(&kept, t->cache_key, &why))
		log_warn(t->job->log, LOG_TOPIC_RUN, "%s; kernel candidates are timed again", why.text);
	return kept;
}

enum status run_emit_chosen(struct train *t, struct error *err)
{
	struct backend *back = &t->stepper.back;
	double tuning_s;

	if (!t->cache_key || gpu_backend_holds(back) || !t->made_steps)
		return STATUS_OK;
	tuning_s = gpu_backend_tuning_s(back);
	if (t->chosen_emitted && tuning_s <= t->chosen_emitted_s && t->products_emitted == t->chosen_products)
		return STATUS_OK;
	t->chosen_emitted = true;
	t->chosen_emitted_s = tuning_s;
	t->chosen_products = t->products_emitted;
	return run_emit(t, "chosen",
			json_pack("{s:s, s:o}", "key", t->cache_key, "chosen", tuning_choices_json(back)),
			err);
}
