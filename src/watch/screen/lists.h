/* SPDX-License-Identifier: Apache-2.0 */
/* The lists that pages draw: GPUs, processes, values and nodes of a view, in its order. */
#ifndef WATCH_SCREEN_LISTS_H
#define WATCH_SCREEN_LISTS_H
#include "watch/screen/view.h"

enum { SCREEN_SAMPLES = WATCH_HISTORY };

/* Whether an entity is there and of this scope. */
static inline bool screen_is(const struct watch_entity *e, enum metric_scope scope)
{
	return e->scope == scope && !e->foreign;
}
/* The entity with this id; NULL: there is none. */
const struct watch_entity *screen_entity(const struct watch_state *s, uint32_t id);
/* Copies the last readings of a value, oldest first, NaN where it was absent. Returns how many, at most
 * `max`. */
unsigned screen_samples(const struct watch_entity *e, enum catalogue row, float *out, unsigned max);
/* Age of an entity's last reading, in seconds. It is negative before the first one. */
double screen_age(const struct screen_node *n, const struct watch_entity *e);
/* True if the age is more than three intervals. */
bool screen_stale(const struct screen_node *n, const struct watch_entity *e);
/* True if the GPU is lost or cannot be read. */
bool screen_lost(const struct watch_entity *gpu);
/* A label's value or "". */
const char *screen_label(const struct watch_entity *e, const char *name);
/* A value of a gauge, or NaN if it is absent. */
double screen_number(const struct watch_entity *e, enum catalogue row);
/* The first entity of a scope that is there; NULL: none. */
const struct watch_entity *screen_first(const struct watch_state *s, enum metric_scope scope);
/* Rate or value of all entities of a row's scope together; `of`: only those that belong to this one, NULL:
 * all. False: none has it. */
bool screen_sum(double *out, const struct watch_state *s, const struct watch_entity *of, enum catalogue row);

/* GPUs in the order of the view, each followed by its instances under MIG. Zeroed is empty; when memory runs
 * out, the list is shorter. */
struct screen_gpus {
	const struct watch_entity **gpu;
	size_t count;
};
void screen_gpus_make(struct screen_gpus *l, const struct screen_view *v, const struct screen_node *n);
void screen_gpus_release(struct screen_gpus *l);

struct screen_process {
	bool heading;					   /* heading of a GPU's processes in the tree */
	uint64_t pid;					   /* 0: a heading */
	const char *pid_text, *user, *container, *command; /* borrowed from the state */
	double memory, sm;				   /* NaN: absent */
	char gpus[24];					   /* "0,1,2" */
	const struct watch_entity *entity;
};
struct screen_processes {
	struct screen_process *row;
	size_t count, room;
	size_t processes; /* without headings, before the filter */
};
void screen_processes_make(struct screen_processes *l, const struct screen_view *v,
			   const struct screen_node *n);
void screen_processes_release(struct screen_processes *l);

/* A value that is present, or absent for a known reason; a line with CATALOGUE_COUNT is the heading of its
 * entity. */
struct screen_metric {
	const struct watch_entity *entity;
	enum catalogue row;
};
struct screen_metrics {
	struct screen_metric *row;
	size_t count, room;
};
void screen_metrics_make(struct screen_metrics *l, const struct screen_view *v, const struct screen_node *n);
void screen_metrics_release(struct screen_metrics *l);
/* "GPU 3", "NVLink 0 of GPU 3", "port mlx5_0/1". */
void screen_entity_name(struct text *out, const struct watch_entity *e);

/* The line of a node among all nodes. Numbers that no GPU gives are NaN. */
struct screen_summary {
	size_t index; /* of the node */
	unsigned gpus, lost, stale, runs;
	double utilization, memory_used, memory_total, temperature, power, power_limit, cpu, age;
	char what[256]; /* the worst that is known: "GPU 3 is lost"; "": nothing */
	double score;	/* more is worse */
};
void screen_summary_make(struct screen_summary *s, const struct screen_node *n);
/* All nodes that pass the filter, in the view's order. The caller frees it with free(); NULL: none. */
struct screen_summary *screen_fleet_make(size_t *count_out, const struct screen_view *v,
					 const struct screen_node *nodes, size_t count);
/* True if the filter is empty or is part of the text, in any case of letters. */
bool screen_matches(const char *filter, const char *text);
#endif
