/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the processes on GPUs, jobs and pods: asked from a process of its own, one at a time. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/json/member.h"
#include "watch/pods/pods.h"
#include "watch/read/node.h"

#define ANSWER_NS 5000000000ull
#define JOBS_EVERY_NS 5000000000ull
#define AGAIN_NS 60000000000ull /* after a folder or a kubelet that did not answer */
#define PODS_EVERY_NS 10000000000ull

enum pod_part { POD_NAME, POD_NAMESPACE, POD_CONTAINER };

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
	const bool process = n->question == ASKED_PROCESS;

	n->names.limit_ns = 0;
	n->question = ASKED_PROCESS;
	if (process)
		memmove(n->asked, n->asked + 1, (--n->asked_count) * sizeof(n->asked[0]));
}

static const char *jobs_of_files(const struct node *n, uint32_t gpu)
{
	const char *number = watch_label(&n->state.entity[gpu], "gpu");
	unsigned long i = number ? strtoul(number, NULL, 10) : READER_GPUS_MAX;

	return i < READER_GPUS_MAX && *n->jobs[i] ? n->jobs[i] : NULL;
}

/* A part of the pod that holds this GPU or instance: the device plugin names it by UUID, or "nvidia0". NULL:
 * no pod holds it, or none is known. */
static const char *of_pod(const struct node *n, uint32_t id, enum pod_part part)
{
	const struct watch_entity *e = &n->state.entity[id];
	const char *uuid = watch_label(e, "UUID"), *number = watch_label(e, "gpu"), *text;
	const json_t *pod = uuid ? json_object_get(n->pods, uuid) : NULL;
	char name[32];

	snprintf(name, sizeof(name), "nvidia%s", number ? number : "");
	if (!pod && number && e->scope == METRIC_SCOPE_GPU)
		pod = json_object_get(n->pods, name);
	text = json_string_value(json_array_get(pod, (size_t)part));
	return text && *text ? text : NULL;
}

/* NULL takes it away. */
static void send_label(struct node *n, uint32_t id, const char *name, const char *value)
{
	const char *now = watch_label(&n->state.entity[id], name);
	struct text text = {0};

	if (value ? now && !strcmp(now, value) : !now)
		return;
	if (value)
		out_add_string(&text, value);
	node_sendf(n, "{\"e\":%u,\"labels\":{\"%s\":%s}}", id, name, value ? text_str(&text) : "null");
	text_release(&text);
}

/* The label that all processes of a GPU share; NULL: they have several, or none. */
static const char *of_processes(const struct node *n, uint32_t gpu, const char *name)
{
	const struct watch_state *s = &n->state;
	const char *shared = NULL;
	bool several = false;

	for (uint32_t i = 0; i < s->count; i++) {
		const char *one = s->entity[i].scope == METRIC_SCOPE_PROCESS && s->entity[i].of == gpu
					  ? watch_label(&s->entity[i], name)
					  : NULL;

		several |= one && shared && strcmp(one, shared);
		shared = one ? one : shared;
	}
	return several ? NULL : shared;
}

void names_set_gpu(struct node *n, uint32_t gpu)
{
	const char *job, *container;

	if (gpu >= n->state.count || n->state.entity[gpu].scope != METRIC_SCOPE_GPU)
		return;
	job = jobs_of_files(n, gpu);
	container = of_pod(n, gpu, POD_CONTAINER);
	send_label(n, gpu, "hpc_job", job ? job : of_processes(n, gpu, "hpc_job"));
	send_label(n, gpu, "container", container ? container : of_processes(n, gpu, "container"));
	send_label(n, gpu, "pod", of_pod(n, gpu, POD_NAME));
	send_label(n, gpu, "namespace", of_pod(n, gpu, POD_NAMESPACE));
}

static void set_instance(struct node *n, uint32_t id)
{
	send_label(n, id, "container", of_pod(n, id, POD_CONTAINER));
	send_label(n, id, "pod", of_pod(n, id, POD_NAME));
	send_label(n, id, "namespace", of_pod(n, id, POD_NAMESPACE));
}

/* The kubelet's answer, or why there is none, which is a label of the node. */
static void take_pods(struct node *n, const json_t *line)
{
	const char *why = json_string_value(json_object_get(line, "why"));

	json_decref(n->pods);
	n->pods = json_deep_copy(json_object_get(line, "pods"));
	if (why)
		n->pods_ns += AGAIN_NS - PODS_EVERY_NS;
	for (uint32_t i = 0; i < n->state.count; i++) {
		names_set_gpu(n, i);
		if (n->state.entity[i].scope == METRIC_SCOPE_GPU_INSTANCE)
			set_instance(n, i);
		else if (n->state.entity[i].scope == METRIC_SCOPE_NODE)
			send_label(n, i, "pod_resources", why ? why : "answers");
	}
	if (n->question == ASKED_PODS)
		next_question(n);
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
	if (n->question == ASKED_JOBS)
		next_question(n);
}

/* {"pid": N, "labels": {..}}; the last answer about a process has no labels. Or {"jobs": {..}}, {"pods":
 * {..}}. */
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
	if (json_object_get(j, "pods")) {
		take_pods(n, j);
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

/* The host's source has named the node, to which the reason for absent pods belongs. */
static bool knows_node(const struct node *n)
{
	return n->state.of_scope[METRIC_SCOPE_NODE] > 0;
}

/* What is due: jobs, then pods, then a process. False: nothing. */
static bool choose_question(struct node *n, uint64_t now_ns)
{
	if (now_ns >= n->jobs_ns && reader_job_files()) {
		n->question = ASKED_JOBS;
		return true;
	}
	if (now_ns >= n->pods_ns && knows_node(n)) {
		n->pods_ns = now_ns + PODS_EVERY_NS;
		if (n->pods || pods_socket()) {
			n->question = ASKED_PODS;
			return true;
		}
	}
	n->question = ASKED_PROCESS;
	return n->asked_count > 0;
}

static void write_question(struct node *n, char *line, size_t size, uint64_t now_ns)
{
	switch (n->question) {
	case ASKED_JOBS:
		n->jobs_ns = now_ns + JOBS_EVERY_NS;
		snprintf(line, size, "jobs\n");
		break;
	case ASKED_PODS:
		snprintf(line, size, "pods\n");
		break;
	case ASKED_PROCESS:
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
		if (n->question == ASKED_JOBS)
			n->jobs_ns = now_ns + AGAIN_NS;
		else if (n->question == ASKED_PODS)
			n->pods_ns =
				now_ns +
				PODS_EVERY_NS; /* the machine is busy: the question has a limit of its own */
		next_question(n);	       /* this process is not asked about again */
		reader_child_stop(c);
	}
	if (c->stuck || c->limit_ns || !choose_question(n, now_ns))
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
