/* SPDX-License-Identifier: Apache-2.0 */
/* A screen as cells: character, role of the colour, attributes. Layout code draws into cells, the module
 * libassay-screen.so shows them, and `--once` and tests print them as text. */
#ifndef WATCH_SCREEN_CELLS_H
#define WATCH_SCREEN_CELLS_H
#include <stdbool.h>
#include <stdint.h>
#include "core/text/text.h"

/* What a colour says. A theme (theme.h) gives each role its colours. */
/* clang-format off */
#define SCREEN_ROLES(X) \
	X(TEXT) X(DIM) X(TITLE) X(HEADING) X(KEY) X(SELECTED) \
	X(LOW) X(MIDDLE) X(HIGH) X(EMPTY) X(LINE) X(WARN) X(BAD) X(STALE)
/* clang-format on */
#define X(name) SCREEN_ROLE_##name,
enum screen_role { SCREEN_ROLES(X) SCREEN_ROLE_COUNT };
#undef X

/* Without padding, so that rows of cells are compared as bytes. */
struct screen_cell {
	uint32_t code; /* 0: the right half of a wide character */
	uint32_t role;
};

/* The subject of a row of the screen. A mouse selects it. */
enum screen_target { SCREEN_TARGET_NONE, SCREEN_TARGET_NODE, SCREEN_TARGET_GPU, SCREEN_TARGET_PROCESS };
struct screen_hit {
	enum screen_target target;
	size_t index; /* in the list that is drawn */
};

enum { SCREEN_COLUMNS_MIN = 20, SCREEN_ROWS_MIN = 5, SCREEN_COLUMNS_MAX = 1000, SCREEN_ROWS_MAX = 2000 };

/* Zeroed is empty. */
struct screen {
	unsigned columns, rows;
	struct screen_cell *cell; /* rows * columns */
	struct screen_hit *hit;	  /* rows */
	bool ascii;		  /* the terminal shows ASCII only */
};

/* Makes the screen that large; if its size changes, it is blank. A size outside the limits is moved to the
 * nearest limit. NO_RESOURCE: no memory; then the screen is empty. */
enum status screen_resize(struct screen *s, unsigned columns, unsigned rows, struct error *err);
void screen_clear(struct screen *s);
void screen_release(struct screen *s);

/*
 * Writes text at column x of row y, at most `width` columns, and returns how many it used. Text that is cut
 * ends with an ellipsis. Control characters become spaces, bytes that are not UTF-8 become U+FFFD, combining
 * marks are left out. Outside of the screen nothing is written.
 */
unsigned screen_put(struct screen *s, unsigned x, unsigned y, unsigned width, enum screen_role role,
		    const char *text);
/* The same, to the right end of the field. */
void screen_put_right(struct screen *s, unsigned x, unsigned y, unsigned width, enum screen_role role,
		      const char *text);
unsigned screen_putf(struct screen *s, unsigned x, unsigned y, unsigned width, enum screen_role role,
		     const char *format, ...) __attribute__((format(printf, 6, 7)));
void screen_set(struct screen *s, unsigned x, unsigned y, uint32_t code, enum screen_role role);
/* Gives a part of a row the role, and keeps its characters. */
void screen_paint(struct screen *s, unsigned x, unsigned y, unsigned width, enum screen_role role);

/* A horizontal bar of `width` columns in eighths of a column; its colour follows the level. */
void screen_bar(struct screen *s, unsigned x, unsigned y, unsigned width, double share);
/* The role of a level from 0 to 1. */
enum screen_role screen_level(double share);
#endif
