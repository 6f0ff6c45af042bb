/* SPDX-License-Identifier: Apache-2.0 */
/* The share of time that a pipe worked: counters', else GPM's signal over what it reads when the pipe never
 * idles. */
#include "judge/gap/gap.h"
#include <math.h>

#define PLAUSIBLE_KAPPA 0.2   /* a pipe that reads less while it never idles is not the one that works */
#define PLAUSIBLE_SIGNAL 0.01 /* nor is one that reads next to nothing */

/* What GPM tells of the pipes. */
enum pipe { PIPE_TENSOR, PIPE_FP32, PIPE_FP64, PIPES };

static const struct {
	const char *signal, *name;
} pipes[PIPES] = {
	[PIPE_TENSOR] = {"tensor", "tensor pipe (GPM 5)"},
	[PIPE_FP32] = {"fp32", "FP32 pipe (GPM 12)"},
	[PIPE_FP64] = {"fp64", "FP64 pipe (GPM 11)"},
};

/* Can work of this type show on this pipe? FP64 runs on the matrix units where there are such, else on its
 * own pipe. */
static bool may_run(const char *type, enum pipe pipe)
{
	if (!strcmp(type, "fp32"))
		return pipe == PIPE_FP32;
	if (!strcmp(type, "fp64"))
		return pipe == PIPE_TENSOR || pipe == PIPE_FP64;
	return pipe == PIPE_TENSOR;
}

/* What a pipe's signal reads at full rate, and the kernel of this run that told it. */
struct calibration {
	double kappa;	  /* 0: none */
	const char *type; /* of the kernel; "" */
	double refused;	  /* what a kernel read that other work of this run refutes; 0: none was */
	const char *refused_type;
};

/* Kappa by this MMA-only kernel; 0: it did not run at full rate, or this is not the pipe it ran on. */
static double kappa_by(const struct subject *kernel, enum pipe pipe)
{
	double signal, clock, flop, share;

	if (!*kernel->type || !may_run(kernel->type, pipe) || !kernel->has_figure || !kernel->phase)
		return 0;
	flop = bound_flop_per_clock(kernel);
	if (!subject_gpm(kernel, pipes[pipe].signal, &signal) ||
	    !record_number(kernel->phase, "clock_hz", &clock) || !(flop > 0) || !(clock > 0))
		return 0;
	share = kernel->figure / (flop * clock);
	if (share < 0.9 || share > 1.01 || signal / share < PLAUSIBLE_KAPPA)
		return 0;
	return signal / share;
}

/*
 * Does a case of the kernel's type, or of the type that is to be calibrated, read more than a pipe that never
 * idles? Then the kernel's window held idle time. Types are not mixed beyond that: each may have a kappa of
 * its own.
 */
static bool refuted(const struct subject *s, const struct subject *kernel, enum pipe pipe, double kappa)
{
	const struct record *r = s->ctx->record;
	struct subject o;
	double signal;

	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];

		if (c == kernel->c || strcmp(c->target, s->c->target) || !case_sound(c))
			continue;
		subject_of(&o, s->ctx, c);
		if ((!strcmp(o.type, kernel->type) || !strcmp(o.type, s->type)) &&
		    subject_gpm(&o, pipes[pipe].signal, &signal) && signal > GAP_ABOVE * kappa)
			return true;
	}
	return false;
}

/* Of the MMA-only kernels of this run that of the same type, else (a pipe that serves several) the first of
 * another. A case never calibrates itself. */
static struct calibration calibrate(const struct subject *s, enum pipe pipe)
{
	const struct record *r = s->ctx->record;
	struct calibration out = {.type = "", .refused_type = ""};
	struct subject kernel;
	double kappa;
	bool same;

	for (size_t i = 0; i < r->case_count; i++) {
		if (strcmp(r->cases[i].probe, "peak") || strcmp(r->cases[i].target, s->c->target) ||
		    !case_sound(&r->cases[i]))
			continue;
		subject_of(&kernel, s->ctx, &r->cases[i]);
		same = !strcmp(kernel.type, s->type);
		kappa = kappa_by(&kernel, pipe);
		if (!(kappa > 0) || (out.kappa > 0 && !same))
			continue;
		if (refuted(s, &kernel, pipe, kappa)) {
			if (same || !(out.refused > 0)) {
				out.refused = kappa;
				out.refused_type = kernel.type;
			}
		} else if (kernel.c != s->c) {
			out.kappa = kappa;
			out.type = kernel.type;
			if (same)
				break;
		}
	}
	return out;
}

/* The pipe of the work by what calibration and case both show: the one calibrated, else the one that reads
 * more. */
