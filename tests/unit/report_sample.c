/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <unistd.h>
#include "core/file/file.h"
#include "report_sample.h"

#define SAMPLE_DIR SOURCE_DIR "/tests/data/report"

static void text_field(char *out, size_t size, const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	text_copy(out, size, s ? s : "");
}

/* null stands for NaN: a judge that is wrong must not make the report print one. */
static double number_field(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_null(value) ? (double)NAN : json_number_value(value);
}

static int index_of(const char *const *words, const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	for (int i = 0; s && words[i]; i++)
		if (!strcmp(words[i], s))
			return i;
	return 0;
}

static void load_gap(struct judgement *j, const json_t *list)
{
	json_t *item;
	size_t i;

	json_array_foreach((json_t *)list, i, item)
	{
		struct factor *f = &j->gap[j->gap_count++];

		text_field(f->name, sizeof(f->name), item, "name");
		text_field(f->signal, sizeof(f->signal), item, "signal");
		f->value = number_field(item, "value");
		f->error = number_field(item, "error");
		f->present = json_is_true(json_object_get(item, "present"));
		f->shown_only = json_is_true(json_object_get(item, "shown_only"));
	}
}

static void load_expected(struct judgement *j, const json_t *item)
{
	static const char *const from[] = {"none", "device", "ceiling", "datasheet", NULL};
	const json_t *bound = json_object_get(item, "bound"), *band = json_object_get(item, "band");

	if (bound) {
		j->bound.value = number_field(bound, "value");
		j->bound.from = (enum bound_from)index_of(from, bound, "from");
		text_field(j->bound.formula, sizeof(j->bound.formula), bound, "formula");
	}
	if (band) {
		j->has_band = true;
		j->band.low = number_field(band, "low");
		j->band.high = number_field(band, "high");
		j->band.confidence = (int)json_integer_value(json_object_get(band, "confidence"));
		text_field(j->band.phase, sizeof(j->band.phase), band, "phase");
		text_field(j->band.source, sizeof(j->band.source), band, "source");
		text_field(j->band.date, sizeof(j->band.date), band, "date");
		text_field(j->band.place, sizeof(j->band.place), band, "place");
	}
}

static void load_judgement(struct judgement *j, const json_t *item)
{
	static const char *const by[] = {"nothing", "band", "ceiling", "siblings", "history", "rule", "bound", NULL};
	char word[64];
	json_t *advice;
	size_t i;

	text_field(word, sizeof(word), item, "verdict");
	assert_int_equal(verdict_from_name(word, &j->verdict), 1);
	text_field(word, sizeof(word), item, "cause");
	if (word[0])
		assert_int_equal(cause_from_name(word, &j->cause), 1);
	text_field(j->reason, sizeof(j->reason), item, "reason");
	text_field(j->figure_field, sizeof(j->figure_field), item, "figure_field");
	text_field(j->figure_unit, sizeof(j->figure_unit), item, "figure_unit");
	text_field(j->phase, sizeof(j->phase), item, "phase");
	j->has_figure = json_object_get(item, "figure") != NULL;
	j->figure = number_field(item, "figure");
	load_expected(j, item);
	j->judged_by = (enum judged_by)index_of(by, item, "judged_by");
	j->low_confidence = json_is_true(json_object_get(item, "low_confidence"));
	j->share_of_bound = number_field(item, "share_of_bound");
	j->efficiency_held = number_field(item, "efficiency_held");
	j->unexplained = number_field(item, "unexplained");
	j->explained = json_is_true(json_object_get(item, "explained"));
	load_gap(j, json_object_get(item, "gap"));
	json_array_foreach(json_object_get(item, "advice"), i, advice)
	{
		struct advice *a = &j->advice[j->advice_count++];

		text_field(a->knob, sizeof(a->knob), advice, "knob");
		text_field(a->evidence, sizeof(a->evidence), advice, "evidence");
		text_field(a->gain, sizeof(a->gain), advice, "gain");
	}
}

static size_t load_lines(char (**lines)[200], const json_t *list)
{
	size_t count = json_array_size(list);

	*lines = calloc(count ? count : 1, sizeof(**lines));
	assert_non_null(*lines);
	for (size_t i = 0; i < count; i++)
		text_copy((*lines)[i], sizeof((*lines)[i]), json_string_value(json_array_get(list, i)));
	return count;
}

static void load_judgements(struct judgements *out, const char *path)
{
	json_t *root = json_load_file(path, 0, NULL), *cases, *item;
	char word[64];
	size_t i;

	assert_non_null(root);
	cases = json_object_get(root, "cases");
	out->count = json_array_size(cases);
	out->of_case = calloc(out->count ? out->count : 1, sizeof(*out->of_case));
	assert_non_null(out->of_case);
	json_array_foreach(cases, i, item) load_judgement(&out->of_case[i], item);
	out->exit_code = (int)json_integer_value(json_object_get(root, "exit_code"));
	text_field(word, sizeof(word), root, "verdict");
	assert_int_equal(verdict_from_name(word, &out->verdict), 1);
	text_field(out->headline, sizeof(out->headline), root, "headline");
	text_field(out->expectations_hash, sizeof(out->expectations_hash), root, "expectations_hash");
	out->has_stated = json_object_get(root, "stated") != NULL;
	if (out->has_stated)
		load_judgement(&out->stated, json_object_get(root, "stated"));
	out->could_not_look_count = load_lines(&out->could_not_look, json_object_get(root, "could_not_look"));
	out->operator_input_count = load_lines(&out->operator_input, json_object_get(root, "operator_input"));
	json_decref(root);
}

void sample_load(struct sample *s, const char *name)
{
	struct error err = {0};
	char dir[512], path[600];

	*s = (struct sample){0};
	snprintf(dir, sizeof(dir), "%s/%s", SAMPLE_DIR, name);
	if (record_read(&s->record, dir, &err))
		fail_msg("%s: %s", dir, err.text);
	if (s->record.machine && machine_from_json(&s->machine, s->record.machine, &err))
		fail_msg("%s: %s", dir, err.text);
	snprintf(path, sizeof(path), "%s/judged.json", dir);
	load_judgements(&s->judged, path);
	s->in = (struct report_input){.record = &s->record, .machine = s->machine, .judged = &s->judged};
}

void sample_release(struct sample *s)
{
	free(s->judged.of_case);
	free(s->judged.could_not_look);
	free(s->judged.operator_input);
	machine_free(s->machine);
	record_release(&s->record);
	*s = (struct sample){0};
}

void sample_golden(const char *name, const char *file, const char *text)
{
	struct error err = {0};
	char path[600], *want = NULL;
	size_t size;

	snprintf(path, sizeof(path), "%s/%s/%s", SAMPLE_DIR, name, file);
	if (getenv("UPDATE")) {
		assert_int_equal(file_write(path, text, strlen(text), &err), STATUS_OK);
		return;
	}
	if (file_read(&want, &size, path, 64 << 20, &err))
		fail_msg("%s: %s (UPDATE=1 writes it)", path, err.text);
	assert_string_equal(text, want);
	free(want);
}

bool sample_has_module(const char *name)
{
	const char *folder = getenv("ASSAY_MODULE_DIR");
	char path[300];

	snprintf(path, sizeof(path), "%s/lib%s.so", folder ? folder : "", name);
	return !access(path, R_OK);
}
