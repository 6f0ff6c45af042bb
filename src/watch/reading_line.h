/* SPDX-License-Identifier: Apache-2.0 */
/* A line of readings in the form in which the readers write it, with numbers and absent values only. Nearly
 * all lines of a stream are such. They are parsed without a JSON tree, which would cost more than all else
 * that is done with a reading. */
#ifndef WATCH_READING_LINE_H
#define WATCH_READING_LINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { READING_LISTS_MAX = 64, READING_VALUES_MAX = 512 };

struct reading_value {
	uint32_t position; /* in the stream's list of metrics */
	bool absent;
	double value;
};
/* The values of an entity. */
struct reading_list {
	uint32_t entity;
	unsigned first, count; /* of the line's values */
	const char *text;      /* "[..]" in the line; borrowed */
	size_t size;
};
struct reading_line {
	uint64_t t_ns, rare_ns; /* rare_ns 0: the RARE rows were not read */
	unsigned source;
	bool ends, ends_all; /* the reading of an entity or of all ends */
	uint32_t end;	     /* this entity, if not all */
	bool alone, slow, done;
	unsigned lists, values;
	struct reading_list list[READING_LISTS_MAX]; /* by ascending entity */
	struct reading_value value[READING_VALUES_MAX];
};

/* False: the line has another form. It may still be right. */
bool reading_line_parse(struct reading_line *l, const char *line, size_t size);
#endif
