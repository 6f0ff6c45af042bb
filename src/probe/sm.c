/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `sm`: tests each SM by itself. One iteration runs the same multiply-add loop (kernel/mma/args.h) on
 * one SM after the other, while all other SMs are idle. The figure of an SM is its own cycle count of the
 * loop. Power and clock do not change this count, so healthy SMs agree within a few cycles. Every thread's
 * sum is checked. Each SM counts as one message. The time is no measure of throughput, because the launches
 * take longer than the loops.
 */
#include <inttypes.h>
#include "core/math/stats.h"
#include "core/text/text.h"
#include "probe/shared/mma.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SM_FLOP 0x1p26 /* FLOP of one launch on one SM: 8 us of BF16 at 2 GHz */
#define SLOW_SHARE                                                                                           \
	0.01 /* an SM is slow if it needs this share more cycles than the median:                            \
		docs/explanation/methods/gemm.md, "Per-SM test (probe sm)" */

enum { CLUSTER = 8, CLUSTER_GRID = 64, CLUSTER_ROUNDS = 32 };

struct sm_opts {
	uint32_t type;
};

#define X(id, text, bytes) text,
static const char *const types[] = {MMA_TYPES(X) NULL};
#undef X

static const struct opt opt_rows[] = {
	OPT_ROW(struct sm_opts, type, .name = "type", .preset = "bf16", .choices = types,
		.help = "type of the loop's operands; it selects the tested unit of the SM"),
};

/* name, unit, kind, better, help */
#define SM_FIELDS(X)                                                                                         \
	X(sms, "", U64, 0, "SMs that ran the loop")                                                          \
	X(cycles_median, "", F64, -1, "median over SMs of the loop's cycles")                                \
	X(cycles_worst_share, "", F64, -1, "cycles of the slowest SM divided by the median, minus 1")        \
	X(slow_sms, "", U64, -1, "SMs that are more than 1 % slower than the median")                        \
	X(slow_place, "", TEXT, 0, "the slow SMs: SM number, pair (TPC) and cluster group (GPC)")            \
	X(wrong_sms, "", U64, -1, "SMs that computed a wrong sum")                                           \
	X(groups, "", U64, 0,                                                                                \
	  "groups of SMs that share clusters; each group is part of one GPC, a GPC has one or more groups")  \
	X(flop_per_clock, "FLOP", F64, 1, "FLOP per clock of the median SM, running alone")                  \
	X(instruction, "", TEXT, 0, "instruction that the loop issues")
#define X(name, ...) SM_FIELD_##name,
enum sm_field { SM_FIELDS(X) SM_FIELD_COUNT };
#undef X
static const struct field fields[] = {SM_FIELDS(FIELD_ROW)};

struct sm_state {
	struct mma mma;
	struct mma_record *records; /* (MMA_RECORDS) */
	/* smallest SM number of the cluster group; the SM's own number: group not known */
	unsigned group[MMA_RECORDS];
	unsigned sm[MMA_RECORDS], count; /* numbers of the existing SMs */
	bool grouped;
};

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	const struct gpu *g = machine_gpu(m, t->gpu[0]);

	(void)opts;
	return (struct work){.messages = g ? gpu_get(g, GPU_FACT_sm_count, 0) : 0, .limit = "latency"};
}

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct sm_opts *o = opts;
	const struct gpu *g = machine_gpu(m, t->gpu[0]);

	return g && gpu_has(g, GPU_FACT_cc)
		       ? mma_supports((enum mma_type)o->type, (unsigned)gpu_get(g, GPU_FACT_cc, 0), err)
		       : STATUS_OK;
}

/* -- existing SMs, and the SMs that share a cluster -- */

static enum status find_sms(struct sm_state *s, struct error *err)
{
	enum status st = mma_launch(&s->mma, -1, err);

	if (!st)
		st = mma_read(&s->mma, s->records, err);
	for (unsigned i = 0; !st && i < MMA_RECORDS; i++)
		if (s->records[i].runs)
			s->sm[s->count++] = i;
	if (!st && !s->count)
		st = error_set(err, STATUS_MISMATCH, "sm: the loop ran, but no SM left a record");
	return st;
}

