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

void names_set_job(struct node *n, uint32_t gpu)
{
	const struct watch_state *s = &n->state;
	const char *job = NULL, *now;
	bool several = false;
	struct text text = {0};

	if (gpu >= s->count || s->entity[gpu].scope != METRIC_SCOPE_GPU)
		return;
	for (uint32_t i = 0; i < s->count; i++) {
		const char *one = s->entity[i].scope == METRIC_SCOPE_PROCESS && s->entity[i].of == gpu
					  ? watch_label(&s->entity[i], "hpc_job")
					  : NULL;

		several |= one && job && strcmp(one, job);
		job = one ? one : job;
	}
	now = watch_label(&s->entity[gpu], "hpc_job");
	if (several)
		job = NULL; /* no single job has the GPU */
	if (job ? now && !strcmp(now, job) : !now)
		return;
	if (job)
		out_add_string(&text, job);
	node_sendf(n, "{\"e\":%u,\"labels\":{\"hpc_job\":%s}}", gpu, job ? text_str(&text) : "null");
	text_release(&text);
}

/* {"pid": N, "labels": {..}}, or without labels when all is said. */
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
		names_set_job(n, n->state.entity[i].of);
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
