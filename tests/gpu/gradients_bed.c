/* SPDX-License-Identifier: Apache-2.0 */
#include "gradients_bed.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/math/random.h"
#include "model/tensor/dtype.h"
#include "model/files/random_weights.h"
#include "model/tensor/matrix.h"

enum { SEED = 1, THREADS_MOST = 64, POISON_PIECE = 1 << 20 };
#define POISON 0xff /* of each byte: NaN in F32 and in BF16 */

enum status gradient_shape(struct shape *s, const struct gradient_case *c, struct error *err)
{
	enum status st = shape_by_name(s, c->shape, err);

	if (c->layers)
		s->layers = c->layers;
	if (c->vocab)
		s->vocab = c->vocab;
	return st;
}

static int64_t tokens_of(const struct gradient_case *c)
{
	int64_t tokens = 0;

	for (int i = 0; c->docs[i]; i++)
		tokens += c->docs[i];
	return tokens;
}

enum status gradient_rows_make(struct gradient_rows *r, const struct gradient_case *c, int batch,
			       int64_t vocab, struct error *err)
{
	const int64_t tokens = tokens_of(c);
	const uint64_t seed = SEED + 100 + (uint64_t)batch;

	*r = (struct gradient_rows){0};
	r->number = calloc(4 * (size_t)tokens + BED_DOCS + 1, sizeof(*r->number));
	if (!r->number)
		return error_errno(err, ENOMEM, "a batch of %lld rows", (long long)tokens);
	r->token = r->number;
	r->position = r->token + tokens;
	r->target = r->position + tokens;
	r->trained = r->target + tokens;
	r->start = r->trained + tokens;
	for (int d = 0; c->docs[d]; d++) {
		for (int i = 0; i < c->docs[d]; i++) {
			const int64_t at = r->b.tokens++;

			r->token[at] = (int32_t)(random_u32(seed, 0, (uint64_t)at) % (uint32_t)vocab);
			r->position[at] = i;
			r->target[at] =
				random_u32(seed, 1, (uint64_t)at) & 3
					? (int32_t)(random_u32(seed, 2, (uint64_t)at) % (uint32_t)vocab)
					: BATCH_UNTRAINED;
			if (r->target[at] >= 0)
				r->trained[r->b.targets++] = (int32_t)at;
		}
		r->start[++r->b.docs] = (int32_t)r->b.tokens;
		r->b.doc_len_max = c->docs[d] > r->b.doc_len_max ? c->docs[d] : r->b.doc_len_max;
	}
	r->b.token = r->token;
	r->b.position = r->position;
	r->b.target = r->target;
	r->b.trained = r->trained;
	r->b.doc_start = r->start;
	return STATUS_OK;
}

void gradient_rows_release(struct gradient_rows *r)
{
	free(r->number);
	*r = (struct gradient_rows){0};
}

static enum status configure(struct config *config, const struct gradient_case *c,
			     const struct gradient_way *way, struct error *err)
{
	char text[512], lora[64] = "";

	if (c->rank)
		snprintf(lora, sizeof(lora), "lora: {r: %d, alpha: %d}\n", c->rank, c->alpha);
	snprintf(text, sizeof(text),
		 "model: {path: /m}\n%sdata: {train: /t, max_seq_length: %lld}\n"
		 "training: {device: %s, per_device_train_batch_size: 1, gradient_accumulation_steps: %d, "
		 "learning_rate: %g%s%s}\n",
		 lora, (long long)tokens_of(c), way->cpu ? "cpu" : "gpu", way->alone ? 2 : 1,
		 c->rate > 0 ? c->rate : 1e-3, c->rank ? "" : ", full_finetuning: true",
		 way->training ? way->training : "");
	return config_parse(config, c->name, text, strlen(text), err);
}

/* F32 has the numbers that BF16 keeps. */
static enum status fill_f32(struct gradient_bed *b, const struct named *n, const struct mat *to,
			    struct error *err)
{
	float *row = malloc((size_t)n->cols * sizeof(*row));
	uint16_t *rounded = malloc((size_t)n->cols * sizeof(*rounded));
	enum status st = STATUS_OK;

	if (!row || !rounded)
		st = error_errno(err, ENOMEM, "a row of %s", n->hf);
	for (int64_t i = 0; !st && i < n->rows; i++) {
		random_weights(n, SEED, i, 1, row);
		dtype_pack(DTYPE_BF16, row, rounded, (size_t)n->cols);
		dtype_unpack(DTYPE_BF16, rounded, row, (size_t)n->cols);
		st = b->s.back.ops->put(&b->s.back, mat_rows(to, i, 1), row, err);
	}
	free(row);
	free(rounded);
	return st;
}

static enum status fill(struct gradient_bed *b, struct error *err)
{
	struct backend *back = &b->s.back;
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	size_t count = 0;
	enum status st = STATUS_OK;

	if (b->s.model->fp8) /* what is quantized, from the same numbers */
		st = model_load(b->s.model, back, &(struct model_source){.random = true, .seed = SEED}, err);
	if (!st)
		st = model_weight_slots(b->s.model, &slots, &names, &count, err);

