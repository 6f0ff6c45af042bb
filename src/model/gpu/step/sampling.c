/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling by assay's kernels (kernel/step/sample.h). The lists of a call go through pinned memory, a turn of
 * its own each, on a stream of their own: they are usually on the device before the logits are. The device
 * has one place for them, so a copy waits for the sampling before.
 */
#include <math.h>
#include <stdlib.h>
#include "kernel/step/sample.h"
#include "model/gpu/internal.h"
#include "model/tensor/dtype.h"

enum { TURNS = 4, COUNT_THREADS = 1024 };

static_assert((int)SAMPLE_RESULT_WORDS == (int)STEP_SAMPLE_RESULT_WORDS &&
		      (int)SAMPLE_TOPS == (int)STEP_SAMPLE_TOPS,
	      "struct sample_result as the kernels write it");
static_assert(sizeof(struct sample_row) == offsetof(struct step_sample_row, arrived) &&
		      offsetof(struct sample_row, seed) == offsetof(struct step_sample_row, seed) &&
		      offsetof(struct sample_row, place) == offsetof(struct step_sample_row, place),
	      "struct sample_row as the kernels read it");
static_assert(sizeof(struct sample_bias) == sizeof(struct step_sample_bias), "struct sample_bias likewise");

struct turn {
	uint8_t *host; /* pinned */
	uint64_t room;
	struct gpu_event *copied;
	bool used; /* the event was recorded */
};

struct sample_turns {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct gpu_event *sampled; /* end of the last sampling */
	bool any;		   /* it was recorded */
	struct turn turn[TURNS];
	unsigned next;
};

void sample_turns_release(struct sample_turns **out)
{
	struct sample_turns *s = *out;

	if (!s)
		return;
	if (s->stream)
		gpu_stream_wait(s->stream, NULL); /* copies may still read from the turns */
	for (int i = 0; i < TURNS; i++) {
		void *host = s->turn[i].host;

		gpu_event_destroy(&s->turn[i].copied);
		gpu_host_free(s->device, &host);
	}
	gpu_event_destroy(&s->sampled);
	gpu_stream_destroy(&s->stream);
	free(s);
	*out = NULL;
}

static enum status create(struct sample_turns **out, struct gpu_device *d, struct error *err)
{
	struct sample_turns *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for sampling");
	s->device = d;
	st = gpu_stream_create(d, &s->stream, err);
	if (!st)
		st = gpu_event_create(d, &s->sampled, err);
	for (int i = 0; !st && i < TURNS; i++)
		st = gpu_event_create(d, &s->turn[i].copied, err);
	if (st)
		sample_turns_release(&s);
	*out = s;
	return st;
}

/* -- checks -- */

static bool row_is_within(const struct sample *s, const struct sample_row *r)
{
	bool good = r->temperature >= 0 && isfinite(r->temperature) && r->given < s->vocab &&
		    r->place < s->last.cols &&
		    (!r->counted || (r->place >= 0 && r->place < s->counts.rows)) &&
		    r->logprobs <= SAMPLE_TOPS && r->mask < s->lists.masks && r->biases >= 0 &&
		    r->biases <= STEP_SAMPLE_BIASES && r->bias_begin >= 0 &&
		    r->bias_begin + (int64_t)r->biases <= s->lists.biases;

	for (int32_t i = 0; good && i < r->biases; i++)
		good = s->lists.bias[r->bias_begin + i].id >= 0 &&
		       s->lists.bias[r->bias_begin + i].id < s->vocab;
	return good;
}

static enum status check(const struct sample *s, const struct sampling_places *p, struct error *err)
{
	const struct paged_limits *most = &s->room->limits;

	if (s->lists.rows > most->outputs || s->vocab > most->vocab || s->lists.rows > s->results.rows ||
	    s->lists.biases > p->biases || (s->lists.masks && s->lists.mask_words < (s->vocab + 31) / 32) ||
	    s->lists.masks > most->outputs)
		return error_set(
			err, STATUS_BUG,
			"a sample of %lld rows of %lld logits with %lld biases and %lld masks, but there is "
			"room for %lld rows of %lld with %lld and %lld",
			(long long)s->lists.rows, (long long)s->vocab, (long long)s->lists.biases,
			(long long)s->lists.masks, (long long)most->outputs, (long long)most->vocab,
			(long long)p->biases, (long long)most->outputs);
	if (s->logits.dtype != DTYPE_BF16 && s->logits.dtype != DTYPE_F32)
		return error_set(err, STATUS_UNSUPPORTED,
				 "a GPU samples from logits in BF16 or F32, not in %s",
				 dtype_name(s->logits.dtype));
	for (int64_t i = 0; i < s->lists.rows; i++)
		if (!row_is_within(s, &s->lists.row[i]))
			return error_set(err, STATUS_BUG, "row %lld of a sample is out of its lists",
					 (long long)i);
	return STATUS_OK;
}

