/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assay eval: windows, figures and verdicts by hand; the perplexity of tiny models beside the logits of
 * transformers in FP32 (tests/data/model); a copy with coarse weights, which must miss the marks.
 */
#include "test.h"
#include <math.h>
#include "cmd/eval/verdict.h"
#include "cmd/model/one_text.h"
#include "core/file/file.h"
#include "model/files/safetensors/safetensors.h"
#include "must.h"
#include "scratch.h"

static const char *const models[] = {"qwen2", "qwen3", "llama", "llama_tied"};
static const volatile sig_atomic_t no_stop;
static const struct command_context context = {.stop = &no_stop};

/* A document of `count` tokens 0, 1, .. */
static void make_data(struct eval_data *d, size_t count, bool last_only)
{
	struct error err = {0};

	*d = (struct eval_data){.documents = calloc(1, sizeof(*d->documents)), .document_count = 1};
	for (size_t i = 0; i < count; i++)
		must(token_list_add(&d->documents[0].ids, &(int32_t){(int32_t)i}, 1, &err), &err);
	if (!last_only)
		return;
	d->documents[0].target = calloc(count, 1);
	d->documents[0].target[count - 1] = 1;
}

static void check_windows(size_t count, size_t length, size_t stride)
{
	struct eval_windows w;
	struct eval_data d;
	struct error err = {0};
	uint8_t seen[64] = {0};
	uint64_t targets = 0;

	make_data(&d, count, false);
	must(eval_windows_cut(&w, &d, length, stride, &err), &err);
	for (size_t i = 0; i < w.count; i++) {
		const struct eval_window *x = &w.window[i];

		assert_int_equal(x->begin % stride, 0);
		assert_true(x->count >= 2 && x->count <= length && x->begin + x->count <= count);
		for (size_t t = 0; t < count; t++)
			seen[t] += eval_window_scores(x, &d.documents[0], t);
		assert_true(x->count <= w.longest);
	}
	for (size_t t = 0; t < count; t++) {
		/* without overlap, the first token of each window has nothing before it */
		const bool first = !t || (stride == length && t % stride == 0);

		assert_int_equal(seen[t], !first);
		targets += !first;
	}
	assert_int_equal(w.targets, targets);
	eval_windows_release(&w);
	eval_data_release(&d);
}

static void test_windows__each_token_is_scored_once(void **state)
{
	(void)state;
	for (size_t count = 1; count < 40; count++)
		for (size_t length = 2; length < 12; length++)
			for (size_t stride = 1; stride <= length; stride++)
				check_windows(count, length, stride);
}

static void test_windows__those_without_a_target_are_left_out(void **state)
{
	struct eval_windows w;
	struct eval_data d;
	struct error err = {0};

	(void)state;
	make_data(&d, 20, true);
	must(eval_windows_cut(&w, &d, 8, 8, &err), &err);
	assert_int_equal(w.count, 1);
	assert_int_equal(w.window[0].begin, 16);
	assert_int_equal(w.targets, 1);
	eval_windows_release(&w);
	eval_data_release(&d);
}

static void test_figures__are_those_of_the_formulas(void **state)
{
	const struct eval_score a[] = {{2, 2}, {4, 2}}, b[] = {{2.2, 2}, {4.4, 2}};
	const uint8_t right[] = {1, 1, 0, 1}, fewer[] = {1, 0, 0, 0};
	struct eval_figure f = eval_perplexity(a, 2);

	(void)state;
	assert_true(fabs(f.value - exp(1.5)) < 1e-12);
	/* residuals -1 and 1: sqrt(2 * 2 / 1) / 4 = 0.5; Student's t with one degree of freedom is 12.706 */
	assert_true(fabs(f.half_width - exp(1.5) * 12.706 * 0.5) < 1e-2);
	f = eval_perplexity_difference(a, b, 2);
	assert_true(fabs(f.value - (exp(0.15) - 1)) < 1e-12);
	assert_true(fabs(f.half_width - exp(0.15) * 12.706 * 0.05) < 1e-3);
	f = eval_perplexity_difference(a, a, 2);
	assert_true(f.value == 0 && f.half_width == 0);
	f = eval_share_difference(right, fewer, 4);
	assert_true(f.value == -0.5 && fabs(f.half_width - 3.182 * sqrt(1. / 3 / 4)) < 1e-3);
	f = eval_perplexity(a, 1);
	assert_true(fabs(f.value - exp(1)) < 1e-12 && isinf(f.half_width));
	assert_true(isnan(eval_perplexity(a, 0).value) && isnan(eval_share_difference(right, fewer, 0).value));
	assert_true(isinf(eval_share_difference(right, fewer, 1).half_width));
}

