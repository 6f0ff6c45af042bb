/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a model in one precision, scores all windows, and answers all questions. */
#ifndef CMD_EVAL_MEASURE_H
#define CMD_EVAL_MEASURE_H
#include "cmd/command.h"
#include "cmd/eval/difference.h"
#include "cmd/eval/precision.h"
#include "cmd/eval/windows.h"
#include "cmd/shared/engine_memory.h"

/* The same for all precisions. */
struct eval_task {
	const struct command_context *c;
	const struct eval_data *data;
	const struct eval_windows *windows;
	const char *path;  /* of the data, for messages */
	int64_t tokens;	   /* longest answer */
	int64_t positions; /* longest window, or prompt and answer */
	bool settled;	   /* the kernels of the CPU's library are chosen */
	uint64_t told_ns;  /* time of the last progress line */
};

struct eval_measured {
	char name[96]; /* of the precision, or of the model that is compared */
	char device[96];
	bool gpu;
	struct eval_score *score; /* [windows] */
	uint8_t *exact;		  /* [questions] 1: the calls are right */
	struct answer_totals calls;
	uint64_t tokens; /* that were computed */
	double load_s, seconds;
	struct engine_memory memory;
	char broken[256]; /* why the precision gives no figures: NaN in logits; "": it does */
};

struct eval_side {
	const char *model, *name; /* path; shown name */
	enum eval_precision precision;
	enum load_device device;
};
/* CANCELLED after a stop request. Logits with NaN are no error; *m says so. Owner: caller,
 * eval_measured_release, also after a failure. */
enum status eval_measure(struct eval_measured *m, struct eval_task *task, const struct eval_side *side,
			 struct error *err);
void eval_measured_release(struct eval_measured *m);
#endif
