/* SPDX-License-Identifier: Apache-2.0 */
/* Time limit for listing the candidates of a search. */
#ifndef PROBE_SHARED_CANDIDATES_H
#define PROBE_SHARED_CANDIDATES_H
#include "run/probe.h"

struct candidates_listing {
	const struct bench *bench;
	uint64_t t0_ns; /* start of the listing, by the bench's clock */
};

/* Callback of a library's listing; `arg` is a struct candidates_listing. Listing the candidates may take half
 * of the search's time, because the other half is for timing them: then *enough becomes true. CANCELLED if
 * the run was asked to stop. */
enum status candidates_continue(void *arg, bool *enough, struct error *err);
#endif
