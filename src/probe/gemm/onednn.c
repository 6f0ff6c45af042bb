/* SPDX-License-Identifier: Apache-2.0 */
/* Engine `onednn`: FP32, BF16 and INT8 GEMMs by oneDNN, versions 2 and 3, on the matrices as they are
 * stored. */
#include <stdalign.h>
#include "probe/gemm/host.h"
#include "vendor/cpu/onednn.h"

enum matrix { MATRIX_A, MATRIX_B, MATRIX_C, MATRIX_BIAS, MATRIX_COUNT };

/* A memory descriptor: in version 2 the struct itself, in version 3 a handle. */
struct desc {
	alignas(16) unsigned char room[DNNL_MEMORY_DESC_ROOM]; /* version 2 */
	void *handle;					       /* version 3 */
	const void *use; /* pointer to pass to oneDNN's functions; NULL: none */
};

struct gemm_onednn {
	struct gemm_host host;
	struct dnnl dnnl;
	int api;
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_desc_t primitive_desc;
	dnnl_primitive_t primitive;
	struct desc desc[MATRIX_COUNT];
	dnnl_memory_t memory[GEMM_HOST_SETS][MATRIX_COUNT];
};

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	static const uint32_t bf16 = 1u << CPU_ISA_avx512_bf16 | 1u << CPU_ISA_amx_bf16;
	static const uint32_t int8 =
		1u << CPU_ISA_avx512_vnni | 1u << CPU_ISA_avx_vnni | 1u << CPU_ISA_amx_int8;
	const struct gemm_opts *o = opts;
	enum status st;

	if (o->type != GEMM_FP32 && o->type != GEMM_BF16 && o->type != GEMM_INT8)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "gemm: engine onednn supports fp32, bf16 and int8, not %s",
				       gemm_type_name(o->type));
	if (o->type != GEMM_FP32 && !(machine_cpu(m)->isa & (o->type == GEMM_BF16 ? bf16 : int8)))
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "gemm: this CPU has no %s instructions", gemm_type_name(o->type));
	st = gemm_host_check_options(o, "oneDNN", err);
	if (!st)
		st = gemm_host_library(m, &onednn_lib, "oneDNN", err);
	return st ? st : gemm_host_fits(m, t, o, err);
}

static enum status failed(dnnl_status_t status, const char *call, struct error *err)
{
	if (status == dnnl_success)
		return STATUS_OK;
	if (status == dnnl_out_of_memory)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "gemm: oneDNN: %s: out of memory", call);
	if (status == dnnl_unimplemented)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "gemm: oneDNN: %s: unimplemented", call);
	return error_set_cause(err, STATUS_VENDOR, CAUSE_VENDOR_CALL, "gemm: oneDNN: %s: %s", call,
			       dnnl_status_text(status));
}

static enum status multiply(struct gemm_host *h, unsigned set, struct error *err)
{
	struct gemm_onednn *s = (struct gemm_onednn *)h;
	const dnnl_exec_arg_t args[] = {
		{DNNL_ARG_SRC, s->memory[set][MATRIX_A]},
		{DNNL_ARG_WEIGHTS, s->memory[set][MATRIX_B]},
		{DNNL_ARG_DST, s->memory[set][MATRIX_C]},
		{DNNL_ARG_BIAS, s->memory[set][MATRIX_BIAS]},
	};
	enum status st = failed(s->dnnl.primitive_execute(s->primitive, s->stream, h->bias ? 4 : 3, args),
				"dnnl_primitive_execute", err);

	return st ? st : failed(s->dnnl.stream_wait(s->stream), "dnnl_stream_wait", err);
}

/* Describes a batch of rows x columns matrices. `transposed`: they are stored as columns x rows. The bias is
 * one row for all matrices. */
