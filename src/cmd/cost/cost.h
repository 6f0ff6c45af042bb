/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The price of a run's tokens: the subject (measured amounts, from a run directory), the ways to pay for its
 * time and energy, and the tables made of both. Formulas: docs/explanation/power.md.
 */
#ifndef CMD_COST_COST_H
#define CMD_COST_COST_H
#include <jansson.h>
#include "core/input/opt.h"
#include "core/text/text.h"
#include "journal/record/record.h"
#include "journal/telemetry/energy.h"
#include "price/prices.h"
#include "price/split.h"

struct expectations;

struct cost_opts {
	struct opt_words runs;
	const char *prices, *electricity, *api, *sku, *date;
	double price_per_hour, capital, years, idle_share, idle_power, node_power;
	uint32_t gpus, format;
	bool json, same_server;
};

enum cost_kind { COST_LOAD, COST_SERVE, COST_TRAIN };
enum { COST_STAGES = 64 };

/* Joules of everything that was counted; error_j is a bound. */
struct cost_energy {
	bool known;
	double joules, error_j;
	char parts[96]; /* what was counted */
	char why[200];	/* the reason, if it is not known */
};

/* What a run did in one window. Numbers that are not known are NAN. */
struct cost_subject {
	const char *run; /* its directory */
	enum cost_kind kind;
	char device[96], sku[64];
	unsigned gpus; /* used by the run; 0: it ran on the CPU, or they are not known */
	char gpus_why[160];
	char doubt[300]; /* why a load run is untrusted, so that its tokens and times may be wrong; "": it is
			    not */
	double input, cached,
		output; /* tokens. cached: part of input. Training: output are the trained tokens */
	double seconds;
	struct energy gpu, cpu, dram; /* devices 0: none */
	struct cost_energy energy;
	double node_w; /* mean power of the whole node by its own meter; in no sum */
	char node_why[120];
	double idle_w;
	char idle_why[160];
	double price_per_hour; /* stated with the run, of the whole machine */
	struct split_stage stage[COST_STAGES];
	size_t stages;
	struct split split;
	/* Training: the whole run, from loading to saving. */
	double run_seconds, run_tokens;
	struct cost_energy run_energy;
};

/* Reads a run of load, serve or train. BAD_INPUT: no such run, or another kind. UNAVAILABLE: it counted no
 * tokens. */
enum status cost_subject_read(struct cost_subject *out, const char *dir, const struct cost_opts *o,
			      const struct expectations *e, struct error *err);
/* Tokens of all kinds; NAN: not known. */
double cost_tokens(const struct cost_subject *s);
/* Joules per second of the window with a share of idle time around it; NAN: not known. */
double cost_watts(const struct cost_subject *s, double idle_share);

/* One way to pay: dollars per second of the load. */
struct cost_way {
	char label[120];
	double per_s; /* NAN: not known */
	double per_j; /* of electricity: dollars per joule; of others 0 */
	char why[200];
	const struct price_origin *origin; /* NULL: given by the user */
	enum { COST_ELECTRICITY, COST_HOUR, COST_CAPITAL } kind;
};
enum { COST_WAYS = 64 };
struct cost_ways {
	struct cost_way way[COST_WAYS];
	size_t count;
	/* The cheapest and the dearest hour and purchase, and the first electricity; NULL: none is known. */
	const struct price_electricity *electricity;
	double hour_low, hour_high;		 /* dollars per second; NAN */
	double capital_low, capital_high, years; /* dollars for all GPUs; NAN */
};
enum status cost_ways_make(struct cost_ways *out, const struct cost_subject *s, const struct prices *p,
			   const struct cost_opts *o, struct error *err);

enum { COST_COLUMNS = 8 };
struct cost_row {
	char label[120], why[240];  /* why: of the values that are not known, or a warning */
	double value[COST_COLUMNS]; /* NAN: not known */
	char date[16];
	const char *source;
	bool old;
};
struct cost_table {
	const char *name, *title, *note; /* name: in JSON and CSV */
	struct {
		const char *name, *head, *unit; /* name: in JSON and CSV */
	} column[COST_COLUMNS];
	size_t columns;
	bool priced; /* rows have dates */
	struct cost_row *row;
	size_t rows;
};
enum { COST_TABLES = 8 };
struct cost_report {
	const struct cost_subject *subject;
	const struct prices *prices;
	const char *date;
	struct cost_table table[COST_TABLES];
	size_t tables;
	bool failed; /* out of memory */
};
/* Makes all tables. Lent: subject, prices, ways and opts must outlive the report. */
void cost_report_make(struct cost_report *r, const struct cost_subject *s, const struct cost_ways *w,
		      const struct prices *p, const struct cost_opts *o);
void cost_report_release(struct cost_report *r);
/* The break-even, cache and sensitivity tables (compare.c). */
void cost_add_break_even(struct cost_report *r, const struct cost_ways *w, const struct cost_opts *o);
void cost_add_cache(struct cost_report *r, const struct cost_ways *w, const struct cost_opts *o);
void cost_add_sensitivity(struct cost_report *r, const struct cost_ways *w, const struct cost_opts *o);
struct cost_table *cost_table_add(struct cost_report *r, const char *name, const char *title,
				  const char *note);
void cost_column_add(struct cost_table *t, const char *name, const char *head, const char *unit);
/* A row whose values are all NAN. Never NULL: without memory it is a row that is dropped. */
struct cost_row *cost_row_add(struct cost_report *r, struct cost_table *t, const char *label);
void cost_row_origin(struct cost_report *r, struct cost_row *row, const struct price_origin *origin);

void cost_show_text(struct text *out, const struct cost_report *r);
void cost_show_csv(struct text *out, const struct cost_report *r, bool heading);
json_t *cost_show_json(const struct cost_report *r); /* NULL: no memory */
const char *cost_kind_name(enum cost_kind kind);
#endif