static void test_verdict__follows_the_marks(void **state)
{
	struct eval_score score[] = {{200, 100}, {300, 100}}, worse[2];
	uint8_t all[100], some[100];
	const struct eval_marks marks = {.perplexity = 1, .calls = 2};
	const struct eval_measured reference = {.score = score, .exact = all, .calls = {.rows = 100}};
	struct eval_measured m = {.score = worse, .exact = some};
	struct eval_verdict v;

	(void)state;
	memset(all, 1, sizeof(all));
	memset(some, 1, sizeof(some));
	memcpy(worse, score, sizeof(worse));
	v = eval_judge(&m, &reference, 2, &marks);
	assert_true(v.met && !v.uncertain);
	worse[0].loss += 0.9, worse[1].loss += 0.9; /* 0.9 % */
	some[3] = some[4] = 0;
	v = eval_judge(&m, &reference, 2, &marks);
	assert_true(v.met && v.uncertain); /* two of a hundred answers */
	some[5] = 0;
	v = eval_judge(&m, &reference, 2, &marks);
	assert_true(!v.met && v.perplexity_met && !v.calls_met);
	some[3] = some[4] = some[5] = 1;
	worse[0].loss += 0.2, worse[1].loss += 0.2; /* 1.1 % */
	v = eval_judge(&m, &reference, 2, &marks);
	assert_true(!v.met && !v.perplexity_met && v.calls_met);
	worse[0].loss -= 50; /* better is accepted */
	v = eval_judge(&m, &reference, 2, &marks);
	assert_true(v.met);
	snprintf(m.broken, sizeof(m.broken), "NaN");
	v = eval_judge(&m, &reference, 2, &marks);
	assert_true(!v.met && !v.undecided);
}

/* Questions without an answer are no evidence: not for a pass, and not against a difference. */
static void test_verdict__needs_answers(void **state)
{
	struct eval_score score[] = {{200, 100}, {300, 100}}, worse[] = {{250, 100}, {350, 100}};
	uint8_t all[100], some[100];
	const struct eval_marks marks = {.perplexity = 1, .calls = 2};
	struct eval_measured reference = {.score = score, .exact = all, .calls = {.rows = 100, .refused = 100}};
	struct eval_measured m = {.score = score, .exact = some, .calls = {.rows = 100, .refused = 100}};
	struct eval_verdict v;

	(void)state;
	memset(all, 0, sizeof(all));
	memset(some, 0, sizeof(some));
	v = eval_judge(&m, &reference, 2, &marks);
	assert_true(v.unanswered && v.undecided && !v.met && !v.uncertain && isnan(v.calls_difference.value));
	assert_true(eval_judge(&reference, &reference, 2, &marks).unanswered);
	m.score = worse; /* a mark that is missed fails all the same */
	v = eval_judge(&m, &reference, 2, &marks);
	assert_true(v.unanswered && !v.undecided && !v.met);
	m.score = score;
	reference.calls.refused = 0;
	m.calls.refused = 11;
	assert_true(eval_judge(&m, &reference, 2, &marks).undecided);
	m.calls.refused = 10;
	v = eval_judge(&m, &reference, 2, &marks);
	assert_true(!v.unanswered && v.met);
	memset(all, 1, 90);
	memset(some, 1, 87);
	v = eval_judge(&m, &reference, 2, &marks); /* three of 90 answers */
	assert_true(fabs(v.calls_difference.value + 100 * 3. / 90) < 1e-9 && !v.calls_met);
}

