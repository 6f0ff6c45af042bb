/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine `own` of probe peak, unit mma: runs every SM's matrix units from registers and shared memory
 * (kernel/mma/args.h). The result is a rate that no GEMM can exceed, and the tensor signal's value at full
 * rate (docs/explanation/methods/gemm.md, "kappa").
 */
#include <inttypes.h>
#include "core/math/stats.h"
#include "probe/shared/mma.h"
#include "probe/peak/peak.h"

struct peak_gpu {
	struct peak common;
	struct mma mma;
	struct mma_record *records; /* (MMA_RECORDS), as check last read them */
};

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct peak_opts *o = opts;
	const struct gpu *g = machine_gpu(m, t->gpu[0]);

	if (o->unit != PEAK_MMA)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "peak: a GPU supports only unit=mma; the other units are for CPUs");
	return g && gpu_has(g, GPU_FACT_cc)
		       ? mma_supports((enum mma_type)o->type, (unsigned)gpu_get(g, GPU_FACT_cc, 0), err)
		       : STATUS_OK;
}

/* Checks every thread of every SM that ran against the sums of mma_expect, and that every launched block left
 * a record. */
static enum status check(void *state, struct wrong *w, struct error *err)
{
	struct peak_gpu *s = state;
	uint64_t runs = 0;
	enum status st = STATUS_OK;

	if (!s->mma.launched)
		st = mma_launch(&s->mma, -1, err);
	if (!st)
		st = mma_read(&s->mma, s->records, err);
	if (st)
		return st;
	mma_judge(s->records, w);
	for (unsigned sm = 0; sm < MMA_RECORDS; sm++)
		runs += s->records[sm].runs;
	if (w->count)
		return error_set_cause(err, STATUS_MISMATCH, CAUSE_WRONG_RESULT,
				       "peak: %" PRIu64 " of %" PRIu64
				       " SMs computed wrong sums, the first is %s",
				       w->count, w->checked, w->place);
	if (runs < s->mma.launched) {
		w->count = 1;
		snprintf(w->place, sizeof(w->place), "%" PRIu64 " of %" PRIu64 " blocks left no record",
			 s->mma.launched - runs, s->mma.launched);
		return error_set_cause(err, STATUS_MISMATCH, CAUSE_WRONG_RESULT, "peak: %s", w->place);
	}
	return mma_clear(&s->mma, err);
}

/* FLOP per clock and SM, from each SM's own cycle counter. Clock changes do not affect it. */
static enum status finish(void *state, struct result *out, struct error *err)
{
	struct peak_gpu *s = state;
	double per_clock[MMA_RECORDS];
	size_t count = 0;

	(void)err;
	for (unsigned sm = 0; sm < MMA_RECORDS; sm++)
		if (s->records[sm].runs && s->records[sm].cycles_sum)
			per_clock[count++] = mma_flop(&s->mma) * (double)s->records[sm].runs /
					     (double)s->records[sm].cycles_sum;
	if (count)
		result_f64(out, &peak_fields[PEAK_FIELD_flop_per_clock], stats_median(per_clock, count));
	return STATUS_OK;
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct peak_gpu *s = state;
	enum status st;

	s->common = (struct peak){.opts = *(const struct peak_opts *)opts, .check = check, .finish = finish};
	s->records = calloc(MMA_RECORDS, sizeof(*s->records));
	if (!s->records)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "peak: not enough memory for the records of the SMs");
	st = mma_init(&s->mma, b, (enum mma_type)s->common.opts.type, PEAK_MMA_SM_FLOP, err);
	if (!st && b->out)
		result_text(b->out, &peak_fields[PEAK_FIELD_instruction], s->mma.layout.instruction);
	return st;
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct peak_gpu *s = state;

	(void)i;
	return mma_launch(&s->mma, -1, err);
}

static void release(void *state)
{
	struct peak_gpu *s = state;

	mma_release(&s->mma);
	free(s->records);
	*s = (struct peak_gpu){0};
}

_Static_assert((int)PEAK_INT8 == (int)MMA_INT8 && (int)PEAK_TYPE_COUNT == (int)MMA_TYPE_COUNT,
	       "both enums list the types in the same order");

const struct engine peak_gpu_engine = {
	.name = "own",
	.libs = "cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.state_size = sizeof(struct peak_gpu),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.release = release,
};
