/* SPDX-License-Identifier: Apache-2.0 */
/* assay profile -- CMD: records a timeline of any CUDA program. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <regex.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/command.h"
#include "cmd/profile/files.h"
#include "cmd/profile/tracks.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"
#include "core/file/file.h"
#include "core/text/redact.h"
#include "core/process/module.h"
#include "journal/journal.h"
#include "machine/machine.h"
#include "profile/inject/inject.h"
#include "profile/program.h"
#include "run/supervisor/job.h"

enum { CODE_NOT_EXECUTABLE = 126, CODE_NOT_FOUND = 127, WAIT_MS = 200, BATCH = 1 << 20 };

struct profile_opts {
	const char *out, *counters;
	uint64_t limit_bytes, flush_ms, counters_skip, counters_count, tracks_ns;
	uint32_t graphs;
	bool kernels_only, api, counters_flop, counters_l2, sample, real_names, json, trace;
};

static const char *const graph_words[] = {"nodes", "whole", NULL};

static const struct opt opts[] = {
	OPT_ROW(struct profile_opts, out, .name = "out", .also = "output output-dir o", .shown = "DIR",
		.help = "run directory (default: assay-runs/DATE-profile)"),
	OPT_ROW(struct profile_opts, kernels_only, .name = "kernels-only",
		.help = "record only the activity of the devices, not the program's CUDA calls: lowest overhead"),
	OPT_ROW(struct profile_opts, api, .name = "api",
		.help = "record every CUDA call, and the event that each wait is for (default: calls that launch, copy, wait or allocate)"),
	OPT_ROW(struct profile_opts, graphs, .name = "graphs", .preset = "nodes", .choices = graph_words,
		.help = "record a CUDA graph as its nodes, or as one event with lower overhead"),
	OPT_ROW(struct profile_opts, counters, .name = "counters", .also = "metrics kernel-name",
		.shown = "REGEX",
		.help = "read hardware counters of the kernels whose names match, instead of a timeline. Each kernel "
			"runs alone. A dot matches all kernels"),
	OPT_ROW(struct profile_opts, counters_skip, .name = "counters-skip", .also = "launch-skip",
		.max = 1e15, .help = "number of matching kernels to skip first, in each process"),
	OPT_ROW(struct profile_opts, counters_count, .name = "counters-count", .also = "launch-count",
		.preset = "100", .min = 1, .max = 1e15, .help = "number of kernels to count after that"),
	OPT_ROW(struct profile_opts, counters_flop, .name = "counters-flop",
		.help = "also count executed tensor FLOP, for a roofline; each kernel runs again on saved memory"),
	OPT_ROW(struct profile_opts, counters_l2, .name = "counters-l2",
		.help = "also count L2 traffic and hits; each kernel runs again on saved memory"),
	OPT_ROW(struct profile_opts, limit_bytes, .name = "limit-size", .preset = "256MiB", .unit = "B",
		.min = 4 << 20, .max = 17179869184.0,
		.help = "maximum size of a process's records; beyond it the oldest events are overwritten and counted as lost"),
	OPT_ROW(struct profile_opts, flush_ms, .name = "flush", .preset = "500ms", .unit = "ms", .min = 1,
		.max = 60000,
		.help = "interval for writing records to disk: a killed program loses at most this time"),
	OPT_ROW(struct profile_opts, trace, .name = "trace", .preset = "true",
		.help = "write trace.json.gz; the raw records are saved in any case"),
	OPT_ROW(struct profile_opts, sample, .name = "telemetry", .preset = "true",
		.help = "sample power, clocks, temperatures and GPM counters during the run"),
	OPT_ROW(struct profile_opts, tracks_ns, .name = "tracks-every", .unit = "ns", .min = 20e3, .max = 1e9,
		.help = "sampling interval of hardware counters as tracks (SM, tensor, DRAM, NVLink, PCIe), for example "
			"10ms (default: GPM counters every 250 ms)"),
	OPT_ROW(struct profile_opts, real_names, .name = "real-names",
		.help = "keep serial numbers, addresses and host names in the journal instead of pseudonyms"),
	OPT_ROW(struct profile_opts, json, .name = "json",
		.help = "print summary.json on stdout after the program's output"),
};

/* Columns: name, unit, help. */
/* clang-format off */
#define PROFILE_FIELDS(X) \
	X(exit_code, "", "exit code of the program; 128 plus the number of the signal that ended it") \
	X(wall_s, "s", "time from the program's start to its end") \
	X(processes, "", "processes that used CUDA or NVTX") \
	X(kernels, "", "recorded kernels") \
	X(kernel_s, "s", "sum of the kernels' durations") \
	X(copies, "", "recorded copies and memory sets") \
	X(calls, "", "recorded calls of CUDA functions") \
	X(busy_share, "", "share of the time from first to last event in which a kernel, copy or set ran; all devices") \
	X(events_lost, "", "events that were overwritten, dropped or left out")
