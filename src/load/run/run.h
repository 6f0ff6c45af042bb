/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load test in the client process: meets the server, plans, sends, and measures, once or for each rate of a
 * sweep. What happens is told in lines of JSON (docs/explanation/design/load.md, "Processes").
 */
#ifndef LOAD_RUN_RUN_H
#define LOAD_RUN_RUN_H
#include <jansson.h>
#include <signal.h>
#include "core/log.h"
#include "load/content/content.h"
#include "load/measure/summary.h"
#include "load/plan/plan.h"

enum { LOAD_SLOS_MOST = 8, LOAD_CONNECTIONS = 4096 /* most requests in flight, if nothing is given */ };

struct load_run_spec {
	const char *dir;	       /* run directory, for requests.jsonl */
	const char *url;	       /* "http://host:8000", with or without /v1 */
	const char *model;	       /* in requests; NULL: the only or first one that the server lists */
	const char *key, *authorities; /* of the API; PEM file; NULL: none */
	const char *metrics; /* address of the server's metrics; NULL: /metrics of `url`; "": none */
	bool insecure, stream, sweep;
	double ready_s;			     /* wait before the run for a server that answers 503 or 429 */
	double timeout_s, grace_s, warmup_s; /* warmup_s < 0: a tenth of the duration, at most 30 s */
	unsigned threads, connections;	     /* 0: chosen */
	bool limited;			     /* the user limited the connections; set by load_run */
	struct load_plan_spec plan;
	struct load_content_spec content;
	struct load_slo slo[LOAD_SLOS_MOST];
	char slo_text[LOAD_SLOS_MOST][128]; /* what the sets were read from */
	size_t slo_count;
	double attainment;

	const volatile sig_atomic_t *stop;
	const struct log *log;
	enum status (*emit)(void *arg, const char *type, json_t *body, struct error *err); /* takes body */
	void *arg;
};

/*
 * Runs it. *values: the summary, also after a stop. BAD_INPUT: the options, the trace or the dataset;
 * UNAVAILABLE: the server cannot be reached, before the run. Owner of *values: caller, json_decref.
 */
enum status load_run(const struct load_run_spec *spec, json_t **values, struct error *err);
#endif
