/* SPDX-License-Identifier: Apache-2.0 */
/* Probe attention: options, fields, work and descriptor (at the end). One iteration is 4 head_dim FLOP per
 * kept pair, backward 10. Each engine has a file of its own. */
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
		.help = "forward: O and its log-sum-exp from Q, K and V; backward: dQ, dK and dV from dO"),
	OPT_ROW(struct attention_opts, type, .name = "type", .preset = "fp16", .choices = types,
		.help = "type of Q, K and V; 16-bit types are also the type of O"),
	OPT_ROW(struct attention_opts, out, .name = "out", .preset = "wide", .choices = outs,
		.help = "type of O for type=e4m3: BF16 (wide) or FP8 (same)"),
	OPT_ROW(struct attention_opts, batch, .name = "batch", .preset = "16", .min = 1, .max = 65536,
		.help = "number of sequences"),
	OPT_ROW(struct attention_opts, heads, .name = "heads", .preset = "8", .min = 1, .max = 65536,
		.help = "number of query heads"),
	OPT_ROW(struct attention_opts, kv_heads, .name = "kv_heads", .preset = "0", .max = 65536,
		.help = "number of key and value heads, each shared by equally many query heads; 0: as many as query heads"),
	OPT_ROW(struct attention_opts, seq, .name = "seq", .preset = "512", .min = 1, .max = 1048576,
		.help = "queries per sequence"),
	OPT_ROW(struct attention_opts, kv_seq, .name = "kv_seq", .preset = "0", .max = 1048576,
		.help = "keys per sequence; 0: as many as queries"),
	OPT_ROW(struct attention_opts, head_dim, .name = "head_dim", .preset = "64", .min = 8,
		.max = ATTENTION_HEAD_DIM_MAX, .help = "head dimension: elements per row of Q, K, V and O"),
	OPT_ROW(struct attention_opts, mask, .name = "mask", .preset = "none", .choices = masks,
		.help = "keys that a query attends to; the last query and the last key of a sequence have the same position"),
	OPT_ROW(struct attention_opts, left, .name = "left", .preset = "0", .max = 1048576,
		.help = "mask=window: number of keys before the query's own position"),
	OPT_ROW(struct attention_opts, right, .name = "right", .preset = "0", .max = 1048576,
		.help = "mask=window: number of keys after the query's own position"),
	OPT_ROW(struct attention_opts, layout, .name = "layout", .preset = "bhsd", .choices = layouts,
		.help = "order in memory: batch, head, row, column (bhsd), or batch, row, head, column (bshd)"),
	OPT_ROW(struct attention_opts, lengths, .name = "lengths", .shown = "random|N+N..",
		.help = "packed sequences of different length: random lengths up to seq, or one given length per sequence"),
	OPT_ROW(struct attention_opts, pattern, .name = "pattern", .preset = "none", .choices = patterns,
		.help = "block-sparse attention: all blocks within the mask (mask), a strided or random subset, or lists from a "
			"file; none: dense attention"),
	OPT_ROW(struct attention_opts, density, .name = "density", .preset = "1", .min = 0.0001, .max = 1,
		.help = "pattern=strided and pattern=random: share of the blocks"),
	OPT_ROW(struct attention_opts, block_q, .name = "block_q", .preset = "128", .min = 16, .max = 1024,
		.help = "queries per block"),
	OPT_ROW(struct attention_opts, block_k, .name = "block_k", .preset = "128", .min = 16, .max = 1024,
		.help = "keys per block"),
	OPT_ROW(struct attention_opts, file, .name = "file", .shown = "FILE",
		.help = "pattern=file: path of the block file"),
	OPT_ROW(struct attention_opts, seed, .name = "seed", .preset = "1", .max = 0x1p53,
		.help = "seed of random blocks and lengths"),
	OPT_ROW(struct attention_opts, search, .name = "search", .preset = "first", .choices = searches,
		.help = "first: the library's first choice; top: the fastest of its top choices; exhaustive: the fastest of all its plans"),
	OPT_ROW(struct attention_opts, data, .name = "data", .preset = "random", .choices = datas,
		.help = "inputs: random of variance 1, or with Q enlarged so that one key gets nearly all the weight (large)"),
	OPT_ROW(struct attention_opts, threads, .name = "threads", .preset = "0", .max = 4096,
		.help = "CPU threads; 0: all usable CPUs"),
};

/* The published cases of docs/explanation/methods/attention.md, "Attention by cuDNN". */
static const char *const d0_options[] = {
	"type=fp16", "batch=16", "heads=8,16,32,64,96,128", "seq=512", "head_dim=64", "mask=none", NULL};
static const struct probe_preset presets[] = {
	{.name = "d0",
	 .summary = "cases of a published table, in microseconds per head",
	 .target = "gpu",
	 .engine = "all",
	 .options = d0_options},
	{0},
};

#define X(id, unit_, kind_, better_, help_)                                                                  \
	{.name = #id, .unit = unit_, .kind = FIELD_##kind_, .better = better_, .help = help_},
const struct field attention_fields[] = {ATTENTION_FIELDS(X)};
#undef X

/* -- functions that engines share -- */

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

void attention_report(const struct attention *a, struct result *out)
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

/* -- functions of the descriptor -- */

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	const struct attention_opts *o = opts;
	struct attention_case c;
	struct work w = {.limit = limits[o->type]};

	(void)m, (void)t;
	if (attention_case_make(&c, o, NULL, NULL))
		return w; /* check has rejected it */
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
	/* for verification: a tensor to write, and the results read back and their reference */
	out->host_bytes += 2 * set;
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
	.summary = "attention, dense and block-sparse, with every mask and type that the engines support",
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
