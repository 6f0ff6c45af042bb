/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live runs of assay, and the last checks. A live run holds a lock on its journal, so the kernel's list of
 * locks leads to it, wherever its folder is. Its figures are the newest ones in that journal.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/file/file.h"
#include "core/math/stats.h"
#include "journal/journal.h"
#include "watch/read/out.h"
#include "watch/read/reader.h"
#include "watch/read/request_line.h"
#include "watch/read/tail.h"

enum {
	RUNS_MAX = 16,
	CHECKS_MAX = 16,
	LOCKS_MAX = 1 << 20,
	TAIL_BYTES = 1 << 18, /* of a journal that was written before this process began */
	HEAD_BYTES = 1 << 22,
	RESULTS_BYTES_MAX = 32 << 20,
	TIMES_MAX = 4096
};

/* Who writes telemetry of runs. A fast run writes a line per step, of which only the newest is needed. */
enum { TRAIN, SERVE, SOURCES };
static const char *const source_name[SOURCES] = {"train", "serve"};

struct run {
	char dir[PATH_MAX];
	uint32_t e;
	bool seen;
	struct tail journal, requests;
	struct text newest[SOURCES]; /* line of telemetry since the last round; empty: none */
	double pages;		     /* of the KV cache; 0: not known */
	double steps;		     /* 0: not known */
	double time[TIMES_MAX];	     /* to first tokens, since the last slow round */
	size_t times;
	struct {
		bool known;
		double value;
	} figure[CATALOGUE_COUNT];
};
struct check {
	char suite[64], dir[NAME_MAX + 1];
	time_t end;
	enum verdict verdict;
	uint32_t e;
};
struct runs {
	const struct reader_spec *spec;
	struct watch_out out;
	uint32_t self;
	struct run *run[RUNS_MAX];
	unsigned count;
	struct check check[CHECKS_MAX];
	unsigned checks;
	time_t looked; /* newest change of the runs folder's results */
};

/* Signals of the journal's telemetry. */
static const struct {
	unsigned source;
	const char *signal;
	enum catalogue row;
} signals[] = {
	{TRAIN, "loss", CATALOGUE_RUN_LOSS},
	{TRAIN, "step", CATALOGUE_RUN_STEP},
	{TRAIN, "step_s", CATALOGUE_RUN_STEP_SECONDS},
	{TRAIN, "forward_s", CATALOGUE_RUN_PART_FORWARD},
	{TRAIN, "backward_s", CATALOGUE_RUN_PART_BACKWARD},
	{TRAIN, "optimiser_s", CATALOGUE_RUN_PART_OPTIMIZER},
	{TRAIN, "wait_s", CATALOGUE_RUN_PART_WAIT},
	{TRAIN, "tokens_per_s", CATALOGUE_RUN_TOKENS},
	{TRAIN, "mfu", CATALOGUE_RUN_MFU},
	{SERVE, "running", CATALOGUE_RUN_REQUESTS},
	{SERVE, "waiting", CATALOGUE_RUN_WAITING},
	{SERVE, "tokens_per_s", CATALOGUE_RUN_TOKENS},
	{SERVE, "pages_used", CATALOGUE_RUN_CACHE},
};

static void set_figure(struct run *run, enum catalogue row, double value)
{
	run->figure[row].known = true;
	run->figure[row].value = value;
}

/* The wall clock at a time of the monotonic clock, in whole seconds since 1970. */
static double wall_at(uint64_t t_ns)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return floor((double)wall.tv_sec - 1e-9 * ((double)clock_now_ns(clock_monotonic()) - (double)t_ns));
}

static void take_telemetry(struct run *run, const json_t *body, uint64_t t_ns)
{
	const char *source = json_string_value(json_object_get(body, "source"));
	const json_t *all = json_object_get(body, "signals");

	for (size_t i = 0; source && i < sizeof(signals) / sizeof(signals[0]); i++) {
		const json_t *v = json_object_get(json_object_get(all, signals[i].signal), "v");
		const json_t *last = json_array_get(v, json_array_size(v) ? json_array_size(v) - 1 : 0);

		if (strcmp(source, source_name[signals[i].source]) || !json_is_number(last))
			continue;
		set_figure(run, CATALOGUE_RUN_RECORDED, wall_at(t_ns));
		if (signals[i].row != CATALOGUE_RUN_CACHE)
			set_figure(run, signals[i].row, json_number_value(last));
		else if (run->pages > 0)
			set_figure(run, signals[i].row, json_number_value(last) / run->pages);
	}
}

