/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the processes on GPUs: asked from a process of its own, one process at a time. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/text/json_member.h"
#include "watch/read/node.h"

#define ANSWER_NS 5000000000ull
#define JOBS_EVERY_NS 5000000000ull
#define JOBS_AGAIN_NS 60000000000ull /* after a folder that did not answer */

void names_ask(struct node *n, unsigned pid)
{
	if (n->nameless)
		return;
	for (unsigned i = 0; i < n->asked_count; i++)
		if (n->asked[i] == pid)
			return;
	if (pid && n->asked_count < NODE_PIDS_MAX)
		n->asked[n->asked_count++] = pid;
}

static void next_question(struct node *n)
{
	n->names.limit_ns = 0;
	if (n->jobs_asked) {
		n->jobs_asked = false;
		return;
	}
	memmove(n->asked, n->asked + 1, (--n->asked_count) * sizeof(n->asked[0]));
}

static const char *jobs_of_files(const struct node *n, uint32_t gpu)
{
	const char *number = watch_label(&n->state.entity[gpu], "gpu");
	unsigned long i = number ? strtoul(number, NULL, 10) : READER_GPUS_MAX;

	return i < READER_GPUS_MAX && *n->jobs[i] ? n->jobs[i] : NULL;
}

/* The label that all processes of a GPU share becomes the GPU's; several, and it has none. */
static void set_label(struct node *n, uint32_t gpu, const char *name)
{
	const struct watch_state *s = &n->state;
	const char *shared = NULL, *now = watch_label(&s->entity[gpu], name);
	bool several = false;
	struct text text = {0};

	for (uint32_t i = 0; i < s->count; i++) {
		const char *one = s->entity[i].scope == METRIC_SCOPE_PROCESS && s->entity[i].of == gpu
					  ? watch_label(&s->entity[i], name)
					  : NULL;

		several |= one && shared && strcmp(one, shared);
		shared = one ? one : shared;
	}
	if (several)
		shared = NULL;
	if (!strcmp(name, "hpc_job") && jobs_of_files(n, gpu))
		shared = jobs_of_files(n, gpu);
	if (shared ? now && !strcmp(now, shared) : !now)
		return;
	if (shared)
		out_add_string(&text, shared);
	node_sendf(n, "{\"e\":%u,\"labels\":{\"%s\":%s}}", gpu, name, shared ? text_str(&text) : "null");
	text_release(&text);
}

void names_set_gpu(struct node *n, uint32_t gpu)
{
	if (gpu >= n->state.count || n->state.entity[gpu].scope != METRIC_SCOPE_GPU)
		return;
	set_label(n, gpu, "hpc_job");
	set_label(n, gpu, "container");
}

static void take_jobs(struct node *n, const json_t *jobs)
{
	char number[16];

	for (unsigned i = 0; i < READER_GPUS_MAX; i++) {
		snprintf(number, sizeof(number), "%u", i);
		text_copy(n->jobs[i], sizeof(n->jobs[i]), json_member_text(jobs, number));
	}
	for (uint32_t i = 0; i < n->state.count; i++)
		names_set_gpu(n, i);
	if (n->jobs_asked)
		next_question(n);
}

/* {"pid": N, "labels": {..}}; the last answer about a process has no labels. Or {"jobs": {..}}. */
static bool take(void *arg, const char *line, size_t size)
{
	struct node *n = arg;
	json_t *j = json_loadb(line, size, 0, NULL), *labels = json_object_get(j, "labels");
	json_int_t pid = json_integer_value(json_object_get(j, "pid"));
	char *text = labels && json_object_size(labels) ? json_dumps(labels, JSON_COMPACT) : NULL, number[24];

	if (json_object_get(j, "jobs")) {
		take_jobs(n, json_object_get(j, "jobs"));
		json_decref(j);
		return true;
	}
	snprintf(number, sizeof(number), "%lld", (long long)pid);
	for (uint32_t i = 0; text && i < n->state.count; i++) {
		const struct watch_entity *e = &n->state.entity[i];

		if (e->scope != METRIC_SCOPE_PROCESS || !watch_label(e, "pid") ||
		    strcmp(watch_label(e, "pid"), number))
			continue;
		node_sendf(n, "{\"e\":%u,\"labels\":%s}", i, text);
		names_set_gpu(n, n->state.entity[i].of);
	}
	if (!labels && n->asked_count && n->asked[0] == (unsigned)pid)
		next_question(n);
	free(text);
	json_decref(j);
	return true;
}

/* The next question, which is "jobs" when its time has come. */
static void write_question(struct node *n, char *line, size_t size, uint64_t now_ns)
{
	n->jobs_asked = now_ns >= n->jobs_ns && reader_job_files();
	if (n->jobs_asked) {
		n->jobs_ns = now_ns + JOBS_EVERY_NS;
		snprintf(line, size, "jobs\n");
	} else {
		snprintf(line, size, "%u\n", n->asked[0]);
	}
}

void names_turn(struct node *n, uint64_t now_ns)
{
	struct child *c = &n->names;
	char line[16];

	if (c->running && !reader_child_read(c, take, n)) {
		if (c->limit_ns)
			next_question(n); /* it died of this one */
		return;
	}
	if (c->running && c->limit_ns && now_ns > c->heard_ns && now_ns - c->heard_ns > c->limit_ns) {
		if (n->jobs_asked)
			n->jobs_ns = now_ns + JOBS_AGAIN_NS;
		next_question(n); /* this process is not asked about again */
		reader_child_stop(c);
	}
	if (c->stuck || c->limit_ns || (!n->asked_count && !(reader_job_files() && now_ns >= n->jobs_ns)))
		return;
	if (!c->running && now_ns >= c->start_ns)
		reader_child_start(c, n->spec, n->spec->proc);
	if (!c->running)
		return;
	write_question(n, line, sizeof(line), now_ns);
	if (write(c->input, line, strlen(line)) == (ssize_t)strlen(line)) {
		c->limit_ns = ANSWER_NS;
		c->heard_ns = now_ns;
	}
}