/* clang-format on */
static const struct field fields[] = {
#define X(name, unit, help) {#name, unit, help, FIELD_F64, 0},
	PROFILE_FIELDS(X)
#undef X
};

struct profiling {
	const struct command_context *c;
	const struct profile_opts *o;
	char dir[PATH_MAX], rings[PATH_MAX + 16];
	struct text command; /* the program's words, separated by blanks */
	struct program program;
	struct job *job;
	struct timeline timeline;
	struct findings findings;
	struct findings_bounds bounds;
	struct profile_tracks tracks;
	struct text note;
	uint64_t start_ns, end_ns;
	char ending[200];
};

static enum status find_library(char out[MODULE_FOLDER_TEXT + 32], struct error *err)
{
	char folder[MODULE_FOLDER_TEXT];

	for (unsigned i = 0; i < MODULE_FOLDERS; i++)
		if (module_folder(folder, i)) {
			snprintf(out, MODULE_FOLDER_TEXT + 32, "%s/libassay_inject.so", folder);
			if (!access(out, R_OK))
				return STATUS_OK;
		}
	return error_set_cause(
		err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
		"cannot find libassay_inject.so in assay's module folders; set ASSAY_MODULE_DIR to its folder");
}

static enum status check_pattern(const char *pattern, struct error *err)
{
	regex_t compiled;
	int code = regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB);
	char why[128];

	if (!*pattern || code) {
		regerror(code, &compiled, why, sizeof(why));
		return error_set(err, STATUS_BAD_INPUT,
				 "--counters: \"%.80s\" is not a regular expression%s%s", pattern,
				 code ? ": " : "", code ? why : "");
	}
	regfree(&compiled);
	return STATUS_OK;
}

static enum status check_wishes(const struct profiling *p, struct error *err)
{
	const struct opt_words *words = &p->c->rest;

	if (!words->count)
		return error_set(err, STATUS_BAD_INPUT, "no program given: assay profile -- PROGRAM ..");
	if (p->o->kernels_only && p->o->api)
		return error_set(err, STATUS_BAD_INPUT, "--kernels-only and --api cannot be combined");
	if (p->o->counters && p->o->tracks_ns)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--counters and --tracks-every cannot be combined: both need exclusive use of the hardware counters");
	if (p->o->counters && (p->o->kernels_only || p->o->api))
		return error_set(err, STATUS_BAD_INPUT,
				 "--counters records no timeline, so --kernels-only and --api do not apply");
	if ((p->o->counters_flop || p->o->counters_l2) && !p->o->counters)
		return error_set(err, STATUS_BAD_INPUT,
				 "--counters-%s needs --counters REGEX; use --counters . for all kernels",
				 p->o->counters_flop ? "flop" : "l2");
	if (p->o->counters_skip && !p->o->counters)
		return error_set(err, STATUS_BAD_INPUT,
				 "--counters-skip needs --counters REGEX; use --counters . for all kernels");
	if (p->o->counters && check_pattern(p->o->counters, err))
		return STATUS_BAD_INPUT;
	if (p->o->out && !*p->o->out)
		return error_set(err, STATUS_BAD_INPUT, "--out is empty");
	return STATUS_OK;
}

/* Makes the run directory with an absolute path, because the program may change its working folder. */
static enum status make_folders(struct profiling *p, struct error *err)
{
	char journal[PATH_MAX + 32];
	enum status st;

