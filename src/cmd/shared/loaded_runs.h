/* SPDX-License-Identifier: Apache-2.0 */
/* Several runs in memory, read and judged, for `compare` and `history`. */
#ifndef CMD_SHARED_LOADED_RUNS_H
#define CMD_SHARED_LOADED_RUNS_H
#include "core/input/opt.h"
#include "judge/compare/compare.h"

enum { LOADED_RUNS_MAX = 256 };

struct loaded_run;
struct loaded_runs { /* valid when zeroed and after loaded_runs_release */
	struct compare_run *run;
	size_t count;
	struct loaded_run *own; /* owns what `run` points to */
	size_t owned;
};

/* Reads and judges each directory; the names are lent. `expectations`: as in judged_expectations. BAD_INPUT:
 * a directory is no run, or there are more than LOADED_RUNS_MAX. The caller calls loaded_runs_release, after
 * an error too. */
enum status loaded_runs_read(struct loaded_runs *l, const struct opt_words *dirs, const char *expectations,
			     struct error *err);
void loaded_runs_release(struct loaded_runs *l);
#endif
