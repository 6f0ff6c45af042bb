/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/matmul/matmul.h"
#include "gpu/matmul/internal.h"
#include <inttypes.h>

/*
 * The workspace that PyTorch gives cuBLAS on the same device, so the first heuristic is the kernel that
 * PyTorch uses: 32 MiB from sm_90 on, 2 x 4 MiB + 8 x 16 KiB before.
 */
#define WORKSPACE_SM90 (32ull << 20)
#define WORKSPACE_BEFORE ((8ull << 20) + (128ull << 10))
#define ALIGN_DEFAULT 256

/* Placeholder for a pointer while a plan is made. The library reads its alignment and never dereferences
 * it. */
#define ALIGNED_STAND_IN 256

static const struct {
	const char *name;
	unsigned bytes;
	bool integer;
} types[MATMUL_TYPE_COUNT] = {
#define X(name, text, bytes, integer) [MATMUL_##name] = {text, bytes, integer},
	MATMUL_TYPES(X)
#undef X
};

static cudaDataType_t type_code(enum matmul_type type)
{
	switch (type) {
	case MATMUL_F64:
		return CUDA_R_64F;
	case MATMUL_F32:
		return CUDA_R_32F;
	case MATMUL_F16:
		return CUDA_R_16F;
	case MATMUL_BF16:
		return CUDA_R_16BF;
	case MATMUL_E4M3:
		return CUDA_R_8F_E4M3;
	case MATMUL_E5M2:
		return CUDA_R_8F_E5M2;
	case MATMUL_S8:
		return CUDA_R_8I;
	case MATMUL_S32:
		return CUDA_R_32I;
	case MATMUL_TYPE_COUNT:
		break;
	}
	return CUDA_R_32F;
}

unsigned matmul_type_bytes(enum matmul_type type)
{
	return types[type].bytes;
}

const char *matmul_type_name(enum matmul_type type)
{
	return types[type].name;
}

static uint64_t or_packed(uint64_t given, uint64_t packed)
{
	return given ? given : packed;
}

static uint32_t batch_of(const struct matmul_shape *s)
{
	return s->batch ? s->batch : 1;
}

static uint64_t row_a(const struct matmul_shape *s)
{
	return or_packed(s->row_a, s->transpose_a ? s->m : s->k);
}

static uint64_t row_b(const struct matmul_shape *s)
{
	return or_packed(s->row_b, s->transpose_b ? s->k : s->n);
}

static uint64_t row_d(const struct matmul_shape *s)
{
	return or_packed(s->row_d, s->n);
}

static uint64_t rows_a(const struct matmul_shape *s)
{
	return s->transpose_a ? s->k : s->m;
}

static uint64_t rows_b(const struct matmul_shape *s)
{
	return s->transpose_b ? s->n : s->k;
}

uint64_t matmul_a_count(const struct matmul_shape *s)
{
	uint64_t one = rows_a(s) * row_a(s);

	return (batch_of(s) - 1) * or_packed(s->stride_a, one) + one;
}

uint64_t matmul_b_count(const struct matmul_shape *s)
{
	uint64_t one = rows_b(s) * row_b(s);

	return (batch_of(s) - 1) * or_packed(s->stride_b, one) + one;
}

uint64_t matmul_d_count(const struct matmul_shape *s)
{
	uint64_t one = s->m * row_d(s);

	return (batch_of(s) - 1) * or_packed(s->stride_d, one) + one;
}

enum status matmul_check(const struct matmul *mm, cublasStatus_t code, const char *call, struct error *err)
{
	const char *name = mm->lt.status_name ? mm->lt.status_name(code) : "";
	enum status st = STATUS_VENDOR;
	enum cause cause = CAUSE_VENDOR_CALL;

	if (code == CUBLAS_STATUS_SUCCESS)
		return STATUS_OK;
	if (code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_ARCH_MISMATCH) {
		st = STATUS_UNSUPPORTED;
		cause = CAUSE_UNSUPPORTED;
	} else if (code == CUBLAS_STATUS_ALLOC_FAILED) {
		st = STATUS_NO_RESOURCE;
		cause = CAUSE_NO_MEMORY;
	}
	return error_set_cause(err, st, cause, "cublasLt %s returned %s (%u)", call, name ? name : "",
			       (unsigned)code);
}

