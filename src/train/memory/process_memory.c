/* SPDX-License-Identifier: Apache-2.0 */
#include "train/memory/process_memory.h"
#include <stdlib.h>
#include <sys/stat.h>
#include "core/file/file.h"
#include "train/checkpoint/host_params.h"
#include "train/mesh/comm_open.h"
#include "train/mesh/mesh.h"

/* Measured values; see docs/explanation/methods/training.md, "Memory of a training run". */
enum {
	PROGRAM_BYTES = 8600000,   /* resident code and libraries, stacks, heap */
	PANEL_BYTES = 1180000,	   /* packed panels of OpenBLAS, per thread */
	VOCABULARY_ID_BYTES = 176, /* per token id, including its merge */
	ROW_BYTES = 48,		   /* per row: its offset, its pack, and the order of packs in two epochs */
	STATUS_MAX = 1 << 16,
	CONTEXT_BYTES = 560 << 20, /* GPU: context, and code of assay's and the libraries' kernels */
	LIBRARY_BYTES = 32 << 20,  /* cuBLASLt's workspace */
	DRIVER_BYTES = 450 << 20,  /* host memory of a GPU run: driver, kernels and cuBLASLt */
	MPI_BYTES = 13000000,	   /* CPU ranks: MPI, and the pieces of sums over the ranks */
	CUDNN_BYTES = 130 << 20,   /* host memory of a GPU run: cuDNN in addition */
};

const char *memory_outside_name(enum memory_outside what)
{
	static const char *const names[] = {
#define X(name, word, text) [MEMORY_##name] = word,
		MEMORY_OUTSIDE_ARENA(X)
#undef X
	};

	return names[what];
}

const char *memory_outside_text(enum memory_outside what)
{
	static const char *const texts[] = {
#define X(name, word, text) [MEMORY_##name] = text,
		MEMORY_OUTSIDE_ARENA(X)
#undef X
	};

	return texts[what];
}

/* A token id takes four bytes and represents about four bytes of the file, so the file's size is the plan.
 * `most` rows are used (0: all). */
static uint64_t rows_bytes(const struct opt_words *files, uint64_t most, uint64_t length)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < files->count; i++) {
		struct stat about;

		if (!stat(files->word[i], &about) && about.st_size > 0)
			bytes += (uint64_t)about.st_size;
	}
	if (most && most < bytes / (length * sizeof(int32_t) + ROW_BYTES))
		bytes = most * (length * sizeof(int32_t) + ROW_BYTES);
	return bytes;
}

/* Two sets of micro-batches, because one is filled while the other is in use. Each has four lists: token,
 * position, target, trained. */
static uint64_t batches_bytes(const struct config *c)
{
	uint64_t packs = c->training.per_device_train_batch_size +
			 (c->data.eval.count ? c->training.per_device_eval_batch_size : 0);

	return 2 * 4 * sizeof(int32_t) * packs * c->data.max_seq_length;
}

static bool by_cudnn(const struct config *c)
{
	const struct config_training *t = &c->training;

	return t->bf16 && t->attention != CONFIG_ATTENTION_OWN && t->attention != CONFIG_ATTENTION_PLAIN &&
	       !t->deterministic;
}

/* GPU memory outside the arena: the context, and cuDNN's single-precision dQ and sums for one micro-batch. */
static uint64_t libraries_bytes(const struct stepper *planned, const struct config *c)
{
	const struct shape *s = &planned->model->shape;
	const uint64_t tokens = (uint64_t)stepper_size(c).tokens;
	const uint64_t cudnn =
		by_cudnn(c) ? tokens * (uint64_t)(s->heads * (s->head_dim + 2)) * sizeof(float) : 0;

	return CONTEXT_BYTES + LIBRARY_BYTES + cudnn;
}

/* Ranks that hold equal ranges write a part each. */
void host_part_of(struct host_part *part, const struct config *c, const struct params *p)
{
	const size_t first = params_begin(p), count = params_end(p) - first;
	const unsigned tensor = c->training.tensor_parallel_size > 1 ? c->training.tensor_parallel_size : 1;
	const unsigned divide = p->border ? p->shards.ranks : 1;

	*part = (struct host_part){.first = !c->place.rank, .adapter = c->has_lora, .tensors = tensor > 1};
	shard_range(&part->begin, &part->end, count, c->place.rank / tensor / divide,
		    mesh_copies(c) / divide);
	part->begin += first;
	part->end += first;
}

