/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake driver does: kernels by their references, copies, fills; at once, or kept while a stream
 * captures. */
#include "cuda_fake.h"
#include "kernel/timing/spin.h"
#include "kernel/timing/stamp.h"
#include <pthread.h>

enum { KERNELS = 512, LAUNCH_NS = 2000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUkern_st kernels[KERNELS];

static void fault(const struct CUkern_st *k, const unsigned char *args)
{
	const struct ref_row *row = k->row;
	uint64_t out = 0;

	if (!row || row->out == REF_NO_OUT)
		return;
	memcpy(&out, args + row->out, sizeof(out));
	if (stage_due("flip", k->entry))
		*(uint32_t *)(uintptr_t)out ^= 0x00400000u;
	if (stage_due("zero", k->entry))
		*(uint32_t *)(uintptr_t)out = 0;
	if (stage_due("nan", k->entry))
		*(uint32_t *)(uintptr_t)out = 0x7fc00000u;
}

static void stamp(int device, const struct stamp_args *a)
{
	struct stamp_record *r = (struct stamp_record *)(uintptr_t)a->record;
	double mhz = (double)stage_number("clock", 1980), now = fake_now(device);

	for (uint64_t sm = 0; sm < stage_number("sms", 132) && sm < a->slots; sm++)
		r[sm] = (struct stamp_record){(uint64_t)(now * mhz / 1e3), (uint64_t)now, a->sequence, 0};
}

/* More than a minute is for ever. */
static void spin(int device, const struct spin_args *a)
{
	if (a->ns > 60000000000u)
		fake_stick(device, true);
	fake_pass(device, (double)a->ns);
}

void fake_run(const struct operation *o)
{
	if (o->event) {
		fake_record(o->event);
	} else if (o->of) {
		fake_catch_up(o->of, o->place);
	} else if (o->call) {
		o->call(o->device, o->args);
	} else if (o->word) {
		if (!fake_stuck(o->device)) /* else it is behind what never ends */
			*(_Atomic uint32_t *)o->to = o->value;
	} else if (o->source != o->destination) {
		fake_copy_peer(o);
	} else if (!o->kernel && o->from) {
		memmove(o->to, o->from, o->bytes);
		fake_pass(o->device, LAUNCH_NS + (double)o->bytes / 50);
	} else if (!o->kernel) {
		for (size_t i = 0; i < o->bytes / 4; i++)
			((uint32_t *)o->to)[i] = o->value;
		fake_pass(o->device, LAUNCH_NS + (double)o->bytes / 3000);
	} else if (!stage_due("drop", o->kernel->entry)) {
		fake_pass(o->device, LAUNCH_NS);
		if (stage_due("stick", o->kernel->entry))
			fake_stick(o->device, true);
		if (o->kernel->row)
			o->kernel->row->run(o->kernel->entry, o->grid, o->args);
		else if (!strcmp(o->kernel->entry, "stamp"))
			stamp(o->device, (const struct stamp_args *)(const void *)o->args);
		else
			spin(o->device, (const struct spin_args *)(const void *)o->args);
		fake_wait_for_link(o);
		fault(o->kernel, o->args);
	}
}

static bool same_peer_copy(const struct operation *a, const struct operation *b)
{
	return b->source != b->destination && a->device == b->device && a->source == b->source &&
	       a->destination == b->destination && a->to == b->to && a->from == b->from &&
	       a->bytes == b->bytes;
}

CUresult fake_enqueue(CUstream s, const struct operation *o)
{
	CUstream to = fake_capture_of(s);
	struct operation own = *o, *more;

	own.device = fake_device_of_stream(s);
	if (s && s->late && !to)
		return fake_put_off(s, &own);
	if (!to) {
		fake_run(&own);
		return CUDA_SUCCESS;
	}
	if (!(to->graph->count & (to->graph->count - 1))) { /* room for the next power of two */
		more = realloc(to->graph->operation,
			       (to->graph->count ? 2 * to->graph->count : 1) * sizeof(*more));
		if (!more)
			return CUDA_ERROR_OUT_OF_MEMORY;
		to->graph->operation = more;
	}
	own.again = to->graph->count && same_peer_copy(&to->graph->operation[to->graph->count - 1], &own);
	to->graph->operation[to->graph->count++] = own;
	return CUDA_SUCCESS;
}

bool fake_keep_call(CUstream s, void (*call)(int device, const void *args), const void *args, size_t bytes)
{
	struct operation o = {.call = call};

	if ((!fake_capture_of(s) && !(s && s->late)) || bytes > ARGS_MAX)
		return false;
	memcpy(o.args, args, bytes);
	return fake_enqueue(s, &o) == CUDA_SUCCESS;
}

static CUresult copy(CUstream s, void *to, const void *from, size_t bytes)
{
	return fake_enqueue(s, &(struct operation){.to = to, .from = from, .bytes = bytes});
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	STAGED(cuMemcpyHtoD_v2);
	return copy(NULL, (void *)(uintptr_t)to, from, bytes);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	STAGED(cuMemcpyDtoH_v2);
	return copy(NULL, to, (const void *)(uintptr_t)from, bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s)
{
	STAGED(cuMemcpyHtoDAsync_v2);
	return copy(s, (void *)(uintptr_t)to, from, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s)
{
	STAGED(cuMemcpyDtoHAsync_v2);
	return copy(s, to, (const void *)(uintptr_t)from, bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s)
{
	STAGED(cuMemcpyDtoDAsync_v2);
	return copy(s, (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
			   size_t bytes, CUstream s)
{
	struct operation o = {
		.to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .bytes = bytes};

	STAGED(cuMemcpyPeerAsync);
	o.source = fake_device_of_context(from_context);
	o.destination = fake_device_of_context(to_context);
	if (fake_device_of(o.from) != o.source || fake_device_of(o.to) != o.destination)
		return CUDA_ERROR_INVALID_VALUE;
	return fake_enqueue(s, &o);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t words, CUstream s)
{
	struct operation o = {.to = (void *)(uintptr_t)to, .bytes = words * 4, .value = value};

	STAGED(cuMemsetD32Async);
	return fake_enqueue(s, &o);
}

CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr to, uint32_t value, unsigned flags)
{
	STAGED(cuStreamWriteValue32_v2);
	if (flags || to % 4)
		return CUDA_ERROR_INVALID_VALUE;
	return fake_enqueue(s,
			    &(struct operation){.word = true, .to = (void *)(uintptr_t)to, .value = value});
}

/* What a reference needs of a map stands in it plainly (ref_attention_own.c). */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *address,
				const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
				const uint32_t *steps, CUtensorMapInterleave interleave,
				CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
				CUtensorMapFloatOOBfill fill)
{
	const unsigned row_bytes = box[0] * (type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : 2);

	STAGED(cuTensorMapEncodeTiled);
	(void)interleave, (void)promotion, (void)fill;
	if (rank != 4 || (uintptr_t)address % 16 ||
	    !((swizzle == CU_TENSOR_MAP_SWIZZLE_128B && row_bytes == 128) ||
	      (swizzle == CU_TENSOR_MAP_SWIZZLE_64B && row_bytes == 64)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < rank; i++)
		if (!sizes[i] || !box[i] || box[i] > 256 || steps[i] != 1 || (i && strides[i - 1] % 16))
			return CUDA_ERROR_INVALID_VALUE;
	map->opaque[0] = (uintptr_t)address;
	memcpy(map->opaque + 1, sizes, 4 * sizeof(*sizes));
	memcpy(map->opaque + 5, strides, 3 * sizeof(*strides));
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			unsigned bz, unsigned shared_bytes, CUstream s, void **params, void **extra)
{
	const struct CUkern_st *k = (const struct CUkern_st *)f;
	size_t size = k->row ? k->row->args_size : 16; /* spin, stamp */
	struct operation o = {.kernel = k, .grid = {gx * gy * gz, bx * by * bz}};

	(void)extra;
	STAGED(cuLaunchKernel);
	if (s && s->device != fake_current()) /* kernels belong to a context, and so do streams */
		return CUDA_ERROR_INVALID_VALUE;
	if (!gx || !gy || !gz || gy > 65535 || gz > 65535 || !bx || !by || !bz || bx * by * bz > 1024 ||
	    shared_bytes > 232448)
		return CUDA_ERROR_INVALID_VALUE;
	if (!strcmp(k->entry, "spin"))
		size = sizeof(struct spin_args);
	if (size > sizeof(o.args))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(o.args, params[0], size);
	return fake_enqueue(s, &o);
}

/* As the driver's: what is refused is refused by both, and counts as one call of each. */
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
	STAGED(cuLaunchKernelEx);
	for (unsigned i = 0; i < c->numAttrs; i++) {
		const CUlaunchAttribute *a = &c->attrs[i];
		const bool cluster = a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;

		if (!cluster && a->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
			return CUDA_ERROR_INVALID_VALUE;
		if (cluster &&
		    (!a->value.clusterDim.x || a->value.clusterDim.x > 8 || a->value.clusterDim.y != 1 ||
		     a->value.clusterDim.z != 1 || c->gridDimX % a->value.clusterDim.x))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
			      c->blockDimZ, c->sharedMemBytes, c->hStream, params, extra);
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction f, const CUlaunchConfig *c)
{
	const unsigned sms = (unsigned)stage_number("sms", 132);

	(void)f;
	STAGED(cuOccupancyMaxActiveClusters);
	if (!c->numAttrs || c->attrs[0].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
		return CUDA_ERROR_INVALID_VALUE;
	*clusters = (int)(sms * (c->sharedMemBytes > 113 << 10 ? 1 : 2) / c->attrs[0].value.clusterDim.x);
	return CUDA_SUCCESS;
}

/* More blocks than there is room for would wait for each other for ever. */
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
				   unsigned by, unsigned bz, unsigned shared_bytes, CUstream s, void **params)
{
	STAGED(cuLaunchCooperativeKernel);
	if (gx * gy * gz >
	    stage_number("sms", 132) * (shared_bytes > 113 << 10 || bx * by * bz > 512 ? 1 : 2))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	fake_pass(fake_device_of_stream(s), (double)stage_number("cooperative_ns", 0));
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared_bytes, s, params, NULL);
}

CUresult cuLibraryLoadData(CUlibrary *l, const void *code, CUjit_option *jit, void **jit_values,
			   unsigned jit_count, CUlibraryOption *options, void **values, unsigned count)
{
	(void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
	STAGED(cuLibraryLoadData);
	*l = (CUlibrary)(uintptr_t)code;
	return code ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuLibraryUnload(CUlibrary l)
{
	(void)l;
	STAGED(cuLibraryUnload);
	return CUDA_SUCCESS;
}

static CUkernel kernel_slot(const char *name)
{
	CUkernel found = NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < KERNELS && !found; i++) {
		if (!kernels[i].entry[0]) {
			snprintf(kernels[i].entry, sizeof(kernels[i].entry), "%s", name);
			kernels[i].row = ref_find(name);
		}
		if (!strcmp(kernels[i].entry, name))
			found = &kernels[i];
	}
	pthread_mutex_unlock(&lock);
	return found;
}

CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary l, const char *name)
{
	(void)l;
	STAGED(cuLibraryGetKernel);
	if (!ref_find(name) && strcmp(name, "stamp") && strcmp(name, "spin"))
		return CUDA_ERROR_NOT_FOUND;
	*k = kernel_slot(name);
	return *k ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuKernelGetFunction(CUfunction *f, CUkernel k)
{
	STAGED(cuKernelGetFunction);
	*f = (CUfunction)k;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value)
{
	(void)f, (void)attribute;
	STAGED(cuFuncSetAttribute);
	return value <= 232448 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f)
{
	(void)f, (void)attribute;
	STAGED(cuFuncGetAttribute);
	*value = 32;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads,
						     size_t shared_bytes)
{
	(void)f;
	STAGED(cuOccupancyMaxActiveBlocksPerMultiprocessor);
	*blocks = 2048 / threads;
	if (shared_bytes && (size_t)*blocks > 232448 / shared_bytes)
		*blocks = (int)(232448 / shared_bytes);
	return CUDA_SUCCESS;
}
