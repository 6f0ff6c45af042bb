/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `hbm`: a test of device memory. One iteration writes a pattern into every word and reads it back.
 * Iterations cycle through the patterns of kernel/memory/pattern_test.h: the word's own address, its inverse,
 * a moving bit, random words. Each pattern depends on the address, so it detects a wrong address line as well
 * as a wrong bit. The device counts wrong words and reports the lowest wrong address. Each byte counts once
 * as written and once as read. size=0 means all free memory except 3 GiB: 2 GiB that assay always leaves
 * free, and the rest for the context. Memory that other processes hold is not tested.
 */
#include <inttypes.h>
#include "gpu/device/gpu.h"
#include "kernel/memory/pattern_test.h"
#include "run/probe.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define GIB ((uint64_t)1 << 30)
#define BLOCK_BYTES (4 * GIB) /* allocated in pieces, so that fragmented memory is tested too */

enum { BLOCKS_MAX = 256, PER_SM = 8, THREADS = 256 };

struct hbm_opts {
	uint64_t size;
};

static const struct opt opt_rows[] = {
	OPT_ROW(struct hbm_opts, size, .name = "size", .preset = "0", .unit = "B", .max = 0x1p40,
		.help = "bytes to test; 0: all free device memory except 3 GiB"),
};

/* name, unit, kind, better, help */
#define HBM_FIELDS(X)                                                                                        \
	X(walked_bytes, "B", U64, 1, "device memory written and read back")                                  \
	X(walked_share, "", F64, 1, "tested share of the device's memory")                                   \
	X(patterns, "", TEXT, 0, "patterns that the iterations cycle through")
#define X(name, ...) FIELD_##name,
enum hbm_field { HBM_FIELDS(X) HBM_FIELD_COUNT };
#undef X
static const struct field fields[] = {HBM_FIELDS(FIELD_ROW)};

struct hbm {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct gpu_kernel *write, *check;
	gpu_ptr block[BLOCKS_MAX];
	uint64_t block_bytes[BLOCKS_MAX];
	unsigned blocks;
	/* launched_words: words that must have been checked since the record was cleared */
	uint64_t size, seed, launched_words;
	gpu_ptr record;
};

static uint64_t size_of(const struct machine *m, const struct target *t, const struct hbm_opts *o)
{
	const struct gpu *g = machine_gpu(m, t->gpu[0]);
	double free_bytes =
		g ? gpu_get(g, GPU_FACT_memory_free_bytes, gpu_get(g, GPU_FACT_memory_bytes, 0)) : 0;
	uint64_t free_known = free_bytes > 0 ? (uint64_t)free_bytes : 0;

	if (o->size)
		return o->size / 4096 * 4096;
	return free_known > 4 * GIB ? (free_known - 3 * GIB) / (64 << 20) * (64 << 20) : GIB;
}

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	double size = (double)size_of(m, t, opts);

	return (struct work){.read_bytes = size, .write_bytes = size, .limit = "memory"};
}

static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	out->device_bytes = (double)size_of(m, t, opts);
}

static enum status check_options(const void *opts, struct error *err)
{
	const struct hbm_opts *o = opts;

	return o->size && o->size < 4096
		       ? error_set(err, STATUS_BAD_INPUT, "hbm: size must be at least 4096 bytes")
		       : STATUS_OK;
}

static enum status clear_record(struct hbm *s, struct error *err)
{
	struct hbm_record empty = {.first = UINT64_MAX};

	s->launched_words = 0;
	return gpu_copy_to(s->device, s->record, &empty, sizeof(empty), err);
}

static enum status take_blocks(struct hbm *s, struct error *err)
{
	enum status st = STATUS_OK;

	for (uint64_t left = s->size; left && !st && s->blocks < BLOCKS_MAX; s->blocks++) {
		uint64_t bytes = left < BLOCK_BYTES ? left : BLOCK_BYTES;

		st = gpu_alloc(s->device, &s->block[s->blocks], bytes, err);
		s->block_bytes[s->blocks] = bytes;
		left -= bytes;
	}
	return st;
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct hbm *s = state;
	const struct hbm_opts *o = opts;
	uint64_t available, total;
	enum status st;