	if (p->o->out)
		text_copy(p->dir, sizeof(p->dir), p->o->out);
	else
		run_dirs_next(p->dir, "profile");
	snprintf(journal, sizeof(journal), "%s/%s", p->dir, JOURNAL_FILE);
	if (!access(journal, F_OK))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s already holds a run: choose another folder with --out", p->dir);
	st = file_make_private_dir(p->dir, err);
	if (!st && !realpath(p->dir, p->rings))
		st = error_errno(err, errno, "cannot find %s", p->dir);
	if (st)
		return st;
	if (strlen(p->rings) + 7 > PATH_MAX)
		return error_set(err, STATUS_BAD_INPUT, "the path of %s is too long", p->dir);
	memcpy(p->rings + strlen(p->rings), "/rings", 7);
	return file_make_private_dir(p->rings, err);
}

static enum status begin_job(struct profiling *p, struct error *err)
{
	const struct machine_scope scope = {.up_to =
						    p->o->sample || p->o->tracks_ns ? LAYER_NVML : LAYER_HOST,
					    .out = p->dir,
					    .stop = p->c->stop};
	char key[200];
	const struct job_spec spec = {.dir = p->dir,
				      .command = (const char *const *)p->c->argv,
				      .name = "profile",
				      .key = key,
				      .fields = fields,
				      .field_count = sizeof(fields) / sizeof(fields[0]),
				      .sample = p->o->sample,
				      .real_names = p->o->real_names,
				      .started_ns = process_started_ns(),
				      .log = p->c->log,
				      .clock = clock_monotonic()};
	struct machine *m = NULL;
	enum status st = machine_read_scope(&m, &scope, NULL, p->c->log, err);

	snprintf(key, sizeof(key), "profile %.180s", text_str(&p->command));
	if (!st)
		st = job_begin(&p->job, &spec, m, err);
	p->bounds = profile_files_bounds(m);
	if (!st && p->o->tracks_ns)
		profile_tracks_start(&p->tracks, m, p->o->tracks_ns, p->c->log);
	machine_free(m);
	return st;
}

static enum status start(struct profiling *p, const char *library, struct error *err)
{
	char cuda[PATH_MAX + 64], nvtx[PATH_MAX + 64], dir[PATH_MAX + 64], limit[64], flush[64], what[64],
		graphs[64], skip[64], count[64], *counters = NULL;
	/* The variables for counters come last: without a pattern they are not set. */
	const char *env[13] = {cuda, nvtx, dir, limit, flush, what, graphs};
	size_t at = 7;
	enum status st;
	const char *kept = p->o->kernels_only ? INJECT_WHAT_KERNELS
			   : p->o->api	      ? INJECT_WHAT_ALL
					      : INJECT_WHAT_API;

	snprintf(cuda, sizeof(cuda), "CUDA_INJECTION64_PATH=%s", library);
	snprintf(nvtx, sizeof(nvtx), "NVTX_INJECTION64_PATH=%s", library);
	snprintf(dir, sizeof(dir), INJECT_DIR "=%s", p->rings);
	snprintf(limit, sizeof(limit), INJECT_LIMIT "=%" PRIu64, p->o->limit_bytes);
	snprintf(flush, sizeof(flush), INJECT_FLUSH "=%" PRIu64, p->o->flush_ms);
	snprintf(what, sizeof(what), INJECT_WHAT "=%s", kept);
	snprintf(graphs, sizeof(graphs), INJECT_GRAPHS "=%s", graph_words[p->o->graphs]);
	if (p->o->counters) {
		if (asprintf(&counters, INJECT_COUNTERS "=%s", p->o->counters) < 0)
			return error_errno(err, ENOMEM, "the environment of the profiled program");
		snprintf(skip, sizeof(skip), INJECT_COUNTERS_SKIP "=%" PRIu64, p->o->counters_skip);
		snprintf(count, sizeof(count), INJECT_COUNTERS_COUNT "=%" PRIu64, p->o->counters_count);
		env[at++] = counters;
		env[at++] = skip;
		env[at++] = count;
		if (p->o->counters_flop)
			env[at++] = INJECT_COUNTERS_FLOP "=1";
		if (p->o->counters_l2)
			env[at++] = INJECT_COUNTERS_L2 "=1";
	}
	p->start_ns = clock_now_ns(clock_monotonic());
	st = program_start(&p->program, p->c->rest.word, env, err);
	free(counters);
	return st;
}

/* Warns of processes that still run. The profile has their records so far; later records are only in their
 * rings. */