/* Bytes of the host copies for checkpoints. Several ranks copy a shard each, if they share the run directory.
 */
static uint64_t copies_bytes(const struct stepper *planned, const struct config *c)
{
	const struct params *p = &planned->model->params;
	struct host_part part;

	if (planned->model->whole && !planned->model->full) { /* rank 0 writes adapters alone */
		const struct params whole = model_whole_params(planned->model);

		return c->place.rank ? 0 : host_params_whole_bytes(&whole);
	}
	host_part_of(&part, c, p);
	return host_params_bytes(p, planned->back.kind == BACKEND_GPU, c->place.ranks > 1 ? &part : NULL);
}

/* One has all ranks. Tensor parallel adds one for the ranks of each axis, and shard groups add two. */
static uint64_t communicators(const struct config *c)
{
	const unsigned shard = c->training.zero_stage ? c->training.dp_shard_size : 0,
		       copies = mesh_copies(c);
	const unsigned tensor = c->training.tensor_parallel_size <= 1 ? 0 : copies > 1 ? 2 : 1;

	return 1 + tensor + (shard && shard < copies ? 2 : 0);
}

void memory_plan_of(struct memory_plan *m, const struct stepper *planned, const struct config *c)
{
	const struct config_data *d = &c->data;

	*m = (struct memory_plan){.arena_bytes = planned->arena.peak,
				  .bytes = planned->arena.peak,
				  .shared = planned->lending.shared};
	for (int i = 0; i < MEM_KINDS; i++)
		m->arena[i] = planned->arena.kind_at_peak[i];
	lending_kinds(&planned->lending, m->arena);
	m->outside[MEMORY_ROWS] = rows_bytes(&d->train, d->max_train_samples, d->max_seq_length) +
				  rows_bytes(&d->eval, d->max_eval_samples, d->max_seq_length);
	m->outside[MEMORY_BATCHES] = batches_bytes(c);
	m->outside[MEMORY_TOKENIZER] =
		VOCABULARY_ID_BYTES * (uint64_t)model_whole(planned->model)->shape.vocab;
	m->outside[MEMORY_PROGRAM] = PROGRAM_BYTES + PANEL_BYTES * (uint64_t)planned->back.threads;
	m->outside[MEMORY_OFFLOADED] = planned->host.peak;
	m->gpu = planned->back.kind == BACKEND_GPU;
	m->outside[MEMORY_HOST_PARAMS] = copies_bytes(planned, c);
	if (!m->gpu && c->place.ranks > 1)
		m->outside[MEMORY_PROGRAM] += MPI_BYTES;
	if (m->gpu) {
		/* the lists have room for the larger of the training and the evaluation micro-batch */
		m->outside[MEMORY_PINNED] = gpu_backend_pinned_bytes(planned->back.lists[0].cols - 1);
		m->outside[MEMORY_DRIVER] = DRIVER_BYTES + (by_cudnn(c) ? CUDNN_BYTES : 0);
	}
	for (int i = 0; i < MEMORY_LIBRARIES; i++)
		m->host_bytes += m->outside[i];
	if (m->gpu) {
		m->outside[MEMORY_LIBRARIES] = libraries_bytes(planned, c);
		m->outside[MEMORY_NCCL] =
			c->place.ranks > 1 ? comm_nccl_bytes(communicators(c), mesh_travels(c)) : 0;
		m->bytes += m->outside[MEMORY_LIBRARIES] + m->outside[MEMORY_NCCL];
	} else {
		m->host_bytes += m->arena_bytes;
		m->bytes = m->host_bytes;
	}
}

enum status memory_plan(struct memory_plan *m, const struct shape *shape, const struct config *c,
			unsigned threads, struct error *err)
{
	struct stepper plan;
	enum status st = stepper_plan(&plan, shape, c, threads, err);

	if (!st)
		memory_plan_of(m, &plan, c);
	stepper_release(&plan);
	return st;
}

uint64_t memory_of_gpu(const struct backend *back)
{
	uint64_t available, total;

	return gpu_memory(gpu_backend_device(back), &available, &total, NULL) ? 0 : total - available;
}

uint64_t memory_peak(void)
{
	char *text = NULL;
	const char *line;
	size_t size;
	uint64_t kib = 0;

	if (file_read(&text, &size, "/proc/self/status", STATUS_MAX, NULL))
		return 0;
	line = strstr(text, "\nVmHWM:");
	if (line)
		kib = strtoull(line + strlen("\nVmHWM:"), NULL, 10);
	free(text);
	return kib * 1024;
}
