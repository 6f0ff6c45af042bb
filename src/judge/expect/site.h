/* SPDX-License-Identifier: Apache-2.0 */
/* What was bought, as stated by --expect or a site file, against what is here. Grammar:
 * docs/explanation/design/exit.md.
 */
#ifndef JUDGE_EXPECT_SITE_H
#define JUDGE_EXPECT_SITE_H
#include "judge/case/context.h"

struct site {
	struct site_gpus {
		char sku[32]; /* a SKU's name, or the beginning of some: "h100-sxm" */
		unsigned count;
	} gpus[8];
	size_t gpus_count;
	double power_limit_w; /* agreed; 0: not stated */
	double sm_clock_hz;   /* that GPUs are locked to; 0: not stated */
	double nvlinks;	      /* a GPU; -1: not stated */
	bool stated;
};

/* A clock or limit is the stated one within these shares of it: clocks come in steps of 15 MHz, and held ones
 * move by a step. */
#define SITE_CLOCK_LOW 0.98
#define SITE_CLOCK_HIGH 1.02
#define SITE_POWER_APART 0.005

/* The power limit of this GPU is the one that is stated. */
bool site_states_power(const struct site *site, const struct gpu *g);
/* This clock is the one that is stated. */
bool site_states_clock(const struct site *site, double hz);

/* "h100-sxm:8,l40s:1" and the file (either may be NULL). BAD_INPUT names option or file:line. */
enum status site_read(struct site *out, const struct judge_site *from, const struct expectations *e,
		      struct error *err);
/* PASS where all that was stated is here; FAIL with gpu_missing or config_mismatch. */
void site_judge(struct judgement *out, const struct site *site, const struct judge_context *ctx);
#endif
