/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads any library by dlopen: NVIDIA's libraries, OpenBLAS, oneDNN and the MPI plug-in. Only helper, sampler
 * and worker processes open libraries, never a supervisor, judge or report. Each library is one X-macro in
 * vendor/NAME.h with rows
 *   X(need, ret, field, symbol, params)
 * The macro generates the struct of function pointers, the loader's rows (LIB_SYMBOLS) and the check against
 * the real header (tests/unit/vendor_headers.c).
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
	const char *name;	    /* "nvml", "cublaslt": the name in info software and in engines */
	const char *const *sonames; /* newest first; a NULL ends the list; a * makes it a pattern, for the
				     * wheel's folder only */
	const char *const *preload; /* sonames to open first (same folders); NULL: none */
	const char *wheel; /* folder below site-packages, "nvidia/cu13/lib"; {a,b}: either; NULL: no wheel */
	const struct lib_symbol *symbols;
	size_t symbol_count, table_size;
	int (*version)(const void *table); /* version number of the library, 10203 style; NULL: none */
	bool module; /* our own module: searched only in the folders of core/process/module.h */
};

/* For wheels that put their libraries into lib of the Python prefix itself, as Intel's wheels of MKL and
 * oneDNN do. */
#define LIB_WHEEL_PREFIX "../.."

struct lib_fact {	  /* filled on failure too; lib_fact_release frees the strings */
	const char *name; /* lent from the spec */
	char *path;	  /* resolved by the loader */
	char *missing;	  /* the soname or symbol that was not found, and the searched places */
	int version;
	enum status status;
	enum cause cause;
};

/*
 * Opens the library by spec->sonames, newest first, and fills `table`. On failure every entry of the table is
 * NULL. An absent optional symbol is NULL on success too. The library is never closed.
 * Search order: `path` if given; ASSAY_LIB_<NAME>; the loader's path; the CUDA toolkit (CUDA_HOME,
 * /usr/local/cuda); our own data folder (XDG_DATA_HOME/assay/wheels); the wheels of `python3` on PATH,
 * VIRTUAL_ENV, CONDA_PREFIX and the user site. For a module: `path`; the variable; the folders of
 * core/process/module.h.
 */
enum status lib_open(void *table, const struct lib_spec *spec, const char *path, struct lib_fact *fact,
		     struct error *err);
void lib_fact_release(struct lib_fact *fact);

/* Rows from an X-macro. Offsets need the table's type, so each vendor/NAME.c defines:
 * #define X(need, ret, field, symbol, params) { #symbol, offsetof(struct cuda, field), LIB_NEED_##need },
 */
#endif
