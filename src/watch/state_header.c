/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of a stream: its node, sources and metrics. It comes again with a copy of the state, or
 * after a restart of the node. */
#include <stdlib.h>
#include <string.h>
#include "watch/line_text.h"
#include "watch/state_parts.h"

enum { METRICS_MAX = 4096 };

enum status watch_check_header(const json_t *j, struct error *err)
{
	const json_t *metrics = json_object_get(j, "metrics"), *sources = json_object_get(j, "sources"),
		     *name;
	double interval = json_number_value(json_object_get(j, "interval"));
	uint64_t t_ns;
	size_t i;

	if (json_integer_value(json_object_get(j, "watch")) != WATCH_VERSION)
		return WRONG(err, "the stream has version %lld; this assay reads version %d",
			     (long long)json_integer_value(json_object_get(j, "watch")), WATCH_VERSION);
	if (!json_is_string(json_object_get(j, "node")) || !*json_string_value(json_object_get(j, "node")) ||
	    !json_is_string(json_object_get(j, "boot")) || !json_is_number(json_object_get(j, "wall")) ||
	    !watch_time_of(json_object_get(j, "t"), &t_ns))
		return WRONG(err, "the header of the stream lacks node, boot, wall or t");
	if (!(interval > 0 && interval <= 86400))
		return WRONG(err, "the header's interval is not between 0 and 86400 s");
	if (!json_is_array(sources) || json_array_size(sources) > WATCH_SOURCES_MAX ||
	    !json_is_array(metrics) || !json_array_size(metrics) || json_array_size(metrics) > METRICS_MAX)
		return WRONG(err, "the header's lists of sources or metrics are missing or too long");
	json_array_foreach((json_t *)sources, i, name) if (
		!json_is_string(name) || !line_text_is_name(json_string_value(name)) ||
		strlen(json_string_value(name)) >=
			sizeof(((struct watch_source *)0)
				       ->name)) return WRONG(err,
							     "source %zu of the header has no valid name", i);
	json_array_foreach(
		(json_t *)metrics, i,
		name) if (!json_is_string(name) ||
			  !line_text_is_metric(json_string_value(
				  name))) return WRONG(err, "metric %zu of the header has no valid name", i);
	return STATUS_OK;
}

static void set_rows(struct watch_state *s, const json_t *metrics)
{
	const json_t *name;
	size_t i;

	for (int c = 0; c < CATALOGUE_COUNT; c++)
		s->position[c] = (unsigned)s->row_count;
	json_array_foreach((json_t *)metrics, i, name)
	{
		s->row[i] = catalogue_find_full(json_string_value(name));
		if (s->row[i] < CATALOGUE_COUNT)
			s->position[s->row[i]] = (unsigned)i;
	}
}

static void set_sources(struct watch_state *s, const json_t *sources)
{
	const json_t *name;
	size_t i;

	for (i = 0; i < s->source_count; i++)
		watch_set_text(s, &s->source[i].why, NULL);
	memset(s->source, 0, sizeof(s->source));
	s->source_count = (unsigned)json_array_size(sources);
	json_array_foreach((json_t *)sources, i, name)
		text_copy(s->source[i].name, sizeof(s->source[i].name), json_string_value(name));
}

/* True if the same stream goes on. Then the header begins a copy of the state: entities that the copy does
 * not name are gone. */
static bool goes_on(const struct watch_state *s, const char *boot, const char *node, uint64_t t_ns,
		    const json_t *sources, const char *metrics)
{
	const json_t *name;
	size_t i;

	if (!*s->node || strcmp(s->boot, boot) || strcmp(s->node, node) || t_ns < s->now_ns || !s->metrics ||
	    strcmp(s->metrics, metrics) || json_array_size(sources) != s->source_count)
		return false;
	json_array_foreach((json_t *)sources, i,
			   name) if (strcmp(s->source[i].name, json_string_value(name))) return false;
	return true;
}

enum status watch_take_header(struct watch_state *s, const json_t *j, struct error *err)
{
	const json_t *metrics = json_object_get(j, "metrics"), *sources = json_object_get(j, "sources");
	enum catalogue *row = calloc(json_array_size(metrics), sizeof(*row));
	char *list = json_dumps(metrics, JSON_COMPACT), node[WATCH_TEXT_MAX], boot[WATCH_TEXT_MAX];
	uint64_t t_ns = 0, wall_ns = 0;

	watch_time_of(json_object_get(j, "t"), &t_ns);
	if (!watch_time_of(json_object_get(j, "wall_t"), &wall_ns))
		wall_ns = t_ns;
	if (!row || !list) {
		free(row);
		free(list);
		return watch_no_memory(err);
	}
	line_text_clean(node, json_string_value(json_object_get(j, "node")));
	line_text_clean(boot, json_string_value(json_object_get(j, "boot")));
	node[sizeof(s->node) - 1] = boot[sizeof(s->boot) - 1] = '\0';
	if (goes_on(s, boot, node, t_ns, sources, list)) {
		for (uint32_t i = 0; i < s->count; i++)
			s->entity[i].doubtful = true;
	} else {
		s->restarts += *s->boot && strcmp(s->boot, boot);
		for (uint32_t i = 0; i < s->count; i++)
			watch_free_entity(s, &s->entity[i]);
		set_sources(s, sources);
	}
	free(s->row);
	free(s->metrics);
	s->row = row;
	s->metrics = list;
	s->row_count = json_array_size(metrics);
	set_rows(s, metrics);
	text_copy(s->node, sizeof(s->node), *node ? node : "?");
	text_copy(s->boot, sizeof(s->boot), boot);
	s->wall = json_number_value(json_object_get(j, "wall"));
	s->wall_ns = wall_ns;
	s->now_ns = t_ns;
	s->interval = json_number_value(json_object_get(j, "interval"));
	return STATUS_OK;
}
