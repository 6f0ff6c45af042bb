/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of expectations/ say, in memory. Grammar: docs/explanation/design/expectations.md. Texts are
 * lent from the parsed trees, which the set owns; a row knows the file and line it stands on.
 */
#ifndef JUDGE_EXPECT_EXPECT_H
#define JUDGE_EXPECT_EXPECT_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"
#include "core/text/text.h"
#include "core/input/tree.h"
#include "judge/judge.h"

/* Where a statement is from. Confidence: 1 low, 2 medium, 3 high. */
struct source {
	const char *text, *date;
	int confidence;
};

/* name, unit of the value in memory, lowest and highest plausible value: what a unit slip leaves */
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
	double at_hz; /* datasheet_*: the clock that figure means; 0: not given */
	struct source source;
	int line;
	bool present;
};

/* One product, or (cc > 0) one architecture, which gives FLOP a clock where the product is not known. */
struct sku {
	const char *name, *title, *file;
	int line, cc;
	unsigned pci[8]; /* device ids, without the vendor */
	size_t pci_count;
	double sm_low, sm_high;		/* SM counts it is sold with */
	double memory_low, memory_high; /* bytes, as NVML tells */
	struct source source;		/* of the match */
	struct sku_value fact[SKU_FACT_COUNT];
};

/* One word of a key (or derived from the case) and what it must be. */
struct condition {
	const char *word;
	const struct tree *value; /* scalar or list: any of them; NULL: the range */
	double low, high;
	int line;
};
struct when {
	struct condition *condition;
	size_t count;
};

/* The measurements of ours behind a band. No cards: published figures alone. */
struct basis {
	unsigned cards, runs;
	const char *windows; /* how long they measured */
	double scatter;	     /* between two or more cards: 1 - the slowest card's mean over the fastest's */
};

enum band_slot { BAND_RATE, BAND_TIME, BAND_EFFICIENCY, BAND_CLOCK, BAND_SLOT_COUNT };
struct band_row {
	const char *name, *file;
	int line;
	struct when when;
	enum band_slot slot;
	double low, high; /* FLOP/s or B/s; ns, of which less is better; share; Hz */
	double fail;	  /* a published fail mark beyond the worse end, in the same unit; 0: none */
	struct basis basis;
	struct source source;
};

/* Another instrument of the same run: figure >= pass * (ceiling * traffic) passes, < fail * .. fails. */
struct ceiling_row {
	const char *name, *file;
	int line;
	struct when when;
	double pass, fail, above, traffic;
	struct source source;
};

/* Where no band fits: the share of the bound that sound machines reach at least. It passes nothing. */
struct share_row {
	const char *name, *file;
	int line;
	struct when when;
	double share;
	struct source source;
};

/* Things that nothing sound judges yet. */
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
	struct when when, unless; /* unless: empty never holds it back */
	enum rule_op op;
	const char *than_field, *than_text; /* NULL: the number */
	double than, factor;
	enum verdict verdict;
	enum cause cause;
	const char *text, *action;
	const char *place;  /* text field that names the part; NULL: none */
	bool judges;	    /* suffices to judge a timed case that no band knows */
	const char *rights; /* RULE_ABSENT: what would let us look; goes to "could not look" */
	struct source source;
};

/* Both ends known. HAS_BITS and ABSENT are not for texts. */
bool rule_compare(const struct rule *r, double value, double than);
bool rule_compare_text(const struct rule *r, const char *text);

/* A field without which a reading of this probe is not judged (judge/case/decisive.c). */
enum decisive_reads { DECISIVE_NVML, DECISIVE_CUDA, DECISIVE_HOST };
struct decisive_row {
	const char *probe, *field, *file;
	const char *fact; /* of the GPU: its `unreadable` explains a missing field */
	int line;
	enum sku_fact feature;	   /* a product that states it has the field; SKU_FACT_COUNT: none does */
	bool always;		   /* each device that needs the field has it */
	enum decisive_reads reads; /* which layer tells the field */
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
	struct text text; /* what the hash covers; empty for the built-in set */
};

/* Of one set. */
enum { EXPECT_FILES_MAX = 1024 };
#define EXPECT_BYTES_MAX ((size_t)16 << 20)

