/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the stages that print JSON: memory, accuracy, power, NVLink. */
#include <math.h>
#include <stdlib.h>
#include "cmd/comprehensive/comprehensive.h"
#include "core/file/file.h"
#include "core/json/member.h"
#include "journal/record/record.h"

enum { LINES_SIZE_MOST = 256 << 20, GPUS_MOST = 64 };

/* -- memory -- */

struct memory_used {
	double weights, cache, pages_most, page_bytes;
};

/* What the server of the load test recorded. False: it left no record, or never loaded its model. */
static bool read_used(struct memory_used *u, const struct comprehensive *s)
{
	char dir[PATH_MAX + 32], serve[PATH_MAX + 64];
	const struct record_phase *load;
	const struct series *pages;
	struct error err = {0};
	struct record record;

	*u = (struct memory_used){NAN, NAN, NAN, NAN};
	stage_dir(s, STAGE_LOAD, dir);
	snprintf(serve, sizeof(serve), "%s/serve", dir);
	if (record_read(&record, serve, &err))
		return false;
	load = record.case_count ? record_phase(&record.cases[0], "load") : NULL;
	if (load) {
		record_number(load, "weight_bytes", &u->weights);
		record_number(load, "cache_bytes", &u->cache);
		record_number(load, "page_bytes", &u->page_bytes);
	}
	pages = record_series(&record, "serve", "pages_used");
	for (size_t i = 0; pages && i < pages->count; i++)
		if (!(u->pages_most >= pages->value[i]))
			u->pages_most = pages->value[i];
	record_release(&record);
	return isfinite(u->weights);
}

static bool exceeds(double used, double planned)
{
	const double slack = 1.01; /* alignment of allocations */

	return isfinite(used) && isfinite(planned) && used > slack * planned;
}

static void memory_figures(struct stage_result *r, const json_t *plan, const struct memory_used *u)
{
	const json_t *kinds = json_object_get(plan, "kinds");
	const double pages = json_member_number(plan, "pages");
	const char *kind;
	json_t *value;

	stage_figure(r, "planned, all", json_member_number(plan, "bytes"), "B", NULL);
	json_object_foreach((json_t *)kinds, kind, value)
	{
		char name[80];

		snprintf(name, sizeof(name), "planned, %.60s", kind);
		stage_figure(r, name, json_number_value(value), "B", NULL);
	}
	stage_figure(r, "used, weights", u->weights, "B", "as loaded");
	stage_figure(r, "used, cache", u->cache, "B", "allocated");
	stage_figure(r, "planned, pages of the KV cache", pages, "", NULL);
	stage_figure(r, "used, pages of the KV cache", u->pages_most, "",
		     "largest of the readings, one every 10 s");
	if (isfinite(u->pages_most) && pages > 0)
		stage_figure(r, "used share of the pages", 100 * u->pages_most / pages, "%", NULL);
}

void judge_memory(const struct comprehensive *s, struct stage_result *r, int code)
{
	json_t *plan = comprehensive_read_output(s, STAGE_MEMORY);
	const json_t *kinds = json_object_get(plan, "kinds");
	struct memory_used used;
	const bool known = read_used(&used, s);

	if (!plan || code) {
		comprehensive_say_lost(s, STAGE_MEMORY, r, "it printed no JSON", code);
		json_decref(plan);
		return;
	}
	memory_figures(r, plan, &used);
	if (!known)
		stage_say(
			r, VERDICT_STAGE_INCONCLUSIVE,
			"the server of stage 2 left no record of its memory, so the memory in use is not known");
	else if (exceeds(used.weights, json_member_number(kinds, "weights")) ||
		 exceeds(used.cache, json_member_number(kinds, "cache")))
		stage_say(r, VERDICT_STAGE_FAILED, "the engine used more memory than it planned");
	else
		r->verdict = VERDICT_STAGE_PASSED;
	snprintf(r->headline, sizeof(r->headline), "planned %.4g GB: weights %.4g GB, KV cache %.4g GB",
		 json_member_number(plan, "bytes") * 1e-9, json_member_number(kinds, "weights") * 1e-9,
		 json_member_number(kinds, "cache") * 1e-9);
	if (isfinite(used.pages_most))
		snprintf(r->headline + strlen(r->headline), sizeof(r->headline) - strlen(r->headline),
			 "; largest reading: %.0f of %.0f pages in use", used.pages_most,
			 json_member_number(plan, "pages"));
	json_decref(plan);
}