/* -- lists -- */

/* How the lists lie in pinned memory: rows, biases, masks. */
struct parcel {
	uint64_t rows, biases, masks; /* bytes */
};

static struct parcel parcel_of(const struct sample_lists *l, int64_t words)
{
	return (struct parcel){
		.rows = (uint64_t)l->rows * sizeof(struct step_sample_row),
		.biases = (uint64_t)l->biases * sizeof(struct sample_bias),
		.masks = (uint64_t)(l->masks * words) * sizeof(uint32_t),
	};
}

static void fill(uint8_t *host, const struct sample_lists *l, const struct parcel *p, int64_t words)
{
	struct step_sample_row *row = (struct step_sample_row *)(void *)host;

	for (int64_t i = 0; i < l->rows; i++) {
		row[i] = (struct step_sample_row){0};
		memcpy(&row[i], &l->row[i], sizeof(l->row[i]));
	}
	if (p->biases)
		memcpy(host + p->rows, l->bias, p->biases);
	for (int64_t i = 0; i < l->masks; i++)
		memcpy(host + p->rows + p->biases + (uint64_t)(i * words) * sizeof(uint32_t),
		       l->mask + i * l->mask_words, (size_t)words * sizeof(uint32_t));
}

/* Waits until the turn's memory is free, and makes it large enough. */
static enum status prepare(struct sample_turns *s, struct turn *t, uint64_t bytes, struct error *err)
{
	void *host = t->host;
	enum status st = t->used ? gpu_event_wait(t->copied, err) : STATUS_OK;

	t->used = false;
	if (st || t->room >= bytes)
		return st;
	gpu_host_free(s->device, &host);
	t->room = 0;
	st = gpu_host_alloc(s->device, &host, bytes, err);
	t->host = st ? NULL : host;
	t->room = st ? 0 : bytes;
	return st;
}

static enum status copy_part(struct sample_turns *s, gpu_ptr to, const uint8_t *from, uint64_t bytes,
			     struct error *err)
{
	return bytes ? gpu_stream_copy_to(s->stream, to, from, bytes, err) : STATUS_OK;
}

/* Copies the lists on the stream of the lists; the main stream waits for them. */
static enum status put_lists(struct gpu_state *g, const struct sample *call,
			     const struct sampling_places *places, struct error *err)
{
	struct sample_turns *s = g->sampling;
	struct turn *t = &s->turn[s->next++ % TURNS];
	const int64_t words = (call->vocab + 31) / 32;
	const struct parcel p = parcel_of(&call->lists, words);
	const gpu_ptr to = gpu_address(call->room->sampling.data);
	enum status st = prepare(s, t, p.rows + p.biases + p.masks, err);

	if (st)
		return st;
	fill(t->host, &call->lists, &p, words);
	if (s->any)
		st = gpu_stream_after(s->stream, s->sampled, err);
	if (!st)
		st = copy_part(s, to + places->row, t->host, p.rows, err);
	if (!st)
		st = copy_part(s, to + places->bias, t->host + p.rows, p.biases, err);
	if (!st)
		st = copy_part(s, to + places->mask, t->host + p.rows + p.biases, p.masks, err);
	if (!st)
		st = gpu_event_record(t->copied, s->stream, err);
	t->used = !st;
	return st ? st : gpu_stream_after(g->stream, t->copied, err);
}

/* -- kernels -- */

/* Whether temperature and top_p are a row's only options. */
static bool row_is_plain(const struct sample_row *r)
{
	return r->top_k == 0 && r->min_p <= 0 && r->given < 0 && !r->counted && r->mask < 0 &&
	       r->biases == 0 && r->logprobs < 0;
}

static enum step_sample_kind kind_of(const struct sample *s)
{
	bool plain = s->lists.plain, greedy = true;

	for (int64_t i = 0; plain && i < s->lists.rows; i++) {
		plain = row_is_plain(&s->lists.row[i]);
		greedy = greedy && s->lists.row[i].temperature == 0;
	}
	if (plain && greedy)
		return STEP_SAMPLE_GREEDY;
	return plain && s->logits.dtype == DTYPE_BF16 ? STEP_SAMPLE_PLAIN : STEP_SAMPLE_ALL;
}

static struct step_sample_args args_of(const struct sample *s, const struct sampling_places *p,
				       enum step_sample_kind kind)
{
	const gpu_ptr at = gpu_address(s->room->sampling.data);

