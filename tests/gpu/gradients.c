/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every gradient of a model on the GPU beside the same in F32 on the CPU, held to what PyTorch's BF16 is off
 * by. gradients list gradients write CASE DIR                        model, adapter and rows for
 * tests/oracles/gradient_errors.py; no GPU gradients test CASE [--errors FILE] [WAY...]    FILE: what that
 * script printed; ways: extended separate own fp32 .. An adapter's B is what AdamW's first step made of it,
 * so that its part of each sum is as small as it is in training. Exit 1: a gradient is further off than GATE
 * times PyTorch's, no number, or all zero; 77: no GPU. GRADIENTS_THREADS: the CPU's (2). On a GPU machine it
 * is run with the bundle's lib beside it.
 */
#include "gradients_bed.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include "core/file/file.h"
#include "kernel/fatbin.h"
#include "model/files/model_folder.h"
#include "model/files/random_weights.h"
#include "train/checkpoint/export.h"

enum { BATCHES_MOST = 8, EXIT_SKIP = 77, WEIGHTS_SEED = 1 };
#define GATE 1.5
#define ERROR_MOST 0.05 /* where PyTorch's are not given */
#define PACKED 1, 2, 7, 3, 64, 19, 33
#define LENGTHS 1, 63, 64, 65, 127, 128, 129, 192

/* clang-format off */
const struct gradient_case gradient_cases[] = {
	{"tiny", "tiny", 0, 0, 8, 16, 6, 1e-3, {PACKED}, "Qwen2, biases, heads that the plain attention takes"},
	{"tiny-16", "tiny", 0, 0, 8, 16, 6, 1e-3, {48, 64, 16}, "the same, rows of a multiple of 16, which FP8 needs"},
	{"tiny-qwen3", "tiny-qwen3", 0, 0, 8, 16, 6, 1e-3, {PACKED}, "norms of heads, tied"},
	{"tiny-llama", "tiny-llama", 0, 0, 8, 16, 6, 1e-3, {PACKED}, "Llama"},
	{"tiny-all", "tiny", 0, 0, 0, 0, 6, 0, {PACKED}, "every parameter"},
	{"tiny-qwen3-all", "tiny-qwen3", 0, 0, 0, 0, 6, 0, {PACKED}, "the same, norms of heads, tied"},
	{"smollm2-all", "smollm2-135m", 0, 0, 0, 0, 1, 0, {200, 57, 130, 125}, "every parameter of SmolLM2-135M's shape"},
	{"smollm2", "smollm2-135m", 0, 0, 16, 32, 2, 1e-3, {200, 57, 130, 125}, "SmolLM2-135M's shape, packed"},
	{"smollm2-equal", "smollm2-135m", 0, 0, 16, 32, 2, 1e-3, {256, 256}, "documents of one length: the library's attention"},
	{"lengths-64", "smollm2-135m", 2, 512, 16, 32, 1, 1e-3, {LENGTHS}, "attention's lengths, heads of 64"},
	{"lengths-128", "qwen2-1.5b", 2, 512, 16, 32, 1, 1e-3, {LENGTHS}, "the same, heads of 128"},
	{"long-64", "smollm2-135m", 2, 512, 16, 32, 1, 1e-3, {2112}, "one document of 2112"},
	{"long-128", "qwen2-1.5b", 2, 512, 16, 32, 1, 1e-3, {2112}, "the same, heads of 128"},
	{"wide", "qwen2-7b", 2, 1024, 64, 128, 1, 1e-3, {512}, "two layers of Qwen2-7B"},
	{0},
};
static const struct gradient_way reference = {"F32", NULL, true, false, 0};
static const struct gradient_way ways[] = {
	{"extended", "", false, false, 0},
	{"separate", ", adapters: separate", false, false, 0},
	{"own", ", attention: own", false, false, 0},
	{"deterministic", ", deterministic: true", false, false, 0},
	{"cudnn", ", attention: cudnn", false, false, 0},
	{"cheap", ", recompute: cheap", false, false, 0},
	{"full", ", recompute: full", false, false, 0},
	{"fp32", ", precision: fp32", false, false, 2e-4},
	{"tf32", ", precision: tf32", false, false, 2e-2}, /* factors of 11 bits; BF16's have 8 */
	{"fp8", ", precision: fp8", false, false, 0.142}, /* a cosine of 0.99 */
	{"fp8-full", ", precision: fp8, recompute: full", false, false, 0.142},
	{"plain", ", attention: plain", false, false, 0},
	{"alone", "", false, true, 0}, /* packed = unpacked */
};
/* clang-format on */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What the ways are held to. */
struct truth {
	struct gradient_bed bed;
	struct gradient_rows rows[BATCHES_MOST];
	float *master, *gradient[BATCHES_MOST];
	double loss_first, loss[BATCHES_MOST]; /* the first batch's with B 0; each one's behind the step */
	json_t *torch;			       /* PyTorch's errors; NULL: not given */
};

