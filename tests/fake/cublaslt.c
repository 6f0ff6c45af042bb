/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt, libcublasLt.so.13, that a CPU can run: with the fake driver, device memory is host memory, and a
 * product is plain loops in double over column-major operands, as the library's own documents have it.
 * It offers two heuristics (algorithm 66 with tiles of 128 x 256, then 128 x 128) and, to a search, tiles 18,
 * 20 and 23 with stage 35 and 36 and split-K. FAKE_CUBLASLT stages what goes wrong, as words with commas:
 *   SYMBOL=CODE    this function returns CODE
 *   flip=N         from the N-th product on, one element of D is off by one
 *   nan=N          the same, a NaN        drop=N    those products do nothing
 *   slow=N         products with split-K take N times as long (8)
 *   split=N        the first heuristic splits k in N and rounds the partial sums to D's type, unless the preference forbids it
 *   late=R*100+P   products on device R take P percent longer, P below 100
 *   second=CODE    the second heuristic's product returns CODE
 *   check=CODE     no algorithm that is asked about is taken
 *   rows=CODE      the mode of one scale per row returns CODE
 *   blocks=CODE    the modes of scales per 128 elements and per 128 x 128 return CODE
 *   nobias=1       there is no bias with scales in blocks
 *   version=N      as cublasLtGetVersion tells it (130101)
 * As measured with 13.1 on an H200: a product in BF16 that is added to C in D's place is rounded to BF16 first, unless
 * partial sums of a split k are added in the compute type. Where C lies apart from D the sum is rounded once.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "cublaslt_fake.h"
#include "ref.h"

#define X(need, ret, field, symbol, params) ret symbol params;
CUBLASLT_FUNCTIONS(X)
#undef X

/* How an algorithm's 64 bytes are used. */
enum slot {
	SLOT_ID,
	SLOT_TILE,
	SLOT_SPLIT,
	SLOT_REDUCTION,
	SLOT_SWIZZLE,
	SLOT_CUSTOM,
	SLOT_STAGES,
	SLOT_CLUSTER
};

struct cublasLtContext {
	int products;
};

/* The number behind `word=` in FAKE_CUBLASLT; 0: not staged. */
static int staged(const char *word)
{
	const char *text = getenv("FAKE_CUBLASLT");
	size_t length = strlen(word);

	for (const char *at = text ? strstr(text, word) : NULL; at; at = strstr(at + 1, word))
		if ((at == text || at[-1] == ',') && at[length] == '=')
			return (int)strtol(at + length + 1, NULL, 10);
	return 0;
}

size_t cublasLtGetVersion(void)
{
	return staged("version") ? (size_t)staged("version") : 130101;
}

const char *cublasLtGetStatusName(cublasStatus_t code)
{
	return code == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_OTHER";
}

