/* SPDX-License-Identifier: Apache-2.0 */
/* The rungs, from the bottom up. The job of a rung has the settings of all rungs below it. */
#include "cmd/ladder/ladder.h"

#define GUIDE "the training optimization guide for H100"
#define COMPUTES(precision)                                                                                  \
	{                                                                                                    \
		.phase = "load", .field = "precision", .value = precision, .demanded = true                  \
	}
#define FLOAT32 "a CPU computes in float32"

const struct rung rung_list[RUNG_COUNT] = {
	[RUNG_BASELINE] =
		{.word = "baseline",
		 .title = "FP32 as eager PyTorch runs it",
		 .says = "no TF32, no tensor cores, separate adapters, one row at a time, no packing, no "
			 "thread for rows, no graphs",
		 .setting = {{"training", "precision", "fp32"},
			     {"training", "attention", "plain"},
			     {"training", "adapters", "separate"},
			     {"training", "graphs", "false"},
			     {"training", "dataloader_num_workers", "0"},
			     {"training", "recompute", "none"},
			     {"data", "packing", "false"}},
		 .effect = COMPUTES("fp32"),
		 .source = "this is the baseline: the first factor is relative to it"},
	[RUNG_BATCH] =
		{.word = "batch",
		 .title = "batch size",
		 .says = "two rows in a micro-batch; a step keeps its rows, so it has half the micro-batches",
		 .setting = {{"training", "per_device_train_batch_size", "2"},
			     {"training", "gradient_accumulation_steps", "4"}},
		 .low = 1.2,
		 .high = 1.5,
		 .source = GUIDE},
	[RUNG_TF32] = {.word = "tf32",
		       .title = "TF32",
		       .says = "GEMMs on tensor cores, which round their factors to 10 bits",
		       .not_cpu = "TF32 is a mode of GPUs' tensor cores, and " FLOAT32,
		       .setting = {{"training", "precision", "tf32"}},
		       .effect = COMPUTES("tf32"),
		       .source = "the guide has one range for TF32 and BF16 together"},
	[RUNG_BF16] =
		{.word = "bf16",
		 .title = "BF16",
		 .says = "activations, weights and GEMMs in BF16; sums, losses and the optimizer stay in FP32",
		 .not_cpu = "assay trains in BF16 on GPUs only; " FLOAT32,
		 .setting = {{"training", "precision", "bf16"}},
		 .effect = COMPUTES("bf16"),
		 .low = 2,
		 .high = 3,
		 .with = 1,
		 .source = GUIDE ", TF32 and BF16 together"},
	[RUNG_FUSED] = {.word = "fused",
			.title = "fused kernels",
			.says = "the adapters' GEMMs become part of the GEMMs of their base layers",
			.not_cpu = "fused adapters exist on GPUs only",
			.setting = {{"training", "adapters", "auto"}},
			.effect = {.phase = "load",
				   .field = "adapters",
				   .value = "fused",
				   .hint = "adapters of this model cannot be fused"},
			.low = 1.1,
			.high = 1.3,
			.source = GUIDE
			" (1.2 to 1.3); torchtitan's compiled Llama 3.1 8B (1.16); Liger (1.1 to 1.2)"},
	[RUNG_ATTENTION] = {.word = "attention",
			    .title = "attention",
			    .says = "kernels with tensor cores, cuDNN's or assay's own",
			    .not_cpu = "the CPU has one implementation of attention",
			    .setting = {{"training", "attention", "auto"}},
			    .effect = {.phase = "load",
				       .field = "attention",
				       .value = "plain",
				       .differs = true,
				       .hint = "no other implementation supports these heads here"},
			    .low = 1.3,
			    .high = 1.5,
			    .source = GUIDE},
	[RUNG_PACKING] =
		{.word = "packing",
		 .title = "packing",
		 .says = "several rows share a sequence, so micro-batches are full; a step keeps about the same "
			 "number of tokens",
		 .setting = {{"data", "packing", "true"}, {"training", "gradient_accumulation_steps", "2"}},
		 .low = 1,
		 .high = 3.7,
		 .source =
			 "huggingface/trl#3526, short rows that were padded before; assay never pads to the "
			 "longest row"},
	[RUNG_LOADING] = {.word = "loading",
			  .title = "data loading",
			  .says = "a thread makes the next micro-batch while the step runs",
			  .setting = {{"training", "dataloader_num_workers", "1"}},
			  .low = 1.1,
			  .high = 1.2,
			  .source = GUIDE},
	[RUNG_GRAPHS] =
		{.word = "graphs",
		 .title = "CUDA graphs",
		 .says = "the layers of a small micro-batch are launched as one graph",
		 .not_cpu = "CUDA graphs exist on GPUs only",
		 .setting = {{"training", "graphs", "true"}},
		 .effect = {.phase = "once",
			    .field = "graph_launches",
			    .hint = "graphs are for small micro-batches whose shape occurs again, at most "
				    "about 1300 tokens of a 7B model"},
		 .source = "no published factor: large where kernels are short, about 1 for a 7B model"},
	[RUNG_RECOMPUTE] =
		{.word = "recompute",
		 .title = "recomputation traded for batch size",
		 .says = "layers are recomputed in the backward pass, and the micro-batch is twice as large",
		 .setting = {{"training", "recompute", "full"},
			     {"training", "per_device_train_batch_size", "4"},
			     {"training", "gradient_accumulation_steps", "1"}},
		 .low = 0.87,
		 .high = 0.87,
		 .source = "MosaicML's MPT-7B: 40.4 % of the peak with, 46.4 % without recomputation",
		 .trade = true},
	[RUNG_FP8] = {.word = "fp8",
		      .title = "FP8",
		      .says = "linear layers in FP8",
		      .not_cpu = "a CPU multiplies numbers rounded to FP8 in float32, which is slower",
		      .setting = {{"training", "precision", "fp8"}},
		      .effect = COMPUTES("fp8"),
		      .least_cc = 90,
		      .low = 1.28,
		      .high = 1.36,
		      .source = "torchtitan, Llama 3.1 8B and 70B"},
	[RUNG_PARALLEL] =
		{.word = "parallel",
		 .title = "several GPUs",
		 .says = "each GPU trains on its own rows of a step (data parallel); its power and activity are "
			 "those of one GPU",
		 .not_cpu = "on a CPU, training on several ranks needs a launcher (assay launch)",
		 .setting = {{"training", "gpus", "0"}, {"training", "gradient_accumulation_steps", "1"}},
		 .source = GUIDE " has 3.8 for 4 GPUs, and no range for other numbers"},
};