enum status matmul_open(struct matmul **mm, struct gpu_device *d, const char *lib_path,
			uint64_t workspace_bytes, struct error *err)
{
	struct matmul *m = calloc(1, sizeof(*m));
	enum status st;

	*mm = NULL;
	if (!m)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a cuBLASLt handle");
	m->device = d;
	m->workspace_bytes = workspace_bytes   ? workspace_bytes
			     : gpu_cc(d) >= 90 ? WORKSPACE_SM90
					       : WORKSPACE_BEFORE;
	st = lib_open(&m->lt, &cublaslt_lib, lib_path, &m->fact, err);
	if (st)
		goto out;
	st = LT_CALL(m, err, create, &m->handle);
	if (st)
		goto out;
	st = gpu_alloc(d, &m->workspace, m->workspace_bytes, err);
out:
	if (st)
		matmul_close(&m);
	*mm = m;
	return st;
}

void matmul_close(struct matmul **mm)
{
	struct matmul *m = *mm;

	if (!m)
		return;
	gpu_free(m->device, &m->workspace);
	if (m->handle)
		m->lt.destroy(m->handle);
	lib_fact_release(&m->fact);
	free(m);
	*mm = NULL;
}

int matmul_version(const struct matmul *mm)
{
	return mm->fact.version;
}

const char *matmul_path(const struct matmul *mm)
{
	return mm->fact.path ? mm->fact.path : "";
}

uint64_t matmul_workspace_bytes(const struct matmul *mm)
{
	return mm->workspace_bytes;
}

/* Checks row lengths before the library gets them. A wrong length would make it read foreign memory. */
static enum status check_shape(const struct matmul_shape *s, struct error *err)
{
	uint64_t least_a = s->transpose_a ? s->m : s->k, least_b = s->transpose_b ? s->k : s->n;

	if (!s->m || !s->n || !s->k || s->m > INT32_MAX || s->n > INT32_MAX || s->k > INT32_MAX)
		return error_set(err, STATUS_BAD_INPUT,
				 "GEMM of %" PRIu64 " x %" PRIu64 " x %" PRIu64
				 ": each size must be between 1 and %d",
				 s->m, s->n, s->k, INT32_MAX);
	if (row_a(s) < least_a || row_b(s) < least_b || row_d(s) < s->n)
		return error_set(err, STATUS_BAD_INPUT,
				 "GEMM of %" PRIu64 " x %" PRIu64 " x %" PRIu64
				 ": a stored row is shorter than its elements",
				 s->m, s->n, s->k);
	if (batch_of(s) > 1 && s->stride_d && s->stride_d < s->m * row_d(s))
		return error_set(err, STATUS_BAD_INPUT, "batched GEMM: the results of two batches overlap");
	return STATUS_OK;
}

static struct matmul_codes codes_of(const struct matmul_shape *s)
{
	struct matmul_codes c = {.a = type_code(s->b), .b = type_code(s->a), .d = type_code(s->d)};

	/* C is never FP8: the library requires the bias's type for it. */
	c.c = s->d == MATMUL_E4M3 || s->d == MATMUL_E5M2 ? CUDA_R_16BF : c.d;
	switch (s->compute) {
	case MATMUL_COMPUTE_F64:
		c.compute = CUBLAS_COMPUTE_64F;
		c.scale = CUDA_R_64F;
		break;
	case MATMUL_COMPUTE_F32:
		c.compute = CUBLAS_COMPUTE_32F;
		c.scale = CUDA_R_32F;
		break;
	case MATMUL_COMPUTE_TF32:
		c.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
		c.scale = CUDA_R_32F;
		break;
	case MATMUL_COMPUTE_S32:
		c.compute = CUBLAS_COMPUTE_32I;
		c.scale = s->d == MATMUL_S32 ? CUDA_R_32I : CUDA_R_32F;
		break;
	}
	return c;
}

static enum status make_layout(struct matmul *mm, cublasLtMatrixLayout_t *out, cudaDataType_t type,
			       uint64_t rows, uint64_t row_length, uint64_t row_step,
			       const struct matmul_shape *s, uint64_t stride, struct error *err)
{
	int32_t batch = (int32_t)batch_of(s);
	int64_t offset = (int64_t)or_packed(stride, rows * row_step);
	enum status st;

	/* Row-major rows x row_length is column-major row_length x rows. */
	st = LT_CALL(mm, err, layout_create, out, type, row_length, rows, (int64_t)row_step);
	if (st || batch == 1)
		return st;
	st = LT_CALL(mm, err, layout_set, *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch));
	if (st)
		return st;
	return LT_CALL(mm, err, layout_set, *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset,
		       sizeof(offset));
}

static enum status make_layouts(struct matmul_plan *p, struct error *err)
{
	const struct matmul_shape *s = &p->shape;
	struct matmul *mm = p->mm;
	enum status st;

