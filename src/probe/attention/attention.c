/* SPDX-License-Identifier: Apache-2.0 */
/* Attention. One iteration is 4 head_dim FLOP a kept pair, backward 10. Descriptor at the end; one file an
 * engine. */
#include "probe/attention/attention.h"
#include <math.h>
#include <stdlib.h>
#include "probe/attention/attended_pairs.h"
#include "probe/shared/operand_sets.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define X(id, name, bytes) name,
static const char *const types[] = {ATTENTION_TYPES(X) NULL};
#undef X
#define X(id, name, bytes) "compute." name,
static const char *const limits[] = {ATTENTION_TYPES(X)};
#undef X
#define X(id, name) name,
static const char *const masks[] = {ATTENTION_MASKS(X) NULL};
#undef X
static const char *const passes[] = {"forward", "backward", NULL};
static const char *const outs[] = {"wide", "same", NULL};
static const char *const layouts[] = {"bhsd", "bshd", NULL};
static const char *const patterns[] = {"none", "mask", "strided", "random", "file", NULL};
static const char *const searches[] = {"first", "top", "exhaustive", NULL};
static const char *const datas[] = {"random", "large", NULL};

static const struct opt opt_rows[] = {
	OPT_ROW(struct attention_opts, pass, .name = "pass", .preset = "forward", .choices = passes,
		.help = "O and its log-sum-exp of Q, K and V, or the gradients of these of O's"),
	OPT_ROW(struct attention_opts, type, .name = "type", .preset = "fp16", .choices = types,
		.help = "type of Q, K and V, and of O where it has 16 bits"),
	OPT_ROW(struct attention_opts, out, .name = "out", .preset = "wide", .choices = outs,
		.help = "FP8: O in BF16 (wide) or in FP8 (same)"),
	OPT_ROW(struct attention_opts, batch, .name = "batch", .preset = "16", .min = 1, .max = 65536,
		.help = "sequences"),
	OPT_ROW(struct attention_opts, heads, .name = "heads", .preset = "8", .min = 1, .max = 65536,
		.help = "query heads"),
	OPT_ROW(struct attention_opts, kv_heads, .name = "kv_heads", .preset = "0", .max = 65536,
		.help = "key and value heads, each for as many query heads; 0: one for each"),
	OPT_ROW(struct attention_opts, seq, .name = "seq", .preset = "512", .min = 1, .max = 1048576,
		.help = "queries of a sequence"),
	OPT_ROW(struct attention_opts, kv_seq, .name = "kv_seq", .preset = "0", .max = 1048576,
		.help = "keys of a sequence; 0: as many as queries"),
	OPT_ROW(struct attention_opts, head_dim, .name = "head_dim", .preset = "64", .min = 8,
		.max = ATTENTION_HEAD_DIM_MAX, .help = "elements of a row of Q, K, V and O"),
	OPT_ROW(struct attention_opts, mask, .name = "mask", .preset = "none", .choices = masks,
		.help = "keys that a query sees; its last query and key stand side by side"),
	OPT_ROW(struct attention_opts, left, .name = "left", .preset = "0", .max = 1048576,
		.help = "mask=window: keys seen before a query's own place"),
	OPT_ROW(struct attention_opts, right, .name = "right", .preset = "0", .max = 1048576,
		.help = "mask=window: keys seen after it"),
	OPT_ROW(struct attention_opts, layout, .name = "layout", .preset = "bhsd", .choices = layouts,
		.help = "batch, head, row, column in memory, or batch, row, head, column"),
	OPT_ROW(struct attention_opts, lengths, .name = "lengths", .shown = "random|N+N..",
		.help = "sequences of different length, packed: drawn up to seq, or said, one a sequence"),
	OPT_ROW(struct attention_opts, pattern, .name = "pattern", .preset = "none", .choices = patterns,
		.help = "block-sparse: all blocks that the mask leaves, strided or random ones of them, or a "
			"file's; none: dense"),
	OPT_ROW(struct attention_opts, density, .name = "density", .preset = "1", .min = 0.0001, .max = 1,
		.help = "share of the blocks, for strided and random ones"),
	OPT_ROW(struct attention_opts, block_q, .name = "block_q", .preset = "128", .min = 16, .max = 1024,
		.help = "queries of a block"),
	OPT_ROW(struct attention_opts, block_k, .name = "block_k", .preset = "128", .min = 16, .max = 1024,
		.help = "keys of a block"),
	OPT_ROW(struct attention_opts, file, .name = "file", .shown = "FILE",
		.help = "pattern=file: the block file"),
	OPT_ROW(struct attention_opts, seed, .name = "seed", .preset = "1", .max = 0x1p53,
		.help = "of random blocks and lengths"),
	OPT_ROW(struct attention_opts, search, .name = "search", .preset = "first", .choices = searches,
		.help = "the library's first choice, the best of its top ones, or of all"),
	OPT_ROW(struct attention_opts, data, .name = "data", .preset = "random", .choices = datas,
		.help = "inputs: random of variance 1, or with Q enlarged so that one key takes nearly all"),
	OPT_ROW(struct attention_opts, threads, .name = "threads", .preset = "0", .max = 4096,
		.help = "CPU threads; 0: all usable"),
};