/* One file more of a set as one text (expectations_text). */
void expect_saved_add(struct text *all, const char *name, const void *data, size_t size);
/* Such a text, read from `path`, which stands in messages; BAD_INPUT where it is none. Rows are of
 * "expectations/NAME", as the built-in ones. */
enum status expect_read_saved(struct expectations *e, const char *path, const char *text, size_t size,
			      struct error *err);

/* A file's text into the set; `name` stands in messages and places. The tree is kept. */
enum status expect_add(struct expectations *e, const char *name, const char *text, size_t size,
		       struct error *err);

/* One top-level list each; `sources` is the file's own map. */
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
/* Two rows of one field that one case may need at once. */
enum status expect_check_decisives(const struct expectations *e, struct error *err);
enum status expect_read_xids(struct expectations *e, const struct tree *list, const struct tree *sources,
			     struct error *err);
enum status expect_read_operator(struct expectations *e, const struct tree *list, const struct tree *sources,
				 struct error *err);

/* Shared by the readers. Errors carry "file:line: ". */
enum status expect_source(struct source *out, const struct tree *row, const struct tree *sources,
			  struct error *err);
/* `key`: "when", or "unless" of a rule. */
enum status expect_when(struct when *out, const struct tree *row, const char *key, struct error *err);
enum status expect_need_text(const char **out, const struct tree *row, const char *key, struct error *err);
/* A scalar with a unit into the base unit: 670 TFLOPS, 3.05 TB/s, 1980 MHz, 80 GiB, 700 W, 0.914. `unit` is
 * the base unit asked for ("FLOP/s", "B/s", "Hz", "B", "W", ""); another dimension is refused. */
enum status expect_number(double *out, const struct tree *scalar, const char *unit, struct error *err);
bool expect_parse(double *out, const char *text, const char *unit);
/* [low, high] of one unit, low < high. */
enum status expect_range(double *low, double *high, const struct tree *list, const char *unit,
			 struct error *err);
/* The array with room for one more, zeroed. NULL: no memory, *err set. */
void *expect_grow(void *array, size_t count, size_t size, struct error *err);
/* One more entry, zeroed, of the array that `array` points to the pointer of; counts it. NULL likewise. */
void *expect_push(void *array, size_t *count, size_t size, struct error *err);

/* What a case says for a word: NULL where it has none. `buffer` may be used for the answer. */
typedef const char *expect_look(const void *arg, const char *word, char *buffer, size_t size);
bool when_matches(const struct when *w, expect_look *look, const void *arg);
/* True unless some word of both asks for values that no case has at once. */
bool when_compatible(const struct when *a, const struct when *b);
/* The most specific row (most words) of `slot`; *tie names a second one as specific, else NULL. */
const struct band_row *expect_band(const struct expectations *e, enum band_slot slot, expect_look *look,
				   const void *arg, const struct band_row **tie);
/* What a band asks beyond the case's own options: "phase sustained, data random, power_limit default". */
void band_terms(const struct band_row *b, char *out, size_t size);
/* "one card, 3 runs of 1.5 to 6 s", "published figures alone" */
void basis_text(const struct basis *b, char *out, size_t size);
const struct ceiling_row *expect_ceiling(const struct expectations *e, expect_look *look, const void *arg);
const struct share_row *expect_share(const struct expectations *e, expect_look *look, const void *arg);
const struct unknown_row *expect_unknown(const struct expectations *e, expect_look *look, const void *arg);
const struct xid_row *expect_xid(const struct expectations *e, int number);

const struct sku *expect_sku(const struct expectations *e, const struct gpu *g);
const struct sku *expect_sku_by_name(const struct expectations *e, const char *name);
const struct sku *expect_arch(const struct expectations *e, int cc);
/* FLOP an SM a clock of a number type ("bf16", "e4m3" ..); NULL: the row does not say. */
const struct sku_value *sku_flop(const struct sku *s, const char *type);
const struct sku_value *sku_datasheet(const struct sku *s, const char *type);
const char *sku_fact_name(enum sku_fact fact);

/*
 * The set against itself and against physics: a band above its SKU's bound, values that a unit slip would
 * leave, a datasheet figure that SMs x FLOP x its clock does not give, a missing source, two bands, ceilings
 * or shares that may tie. First finding as BAD_INPUT with its place.
 */
enum status expectations_check(const struct expectations *e, struct error *err);
#endif