	st = make_layout(mm, &p->a, p->codes.a, rows_b(s), s->transpose_b ? s->k : s->n, row_b(s), s,
			 s->stride_b, err);
	if (st)
		return st;
	st = make_layout(mm, &p->b, p->codes.b, rows_a(s), s->transpose_a ? s->m : s->k, row_a(s), s,
			 s->stride_a, err);
	if (st)
		return st;
	st = make_layout(mm, &p->c, p->codes.c, s->m, s->n, row_d(s), s, s->stride_d, err);
	if (st)
		return st;
	return make_layout(mm, &p->d, p->codes.d, s->m, s->n, row_d(s), s, s->stride_d, err);
}

static enum status set_u32(struct matmul_plan *p, cublasLtMatmulDescAttributes_t attribute, uint32_t value,
			   struct error *err)
{
	return LT_CALL(p->mm, err, desc_set, p->desc, attribute, &value, sizeof(value));
}

static enum status set_pointer(struct matmul_plan *p, cublasLtMatmulDescAttributes_t attribute, gpu_ptr value,
			       struct error *err)
{
	return LT_CALL(p->mm, err, desc_set, p->desc, attribute, &value, sizeof(value));
}

static uint32_t epilogue_code(enum matmul_epilogue e)
{
	static const uint32_t code[MATMUL_EPILOGUE_COUNT] = {
		[MATMUL_PLAIN] = CUBLASLT_EPILOGUE_DEFAULT, [MATMUL_BIAS] = CUBLASLT_EPILOGUE_BIAS,
		[MATMUL_RELU] = CUBLASLT_EPILOGUE_RELU,	    [MATMUL_RELU_BIAS] = CUBLASLT_EPILOGUE_RELU_BIAS,
		[MATMUL_GELU] = CUBLASLT_EPILOGUE_GELU,	    [MATMUL_GELU_BIAS] = CUBLASLT_EPILOGUE_GELU_BIAS,
	};

	return code[e];
}

static bool has_bias(const struct matmul_shape *s)
{
	return s->epilogue == MATMUL_BIAS || s->epilogue == MATMUL_RELU_BIAS ||
	       s->epilogue == MATMUL_GELU_BIAS;
}

static uint32_t scale_code(enum matmul_scale scale)
{
	static const uint32_t code[MATMUL_SCALE_COUNT] = {
		[MATMUL_SCALE_NONE] = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
		[MATMUL_SCALE_TENSOR] = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
		[MATMUL_SCALE_ROW] = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
		[MATMUL_SCALE_BLOCK32] = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0,
		[MATMUL_SCALE_VEC128] = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
		[MATMUL_SCALE_BLOCK128] = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
	};

	return code[scale];
}

/* Sets scale attributes. An older library does not know some of them, so they are set only if needed. */
static enum status set_scales(struct matmul_plan *p, struct error *err)
{
	const struct matmul_shape *s = &p->shape;
	enum status st = STATUS_OK;

	if (!st && s->scale_b > MATMUL_SCALE_TENSOR)
		st = set_u32(p, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, scale_code(s->scale_b), err);
	if (!st && s->scale_a > MATMUL_SCALE_TENSOR)
		st = set_u32(p, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, scale_code(s->scale_a), err);
	if (!st && s->scale_b)
		st = set_pointer(p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, ALIGNED_STAND_IN, err);
	if (!st && s->scale_a)
		st = set_pointer(p, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, ALIGNED_STAND_IN, err);
	return st;
}

static enum status make_desc(struct matmul_plan *p, struct error *err)
{
	const struct matmul_shape *s = &p->shape;
	int8_t fast = 1;
	enum status st;

	st = LT_CALL(p->mm, err, desc_create, &p->desc, p->codes.compute, p->codes.scale);
	if (!st && s->transpose_b)
		st = set_u32(p, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T, err);
	if (!st && s->transpose_a)
		st = set_u32(p, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T, err);
	if (!st && s->epilogue)
		st = set_u32(p, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_code(s->epilogue), err);
	if (!st && has_bias(s))
		st = set_pointer(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, ALIGNED_STAND_IN, err);
	if (!st && has_bias(s) && s->bias != s->d)
		st = set_u32(p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_code(s->bias), err);
	if (!st && s->fast_accumulate)
		st = LT_CALL(p->mm, err, desc_set, p->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
			     sizeof(fast));
	if (!st && s->sm_target)
		st = set_u32(p, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, s->sm_target, err);
	if (!st)
		st = set_scales(p, err);
	return st;
}

