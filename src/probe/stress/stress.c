/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe stress: options, work, and the verdict on its findings. One iteration is 2 n^3 FLOP (unit tensor,
 * all) and one slice of memory read and written (unit memory, all). The time includes the checks. The
 * descriptor is at the end. expect.c computes the expected sums; each engine has a file of its own.
 */
#include "probe/stress/stress.h"
#include <inttypes.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const units[] = {"all", "tensor", "memory", NULL};
#define X(id, text, bits) text,
static const char *const types[] = {STRESS_TYPES(X) NULL};
#undef X
#define X(id, text, bits) bits,
static const unsigned bits_of[] = {STRESS_TYPES(X)};
#undef X
#define X(id, text, bits) "compute." text,
static const char *const limits[] = {STRESS_TYPES(X)};
#undef X

static const struct opt opt_rows[] = {
	OPT_ROW(struct stress_opts, unit, .name = "unit", .preset = "all", .choices = units,
		.help = "test matrix units, memory, or both in alternation (all)"),
	OPT_ROW(struct stress_opts, type, .name = "type", .preset = "bf16", .choices = types,
		.help = "type of the operands; the CPU engine supports fp32 and fp64"),
	OPT_ROW(struct stress_opts, n, .name = "n", .preset = "0", .max = 16384,
		.help = "rows and columns of each matrix; 0: 8192 on a GPU, 1024 on a CPU"),
	OPT_ROW(struct stress_opts, bytes, .name = "bytes", .preset = "0", .max = 1e12, .unit = "B",
		.help = "bytes of memory to test; 0: 4 GiB on a GPU, 256 MiB on a CPU"),
	OPT_ROW(struct stress_opts, threads, .name = "threads", .preset = "0", .max = 4096,
		.help = "CPU threads; 0: all usable CPUs"),
};

/* name, unit, kind, better, help */
#define STRESS_FIELDS(X)                                                                                     \
	X(products_checked, "", U64, 1, "GEMMs computed, each checked")                                      \
	X(slices_checked, "", U64, 1, "memory slices tested, each checked")                                  \
	X(wrong_rows, "", U64, -1, "rows of C with wrong sums")                                              \
	X(wrong_columns, "", U64, -1, "columns of C with wrong sums")                                        \
	X(odd_elements, "", U64, -1, "elements of C that are not integers: NaN, infinity, fractions")        \
	X(wrong_words, "", U64, -1, "memory words that differ from the written value")
#define X(name, ...) STRESS_FIELD_##name,
enum stress_field { STRESS_FIELDS(X) STRESS_FIELD_COUNT };
#undef X
static const struct field fields[] = {STRESS_FIELDS(FIELD_ROW)};

uint32_t stress_n(const struct target *t, const struct stress_opts *o)
{
	return o->n ? o->n : t->kind == TARGET_GPU ? 8192 : 1024;
}

uint64_t stress_bytes(const struct target *t, const struct stress_opts *o)
{
	uint64_t bytes = o->bytes ? o->bytes : t->kind == TARGET_GPU ? 4ull << 30 : 256ull << 20;

	return bytes < 4096 ? 4096 : bytes / 4096 * 4096;
}

uint64_t stress_slice(const struct target *t, const struct stress_opts *o)
{
	uint64_t most = t->kind == TARGET_GPU ? 512ull << 20 : 64ull << 20, bytes = stress_bytes(t, o);

	return bytes < most ? bytes : most;
}

unsigned stress_bits(enum stress_type type)
{
	return bits_of[type];
}

const char *stress_type_name(enum stress_type type)
{
	return types[type];
}

bool stress_has(const struct stress_opts *o, enum stress_unit unit)
{
	return o->unit == STRESS_ALL || o->unit == (uint32_t)unit;
}

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	const struct stress_opts *o = opts;
	double n = stress_n(t, o), slice = (double)stress_slice(t, o);
	struct work w = {.limit = o->unit == STRESS_TENSOR   ? limits[o->type]
				  : o->unit == STRESS_MEMORY ? "memory"
							     : "mixed"};

	(void)m;
	if (stress_has(o, STRESS_TENSOR))
		w.flop = 2 * n * n * n;
	if (stress_has(o, STRESS_MEMORY))
		w.read_bytes = w.write_bytes = slice;
	return w;
}

