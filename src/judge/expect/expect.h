/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of the files of expectations/, in memory. Grammar: docs/explanation/design/expectations.md.
 * All texts point into the parsed trees, which the set owns. Each row stores the file and line it comes from.
 */
#ifndef JUDGE_EXPECT_EXPECT_H
#define JUDGE_EXPECT_EXPECT_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"
#include "core/text/text.h"
#include "core/input/tree.h"
#include "judge/judge.h"

/* The source of a statement. confidence: one of CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH. */
struct source {
	const char *text, *date;
	int confidence;
};

/* Name, unit of the value in memory, lowest and highest plausible value. A value outside them is a slip of
 * the unit. */
#define SKU_FACTS(X)                                                                                         \
	X(sm_count, "", 8, 512)                                                                              \
	X(sm_clock_max, "Hz", 0.8e9, 4e9)                                                                    \
	X(memory_clock_max, "Hz", 0.8e9, 20e9)                                                               \
	X(bus_bits, "", 64, 16384)                                                                           \
	X(memory_bandwidth, "B/s", 2e11, 3e13)                                                               \
	X(power_default, "W", 40, 2000)                                                                      \
	X(nvlink_count, "", 0, 36)                                                                           \
	X(nvlink_rate, "B/s", 1e10, 2e11)                                                                    \
	X(pcie_gen, "", 3, 7)                                                                                \
	X(pcie_width, "", 1, 16)                                                                             \
	X(ecc, "", 0, 1)                                                                                     \
	X(row_remapping, "", 0, 1)                                                                           \
	X(flop_fp64, "", 2, 1024)                                                                            \
	X(flop_fp32, "", 64, 1024)                                                                           \
	X(flop_tf32, "", 128, 16384)                                                                         \
	X(flop_fp16, "", 256, 32768)                                                                         \
	X(flop_bf16, "", 256, 32768)                                                                         \
	X(flop_fp8, "", 512, 65536)                                                                          \
	X(flop_int8, "", 512, 65536)                                                                         \
	X(flop_fp4, "", 1024, 131072)                                                                        \
	X(datasheet_fp64, "FLOP/s", 5e11, 5e14)                                                              \
	X(datasheet_fp32, "FLOP/s", 5e12, 5e14)                                                              \
	X(datasheet_tf32, "FLOP/s", 2e13, 1e16)                                                              \
	X(datasheet_fp16, "FLOP/s", 5e13, 2e16)                                                              \
	X(datasheet_bf16, "FLOP/s", 5e13, 2e16)                                                              \
	X(datasheet_fp8, "FLOP/s", 1e14, 4e16)                                                               \
	X(datasheet_int8, "FLOP/s", 1e14, 4e16)                                                              \
	X(datasheet_fp4, "FLOP/s", 5e14, 8e16)

#define X(name, ...) SKU_##name,
enum sku_fact { SKU_FACTS(X) SKU_FACT_COUNT };
#undef X
enum { NUMBER_TYPES = SKU_datasheet_fp64 - SKU_flop_fp64 };

struct sku_value {
	double value;
	double at_hz; /* datasheet_*: the clock that the figure assumes; 0: not given */
	struct source source;
	int line;
	bool present;
};

/* One GPU product, or (cc > 0) one architecture. The architecture gives FLOP per clock if the product is not
 * known. */
struct sku {
	const char *name, *title, *file;
	int line, cc;
	unsigned pci[8]; /* device ids, without the vendor id */
	size_t pci_count;
	double sm_low, sm_high;		/* range of SM counts of this product */
	double memory_low, memory_high; /* bytes, as NVML reports them */
	struct source source;		/* of `match` */
	struct sku_value fact[SKU_FACT_COUNT];
};

/* One condition: a word of the case, and the values that it may have. */
struct condition {
	const char *word;
	const struct tree *value; /* a scalar, or a list of alternatives; NULL: the range low .. high */
	double low, high;
	int line;
};
struct when {
	struct condition *condition;
	size_t count;
};

/* The measurements behind an expected range. cards 0: the range comes from published figures only. */
struct basis {
	unsigned cards, runs;
	const char *windows; /* how long the measurements took */
	double scatter; /* between two or more cards: 1 - (mean of the slowest card / mean of the fastest) */
};

enum band_slot { BAND_RATE, BAND_TIME, BAND_EFFICIENCY, BAND_CLOCK, BAND_SLOT_COUNT };
struct band_row {
	const char *name, *file;
	int line;
	struct when when;
	enum band_slot slot;
	double low, high; /* FLOP/s or B/s; ns (less is better); a share; or Hz */
	double fail;	  /* a published fail mark beyond the worse end, in the same unit; 0: none */
	struct basis basis;
	struct source source;
};

