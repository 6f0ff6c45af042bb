/* SPDX-License-Identifier: Apache-2.0 */
/* The training kernels against their references: small and odd shapes, then the real ones (Qwen2-7B's 3584,
 * 18944, 152064; SmolLM2-135M's 576, 1536, 49152). Time: those marked so, beside the driver's copy. */
#include "cases_train.h"
#include "kernel/train/common.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define S TRAIN_SLICED
#define O TRAIN_ODD
#define A TRAIN_A
#define B TRAIN_B
#define C TRAIN_C
#define T TRAIN_TIMED
#define HEADS(heads, dim) ((heads)*256 + (dim))
#define ATTEND(entry, why, rows, kv, group, dim, flags)                                                      \
	{                                                                                                    \
		entry, why, (uint64_t)(rows) * (dim), 0, 0, rows,                                            \
			((dim) + 512 * ((kv) + 16 * (group))) | (unsigned)(flags) << 24                      \
	}
#define ATTENTION_ENTRY(entry)                                                                               \
	ATTEND(entry, "one row", 1, 1, 1, 8, 0),                                                             \
		ATTEND(entry, "lengths where tiles break", 769, 2, 3, 64, S),                                \
		ATTEND(entry, "lengths, odd", 257, 1, 2, 40, O),                                             \
		ATTEND(entry, "head of 128", 257, 1, 7, 128, 0),                                             \
		ATTEND(entry, "head of 256", 129, 2, 1, 256, S),                                             \
		ATTEND(entry, "head of 136", 65, 1, 1, 136, 0),                                              \
		ATTEND(entry, "one document", 192, 3, 3, 64, A),                                             \
		ATTEND(entry, "long document", 2112, 1, 2, 128, A)