/* A, two B and C with at most 8 bytes per element, and the walked memory. */
static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	const struct stress_opts *o = opts;
	double n = stress_n(t, o), bytes = 0;

	(void)m;
	if (stress_has(o, STRESS_TENSOR))
		bytes += (2 + STRESS_SETS) * n * n * 8;
	if (stress_has(o, STRESS_MEMORY))
		bytes += (double)stress_bytes(t, o);
	*(t->kind == TARGET_GPU ? &out->device_bytes : &out->host_bytes) = bytes;
}

static enum status check(const void *opts, struct error *err)
{
	const struct stress_opts *o = opts;

	if (o->n % 16)
		return error_set(err, STATUS_BAD_INPUT, "stress: n must be a multiple of 16, not %" PRIu32,
				 o->n);
	return STATUS_OK;
}

static void place(struct wrong *w, const struct stress_found *f)
{
	if (f->rows && f->columns)
		snprintf(w->place, sizeof(w->place), "row %" PRIu64 " column %" PRIu64 " of a product",
			 f->first_row, f->first_column);
	else if (f->rows || f->columns)
		snprintf(w->place, sizeof(w->place), "%s %" PRIu64 " of a product",
			 f->rows ? "row" : "column", f->rows ? f->first_row : f->first_column);
	else
		snprintf(w->place, sizeof(w->place), "byte %" PRIu64 " of the memory walked",
			 f->first_word * 8);
}

static enum status verify(void *state, struct wrong *w, struct error *err)
{
	struct stress *s = state;
	struct stress_found f = {0};
	enum status st = STATUS_OK;

	*w = (struct wrong){0};
	if (!s->iterations)
		st = s->one(s, err);
	if (!st)
		st = s->collect(s, &f, err);
	if (st)
		return st;
	w->checked = w->total = f.products * s->n * s->n;
	w->count = (f.rows > f.columns ? f.rows : f.columns) + f.words;
	w->nan = f.nan > 0;
	if (!w->count)
		return STATUS_OK;
	w->first_index = f.rows ? f.first_row * s->n + (f.columns ? f.first_column : 0) : f.first_word;
	place(w, &f);
	return error_set_cause(err, STATUS_MISMATCH,
			       w->nan	 ? CAUSE_NAN
			       : f.words ? CAUSE_HBM_DATA
					 : CAUSE_WRONG_RESULT,
			       "stress: %" PRIu64 " rows and %" PRIu64 " columns of %" PRIu64
			       " GEMMs and %" PRIu64 " words of memory are wrong, the first at %s",
			       f.rows, f.columns, f.products, f.words, w->place);
}

static enum status finish(void *state, struct result *out, struct error *err)
{
	struct stress *s = state;
	struct stress_found f = {0};
	enum status st = s->collect(s, &f, err);

	if (st)
		return st;
	result_u64(out, &fields[STRESS_FIELD_products_checked], f.products);
	result_u64(out, &fields[STRESS_FIELD_slices_checked], f.passes);
	result_u64(out, &fields[STRESS_FIELD_wrong_rows], f.rows);
	result_u64(out, &fields[STRESS_FIELD_wrong_columns], f.columns);
	result_u64(out, &fields[STRESS_FIELD_odd_elements], f.nan);
	result_u64(out, &fields[STRESS_FIELD_wrong_words], f.words);
	return STATUS_OK;
}

static const struct engine *const engines[] = {&stress_cpu_engine, &stress_gpu_engine, NULL};

const struct probe probe_stress = {
	.name = "stress",
	.summary = "load on matrix units and memory for a given time, with every result checked",
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct stress_opts)},
	.fields = fields,
	.field_count = STRESS_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.check = check,
	.verify = verify,
	.finish = finish,
};