/* Whatever the difference, one window has no interval; what has one is still missed. */
static void test_verdict__one_window_decides_nothing(void **state)
{
	struct eval_score score[] = {{200, 100}}, other[] = {{200.5, 100}};
	uint8_t all[100], some[100];
	const struct eval_marks marks = {.perplexity = 1, .calls = 2};
	struct eval_measured reference = {.score = score, .exact = all};
	struct eval_measured m = {.score = other, .exact = some};
	struct eval_verdict v = eval_judge(&m, &reference, 1, &marks);

	(void)state;
	assert_true(!v.met && v.undecided && !v.uncertain);
	assert_string_equal(eval_verdict_word(&v), "unknown");
	other[0].loss = 300; /* much worse in that window */
	assert_string_equal(eval_verdict_word((v = eval_judge(&m, &reference, 1, &marks), &v)), "unknown");
	memset(all, 1, sizeof(all));
	memset(some, 0, sizeof(some));
	reference.calls.rows = 100;
	assert_string_equal(eval_verdict_word((v = eval_judge(&m, &reference, 1, &marks), &v)), "fail");
	memset(some, 1, sizeof(some));
	assert_string_equal(eval_verdict_word((v = eval_judge(&m, &reference, 1, &marks), &v)), "unknown");
	reference.calls.rows = 1; /* one question beside no window */
	assert_string_equal(eval_verdict_word((v = eval_judge(&m, &reference, 0, &marks), &v)), "unknown");
	v = eval_judge(&reference, &reference, 1, &marks);
	assert_true(v.met && !v.undecided);
}

static void test_precisions__lists_are_read_and_fit_a_device(void **state)
{
	static const char *const bad[][2] = {
		{"fp4", "unknown precision 'fp4'"}, {"", "unknown precision ''"},
		{"file,", "unknown precision ''"},  {"file,f32,file", "file is given twice"},
		{"auto,file", "unknown precision 'auto'"}};
	struct eval_precision_list list;
	enum load_device device = LOAD_AUTO;
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(eval_precisions_read(&list, bad[i][0], &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, bad[i][1]));
		err = (struct error){0};
	}
	must(eval_precisions_read(&list, "auto", &err), &err);
	assert_int_equal(list.count, 0);
	must(eval_precisions_device(&list, &device, &err), &err);
	assert_int_equal(device, LOAD_AUTO);
	must(eval_precisions_read(&list, "fp8-cache,file", &err), &err);
	assert_int_equal(list.count, 2);
	must(eval_precisions_device(&list, &device, &err), &err);
	assert_int_equal(device, LOAD_CPU);
	must(eval_precisions_read(&list, "fp8-cache,fp8", &err), &err);
	assert_int_equal(eval_precisions_device(&list, &device, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "fp8 exists only on a GPU, but --device asks for a CPU"));
	must(eval_precisions_read(&list, "file,bf16", &err), &err);
	device = LOAD_AUTO;
	err = (struct error){0};
	assert_int_equal(eval_precisions_device(&list, &device, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "bf16 exists only on a GPU, but file asks for a CPU"));
	assert_int_equal(eval_precisions_auto(true).at[0], EVAL_BF16);
}

/* What a test measures with: a model and documents of token ids. */
struct bed {
	char model[600];
	struct eval_data data;
	struct eval_windows windows;
	struct eval_task task;
};

static void write_ids(const char *path, const int32_t *ids, const int32_t *lengths, size_t count)
{
	struct text out = {0};
	struct error err = {0};

	for (size_t i = 0; i < count; i++) {
		text_add(&out, "{\"input_ids\": [");
		for (int32_t k = 0; k < lengths[i]; k++)
			text_addf(&out, "%s%d", k ? ", " : "", *ids++);
		text_add(&out, "]}\n");
	}
	must(file_write(path, text_str(&out), out.size, &err), &err);
	text_release(&out);
}

static void open_bed(struct bed *b, const char *name, const char *ids, size_t length, size_t stride)
{
	const struct eval_data_ask ask = {.path = ids, .tokenizer = "no tokenizer is needed"};
	struct error err = {0};

	snprintf(b->model, sizeof(b->model), "%s/tests/data/model/%s", SOURCE_DIR, name);
	must(eval_data_read(&b->data, &ask, &err), &err);
	must(eval_windows_cut(&b->windows, &b->data, length, stride, &err), &err);
	b->task = (struct eval_task){.c = &context,
				     .data = &b->data,
				     .windows = &b->windows,
				     .path = ids,
				     .positions = (int64_t)b->windows.longest,
				     .settled = true};
}

