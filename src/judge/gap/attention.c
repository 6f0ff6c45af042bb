/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of attention, according to its limit: the matrix units as for a GEMM, the exponentials by the XU
 * pipe, or device memory by DRAM's bytes. A loss without a signal stays in the residual, by name.
 * docs/explanation/methods/gap.md, "Attention". */
#include "judge/gap/gap.h"
#include <math.h>

#define EXP_A_CLOCK 16.0  /* exponentials per SM and clock */
#define LEAST_OF_WORK 0.3 /* smallest plausible share of the unit's work that belongs to the case */
#define LEAST_SIGNAL 0.01 /* a unit that limits the case reads more than this */

/* Adds the shares of the units that do not limit the case; never multiplied. */
static void others(struct judgement *out, const struct subject *s, enum attention_limit by, double pipe)
{
	double share;

	if (by != ATTENTION_BY_MATRIX && subject_counter(s, "tensor_active_share", &share))
		gap_show(out, "tensor pipe", share, "share of elapsed cycles that it was active (CUPTI)");
	if (by != ATTENTION_BY_EXP && subject_counter(s, "xu_active_share", &share))
		gap_show(out, "exponentials", share, "instructions of the XU pipe over its peak (CUPTI)");
	if (by != ATTENTION_BY_MEMORY && subject_counter(s, "dram_share", &share))
		gap_show(out, "DRAM", share, "share of its peak (CUPTI)");
	if (!subject_counter(s, "sm_active_share", &share) || !(share > 0))
		return;
	gap_show(out, "residency", share, "share of elapsed cycles with a warp in flight on the SM (CUPTI)");
	if (by == ATTENTION_BY_MATRIX && pipe > 0 && pipe <= share)
		gap_show(out, "issue", pipe / share, "part of pipe: pipe over SM active");
}

/* Masked and padded tiles: FLOP of the work over FLOP executed. */
static bool useful(struct judgement *out, const struct subject *s)
{
	if (gap_useful_counted(out, s, 0))
		return true;
	gap_absent(out, "useful", "masked and padded tiles are not known, so they stay in the residual");
	return false;
}

/* Share of the XU pipe's peak, and the share of its instructions that are the exponential of an unmasked
 * pair. The rest rescale, divide and take logarithms. */
static bool exponentials(struct judgement *out, const struct subject *s)
{
	double share, cycles, pairs, sms = gpu_get(s->gpu, GPU_FACT_sm_count, 0), asked;

	if (!subject_counter(s, "xu_active_share", &share) || share < LEAST_SIGNAL || share > GAP_ABOVE) {
		gap_absent(out, "exponentials",
			   "no signal of the XU pipe: the time that GEMMs and softmax wait for each other "
			   "stays in the residual");
		return false;
	}
	gap_add(out, "exponentials", share, 0.005,
		"XU pipe %.1f %% of its peak (CUPTI, iterations after the window)", 100 * share);
	asked = subject_counter(s, "sm_cycles", &cycles) && case_number(s->c, "pairs_kept", &pairs)
			? pairs / (share * EXP_A_CLOCK * sms * cycles)
			: 0;
	if (!(asked >= LEAST_OF_WORK) || asked > GAP_ABOVE) {
		gap_absent(out, "useful", "the XU pipe's work besides exponentials is not known");
		return false;
	}
	gap_add(out, "useful", asked, 0.005, "%.4g unmasked pairs, of the XU pipe's instructions (CUPTI)",
		pairs);
	return true;
}

/* DRAM's bytes per iteration over the bytes that its peak moves in as many cycles at the window's clock. */
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
			"device memory limits the case, and no signal shows how much of the time it worked");
		return false;
	}
	moved = read + written;
	rate = moved * hz / cycles;
	gap_add(out, "busy", rate / (memory.value * (clock > 0 ? clock : 1)), 0.01,
		"DRAM %.3f TB/s (bytes and cycles from CUPTI, the window's clock)", rate / 1e12);
	if (asked / moved < LEAST_OF_WORK || (asked / moved > GAP_HIGH && subject_beyond_cache(s))) {
		gap_absent(out, "traffic",
			   "%.4g bytes of work, %.4g moved by DRAM: one of them is miscounted", asked, moved);
		return false;
	}
	gap_add(out, "traffic", asked / moved, 0.005, "%.4g bytes of work, %.4g moved by DRAM (CUPTI)%s",
		asked, moved, asked / moved > GAP_ABOVE ? "; the L2 served the rest" : "");
	return true;
}

/* The bound counts only bytes, so the FLOP cancel. If more FLOP are declared than executed, the figure is too
 * high. */
static bool work_holds(struct judgement *out, const struct subject *s)
{
	double executed;

	if (!subject_counter(s, "tensor_flop", &executed) || !(executed > 0))
		return true;
	if (s->c->work_flop <= GAP_ABOVE * executed) {
		gap_show(out, "useful", fmin(s->c->work_flop / executed, 1),
			 "FLOP of the work over FLOP executed on the tensor pipe (CUPTI)");
		return true;
	}
	gap_absent(out, "useful", "%.4g FLOP declared, %.4g executed: one of them is miscounted",
		   s->c->work_flop, executed);
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