const char *cublasLtGetStatusString(cublasStatus_t code)
{
	return cublasLtGetStatusName(code);
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	int code = staged("cublasLtCreate");

	if (code)
		return (cublasStatus_t)code;
	*handle = calloc(1, sizeof(**handle));
	return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	free(handle);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows,
					  uint64_t columns, int64_t step)
{
	int code = staged("cublasLtMatrixLayoutCreate");
	struct layout *l = code ? NULL : malloc(sizeof(*l));

	if (!l)
		return code ? (cublasStatus_t)code : CUBLAS_STATUS_ALLOC_FAILED;
	*l = (struct layout){type, rows, columns, step, 0, 1};
	*out = (cublasLtMatrixLayout_t)(void *)l;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
	free(l);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
						cublasLtMatrixLayoutAttribute_t what, const void *value,
						size_t size)
{
	struct layout *l = (void *)layout;

	if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == 4)
		memcpy(&l->batch, value, 4);
	else if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == 8)
		memcpy(&l->batch_step, value, 8);
	else
		return CUBLAS_STATUS_INVALID_VALUE;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
					cudaDataType_t scale)
{
	int code = staged("cublasLtMatmulDescCreate");
	struct description *d = code ? NULL : calloc(1, sizeof(*d));

	if (!d)
		return code ? (cublasStatus_t)code : CUBLAS_STATUS_ALLOC_FAILED;
	d->compute = compute;
	d->scale = scale;
	d->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	*out = (cublasLtMatmulDesc_t)(void *)d;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
	free(d);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_mode(uint32_t *mode, uint32_t to)
{
	if (to == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F && staged("rows"))
		return (cublasStatus_t)staged("rows");
	if (fake_is_blocks(to) && staged("blocks"))
		return (cublasStatus_t)staged("blocks");
	if (to && to != CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F && !fake_is_blocks(to))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	*mode = to;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what,
					      const void *value, size_t size)
{
	struct description *d = (void *)desc;
	int code = staged("cublasLtMatmulDescSetAttribute");

	if (code)
		return (cublasStatus_t)code;
	if (what == CUBLASLT_MATMUL_DESC_TRANSA)
		memcpy(&d->transpose_a, value, size);
	else if (what == CUBLASLT_MATMUL_DESC_TRANSB)
		memcpy(&d->transpose_b, value, size);
	else if (what == CUBLASLT_MATMUL_DESC_EPILOGUE)
		memcpy(&d->epilogue, value, size);
	else if (what == CUBLASLT_MATMUL_DESC_BIAS_POINTER)
		memcpy(&d->bias, value, size);
	else if (what == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER)
		memcpy(&d->scale_a, value, size);
	else if (what == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER)
		memcpy(&d->scale_b, value, size);
	else if (what == CUBLASLT_MATMUL_DESC_A_SCALE_MODE)
		return set_mode(&d->mode_a, *(const uint32_t *)value);
	else if (what == CUBLASLT_MATMUL_DESC_B_SCALE_MODE)
		return set_mode(&d->mode_b, *(const uint32_t *)value);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
	int code = staged("cublasLtMatmulPreferenceCreate");

	*out = code ? NULL : calloc(1, sizeof(**out));
	return *out ? CUBLAS_STATUS_SUCCESS : code ? (cublasStatus_t)code : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
	free(p);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
						    cublasLtMatmulPreferenceAttributes_t what,
						    const void *value, size_t size)
{
	if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && size == 8)
		memcpy(&p->data[0], value, 8);
	if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && size == 4)
		p->data[1] = *(const uint32_t *)value;
	return CUBLAS_STATUS_SUCCESS;
}

/* -- algorithms -- */

static uint32_t get(const cublasLtMatmulAlgo_t *a, enum slot slot)
{
	return (uint32_t)a->data[slot];
}

/* FP8 takes rows that begin at multiples of 16 bytes, TN alone. Of scales in blocks, only one side may have
 * those of 128 x 128, and both have blocks. */
static bool takes(const struct description *t, const struct layout *a, const struct layout *b,
		  const struct layout *d)
{
	if (fake_is_blocks(t->mode_a) && t->epilogue & CUBLASLT_EPILOGUE_BIAS && staged("nobias"))
		return false;
	if (fake_is_blocks(t->mode_a) != fake_is_blocks(t->mode_b) ||
	    (t->mode_a == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F && t->mode_b == t->mode_a))
		return false;
	if (a->type != CUDA_R_8F_E4M3 && a->type != CUDA_R_8F_E5M2)
		return true;
	return t->transpose_a && !t->transpose_b && !(a->step % 16) && !(b->step % 16) && !(d->step * 2 % 16);
}

