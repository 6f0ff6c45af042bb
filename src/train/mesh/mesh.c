/* SPDX-License-Identifier: Apache-2.0 */
#include "train/mesh/mesh.h"
#include <inttypes.h>

enum dtype mesh_travels(const struct config *c)
{
	return c->training.communication_data_type == CONFIG_COMMUNICATION_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

/* Whether the ranks can add their gradients as the settings say. */
static enum status check_sum(const struct config *c, unsigned size, struct error *err)
{
	const struct config_training *t = &c->training;
	const bool bf16 = mesh_travels(c) == DTYPE_BF16;

	if (size > 1 && t->master_weights && !bf16)
		return error_set(
			err, STATUS_BAD_INPUT,
			"training: master_weights: %s has gradients in BF16, but %u ranks add their gradients in "
			"float32; use communication_data_type: bf16, master_weights: fp32 or one rank",
			config_master_name(t->master_weights), size);
	/* the device of `auto` is not known yet, and GPU ranks have no tree */
	if (bf16 && t->deterministic && t->device == CONFIG_DEVICE_CPU)
		return error_set(
			err, STATUS_BAD_INPUT,
			"training: communication_data_type: bf16 rounds the gradients of several ranks, "
			"but deterministic gives the same bits on any number of CPU ranks; use fp32, or "
			"remove deterministic");
	return STATUS_OK;
}

static unsigned ranks_of(const struct config *c)
{
	return c->place.ranks ? c->place.ranks : 1;
}

static unsigned tensor_of(const struct config *c)
{
	return c->training.tensor_parallel_size ? c->training.tensor_parallel_size : 1;
}

unsigned mesh_copies(const struct config *c)
{
	return ranks_of(c) > tensor_of(c) ? ranks_of(c) / tensor_of(c) : 1;
}

/* What tensor parallel does not work with; NULL: nothing that is set. */
static const char *tensor_refuses(const struct config *c)
{
	const struct config_training *t = &c->training;

	return t->precision == CONFIG_PRECISION_FP8 ? "precision: fp8; use bf16"
	       : c->model.load_in_4bit		    ? "load_in_4bit; use BF16 weights"
	       : t->master_weights		    ? "master_weights: split or none; use fp32"
	       : t->optim == CONFIG_ADAMW_8BIT || t->optim == CONFIG_ADAMW_BNB_8BIT ||
			       t->optim == CONFIG_PAGED_ADAMW_8BIT
		       ? "moments in 8 bits, whose blocks cross the borders of the ranks' parts; use adamw or "
			 "adamw_bf16"
		       : NULL;
}

static enum status check_tensor(const struct config *c, struct error *err)
{
	const unsigned ranks = ranks_of(c), tensor = tensor_of(c);
	const char *why = tensor > 1 ? tensor_refuses(c) : NULL;

	if (why)
		return error_set(err, STATUS_BAD_INPUT,
				 "training: tensor_parallel_size: %u is not supported with %s", tensor, why);
	return ranks % tensor == 0
		       ? STATUS_OK
		       : error_set(err, STATUS_BAD_INPUT,
				   "training: tensor_parallel_size: %u ranks share a model, so the number of "
				   "ranks must be a multiple of %u, and it is %u",
				   tensor, tensor, ranks);
}

bool mesh_is_hybrid(const struct mesh *m)
{
	return m->shard > 1 && m->shard < m->size;
}

struct mesh_group mesh_tensor_group(const struct mesh *m)
{
	return (struct mesh_group){m->rank * m->tensor, 1, m->tensor};
}

struct mesh_group mesh_data_group(const struct mesh *m)
{
	return (struct mesh_group){m->tensor_rank, m->tensor, m->size};
}

struct mesh_group mesh_shard_group(const struct mesh *m)
{
	return (struct mesh_group){m->copy * m->shard * m->tensor + m->tensor_rank, m->tensor, m->shard};
}

struct mesh_group mesh_place_group(const struct mesh *m)
{
	return (struct mesh_group){m->shard_rank * m->tensor + m->tensor_rank, m->shard * m->tensor,
				   m->size / m->shard};
}

static enum status check_shards(const struct config *c, unsigned size, struct error *err)
{
	const struct config_training *t = &c->training;

	if (!t->dp_shard_size || size < 2)
		return STATUS_OK;
	if (!t->zero_stage)
		return error_set(
			err, STATUS_BAD_INPUT,
			"training: dp_shard_size: %u needs a zero_stage, which says what the groups divide",
			t->dp_shard_size);
	return size % t->dp_shard_size == 0 && t->dp_shard_size > 1
		       ? STATUS_OK
		       : error_set(
				 err, STATUS_BAD_INPUT,
				 "training: dp_shard_size: %u ranks form a group, so it must be at least 2 and "
				 "divide the number of %s, which is %u",
				 t->dp_shard_size,
				 tensor_of(c) > 1 ? "copies of the model (ranks / tensor_parallel_size)"
						  : "ranks",
				 size);
}

/* The place in a shard group. */
static void place_shard(struct mesh *m, const struct config *c)
{
	const struct config_training *t = &c->training;

	m->shard = !t->zero_stage || m->size < 2 ? 1 : t->dp_shard_size ? t->dp_shard_size : m->size;
	m->shard_rank = m->rank % m->shard;
	m->copy = m->rank / m->shard;
}

enum status mesh_of(struct mesh *m, const struct config *c, struct error *err)
{
	const struct config_training *t = &c->training;
	const unsigned size = mesh_copies(c);
	const uint64_t round = (uint64_t)t->per_device_train_batch_size * size;
	const char *from = c->place.step_packs ? "as in the run so far" : "training: global_batch_size";

	*m = (struct mesh){.rank = c->place.rank / tensor_of(c),
			   .size = size,
			   .tensor = tensor_of(c),
			   .tensor_rank = c->place.rank % tensor_of(c),
			   .ranks = ranks_of(c),
			   .each_pack = t->deterministic && t->device != CONFIG_DEVICE_GPU};
	if (check_tensor(c, err) || check_sum(c, size, err) || check_shards(c, size, err))
		return err->status;
	place_shard(m, c);
	m->packs = c->place.step_packs ? c->place.step_packs : t->global_batch_size;
	if (!m->packs)
		m->packs = round * t->gradient_accumulation_steps;
	if (m->packs % round)
		return error_set(
			err, STATUS_BAD_INPUT,
			"a step has %" PRIu64 " packs (%s), which %u %s%s with %u packs per micro-batch "
			"(training: per_device_train_batch_size) cannot share equally: use a number of ranks "
			"and a micro-batch whose product divides %" PRIu64,
			m->packs, from, size, tensor_of(c) > 1 ? "group" : "rank", size == 1 ? "" : "s",
			t->per_device_train_batch_size, m->packs);
	m->packs_per_micro = m->each_pack ? 1 : t->per_device_train_batch_size;
	m->micros = m->packs / size / m->packs_per_micro;
	return STATUS_OK;
}

enum status mesh_check_rows(const struct mesh *m, uint64_t packs, uint64_t rows, struct error *err)
{
	if (packs >= m->size)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "%" PRIu64 " rows make %" PRIu64 " packs, which is too few for %u ranks; use fewer "
			 "ranks, more rows, a shorter data: max_seq_length, or data: packing: false",
			 rows, packs, m->size);
}
