/* SPDX-License-Identifier: Apache-2.0 */
/* The library that is loaded into the profiled process: the environment variables that configure it, and its
 * entry points. The driver calls InitializeInjection (CUDA_INJECTION64_PATH), NVTX calls
 * InitializeInjectionNvtx2 (NVTX_INJECTION64_PATH). */
#ifndef PROFILE_INJECT_INJECT_H
#define PROFILE_INJECT_INJECT_H
#include "profile/inject/writer.h"

#define INJECT_DIR "ASSAY_PROFILE_DIR" /* absolute folder for ring files; unset: the library does nothing */
#define INJECT_LIMIT "ASSAY_PROFILE_LIMIT" /* bytes per process */
#define INJECT_WHAT "ASSAY_PROFILE_WHAT"   /* INJECT_WHAT_KERNELS, .._API or .._ALL */
#define INJECT_GRAPHS                                                                                        \
	"ASSAY_PROFILE_GRAPHS" /* "whole": a graph is one event; otherwise its nodes are events */
#define INJECT_FLUSH "ASSAY_PROFILE_FLUSH_MS" /* longest time that records stay in CUPTI */
#define INJECT_COUNTERS                                                                                      \
	"ASSAY_PROFILE_COUNTERS" /* count these kernels: a regular expression; unset: none                   \
				  */
#define INJECT_COUNTERS_SKIP "ASSAY_PROFILE_COUNTERS_SKIP"   /* number of matching kernels to skip */
#define INJECT_COUNTERS_COUNT "ASSAY_PROFILE_COUNTERS_COUNT" /* number of kernels to count after them */
#define INJECT_COUNTERS_FLOP "ASSAY_PROFILE_COUNTERS_FLOP"   /* "1": also count tensor FLOP */
#define INJECT_COUNTERS_L2 "ASSAY_PROFILE_COUNTERS_L2"	     /* "1": also count traffic through L2 */
#define INJECT_WHAT_KERNELS "kernels"			     /* only work on devices */
#define INJECT_WHAT_API "api" /* also calls that launch, copy, wait or allocate */
#define INJECT_WHAT_ALL "all" /* also every other call */
enum { INJECT_LIMIT_DEFAULT = 256 << 20, INJECT_FLUSH_DEFAULT_MS = 500 };

/* The writer of this process. The first call opens its ring file, as does the first call after a fork. If the
 * file cannot be made, the writer is closed. */
struct writer *inject_writer(void);
#endif
