/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the processes on GPUs: asked from a process of its own, one process at a time. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/clock.h"
#include "watch/read/node.h"

#define ANSWER_NS 5000000000ull

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
	memmove(n->asked, n->asked + 1, (--n->asked_count) * sizeof(n->asked[0]));
	n->names.limit_ns = 0;
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

/* {"pid": N, "labels": {..}}. The last answer has no labels. */
static bool take(void *arg, const char *line, size_t size)
{
	struct node *n = arg;
	json_t *j = json_loadb(line, size, 0, NULL), *labels = json_object_get(j, "labels");
	json_int_t pid = json_integer_value(json_object_get(j, "pid"));
	char *text = labels && json_object_size(labels) ? json_dumps(labels, JSON_COMPACT) : NULL, number[24];

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

void names_turn(struct node *n, uint64_t now_ns)
{
	struct child *c = &n->names;
	char line[16];

	if (c->running && !reader_child_read(c, take, n))
		return;
	if (c->running && c->limit_ns && now_ns > c->heard_ns && now_ns - c->heard_ns > c->limit_ns) {
		next_question(n); /* this process is not asked about again */
		reader_child_stop(c);
	}
	if (!n->asked_count || c->stuck || c->limit_ns)
		return;
	if (!c->running && now_ns >= c->start_ns)
		reader_child_start(c, n->spec, n->spec->proc);
	if (!c->running)
		return;
	snprintf(line, sizeof(line), "%u\n", n->asked[0]);
	if (write(c->input, line, strlen(line)) == (ssize_t)strlen(line)) {
		c->limit_ns = ANSWER_NS;
		c->heard_ns = now_ns;
	}
}