static enum pipe pipe_of(const struct subject *s, double *signal, struct calibration *by)
{
	enum pipe pipe, best = PIPES;
	struct calibration here_by;
	double here;

	*signal = 0;
	*by = (struct calibration){0};
	for (pipe = PIPE_TENSOR; pipe < PIPES; pipe++) {
		if (!may_run(s->type, pipe) || !subject_gpm(s, pipes[pipe].signal, &here) ||
		    here < PLAUSIBLE_SIGNAL)
			continue;
		here_by = calibrate(s, pipe);
		if (best < PIPES && ((by->kappa > 0 && !(here_by.kappa > 0)) ||
				     ((by->kappa > 0) == (here_by.kappa > 0) && here <= *signal)))
			continue;
		best = pipe;
		*signal = here;
		*by = here_by;
	}
	return best;
}

/* "this run's fp16 MMA-only kernel; that of bf16 held idle time: 0.958" */
static void told_by(char *text, size_t size, const struct subject *s, const struct calibration *by)
{
	bool same = !strcmp(by->type, s->type), refused = !same && !strcmp(by->refused_type, s->type);

	if (!(by->kappa > 0))
		snprintf(text, size, "assumed: no MMA-only kernel of it at full rate");
	else if (refused)
		snprintf(text, size, "this run's %.16s MMA-only kernel; that of %.16s held idle time: %.3f",
			 by->type, s->type, by->refused);
	else
		snprintf(text, size, "this run's %.16s MMA-only kernel%s%.16s%s", by->type,
			 same ? "" : ", no ", same ? "" : s->type, same ? "" : " one ran at full rate");
}

/* By hardware counters, of elapsed cycles: a pipe that never idles reads 1, so that nothing calibrates it. */
static bool counted(struct judgement *out, const struct subject *s, double *share)
{
	static const struct {
		const char *name, *text;
	} counters[PIPES] = {
		[PIPE_TENSOR] = {"tensor_active_share", "tensor pipe"},
		[PIPE_FP32] = {"fma_active_share", "FP32 pipe"},
		[PIPE_FP64] = {"fp64_active_share", "FP64 pipe"},
	};
	const char *text = NULL;
	double here;

	*share = 0;
	for (enum pipe pipe = PIPE_TENSOR; pipe < PIPES; pipe++) {
		if (!may_run(s->type, pipe) || !subject_counter(s, counters[pipe].name, &here) ||
		    here <= fmax(*share, PLAUSIBLE_SIGNAL) || here > GAP_ABOVE)
			continue;
		*share = here;
		text = counters[pipe].text;
	}
	if (text)
		gap_add(out, "pipe", *share, 0.005,
			"%s %.1f %% of elapsed cycles (CUPTI, iterations behind the window)", text,
			100 * *share);
	return text;
}

/* What to say where no signal tells. */
static void none(struct judgement *out, const struct subject *s)
{
	const char *note = record_text(s->phase, "counter_note");
	double sm;

	gap_absent(out, "pipe", "%s%s%s",
		   subject_gpm(s, "sm", &sm)
			   ? "no tensor signal on this device: GPM reads nothing for this type"
			   : "no GPM reading lies wholly inside the window, or the device has none",
		   note ? "; no counters: " : "", note ? note : "");
}

bool gap_pipe(struct judgement *out, const struct subject *s, double *share)
{
	struct calibration by;
	double signal, kappa;
	enum pipe pipe;
	char text[96];

	if (counted(out, s, share))
		return true;
	*share = 0;
	pipe = pipe_of(s, &signal, &by);
	if (pipe == PIPES) {
		none(out, s);
		return false;
	}
	if (!(by.kappa > 0) && by.refused > 0) {
		gap_absent(out, "pipe",
			   "this run's %.16s calibration kernel held idle time: its pipe read %.3f at full "
			   "rate, other work more",
			   by.refused_type, by.refused);
		return false;
	}
	kappa = by.kappa > 0 ? by.kappa : 1;
	if (signal > GAP_ABOVE * kappa) { /* of a case that is not sound: those refute the kernel */
		gap_absent(out, "pipe", "%s %.1f %% of elapsed, above the %.3f of a pipe that never idles",
			   pipes[pipe].name, 100 * signal, kappa);
		return false;
	}
	*share = signal / kappa;
	told_by(text, sizeof(text), s, &by);
	gap_add(out, "pipe", *share, by.kappa > 0 ? 0.005 : 0.013, "%s %.1f %% of elapsed, over %.3f (%s)",
		pipes[pipe].name, 100 * signal, kappa, text);
	return true;
}
