/* SPDX-License-Identifier: Apache-2.0 */
/* Curves: cases that differ only in `size`, shown as one block with the memory levels found in it. */
#ifndef REPORT_PLOT_CURVE_H
#define REPORT_PLOT_CURVE_H
#include "core/math/cache_levels.h"
#include "judge/gap/latency_fit.h"
#include "report/plot/canvas.h"

struct view;
struct view_row;
struct view_group;

enum { CURVE_LEAST = 3, CURVE_POINTS = 64, CURVE_SERIES = 6, CURVE_SIZES = CURVE_POINTS * 2 };
enum { CURVE_WIDTH = 960, CURVE_HEIGHT = 340 };

struct curve_point {
	double bytes, value; /* value in the series' unit */
	const struct view_row *row;
};

struct curve_series {
	char name[64]; /* "read", "pointer chase", "host to device, pinned" */
	char unit[16]; /* "B/s", "ns" .. */
	bool time;     /* the unit is a time: less is better */
	struct curve_point point[CURVE_POINTS];
	size_t count; /* at least CURVE_LEAST; sorted by size, each size once */
};

/* A range of sizes with one latency, or with one rate if no latency was measured. `rate` is that of its
 * fastest point. */
struct curve_level {
	char name[24];	      /* "L1", "L2", "L3" if its end fits a known cache; "memory"; else "level 2" */
	double known_bytes;   /* size of that cache; 0: unknown */
	double end_bytes;     /* start of the next level; infinity for the last */
	double rate, latency; /* B/s, ns; 0: not measured */
	bool one_thread;      /* the rate is that of one thread */
};

/* Latency and bandwidth lines through every size of one collective. */
struct curve_fit {
	char name[64]; /* name of its series */
	struct latency_fit fit;
	double factor;					       /* bytes over the link per byte of size */
	double from[LATENCY_FIT_SPANS], to[LATENCY_FIT_SPANS]; /* sizes, per line */
	char way[LATENCY_FIT_SPANS][48]; /* algorithm and protocol as reported; "" unknown */
};

/* The series of one target, probe and engine. */
struct curve {
	size_t group; /* of the view */
	char title[96];
	const char *probe, *engine;
	struct curve_series series[CURVE_SERIES];
	size_t series_count;
	double size[CURVE_SIZES]; /* every size of any series, ascending */
	size_t size_count;
	struct curve_level level[LEVELS_MAX];
	size_t level_count; /* 0, or 2 and more */
	struct curve_fit fit[CURVE_SERIES];
	size_t fit_count;
	unsigned doubtful; /* number of points that are not trusted */
};

/* Collects the curves of a view into *out, which the caller frees, and marks their rows `in_curve`. False:
 * out of memory. */
bool curve_collect(struct curve **out, size_t *count, struct view *v);
/* Writes the point of a size: "1.42 ns", with a "?" if it is not trusted; "" if there is none. */
void curve_cell(char *out, size_t size, const struct curve_series *s, double bytes);
/* Writes "L1 of 32 KiB, to about 45 KiB: 147 GB/s, 1.10 ns". */
void curve_level_text(char *out, size_t size, const struct curve_level *l);
/* Fits latency and bandwidth lines to the series of collectives and stores them in c->fit. */
void curve_fits(struct curve *c, const struct view *v);
/* Appends "all-reduce, bf16: 8 B to 32 KiB by ring ll: 8.5 us ± 0.1 and 50 GB/s ± 2.0 %; they cross at 90
 * KiB; .." */
void curve_fit_text(struct text *out, const struct curve_fit *f);
/* Appends "? not trusted: .."; nothing if all points are trusted. */
void curve_doubt_text(struct text *out, const struct curve *c);
/* Draws rates and latencies over size, with logarithmic axes and the ends of levels marked. The canvas has at
 * least 360 x 200 points. */
void curve_draw(struct canvas *c, const struct curve *curve);
/* Writes the name of a curve's file, "curve-1.svg". */
void curve_file(char *out, size_t size, size_t index);
#endif