/* Compares a figure with a ceiling that another probe of the same run measured. It passes if figure >= pass *
 * (ceiling * traffic), and fails if figure < fail * (ceiling * traffic). */
struct ceiling_row {
	const char *name, *file;
	int line;
	struct when when;
	double pass, fail, above, traffic;
	struct source source;
};

/* For cases without an expected range: the smallest share of the bound that healthy machines reach. No case
 * passes by it. */
struct share_row {
	const char *name, *file;
	int line;
	struct when when;
	double share;
	struct source source;
};

/* Cases that no trustworthy reference exists for yet. Their verdict is unknown. */
struct unknown_row {
	const char *name, *why, *file;
	int line;
	struct when when;
	struct source source;
};

enum rule_op { RULE_ABOVE, RULE_BELOW, RULE_IS, RULE_IS_NOT, RULE_HAS_BITS, RULE_ABSENT };
struct rule {
	const char *name, *field, *file;
	int line;
	struct when when, unless; /* unless: a case that matches it is exempt; an empty one exempts none */
	enum rule_op op;
	const char *than_field, *than_text; /* NULL: compare with the number `than` */
	double than, factor;
	enum verdict verdict;
	enum cause cause;
	const char *text, *action;
	const char *place;  /* name of the text field that names the affected part; NULL: none */
	bool judges;	    /* suffices to judge a timed case that has no expected range */
	const char *rights; /* RULE_ABSENT: the rights or tool that would make the field readable; printed
			       under "could not look" */
	struct source source;
};

/* Compares a reading with the rule. Both values are known. rule_compare_text takes no RULE_HAS_BITS and no
 * RULE_ABSENT. */
bool rule_compare(const struct rule *r, double value, double than);
bool rule_compare_text(const struct rule *r, const char *text);

/* A field that decides a reading: without it, the reading of this probe is not judged
 * (judge/case/decisive.c). */
enum decisive_reads { DECISIVE_NVML, DECISIVE_CUDA, DECISIVE_HOST };
struct decisive_row {
	const char *probe, *field, *file;
	const char *fact; /* fact of the GPU whose `unreadable` entry explains a missing field */
	int line;
	enum sku_fact feature; /* a product that states this fact has the field; SKU_FACT_COUNT: no product
				  states it */
	bool always;	       /* every device that needs the field has it */
	enum decisive_reads reads; /* the layer that reports the field */
	struct when needed_when;
	enum cause cause; /* of a missing field of the host */
	struct source source;
};

struct xid_row {
	int number, line;
	const char *name, *action, *file;
	enum verdict during, before;
	struct source source;
};

struct operator_row {
	struct when when;
	const char *text, *file;
};

struct expectations {
	struct tree **tree;
	size_t tree_count;
	struct sku *sku;
	struct band_row *band;
	struct ceiling_row *ceiling;
	struct share_row *share;
	struct unknown_row *unknown;
	struct rule *rule;
	struct decisive_row *decisive;
	struct xid_row *xid;
	struct operator_row *operator_;
	size_t sku_count, band_count, ceiling_count, share_count, unknown_count, rule_count, decisive_count,
		xid_count, operator_count;
	char hash[65];
	struct text text; /* the text that the hash covers; empty for the built-in set */
};

/* Limits for one set. */
enum { EXPECT_FILES_MAX = 1024 };
#define EXPECT_BYTES_MAX ((size_t)16 << 20)

/* Appends one file of a set to its text form (expectations_text). */
void expect_saved_add(struct text *all, const char *name, const void *data, size_t size);
/* Reads the text form of a set. `path` is the file it came from, for messages. BAD_INPUT if the text has
 * another form. Row places are "expectations/NAME", as in the built-in set. */
enum status expect_read_saved(struct expectations *e, const char *path, const char *text, size_t size,
			      struct error *err);

/* Parses one file's text into the set. `name` appears in messages and places. The set keeps the parsed tree.
 */
enum status expect_add(struct expectations *e, const char *name, const char *text, size_t size,
		       struct error *err);

/* Each reads one top-level list. `sources` is the map of sources of the same file. */
enum status expect_read_skus(struct expectations *e, const struct tree *list, const struct tree *sources,
			     struct error *err);
enum status expect_read_bands(struct expectations *e, const struct tree *list, const struct tree *sources,
			      struct error *err);
