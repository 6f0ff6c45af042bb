/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/shared/mma.h"
#include <inttypes.h>
#include "vendor/cuda.h"

static const char *const names[] = {
#define X(name, text, bytes) text,
	MMA_TYPES(X)
#undef X
};

enum { WARPS = MMA_THREADS / 32 };

static const char *instruction_of(enum mma_type type, bool sm90)
{
	static const char *const portable[] = {"mma.sync m8n8k4",
					       "fma.rn.f32",
					       "mma.sync m16n8k8",
					       "mma.sync m16n8k16",
					       "mma.sync m16n8k16",
					       "",
					       "",
					       "mma.sync m16n8k32"};
	static const char *const hopper[] = {"mma.sync m16n8k8", "fma.rn.f32",	     "wgmma m64n256k8",
					     "wgmma m64n256k16", "wgmma m64n256k16", "wgmma m64n256k32",
					     "wgmma m64n256k32", "wgmma m64n256k32"};

	return sm90 ? hopper[type] : portable[type];
}

static struct mma_layout layout_of(enum mma_type type, unsigned cc)
{
	bool sm90 = cc == 90 && type != MMA_FP32;
	bool groups = sm90 && type != MMA_FP64; /* one unit of work is a warpgroup, not a warp */
	struct mma_tile t = mma_tile_of(type, sm90);
	unsigned units = groups ? MMA_SM90_THREADS / 128 : type == MMA_FP32 ? MMA_THREADS : WARPS;

	return (struct mma_layout){
		.sm90 = sm90,
		.threads = groups ? MMA_SM90_THREADS : MMA_THREADS,
		.step_flop = 2.0 * t.rows * t.columns * t.k * t.tiles * units,
		.instruction = instruction_of(type, sm90),
	};
}

enum status mma_supports(enum mma_type type, unsigned cc, struct error *err)
{
	if (cc < 80)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "the multiply-add loops need sm_80 or newer, this GPU is sm_%u", cc);
	if (type == MMA_FP32 || cc == 90)
		return STATUS_OK;
	if (cc >= 100 && type != MMA_FP64)
		return error_set_cause(
			err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			"this program has no loop for the instructions that drive the %s units of sm_%u",
			names[type], cc);
	if (type == MMA_E4M3 || type == MMA_E5M2)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "the %s loop needs sm_90a, this GPU is sm_%u", names[type], cc);
	return STATUS_OK;
}

static enum status upload_expected(struct mma *x, struct error *err)
{
	int64_t expected[MMA_THREADS];

	for (unsigned i = 0; i < x->layout.threads; i++)
		expected[i] = mma_expect(x->type, x->layout.sm90, i);
	return gpu_copy_to(x->device, x->expected, expected, x->layout.threads * sizeof(*expected), err);
}

enum status mma_init(struct mma *x, const struct bench *b, enum mma_type type, double flop, struct error *err)
{
	const unsigned most = gpu_shared_most(b->device);
	unsigned cc = gpu_cc(b->device);
	char entry[16];
	enum status st = mma_supports(type, cc, err);

	if (st)
		return st;
	*x = (struct mma){
		.device = b->device, .stream = b->stream[0], .type = type, .layout = layout_of(type, cc)};
	x->steps = (uint32_t)(flop / x->layout.step_flop / MMA_STEPS_GROUP) * MMA_STEPS_GROUP;
	x->blocks = gpu_sm_count(b->device);
	x->shared_bytes = MMA_SHARED_BYTES;
	if (!x->layout.sm90 && most && most < x->shared_bytes)
		x->shared_bytes = most; /* more than half of the SM's: one block fits */
	snprintf(entry, sizeof(entry), "mma_%s", names[type]);
	st = gpu_kernel(x->device, &x->kernel, x->layout.sm90 ? "mma_sm90" : "mma", entry, err);
	if (!st)
		st = gpu_alloc(x->device, &x->records, MMA_RECORDS * sizeof(struct mma_record), err);
	if (!st)
		st = gpu_alloc(x->device, &x->expected, x->layout.threads * sizeof(int64_t), err);
	if (!st)
		st = upload_expected(x, err);
	return st ? st : mma_clear(x, err);
}

void mma_release(struct mma *x)
{
	if (x->device) {
		gpu_free(x->device, &x->records);
		gpu_free(x->device, &x->expected);
	}
	*x = (struct mma){0};
}

enum status mma_clear(struct mma *x, struct error *err)
{
	struct mma_record *clear = calloc(MMA_RECORDS, sizeof(*clear));
	enum status st;

	if (!clear)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "not enough memory for the records of the SMs");
	for (unsigned i = 0; i < MMA_RECORDS; i++)
		clear[i].cycles_min = clear[i].ns_min = UINT64_MAX;
	st = gpu_copy_to(x->device, x->records, clear, MMA_RECORDS * sizeof(*clear), err);
	free(clear);
	x->launched = 0;
	return st;
}

enum status mma_launch(struct mma *x, int only_sm, struct error *err)
{
	struct mma_args args = {.records = x->records,
				.expected = x->expected,
				.steps = x->steps,
				.records_count = MMA_RECORDS,
				.only_sm = only_sm};
	/* A block on another SM returns at once and frees its SM. Twice as many blocks as SMs ensure that one
	 * block runs on the given SM. */
	unsigned blocks = only_sm < 0 ? x->blocks : 2 * x->blocks;

	x->launched += only_sm < 0 ? x->blocks : 1;
	return gpu_launch_1d(x->kernel, x->stream, blocks, x->layout.threads, x->shared_bytes, &args, err);
}

enum status mma_read(struct mma *x, struct mma_record *out, struct error *err)
{
	enum status st = gpu_stream_wait(x->stream, err);

	return st ? st : gpu_copy_from(x->device, out, x->records, MMA_RECORDS * sizeof(*out), err);
}

void mma_judge(const struct mma_record *records, struct wrong *w)
{
	for (unsigned sm = 0; sm < MMA_RECORDS; sm++) {
		if (!records[sm].runs && !records[sm].wrong_threads)
			continue;
		w->checked++;
		w->total++;
		if (!records[sm].wrong_threads)
			continue;
		if (!w->count++) {
			w->first_index = sm;
			w->found = records[sm].wrong_threads;
			snprintf(w->place, sizeof(w->place), "SM %u (TPC %u), thread %u of its block", sm,
				 sm / 2, records[sm].wrong_first - 1);
		}
	}
}

double mma_flop(const struct mma *x)
{
	return x->layout.step_flop * x->steps;
}