static void close_bed(struct bed *b)
{
	eval_windows_release(&b->windows);
	eval_data_release(&b->data);
}

static void measure(struct bed *b, const char *model, enum eval_precision precision, struct eval_measured *m)
{
	const struct eval_side side = {
		.model = model, .name = "a", .precision = precision, .device = LOAD_CPU};
	struct error err = {0};

	must(eval_measure(m, &b->task, &side, &err), &err);
	assert_string_equal(m->broken, "");
}

/* exp of the mean loss, from the recorded logits. */
static double recorded(const struct safetensors *s, const int32_t *token, const int32_t *length, size_t docs)
{
	const struct tensor *logits = tensor_of(s, "full.logits");
	const float *row = (const float *)(const void *)logits->data;
	double loss = 0;
	size_t count = 0;

	for (size_t d = 0; d < docs; d++)
		for (int32_t i = 0; i < length[d]; i++, token++, row += logits->dim[1]) {
			double sum = 0;

			for (int64_t k = 0; k < logits->dim[1]; k++)
				sum += exp((double)row[k]);
			if (i + 1 == length[d])
				continue;
			loss += log(sum) - (double)row[token[1]];
			count++;
		}
	return exp(loss / (double)count);
}

static void compare_with_transformers(const char *folder, const char *name)
{
	char path[600], ids[PATH_MAX + 16];
	const int32_t *token, *length;
	struct safetensors expected;
	struct eval_measured m[3] = {0};
	struct error err = {0};
	struct bed b;
	size_t docs;
	double due;

	snprintf(path, sizeof(path), "%s/tests/data/model/%s/expected.safetensors", SOURCE_DIR, name);
	snprintf(ids, sizeof(ids), "%s/ids.jsonl", folder);
	must(safetensors_open(&expected, path, &err), &err);
	token = (const int32_t *)(const void *)tensor_of(&expected, "token")->data;
	length = (const int32_t *)(const void *)tensor_of(&expected, "documents")->data;
	docs = (size_t)tensor_of(&expected, "documents")->dim[0];
	write_ids(ids, token, length, docs);
	due = recorded(&expected, token, length, docs);
	open_bed(&b, name, ids, 64, 64);
	measure(&b, b.model, EVAL_F32, &m[0]);
	measure(&b, b.model, EVAL_FILE, &m[1]);
	measure(&b, b.model, EVAL_FP8_CACHE, &m[2]);
	for (int i = 0; i < 3; i++) {
		const double made = eval_perplexity(m[i].score, b.windows.count).value;

		assert_true(fabs(made / due - 1) < (i < 2 ? 1e-4 : 0.05));
		assert_true(i < 2 || made != due);
		assert_true(m[i].memory.used_bytes <= m[i].memory.planned.bytes && m[i].memory.pages_used > 0);
		for (int k = 0; k < MEM_KINDS; k++)
			assert_true(m[i].memory.used[k] <= m[i].memory.planned.kind_peak[k]);
		eval_measured_release(&m[i]);
	}
	close_bed(&b);
	safetensors_release(&expected);
}

static void test_perplexity__is_that_of_transformers(void **state)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		compare_with_transformers(*state, models[i]);
}

struct made {
	int32_t id[64];
	size_t count;
};

static bool take(void *arg, int32_t id, float logprob)
{
	struct made *made = arg;

	(void)logprob;
	made->id[made->count++] = id;
	return true;
}

