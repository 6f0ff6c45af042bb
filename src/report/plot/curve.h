/* SPDX-License-Identifier: Apache-2.0 */
/* Points of a curve: cases that differ in `size` alone, as one block with the levels found in it. */
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
	bool time;     /* the unit is one of time: less is better */
	struct curve_point point[CURVE_POINTS];
	size_t count; /* >= CURVE_LEAST; by size, each size once */
};

/* A stretch of sizes with one latency (where none was taken: one rate). Rate: its fastest point. */
struct curve_level {
	char name[24];	    /* "L1", "L2", "L3" where its end fits a known cache, "memory", else "level 2" */
	double known_bytes; /* of that cache; 0: not known */
	double end_bytes;   /* where the next begins; infinity for the last */
	double rate, latency; /* B/s, ns; 0: not taken */
	bool one_thread;      /* its rate is one thread's */
};

/* Latency and bandwidth lines through every size of one collective. */
struct curve_fit {
	char name[64]; /* of its series */
	struct latency_fit fit;
	double factor;					       /* bytes over the link for a byte of size */
	double from[LATENCY_FIT_SPANS], to[LATENCY_FIT_SPANS]; /* sizes, by line */
	char way[LATENCY_FIT_SPANS][48]; /* algorithm and protocol, where they were told; "" */
};

/* The series of one target, probe and engine. */
struct curve {
	size_t group; /* of the view */
	char title[96];
	const char *probe, *engine;
	struct curve_series series[CURVE_SERIES];
	size_t series_count;
	double size[CURVE_SIZES]; /* every size of any series, growing */
	size_t size_count;
	struct curve_level level[LEVELS_MAX];
	size_t level_count; /* 0, or 2 and more */
	struct curve_fit fit[CURVE_SERIES];
	size_t fit_count;
	unsigned doubtful; /* points that are not trusted */
};

/* Collects the curves of a view into *out (caller frees); marks their rows `in_curve`. False: no memory. */
bool curve_collect(struct curve **out, size_t *count, struct view *v);
/* "1.42 ns", with a "?" where the point is not trusted; "" without one. */
void curve_cell(char *out, size_t size, const struct curve_series *s, double bytes);
/* "L1 of 32 KiB, to about 45 KiB: 147 GB/s, 1.10 ns" */
void curve_level_text(char *out, size_t size, const struct curve_level *l);
/* Lines of a collective's series into c->fit. */
void curve_fits(struct curve *c, const struct view *v);
/* "all-reduce, bf16: 8 B to 32 KiB by ring ll: 8.5 us ± 0.1 and 50 GB/s ± 2.0 %; they cross at 90 KiB; .." */
void curve_fit_text(struct text *out, const struct curve_fit *f);
/* "? not trusted: .." or "" */
void curve_doubt_text(struct text *out, const struct curve *c);
/* Rates and latencies over size, logarithmic all; the levels' ends marked. Any canvas from 360 x 200 up. */
void curve_draw(struct canvas *c, const struct curve *curve);
/* "curve-1.svg": its file beside REPORT.md. */
void curve_file(char *out, size_t size, size_t index);
#endif
