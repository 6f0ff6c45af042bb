/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that sample a token per row of logits (model/backend/paged.h says what a row's options mean).
 *
 * - step_sample_greedy: the largest logit of each row. For rows without any other option.
 * - step_sample_plain: temperature and top_p on BF16 logits. For rows without any other option.
 * - step_sample_scan, then step_sample_choose: everything, also F32 logits and temperature 0.
 * - step_sample_count: sets a row of the counts.
 *
 * Each row is divided among `parts` blocks; block b has part b % parts of row b / parts. The block of a row
 * that ends last makes the choice. Nothing depends on the order in which blocks run: sums of floating-point
 * numbers have a fixed order, and those that are formed by atomics are of integers.
 * A choice goes through the ids to the point (random_u32(seed, stream, index) + 1/2) / 2^32 of their total
 * probability: in the order of ids if top_k, top_p and min_p allow all, else from the most likely one on,
 * equals by id. model/generation/choice.c does the same on a CPU.
 */
#ifndef KERNEL_STEP_SAMPLE_H
#define KERNEL_STEP_SAMPLE_H
#include "kernel/args.h"

enum {
	STEP_SAMPLE_THREADS = 512,
	STEP_SAMPLE_PARTS_MAX = 32,
	STEP_SAMPLE_PART_MAX = 49152, /* elements of a part: counts have 16 bits */
	STEP_SAMPLE_TOPS = 20,
	STEP_SAMPLE_RESULT_WORDS = 4 + 2 * STEP_SAMPLE_TOPS,
	STEP_SAMPLE_PLAIN_BINS = 8192,
	STEP_SAMPLE_BINS = 4096,
	STEP_SAMPLE_BIASES = 1024, /* biases of a row */
	STEP_SAMPLE_HASH = 2 * STEP_SAMPLE_BIASES,
	STEP_SAMPLE_LIST = 4096, /* largest values of a row that its last block sorts */
};

/* struct sample_row, and a counter. */
struct step_sample_row {
	float temperature, top_p, min_p, repetition, presence, frequency;
	int32_t top_k, given, place, counted, mask, bias_begin, biases, logprobs;
	uint32_t stream, index;
	uint64_t seed;
	uint32_t arrived; /* blocks of the row that have ended: 0 before and after */
	uint32_t reserved;
};
static_assert(sizeof(struct step_sample_row) == 80, "layout shared with nvcc");

struct step_sample_bias {
	int32_t id;
	float add;
};

/* What a part of a row found. A best is the ordered value (32 bits) and the inverted id; 0: none. */
struct step_sample_part {
	uint64_t best; /* after penalties, bias and mask */
	uint64_t raw_best;
	double raw_sum;	   /* sum of exp(logit - largest logit of the part), if a log probability is wanted */
	uint32_t infinite; /* a logit is NaN or infinite */
	uint32_t reserved;
};
static_assert(sizeof(struct step_sample_part) == 32, "layout shared with nvcc");

/* What the parts of a row give its last block. The largest values of all threads of step_sample_scan follow:
 * their upper 16 bits, (parts, STEP_SAMPLE_THREADS). */
struct step_sample_listed {
	uint64_t mass[STEP_SAMPLE_PARTS_MAX]; /* weight of a part's elements */
	uint32_t count[STEP_SAMPLE_PARTS_MAX];
	uint32_t listed; /* elements that belong in the list; those beyond its end are not there */
	uint32_t reserved[3];
	uint64_t list[STEP_SAMPLE_LIST]; /* as a best */
};
static_assert(sizeof(struct step_sample_listed) == 32 * 12 + 16 + STEP_SAMPLE_LIST * 8,
	      "layout shared with nvcc");

/* Grid: rows * parts blocks of STEP_SAMPLE_THREADS. */
struct step_sample_args {
	DEVICE_PTR(const void) logits;		/* (rows, vocab), ld: BF16 or F32 */
	DEVICE_PTR(struct step_sample_row) row; /* (rows) */
	DEVICE_PTR(const struct step_sample_bias) bias;
	DEVICE_PTR(const uint32_t) mask;	  /* (masks, mask_words) */
	DEVICE_PTR(uint16_t) counts;		  /* (places, vocab), ld_counts */
	DEVICE_PTR(int32_t) last;		  /* (places) */
	DEVICE_PTR(int32_t) results;		  /* (rows, STEP_SAMPLE_RESULT_WORDS), ld_results */
	DEVICE_PTR(struct step_sample_part) part; /* (rows, parts) */
	DEVICE_PTR(uint64_t) tops;		  /* (rows, parts, STEP_SAMPLE_TOPS) */
	/* plain: (rows, parts, STEP_SAMPLE_PLAIN_BINS) of 16 bits; scan and choose: per row struct
	 * step_sample_listed and what follows it. */
	DEVICE_PTR(uint64_t) bins;
	int64_t ld, ld_counts, ld_results;
	uint32_t rows, vocab, parts, mask_words;
	uint32_t bf16;
	uint32_t reserved;
};
static_assert(sizeof(struct step_sample_args) == 128, "layout shared with nvcc");

/* step_sample_count: with `clear` sets the row to 0; then counts `count` ids, of which the first `prompt` are
 * marked as the prompt's (bit 15) and the others are counted, up to 32767. Ids outside the vocabulary are
 * ignored. Grid: one block of 1024. Launches for one row follow each other. */
struct step_count_args {
	DEVICE_PTR(uint16_t) counts; /* (vocab) */
	DEVICE_PTR(const int32_t) id;
	uint64_t prompt, count;
	uint32_t vocab, clear;
};
static_assert(sizeof(struct step_count_args) == 40, "layout shared with nvcc");

enum step_sample_kind { STEP_SAMPLE_GREEDY, STEP_SAMPLE_PLAIN, STEP_SAMPLE_ALL };

/* Parts of a row: about as many blocks as a Hopper GPU holds at once. */
static inline unsigned step_sample_parts(enum step_sample_kind kind, uint64_t rows, uint64_t vocab)
{
	const uint64_t blocks = kind == STEP_SAMPLE_GREEDY ? 528 : 264, wanted = rows ? blocks / rows : 1;
	const uint64_t limit = kind == STEP_SAMPLE_GREEDY ? STEP_SAMPLE_PARTS_MAX : STEP_SAMPLE_PARTS_MAX / 2;
	const uint64_t small = (vocab + 1023) / 1024, most = small < limit ? small : limit;
	const uint64_t least =
		kind == STEP_SAMPLE_GREEDY ? 1 : (vocab + STEP_SAMPLE_PART_MAX - 1) / STEP_SAMPLE_PART_MAX;

	return (unsigned)(wanted < least ? least : wanted > most ? most : wanted);
}

/* Bytes of `bins` per row. */
static inline uint64_t step_sample_bins_bytes(enum step_sample_kind kind, unsigned parts)
{
	return kind == STEP_SAMPLE_PLAIN ? (uint64_t)parts * STEP_SAMPLE_PLAIN_BINS * 2
	       : kind == STEP_SAMPLE_ALL
		       ? sizeof(struct step_sample_listed) + (uint64_t)parts * STEP_SAMPLE_THREADS * 2
		       : 0;
}

enum {
	STEP_SAMPLE_NOTES = 1024, /* bytes of shared memory for sums of warps and results */
	STEP_SAMPLE_SHARED_GREEDY = STEP_SAMPLE_NOTES,
	STEP_SAMPLE_SHARED_PLAIN = STEP_SAMPLE_NOTES + STEP_SAMPLE_BINS * 12,
	STEP_SAMPLE_SHARED =
		STEP_SAMPLE_NOTES + STEP_SAMPLE_BINS * 12 + STEP_SAMPLE_HASH * 8 + STEP_SAMPLE_LIST * 8,
};
#endif