static void join(struct sm_state *s, unsigned a, unsigned b)
{
	unsigned low = s->group[a] < s->group[b] ? s->group[a] : s->group[b];
	unsigned high = s->group[a] < s->group[b] ? s->group[b] : s->group[a];

	for (unsigned i = 0; i < MMA_RECORDS && low != high; i++)
		if (s->group[i] == high)
			s->group[i] = low;
}

static enum status cluster_round(struct sm_state *s, struct gpu_kernel *k, gpu_ptr memory, struct error *err)
{
	struct sm_cluster_args args = {.next = memory, .of_sm = memory + 16, .records_count = MMA_RECORDS};
	unsigned of_sm[MMA_RECORDS], first[CLUSTER_GRID + 1] = {0};
	enum status st;

	st = gpu_stream_fill32(s->mma.stream, memory, 0, 4 + MMA_RECORDS, err);
	if (!st)
		st = gpu_launch_1d(k, s->mma.stream, CLUSTER_GRID * CLUSTER, 32, MMA_SHARED_BYTES, &args,
				   err);
	if (!st)
		st = gpu_stream_wait(s->mma.stream, err);
	if (!st)
		st = gpu_copy_from(s->mma.device, of_sm, memory + 16, sizeof(of_sm), err);
	for (unsigned i = 0; !st && i < MMA_RECORDS; i++) {
		unsigned cluster = of_sm[i];

		if (!cluster || cluster > CLUSTER_GRID)
			continue;
		if (first[cluster])
			join(s, first[cluster] - 1, i);
		else
			first[cluster] = i + 1;
	}
	return st;
}

/* The blocks of a cluster run in one GPC, each on its own SM because of its shared memory. So SMs that ever
 * ran blocks of one cluster belong to one GPC. GPUs before sm_90 have no clusters, so there are no groups. */
static enum status find_groups(struct sm_state *s, struct error *err)
{
	struct gpu_kernel *k;
	gpu_ptr memory = 0;
	enum status st;

	for (unsigned i = 0; i < MMA_RECORDS; i++)
		s->group[i] = i;
	if (gpu_cc(s->mma.device) != 90)
		return STATUS_OK;
	st = gpu_kernel(s->mma.device, &k, "mma_sm90", "sm_cluster", err);
	if (!st)
		st = gpu_alloc(s->mma.device, &memory, 16 + MMA_RECORDS * sizeof(unsigned), err);
	for (unsigned i = 0; !st && i < CLUSTER_ROUNDS; i++)
		st = cluster_round(s, k, memory, err);
	gpu_free(s->mma.device, &memory);
	s->grouped = !st;
	return st;
}

/* -- the engine -- */

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct sm_state *s = state;
	const struct sm_opts *o = opts;
	enum status st;

	s->records = calloc(MMA_RECORDS, sizeof(*s->records));
	if (!s->records)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "sm: not enough memory for the records of the SMs");
	st = mma_init(&s->mma, b, (enum mma_type)o->type, SM_FLOP, err);
	if (!st)
		st = find_sms(s, err);
	if (!st)
		st = find_groups(s, err);
	if (!st && b->out)
		result_text(b->out, &fields[SM_FIELD_instruction], s->mma.layout.instruction);
	return st ? st : mma_clear(&s->mma, err);
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct sm_state *s = state;
	enum status st = STATUS_OK;

	(void)i;
	for (unsigned n = 0; !st && n < s->count; n++)
		st = mma_launch(&s->mma, (int)s->sm[n], err);
	return st;
}

static enum status verify(void *state, struct wrong *w, struct error *err)
{
	struct sm_state *s = state;
	enum status st = STATUS_OK;

	*w = (struct wrong){0};
	if (!s->mma.launched)
		st = enqueue(s, 0, err);
	if (!st)
		st = mma_read(&s->mma, s->records, err);
	if (st)
		return st;
	mma_judge(s->records, w);
	for (unsigned n = 0; n < s->count && !w->count; n++)
		if (!s->records[s->sm[n]].runs) {
			w->count = 1;
			snprintf(w->place, sizeof(w->place), "SM %u never ran the loop", s->sm[n]);
		}
	if (w->count)
		return error_set_cause(err, STATUS_MISMATCH, CAUSE_WRONG_RESULT,
				       "sm: %" PRIu64 " of %u SMs computed wrong sums, the first: %s",
				       w->count, s->count, w->place);
	return mma_clear(&s->mma, err);
}

