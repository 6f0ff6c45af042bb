/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a training run, which are the fields of its phase `once`. */
#ifndef TRAIN_RUN_FIELDS_H
#define TRAIN_RUN_FIELDS_H
#include "journal/field.h"

/* name, unit, better, help */
/* clang-format off */
#define TRAIN_FIELDS(X)                                                                               \
	X(kernels_gain, "", 0, "rate of the OpenBLAS kernels in use / rate of those that OpenBLAS selected itself")            \
	X(steps, "", 0, "completed optimizer steps")                                                       \
	X(loss_first, "", 0, "mean loss per target token in the first step")                              \
	X(loss, "", -1, "mean loss per target token in the last step")                                                           \
	X(eval_loss_first, "", 0, "held-out loss at the first evaluation")                                  \
	X(eval_loss, "", -1, "held-out loss at the last evaluation")                                        \
	X(eval_loss_best, "", -1, "lowest held-out loss of all evaluations after a step")                           \
	X(fp8_overflows, "", -1, "precision: fp8 only: scales that were not finite, because a number was not, since the start or the resume") \
	X(graph_launches, "", 0, "GPU runs only: passes over the layers that this process launched as one CUDA graph") \
	X(tokens, "", 0, "trained tokens without padding")                                                 \
	X(targets, "", 0, "trained tokens that have a loss")                                               \
	X(rows, "", 0, "trained rows")                                                                  \
	X(tokens_per_s, "token/s", 1, "tokens / time of the steady steps")                     \
	X(rows_per_s, "row/s", 1, "rows / time of the steady steps")                           \
	X(steady_steps, "", 0, "steps after start-up and tuning; only these count for times, rates and shares") \
	X(start_s, "s", -1, "from the start of the program to the end of the first step, without tuning")    \
	X(tuning_s, "s", -1, "timing kernel candidates, and waiting for cuDNN's plans")                \
	X(step_s, "s", -1, "median time of the steady steps")                                                   \
	X(half_width_share, "", -1, "95 % half-width of the steady steps' mean time / that mean")         \
	X(forward_share, "", 0, "share of the step time: forward passes")                                 \
	X(backward_share, "", 0, "share of the step time: backward passes, with head and loss")     \
	X(optimiser_share, "", 0, "share of the step time: clipping and AdamW")                           \
	X(ranks, "", 0, "ranks of the last process of this run") \
	X(comm_share, "", -1, "several ranks: share of the step time waiting for collectives, which includes waiting for slower ranks") \
	X(mean_compute_share, "", 0, "several ranks: share of their time: forward, backward, optimizer; mean over the ranks, as the five shares below") \
	X(exposed_share, "", -1, "several ranks: share of their time: communication that no computation hides") \
	X(waiting_share, "", -1, "several ranks: share of their time: waiting for the rank that comes last to a collective") \
	X(mean_rows_share, "", -1, "several ranks: share of their time: waiting for rows") \
	X(mean_save_share, "", -1, "several ranks: share of their time: waiting for a checkpoint to be written") \
	X(mean_host_share, "", -1, "several ranks: share of their time: the rest") \
	X(late_share, "", -1, "several ranks: share of the step that the others waited for the late rank, when it was last seen") \
	X(wait_share, "", -1, "share of the step time: waiting for rows")                                 \
	X(gemm_share, "", 0, "share of the step time: GEMMs, including attention's")      \
	X(save_share, "", -1, "share of the step time: waiting for a checkpoint to be written")                \
	X(flop_rate, "FLOP/s", 1, "FLOP required by the steps / their time")                      \
	X(mfu, "", 1, "flop_rate / the GEMM rate that this machine reached at the start")       \
	X(memory_bytes, "B", -1, "peak resident memory of all processes; for GPU runs, peak device memory")                             \
	X(memory_planned_bytes, "B", 0, "the plan for memory_bytes, with full micro-batches")                 \
	X(memory_planned_share, "", 0, "memory_bytes / memory_planned_bytes")                    \
	X(arena_bytes, "B", -1, "used part of the arena")                         \
	X(host_bytes, "B", -1, "GPU runs only: peak resident host memory of the process")    \
	X(host_planned_bytes, "B", 0, "GPU runs only: the plan for host_bytes")
/* name, help; texts of a run that worked */
#define TRAIN_TEXTS(X)                                                      \
	X(device, "the GPU with its PCI address, or cpu")      \
	X(gemm, "library that computed the GEMMs")                              \
	X(kernels, "CPU only: the OpenBLAS kernel set that computed the GEMMs") \
	X(kernels_chosen, "the kernel set that OpenBLAS selected itself, if another one is faster") \
	X(kernels_from, "the cache and key that the kernel set comes from, unless it was timed in this run") \
	X(late_rank, "several ranks: the rank that came last in most steps, with candidates for the cause and their evidence") \
	X(attention, "implementation of attention: own (assay's kernels), plain (without tensor cores) or a library") \
	X(precision, "how the linear layers compute: fp32, tf32, bf16 or fp8") \
	X(adapters, "LoRA only: fused (in the same GEMMs as their base layers) or separate")
/* clang-format on */
#endif