static enum status make_preference(struct matmul_plan *p, struct error *err)
{
	static const cublasLtMatmulPreferenceAttributes_t alignment[] = {
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
	};
	uint32_t align = p->shape.align_bytes ? p->shape.align_bytes : ALIGN_DEFAULT;
	const uint32_t whole = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	uint64_t bytes = p->mm->workspace_bytes;
	enum status st;

	st = LT_CALL(p->mm, err, preference_create, &p->preference);
	if (!st)
		st = LT_CALL(p->mm, err, preference_set, p->preference,
			     CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
	for (size_t i = 0; !st && i < sizeof(alignment) / sizeof(alignment[0]); i++)
		st = LT_CALL(p->mm, err, preference_set, p->preference, alignment[i], &align, sizeof(align));
	if (!st && p->shape.whole_sums)
		st = LT_CALL(p->mm, err, preference_set, p->preference,
			     CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &whole, sizeof(whole));
	return st;
}

enum status matmul_plan_create(struct matmul_plan **p, struct matmul *mm, const struct matmul_shape *s,
			       struct error *err)
{
	struct matmul_plan *plan;
	enum status st;

	*p = NULL;
	st = check_shape(s, err);
	if (st)
		return st;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a GEMM plan");
	plan->mm = mm;
	plan->shape = *s;
	plan->codes = codes_of(s);
	st = make_desc(plan, err);
	if (!st)
		st = make_layouts(plan, err);
	if (!st)
		st = make_preference(plan, err);
	if (st)
		matmul_plan_destroy(&plan);
	*p = plan;
	return st;
}

void matmul_plan_destroy(struct matmul_plan **p)
{
	struct matmul_plan *plan = *p;

	if (!plan)
		return;
	if (plan->preference)
		plan->mm->lt.preference_destroy(plan->preference);
	if (plan->d)
		plan->mm->lt.layout_destroy(plan->d);
	if (plan->c)
		plan->mm->lt.layout_destroy(plan->c);
	if (plan->b)
		plan->mm->lt.layout_destroy(plan->b);
	if (plan->a)
		plan->mm->lt.layout_destroy(plan->a);
	if (plan->desc)
		plan->mm->lt.desc_destroy(plan->desc);
	free(plan->candidates);
	free(plan);
	*p = NULL;
}

/* Updates pointers in the descriptor only if they changed, because a training step binds a plan once per
 * layer. */
static enum status bind(struct matmul_plan *p, const struct matmul_operands *o, struct error *err)
{
	const struct matmul_shape *s = &p->shape;
	enum status st = STATUS_OK;

	if (has_bias(s) && o->bias != p->bias)
		st = set_pointer(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, o->bias, err);
	if (!st && s->scale_b && o->scale_b != p->scale_b)
		st = set_pointer(p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o->scale_b, err);
	if (!st && s->scale_a && o->scale_a != p->scale_a)
		st = set_pointer(p, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o->scale_a, err);
	if (st)
		return st;
	p->bias = o->bias;
	p->scale_a = o->scale_a;
	p->scale_b = o->scale_b;
	return STATUS_OK;
}

union scalar {
	double f64;
	float f32;
	int32_t s32;
};

static union scalar scalar_of(cudaDataType_t type, double value)
{
	if (type == CUDA_R_64F)
		return (union scalar){.f64 = value};
	if (type == CUDA_R_32I)
		return (union scalar){.s32 = (int32_t)value};
	return (union scalar){.f32 = (float)value};
}

/* The library takes device addresses as pointers. */
static void *address(gpu_ptr p)
{
	return (void *)(uintptr_t)p;
}

enum status matmul_plan_enqueue(struct matmul_plan *p, const struct matmul_operands *o, struct gpu_stream *s,
				struct error *err)
{
	union scalar alpha = scalar_of(p->codes.scale, o->alpha), beta = scalar_of(p->codes.scale, o->beta);
	struct matmul *mm = p->mm;
	enum status st;

	if (p->selected >= p->count)
		return error_set(err, STATUS_BUG, "a GEMM plan is run before a candidate is selected");
	st = bind(p, o, err);
	if (st)
		return st;
	return LT_CALL(mm, err, matmul, mm->handle, p->desc, &alpha, address(o->b), p->a, address(o->a), p->b,
		       &beta, address(o->c ? o->c : o->d), p->c, address(o->d), p->d,
		       &p->candidates[p->selected].algo, address(mm->workspace), mm->workspace_bytes,
		       gpu_stream_raw(s));
}