/* "train SmolLM2 lora batch=4x512 tokens=.. steps=200" or "serve SmolLM2": model and number of steps. */
static void take_plan(struct run *run, const json_t *body, char *model, size_t size)
{
	const json_t *cases = json_object_get(json_array_get(json_object_get(body, "steps"), 0), "cases");
	const char *key = json_string_value(json_object_get(json_array_get(cases, 0), "key")), *at;

	if (!key)
		return;
	at = strstr(key, " steps=");
	if (at && strtod(at + 7, NULL) > 0)
		run->steps = strtod(at + 7, NULL);
	if (strncmp(key, "train ", 6) && strncmp(key, "serve ", 6))
		return;
	text_copy(model, size, key + 6);
	model[strcspn(model, " ")] = '\0';
}

static void take_result(struct run *run, const json_t *body)
{
	const json_t *pages = json_object_get(json_object_get(body, "values"), "pages");

	if (json_is_number(pages))
		run->pages = json_number_value(pages);
}

/* Whether the line begins with these words, behind its number and time. */
static bool begins(const char *line, size_t size, const char *words)
{
	enum { BEGIN_BYTES = 120 };

	return memmem(line, size < BEGIN_BYTES ? size : BEGIN_BYTES, words, strlen(words));
}

/* Keeps the newest line of telemetry of each source, unread. Others write telemetry, too: it is skipped. */
static bool keep_telemetry(struct run *run, const char *line, size_t size)
{
	static const char *const words[SOURCES] = {
		[TRAIN] = "\"source\":\"train\"", [SERVE] = "\"source\":\"serve\""};

	if (!begins(line, size, "\"type\":\"telemetry\""))
		return false;
	for (int i = 0; i < SOURCES; i++)
		if (begins(line, size, words[i])) {
			run->newest[i].size = 0; /* its memory is used again */
			text_add_bytes(&run->newest[i], line, size);
			break;
		}
	return true;
}

static void take_line(struct run *run, const char *line, size_t size)
{
	enum journal_type type;
	struct error err = {0};
	json_t *body = NULL;
	uint64_t t_ns;

	if (journal_parse_line(line, size, &type, &t_ns, &body, &err))
		return;
	if (type == JOURNAL_TELEMETRY)
		take_telemetry(run, body, t_ns);
	else if (type == JOURNAL_RESULT)
		take_result(run, body);
	json_decref(body);
}

static void take_journal(void *arg, const char *line, size_t size)
{
	struct run *run = arg;

	if (!keep_telemetry(run, line, size))
		take_line(run, line, size);
}

static void take_newest(struct run *run)
{
	for (int i = 0; i < SOURCES; i++) {
		if (run->newest[i].size)
			take_line(run, run->newest[i].data, run->newest[i].size);
		if (run->newest[i].failed)
			text_release(&run->newest[i]);
		run->newest[i].size = 0;
	}
}

static void take_request(void *arg, const char *line, size_t size)
{
	struct run *run = arg;

	if (run->times < TIMES_MAX && request_first_token(&run->time[run->times], line, size))
		run->times++;
}

/* Reads kind and model from the first lines of the run's journal. */
static void read_head(struct run *run, char kind[24], char model[96])
{
	char path[PATH_MAX + 32], *text = NULL, *line, *end;
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", run->dir, JOURNAL_FILE);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	text = fd < 0 ? NULL : malloc(HEAD_BYTES);
	n = text ? pread(fd, text, HEAD_BYTES - 1, 0) : -1;
	if (n > 0)
		text[n] = '\0';
	for (line = n > 0 ? text : NULL; line && (end = strchr(line, '\n')); line = end + 1) {
		enum journal_type type;
		struct error err = {0};
		json_t *body = NULL;
		uint64_t t_ns;

		if (journal_parse_line(line, (size_t)(end - line), &type, &t_ns, &body, &err))
			break;
		if (type == JOURNAL_OPEN)
			text_copy(kind, 24,
				  json_string_value(json_object_get(body, "suite"))
					  ? json_string_value(json_object_get(body, "suite"))
					  : "");
		if (type == JOURNAL_PLAN)
			take_plan(run, body, model, 96);
		if (type == JOURNAL_RESULT)
			take_result(run, body);
		json_decref(body);
		if (type == JOURNAL_TELEMETRY)
			break;
	}
	free(text);
	if (fd >= 0)
		close(fd);
}

