/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper process reads the GPUs' counters before, between and after the cases. If NVML stops answering for
 * a GPU, another helper queries CUDA. Costs: docs/explanation/design/processes.md, "Counters".
 */
#include "machine/machine.h"
#include "machine/source/source.h"
#include "run/supervisor/supervisor.h"

#define EVERY_NS 5000000000u /* a reading takes 50 ms of idle GPU: 1 % of this time */
enum { BYTES_MAX = 4 << 20 };

/* Answer of `assay __facts WORDS..`; NULL: *err is the reason. The caller decrefs it. */
static json_t *ask(const struct run *r, const char *const *argv, unsigned limit_ms, struct error *err)
{
	struct process_spec spec = {.argv = argv, .cpu_numa = -1, .stop = r->o->stop};
	json_t *answer = NULL;
	char *out = NULL;
	int code = 0;

	if (process_run(&spec, limit_ms, BYTES_MAX, &out, NULL, &code, err))
		return NULL;
	if (!code)
		answer = json_loads(out, JSON_REJECT_DUPLICATES, NULL);
	free(out);
	if (json_is_object(answer))
		return answer;
	json_decref(answer);
	error_set(err, STATUS_VENDOR, "the helper ended with exit code %d and no answer", code);
	return NULL;
}

static unsigned gpus_of(const struct run *r)
{
	unsigned count = machine_gpu_count(r->machine);

	return count < RUN_GPUS ? count : RUN_GPUS;
}

static const char *pci_of(const struct run *r, unsigned gpu)
{
	return machine_gpu(r->machine, gpu)->pci;
}

void health_silent(struct run *r, unsigned gpu, const char *why, enum cause cause)
{
	struct run_health *h = &r->health;

	if (gpu >= RUN_GPUS || h->silent[gpu])
		return;
	h->silent[gpu] = h->asks = true;
	text_copy(h->why[gpu], sizeof(h->why[gpu]), why);
	h->cause[gpu] = cause;
	log_warn(r->o->log, LOG_TOPIC_RUN, "%s: NVML has stopped answering for this GPU: %s", pci_of(r, gpu),
		 why);
}

/* State of a GPU as CUDA reports it. */
struct cuda_word {
	bool answers, fails; /* neither: CUDA could not be queried */
	char why[96];	     /* why it fails or could not be queried; "": no reason known */
};

static void ask_cuda(struct run *r, unsigned gpu, struct cuda_word *said)
{
	const char *argv[] = {NULL, "__facts", "alive", pci_of(r, gpu), NULL}, *why, *missing;
	struct error err = {0};
	json_t *answer = ask(r, argv, source_limit_ms(LAYER_CUDA), &err);

	why = json_string_value(json_object_get(answer, "why"));
	missing = json_string_value(json_object_get(answer, "missing"));
	*said = (struct cuda_word){.answers = answer && !why && !missing,
				   .fails = answer ? why != NULL : err.cause == CAUSE_TIMED_OUT};
	if (!said->answers) /* if the helper itself failed, the state of the GPU is unknown */
		snprintf(said->why, sizeof(said->why), "%.90s",
			 why	     ? why
			 : missing   ? missing
			 : *err.text ? err.text
				     : "its helper gave no answer");
	json_decref(answer);
}

/* Journal row of a GPU for which NVML stopped answering: docs/explanation/design/journal.md. NULL: out of
 * memory. */
static json_t *silence_row(struct run *r, unsigned gpu, const struct cuda_word *cuda)
{
	const struct run_health *h = &r->health;
	json_t *row = json_pack("{s:I, s:o}", "t_ns", (json_int_t)clock_now_ns(r->o->clock), "why",
				field_string(h->why[gpu]));

	if (row && cuda->answers)
		json_object_set_new(row, "cuda", json_string("ok"));
	else if (row)
		json_object_set_new(row, cuda->fails ? "cuda" : "cuda_missing", field_string(cuda->why));
	if (row && (h->cause[gpu] == CAUSE_GPU_LOST || h->cause[gpu] == CAUSE_VERSION_MISMATCH))
		json_object_set_new(row, "cause", json_string(cause_name(h->cause[gpu])));
	return row;
}

/* Finds out whether a GPU without NVML answers is lost, or has only lost its telemetry. */
static void tell_apart(struct run *r, unsigned gpu, unsigned id, json_t *gpus)
{
	struct run_health *h = &r->health;
	struct cuda_word cuda;

	h->checked[gpu] = true;
	ask_cuda(r, gpu, &cuda);
	if (run_stopping(r))
		return;
	json_object_set_new(gpus, pci_of(r, gpu), silence_row(r, gpu, &cuda));
	if (cuda.fails && h->cause[gpu] == CAUSE_GPU_LOST) {
		log_warn(r->o->log, LOG_TOPIC_RUN, "%s: CUDA does not reach it either (%s): the GPU is lost",
			 pci_of(r, gpu), cuda.why);
		r->lost[gpu] = r->lost[gpu] ? r->lost[gpu] : LOST_GONE;
		r->lost_by[gpu] = id;
		return;
	}
	log_warn(r->o->log, LOG_TOPIC_RUN,
		 "%s: CUDA %s%s%s; its telemetry is lost, and later cases on it without clock, "
		 "temperature or clock reasons get the verdict unknown",
		 pci_of(r, gpu),
		 cuda.answers ? "still reaches it"
		 : cuda.fails ? "does not reach it"
			      : "could not be queried",
		 *cuda.why ? ": " : "", cuda.why);
}

