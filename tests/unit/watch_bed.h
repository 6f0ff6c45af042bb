/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a stream for tests: a node with one GPU, which is entity 3 of source 0. */
#ifndef TESTS_UNIT_WATCH_BED_H
#define TESTS_UNIT_WATCH_BED_H
#include "test.h"
#include "watch/state.h"

/* Appends a header with the whole catalogue. */
static inline void bed_header_text(struct text *t, const char *boot, unsigned long long t_ns)
{
	text_addf(t,
		  "{\"watch\":1,\"node\":\"gpu7\",\"boot\":\"%s\",\"t\":%llu,\"wall\":1000,\"interval\":1,"
		  "\"sources\":[\"gpu\",\"host\"],\"metrics\":[",
		  boot, t_ns);
	for (int c = 0; c < CATALOGUE_COUNT; c++) {
		const struct catalogue_row *row = catalogue_row((enum catalogue)c);

		text_addf(t, "%s\"%s", c ? "," : "", row->name);
		if (row->fixed)
			text_addf(t, "{%.*s=\\\"%.*s\\\"}", (int)strcspn(row->fixed, "="), row->fixed,
				  (int)strcspn(strchr(row->fixed, '"') + 1, "\""),
				  strchr(row->fixed, '"') + 1);
		text_add(t, "\"");
	}
	text_add(t, "]}");
}

#define BED_GPU                                                                                              \
	"{\"e\":3,\"s\":0,\"scope\":\"gpu\",\"labels\":{\"pci_bus_id\":\"0000:1b:00.0\",\"gpu\":\"0\"}}"

__attribute__((format(printf, 2, 3))) static inline void bed_line(struct watch_state *s, const char *format,
								  ...)
{
	struct error err = {0};
	struct text line = {0};
	va_list args;

	va_start(args, format);
	text_addv(&line, format, args);
	va_end(args);
	if (watch_state_line(s, text_str(&line), line.size, &err))
		fail_msg("%s: %s", text_str(&line), err.text);
	text_release(&line);
}

static inline void bed_lines(struct watch_state *s, const char *lines)
{
	for (const char *end; (end = strchr(lines, '\n')); lines = end + 1)
		bed_line(s, "%.*s", (int)(end - lines), lines);
}

static inline void bed_header(struct watch_state *s, const char *boot, unsigned long long t_ns)
{
	struct text t = {0};

	bed_header_text(&t, boot, t_ns);
	bed_line(s, "%s", text_str(&t));
	text_release(&t);
}

static inline void bed_begin(struct watch_state *s)
{
	bed_header(s, "boot-1", 1);
	bed_line(s, BED_GPU);
}

/* A complete reading of one entity at `seconds`. */
#define bed_values(s, seconds, entity, format, ...)                                                          \
	bed_line((s), "{\"t\":%llu,\"s\":0,\"v\":{\"%u\":" format "},\"end\":%u}",                           \
		 (unsigned long long)(seconds)*1000000000ull, (unsigned)(entity), __VA_ARGS__,               \
		 (unsigned)(entity))
#endif
