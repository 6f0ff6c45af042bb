/* SPDX-License-Identifier: Apache-2.0 */
/* The share of time that a pipe worked: from hardware counters, else GPM's signal over the value it reads
 * when the pipe never idles. */
#include "judge/gap/gap.h"
#include <math.h>

/* A pipe that reads less than this while it never idles is not the pipe of this work. */
#define PLAUSIBLE_KAPPA 0.2
#define PLAUSIBLE_SIGNAL 0.01 /* nor is a pipe that reads almost nothing */

/* The pipes that GPM reports. */
enum pipe { PIPE_TENSOR, PIPE_FP32, PIPE_FP64, PIPES };

static const struct {
	const char *signal, *name;
} pipes[PIPES] = {
	[PIPE_TENSOR] = {"tensor", "tensor pipe (GPM 5)"},
	[PIPE_FP32] = {"fp32", "FP32 pipe (GPM 12)"},
	[PIPE_FP64] = {"fp64", "FP64 pipe (GPM 11)"},
};

/* True if work of this type can show on this pipe. FP64 runs on the matrix units if they support it, else on
 * its own pipe. */
static bool may_run(const char *type, enum pipe pipe)
{
	if (!strcmp(type, "fp32"))
		return pipe == PIPE_FP32;
	if (!strcmp(type, "fp64"))
		return pipe == PIPE_TENSOR || pipe == PIPE_FP64;
	return pipe == PIPE_TENSOR;
}

/* The value that a pipe's signal reads at full rate, and the kernel of this run that gave it. */
struct calibration {
	double kappa;	  /* 0: none */
	const char *type; /* type of the kernel; "" */
	double refused;	  /* the value of a kernel that other work of this run refutes; 0: none was refuted */
	const char *refused_type;
};

/* Returns kappa from this MMA-only kernel. 0: it did not run at full rate, or this is not the pipe it ran on.
 */
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

/* True if a case reads more than a pipe that should never idle, so the kernel's window held idle time. Only
 * cases of the kernel's type or of the type to be calibrated count, because each type may have a kappa of its
 * own. */
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

/* Takes the MMA-only kernel of the same type of this run, else the first one of another type that uses this
 * pipe. A case never calibrates itself. */
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

/* Finds the pipe of the work from calibration and case: the calibrated pipe, else the one with the higher
 * signal. */
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

/* Writes "this run's fp16 MMA-only kernel; the bf16 kernel held idle time: 0.958". */
static void calibration_text(char *text, size_t size, const struct subject *s, const struct calibration *by)
{
	bool same = !strcmp(by->type, s->type), refused = !same && !strcmp(by->refused_type, s->type);

	if (!(by->kappa > 0))
		snprintf(text, size, "assumed: no MMA-only kernel of this type ran at full rate");
	else if (refused)
		snprintf(text, size,
			 "this run's %.16s MMA-only kernel; the %.16s kernel held idle time: %.3f", by->type,
			 s->type, by->refused);
	else
		snprintf(text, size, "this run's %.16s MMA-only kernel%s%.16s%s", by->type,
			 same ? "" : ", since no ", same ? "" : s->type,
			 same ? "" : " kernel ran at full rate");
}

/* From hardware counters, as a share of elapsed cycles. A pipe that never idles reads 1, so no calibration is
 * needed. */
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
			"%s %.1f %% of elapsed cycles (CUPTI, iterations after the window)", text,
			100 * *share);
	return text;
}

/* Writes why there is no signal. */
static void none(struct judgement *out, const struct subject *s)
{
	const char *note = record_text(s->phase, "counter_note");
	double sm;

	gap_absent(out, "pipe", "%s%s%s",
		   subject_gpm(s, "sm", &sm)
			   ? "GPM has no signal for this type on this device"
			   : "no GPM reading lies wholly inside the window, or the device has no GPM",
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
			   "this run's %.16s calibration kernel held idle time: its pipe read %.3f at "
			   "full rate, and other work read more",
			   by.refused_type, by.refused);
		return false;
	}
	kappa = by.kappa > 0 ? by.kappa : 1;
	if (signal > GAP_ABOVE * kappa) { /* the case itself is not sound, because sound cases would have
					     refuted the kernel */
		gap_absent(out, "pipe",
			   "%s %.1f %% of elapsed cycles, above the %.3f of a pipe that never idles",
			   pipes[pipe].name, 100 * signal, kappa);
		return false;
	}
	*share = signal / kappa;
	calibration_text(text, sizeof(text), s, &by);
	gap_add(out, "pipe", *share, by.kappa > 0 ? 0.005 : 0.013,
		"%s %.1f %% of elapsed cycles, over %.3f (%s)", pipes[pipe].name, 100 * signal, kappa, text);
	return true;
}