/* -- accuracy -- */

static void add_precision(struct stage_result *r, const json_t *one)
{
	const char *precision = json_member_text(one, "precision");
	const json_t *calls = json_object_get(one, "calls");
	const size_t used = strlen(r->headline);
	const double perplexity = json_member_number(json_object_get(one, "perplexity"), "value"),
		     difference = json_member_number(json_object_get(one, "perplexity_difference_percent"),
						     "value");
	char name[120];

	snprintf(name, sizeof(name), "perplexity, %.40s", precision);
	stage_figure(r, name, perplexity, "", json_member_text(one, "verdict"));
	snprintf(name, sizeof(name), "difference from the reference, %.40s", precision);
	stage_figure(r, name, difference, "%", NULL);
	if (json_member_number(calls, "rows") > 0) {
		snprintf(name, sizeof(name), "right function calls, %.40s", precision);
		stage_figure(r, name, json_member_number(calls, "exact"), "", NULL);
		stage_figure(r, "questions", json_member_number(calls, "rows"), "", NULL);
	}
	if (isfinite(difference))
		snprintf(r->headline + used, sizeof(r->headline) - used, "; %.20s %+.2f %%", precision,
			 difference);
	else if (isfinite(perplexity) && !used)
		snprintf(r->headline, sizeof(r->headline), "perplexity %.5g (%.20s)", perplexity, precision);
}

void judge_accuracy(const struct comprehensive *s, struct stage_result *r, int code)
{
	json_t *eval = comprehensive_read_output(s, STAGE_ACCURACY);
	const json_t *one;
	size_t i;

	if (!eval || code > EXIT_INCONCLUSIVE || code < 0) {
		comprehensive_say_lost(s, STAGE_ACCURACY, r, "it printed no JSON", code);
		json_decref(eval);
		return;
	}
	json_array_foreach(json_object_get(eval, "precisions"), i, one)
	{
		add_precision(r, one);
	}
	if (code == EXIT_PASS)
		r->verdict = VERDICT_STAGE_PASSED;
	else
		stage_say(r, stage_verdict_of(code),
			  code == EXIT_FAILED ? "a precision missed its pass mark"
					      : "assay eval is inconclusive");
	if (s->own_model)
		stage_figure_text(r, "weights", "random",
				  "the perplexity itself means nothing; the differences compare precisions");
	json_decref(eval);
}

/* -- power -- */

void judge_power(const struct comprehensive *s, struct stage_result *r, int code)
{
	json_t *all = comprehensive_read_output(s, STAGE_POWER);
	const json_t *tables = json_object_get(json_array_get(all, 0), "tables"), *row;
	const json_t *rows = json_object_get(json_object_get(tables, "energy_per_token"), "rows");
	const char *why = json_member_text(json_array_get(rows, 0), "why"); /* that of all tokens */
	size_t i;

	if (!all) {
		comprehensive_say_lost(s, STAGE_POWER, r, "it printed no JSON", code);
		return;
	}
	json_array_foreach(rows, i, row)
	{
		const double rate = json_member_number(row, "tokens_per_joule");
		char name[160];

		snprintf(name, sizeof(name), "tokens per joule, %.120s", json_member_text(row, "row"));
		stage_figure(r, name, rate, "tokens/J", json_member_text(row, "why"));
		if (isfinite(rate) && !*r->headline)
			snprintf(r->headline, sizeof(r->headline), "%.4g tokens/J (%.120s)", rate,
				 json_member_text(row, "row"));
	}
	/* A machine without an energy counter cannot pass or fail. */
	if (*r->headline)
		r->verdict = VERDICT_STAGE_PASSED;
	else
		stage_say(r, VERDICT_STAGE_SKIPPED, "%s", *why ? why : "the load test has no energy");
	json_decref(all);
}

