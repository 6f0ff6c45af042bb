/* SPDX-License-Identifier: Apache-2.0 */
/* What a training run comes to: the results of its phase `once`. */
#ifndef TRAIN_RUN_FIELDS_H
#define TRAIN_RUN_FIELDS_H
#include "journal/field.h"

/* name, unit, better, help */
/* clang-format off */
#define TRAIN_FIELDS(X)                                                                               \
	X(kernels_gain, "", 0, "rate of the kernels taken over those that OpenBLAS chose")            \
	X(steps, "", 0, "optimiser steps done")                                                       \
	X(loss_first, "", 0, "of the first step, a target token's mean")                              \
	X(loss, "", -1, "of the last step")                                                           \
	X(eval_loss_first, "", 0, "held-out rows, first evaluation")                                  \
	X(eval_loss, "", -1, "held-out rows, last evaluation")                                        \
	X(eval_loss_best, "", -1, "held-out rows, best evaluation after a step")                           \
	X(tokens, "", 0, "trained on, padding apart")                                                 \
	X(targets, "", 0, "of them, those with a loss")                                               \
	X(rows, "", 0, "trained on")                                                                  \
	X(tokens_per_s, "token/s", 1, "tokens over the time of the steady steps")                     \
	X(rows_per_s, "row/s", 1, "rows over the time of the steady steps")                           \
	X(steady_steps, "", 0, "steps after start-up and tuning: times, rates and shares are theirs") \
	X(start_s, "s", -1, "from the program's start to the end of the first step, tuning apart")    \
	X(tuning_s, "s", -1, "timing of kernel candidates, and waiting for plans of cuDNN")                \
	X(step_s, "s", -1, "a steady step, median")                                                   \
	X(half_width_share, "", -1, "95 % half-width of the steady steps' mean, share of it")         \
	X(forward_share, "", 0, "of the steps' time: forward passes")                                 \
	X(backward_share, "", 0, "of the steps' time: backward passes, head and loss among them")     \
	X(optimiser_share, "", 0, "of the steps' time: clipping and AdamW")                           \
	X(wait_share, "", -1, "of the steps' time: waiting for rows")                                 \
	X(gemm_share, "", 0, "of the steps' time: products of matrices, attention's among them")      \
	X(save_share, "", -1, "of the steps' time: waiting for a checkpoint's end")                \
	X(flop_rate, "FLOP/s", 1, "what the steps must compute over their time")                      \
	X(mfu, "", 1, "of it the share of the GEMM rate that this machine showed at the start")       \
	X(memory_bytes, "B", -1, "highest resident size of the run's processes; of a GPU's run, what was in use there")                             \
	X(memory_planned_bytes, "B", 0, "the same as planned, every micro-batch full")                 \
	X(memory_planned_share, "", 0, "what the process took of what was planned")                    \
	X(arena_bytes, "B", -1, "of it the arena, as far as it was used")                         \
	X(host_bytes, "B", -1, "of a GPU's run: highest resident size of its process on the host")    \
	X(host_planned_bytes, "B", 0, "the same as planned")
/* name, help: of what worked */
#define TRAIN_TEXTS(X)                                                      \
	X(device, "what trained: the GPU and its PCI address, or cpu")      \
	X(gemm, "the library of its products")                              \
	X(kernels, "the set of OpenBLAS' kernels that its products took on the CPU") \
	X(kernels_chosen, "the set that OpenBLAS chose itself, where another is faster") \
	X(kernels_from, "where that is known from, if it was not timed now: the cache and its key") \
	X(attention, "who attends: our kernels (own), a library")
/* clang-format on */
#endif