/* Partial sums in D's type, as long as nobody forbids it. */
static uint32_t reduction_of(cublasLtMatmulPreference_t p)
{
	const uint32_t mask = (uint32_t)p->data[1];

	return mask && !(mask & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)
		       ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
		       : CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
					      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
					      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
					      cublasLtMatmulPreference_t p, int wanted,
					      cublasLtMatmulHeuristicResult_t *out, int *count)
{
	const int code = staged("cublasLtMatmulAlgoGetHeuristic");
	const int wide = staged("wide"); /* so many of clusters of eight come first */

	(void)h, (void)desc, (void)a, (void)b, (void)c, (void)d;
	*count = 0;
	if (code)
		return (cublasStatus_t)code;
	if (!takes((void *)desc, (void *)a, (void *)b, (void *)d))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (staged("empty"))
		return CUBLAS_STATUS_SUCCESS;
	for (int i = 0; i < wanted && i < wide + 2; i++) {
		out[i] = (cublasLtMatmulHeuristicResult_t){.wavesCount = i ? 0.5f : 0.97f};
		out[i].algo.data[SLOT_ID] = 66;
		out[i].algo.data[SLOT_TILE] = i ? 20 : 23;
		out[i].algo.data[SLOT_STAGES] = 35;
		out[i].algo.data[SLOT_SPLIT] = !i && staged("split") ? (uint64_t)staged("split") : 1;
		out[i].algo.data[SLOT_REDUCTION] = out[i].algo.data[SLOT_SPLIT] > 1 ? reduction_of(p) : 0;
		out[i].algo.data[SLOT_CLUSTER] =
			wide ? i < wide ? 7 : 5 : 0; /* 4 x 2, 1 x 2, as the library likes */
		++*count;
	}
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t h, cublasComputeType_t compute, cudaDataType_t scale,
					cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
					cudaDataType_t d, int wanted, int *ids, int *count)
{
	int code = staged("cublasLtMatmulAlgoGetIds");

	(void)h, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
	*count = 0;
	if (code)
		return (cublasStatus_t)code;
	for (int i = 0; i < wanted && i < 2; i++)
		ids[(*count)++] = 66 + i;
	return CUBLAS_STATUS_SUCCESS;
}

/* 67 is listed and does not exist. */
cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t h, cublasComputeType_t compute, cudaDataType_t scale,
				      cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t d,
				      int id, cublasLtMatmulAlgo_t *algo)
{
	(void)h, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
	if (id != 66)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	*algo = (cublasLtMatmulAlgo_t){0};
	algo->data[SLOT_ID] = 66;
	algo->data[SLOT_SPLIT] = 1;
	return CUBLAS_STATUS_SUCCESS;
}