/* -- NVLink -- */

struct link_use {
	double tx_most, rx_most; /* of a GPU, B/s */
	unsigned readings, gpus;
	json_int_t risen;
	unsigned down;
	char why[200];
};

static void take_links(struct link_use *u, const json_t *links)
{
	const json_t *link, *count;
	const char *name;
	unsigned down = 0;
	size_t i;

	json_array_foreach((json_t *)links, i, link)
	{
		down += !json_is_true(json_object_get(link, "active"));
		json_object_foreach(json_object_get(link, "risen"), name, count)
		{
			u->risen += json_integer_value(count);
		}
	}
	u->down = down > u->down ? down : u->down;
}

static void take_state(struct link_use *u, const json_t *state)
{
	const json_t *part = json_object_get(state, "nvlink"), *gpu;
	size_t i;

	if (*json_member_text(part, "why"))
		text_copy(u->why, sizeof(u->why), json_member_text(part, "why"));
	json_array_foreach(json_object_get(part, "gpus"), i, gpu)
	{
		const json_t *sum = json_object_get(gpu, "sum");
		const double tx = json_member_number(sum, "payload_tx"),
			     rx = json_member_number(sum, "payload_rx");

		if (!json_array_size(json_object_get(gpu, "links")))
			continue;
		u->gpus = i + 1 > u->gpus ? (unsigned)i + 1 : u->gpus;
		u->tx_most = tx > u->tx_most ? tx : u->tx_most;
		u->rx_most = rx > u->rx_most ? rx : u->rx_most;
		take_links(u, json_object_get(gpu, "links"));
	}
	u->readings++;
}

/* Reads one JSON object per line; a last line that was cut is left out. */
static bool read_states(struct link_use *u, const struct comprehensive *s)
{
	char dir[PATH_MAX + 32], path[PATH_MAX + 64];
	struct error err = {0};
	char *text = NULL;
	size_t size = 0;

	stage_dir(s, STAGE_NVLINK, dir);
	snprintf(path, sizeof(path), "%s/output.txt", dir);
	if (file_read(&text, &size, path, LINES_SIZE_MOST, &err))
		return false;
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		json_t *state = json_loadb(line, (size_t)(end - line), 0, NULL);

		if (json_is_object(state))
			take_state(u, state);
		json_decref(state);
	}
	free(text);
	return true;
}

void judge_nvlink(const struct comprehensive *s, struct stage_result *r, int code)
{
	struct link_use u = {.tx_most = -1, .rx_most = -1};

	(void)code; /* it was asked to end */
	if (!read_states(&u, s) || !u.readings || !u.gpus) {
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "no reading of the links%s%s", *u.why ? ": " : "",
			  u.why);
		return;
	}
	stage_figure(r, "readings", u.readings, "", "one a second");
	stage_figure(r, "errors during the stress", (double)u.risen, "", NULL);
	stage_figure(r, "links down", u.down, "", "of one GPU, most");
	if (u.tx_most >= 0)
		stage_figure(r, "payload sent by a GPU, most", u.tx_most, "B/s", NULL);
	if (u.rx_most >= 0)
		stage_figure(r, "payload received by a GPU, most", u.rx_most, "B/s", NULL);
	if (u.tx_most >= 0)
		snprintf(r->headline, sizeof(r->headline), "a GPU sent up to %.4g GB/s; ", u.tx_most * 1e-9);
	snprintf(r->headline + strlen(r->headline), sizeof(r->headline) - strlen(r->headline),
		 "%lld link errors in %u readings", (long long)u.risen, u.readings);
	if (u.risen || u.down)
		stage_say(r, VERDICT_STAGE_FAILED, "%s",
			  u.down ? "a link is down" : "link errors during the stress");
	else if (s->size.gpus < 2)
		stage_say(r, VERDICT_STAGE_PASSED,
			  "with one GPU the links carry no traffic: only errors were watched");
	else if (u.tx_most < 0)
		stage_say(r, VERDICT_STAGE_INCONCLUSIVE, "the driver gives no throughput of the links");
	else
		r->verdict = VERDICT_STAGE_PASSED;
}