	return (struct step_sample_args){
		.logits = gpu_address(s->logits.data),
		.row = at + p->row,
		.bias = at + p->bias,
		.mask = at + p->mask,
		.counts = gpu_address(s->counts.data),
		.last = gpu_address(s->last.data),
		.results = gpu_address(s->results.data),
		.part = at + p->part,
		.tops = at + p->tops,
		.bins = at + p->bins,
		.ld = s->logits.ld,
		.ld_counts = s->counts.ld,
		.ld_results = s->results.ld,
		.rows = (uint32_t)s->lists.rows,
		.vocab = (uint32_t)s->vocab,
		.parts = step_sample_parts(kind, (uint64_t)s->lists.rows, (uint64_t)s->vocab),
		.mask_words = (uint32_t)((s->vocab + 31) / 32),
		.bf16 = s->logits.dtype == DTYPE_BF16,
	};
}

static enum status run(struct backend *back, const struct sample *s, const struct sampling_places *p,
		       struct error *err)
{
	const enum step_sample_kind kind = kind_of(s);
	const struct step_sample_args args = args_of(s, p, kind);
	const unsigned blocks = args.rows * args.parts;
	enum status st;

	switch (kind) {
	case STEP_SAMPLE_GREEDY:
		return gpu_run_early(back, GPU_KERNEL_SAMPLE_GREEDY, blocks, STEP_SAMPLE_THREADS,
				     STEP_SAMPLE_SHARED_GREEDY, &args, err);
	case STEP_SAMPLE_PLAIN:
		return gpu_run_early(back, GPU_KERNEL_SAMPLE_PLAIN, blocks, STEP_SAMPLE_THREADS,
				     STEP_SAMPLE_SHARED_PLAIN, &args, err);
	case STEP_SAMPLE_ALL:
		break;
	}
	st = gpu_run_early(back, GPU_KERNEL_SAMPLE_SCAN, blocks, STEP_SAMPLE_THREADS, STEP_SAMPLE_SHARED,
			   &args, err);
	return st ? st
		  : gpu_run_early(back, GPU_KERNEL_SAMPLE_CHOOSE, blocks, STEP_SAMPLE_THREADS,
				  STEP_SAMPLE_SHARED, &args, err);
}

enum status gpu_sample(struct backend *back, const struct sample *s, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	const struct sampling_places places = sampling_places_of(&s->room->limits);
	enum status st = check(s, &places, err);

	if (!st && g->capturing)
		st = error_set(err, STATUS_BUG, "sampling cannot be part of a graph: its lists change");
	if (!st && !g->sampling)
		st = create(&g->sampling, g->device, err);
	if (st || !s->lists.rows)
		return st;
	cost_touch(back, &s->logits, 1);
	st = put_lists(g, s, &places, err);
	if (!st)
		st = run(back, s, &places, err);
	if (!st)
		st = gpu_event_record(g->sampling->sampled, g->stream, err);
	g->sampling->any = g->sampling->any || !st;
	return st;
}

struct count_ids {
	struct backend *back;
	struct step_count_args args;
	uint64_t prompt; /* ids of it that are left */
};

static enum status count_piece(void *arg, gpu_ptr ids, uint64_t first, uint64_t count, struct error *err)
{
	struct count_ids *c = arg;

	c->args.id = ids;
	c->args.count = count;
	c->args.prompt = c->prompt > first ? c->prompt - first : 0;
	c->args.clear = first == 0;
	return gpu_run(c->back, GPU_KERNEL_SAMPLE_COUNT, 1, COUNT_THREADS, 0, &c->args, err);
}

enum status gpu_sample_count(struct backend *back, struct mat counts, const struct sample_history *history,
			     struct error *err)
{
	struct count_ids c = {
		.back = back, .args = {.vocab = (uint32_t)counts.cols}, .prompt = (uint64_t)history->prompt};

	if (history->place < 0 || history->place >= counts.rows)
		return error_set(err, STATUS_BUG, "there are no counts for place %d", (int)history->place);
	for (int64_t i = 0; i < history->count; i++)
		if (history->id[i] < 0 || history->id[i] >= counts.cols)
			return error_set(err, STATUS_BUG, "token %d of a history is not in the vocabulary",
					 (int)history->id[i]);
	c.args.counts =
		gpu_address(counts.data) + dtype_bytes(DTYPE_U16, (uint64_t)(history->place * counts.ld));
	if (!history->count)
		return count_piece(&c, 0, 0, 0, err);
	return gpu_staged_words(back, history->id, (uint64_t)history->count, count_piece, &c, err);
}