/* Texts that the model itself makes, by sampling: no other model expects them more, on average. */
static void write_own_texts(const char *model, const char *path)
{
	static int32_t ids[8 * 48];
	static const int32_t lengths[8] = {48, 48, 48, 48, 48, 48, 48, 48};
	struct engine_options options = {.load = {.device = LOAD_CPU, .model = model}};
	struct engine *e;
	struct error err = {0};

	one_text_room(&options.load, 64, 1, 0);
	must(engine_create(&e, &options, &err), &err);
	for (int32_t i = 0; i < 8; i++) {
		struct made made = {.id = {i}, .count = 1};
		const struct one_text text = {.sampling = {.temperature = 0.5f,
							   .top_p = 1,
							   .repetition = 1,
							   .seed = (uint64_t)i},
					      .tokens = 47};
		bool stopped;

		must(one_text(e, &text, made.id, 1, take, &made, &stopped, &err), &err);
		assert_int_equal(made.count, 48);
		memcpy(ids + i * 48, made.id, 48 * sizeof(*ids));
	}
	engine_destroy(&e);
	write_ids(path, ids, lengths, 8);
}

/* A copy of the model whose BF16 weights keep only the upper bits of their fraction, cut towards zero. */
static void write_copy(const char *model, const char *to, uint16_t mask)
{
	static const char *const files[] = {"config.json", "model.safetensors"};
	struct error err = {0};
	char path[PATH_MAX + 64];

	must(file_make_dir(to, &err), &err);
	for (int i = 0; i < 2; i++) {
		uint64_t head = 0;
		size_t size;
		char *data;

		snprintf(path, sizeof(path), "%s/%s", model, files[i]);
		must(file_read(&data, &size, path, 1 << 20, &err), &err);
		if (i)
			memcpy(&head, data, sizeof(head));
		for (size_t at = 8 + (size_t)head; i && at + 1 < size; at += 2) {
			uint16_t number;

			memcpy(&number, data + at, 2);
			number &= mask;
			memcpy(data + at, &number, 2);
		}
		snprintf(path, sizeof(path), "%s/%s", to, files[i]);
		must(file_write(path, data, size, &err), &err);
		free(data);
	}
}

static bool meets_marks(const char *folder, uint16_t mask)
{
	const struct eval_marks marks = {.perplexity = 1, .calls = 2};
	struct eval_measured m[2] = {0};
	char ids[PATH_MAX + 16], copy[PATH_MAX + 16];
	struct eval_verdict v;
	struct bed b;

	snprintf(ids, sizeof(ids), "%s/ids.jsonl", folder);
	snprintf(copy, sizeof(copy), "%s/copy-%x", folder, mask);
	snprintf(b.model, sizeof(b.model), "%s/tests/data/model/qwen2", SOURCE_DIR);
	write_own_texts(b.model, ids);
	write_copy(b.model, copy, mask);
	open_bed(&b, "qwen2", ids, 32, 16);
	measure(&b, b.model, EVAL_FILE, &m[0]);
	measure(&b, copy, EVAL_FILE, &m[1]);
	v = eval_judge(&m[1], &m[0], b.windows.count, &marks);
	print_message("# mask %x: perplexity %g, difference %g +/- %g %%\n", mask, v.perplexity.value,
		      v.perplexity_difference.value, v.perplexity_difference.half_width);
	eval_measured_release(&m[0]);
	eval_measured_release(&m[1]);
	close_bed(&b);
	return v.met;
}

/* Two bits of fraction, cut, as a careless type of few bits would have; and six of seven. */
static void test_perplexity__coarse_weights_miss_the_mark(void **state)
{
	assert_false(meets_marks(*state, 0xfff0 << 1 & 0xffff));
	assert_true(meets_marks(*state, 0xfffe));
}

static void check_refused(const char *folder, const char *text, const char *what)
{
	char path[PATH_MAX + 16];
	const struct eval_data_ask ask = {.path = path, .tokenizer = "nowhere"};
	struct eval_data d;
	struct error err = {0};

	snprintf(path, sizeof(path), "%s/rows", folder);
	must(file_write(path, text, strlen(text), &err), &err);
	assert_int_not_equal(eval_data_read(&d, &ask, &err), STATUS_OK);
	if (!strstr(err.text, what))
		fail_msg("'%s' lacks '%s'", err.text, what);
	eval_data_release(&d);
}

