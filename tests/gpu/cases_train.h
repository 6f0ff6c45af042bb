/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training kernel's case as data: its arguments, its operands, its launch. One runner tests them all
 * against their references and times those that are worth it.
 */
#ifndef TESTS_GPU_CASES_TRAIN_H
#define TESTS_GPU_CASES_TRAIN_H
#include "cases.h"
#include "ref.h"

enum number { NUMBER_BF16, NUMBER_F32, NUMBER_F64, NUMBER_I32, NUMBER_BYTE, NUMBER_I16, NUMBER_E4M3 };
enum use { USE_IN, USE_ADDED, USE_OUT }; /* out: poisoned before the launch */
enum { TRAIN_OPERANDS = 12, TRAIN_ARGS = 160 };

/* How far a result may be from its reference: |found - expected| <= relative |expected| + of_rms * rms of all
 * expected; of BF16 and bytes at most a hundredth of the elements (and two) may be off by more than 1e-4 rms. All 0:
 * bit-equal. */
struct tolerance {
	double relative, of_rms;
};
/* For products in BF16 that have a factor in BF16, which was rounded itself. A factor near the middle of two
 * numbers may become the other one, which is at most 2^-7 away. Rounding moves each of both products by at most
 * 2^-8. The sum is 2^-6. */
extern const struct tolerance train_twice_rounded;
#define TRAIN_F32_HALF_UNIT 0x1p-24 /* largest relative error of a rounding to F32 */

struct train_build;
struct operand {
	const char *name;
	size_t at; /* of its address in the arguments */
	enum number type;
	int64_t rows, cols, ld;
	int64_t first; /* column that the kernel's own begin at; others are to stay as they are */
	int64_t shift; /* elements that its address lies behind the buffer's begin */
	enum use use;
	double centre, width; /* random numbers around centre */
	int32_t (*number)(const struct train_build *b, int64_t i);
	/* Fills it where it has addresses of other operands in it: the host's, or the device's. */
	void (*table)(const struct train_build *b, const struct operand *o, bool host, void *out);
	struct tolerance tolerance;
	double outliers; /* share of the elements that may be out of the tolerance, beyond two */
	/* An error that is allowed in addition, since the element may be a small sum of larger terms in F32. NULL:
	 * none. It reads the operands by train_before. */
	double (*cancels)(const struct train_build *b, int64_t row, int64_t col);
	/* the runner's */
	unsigned char *host, *before, *found; /* the reference's; what both began with; the kernel's */
	struct guarded device;
};

enum train_flag {
	TRAIN_SLICED = 1, /* rows of a larger matrix, still in 16 bytes */
	TRAIN_ODD = 2,	  /* addresses and distances of no multiple of 16 bytes */
	TRAIN_A = 4,	  /* the kernel's own choices */
	TRAIN_B = 8,
	TRAIN_TIMED = 16, /* at its real shape */
	TRAIN_C = 32,
};

struct train_build {
	const struct kernel_case *c;
	int64_t rows, cols;
	unsigned flags;
	const char *file;
	const char *entry; /* c->entry without _f32 */
	bool f32;	   /* the kernel for F32 */
	char f32_file[48];
	_Alignas(16) unsigned char args[TRAIN_ARGS];
	size_t args_size;
	struct operand operand[TRAIN_OPERANDS];
	int operands;
	unsigned grid[3], threads, shared_bytes;
	bool timing;
	unsigned sms, shared_most;		/* of the device */
	double bytes;				/* each operand's once, read or written; 0: of the operands */
	void (*prepare)(struct train_build *b); /* on host addresses, after the operands are filled */
};

/* A case's rows, columns and flags in kernel_case's own fields. */
#define TRAIN_CASE(entry, why, rows, cols, flags)                                                            \
	{                                                                                                    \
		entry, why, (uint64_t)(rows) * (cols), 0, 0, rows, (cols) | (unsigned)(flags) << 24          \
	}
/* A grid of one's own instead of the header's. */
#define TRAIN_GRID(entry, why, rows, cols, flags, blocks)                                                    \
	{                                                                                                    \
		entry, why, (uint64_t)(rows) * (cols), blocks, 0, rows, (cols) | (unsigned)(flags) << 24     \
	}

/* A number that the kernel began with, of the operand with this name. */
double train_before(const struct train_build *b, const char *name, int64_t row, int64_t col);

typedef void train_make(struct train_build *b);
struct train_maker {
	const char *entry;
	train_make *make;
};
/* By file of kernels; NULL ends. */
extern const struct train_maker makers_train_norm[], makers_train_rows[], makers_train_flat[], makers_train_fp8[],
	makers_train_attention[], makers_train_states[], makers_step[];

/* A matrix operand by the case's flags: plain, sliced or odd. Returns it for what else is to be said. */
struct operand *train_operand(struct train_build *b, const char *name, size_t at, enum number type,
			      int64_t rows, int64_t cols, enum use use);
/* Where the arguments have a 64-bit number: distances. */
void train_number(struct train_build *b, size_t at, int64_t value);

/* timing: all of a real shape's rows, and numbers that repeat. */
enum status train_made(struct kit *k, const struct kernel_case *c, bool timing, struct train_build *b,
		       struct error *err);
/* Fills the operands and copies them to the device, whose addresses the arguments have then. */
enum status train_ready(struct kit *k, struct train_build *b, struct error *err);
enum status train_launch(struct kit *k, struct train_build *b, struct error *err);
void train_done(struct kit *k, struct train_build *b);
uint64_t train_bytes(const struct operand *o); /* without what lies between its rows */
enum status train_one(struct kit *k, const struct kernel_case *c, struct error *err);
enum status train_time(struct kit *k, struct error *err);
#endif
