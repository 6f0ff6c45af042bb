/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of logits with options for the sampling kernels: on the host for the reference, and on the device. */
#ifndef TESTS_GPU_SAMPLE_BED_H
#define TESTS_GPU_SAMPLE_BED_H
#include "cases.h"
#include "ref_step_sample.h"
#include <string.h>

enum sample_logits {
	LOGITS_FLAT,   /* as of random weights: deviation 1 */
	LOGITS_PEAKED, /* as of a trained model: some far above the others */
	LOGITS_FEW,    /* few distinct values */
	LOGITS_EQUAL,  /* all 0, some -0 */
	LOGITS_TINY,   /* magnitudes below 2^-20 */
	LOGITS_LARGE,  /* magnitudes up to 3000 */
	LOGITS_BROKEN, /* rows with NaN, infinity, -infinity, the others flat */
};
enum sample_options {
	OPTIONS_GREEDY, /* temperature 0 */
	OPTIONS_PLAIN,	/* temperature and top_p */
	OPTIONS_ALL,	/* every option, another mixture in each row */
	OPTIONS_MASKED, /* masks, one of them empty */
	OPTIONS_DRAWS,	/* one row of logits for all, one seed, the index counts */
	/* As requests have them, the same in each row: temperature 1, top_p 0.95, and */
	OPTIONS_TOP_P,
	OPTIONS_TOP_K,	     /* top_k 40 */
	OPTIONS_MIN_P,	     /* min_p 0.05 without top_p */
	OPTIONS_ANY,	     /* neither: every id may be chosen */
	OPTIONS_JSON,	     /* a mask */
	OPTIONS_JSON_GREEDY, /* a mask and temperature 0 */
	OPTIONS_PENALTIES,
	OPTIONS_BIAS,
	OPTIONS_LOGPROBS, /* 20 alternatives */
};

struct sample_bed {
	struct kit *k;
	uint32_t rows, vocab, places;
	bool bf16;
	/* of the host and of the device */
	void *host[9];
	struct guarded device[9];
	uint64_t size[9];
	struct step_sample_args on_host, on_device;
	struct guarded part, tops, bins;
};
enum { BED_LOGITS, BED_ROW, BED_BIAS, BED_MASK, BED_COUNTS, BED_LAST, BED_RESULTS, BED_PARTS };

struct sample_plan {
	enum step_sample_kind kind;
	uint32_t rows, vocab;
	bool bf16, odd; /* odd: no row begins at a multiple of 16 bytes */
	enum sample_logits logits;
	enum sample_options options;
	uint32_t first; /* index of the first draw */
};
/* Of a kernel's entry. */
static inline enum step_sample_kind sample_kind(const char *entry)
{
	return !strcmp(entry, "step_sample_greedy")  ? STEP_SAMPLE_GREEDY
	       : !strcmp(entry, "step_sample_plain") ? STEP_SAMPLE_PLAIN
						     : STEP_SAMPLE_ALL;
}
/* Owner: caller, sample_bed_close, also after a failure. */
enum status sample_bed_open(struct kit *k, struct sample_bed *b, const struct sample_plan *plan,
			    struct error *err);
void sample_bed_close(struct sample_bed *b);
/* entry: step_sample_greedy, _plain, or _choose, which runs _scan before. Does not wait. */
enum status sample_bed_launch(struct sample_bed *b, const char *entry, bool early, struct error *err);
/* Waits and copies results, last and counts to `host`; the reference's place is not touched. */
enum status sample_bed_fetch(struct sample_bed *b, int32_t *results, int32_t *last, uint16_t *counts,
			     struct error *err);
const struct step_sample_row *sample_bed_row(const struct sample_bed *b, uint32_t row);
#endif