static void write_line(struct run *r, const char *when, json_t *gpus)
{
	if (json_object_size(gpus))
		run_journal(r, JOURNAL_HEALTH, json_pack("{s:s, s:O}", "when", when, "gpus", gpus));
	json_decref(gpus);
}

static void settle_silent(struct run *r, const char *when, unsigned id)
{
	json_t *gpus = json_object();

	r->health.asks = false;
	for (unsigned g = 0; gpus && g < gpus_of(r); g++)
		if (r->health.silent[g] && !r->health.checked[g])
			tell_apart(r, g, id, gpus);
	write_line(r, when, gpus);
}

/* Whether missing counters mean that NVML has stopped answering: it answered before, or it gave the facts of
 * this GPU and now refuses. If the machine's facts were recorded elsewhere, this machine has no such GPU or
 * no NVML, so no answer is expected. */
static bool fell_silent(const struct run *r, unsigned gpu, enum cause cause)
{
	return r->health.answered[gpu] || (machine_gpu(r->machine, gpu)->nvml_index >= 0 &&
					   cause != CAUSE_GPU_LOST && cause != CAUSE_LIBRARY_MISSING);
}

/* Journals the counters. `why`: reason why nothing was read. */
static void take_gpus(struct run *r, const char *when, const bool *used, const json_t *answer,
		      const char *why)
{
	const char *all = json_string_value(json_object_get(answer, "cause")), *own;
	struct run_health *h = &r->health;
	json_t *told = json_object(), *row;
	bool any = false;

	for (unsigned g = 0; told && g < gpus_of(r); g++) {
		enum cause cause = CAUSE_TELEMETRY_LOST;
		const char *no;

		row = json_object_get(json_object_get(answer, "gpus"), pci_of(r, g));
		no = row ? json_string_value(json_object_get(row, "why")) : why;
		if (!used[g] || (!row && !no))
			continue;
		if (row && !no) {
			json_object_set(told, pci_of(r, g), row);
			h->answered[g] = any = true;
			continue;
		}
		own = json_string_value(json_object_get(row, "cause"));
		if (own || all)
			cause_from_name(own ? own : all, &cause);
		if (fell_silent(r, g, cause))
			health_silent(r, g, no, cause);
	}
	h->off = h->off || !any;
	write_line(r, when, told);
}

static void read_counters(struct run *r, const char *when)
{
	const char *argv[RUN_GPUS + 4] = {NULL, "__facts", "counters"};
	struct error err = {0};
	bool used[RUN_GPUS];
	unsigned count = 3;
	const char *why;
	json_t *answer;

	if (r->health.off)
		return;
	run_used_gpus(r, used);
	for (unsigned g = 0; g < gpus_of(r); g++)
		if (used[g])
			argv[count++] = pci_of(r, g);
	r->health.off = count == 3; /* no case uses a GPU */
	if (r->health.off)
		return;
	answer = ask(r, argv, source_limit_ms(LAYER_NVML), &err);
	if (!answer && !run_stopping(r)) { /* a busy machine may answer late once */
		err = (struct error){0};
		answer = ask(r, argv, source_limit_ms(LAYER_NVML), &err);
	}
	if (!answer && run_stopping(r))
		return;
	if (!answer && err.cause != CAUSE_TIMED_OUT && err.cause != CAUSE_CRASHED) {
		/* the helper itself failed, so NVML's state is unknown */
		log_warn(r->o->log, LOG_TOPIC_RUN, "no counters of GPUs: %s", err.text);
		return;
	}
	why = answer ? json_string_value(json_object_get(answer, "why")) : err.text;
	if (why)
		log_debug(r->o->log, LOG_TOPIC_RUN, "no counters of GPUs: %s", why);
	take_gpus(r, when, used, answer, why);
	json_decref(answer);
	r->health.read_ns = clock_now_ns(r->o->clock);
}

void health_begin(struct run *r)
{
	read_counters(r, r->o->resume ? "resumed" : "before");
}

void health_between(struct run *r, const struct bench_case *c, struct worker *pool, size_t count)
{
	const struct case_outcome *n = &r->note[c->id];
	bool fell = r->attempt[c->id] && (!n->done || n->status);

	if (run_stopping(r) || r->status || !c->target.gpu_count)
		return;
	telemetry_reader_read(r);
	if (fell || clock_now_ns(r->o->clock) - r->health.read_ns >= EVERY_NS)
		read_counters(r, "between");
	if (!r->health.asks)
		return;
	for (size_t i = 0; i < count;
	     i++) /* the query needs a GPU that no worker uses, because some GPUs allow one process only */
		worker_pool_dismiss(r, &pool[i]);
	settle_silent(r, "between", c->id);
}

void health_end(struct run *r)
{
	if (run_stopping(r) || r->status)
		return;
	telemetry_reader_read(r);
	read_counters(r, "after");
	if (r->health.asks)
		settle_silent(r, "after", r->next_id ? r->next_id - 1 : 0);
}