enum status expect_read_ceilings(struct expectations *e, const struct tree *list, const struct tree *sources,
				 struct error *err);
enum status expect_read_shares(struct expectations *e, const struct tree *list, const struct tree *sources,
			       struct error *err);
enum status expect_read_unknowns(struct expectations *e, const struct tree *list, const struct tree *sources,
				 struct error *err);
enum status expect_read_rules(struct expectations *e, const struct tree *list, const struct tree *sources,
			      struct error *err);
enum status expect_read_decisives(struct expectations *e, const struct tree *list, const struct tree *sources,
				  struct error *err);
/* BAD_INPUT if two rows name the same field for conditions that one case can meet at once. */
enum status expect_check_decisives(const struct expectations *e, struct error *err);
enum status expect_read_xids(struct expectations *e, const struct tree *list, const struct tree *sources,
			     struct error *err);
enum status expect_read_operator(struct expectations *e, const struct tree *list, const struct tree *sources,
				 struct error *err);

/* Helpers of the readers. Errors begin with "file:line: ". */
enum status expect_source(struct source *out, const struct tree *row, const struct tree *sources,
			  struct error *err);
/* `key` is "when", or "unless" of a rule. */
enum status expect_when(struct when *out, const struct tree *row, const char *key, struct error *err);
enum status expect_need_text(const char **out, const struct tree *row, const char *key, struct error *err);
/* Reads a scalar with its unit into the base unit: 670 TFLOPS, 3.05 TB/s, 1980 MHz, 80 GiB, 700 W, 0.914.
 * `unit` is the base unit required: "FLOP/s", "B/s", "Hz", "B", "W" or "". BAD_INPUT if the scalar has
 * another dimension. */
enum status expect_number(double *out, const struct tree *scalar, const char *unit, struct error *err);
bool expect_parse(double *out, const char *text, const char *unit);
/* Reads [low, high], both in `unit`. BAD_INPUT unless low < high. */
enum status expect_range(double *low, double *high, const struct tree *list, const char *unit,
			 struct error *err);
/* Returns the array with room for one more, zeroed entry. NULL: out of memory, and *err is set. */
void *expect_grow(void *array, size_t count, size_t size, struct error *err);
/* Appends one zeroed entry to an array and increments *count. `array` is the address of the pointer to the
 * array. NULL: as for expect_grow. */
void *expect_push(void *array, size_t *count, size_t size, struct error *err);

/* Returns the value that a case has for `word`; NULL: it has none. The answer may be stored in `buffer`. */
typedef const char *expect_look(const void *arg, const char *word, char *buffer, size_t size);
bool when_matches(const struct when *w, expect_look *look, const void *arg);
/* True if one case can match both. */
bool when_compatible(const struct when *a, const struct when *b);
/* Returns the most specific row of `slot` (the one with most words); NULL: none matches. *tie is another row
 * that is equally specific, or NULL. */
const struct band_row *expect_band(const struct expectations *e, enum band_slot slot, expect_look *look,
				   const void *arg, const struct band_row **tie);
/* Writes the conditions of a range beyond the case's own options: "phase sustained, data random, power_limit
 * default". */
void band_terms(const struct band_row *b, char *out, size_t size);
/* Writes "one card, 3 runs of 1.5 to 6 s" or "published figures only". */
void basis_text(const struct basis *b, char *out, size_t size);
const struct ceiling_row *expect_ceiling(const struct expectations *e, expect_look *look, const void *arg);
const struct share_row *expect_share(const struct expectations *e, expect_look *look, const void *arg);
const struct unknown_row *expect_unknown(const struct expectations *e, expect_look *look, const void *arg);
const struct xid_row *expect_xid(const struct expectations *e, int number);

const struct sku *expect_sku(const struct expectations *e, const struct gpu *g);
const struct sku *expect_sku_by_name(const struct expectations *e, const char *name);
const struct sku *expect_arch(const struct expectations *e, int cc);
/* FLOP per SM per clock of a number type ("bf16", "e4m3" ..); NULL: the row does not state it. */
const struct sku_value *sku_flop(const struct sku *s, const char *type);
const struct sku_value *sku_datasheet(const struct sku *s, const char *type);
const char *sku_fact_name(enum sku_fact fact);

/* Checks the set for contradictions and against physics. Reported are: a range above its SKU's bound, a value
 * that a wrong unit would give, a datasheet figure that differs from SMs x FLOP x clock, a missing source,
 * and two ranges, ceilings or shares that may tie. BAD_INPUT with the place of the first finding. */
enum status expectations_check(const struct expectations *e, struct error *err);
#endif
