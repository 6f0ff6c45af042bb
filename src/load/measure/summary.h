/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of a load test from its records: a pure function. Definitions and sources:
 * docs/explanation/methods/load.md.
 */
#ifndef LOAD_MEASURE_SUMMARY_H
#define LOAD_MEASURE_SUMMARY_H
#include "load/record/record.h"

/* A set of limits; 0: no limit. */
struct load_slo {
	const char *name;
	double ttft_s, tpot_s, e2e_s; /* of each request, from the schedule */
};
/* The sets known by name (MLPerf's, GuideLLM's); a NULL name ends the list. */
extern const struct load_slo load_slo_sets[];
/* Reads "chat", or "ttft=2s,tpot=100ms,e2e=10s". BAD_INPUT: unknown, with the nearest name. `text` must
 * outlive *out. */
enum status load_slo_read(struct load_slo *out, const char *text, struct error *err);

/* What the client process measured of itself in a stage. */
struct load_client_use {
	double cpu_share; /* CPU time of the busiest sender thread / wall time */
	double cpus;	  /* CPU time of the whole process / wall time */
	double receive_late_p50_s,
		receive_late_p99_s; /* bound on how late bytes were read after their arrival */
	double parse_behind_s;	    /* how late the parser thread was at most */
	uint64_t
		waited_for_connection; /* requests that were due and had to wait for the cap on connections */
};

struct load_measure_spec {
	uint64_t from_ns, to_ns; /* window of the schedule: requests due in it count. Throughput: tokens that
				    arrived in it */
	double offered;		 /* requests/s of the schedule; 0: closed loop */
	const struct load_slo *slo;
	size_t slo_count;
	double attainment; /* share of requests that must meet a set */
	bool ignores_end; /* the server was asked to go on after the end of a text: tokens may have no text */
	uint32_t shared_tokens; /* every prompt begins with them, so they may be cached */
	bool expect_cached;	/* the plan shares prefixes, or the cache may be warm */
	bool closed_loop, cut;	/* cut: the run was interrupted */
	struct load_client_use use;
};

/*
 * All values and curves as one JSON object. Its numbers are the members of LOAD_FIELDS (measure/fields.h);
 * one that is not known, and a percentile without enough samples, is absent. The others: "errors": {word:
 * count} of the classes that occurred; "slo": [{name, ttft_s, tpot_s, e2e_s, goodput, share, share_low,
 * share_high, met}..] in the order of spec->slo; "checks": [{name, value, limit, kept}..]; "untrusted":
 * [reason..]; "notes": [text..]; "curves": measure/curves.h, and "cdf": {latency: [[seconds, share]..]}.
 * NULL: out of memory. Owner: caller, json_decref.
 */
json_t *load_summary(const struct load_records *all, const struct load_measure_spec *spec);
#endif