static void truth_release(struct truth *t)
{
	for (int i = 0; i < BATCHES_MOST; i++) {
		gradient_rows_release(&t->rows[i]);
		free(t->gradient[i]);
	}
	free(t->master);
	gradient_bed_close(&t->bed);
	json_decref(t->torch);
}

static enum status truth_batch(struct truth *t, int batch, struct error *err)
{
	const size_t size = t->bed.s.model->params.length * sizeof(float);
	enum status st = gradient_bed_run(&t->bed, &t->rows[batch], err);

	t->loss[batch] = t->bed.loss;
	t->gradient[batch] = malloc(size);
	if (!st && !t->gradient[batch])
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a gradient");
	if (!st)
		memcpy(t->gradient[batch], t->bed.gradient, size);
	return st;
}

/* The step from B 0 by the first batch; `batches`: how many gradients behind it. */
static enum status truth_make(struct truth *t, const struct gradient_case *c, int batches, struct error *err)
{
	enum status st = gradient_bed_open(&t->bed, c, &reference, err);

	for (int i = 0; !st && i < c->batches; i++)
		st = gradient_rows_make(&t->rows[i], c, i, t->bed.s.model->shape.vocab, err);
	if (!st)
		st = gradient_bed_run(&t->bed, &t->rows[0], err);
	t->loss_first = t->bed.loss;
	if (!st)
		st = gradient_bed_step(&t->bed, &t->master, err);
	if (!st && c->rate > 0)
		st = gradient_bed_put(&t->bed, t->master, err);
	for (int i = 0; !st && i < batches; i++)
		st = truth_batch(t, i, err);
	return st;
}

/* What a way is off by, in one parameter. */
struct off {
	double error, torch; /* of the reference's norm, over all batches; torch 0: not known */
};

static enum status off_of(struct off *o, const struct truth *t, float *const *found, int param,
			  struct error *err)
{
	const struct param *p = &t->bed.s.model->params.table[param];
	const json_t *torch = json_object_get(json_object_get(t->torch, "error"), p->name);
	double apart = 0, norm = 0, ours = 0;

	for (int b = 0; b < t->bed.c->batches; b++)
		for (int64_t i = 0; i < p->rows * p->cols; i++) {
			const double due = (double)t->gradient[b][p->offset + (size_t)i];
			const double is = (double)found[b][p->offset + (size_t)i];

			apart += (is - due) * (is - due);
			norm += due * due;
			ours += is * is;
		}
	*o = (struct off){norm > 0 ? sqrt(apart / norm) : 0, torch ? json_number_value(torch) : 0};
	if (t->torch && !torch)
		return error_set(err, STATUS_BAD_INPUT, "PyTorch's errors have none of %s", p->name);
	if (!isfinite(ours))
		return error_set(err, STATUS_MISMATCH, "%s: its gradient is no number", p->name);
	if (ours == 0 && norm > 0)
		return error_set(err, STATUS_MISMATCH, "%s: its gradient is 0", p->name);
	return STATUS_OK;
}

/* Everything at once, and the parameter that is furthest beyond PyTorch's. */
struct summary {
	double error, torch, worst;
	const char *worst_name;
	int beyond, params;
};

/* The largest error that a gradient may have. */
static double most_of(const struct truth *t, const struct gradient_way *way, double torch)
{
	return way->error_most > 0 ? way->error_most : t->torch ? GATE * torch : ERROR_MOST;
}

