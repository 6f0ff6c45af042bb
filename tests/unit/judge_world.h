/* SPDX-License-Identifier: Apache-2.0 */
/* Records built by hand: machines, cases and telemetry as a run would have left them. For tests of the judge.
 */
#ifndef TESTS_JUDGE_WORLD_H
#define TESTS_JUDGE_WORLD_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "judge/bound/bound.h"
#include "judge/exit.h"
#include "judge/gap/gap.h"
#include "judge/judge_run.h"
#include "judge/peers/siblings.h"
#include "judge/expect/site.h"
#include "judge/case/verdict.h"

enum { WORLD_GPUS = 8, WORLD_CASES = 64, WORLD_SERIES = 16 };
#define WORLD_T0 1000000000000ull /* a case begins here, ten seconds apart */

struct world {
	struct record r;
	struct gpu gpu[WORLD_GPUS];
	const struct gpu *gpus[WORLD_GPUS];
	struct cpu cpu;
	struct expectations *e;
	struct judge_context ctx;
	struct judgements out;
	struct record_case cases[WORLD_CASES];
	struct series series[WORLD_SERIES];
};

static inline void world_fact(struct gpu *g, enum gpu_fact fact, double value)
{
	g->fact[fact] = value;
	g->present |= 1ull << fact;
}

static inline void world_gpu(struct gpu *g, unsigned i, bool h200)
{
	*g = (struct gpu){.pci_device = (h200 ? 0x2335u : 0x2330u) << 16 | 0x10de};
	snprintf(g->pci, sizeof(g->pci), "0000:%02x:00.0", 0x10 + i);
	world_fact(g, GPU_FACT_sm_count, 132);
	world_fact(g, GPU_FACT_cc, 90);
	world_fact(g, GPU_FACT_memory_bytes, (h200 ? 140.4 : 79.6) * 0x1p30);
	world_fact(g, GPU_FACT_bus_bits, h200 ? 6016 : 5120);
	world_fact(g, GPU_FACT_l2_bytes, 50 * 0x1p20);
	world_fact(g, GPU_FACT_sm_clock_max_mhz, 1980);
	world_fact(g, GPU_FACT_memory_clock_max_mhz, h200 ? 3201 : 2619);
	world_fact(g, GPU_FACT_power_limit_w, 700);
	world_fact(g, GPU_FACT_power_limit_default_w, 700);
	world_fact(g, GPU_FACT_pcie_gen_max, 5);
	world_fact(g, GPU_FACT_pcie_width_max, 16);
	world_fact(g, GPU_FACT_mig_mode, 0);
}

static inline void world_begin(struct world *w, unsigned gpus, bool h200)
{
	struct error err = {0};
	unsigned i;

	memset(w, 0, sizeof(*w));
	if (expectations_load(&w->e, NULL, &err))
		fail_msg("%s", err.text);
	for (i = 0; i < gpus; i++) {
		world_gpu(&w->gpu[i], i, h200);
		w->gpus[i] = &w->gpu[i];
	}
	w->cpu = (struct cpu){.usable = 2, .threads = 2, .cores = 2};
	w->r.cases = w->cases;
	w->r.series = w->series;
	w->ctx = (struct judge_context){
		.record = &w->r, .e = w->e, .gpu = w->gpus, .gpu_count = gpus, .cpu = &w->cpu};
}

static inline void world_end(struct world *w)
{
	size_t i, p;

	judgements_release(&w->out);
	for (i = 0; i < w->r.case_count; i++) {
		for (p = 0; p < w->cases[i].phase_count; p++)
			json_decref(w->cases[i].phase[p].values);
		free(w->cases[i].phase);
		json_decref((json_t *)w->cases[i].plan);
	}
	for (i = 0; i < w->r.series_count; i++)
		series_release(&w->series[i]);
	json_decref(w->r.open);
	expectations_free(w->e);
}

/* "m=8192 n=8192" */
static inline json_t *world_options(const char *text)
{
	json_t *options = json_object();
	char copy[256], *save = NULL, *word;

	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *eq = strchr(word, '=');

		assert_non_null(eq);
		*eq = '\0';
		json_object_set_new(options, word, json_string(eq + 1));
	}
	return options;
}

/* A case that ended well; target "gpu3", "gpu0+gpu1" or "cpu". */
static inline struct record_case *world_case(struct world *w, const char *probe, const char *target,
					     const char *limit, const char *options)
{
	struct record_case *c = &w->cases[w->r.case_count];
	json_t *gpus = json_array(), *plan;
	char key[320];
	const char *at;

	assert_true(w->r.case_count < WORLD_CASES);
	for (at = strstr(target, "gpu"); at; at = strstr(at + 1, "gpu"))
		json_array_append_new(gpus, json_string(w->gpu[at[3] - '0'].pci));
	snprintf(key, sizeof(key), "%s %s", probe, options);
	plan = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "key", key, "probe", probe, "target", target,
			 "limit", limit, "gpus", gpus, "options", world_options(options));
	assert_non_null(plan);
	*c = (struct record_case){.id = (unsigned)w->r.case_count,
				  .step = (unsigned)w->r.case_count,
				  .key = json_string_value(json_object_get(plan, "key")),
				  .probe = json_string_value(json_object_get(plan, "probe")),
				  .engine = "own",
				  .target = json_string_value(json_object_get(plan, "target")),
				  .where = json_string_value(json_object_get(plan, "target")),
				  .limit = json_string_value(json_object_get(plan, "limit")),
				  .phases = "headline",
				  .group = "",
				  .plan = plan,
				  .begun = true,
				  .ended = true,
				  .ending = ENDING_DONE,
				  .work_flop = !strncmp(limit, "compute.", 8) ? 1e12 : 0,
				  .work_read = !strcmp(limit, "memory") ? 8e9 : 0,
				  .t0_ns = WORLD_T0 + w->r.case_count * 10000000000ull};
	c->t1_ns = c->t0_ns + 9000000000ull;
	w->r.case_count++;
	return c;
}

