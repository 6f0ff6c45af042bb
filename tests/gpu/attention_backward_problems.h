/* SPDX-License-Identifier: Apache-2.0 */
/* Attention problems whose gradients are held against the definition. */
#ifndef TESTS_GPU_ATTENTION_BACKWARD_PROBLEMS_H
#define TESTS_GPU_ATTENTION_BACKWARD_PROBLEMS_H
#include "gpu/attention/problem.h"

#define NO ATTENTION_UNBOUNDED

static const uint32_t starts_q[] = {0, 70, 70, 91, 92}, starts_kv[] = {0, 33, 50, 50, 130};
/* 1, 63 .. 65, 127 .. 129, 192, none */
static const uint32_t starts_edges[] = {0, 1, 64, 128, 193, 320, 448, 577, 769, 769};
static const uint32_t starts_few[] = {0, 1, 64, 129};

/* clang-format off */
#define SHAPE(b, h, kh, q, kv, d) .batch = b, .heads = h, .kv_heads = kh, .q_len = q, .kv_len = kv, .head_dim = d
static const struct attention_problem problems[] = {
	{SHAPE(1, 1, 1, 64, 64, 64)},
	{SHAPE(1, 1, 1, 1, 1, 64)},
	{SHAPE(1, 1, 1, 130, 70, 64)},
	{SHAPE(1, 1, 1, 90, 40, 64), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 1, 1, 40, 140, 64), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 4, 2, 40, 40, 64), .mask = ATTENTION_WINDOW, .window_left = 20, .window_right = 5},
	{SHAPE(1, 2, 1, 65, 40, 64), .mask = ATTENTION_WINDOW, .window_left = 3, .window_right = NO},
	{SHAPE(4, 2, 1, 70, 80, 64), .q_starts = starts_q, .kv_starts = starts_kv},
	{SHAPE(4, 2, 1, 70, 80, 128), .q_starts = starts_q, .kv_starts = starts_kv, .mask = ATTENTION_CAUSAL},
	{SHAPE(2, 2, 2, 40, 72, 64), .q = {40 * 160, 80, 160}, .k = {72 * 136, 72, 136}, .o = {40 * 72, 80 * 72, 72}},
	{SHAPE(1, 1, 1, 30, 70, 64), .scale = -0.25},
	{SHAPE(1, 1, 1, 64, 64, 128)},
	{SHAPE(1, 2, 1, 130, 257, 128), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 1, 1, 30, 200, 128), .mask = ATTENTION_WINDOW, .window_left = 40, .window_right = 0},
	{SHAPE(3, 7, 1, 65, 65, 128), .q_starts = starts_few, .kv_starts = starts_few, .mask = ATTENTION_CAUSAL},
	{SHAPE(9, 4, 4, 192, 192, 64), .q_starts = starts_edges, .kv_starts = starts_edges, .mask = ATTENTION_CAUSAL},
	{SHAPE(9, 4, 1, 192, 192, 64), .q_starts = starts_edges, .kv_starts = starts_edges, .mask = ATTENTION_CAUSAL},
	{SHAPE(9, 7, 1, 192, 192, 128), .q_starts = starts_edges, .kv_starts = starts_edges, .mask = ATTENTION_CAUSAL},
	{SHAPE(9, 4, 4, 192, 192, 128), .q_starts = starts_edges, .kv_starts = starts_edges},
	{SHAPE(1, 28, 4, 300, 300, 128), .mask = ATTENTION_CAUSAL},
	{SHAPE(2, 9, 3, 320, 320, 64), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 2, 2, 700, 700, 128), .mask = ATTENTION_WINDOW, .window_left = 200, .window_right = 30},
	{SHAPE(1, 2, 1, 2112, 2112, 128), .mask = ATTENTION_CAUSAL},
	{SHAPE(1, 1, 1, 2112, 2112, 64)},
	{SHAPE(1, 136, 68, 192, 192, 64), .mask = ATTENTION_CAUSAL},
};
/* clang-format on */

#undef NO
#endif
