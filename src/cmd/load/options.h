/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `assay load`, and what they mean for the plan, the client and the figures. */
#ifndef CMD_LOAD_OPTIONS_H
#define CMD_LOAD_OPTIONS_H
#include "core/input/opt.h"
#include "load/run/run.h"

/* By the words of --endpoint. */
enum { LOAD_ENDPOINT_CHAT, LOAD_ENDPOINT_COMPLETIONS };

struct load_opts {
	const char *url, *model, *name, *tokenizer, *template, *key_file, *authorities, *steps, *trace,
		*input, *output, *dataset, *body, *slo, *metrics, *node, *serve, *out, *expectations;
	uint64_t users, turns, requests, prefix, groups, connections, threads, seed, gpus;
	uint32_t endpoint, arrival;
	double rate, rate_end, burstiness, speed, think, duration, warmup, grace, timeout, ready, attainment,
		temperature, idle;
	bool insecure, warm, stream, ignore_eos, sweep, recount, sample, real_names, plan, json;
};
extern const struct opt_table load_opt_table;

/* Fills what the client process needs. Texts of *o must outlive *spec. BAD_INPUT names the option. */
enum status load_opts_spec(struct load_run_spec *spec, const struct load_opts *o, struct error *err);
/* Whether the options contradict each other. */
enum status load_opts_check(const void *opts, struct error *err);
#endif
