/* SPDX-License-Identifier: Apache-2.0 */
/* States for tests of the screen: lines of the stream, written by functions. */
#ifndef TESTS_UNIT_SCREEN_BED_H
#define TESTS_UNIT_SCREEN_BED_H
#include "test.h"
#include "watch/screen/lists.h"

enum bed_source { BED_GPU, BED_HOST, BED_RUNS, BED_SOURCES };

struct bed {
	struct watch_state state;
	struct text values[BED_SOURCES]; /* of the next reading */
	uint32_t last[BED_SOURCES];	 /* the entity of the last value; UINT32_MAX: none */
	uint64_t t_ns;
};

static inline void bed_line(struct bed *b, const char *line)
{
	struct error err = {0};

	if (watch_state_line(&b->state, line, strlen(line), &err))
		fail_msg("%s: %s", line, err.text);
}

/* A node with the whole catalogue; its clock begins at 1000 s, on 2025-11-28 at 20:00:00. */
static inline void bed_begin(struct bed *b, const char *node)
{
	struct text t = {0};

	*b = (struct bed){.t_ns = 1000000000000};
	text_addf(&t,
		  "{\"watch\":1,\"node\":\"%s\",\"boot\":\"b1\",\"wall\":1764360000,\"t\":%llu,\"interval\":1,"
		  "\"sources\":[\"gpu\",\"host\",\"runs\"],\"metrics\":[",
		  node, (unsigned long long)b->t_ns);
	for (enum catalogue c = 0; c < CATALOGUE_COUNT; c++) {
		struct text name = {0};

		catalogue_add_full(&name, c);
		text_add(&t, c ? ",\"" : "\"");
		for (const char *p = text_str(&name); *p; p++)
			text_addf(&t, "%s%c", *p == '"' ? "\\" : "", *p);
		text_add(&t, "\"");
		text_release(&name);
	}
	text_add(&t, "]}");
	for (int s = 0; s < BED_SOURCES; s++)
		b->last[s] = UINT32_MAX;
	bed_line(b, text_str(&t));
	text_release(&t);
	for (enum catalogue c = 0; c < CATALOGUE_COUNT; c++)
		if (catalogue_row(c)->scope != METRIC_SCOPE_PROCESS)
			watch_state_keep(&b->state, c);
}

/* labels: JSON of an object. of: the entity to which it belongs; its own id: none. */
static inline void bed_entity(struct bed *b, uint32_t id, enum metric_scope scope, enum bed_source source, uint32_t of,
			      const char *labels)
{
	struct text t = {0};

	text_addf(&t, "{\"e\":%u,\"scope\":\"%s\",\"s\":%d,", id, metric_scope_row(scope)->name, source);
	if (of != id)
		text_addf(&t, "\"of\":%u,", of);
	text_addf(&t, "\"labels\":%s}", labels);
	bed_line(b, text_str(&t));
	text_release(&t);
}

/* A value of the next reading; those of one entity follow each other. */
static inline void bed_value(struct bed *b, enum bed_source source, uint32_t id, enum catalogue row, double value)
{
	struct text *t = &b->values[source];

	if (b->last[source] != id)
		text_addf(t, "%s\"%u\":[", b->last[source] == UINT32_MAX ? "" : "],", id);
	else
		text_add(t, ",");
	text_addf(t, "%d,%.17g", row, value);
	b->last[source] = id;
}

/* Sends the values of a source as one complete reading at the bed's time. */
static inline void bed_end(struct bed *b, enum bed_source source)
{
	struct text t = {0};

	text_addf(&t, "{\"t\":%llu,\"s\":%d,\"v\":{%s%s},\"end\":true,\"done\":true}", (unsigned long long)b->t_ns, source,
		  text_str(&b->values[source]), b->last[source] == UINT32_MAX ? "" : "]");
	bed_line(b, text_str(&t));
	text_release(&t);
	text_release(&b->values[source]);
	b->last[source] = UINT32_MAX;
}

static inline struct screen_node bed_node(const struct bed *b, const char *name)
{
	return (struct screen_node){.name = name, .state = &b->state, .local = !*name};
}

static inline void bed_release(struct bed *b)
{
	for (int s = 0; s < BED_SOURCES; s++)
		text_release(&b->values[s]);
	watch_state_release(&b->state);
}
#endif