static inline struct record_phase *world_phase(struct record_case *c, const char *name)
{
	struct record_phase *p;
	size_t i;

	for (i = 0; i < c->phase_count; i++)
		if (!strcmp(c->phase[i].name, name))
			return &c->phase[i];
	c->phase = realloc(c->phase, (c->phase_count + 1) * sizeof(*c->phase));
	assert_non_null(c->phase);
	p = &c->phase[c->phase_count++];
	*p = (struct record_phase){
		.t0_ns = c->t0_ns + 1000000000, .t1_ns = c->t0_ns + 7000000000, .has_window = true};
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->values = json_object();
	return p;
}

static inline void world_set(struct record_case *c, const char *phase, const char *field, double value)
{
	json_object_set_new(world_phase(c, phase)->values, field, json_real(value));
}

static inline void world_text(struct record_case *c, const char *phase, const char *field, const char *value)
{
	json_object_set_new(world_phase(c, phase)->values, field, json_string(value));
}

/* A reading whose fields come as "name=number ..". */
static inline struct record_case *world_reading(struct world *w, const char *probe, const char *target,
						const char *fields)
{
	struct record_case *c = world_case(w, probe, target, "", "");
	json_t *options = world_options(fields), *value;
	const char *key;

	c->reading = true;
	c->work_flop = c->work_read = 0;
	json_object_foreach(options, key, value)
	{
		char *end;
		double number = strtod(json_string_value(value), &end);

		if (*end)
			world_text(c, "once", key, json_string_value(value));
		else
			world_set(c, "once", key, number);
	}
	json_decref(options);
	return c;
}

static inline void world_verified(struct record_case *c)
{
	world_set(c, "verify", "wrong_checked", 1000);
	world_set(c, "verify", "wrong_total", 1000);
	world_set(c, "verify", "wrong_count", 0);
}

/* A GEMM of n x n x n as measured on a card. tflops, stamped MHz, watts, share of the pipe (0: no signal). */
static inline struct record_case *world_gemm(struct world *w, const char *target, const char *type,
					     unsigned n, double tflops, double mhz, double watts, double pipe)
{
	char options[160], limit[32];
	struct record_case *c;

	snprintf(options, sizeof(options),
		 "type=%s m=%u n=%u k=%u batch=1 data=random search=first accumulate=fast scale=tensor", type,
		 n, n, n);
	snprintf(limit, sizeof(limit), "compute.%s", type);
	c = world_case(w, "gemm", target, limit, options);
	c->engine = "cublaslt";
	world_text(c, "once", "library", "cuBLASLt 13.1.0 /usr/lib/libcublasLt.so.13");
	world_set(c, "sustained", "flop_rate", tflops * 1e12);
	world_set(c, "sustained", "clock_hz", mhz * 1e6);
	world_set(c, "sustained", "power_w", watts);
	world_set(c, "sustained", "clock_reasons_or", 4);
	world_set(c, "sustained", "settled", 1);
	world_set(c, "sustained", "half_width_share", 0.004);
	if (pipe > 0)
		world_set(c, "sustained", !strcmp(type, "fp32") ? "fp32_active_share" : "tensor_active_share",
			  pipe);
	world_verified(c);
	return c;
}

static inline struct record_case *world_memory(struct world *w, const char *target, const char *op,
					       double tbs, double dram)
{
	char options[96];
	struct record_case *c;

	snprintf(options, sizeof(options), "op=%s size=8589934592 store=auto", op);
	c = world_case(w, "memory", target, "memory", options);
	world_set(c, "sustained", "byte_rate", tbs * 1e12);
	world_set(c, "sustained", "memory_clock_hz",
		  gpu_get(&w->gpu[0], GPU_FACT_memory_clock_max_mhz, 0) * 1e6);
	world_set(c, "sustained", "half_width_share", 0.002);
	if (dram > 0)
		world_set(c, "sustained", "dram_active_share", dram);
	world_verified(c);
	return c;
}

static inline struct series *world_series(struct world *w, const char *source, const char *signal,
					  enum signal_kind kind)
{
	struct series *s = &w->series[w->r.series_count++];

	assert_true(w->r.series_count <= WORLD_SERIES);
	snprintf(s->source, sizeof(s->source), "%s", source);
	snprintf(s->signal, sizeof(s->signal), "%s", signal);
	s->kind = kind;
	return s;
}

static inline void world_judge(struct world *w)
{
	struct error err = {0};

	judgements_release(&w->out);
	if (judge_run(&w->out, &w->ctx, NULL, &err))
		fail_msg("%s", err.text);
}

static inline const struct judgement *world_of(const struct world *w, const struct record_case *c)
{
	return &w->out.of_case[c - w->cases];
}

#define assert_verdict(w, c, v, why)                                                                         \
	do {                                                                                                 \
		const struct judgement *judged_ = world_of(w, c);                                            \
		if (judged_->verdict != (v) || judged_->cause != (why))                                      \
			fail_msg("%s is %s %s: %s", (c)->key, verdict_name(judged_->verdict),                \
				 cause_name(judged_->cause), judged_->reason);                               \
	} while (0)
#endif