	for (size_t i = 0; !st && i < count; i++) {
		struct random_fill f;
		struct named n;

		if (!names_find(&n, &b->s.model->shape, slots[i].name))
			st = error_set(err, STATUS_BUG, "a model of this shape has no %s", slots[i].name);
		f = random_weights_fill(&n, SEED);
		if (!st)
			st = slots[i].to.dtype == DTYPE_F32 ? fill_f32(b, &n, &slots[i].to, err)
							    : back->ops->random(back, slots[i].to, &f, err);
	}
	free(slots);
	free(names);
	if (!st && b->c->rank)
		st = model_init_adapter(b->s.model, back, SEED, err);
	return st ? st : model_loaded(b->s.model, back, err);
}

/* Fills the memory of passes, which may be the gradient's, with NaN. So a read before the first write shows.
 */
static enum status poison(struct gradient_bed *b, struct error *err)
{
	const struct arena *a = b->s.back.arena;
	unsigned char *piece = malloc(POISON_PIECE);
	enum status st = STATUS_OK;

	if (!piece)
		return error_errno(err, ENOMEM, "a piece of NaN");
	memset(piece, POISON, POISON_PIECE);
	for (size_t at = a->used; !st && at < a->size; at += POISON_PIECE) {
		struct mat to = {.data = a->base + at, .rows = 1, .dtype = DTYPE_U8};

		to.cols = to.ld = (int64_t)(a->size - at < POISON_PIECE ? a->size - at : POISON_PIECE);
		st = b->s.back.ops->put(&b->s.back, to, piece, err);
	}
	free(piece);
	return st;
}

static unsigned threads(void)
{
	const char *told = getenv("GRADIENTS_THREADS");
	const long n = told ? strtol(told, NULL, 10) : 2;

	return n >= 1 && n <= THREADS_MOST ? (unsigned)n : 2;
}

enum status gradient_bed_open(struct gradient_bed *b, const struct gradient_case *c,
			      const struct gradient_way *way, struct error *err)
{
	struct config config;
	struct shape shape;
	enum status st;

	*b = (struct gradient_bed){.c = c, .way = way};
	st = configure(&config, c, way, err);
	if (!st)
		st = gradient_shape(&shape, c, err);
	if (!st)
		st = stepper_create(&b->s, &shape, &config, threads(), err);
	b->s.begun = true; /* what is checked is what a run's steps take, not its first one alone */
	config_release(&config);
	if (st)
		return st;
	b->gradient = malloc(b->s.model->params.length * sizeof(*b->gradient));
	if (!b->gradient)
		return error_errno(err, ENOMEM, "a gradient");
	return fill(b, err);
}

void gradient_bed_close(struct gradient_bed *b)
{
	free(b->gradient);
	stepper_release(&b->s);
	*b = (struct gradient_bed){0};
}

enum status gradient_bed_put(struct gradient_bed *b, const float *master, struct error *err)
{
	const enum status st = b->s.back.ops->put(&b->s.back, b->s.model->params.master, master, err);

	return st ? st : model_refresh(b->s.model, &b->s.back, err);
}

/* A document of them by itself. */
static enum status run_alone(struct gradient_bed *b, const struct gradient_rows *rows, int64_t doc,
			     struct error *err)
{
	const int32_t first = rows->start[doc], length = rows->start[doc + 1] - first, start[] = {0, length};
	struct step_part took = {0};
	struct batch one = {.token = rows->token + first,
			    .position = rows->position + first,
			    .target = rows->target + first,
			    .doc_start = start,
			    .tokens = length,
			    .docs = 1,
			    .doc_len_max = length};
	int32_t *trained = calloc((size_t)length, sizeof(*trained));
	enum status st;

	if (!trained)
		return error_errno(err, ENOMEM, "a document");
	for (int32_t i = 0; i < length; i++)
		if (one.target[i] >= 0)
			trained[one.targets++] = i;
	one.trained = trained;
	st = stepper_micro(&b->s, &one, 0, (uint64_t)rows->b.targets, &took, err);
	free(trained);
	return st;
}

static enum status run_rows(struct gradient_bed *b, const struct gradient_rows *rows, struct error *err)
{
	struct step_part took = {0};
	enum status st = STATUS_OK;

	if (!b->way->alone)
		return stepper_micro(&b->s, &rows->b, 0, (uint64_t)rows->b.targets, &took, err);
	for (int64_t doc = 0; !st && doc < rows->b.docs; doc++)
		st = run_alone(b, rows, doc, err);
	return st;
}

enum status gradient_bed_run(struct gradient_bed *b, const struct gradient_rows *rows, struct error *err)
{
	double sums[SUMS] = {0};
	enum status st = poison(b, err);

	if (!st)
		st = stepper_begin(&b->s, err);
	if (!st)
		st = run_rows(b, rows, err);
	if (!st)
		st = b->s.back.ops->get(&b->s.back, b->s.model->params.grad, b->gradient, err);
	if (!st)
		st = b->s.back.ops->get(&b->s.back, b->s.sums, sums, err);
	b->loss = sums[SUM_LOSS] / (double)rows->b.targets;
	return st;
}

enum status gradient_bed_step(struct gradient_bed *b, float **master, struct error *err)
{
	const struct params *p = &b->s.model->params;
	float *x = malloc(p->length * sizeof(*x));
	enum status st;

	*master = x;
	if (!x)
		return error_errno(err, ENOMEM, "parameters");
	st = b->s.back.ops->get(&b->s.back, p->master, x, err);
	for (size_t i = 0; !st && i < p->length; i++)
		x[i] -= (float)(b->gradient[i] > 0 ? b->c->rate : b->gradient[i] < 0 ? -b->c->rate : 0);
	return st;
}
