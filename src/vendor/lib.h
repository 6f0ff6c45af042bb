/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any dlopened library: NVIDIA's, OpenBLAS, oneDNN, the MPI plug-in. Opened in helper, sampler and worker
 * processes only, never in a supervisor, judge or report. A library is one X-macro of rows
 *   X(need, ret, field, symbol, params)
 * in vendor/NAME.h, from which come the struct of pointers, the loader's rows (LIB_SYMBOLS) and the check
 * against the real header (tests/unit/vendor_headers.c).
 */
#ifndef VENDOR_LIB_H
#define VENDOR_LIB_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

enum lib_need { LIB_NEED_REQUIRED, LIB_NEED_OPTIONAL };

struct lib_symbol {
	const char *symbol;
	size_t offset;
	enum lib_need need;
};

struct lib_spec {
	const char *name; /* "nvml", "cublaslt": as info software and engines name it */
	const char *const
		*sonames; /* newest first; NULL ends; with a * a pattern, for the wheel's folder alone */
	const char *const *preload; /* sonames opened before it (same folders); NULL: none */
	const char *wheel; /* folder below site-packages, "nvidia/cu13/lib"; {a,b}: either; NULL: no wheel */
	const struct lib_symbol *symbols;
	size_t symbol_count, table_size;
	int (*version)(const void *table); /* 10203 style of the library itself; NULL: none */
	bool module; /* our own: looked for in the folders of core/process/module.h and nowhere else */
};

/* Wheels that put their libraries into lib of the Python prefix itself, as Intel's of MKL and oneDNN do. */
#define LIB_WHEEL_PREFIX "../.."

struct lib_fact {	  /* filled on failure too; strings are owned by the fact, lib_fact_release */
	const char *name; /* lent from the spec */
	char *path;	  /* as the loader resolved it */
	char *missing;	  /* what was not found: a soname or a symbol, with where we looked */
	int version;
	enum status status;
	enum cause cause;
};

/*
 * Opens the library by spec->sonames, newest first, and fills `table`. All or nothing: on failure every entry
 * is NULL. An absent optional symbol is NULL. Search order: `path` when given; ASSAY_LIB_<NAME>; the loader's
 * path; the CUDA toolkit (CUDA_HOME, /usr/local/cuda); our own data folder (XDG_DATA_HOME/assay/wheels); the
 * wheels beside `python3` on PATH, VIRTUAL_ENV, CONDA_PREFIX, user site; for a module: `path`, the variable,
 * the folders of core/process/module.h. Never closed.
 */
enum status lib_open(void *table, const struct lib_spec *spec, const char *path, struct lib_fact *fact,
		     struct error *err);
void lib_fact_release(struct lib_fact *fact);

/* Rows from an X-macro: static const struct lib_symbol rows[] = { CUDA_FUNCTIONS(LIB_SYMBOL_ROW) } needs a
 * table type; each vendor/NAME.c writes
 *   #define X(need, ret, field, symbol, params) { #symbol, offsetof(struct cuda, field), LIB_NEED_##need },
 */
#endif
