/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One model on the CPU in F32 and on the GPU by each way of its adapters: the same weights (BF16 holds them),
 * the same adapter, the same rows. What lies in the arena before a pass is NaN.
 */
#ifndef TESTS_GPU_GRADIENTS_BED_H
#define TESTS_GPU_GRADIENTS_BED_H
#include "train/step/stepper.h"

enum { BED_DOCS = 64 };

struct gradient_case {
	const char *name, *shape;
	int64_t layers, vocab; /* 0: the shape's */
	int rank, alpha;       /* rank 0: the whole model is trained */
	int batches;
	double rate;	    /* what B is after AdamW's first step: +- this; 0: no step */
	int docs[BED_DOCS]; /* lengths of a batch's documents, 0 ends */
	const char *why;
};
extern const struct gradient_case gradient_cases[]; /* name NULL ends */

struct gradient_way {
	const char *name, *training; /* settings of section training */
	bool cpu;
	bool alone;	   /* each document a micro-batch of its own */
	double error_most; /* largest error of a gradient, as a share; 0: BF16's */
};

/* A batch's rows; owner: rows_release. */
struct gradient_rows {
	int32_t *number; /* all lists below, end to end */
	int32_t *token, *position, *target, *trained, *start;
	struct batch b;
};
enum status gradient_rows_make(struct gradient_rows *r, const struct gradient_case *c, int batch,
			       int64_t vocab, struct error *err);
void gradient_rows_release(struct gradient_rows *r);

struct gradient_bed {
	const struct gradient_case *c;
	const struct gradient_way *way;
	struct stepper s;
	float *gradient; /* of the last run */
	double loss;	 /* mean of its targets */
};
enum status gradient_shape(struct shape *s, const struct gradient_case *c, struct error *err);
/* The adapter as it begins: A random, B 0. Owner: caller, gradient_bed_close, which accepts what failed half
 * way. */
enum status gradient_bed_open(struct gradient_bed *b, const struct gradient_case *c,
			      const struct gradient_way *way, struct error *err);
void gradient_bed_close(struct gradient_bed *b);
/* Parameters of host memory. */
enum status gradient_bed_put(struct gradient_bed *b, const float *master, struct error *err);
enum status gradient_bed_run(struct gradient_bed *b, const struct gradient_rows *rows, struct error *err);
/* *master: what AdamW's first step makes of what was put by the last run's gradient. Owner: caller, free().
 */
enum status gradient_bed_step(struct gradient_bed *b, float **master, struct error *err);
#endif