static enum status summarise(struct summary *s, const struct truth *t, const struct gradient_way *way,
			     float *const *found, struct error *err)
{
	const struct params *p = &t->bed.s.model->params;
	double squares = 0, torch = 0;
	enum status st = STATUS_OK;

	*s = (struct summary){.params = p->count};
	for (int i = 0; !st && i < p->count; i++) {
		struct off o;

		st = off_of(&o, t, found, i, err);
		squares += o.error * o.error;
		torch += o.torch * o.torch;
		s->beyond += !(o.error <= most_of(t, way, o.torch));
		if (!s->worst_name || (o.torch > 0 ? o.error / o.torch : o.error) > s->worst) {
			s->worst = o.torch > 0 ? o.error / o.torch : o.error;
			s->worst_name = p->table[i].name;
		}
	}
	s->error = sqrt(squares / p->count);
	s->torch = sqrt(torch / p->count);
	return st;
}

static double torch_number(const struct truth *t, const char *key)
{
	return json_number_value(json_object_get(t->torch, key));
}

static void show(const struct truth *t, const struct gradient_way *way, const struct summary *s,
		 double loss_first, double loss)
{
	printf("%s %s: errors of %d gradients, root mean square %.3g %%", t->bed.c->name, way->name,
	       s->params, 100 * s->error);
	if (way->error_most > 0)
		printf(", %d beyond %g %%", s->beyond, 100 * way->error_most);
	else if (t->torch)
		printf(" (PyTorch's BF16 %.3g %%), at most %.2f of its own (%s), %d beyond %g",
		       100 * s->torch, s->worst, s->worst_name, s->beyond, GATE);
	else
		printf(", at most %.3g %% (%s), %d beyond %g %%", 100 * s->worst, s->worst_name, s->beyond,
		       100 * ERROR_MOST);
	if (t->bed.c->rate <= 0) {
		printf("; loss %.5f, F32's %.5f\n", loss, t->loss[0]);
		fflush(stdout);
		return;
	}
	printf("; loss %.5f to %.5f, a fall of %.4f of F32's", loss_first, loss,
	       (loss_first - loss) / (t->loss_first - t->loss[0]));
	if (t->torch)
		printf(" (PyTorch's BF16 %.4f)", (torch_number(t, "loss_first") - torch_number(t, "loss")) /
							 (t->loss_first - t->loss[0]));
	printf("\n");
	fflush(stdout);
}

static enum status found_batch(struct gradient_bed *b, const struct gradient_rows *rows, float **out,
			       struct error *err)
{
	const size_t size = b->s.model->params.length * sizeof(float);
	enum status st = gradient_bed_run(b, rows, err);

	*out = malloc(size);
	if (!*out)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a gradient");
	memcpy(*out, b->gradient, size);
	return st;
}

static enum status test_way(const struct truth *t, const struct gradient_way *way, bool *failed,
			    struct error *err)
{
	float *found[BATCHES_MOST] = {0};
	struct gradient_bed bed;
	struct summary s;
	double loss_first = 0, loss = 0;
	enum status st = gradient_bed_open(&bed, t->bed.c, way, err);

	if (!st)
		st = gradient_bed_run(&bed, &t->rows[0], err);
	loss_first = bed.loss;
	if (!st && t->bed.c->rate > 0)
		st = gradient_bed_put(&bed, t->master, err);
	for (int i = 0; !st && i < t->bed.c->batches; i++) {
		st = found_batch(&bed, &t->rows[i], &found[i], err);
		if (i == 0)
			loss = bed.loss;
	}
	if (!st)
		st = summarise(&s, t, way, found, err);
	if (!st) {
		show(t, way, &s, loss_first, loss);
		*failed |= s.beyond > 0;
	}
	for (int i = 0; i < BATCHES_MOST; i++)
		free(found[i]);
	gradient_bed_close(&bed);
	return st;
}

static bool wanted(const char *way, int count, char **names)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], way))
			return true;
	return count == 0 && (!strcmp(way, "extended") || !strcmp(way, "separate"));
}

/* PyTorch's F32 has the CPU's losses: the same model, adapter and rows were looked at. */
static enum status check_torch(const struct truth *t, struct error *err)
{
	const double first = torch_number(t, "f32_loss_first"), loss = torch_number(t, "f32_loss");

	if (!t->torch ||
	    (fabs(first - t->loss_first) < 1e-4 * first && fabs(loss - t->loss[0]) < 1e-4 * loss))
		return STATUS_OK;
	return error_set(err, STATUS_MISMATCH, "PyTorch's F32 has losses %.6f, %.6f, the CPU %.6f, %.6f",
			 first, loss, t->loss_first, t->loss[0]);
}