	*s = (struct hbm){.device = b->device,
			  .stream = b->stream[0],
			  .seed = b->seed,
			  .size = size_of(b->machine, b->target, o)};
	st = gpu_kernel(s->device, &s->write, "hbm", "hbm_write", err);
	if (!st)
		st = gpu_kernel(s->device, &s->check, "hbm", "hbm_check", err);
	if (!st)
		st = gpu_alloc(s->device, &s->record, sizeof(struct hbm_record), err);
	if (!st)
		st = gpu_memory(s->device, &available, &total, err);
	if (!st)
		st = take_blocks(s, err);
	if (st)
		return st;
	result_u64(b->out, &fields[FIELD_walked_bytes], s->size);
	result_f64(b->out, &fields[FIELD_walked_share], (double)s->size / (double)total);
	result_text(b->out, &fields[FIELD_patterns], "address, inverse, moving, random");
	return clear_record(s, err);
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct hbm *s = state;
	struct hbm_args args = {
		.record = s->record, .seed = s->seed + i, .pattern = (uint32_t)(i % HBM_PATTERN_COUNT)};
	unsigned grid = PER_SM * gpu_sm_count(s->device);
	enum status st = STATUS_OK;

	/* Every word is written before any is read. So a store to a wrong address is found, whatever the
	 * address is. */
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned n = 0; n < s->blocks && !st; n++) {
			args.words = s->block[n];
			args.count = s->block_bytes[n] / 8;
			st = gpu_launch_1d(pass ? s->check : s->write, s->stream, grid, THREADS, 0, &args,
					   err);
		}
	s->launched_words += s->size / 8;
	return st;
}

static enum status judge(struct hbm *s, const struct hbm_record *r, struct wrong *w, struct error *err)
{
	w->checked = r->checked;
	w->total = s->launched_words;
	w->count = r->count;
	if (r->checked != s->launched_words)
		return error_set_cause(err, STATUS_MISMATCH, CAUSE_WRONG_RESULT,
				       "hbm: only %" PRIu64 " of %" PRIu64 " written words were read back",
				       r->checked, s->launched_words);
	if (!r->count)
		return STATUS_OK;
	w->first_index = r->first;
	for (unsigned i = 0; i < HBM_KEPT && i < r->count; i++) {
		if (r->kept[i].address != r->first && i)
			continue;
		w->expected = (double)r->kept[i].expected;
		w->found = (double)r->kept[i].found;
	}
	snprintf(w->place, sizeof(w->place), "address 0x%" PRIx64 ", bits 0x%" PRIx64, r->first, r->bits);
	return error_set_cause(err, STATUS_MISMATCH, CAUSE_HBM_DATA,
			       "hbm: %" PRIu64 " words read back wrong, the lowest at address 0x%" PRIx64
			       ", wrong bits 0x%" PRIx64,
			       r->count, r->first, r->bits);
}

/* Judges the record of the iterations so far. Before the first iteration, it runs one iteration of each
 * pattern. */
static enum status verify(void *state, struct wrong *wrong, struct error *err)
{
	struct hbm *s = state;
	struct hbm_record r;
	bool fresh = !s->launched_words;
	enum status st = STATUS_OK, cleared;

	*wrong = (struct wrong){0};
	for (unsigned i = 0; fresh && i < HBM_PATTERN_COUNT && !st; i++)
		st = enqueue(s, i, err);
	if (!st)
		st = gpu_copy_from(s->device, &r, s->record, sizeof(r), err);
	if (st)
		return st;
	st = judge(s, &r, wrong, err);
	cleared = clear_record(s, err);
	return st ? st : cleared;
}

static void release(void *state)
{
	struct hbm *s = state;

	for (unsigned n = 0; n < BLOCKS_MAX && s->device; n++)
		gpu_free(s->device, &s->block[n]);
	if (s->device)
		gpu_free(s->device, &s->record);
	*s = (struct hbm){0};
}

static const struct engine own_engine = {
	.name = "own",
	.libs = "cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.plain = true,
	.state_size = sizeof(struct hbm),
	.prepare = prepare,
	.enqueue = enqueue,
	.release = release,
};

static const struct engine *const engines[] = {&own_engine, NULL};

const struct probe probe_hbm = {
	.name = "hbm",
	.summary = "test of all free device memory: writes patterns and reads them back",
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct hbm_opts)},
	.fields = fields,
	.field_count = HBM_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.check = check_options,
	.verify = verify,
};
