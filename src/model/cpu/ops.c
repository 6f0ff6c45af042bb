/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cpu/fp8.h"
#include "model/cpu/invariant/quantised_gemm.h"
#include "model/cpu/real.h"

static enum status cpu_gemm_swiglu(struct backend *back, const struct gemm *g, struct mat h,
				   struct error *err)
{
	enum status st = cpu_gemm(back, g, err);

	return st ? st : cpu_swiglu(back, g->d, h, err);
}

const struct ops cpu_ops = {
	.name = "cpu",
	.put = cpu_put,
	.get = cpu_get,
	.batch = cpu_batch,
	.random = cpu_random,
	.zero = cpu_zero,
#ifndef MODEL_REAL_F64
	.pack = cpu_pack,
	.quantize_e4m3 = cpu_quantize_e4m3,
#endif
	.gemm = cpu_gemm,
	.embed = cpu_embed,
	.embed_bwd = cpu_embed_bwd,
	.embed_part = cpu_embed_part,
	.embed_part_bwd = cpu_embed_part_bwd,
	.loss_part = cpu_loss_part,
	.loss_join = cpu_loss_join,
	.rmsnorm = cpu_rmsnorm,
	.rmsnorm_bwd = cpu_rmsnorm_bwd,
	.head_norm_rope = cpu_head_norm_rope,
	.head_norm_rope_bwd = cpu_head_norm_rope_bwd,
	.attention = cpu_attention,
	.attention_bwd = cpu_attention_bwd,
	.paged_put = cpu_paged_put,
	.paged_embed = cpu_paged_embed,
	.paged_rope = cpu_paged_rope,
	.paged_attention = cpu_paged_attention,
	.adapter_mask = cpu_adapter_mask,
	.adapter_scale = cpu_adapter_scale,
	.sample = cpu_sample,
	.sample_count = cpu_sample_count,
	.fetch_begin = cpu_fetch_begin,
	.fetch_wait = cpu_fetch_wait,
	.replay = cpu_replay,
	.gemm_swiglu = cpu_gemm_swiglu,
	.swiglu = cpu_swiglu,
	.swiglu_bwd = cpu_swiglu_bwd,
	.cross_entropy = cpu_cross_entropy,
	.rows_copy = cpu_rows_copy,
	.dropout = cpu_dropout,
	.convert = cpu_convert,
	.quantize = cpu_quantize,
	.slot_fill = cpu_slot_fill,
	.slot_ready = cpu_slot_event,
	.slot_free = cpu_slot_event,
	.lane_copy = cpu_lane_copy,
	.lane_event = cpu_lane_event,
	.lane_run = cpu_lane_run,
	.lane_join = cpu_lane_join,
	.lane_wait = cpu_lane_join,
	.column_sum = cpu_column_sum,
	.reduce = cpu_reduce,
	.adamw = cpu_adamw,
};
