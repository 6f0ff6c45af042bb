/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention's chain, by what binds it: the matrix units' as a product's; the exponentials' by the XU pipe;
 * device memory's by DRAM's bytes. What nothing tells stays in the residual, by name. METHODS "Gap".
 */
#include "judge/gap/gap.h"
#include <math.h>

#define EXP_A_CLOCK 16.0  /* exponentials an SM and clock */
#define LEAST_OF_WORK 0.3 /* of what a unit did, what was asked for: less is something else */
#define LEAST_SIGNAL 0.01 /* a unit that binds reads more */

/* What other units did beside the one that binds; never multiplied. */
static void others(struct judgement *out, const struct subject *s, enum attention_limit by, double pipe)
{
	double share;

	if (by != ATTENTION_BY_MATRIX && subject_counter(s, "tensor_active_share", &share))
		gap_show(out, "tensor pipe", share, "active, of elapsed cycles (CUPTI)");
	if (by != ATTENTION_BY_EXP && subject_counter(s, "xu_active_share", &share))
		gap_show(out, "exponentials", share, "XU pipe's instructions over its peak (CUPTI)");
	if (by != ATTENTION_BY_MEMORY && subject_counter(s, "dram_share", &share))
		gap_show(out, "DRAM", share, "of its peak (CUPTI)");
	if (!subject_counter(s, "sm_active_share", &share) || !(share > 0))
		return;
	gap_show(out, "residency", share, "SMs with a warp in flight, of elapsed cycles (CUPTI)");
	if (by == ATTENTION_BY_MATRIX && pipe > 0 && pipe <= share)
		gap_show(out, "issue", pipe / share, "part of pipe: pipe over SM active");
}

/* Masked and padded tiles: FLOP asked for over those executed. */
static bool useful(struct judgement *out, const struct subject *s)
{
	if (gap_useful_counted(out, s, 0))
		return true;
	gap_absent(out, "useful", "masked and padded tiles are not told: they stay in the residual");
	return false;
}

/* The XU pipe's share of its peak, and of its instructions those that are a kept pair's exponential: what
 * rescales, divides and takes logarithms is the rest. */
static bool exponentials(struct judgement *out, const struct subject *s)
{
	double share, cycles, pairs, sms = gpu_get(s->gpu, GPU_FACT_sm_count, 0), asked;

	if (!subject_counter(s, "xu_active_share", &share) || share < LEAST_SIGNAL || share > GAP_ABOVE) {
		gap_absent(out, "exponentials",
			   "no signal of the XU pipe: what products and softmax wait for each other stays in "
			   "the residual");
		return false;
	}
	gap_add(out, "exponentials", share, 0.005,
		"XU pipe %.1f %% of its peak (CUPTI, iterations behind the window)", 100 * share);
	asked = subject_counter(s, "sm_cycles", &cycles) && case_number(s->c, "pairs_kept", &pairs)
			? pairs / (share * EXP_A_CLOCK * sms * cycles)
			: 0;
	if (!(asked >= LEAST_OF_WORK) || asked > GAP_ABOVE) {
		gap_absent(out, "useful",
			   "what else than a kept pair's exponential the XU pipe did is not told");
		return false;
	}
	gap_add(out, "useful", asked, 0.005, "%.4g pairs kept, of the XU pipe's instructions (CUPTI)", pairs);
	return true;
}

/* DRAM's bytes an iteration over what its peak moves in the window's own time for as many cycles. */
static bool traffic(struct judgement *out, const struct subject *s, double clock)
{
	struct bound memory = {.from = BOUND_NONE};
	double read, written, cycles, hz, moved, rate, asked = s->c->work_read + s->c->work_write;

	bound_memory(s, &memory);
	if (!(memory.value > 0) || !subject_counter(s, "dram_read_bytes", &read) ||
	    !subject_counter(s, "dram_write_bytes", &written) || !subject_counter(s, "sm_cycles", &cycles) ||
	    !record_number(s->phase, "clock_hz", &hz) || !(read + written > 0)) {
		gap_absent(
			out, "busy",
			"device memory limits it, and nothing here tells how much of its time that worked");
		return false;
	}
	moved = read + written;
	rate = moved * hz / cycles;
	gap_add(out, "busy", rate / (memory.value * (clock > 0 ? clock : 1)), 0.01,
		"DRAM %.3f TB/s (CUPTI's bytes and cycles, the window's clock)", rate / 1e12);
	if (asked / moved < LEAST_OF_WORK || (asked / moved > GAP_HIGH && subject_beyond_cache(s))) {
		gap_absent(out, "traffic", "%.4g bytes asked for, %.4g moved by DRAM: one is miscounted",
			   asked, moved);
		return false;
	}
	gap_add(out, "traffic", asked / moved, 0.005, "%.4g bytes asked for, %.4g moved by DRAM (CUPTI)%s",
		asked, moved, asked / moved > GAP_ABOVE ? "; the L2 kept the rest" : "");
	return true;
}

/* The bound is bytes alone, and its FLOP cancel: declared above those executed, the figure is too high. */
static bool work_holds(struct judgement *out, const struct subject *s)
{
	double executed;

	if (!subject_counter(s, "tensor_flop", &executed) || !(executed > 0))
		return true;
	if (s->c->work_flop <= GAP_ABOVE * executed) {
		gap_show(out, "useful", fmin(s->c->work_flop / executed, 1),
			 "FLOP asked for over those executed on the tensor pipe (CUPTI)");
		return true;
	}
	gap_absent(out, "useful", "%.4g FLOP declared, %.4g executed: one is miscounted", s->c->work_flop,
		   executed);
	return false;
}

bool gap_attention(struct judgement *out, const struct subject *s)
{
	struct bound again = {.from = BOUND_NONE};
	enum attention_limit by = bound_attention(s, &again);
	double clock, pipe = 0;
	bool whole;

	if (by == ATTENTION_BY_MEMORY) {
		clock = gap_memory_clock(out, s);
		whole = traffic(out, s, clock) && clock > 0;
		whole = work_holds(out, s) && whole;
	} else {
		whole = gap_clock(out, s);
		whole = (by == ATTENTION_BY_EXP ? exponentials(out, s) : gap_pipe(out, s, &pipe)) && whole;
		if (by == ATTENTION_BY_MATRIX)
			whole = useful(out, s) && whole;
	}
	others(out, s, by, pipe);
	return whole;
}