static const struct kernel_case cases[] = {
	TRAIN_CASE("train_rmsnorm", "one row", 1, 64, 0),
	TRAIN_CASE("train_rmsnorm", "odd", 63, 577, O),
	TRAIN_CASE("train_rmsnorm", "residual, sliced", 65, 576, A | S),
	TRAIN_CASE("train_rmsnorm", "residual, odd", 7, 1001, A | O),
	TRAIN_GRID("train_rmsnorm", "rows shared by few blocks", 129, 896, A, 5),
	TRAIN_CASE("train_rmsnorm", "widest", 3, 16384, 0),
	TRAIN_CASE("train_rmsnorm", "7B", 16384, 3584, T),
	TRAIN_CASE("train_rmsnorm", "7B, residual", 16384, 3584, A | T),
	TRAIN_CASE("train_rmsnorm", "135M", 16384, 576, T),
	TRAIN_GRID("train_rmsnorm", "135M, 4224 blocks", 16384, 576, T, 4224),
	TRAIN_GRID("train_rmsnorm", "135M, 2112 blocks", 16384, 576, T, 2112),
	TRAIN_CASE("train_rmsnorm_bwd", "one row", 1, 64, 0),
	TRAIN_CASE("train_rmsnorm_bwd", "odd", 63, 577, O),
	TRAIN_CASE("train_rmsnorm_bwd", "dw, sliced", 65, 576, A | S),
	TRAIN_GRID("train_rmsnorm_bwd", "dw of few blocks, odd", 129, 1001, A | O, 5),
	TRAIN_CASE("train_rmsnorm_bwd", "widest", 3, 16384, A),
	TRAIN_CASE("train_rmsnorm_bwd", "7B", 16384, 3584, T),
	TRAIN_CASE("train_rmsnorm_bwd", "7B, dw", 8192, 3584, A | T),
	TRAIN_CASE("train_head_rope", "one row", 1, HEADS(1, 8), 0),
	TRAIN_CASE("train_head_rope", "norm, one row", 1, HEADS(3, 64), A),
	TRAIN_CASE("train_head_rope", "sliced", 65, HEADS(9, 64), S),
	TRAIN_CASE("train_head_rope", "norm, odd", 127, HEADS(5, 40), A | O),
	TRAIN_CASE("train_head_rope", "norm, sliced", 129, HEADS(2, 128), A | S),
	TRAIN_CASE("train_head_rope", "norm, heads of 256", 17, HEADS(3, 256), A),
	TRAIN_GRID("train_head_rope", "few blocks", 64, HEADS(3, 80), 0, 2),
	TRAIN_CASE("train_head_rope", "7B", 16384, HEADS(28, 128), T),
	TRAIN_CASE("train_head_rope", "Qwen3-8B, norm", 8192, HEADS(32, 128), A | T),
	TRAIN_CASE("train_head_rope_bwd", "one row", 1, HEADS(1, 8), 0),
	TRAIN_CASE("train_head_rope_bwd", "norm, dw, one row", 1, HEADS(3, 64), A | B),
	TRAIN_CASE("train_head_rope_bwd", "sliced", 65, HEADS(9, 64), S),
	TRAIN_CASE("train_head_rope_bwd", "norm, dw, odd", 127, HEADS(5, 40), A | B | O),
	TRAIN_CASE("train_head_rope_bwd", "norm, sliced", 129, HEADS(2, 128), A | S),
	TRAIN_GRID("train_head_rope_bwd", "norm, dw, heads of 256, few blocks", 17, HEADS(3, 256), A | B, 3),
	TRAIN_CASE("train_head_rope_bwd", "7B", 16384, HEADS(28, 128), T),
	TRAIN_CASE("train_head_rope_bwd", "Qwen3-8B, norm, dw", 8192, HEADS(32, 128), A | B | T),
	TRAIN_CASE("train_swiglu", "one", 1, 1, 0),
	TRAIN_CASE("train_swiglu", "odd", 63, 129, O),
	TRAIN_CASE("train_swiglu", "sliced", 65, 192, S),
	TRAIN_CASE("train_swiglu", "7B", 4096, 18944, T),
	TRAIN_CASE("train_swiglu", "135M", 16384, 1536, T),
	TRAIN_CASE("train_swiglu_bwd", "one", 1, 1, 0),
	TRAIN_CASE("train_swiglu_bwd", "h again, odd", 63, 129, A | O),
	TRAIN_CASE("train_swiglu_bwd", "h again, sliced", 65, 192, A | S),
	TRAIN_CASE("train_swiglu_bwd", "7B", 4096, 18944, T),
	TRAIN_CASE("train_swiglu_bwd", "7B, h again", 4096, 18944, A | T),
	TRAIN_CASE("train_gather", "odd", 63, 129, O),
	TRAIN_CASE("train_gather", "sliced", 65, 576, S),
	TRAIN_CASE("train_gather", "7B", 8192, 3584, T),
	TRAIN_CASE("train_scatter_add", "odd", 63, 129, O),
	TRAIN_CASE("train_scatter_add", "sliced", 65, 576, S),
	TRAIN_CASE("train_scatter_add", "7B", 8192, 3584, T),
	TRAIN_CASE("train_embed_bwd", "one row", 1, 64, 0),
	TRAIN_CASE("train_embed_bwd", "odd", 129, 67, O),
	TRAIN_CASE("train_embed_bwd", "more rows of a token than a turn finds", 1300, 72, S),
	TRAIN_CASE("train_dropout", "odd", 63, 129, O),
	TRAIN_CASE("train_dropout", "added, sliced", 65, 576, A | S),
	TRAIN_CASE("train_dropout", "added, odd", 9, 1003, A | O),
	TRAIN_CASE("train_dropout", "7B", 8192, 3584, T),
	TRAIN_CASE("train_dropout", "7B, added", 8192, 3584, A | T),
	TRAIN_CASE("train_to_bf16", "odd", 63, 129, O),
	TRAIN_CASE("train_to_bf16", "sliced", 65, 192, S),
	TRAIN_CASE("train_to_bf16", "7B's gate", 18944, 3584, T),
	TRAIN_CASE("train_to_f32", "odd", 63, 129, O),
	TRAIN_CASE("train_to_f32", "7B's gate", 18944, 3584, T),
	TRAIN_CASE("train_add_bf16", "odd", 63, 129, O),
	TRAIN_CASE("train_add_bf16", "7B", 16384, 3584, T),
	TRAIN_CASE("train_copy", "bytes", 5, 37, O),
	TRAIN_CASE("train_copy", "sliced", 65, 1152, S),
	TRAIN_CASE("train_copy", "7B to K-extension", 16384, 7168, S | T),
	TRAIN_CASE("train_zero", "bytes", 5, 37, O),
	TRAIN_CASE("train_zero", "sliced", 65, 1152, S),
	TRAIN_CASE("train_column_sums", "one row", 1, 8, 0),
	TRAIN_CASE("train_column_sums", "odd", 129, 259, O),
	TRAIN_CASE("train_column_sums", "sliced", 65, 960, S),
	TRAIN_CASE("train_column_sums", "7B's qkv", 16384, 4608, T),
	TRAIN_CASE("train_sums_add", "one", 1, 5, 0),
	TRAIN_CASE("train_sums_add", "many", 259, 577, 0),
	TRAIN_CASE("train_random_bf16", "odd, within a block", 9, 129, B | O),
	TRAIN_CASE("train_random_bf16", "norm's", 1, 577, A | B),
	TRAIN_CASE("train_random_bf16", "sliced", 65, 576, S),
	TRAIN_CASE("train_random_bf16", "7B's gate", 18944, 3584, T),
	TRAIN_CASE("train_random_f32", "odd, within a block", 9, 129, A | B | O),
	TRAIN_CASE("train_random_f32", "plain", 65, 576, 0),
	TRAIN_CASE("train_cross_entropy", "loss alone", 5, 1000, 0),
	TRAIN_CASE("train_cross_entropy", "gradient, odd", 7, 1003, A | O),
	TRAIN_CASE("train_cross_entropy", "gradient, no shared memory", 9, 1000, A | B | S),
	TRAIN_CASE("train_cross_entropy", "targets that do not count", 7, 513, A | C),
	TRAIN_GRID("train_cross_entropy", "few blocks", 65, 777, A | S, 4),
	TRAIN_CASE("train_cross_entropy", "gradient, last round not full, sliced", 5, 26648, A | S),
	TRAIN_CASE("train_cross_entropy", "more than shared memory", 2, 49159, A | O),
	TRAIN_CASE("train_cross_entropy", "7B", 1024, 152064, A | T),
	TRAIN_CASE("train_cross_entropy", "7B, 4,096 rows", 4096, 152064, A | T),
	TRAIN_CASE("train_cross_entropy", "7B, no shared memory", 1024, 152064, A | B | T),
	TRAIN_CASE("train_cross_entropy", "135M", 2048, 49152, A | T),
	TRAIN_CASE("train_reduce", "seven", 1, 7, 0),
	TRAIN_CASE("train_reduce", "squares, odd", 41, 1001, A | O),
	TRAIN_CASE("train_reduce", "squares of BF16", 33, 1000, A | B),
	TRAIN_CASE("train_reduce", "squares, 161 M", 39424, 4096, A | T),
	TRAIN_CASE("train_reduce_end", "sums", 1, 1, 0),
	TRAIN_CASE("train_adamw", "seven", 1, 7, 0),
	TRAIN_CASE("train_adamw", "norm from the device, odd", 41, 1001, A | O),
	TRAIN_CASE("train_adamw", "a norm that is not finite", 3, 100, A | C),
	TRAIN_CASE("train_adamw", "live copies", 33, 64, A | B),
	TRAIN_CASE("train_adamw", "live copies, borders within vectors", 33, 70, B),
	TRAIN_CASE("train_adamw", "161 M", 39424, 4096, A | T),
	TRAIN_CASE("train_adamw", "161 M, live copies", 39424, 4096, A | B | T),
	TRAIN_CASE("train_live_refresh", "borders within vectors", 33, 70, B),
	ATTENTION_ENTRY("train_attention"),
	ATTENTION_ENTRY("train_attention_delta"),
	ATTENTION_ENTRY("train_attention_bwd_kv"),
	ATTENTION_ENTRY("train_attention_bwd_q"),
	ATTEND("train_attention", "7B", 4096, 1, 7, 128, A | T),
	TRAIN_CASE("train_rmsnorm_f32", "odd", 63, 577, O),
	TRAIN_CASE("train_rmsnorm_f32", "residual, sliced", 65, 576, A | S),
	TRAIN_CASE("train_rmsnorm_f32", "widest", 3, 16384, 0),
	TRAIN_CASE("train_rmsnorm_f32", "7B", 16384, 3584, T),
	TRAIN_CASE("train_rmsnorm_bwd_f32", "odd", 63, 577, O),
	TRAIN_GRID("train_rmsnorm_bwd_f32", "dw of few blocks, odd", 129, 1001, A | O, 5),
	TRAIN_CASE("train_rmsnorm_bwd_f32", "widest", 3, 16384, A),
	TRAIN_CASE("train_rmsnorm_bwd_f32", "7B", 16384, 3584, T),
	TRAIN_CASE("train_head_rope_f32", "sliced", 65, HEADS(9, 64), S),
	TRAIN_CASE("train_head_rope_f32", "norm, odd", 127, HEADS(5, 40), A | O),
	TRAIN_CASE("train_head_rope_f32", "norm, heads of 256", 17, HEADS(3, 256), A),
	TRAIN_CASE("train_head_rope_f32", "7B", 16384, HEADS(28, 128), T),
	TRAIN_CASE("train_head_rope_bwd_f32", "sliced", 65, HEADS(9, 64), S),
	TRAIN_CASE("train_head_rope_bwd_f32", "norm, dw, odd", 127, HEADS(5, 40), A | B | O),
	TRAIN_GRID("train_head_rope_bwd_f32", "norm, dw, heads of 256, few blocks", 17, HEADS(3, 256), A | B,
		   3),
	TRAIN_CASE("train_swiglu_f32", "one", 1, 1, 0),
	TRAIN_CASE("train_swiglu_f32", "odd", 63, 129, O),
	TRAIN_CASE("train_swiglu_f32", "7B", 4096, 18944, T),
	TRAIN_CASE("train_swiglu_bwd_f32", "h again, odd", 63, 129, A | O),
	TRAIN_CASE("train_swiglu_bwd_f32", "h again, sliced", 65, 192, A | S),
	TRAIN_CASE("train_gather_f32", "odd", 63, 129, O),
	TRAIN_CASE("train_gather_f32", "sliced", 65, 576, S),
	TRAIN_CASE("train_scatter_add_f32", "odd", 63, 129, O),
	TRAIN_CASE("train_embed_bwd_f32", "odd", 129, 67, O),
	TRAIN_CASE("train_embed_bwd_f32", "sliced", 1300, 72, S),
	TRAIN_CASE("train_dropout_f32", "odd", 63, 129, O),
	TRAIN_CASE("train_dropout_f32", "added, sliced", 65, 576, A | S),
	TRAIN_CASE("train_column_sums_f32", "odd", 129, 259, O),
	TRAIN_CASE("train_column_sums_f32", "7B's qkv", 16384, 4608, T),
	TRAIN_CASE("train_cross_entropy_f32", "loss alone", 5, 1000, 0),
	TRAIN_CASE("train_cross_entropy_f32", "gradient, odd", 7, 1003, A | O),
	TRAIN_CASE("train_cross_entropy_f32", "gradient, no shared memory", 9, 1000, A | B | S),
	TRAIN_CASE("train_cross_entropy_f32", "targets that do not count", 7, 513, A | C),
	TRAIN_CASE("train_cross_entropy_f32", "more than shared memory", 2, 49159, A | O),
	TRAIN_CASE("train_cross_entropy_f32", "135M", 2048, 49152, A | T),
	ATTENTION_ENTRY("train_attention_f32"),
	ATTENTION_ENTRY("train_attention_delta_f32"),
	ATTENTION_ENTRY("train_attention_bwd_kv_f32"),
	ATTENTION_ENTRY("train_attention_bwd_q_f32"),
	ATTEND("train_attention_f32", "7B", 4096, 1, 7, 128, A | T),
};

static void test(struct kit *k)
{
	kit_cases(k, &group_train, train_one);
}

const struct kernel_group group_train = {
	.name = "train", .cases = cases, .count = COUNT(cases), .test = test, .time = train_time};