static enum status test(const struct gradient_case *c, const char *errors, int count, char **names,
			bool *failed, struct error *err)
{
	struct truth t = {0};
	json_error_t why;
	enum status st = STATUS_OK;

	if (errors && !(t.torch = json_load_file(errors, 0, &why)))
		return error_set(err, STATUS_BAD_INPUT, "%s: %s", errors, why.text);
	st = truth_make(&t, c, c->batches, err);
	if (!st)
		st = check_torch(&t, err);
	for (size_t i = 0; !st && i < COUNT(ways); i++)
		if (wanted(ways[i].name, count, names))
			st = test_way(&t, &ways[i], failed, err);
	truth_release(&t);
	return st;
}

static enum status random_rows(void *arg, const struct named *n, int64_t row, int64_t rows, float *out,
			       struct error *err)
{
	(void)arg, (void)err;
	random_weights(n, WEIGHTS_SEED, row, rows, out);
	return STATUS_OK;
}

static json_t *list_of(const int32_t *number, int64_t count)
{
	json_t *list = json_array();

	for (int64_t i = 0; i < count; i++)
		json_array_append_new(list, json_integer(number[i]));
	return list;
}

static enum status write_rows(const struct truth *t, const char *dir, struct error *err)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/rows.jsonl", dir);
	f = fopen(path, "w");
	if (!f)
		return error_errno(err, errno, "%s", path);
	for (int i = 0; i < t->bed.c->batches; i++) {
		const struct batch *b = &t->rows[i].b;
		json_t *o = json_pack("{s:s,s:o,s:o,s:o}", "case", t->bed.c->name, "start",
				      list_of(b->doc_start, b->docs + 1), "token",
				      list_of(b->token, b->tokens), "target", list_of(b->target, b->tokens));

		json_dumpf(o, f, JSON_COMPACT);
		fputc('\n', f);
		json_decref(o);
	}
	return fclose(f) ? error_errno(err, errno, "%s", path) : STATUS_OK;
}

static enum status write_case(const struct gradient_case *c, const char *dir, struct error *err)
{
	struct truth t = {0};
	char path[4096];
	enum status st = truth_make(&t, c, 0, err);
	const struct folder_options o = {.shape = &t.bed.s.model->shape,
					 .dtype = DTYPE_BF16,
					 .shard_bytes = 5000000000u,
					 .rows = random_rows};

	if (!st)
		st = file_make_dir(dir, err);
	snprintf(path, sizeof(path), "%s/model", dir);
	if (!st)
		st = folder_write(path, &o, err);
	snprintf(path, sizeof(path), "%s/adapter", dir);
	if (!st && c->rank)
		st = export_adapter(path, t.bed.s.model, &t.bed.s.model->params.master, false, err);
	if (!st)
		st = write_rows(&t, dir, err);
	truth_release(&t);
	return st;
}

static const struct gradient_case *find(const char *name)
{
	const struct gradient_case *c = gradient_cases;

	while (c->name && strcmp(c->name, name))
		c++;
	return c->name ? c : NULL;
}

static int usage(void)
{
	fprintf(stderr, "usage: gradients list | write CASE DIR | test CASE [--errors FILE] [WAY...]\n");
	return 64;
}

int main(int argc, char **argv)
{
	const struct gradient_case *c = argc > 2 ? find(argv[2]) : NULL;
	const bool held = argc > 4 && !strcmp(argv[3], "--errors");
	struct error err = {0};
	bool failed = false;
	enum status st;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (c = gradient_cases; c->name; c++)
			printf("%s\t%s\n", c->name, c->why);
		return 0;
	}
	if (!c)
		return usage();
	if (argc == 4 && !strcmp(argv[1], "write"))
		st = write_case(c, argv[3], &err);
	else if (!strcmp(argv[1], "test"))
		st = test(c, held ? argv[4] : NULL, argc - (held ? 5 : 3), argv + (held ? 5 : 3), &failed,
			  &err);
	else
		return usage();
	if (st)
		fprintf(stderr, "gradients: %s\n", err.text);
	if (st == STATUS_UNAVAILABLE)
		return EXIT_SKIP;
	return st || failed ? 1 : 0;
}
