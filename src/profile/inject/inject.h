/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library in the profiled process: what it is told by the environment, and its one state. The driver
 * calls InitializeInjection (CUDA_INJECTION64_PATH), NVTX InitializeInjectionNvtx2 (NVTX_INJECTION64_PATH).
 */
#ifndef PROFILE_INJECT_INJECT_H
#define PROFILE_INJECT_INJECT_H
#include "profile/inject/writer.h"

#define INJECT_DIR "ASSAY_PROFILE_DIR"		 /* where ring files go; absolute. Unset: nothing is done */
#define INJECT_LIMIT "ASSAY_PROFILE_LIMIT"	 /* bytes a process */
#define INJECT_WHAT "ASSAY_PROFILE_WHAT"	 /* INJECT_WHAT_KERNELS, .._API, .._ALL */
#define INJECT_GRAPHS "ASSAY_PROFILE_GRAPHS"	 /* "whole": a graph is one event; else its nodes are */
#define INJECT_FLUSH "ASSAY_PROFILE_FLUSH_MS"	 /* how long records may wait in CUPTI */
#define INJECT_COUNTERS "ASSAY_PROFILE_COUNTERS" /* whose counters: a regular expression; unset: none */
#define INJECT_COUNTERS_SKIP "ASSAY_PROFILE_COUNTERS_SKIP"   /* of the kernels that match */
#define INJECT_COUNTERS_COUNT "ASSAY_PROFILE_COUNTERS_COUNT" /* behind them */
#define INJECT_COUNTERS_FLOP "ASSAY_PROFILE_COUNTERS_FLOP"   /* "1": tensor FLOP too */
#define INJECT_COUNTERS_L2 "ASSAY_PROFILE_COUNTERS_L2"	     /* "1": what crossed L2 too */
#define INJECT_WHAT_KERNELS "kernels"			     /* what devices do, alone */
#define INJECT_WHAT_API "api" /* and calls that launch, copy, wait or allocate */
#define INJECT_WHAT_ALL "all" /* and every other call */
enum { INJECT_LIMIT_DEFAULT = 256 << 20, INJECT_FLUSH_DEFAULT_MS = 500 };

/* This process's file; made when it is first asked for, again after a fork. Closed where there is none. */
struct writer *inject_writer(void);
#endif