static void test_data__bad_rows_are_named(void **state)
{
	check_refused(*state, "", "nowhere"); /* an empty text needs the tokenizer too */
	check_refused(*state, "[]", "no rows");
	check_refused(*state, "{\"input_ids\": [1]}\n", "nothing to measure");
	check_refused(*state, "{\"input_ids\": 5}\n", "rows:1: input_ids is not an array");
	check_refused(*state, "{\"input_ids\": [1, 2]}\n{\"input_ids\": [1, -2]}\n",
		      "rows:2: input_ids[1] is not a token id");
	check_refused(*state, "{\"input_ids\": [1, 2147483648]}\n", "rows:1: input_ids[1]");
	check_refused(*state, "{\"input_ids\": [1, 2]}\n{\"a\": \n", "rows:2: ");
	check_refused(*state, "{\"other\": 1}\n", "rows:1: ");
	check_refused(*state, "{\"text\": \"a\"}\n", "nowhere");
}

/* Ids that the model does not have are named with their row. */
static void test_measure__ids_outside_the_vocabulary_are_refused(void **state)
{
	static const int32_t ids[] = {1, 2, 3, 40}, lengths[] = {2, 2};
	const struct eval_side side = {.name = "file", .precision = EVAL_FILE, .device = LOAD_CPU};
	struct eval_measured m;
	char path[PATH_MAX + 16];
	struct error err = {0};
	struct eval_side here = side;
	struct bed b;

	snprintf(path, sizeof(path), "%s/ids.jsonl", (const char *)*state);
	write_ids(path, ids, lengths, 2);
	open_bed(&b, "qwen2", path, 64, 64);
	here.model = b.model;
	assert_int_equal(eval_measure(&m, &b.task, &here, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "ids.jsonl:2: token 2 of the prompt is 40"));
	eval_measured_release(&m);
	close_bed(&b);
}

/* A weight of NaN: no error, but no figures either. */
static void test_measure__nan_is_told(void **state)
{
	static const int32_t ids[] = {1, 2}, lengths[] = {2};
	char path[PATH_MAX + 16], copy[PATH_MAX + 16], model[600], file[PATH_MAX + 64];
	struct eval_side side = {.name = "file", .model = copy, .precision = EVAL_FILE, .device = LOAD_CPU};
	struct eval_measured m;
	struct error err = {0};
	struct bed b;
	size_t size;
	char *data;

	snprintf(path, sizeof(path), "%s/ids.jsonl", (const char *)*state);
	snprintf(copy, sizeof(copy), "%s/nan", (const char *)*state);
	snprintf(model, sizeof(model), "%s/tests/data/model/qwen2", SOURCE_DIR);
	snprintf(file, sizeof(file), "%s/model.safetensors", copy);
	write_ids(path, ids, lengths, 1);
	write_copy(model, copy, 0xffff);
	must(file_read(&data, &size, file, 1 << 20, &err), &err);
	memset(data + size - 2 * 40 * 24, 0x7f, 2 * 40 * 24); /* huge numbers in the last tensor */
	must(file_write(file, data, size, &err), &err);
	free(data);
	open_bed(&b, "qwen2", path, 64, 64);
	must(eval_measure(&m, &b.task, &side, &err), &err);
	assert_non_null(strstr(m.broken, "ids.jsonl:1: NaN or infinity in the logits"));
	eval_measured_release(&m);
	close_bed(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows__each_token_is_scored_once),
		cmocka_unit_test(test_windows__those_without_a_target_are_left_out),
		cmocka_unit_test(test_figures__are_those_of_the_formulas),
		cmocka_unit_test(test_verdict__follows_the_marks),
		cmocka_unit_test(test_verdict__needs_answers),
		cmocka_unit_test(test_verdict__one_window_decides_nothing),
		cmocka_unit_test(test_precisions__lists_are_read_and_fit_a_device),
		scratch_test(test_perplexity__is_that_of_transformers),
		scratch_test(test_perplexity__coarse_weights_miss_the_mark),
		scratch_test(test_data__bad_rows_are_named),
		scratch_test(test_measure__ids_outside_the_vocabulary_are_refused),
		scratch_test(test_measure__nan_is_told),
	};

	return cmocka_run_group_tests_name("eval_precisions", tests, NULL, NULL);
}
