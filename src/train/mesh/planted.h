/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults planted in one rank of a training run, to test that assay names them (ASSAY_TEST=1 only; the
 * journal's `open` line records the fault). ASSAY_TEST_PLANT=KIND:RANK[@STEP][:MORE], from step STEP on (3):
 *
 * size               the gradient's first all-reduce or reduce-scatter has one number less
 * type               it is a broadcast
 * order              it comes second
 * nan                its first number is NaN
 * weights            the first all-gather of weights has one number less
 * hang               the rank reads MORE (a FIFO) for ever before it computes
 * layer              tensor parallel: the same before the step's first collective within a copy of the model
 * kernel             GPUs: a kernel of the rank does not end, or after an hour
 * lost               the rank is killed
 * late               it sleeps in each step before it computes, MORE percent (300) of the mean step
 * network            every rank's collectives take MORE percent (100) of the mean step longer
 * alone              no collective of any rank takes place, so that a step has the time of its computation
 *
 * The file ASSAY_TEST_PLANT_AT gets the time at which the fault began.
 */
#ifndef TRAIN_MESH_PLANTED_H
#define TRAIN_MESH_PLANTED_H
#include "model/backend/comm.h"
#include "model/backend/ops.h"

/* Lets the operations of `all` have the planted fault, and those of `data` and `tensor`, the ranks of these
 * axes (NULL: there are none). `back`: of this rank. BAD_INPUT: the fault is not valid. */
enum status planted_put(struct comm *all, struct comm *data, struct comm *tensor, struct backend *back,
			struct error *err);
#endif