/* Swizzled tiles of 128 x 64 do not exist; split-K takes workspace. */
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
				       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
				       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
				       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *out)
{
	(void)h, (void)desc, (void)a, (void)b, (void)c, (void)d;
	if (staged("check"))
		return (cublasStatus_t)staged("check");
	if (get(algo, SLOT_TILE) == 18 && get(algo, SLOT_SWIZZLE))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	out->workspaceSize = get(algo, SLOT_SPLIT) > 1 ? (size_t)get(algo, SLOT_SPLIT) << 20 : 0;
	out->wavesCount = 1;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t give(void *to, size_t size, size_t *written, const void *value, size_t bytes)
{
	*written = bytes;
	if (size < bytes)
		return size ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
	memcpy(to, value, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo,
						 cublasLtMatmulAlgoCapAttributes_t what, void *to,
						 size_t size, size_t *written)
{
	static const uint32_t tiles[] = {18, 20, 23}, stages[] = {35, 36}, one = 1, in_place = 1;

	(void)algo;
	switch (what) {
	case CUBLASLT_ALGO_CAP_TILE_IDS:
		return give(to, size, written, tiles, sizeof(tiles));
	case CUBLASLT_ALGO_CAP_STAGES_IDS:
		return give(to, size, written, stages, sizeof(stages));
	case CUBLASLT_ALGO_CAP_SPLITK_SUPPORT:
	case CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT:
		return give(to, size, written, &one, sizeof(one));
	case CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK:
		return give(to, size, written, &in_place, sizeof(in_place));
	default:
		return CUBLAS_STATUS_INVALID_VALUE;
	}
}

static int slot_of(cublasLtMatmulAlgoConfigAttributes_t what)
{
	return what <= CUBLASLT_ALGO_CONFIG_STAGES_ID ? (int)what : -1;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
						    cublasLtMatmulAlgoConfigAttributes_t what,
						    const void *value, size_t size)
{
	int slot = slot_of(what);

	if (slot < 0 || size != 4)
		return CUBLAS_STATUS_INVALID_VALUE;
	algo->data[slot] = *(const uint32_t *)value;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
						    cublasLtMatmulAlgoConfigAttributes_t what, void *to,
						    size_t size, size_t *written)
{
	int slot = slot_of(what);
	uint32_t value = slot < 0 ? 0 : get(algo, (enum slot)slot);
	uint16_t cluster = (uint16_t)get(algo, SLOT_CLUSTER);

	if (what == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)
		return give(to, size, written, &cluster, sizeof(cluster));
	return slot < 0 ? CUBLAS_STATUS_INVALID_VALUE : give(to, size, written, &value, sizeof(value));
}

/* -- products -- */

static double scalar(cudaDataType type, const void *at)
{
	if (type == CUDA_R_64F)
		return *(const double *)at;
	if (type == CUDA_R_32I)
		return *(const int32_t *)at;
	return (double)*(const float *)at;
}

static void multiply_now(int device, const void *args)
{
	(void)device;
	fake_multiply(args);
}

/* Whether a graph that is captured has it now. */
static bool kept(const struct product *p, cudaStream_t stream)
{
	static bool (*keep_call)(void *stream, void (*call)(int device, const void *args), const void *args,
				 size_t bytes);
	void *driver = keep_call ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (driver) {
		*(void **)&keep_call = dlsym(driver, "fake_keep_call");
		dlclose(driver); /* its user holds it */
	}
	return keep_call && keep_call(stream, multiply_now, p, sizeof(*p));
}

/* A product takes 200 us of the fake driver's time, a little less with tile 20, much more where it splits. */
static void spend(const cublasLtMatmulAlgo_t *algo)
{
	static void (*pass)(double ns);
	static int (*current)(void);
	void *driver = pass ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	double ns = get(algo, SLOT_TILE) == 20 ? 190e3 : 200e3;

	if (get(algo, SLOT_SPLIT) > 1)
		ns *= staged("slow") ? staged("slow") : 8;
	if (driver) {
		pass = (void (*)(double))(uintptr_t)dlsym(driver, "fake_cuda_pass");
		current = (int (*)(void))(uintptr_t)dlsym(driver, "fake_cuda_current");
		dlclose(driver); /* its user holds it */
	}
	if (current && staged("late") && current() == staged("late") / 100)
		ns *= 1 + staged("late") % 100 / 100.0;
	if (pass)
		pass(ns);
}

static int64_t rounded_parts(const cublasLtMatmulAlgo_t *algo)
{
	return get(algo, SLOT_REDUCTION) == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE ? get(algo, SLOT_SPLIT) : 1;
}

static bool adds_whole_sums(const cublasLtMatmulAlgo_t *algo)
{
	return get(algo, SLOT_SPLIT) > 1 && get(algo, SLOT_REDUCTION) == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
			      cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
			      const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
			      cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
			      void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
	const struct description *e = (void *)desc;
	const struct layout *la = (void *)a_layout, *lb = (void *)b_layout, *lc = (void *)c_layout;
	const struct layout *ld = (void *)d_layout;
	uint64_t place = ld->rows > 3 ? 3 : 0;
	uint32_t type = (uint32_t)fake_operand_type(ld->type);
	int code = staged("cublasLtMatmul");
	struct product product;

	(void)workspace, (void)workspace_bytes;
	if (code)
		return (cublasStatus_t)code;
	spend(algo);
	if (staged("second") && get(algo, SLOT_TILE) == 20)
		return (cublasStatus_t)staged("second");
	h->products++;
	if (staged("drop") && h->products >= staged("drop"))
		return CUBLAS_STATUS_SUCCESS;
	product = (struct product){
		.e = *e,
		.la = *la,
		.lb = *lb,
		.lc = *lc,
		.ld = *ld,
		.parts = rounded_parts(algo),
		.rounds_product = c == d && ld->type == CUDA_R_16BF && scalar(e->scale, beta) != 0 && !adds_whole_sums(algo),
		.alpha = scalar(e->scale, alpha),
		.beta = scalar(e->scale, beta),
		.a = a,
		.b = b,
		.c = c,
		.d = d,
	};
	if (kept(&product, stream))
		return CUBLAS_STATUS_SUCCESS;
	multiply_now(0, &product);
	if (staged("flip") && h->products >= staged("flip"))
		ref_operand_put(type, d, place, ref_operand_get(type, d, place) + 1);
	if (staged("nan") && h->products >= staged("nan"))
		ref_operand_put(type, d, place, (double)NAN);
	return CUBLAS_STATUS_SUCCESS;
}