static void name_left_behind(struct profiling *p)
{
	char mark[PATH_MAX + 64];
	struct text left = {0};
	size_t n = strlen(p->ending), count;

	snprintf(mark, sizeof(mark), INJECT_DIR "=%s", p->rings);
	count = program_left_behind(&left, mark);
	if (count)
		snprintf(p->ending + n, sizeof(p->ending) - n, " (%s: still running)", text_str(&left));
	if (count)
		log_warn(p->c->log, LOG_TOPIC_RUN,
			 "%s: still running: its further activity is not in this profile; "
			 "assay report %s --write adds it",
			 text_str(&left), p->dir);
	text_release(&left);
}

static void follow(struct profiling *p)
{
	while (!program_wait(&p->program, job_channel(p->job), WAIT_MS)) {
		job_receive(p->job);
		profile_tracks_receive(&p->tracks, p->job);
	}
	p->end_ns = clock_now_ns(clock_monotonic());
	process_wait_text(p->program.wait_status, p->ending, sizeof(p->ending));
	program_release(&p->program);
	name_left_behind(p);
	profile_tracks_stop(&p->tracks, p->job);
	job_quiet(p->job);
}

static double busy_share(const struct summary *s)
{
	double busy = 0, whole = 0;

	for (size_t i = 0; i < s->devices; i++) {
		busy += (double)s->device[i].busy_ns;
		whole += (double)(s->device[i].last_ns - s->device[i].first_ns);
	}
	return whole > 0 ? busy / whole : 0;
}

static json_t *values(const struct profiling *p)
{
	const struct timeline *t = &p->timeline;
	const struct summary *s = &p->findings.whole.summary;
	double lost = 0;
	json_t *v;

	for (size_t i = 0; i < t->processes; i++)
		lost += (double)(t->process[i].overwritten + t->process[i].dropped +
				 t->process[i].dropped_cupti + t->process[i].left_out);
	v = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "exit_code",
		      (double)program_code(&p->program), "wall_s", (double)(p->end_ns - p->start_ns) * 1e-9,
		      "processes", (double)t->processes, "kernels", (double)s->count[TIMELINE_KERNEL],
		      "kernel_s", s->total_ns[TIMELINE_KERNEL] * 1e-9, "copies",
		      (double)(s->count[TIMELINE_COPY] + s->count[TIMELINE_SET]), "calls",
		      (double)(s->count[TIMELINE_RUNTIME] + s->count[TIMELINE_DRIVER]), "events_lost", lost);
	if (v && s->devices)
		json_object_set_new(v, "busy_share", json_real(busy_share(s)));
	return v;
}

static void tell_lines(const struct profiling *p, const struct text *text, bool warn)
{
	for (const char *line = text_str(text), *end; *line && (end = strchr(line, '\n')); line = end + 1) {
		if (warn)
			log_warn(p->c->log, LOG_TOPIC_RUN, "%.*s", (int)(end - line), line);
		else
			log_info(p->c->log, LOG_TOPIC_RUN, "%.*s", (int)(end - line), line);
	}
}

static void tell(const struct profiling *p, const struct page *page)
{
	struct text brief = {0}, missing = {0};

	page_brief(&brief, page);
	page_missing(&missing, &p->timeline, page->note);
	tell_lines(p, &brief, false);
	tell_lines(p, &missing, true);
	log_info(p->c->log, LOG_TOPIC_RUN, "profile: %s/PROFILE.md", p->dir);
	text_release(&brief);
	text_release(&missing);
}

static enum status write_files(const struct profiling *p, const struct page *page, struct error *err)
{
	struct profile_files files = {.dir = p->dir, .page = *page};
	json_t *all;
	enum status st;

	files.series = job_series(p->job, &files.series_count);
	st = profile_files_write(&files, err);
	if (!p->o->json)
		return st;
	all = findings_json(&p->findings);
	if ((!all || !show_json(all, JSON_INDENT(1))) && !st)
		st = error_set(err, STATUS_NO_RESOURCE, "cannot write the summary to stdout");
	json_decref(all);
	return st;
}

