/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the machine that --expect or a site file states with the machine that is present. Grammar:
 * docs/explanation/design/exit.md. */
#ifndef JUDGE_EXPECT_SITE_H
#define JUDGE_EXPECT_SITE_H
#include "judge/case/context.h"

struct site {
	struct site_gpus {
		char sku[32]; /* name of a SKU, or its first parts: "h100-sxm" */
		unsigned count;
	} gpus[8];
	size_t gpus_count;
	double power_limit_w; /* agreed limit; 0: not stated */
	double sm_clock_hz;   /* clock that the GPUs are locked to; 0: not stated */
	double nvlinks;	      /* per GPU; -1: not stated */
	bool stated;
};

/* Tolerances, as shares of the stated value. Clocks come in steps of 15 MHz, and a locked clock moves by a
 * step. */
#define SITE_CLOCK_LOW 0.98
#define SITE_CLOCK_HIGH 1.02
#define SITE_POWER_APART 0.005

/* True if this GPU has the stated power limit. */
bool site_states_power(const struct site *site, const struct gpu *g);
/* True if this clock is the stated one. */
bool site_states_clock(const struct site *site, double hz);

/* Reads "h100-sxm:8,l40s:1" and the file; either may be NULL. BAD_INPUT names the option or file:line. */
enum status site_read(struct site *out, const struct judge_site *from, const struct expectations *e,
		      struct error *err);
/* PASS if the machine has everything that was stated; else FAIL with gpu_missing or config_mismatch. */
void site_judge(struct judgement *out, const struct site *site, const struct judge_context *ctx);
#endif