static void add_run(struct runs *r, const char *dir)
{
	struct run *run = calloc(1, sizeof(*run));
	char kind[24] = "", model[96] = "";

	if (!run)
		return;
	text_copy(run->dir, sizeof(run->dir), dir);
	run->journal.fd = run->requests.fd = -1;
	read_head(run, kind, model);
	tail_open(&run->journal, dir, JOURNAL_FILE, TAIL_BYTES);
	tail_open(&run->requests, dir, "requests.jsonl", 0);
	run->e = out_entity(&r->out, METRIC_SCOPE_RUN, OUT_NONE, "run",
			    strrchr(dir, '/') ? strrchr(dir, '/') + 1 : dir, "kind", *kind ? kind : NULL,
			    "model", *model ? model : NULL, NULL);
	run->seen = true;
	r->run[r->count++] = run;
}

static void remove_run(struct runs *r, unsigned i)
{
	struct run *run = r->run[i];

	out_gone(&r->out, run->e);
	tail_close(&run->journal);
	tail_close(&run->requests);
	for (int k = 0; k < SOURCES; k++)
		text_release(&run->newest[k]);
	free(run);
	r->run[i] = r->run[--r->count];
}

static void see(struct runs *r, const char *dir)
{
	for (unsigned i = 0; i < r->count; i++)
		if (!strcmp(r->run[i]->dir, dir)) {
			r->run[i]->seen = true;
			return;
		}
	if (r->count < RUNS_MAX)
		add_run(r, dir);
}

/* The folder of a journal that the process has open. */
static void look_at(struct runs *r, unsigned long pid)
{
	static const char name[] = "/" JOURNAL_FILE;
	char path[PATH_MAX], link[PATH_MAX + NAME_MAX + 2], target[PATH_MAX];
	struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/%lu/fd", r->spec->proc, pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		ssize_t n;

		snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
		n = readlink(link, target, sizeof(target) - 1);
		if (n < (ssize_t)sizeof(name))
			continue;
		target[n] = '\0';
		if (strcmp(target + n - (sizeof(name) - 1), name))
			continue;
		target[n - (ssize_t)(sizeof(name) - 1)] = '\0';
		see(r, target);
	}
	if (folder)
		closedir(folder);
}