/* After the program has ended: even if something fails here, its records and its exit code are kept. */
static enum status conclude(struct profiling *p, struct error *err)
{
	struct page page = {.f = &p->findings,
			    .command = text_str(&p->command),
			    .ending = p->ending,
			    .trace = p->o->trace};
	struct error journal = {0};
	enum status st = timeline_read(&p->timeline, p->rings, 0, &p->note, err), ended;
	enum ending ending = p->program.end_requested ? ENDING_CANCELLED : ENDING_DONE;
	bool well = !program_code(&p->program), found;

	page.note = text_str(&p->note);
	page.wall_s = (double)(p->end_ns - p->start_ns) * 1e-9;
	if (!st)
		st = findings_of(&p->findings, &p->timeline, &p->bounds, err);
	found = !st;
	if (found)
		st = write_files(p, &page, err);
	job_phase(p->job, "once", p->start_ns, p->end_ns, found ? values(p) : NULL);
	ended = job_end(&p->job, ending, well ? STATUS_OK : STATUS_VENDOR, well ? CAUSE_NONE : CAUSE_CRASHED,
			p->ending, &journal);
	if (found)
		tell(p, &page);
	if (!st && ended)
		st = error_set_cause(err, ended, journal.cause, "%s", journal.text);
	return st;
}

static int start_code(const struct error *err)
{
	return err->status == STATUS_UNAVAILABLE && err->cause != CAUSE_PERMISSION ? CODE_NOT_FOUND
										   : CODE_NOT_EXECUTABLE;
}

static int profile(struct profiling *p, struct error *err)
{
	char library[MODULE_FOLDER_TEXT + 32];
	int code;

	if (check_wishes(p, err) || find_library(library, err) || make_folders(p, err) || begin_job(p, err))
		return command_complain(p->c, err);
	if (start(p, library, err)) {
		profile_tracks_stop(&p->tracks, p->job);
		job_end(&p->job, ENDING_DONE, err->status, err->cause, err->text, NULL);
		command_complain(p->c, err);
		return start_code(err);
	}
	follow(p);
	code = program_code(&p->program);
	if (conclude(p, err)) {
		command_complain(p->c, err);
		return code ? code : EXIT_INCONCLUSIVE;
	}
	return code;
}

/* The command as all files of the run show it: without secrets. */
static void add_command(struct text *out, const struct opt_words *words)
{
	struct redact state = {0};

	for (size_t i = 0; i < words->count; i++) {
		struct redact again = state;
		size_t size = redact_word(&again, NULL, 0, words->word[i]) + 1;
		char *shown = malloc(size);

		if (shown)
			redact_word(&state, shown, size, words->word[i]);
		text_addf(out, "%s%s", i ? " " : "", shown ? shown : REDACTED);
		free(shown);
	}
}

static int run(const struct command_context *c, const void *opts_)
{
	struct profiling *p = calloc(1, sizeof(*p));
	struct error err = {0};
	int code;

	if (!p) {
		error_errno(&err, ENOMEM, "a profile");
		return command_complain(c, &err);
	}
	p->c = c;
	p->o = opts_;
	add_command(&p->command, &c->rest);
	code = profile(p, &err);
	timeline_release(&p->timeline);
	findings_release(&p->findings);
	text_release(&p->command);
	text_release(&p->note);
	free(p);
	return code;
}

const struct command command_profile = {
	.name = "profile",
	.summary = "show where a CUDA program spends its time: kernels, copies, NCCL, idle time by reason",
	.example = "assay profile -- python3 train.py   # then read PROFILE.md in assay-runs/DATE-profile",
	.help = "Runs the program unchanged, including its child processes, and records its activity on the "
		"GPUs. It uses CUPTI activity records and NVTX, which need no special permission. The run "
		"directory holds PROFILE.md and PROFILE.html. They show the time of each device, idle time "
		"by reason, NCCL operations, kernels, copies, calls and possible savings. The same figures "
		"are in CSV files and summary.json. trace.json.gz opens in Perfetto and Holistic Trace "
		"Analysis. The journal holds power, clocks and GPM counters. With --counters, assay reads "
		"hardware counters of kernels instead. This needs the permission for GPU counters.\n\n"
		"The exit code is that of the program. After a signal, it is 128 plus the signal number. It "
		"is 127 if the program does not exist, and 2 if the program succeeded but its profile cannot "
		"be written.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct profile_opts)},
	.rest = "-- PROGRAM [WORD...]",
	.run = run,
};