/* -- results -- */

static double cycles_of(const struct sm_state *s, unsigned n)
{
	return (double)s->records[s->sm[n]].cycles_min;
}

static bool all_slow(const struct sm_state *s, const bool *slow, unsigned n, bool by_group)
{
	unsigned members = 0;

	for (unsigned i = 0; i < s->count; i++) {
		bool same =
			by_group ? s->group[s->sm[i]] == s->group[s->sm[n]] : s->sm[i] / 2 == s->sm[n] / 2;

		members += same;
		if (same && !slow[i])
			return false;
	}
	return members > 1;
}

static void name_slow(const struct sm_state *s, const bool *slow, double median, struct text *t)
{
	for (unsigned n = 0; n < s->count; n++) {
		if (!slow[n])
			continue;
		text_addf(t, "%sSM %u (TPC %u%s", t->size ? "; " : "", s->sm[n], s->sm[n] / 2,
			  all_slow(s, slow, n, false) ? ", whole" : "");
		if (s->grouped)
			text_addf(t, ", GPC part of SM %u%s", s->group[s->sm[n]],
				  all_slow(s, slow, n, true) ? ", whole" : "");
		text_addf(t, ") +%.1f %%", 100 * (cycles_of(s, n) / median - 1));
	}
}

static unsigned count_groups(const struct sm_state *s)
{
	unsigned groups = 0;

	for (unsigned n = 0; n < s->count; n++)
		groups += s->group[s->sm[n]] == s->sm[n];
	return groups;
}

static enum status finish(void *state, struct result *out, struct error *err)
{
	struct sm_state *s = state;
	double cycles[MMA_RECORDS], median, worst = 0;
	bool slow[MMA_RECORDS] = {false};
	struct text place = {0};
	unsigned slow_count = 0;

	(void)err;
	for (unsigned n = 0; n < s->count; n++) {
		if (!s->records[s->sm[n]].runs)
			return STATUS_OK; /* verify has reported it */
		cycles[n] = cycles_of(s, n);
		worst = cycles[n] > worst ? cycles[n] : worst;
	}
	median = stats_median(cycles, s->count);
	for (unsigned n = 0; n < s->count; n++) {
		slow[n] = cycles[n] > median * (1 + SLOW_SHARE);
		slow_count += slow[n];
	}
	name_slow(s, slow, median, &place);
	result_u64(out, &fields[SM_FIELD_sms], s->count);
	result_f64(out, &fields[SM_FIELD_cycles_median], median);
	result_f64(out, &fields[SM_FIELD_cycles_worst_share], worst / median - 1);
	result_u64(out, &fields[SM_FIELD_slow_sms], slow_count);
	result_u64(out, &fields[SM_FIELD_wrong_sms], 0);
	result_f64(out, &fields[SM_FIELD_flop_per_clock], mma_flop(&s->mma) / median);
	if (slow_count)
		result_text(out, &fields[SM_FIELD_slow_place], text_str(&place));
	if (s->grouped)
		result_u64(out, &fields[SM_FIELD_groups], count_groups(s));
	text_release(&place);
	return STATUS_OK;
}

static void release(void *state)
{
	struct sm_state *s = state;

	mma_release(&s->mma);
	free(s->records);
	*s = (struct sm_state){0};
}

static const struct engine own_engine = {
	.name = "own",
	.libs = "cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.state_size = sizeof(struct sm_state),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.release = release,
};

/* The records take less than 1 MiB. */
static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	(void)m, (void)t, (void)opts;
	out->device_bytes = 1 << 20;
}

static const struct engine *const engines[] = {&own_engine, NULL};

const struct probe probe_sm = {
	.name = "sm",
	.summary = "test of each SM (multiprocessor) by itself: finds slow and faulty ones",
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct sm_opts)},
	.fields = fields,
	.field_count = SM_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.verify = verify,
	.finish = finish,
};
