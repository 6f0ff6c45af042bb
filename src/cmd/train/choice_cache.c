/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of tuning choices of a training run (train/tuning/tuning_cache.h): when choices may be saved
 * for other runs on the same card, and how the journal records choices from the cache. */
#include <stdlib.h>
#include "cmd/info/info.h"
#include "cmd/train/train.h"
#include "core/file/user_cache.h"
#include "run/suite/target.h"
#include "train/tuning/tuning_cache.h"

#define MEMORY_NOISE 1073741824.0 /* bytes, in addition to a tenth of the planned memory */

static const char *mig_of(const struct gpu *g)
{
	if (!gpu_has(g, GPU_FACT_mig_mode))
		return "unknown";
	return gpu_get(g, GPU_FACT_mig_mode, 0) > 0 ? "on" : "off";
}

void train_cache_settle(struct training *t, const struct machine *m, const struct gpu *g)
{
	const json_t *driver = json_object_get(machine_json(m), "driver");
	const char *version = json_string_value(json_object_get(driver, "version"));

	json_decref(t->card);
	t->card = NULL;
	t->before = *g;
	if (!t->o->no_cache && version) /* without a known driver version, the key would not be unique */
		t->card = json_pack("{s:s, s:s, s:f}", "driver", version, "mig", mig_of(g), "power_limit_w",
				    gpu_get(g, GPU_FACT_power_limit_w, 0));
}

static double used_of(const struct gpu *g)
{
	return gpu_get(g, GPU_FACT_memory_bytes, 0) - gpu_get(g, GPU_FACT_memory_free_bytes, 0);
}

static bool tells_memory(const struct gpu *g)
{
	return gpu_has(g, GPU_FACT_memory_bytes) && gpu_has(g, GPU_FACT_memory_free_bytes);
}

bool train_cache_alone(const struct gpu *before, const struct gpu *now, double planned_bytes, char *why,
		       size_t size)
{
	const double processes = gpu_get(now, GPU_FACT_processes, 0) - gpu_get(before, GPU_FACT_processes, 0);
	const bool counted = gpu_has(before, GPU_FACT_processes) && gpu_has(now, GPU_FACT_processes);

	if (gpu_busy(before, why, size))
		return false;
	if (!counted && !(tells_memory(before) && tells_memory(now))) {
		snprintf(why, size, "%s: cannot tell whether other processes use it", now->pci);
		return false;
	}
	if (counted && processes > 1) {
		snprintf(why, size, "%s: another process started to use it", now->pci);
		return false;
	}
	if (tells_memory(before) && tells_memory(now) &&
	    used_of(now) - used_of(before) > 1.1 * planned_bytes + MEMORY_NOISE) {
		snprintf(why, size, "%s: more memory is in use than this run needs", now->pci);
		return false;
	}
	return true;
}

/* Reads the card again while our worker runs, to see whether another process uses it. */
static bool is_alone(const struct training *t, char *why, size_t size)
{
	const struct machine_scope scope = {.up_to = LAYER_NVML, .stop = t->c->stop};
	struct machine *m = NULL;
	bool alone = false;

	snprintf(why, size, "%s: cannot tell whether other processes use it", t->gpu);
	if (machine_read_scope(&m, &scope, NULL, t->c->log, NULL))
		return false;
	for (unsigned i = 0; i < machine_gpu_count(m); i++)
		if (!strcmp(machine_gpu(m, i)->pci, t->gpu))
			alone = train_cache_alone(&t->before, machine_gpu(m, i),
						  info_number(t->ready, "memory_planned_bytes"), why, size);
	machine_free(m);
	return alone;
}

/* The entry saved at this moment, to which another run may have added. NULL if there is none. With
 * *doubted, the entry is not trusted, and the worker has reported that. */
static json_t *kept_now(const struct user_cache *c, const char *key, bool *doubted)
{
	char *body = NULL;
	json_t *kept = NULL;

	*doubted = user_cache_read(c, key, &body, NULL) != STATUS_OK;
	if (body)
		kept = tuning_cache_parse(body, NULL);
	free(body);
	return kept;
}

static void keep(const struct training *t, const char *key, const json_t *chosen)
{
	struct user_cache cache;
	struct error err = {0};
	bool doubted;
	char why[200];
	json_t *kept;
	char *text;

	if (user_cache_open(&cache, TUNING_CACHE_FOLDER, &err))
		return;
	kept = kept_now(&cache, key, &doubted);
	text = tuning_cache_merge(kept, chosen);
	if (text && !is_alone(t, why, sizeof(why)))
		log_info(t->c->log, LOG_TOPIC_RUN, "tuning choices are not saved for other runs: %s", why);
	else if (text && user_cache_write(&cache, key, text, &err) && !doubted)
		log_info(t->c->log, LOG_TOPIC_RUN, "cannot save tuning choices for other runs: %s", err.text);
	free(text);
	json_decref(kept);
}

/* For example "attention backward, 2 x 4096 tokens". */
static void way_text(char out[64], const json_t *way)
{
	const double docs = info_number(way, "docs");

	if (docs > 0)
		snprintf(out, 64, "attention backward, %.0f x %.0f tokens", docs, info_number(way, "length"));
	else
		snprintf(out, 64, "attention backward, our candidate");
}

static json_t *taken(const char *what, const char *choice, const char *id)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "what", what, "choice", choice ? choice : "", "from",
			 "cache", "key", id);
}

/* The entries of *chosen that came from the cache, in the form of the journal. The caller owns the result. */
static json_t *cached_of(const json_t *chosen, const char *id)
{
	json_t *out = json_array();
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(chosen, "products"), i, one)
	{
		if (json_is_true(json_object_get(one, "cached")))
			json_array_append_new(out, taken(json_string_value(json_object_get(one, "product")),
							 json_string_value(json_object_get(one, "algorithm")),
							 id));
	}
	json_array_foreach(json_object_get(chosen, "attention"), i, one)
	{
		const char *candidate = json_string_value(json_object_get(one, "candidate"));
		const bool own = json_is_true(json_object_get(one, "by_own"));
		char what[64];

		way_text(what, one);
		if (json_is_true(json_object_get(one, "cached")))
			json_array_append_new(out, taken(what,
							 candidate && *candidate ? candidate
							 : own			 ? "own"
										 : "library",
							 id));
	}
	return out;
}

static void journal(struct training *t, const char *id, json_t *list)
{
	const uint64_t now_ns = clock_now_ns(clock_monotonic());

	job_phase(t->job, "choices", now_ns, now_ns,
		  json_pack("{s:f, s:s, s:O}", "choices_cached", (double)json_array_size(list), "choices_key",
			    id, "choices", list));
}

void train_cache_receive(struct training *t, const json_t *line)
{
	const char *key = json_string_value(json_object_get(line, "key"));
	const json_t *chosen = json_object_get(line, "chosen");
	char id[USER_CACHE_ID];
	json_t *list;

	if (!key || !t->card)
		return;
	user_cache_id(id, key);
	list = cached_of(chosen, id);
	if (json_array_size(list) && json_array_size(list) != t->cached_told) {
		t->cached_told = json_array_size(list);
		journal(t, id, list);
		log_info(
			t->c->log, LOG_TOPIC_RUN,
			"%zu tuning choices come from the cache of an earlier run (%.8s); --no-cache times all candidates again",
			json_array_size(list), id);
	}
	json_decref(list);
	keep(t, key, chosen);
}
