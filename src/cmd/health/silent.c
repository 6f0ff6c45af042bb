/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/health/silent.h"
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/health/lock.h"
#include "cmd/health/look.h"
#include "core/process/process.h"
#include "machine/source/source.h"

enum { ANSWER_MAX = 1 << 20, ASKED_MAX = 32, STEP_MS = 20 };

/* Limit of a question, in ms. ASSAY_FACTS_LIMIT_MS shortens it. */
static unsigned limit_ms(void)
{
	unsigned ms = source_limit_ms(LAYER_NVML);

	return ms < LOOK_NVML_MS ? ms : LOOK_NVML_MS;
}

/* The answer of one helper; NULL: *err says why there is none. The caller decrefs it. */
static json_t *ask(const char *const *argv, unsigned ms, const volatile sig_atomic_t *stop, struct error *err)
{
	struct process_spec spec = {.argv = argv, .cpu_numa = -1, .stop = stop};
	json_t *answer = NULL;
	char *out = NULL;
	int code = 0;

	if (process_run(&spec, ms, ANSWER_MAX, &out, NULL, &code, err))
		return NULL;
	if (!code)
		answer = json_loads(out, JSON_REJECT_DUPLICATES, NULL);
	free(out);
	if (!answer)
		error_set(err, STATUS_VENDOR, "the helper ended with exit code %d and no answer", code);
	return answer;
}

bool silent_ask_driver(struct silent_gpus *g, const volatile sig_atomic_t *stop, struct health_finding *f)
{
	const char *const argv[] = {NULL, "__facts", "gpus", NULL};
	unsigned ms = limit_ms();
	struct error err = {0};
	json_t *answer = ask(argv, ms, stop, &err), *row;
	size_t i;

	json_array_foreach(json_object_get(answer, "gpus"), i, row)
	{
		if (g->count < SILENT_GPUS)
			text_copy(g->pci[g->count++], HEALTH_PART,
				  json_string_value(row) ? json_string_value(row) : "");
	}
	json_decref(answer);
	if (err.cause != CAUSE_TIMED_OUT && err.cause != CAUSE_STUCK)
		return true;
	health_finding_add(f, HEALTH_UNKNOWN, err.cause, false, NULL,
			   "the driver hangs: NVML did not list its GPUs within %.1f s%s", ms / 1000.0,
			   err.cause == CAUSE_STUCK ? ", and its process cannot be killed" : "");
	return false;
}

static bool nvml_answered(const struct machine *m)
{
	for (unsigned i = 0; i < machine_gpu_count(m); i++)
		if (machine_gpu(m, i)->nvml_index >= 0)
			return true;
	return false;
}

/* Waits until all helpers have ended, at most `ms`. */
static void await(struct process *p, size_t count, unsigned ms, const volatile sig_atomic_t *stop)
{
	const struct clock *clock = clock_monotonic();
	uint64_t end = clock_now_ns(clock) + ms * 1000000ull;
	size_t left = count;

	while (left && clock_now_ns(clock) < end && !*stop) {
		left = 0;
		for (size_t i = 0; i < count; i++)
			left += !process_poll(&p[i]);
		if (left)
			clock_sleep_ns(clock, STEP_MS * 1000000u);
	}
}

bool silent_name_hanging(const struct silent_gpus *g, const struct machine *m,
			 const volatile sig_atomic_t *stop, struct health_finding *f)
{
	struct process p[ASKED_MAX] = {0};
	size_t asked = g->count < ASKED_MAX ? g->count : ASKED_MAX, hang = 0;
	unsigned ms = limit_ms();
	const char *first = NULL;

	pid_t stuck;

	if (!g->count || nvml_answered(m))
		return false;
	stuck = health_stuck_helper("/proc", clock_monotonic());
	if (stuck) {
		health_finding_add(f, HEALTH_UNKNOWN, CAUSE_STUCK, false, NULL,
				   "NVML gave no facts in time, and its helper process %ld cannot be killed",
				   (long)stuck);
		return true;
	}
	for (size_t i = 0; i < asked; i++) {
		const char *const argv[] = {NULL, "__facts", "counters", g->pci[i], NULL};
		struct process_spec spec = {
			.argv = argv, .cpu_numa = -1, .capture_output = true, .stderr_apart = true};

		if (process_start(&p[i], &spec, NULL))
			p[i] = (struct process){.channel = -1, .output = -1, .ended = true};
	}
	await(p, asked, ms, stop);
	for (size_t i = 0; i < asked; i++) {
		if (!p[i].ended && !hang++)
			first = g->pci[i];
	}
	for (size_t i = 0; i < asked; i++) {
		if (!p[i].ended)
			process_stop(&p[i], 0, 200);
		process_release(&p[i]);
	}
	if (hang)
		health_finding_add(f, HEALTH_UNKNOWN, CAUSE_TIMED_OUT, false, first,
				   "does not answer NVML within %.1f s; %zu of %zu GPUs hang", ms / 1000.0,
				   hang, asked);
	else
		health_finding_add(f, HEALTH_UNKNOWN, CAUSE_TIMED_OUT, false, NULL,
				   "NVML gave no facts in time, but each of its %zu GPUs answers alone",
				   asked);
	return true;
}

/* Adds what CUDA says about a GPU that NVML calls lost. */
static void ask_one(const struct gpu *g, const volatile sig_atomic_t *stop, struct health_finding *f)
{
	const char *const argv[] = {NULL, "__facts", "alive", g->pci, NULL};
	struct error err = {0};
	json_t *answer = ask(argv, limit_ms(), stop, &err);
	const char *why = json_string_value(json_object_get(answer, "why"));
	const char *missing = json_string_value(json_object_get(answer, "missing"));

	if (why || (!answer && err.cause == CAUSE_TIMED_OUT))
		health_finding_add(f, HEALTH_FAIL, CAUSE_GPU_LOST, true, g->pci,
				   "gpu_lost: neither NVML (%s) nor CUDA (%s) reaches it", g->reason,
				   why ? why : err.text);
	else
		health_finding_add(f, HEALTH_UNKNOWN, CAUSE_GPU_LOST, false, g->pci,
				   "gpu_lost: NVML does not reach it (%s), but CUDA %s", g->reason,
				   answer && !missing ? "does"
				   : missing	      ? missing
						      : err.text);
	json_decref(answer);
}

void silent_ask_cuda(const struct machine *m, const volatile sig_atomic_t *stop, struct health_finding *f)
{
	for (unsigned i = 0; i < machine_gpu_count(m) && !*stop; i++)
		if (machine_gpu(m, i)->status == STATUS_LOST && *machine_gpu(m, i)->pci)
			ask_one(machine_gpu(m, i), stop, f);
}