/* "1: FLOCK  ADVISORY  WRITE 1234 08:02:131 0 EOF" */
static void find_runs(struct runs *r)
{
	char path[PATH_MAX], *text = NULL, *line;
	struct error err = {0};
	unsigned long pid, before = 0;
	size_t size;

	for (unsigned i = 0; i < r->count; i++)
		r->run[i]->seen = false;
	snprintf(path, sizeof(path), "%s/locks", r->spec->proc);
	if (file_read(&text, &size, path, LOCKS_MAX, &err))
		text = NULL;
	for (line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (sscanf(line, "%*u: FLOCK ADVISORY WRITE %lu", &pid) == 1 && pid != before) {
			look_at(r, pid);
			before = pid;
		}
	free(text);
	for (unsigned i = 0; i < r->count; i++)
		if (!r->run[i]->seen)
			remove_run(r, i--);
}

static void set_run(struct runs *r, struct run *run, bool slow)
{
	enum catalogue first = catalogue_first(METRIC_SCOPE_RUN);
	unsigned rows = catalogue_scope_rows(METRIC_SCOPE_RUN);

	tail_read(&run->journal, take_journal, run);
	take_newest(run);
	tail_read(&run->requests, take_request, run);
	if (slow && run->times) {
		set_figure(run, CATALOGUE_RUN_TTFT, stats_median(run->time, run->times));
		run->times = 0;
	} else if (slow) {
		run->figure[CATALOGUE_RUN_TTFT].known = false; /* no request ended */
	}
	if (run->steps > 0)
		set_figure(run, CATALOGUE_RUN_STEPS, run->steps);
	for (unsigned i = 0; i < rows; i++)
		if (run->figure[first + i].known)
			out_set(&r->out, run->e, first + i, run->figure[first + i].value);
}

static void take_check(struct runs *r, const char *dir, const char *folder, time_t end)
{
	char path[PATH_MAX + NAME_MAX + 32], *text;
	struct error err = {0};
	enum verdict verdict;
	const char *suite;
	json_t *j;
	size_t size;
	unsigned i = 0;

	snprintf(path, sizeof(path), "%s/%s/results.json", folder, dir);
	if (file_read(&text, &size, path, RESULTS_BYTES_MAX, &err))
		return;
	j = json_loadb(text, size, 0, NULL);
	free(text);
	suite = json_string_value(
		json_object_get(json_object_get(j, "run"), "Suite")); /* report/view/about.c */
	if (suite && strcmp(suite, "train") && strcmp(suite, "serve") && strcmp(suite, "load") &&
	    json_string_value(json_object_get(j, "verdict")) &&
	    verdict_from_name(json_string_value(json_object_get(j, "verdict")), &verdict)) {
		while (i < r->checks && strcmp(r->check[i].suite, suite))
			i++;
		if (i < CHECKS_MAX && (i == r->checks || r->check[i].end < end)) {
			if (i == r->checks) {
				r->check[i] = (struct check){0};
				text_copy(r->check[i].suite, sizeof(r->check[i].suite), suite);
				r->check[i].e = out_entity(&r->out, METRIC_SCOPE_CHECK, OUT_NONE, "suite",
							   suite, "run", dir, NULL);
				r->checks++;
			} else {
				out_label(&r->out, r->check[i].e, "run", dir);
			}
			text_copy(r->check[i].dir, sizeof(r->check[i].dir), dir);
			r->check[i].end = end;
			r->check[i].verdict = verdict;
		}
	}
	json_decref(j);
}

/* Reads results that are newer than those seen before. */
static void find_checks(struct runs *r)
{
	const char *folder = r->spec->runs ? r->spec->runs : "assay-runs";
	time_t newest = r->looked;
	struct dirent *entry;
	DIR *all = opendir(folder);

	while (all && (entry = readdir(all))) {
		char path[PATH_MAX + NAME_MAX + 32];
		struct stat info;

		snprintf(path, sizeof(path), "%s/%s/results.json", folder, entry->d_name);
		if (entry->d_name[0] == '.' || stat(path, &info) || info.st_mtime <= r->looked)
			continue;
		newest = info.st_mtime > newest ? info.st_mtime : newest;
		take_check(r, entry->d_name, folder, info.st_mtime);
	}
	if (all)
		closedir(all);
	r->looked = newest;
}

/* Rows of the verdicts, in the order of enum verdict. */
static const enum catalogue verdict_row[VERDICT_COUNT] = {
	[VERDICT_PASS] = CATALOGUE_CHECK_PASS,		 [VERDICT_MEASURED] = CATALOGUE_CHECK_MEASURED,
	[VERDICT_WARN] = CATALOGUE_CHECK_WARN,		 [VERDICT_FAIL] = CATALOGUE_CHECK_FAIL,
	[VERDICT_UNKNOWN] = CATALOGUE_CHECK_UNKNOWN,	 [VERDICT_SKIP] = CATALOGUE_CHECK_SKIP,
	[VERDICT_UNTRUSTED] = CATALOGUE_CHECK_UNTRUSTED, [VERDICT_ERROR] = CATALOGUE_CHECK_ERROR,
};

static void set_checks(struct runs *r)
{
	for (unsigned i = 0; i < r->checks; i++) {
		for (int v = 0; v < VERDICT_COUNT; v++)
			out_set(&r->out, r->check[i].e, verdict_row[v],
				r->check[i].verdict == (enum verdict)v);
		out_set(&r->out, r->check[i].e, CATALOGUE_CHECK_END, (double)r->check[i].end);
	}
}

int reader_runs(const struct reader_spec *spec)
{
	struct runs *r = calloc(1, sizeof(*r));
	struct reader_rounds rounds = {0};

	if (!r)
		return 1;
	r->spec = spec;
	out_init(&r->out, STDOUT_FILENO);
	r->self = reader_declare(&r->out, "runs");
	while (reader_wait(&rounds, spec)) {
		uint64_t t_ns = clock_now_ns(clock_monotonic());

		if (rounds.slow) {
			find_runs(r);
			find_checks(r);
			reader_cpu(&r->out, r->self);
		}
		for (unsigned i = 0; i < r->count; i++)
			set_run(r, r->run[i], rounds.slow);
		set_checks(r);
		out_end(&r->out, OUT_NONE, t_ns, rounds.slow);
		if (!out_flush(&r->out))
			break;
	}
	while (r->count)
		remove_run(r, 0);
	out_release(&r->out);
	free(r);
	return 0;
}