static enum status describe(struct gemm_onednn *s, enum matrix which, int64_t rows, int64_t columns,
			    bool transposed, dnnl_data_type_t type, struct error *err)
{
	int64_t batch = s->host.common.opts.batch, lead = which == MATRIX_BIAS ? 1 : batch;
	int skip = batch > 1 ? 0 : 1; /* without a batch the descriptor has two dimensions */
	int64_t all[] = {lead, rows, columns};
	int64_t steps[] = {rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
	dnnl_dims_t dims = {0}, strides = {0};
	struct desc *d = &s->desc[which];

	for (int i = skip; i < 3; i++) {
		dims[i - skip] = all[i];
		strides[i - skip] = steps[i];
	}
	if (s->api == 2) {
		d->use = d->room;
		return failed(s->dnnl.memory_desc_init_by_strides(d->room, 3 - skip, dims, type, strides),
			      "dnnl_memory_desc_init_by_strides", err);
	}
	enum status st =
		failed(s->dnnl.memory_desc_create_with_strides(&d->handle, 3 - skip, dims, type, strides),
		       "dnnl_memory_desc_create_with_strides", err);

	d->use = d->handle;
	return st;
}

static enum status describe_all(struct gemm_onednn *s, struct error *err)
{
	const struct gemm_opts *o = &s->host.common.opts;
	const bool fp32 = o->type == GEMM_FP32, bf16 = o->type == GEMM_BF16;
	dnnl_data_type_t in = fp32 ? dnnl_f32 : bf16 ? dnnl_bf16 : dnnl_s8;
	dnnl_data_type_t out = fp32 ? dnnl_f32 : bf16 ? dnnl_bf16 : dnnl_s32;
	enum status st = describe(s, MATRIX_A, o->m, o->k, o->ta == GEMM_T, in, err);

	if (!st)
		st = describe(s, MATRIX_B, o->k, o->n, o->tb == GEMM_T, in, err);
	if (!st)
		st = describe(s, MATRIX_C, o->m, o->n, false, out, err);
	if (!st && o->bias)
		st = describe(s, MATRIX_BIAS, 1, o->n, false, out, err);
	return st;
}

static enum status plan(struct gemm_onednn *s, struct error *err)
{
	const struct desc *d = s->desc;
	alignas(16) unsigned char matmul[DNNL_MATMUL_DESC_ROOM];
	enum status st;

	if (s->api == 3) {
		st = failed(s->dnnl.matmul_primitive_desc_create(&s->primitive_desc, s->engine,
								 d[MATRIX_A].use, d[MATRIX_B].use,
								 d[MATRIX_BIAS].use, d[MATRIX_C].use, NULL),
			    "dnnl_matmul_primitive_desc_create", err);
	} else {
		st = failed(s->dnnl.matmul_desc_init(matmul, d[MATRIX_A].use, d[MATRIX_B].use,
						     d[MATRIX_BIAS].use, d[MATRIX_C].use),
			    "dnnl_matmul_desc_init", err);
		if (!st)
			st = failed(s->dnnl.primitive_desc_create(&s->primitive_desc, matmul, NULL, s->engine,
								  NULL),
				    "dnnl_primitive_desc_create", err);
	}
	return st ? st
		  : failed(s->dnnl.primitive_create(&s->primitive, s->primitive_desc),
			   "dnnl_primitive_create", err);
}

static enum status memories(struct gemm_onednn *s, struct error *err)
{
	enum status st = STATUS_OK;

	for (unsigned set = 0; set < s->host.common.sets; set++) {
		void *const data[] = {s->host.a[set], s->host.b[set], s->host.c[set], s->host.bias};

		for (unsigned i = 0; !st && i < MATRIX_COUNT; i++)
			if (data[i])
				st = failed(s->dnnl.memory_create(&s->memory[set][i], s->desc[i].use,
								  s->engine, data[i]),
					    "dnnl_memory_create", err);
	}
	return st;
}

static void report(const struct gemm_onednn *s, const struct bench *b, const struct lib_fact *fact)
{
	const char *name = NULL;
	char text[512];

	if (!b->out)
		return;
	snprintf(text, sizeof(text), "oneDNN %d.%d.%d, %s", fact->version / 10000, fact->version / 100 % 100,
		 fact->version % 100, fact->path ? fact->path : "path unknown");
	result_text(b->out, &gemm_fields[GEMM_FIELD_library], text);
	if (s->dnnl.primitive_desc_query(s->primitive_desc, dnnl_query_impl_info_str, 0, &name) ==
		    dnnl_success &&
	    name)
		result_text(b->out, &gemm_fields[GEMM_FIELD_instruction_set], name);
}

static enum status open_library(struct gemm_onednn *s, struct lib_fact *fact, struct error *err)
{
	enum status st = lib_open(&s->dnnl, &onednn_lib, NULL, fact, err);

	if (st)
		return st;
	s->api = dnnl_api(&s->dnnl);
	if (!s->api)
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
				       "gemm: %s has no matmul functions of oneDNN 2 or 3",
				       fact->path ? fact->path : "oneDNN");
	if (s->dnnl.omp_set_num_threads)
		s->dnnl.omp_set_num_threads((int)s->host.threads);
	return STATUS_OK;
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct gemm_onednn *s = state;
	struct lib_fact fact = {0};
	enum status st = gemm_host_begin(&s->host, b, opts, multiply, err);

	if (!st)
		st = open_library(s, &fact, err);
	if (!st)
		st = failed(s->dnnl.engine_create(&s->engine, dnnl_cpu, 0), "dnnl_engine_create", err);
	if (!st)
		st = failed(s->dnnl.stream_create(&s->stream, s->engine, dnnl_stream_in_order),
			    "dnnl_stream_create", err);
	if (!st)
		st = describe_all(s, err);
	if (!st)
		st = plan(s, err);
	if (!st)
		st = memories(s, err);
	if (!st)
		report(s, b, &fact);
	lib_fact_release(&fact);
	return st;
}

static void release(void *state)
{
	struct gemm_onednn *s = state;

	for (unsigned set = 0; set < GEMM_HOST_SETS; set++)
		for (unsigned i = 0; i < MATRIX_COUNT; i++)
			if (s->memory[set][i])
				s->dnnl.memory_destroy(s->memory[set][i]);
	if (s->primitive)
		s->dnnl.primitive_destroy(s->primitive);
	if (s->primitive_desc)
		s->dnnl.primitive_desc_destroy(s->primitive_desc);
	for (unsigned i = 0; i < MATRIX_COUNT; i++)
		if (s->desc[i].handle)
			s->dnnl.memory_desc_destroy(s->desc[i].handle);
	if (s->stream)
		s->dnnl.stream_destroy(s->stream);
	if (s->engine)
		s->dnnl.engine_destroy(s->engine);
	gemm_host_end(&s->host);
	memset(s, 0, sizeof(*s));
}

const struct engine gemm_onednn_engine = {
	.name = "onednn",
	.libs = "onednn",
	.targets = TARGET_CPU,
	.state_size = sizeof(struct gemm_onednn),
	.supports = supports,
	.prepare = prepare,
	.enqueue = gemm_host_enqueue,
	.release = release,
};