/* docs/explanation/methods, "Attention": the table that published figures are of. */
static const char *const d0_options[] = {
	"type=fp16", "batch=16", "heads=8,16,32,64,96,128", "seq=512", "head_dim=64", "mask=none", NULL};
static const struct probe_preset presets[] = {
	{.name = "d0",
	 .summary = "the published table, microseconds a head",
	 .target = "gpu",
	 .engine = "all",
	 .options = d0_options},
	{0},
};

#define X(id, unit_, kind_, better_, help_)                                                                  \
	{.name = #id, .unit = unit_, .kind = FIELD_##kind_, .better = better_, .help = help_},
const struct field attention_fields[] = {ATTENTION_FIELDS(X)};
#undef X

/* -- what engines share -- */

enum status attention_begin(struct attention *a, const struct bench *b, const struct attention_opts *o,
			    const struct attention_access *access, struct error *err)
{
	*a = (struct attention){.data = (enum attention_data)o->data, .seed = b->seed, .access = access};
	return attention_case_make(&a->c, o, b, err);
}

void attention_end(struct attention *a)
{
	attention_case_release(&a->c);
	free(a->sample);
	a->sample = NULL;
	attention_gradient_reference_free(a->gradients);
	a->gradients = NULL;
}

void attention_tell(const struct attention *a, struct result *out)
{
	const struct attention_blocks *l = a->c.blocks;
	double pairs = attention_attended_pairs(&a->c.problem, l);

	result_u64(out, &attention_fields[ATTENTION_FIELD_rotated_sets], a->sets);
	result_f64(out, &attention_fields[ATTENTION_FIELD_pairs_kept], pairs);
	if (!l)
		return;
	result_f64(out, &attention_fields[ATTENTION_FIELD_pairs_share],
		   pairs / attention_pairs(&a->c.problem));
	result_u64(out, &attention_fields[ATTENTION_FIELD_blocks_listed], attention_blocks_listed(l));
	result_f64(out, &attention_fields[ATTENTION_FIELD_blocks_density], attention_blocks_density(l));
	result_f64(out, &attention_fields[ATTENTION_FIELD_blocks_build_s], a->c.build_s);
}

/* -- the descriptor's -- */

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	const struct attention_opts *o = opts;
	struct attention_case c;
	struct work w = {.limit = limits[o->type]};

	(void)m, (void)t;
	if (attention_case_make(&c, o, NULL, NULL))
		return w; /* check refused it */
	w.flop = attention_case_flop(&c);
	w.read_bytes = attention_case_read_bytes(&c);
	w.write_bytes = attention_case_write_bytes(&c);
	attention_case_release(&c);
	return w;
}

static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	struct attention_case c;
	double set;

	if (attention_case_describe(&c, opts, NULL))
		return;
	set = attention_set_bytes(&c);
	attention_case_release(&c);
	operand_sets_need(m, t, set, out);
	out->host_bytes +=
		2 * set; /* verification's: a tensor to write, what is read back and held against it */
}

static enum status check(const void *opts, struct error *err)
{
	struct attention_case c;
	enum status st = attention_case_make(&c, opts, NULL, err);

	if (!st)
		attention_case_release(&c);
	return st;
}

static enum status finish(void *state, struct result *out, struct error *err)
{
	const struct attention_errors *e = &((struct attention *)state)->errors;

	(void)err;
	if (!e->count)
		return STATUS_OK;
	result_f64(out, &attention_fields[ATTENTION_FIELD_error_rms], sqrt(e->squares / (double)e->count));
	result_f64(out, &attention_fields[ATTENTION_FIELD_error_max], e->most);
	if (!((struct attention *)state)->c.backward)
		result_f64(out, &attention_fields[ATTENTION_FIELD_error_lse_max], e->lse_most);
	return STATUS_OK;
}

static const struct engine *const engines[] = {
	&attention_own_engine, &attention_cudnn_engine, &attention_cpu_engine, &attention_sparse_engine, NULL,
};

const struct probe probe_attention = {
	.name = "attention",
	.summary = "attention, dense and block-sparse, every mask and type the engines take",
	.counted = true,
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct attention_opts)},
	.presets = presets,
	.fields = attention_fields,
	.field_count = ATTENTION_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.check = check,
	.verify = attention_verify,
	.finish = finish,
};
