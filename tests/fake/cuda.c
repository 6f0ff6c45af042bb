/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver's functions; stage.h beside this says what it does and how failures are staged. */
#include "stage.h"
#include "kernel/link.h"
#include "kernel/spin.h"
#include "kernel/stamp.h"
#include "ref.h"
#include "vendor/cuda.h"

/* Every function is exported under the driver's own name and type: the table's rows are the prototypes. */
#define X(need, ret, field, symbol, params) ret symbol params;
CUDA_FUNCTIONS(X)
#undef X

#define STAGED(symbol)                                                                                       \
	do {                                                                                                 \
		int staged_code = stage_code(#symbol);                                                       \
		if (staged_code)                                                                             \
			return (CUresult)staged_code;                                                        \
	} while (0)

enum { ARGS_MAX = 512, KERNELS = 256, LAUNCH_NS = 2000, DEVICES = 16 };
#define PEER_RATE 380.0 /* bytes a ns from GPU to GPU */
#define STAGED_RATE 20.0 /* where it goes through the host */

struct CUkern_st {
	char entry[64];
};
struct CUevent_st {
	int device;
	struct CUstream_st *captured; /* it was recorded on a stream that captures */
	double at_ns;
};
struct operation {
	int source, destination; /* devices of a peer copy; the same: none */
	const struct CUkern_st *kernel; /* NULL: a copy or fill of `bytes` */
	struct ref_grid grid;
	unsigned char args[ARGS_MAX];
	void *to;
	const void *from; /* NULL: fill with `value` */
	size_t bytes;
	unsigned value;
};
struct CUstream_st {
	int device;
	struct CUstream_st *leader; /* the capture of another stream that this one joined */
	bool capturing;
	struct CUgraph_st *graph;
};
struct CUgraph_st {
	struct operation *operation;
	size_t count;
};
struct CUgraphExec_st {
	struct CUgraph_st graph;
};
struct allocation {
	struct allocation *next;
	int device; /* -1: the host's */
	uint64_t bytes;
	unsigned char *data;
};

static struct {
	double now_ns;
	uint64_t used_bytes;
	struct allocation *allocations;
	struct CUkern_st kernels[KERNELS];
	bool enabled[DEVICES][DEVICES]; /* [a][b]: a reaches b's memory */
} device = {.now_ns = 1e9};

static _Thread_local int current; /* whose context */
static _Thread_local CUstream capture; /* the stream of this thread that captures */

/* Own names are resolved here, since cuGetErrorName and the like must not fail. */
CUresult cuGetErrorName(CUresult r, const char **name)
{
	switch ((int)r) {
#define X(result, value, status, cause)                                                                      \
	case value:                                                                                          \
		*name = #result;                                                                             \
		return CUDA_SUCCESS;
		CUDA_RESULTS(X)
#undef X
	}
	*name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult r, const char **text)
{
	(void)r;
	*text = "staged by the fake driver";
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags)
{
	(void)flags;
	STAGED(cuInit);
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	STAGED(cuDriverGetVersion);
	*version = 13000;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	STAGED(cuDeviceGetCount);
	*count = (int)stage_number("devices", 1);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *d, int ordinal)
{
	STAGED(cuDeviceGet);
	*d = ordinal;
	return ordinal < (int)stage_number("devices", 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* The device's bus is 8d, as the fake NVML's; a second one's is 8e, .. */
CUresult cuDeviceGetByPCIBusId(CUdevice *d, const char *pci)
{
	unsigned domain, bus;

	STAGED(cuDeviceGetByPCIBusId);
	if (sscanf(pci, "%x:%x:", &domain, &bus) != 2)
		return CUDA_ERROR_INVALID_VALUE;
	if (domain || bus < 0x8d || bus - 0x8d >= stage_number("devices", 1))
		return CUDA_ERROR_INVALID_DEVICE;
	*d = (int)bus - 0x8d;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *pci, int size, CUdevice d)
{
	STAGED(cuDeviceGetPCIBusId);
	snprintf(pci, (size_t)size, "0000:%02X:00.0", 0x8d + d);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice d)
{
	STAGED(cuDeviceGetName);
	(void)d;
	snprintf(name, (size_t)size, "NVIDIA H100 80GB HBM3");
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice d)
{
	STAGED(cuDeviceGetUuid_v2);
	memset(uuid, 0x40 + d, sizeof(*uuid));
	return CUDA_SUCCESS;
}

static uint64_t total_bytes(void)
{
	return stage_number("memory", 81920) << 20;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d)
{
	STAGED(cuDeviceTotalMem_v2);
	(void)d;
	*bytes = total_bytes();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice d)
{
	static const struct {
		CUdevice_attribute attribute;
		int value;
	} rows[] = {
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
		{CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
		{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
		{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
		{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
		{CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
		{CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
		{CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0},
	};

	STAGED(cuDeviceGetAttribute);
	*value = 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].attribute == attribute)
			*value = rows[i].value;
	if (attribute == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)
		*value = (int)stage_number("memory_khz", 2619000);
	if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		*value = (int)stage_number("sms", 132);
	if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
		*value = (int)stage_number("cc", 90) / 10;
	if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
		*value = (int)stage_number("cc", 90) % 10;
	if (attribute == CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
		*value = 1980000;
	if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
		*value = 0x8d + d;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
	STAGED(cuDevicePrimaryCtxRetain);
	*c = (CUcontext)(uintptr_t)(d + 1);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
	(void)d;
	STAGED(cuDevicePrimaryCtxRelease_v2);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext c)
{
	STAGED(cuCtxSetCurrent);
	current = (int)(uintptr_t)c - 1;
	return CUDA_SUCCESS;
}

/* Peers. */

static bool denied(int a, int b)
{
	return stage_pair("peer", a, b, NULL) || stage_pair("peer", b, a, NULL);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice d, CUdevice peer)
{
	STAGED(cuDeviceCanAccessPeer);
	*can = d != peer && !denied(d, peer);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
	STAGED(cuDeviceGetP2PAttribute);
	if (from == to)
		return CUDA_ERROR_INVALID_DEVICE;
	*value = !denied(from, to);
	return attribute ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	int other = (int)(uintptr_t)peer - 1;
	bool *enabled;

	(void)flags;
	STAGED(cuCtxEnablePeerAccess);
	if (other == current || denied(current, other))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	enabled = &device.enabled[current % DEVICES][other % DEVICES];
	if (*enabled)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	*enabled = true;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	STAGED(cuCtxSynchronize);
	return CUDA_SUCCESS;
}

/* Memory. */

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	STAGED(cuMemGetInfo_v2);
	*total = total_bytes();
	*free_bytes = *total > device.used_bytes ? *total - device.used_bytes : 0;
	return CUDA_SUCCESS;
}

static void *take(size_t bytes, bool counted)
{
	struct allocation *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->data = aligned_alloc(512, (bytes + 511) / 512 * 512);
	if (!a->data) {
		free(a);
		return NULL;
	}
	memset(a->data, 0xcd, bytes);
	a->bytes = counted ? bytes : 0;
	a->device = counted ? current : -1;
	device.used_bytes += a->bytes;
	a->next = device.allocations;
	device.allocations = a;
	return a->data;
}

static CUresult drop(const void *data)
{
	for (struct allocation **p = &device.allocations; *p; p = &(*p)->next) {
		struct allocation *a = *p;

		if (a->data != data)
			continue;
		*p = a->next;
		device.used_bytes -= a->bytes;
		free(a->data);
		free(a);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
	void *data;

	STAGED(cuMemAlloc_v2);
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	data = device.used_bytes + bytes > total_bytes() ? NULL : take(bytes, true);
	*p = (uintptr_t)data;
	return data ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
	CUresult r = drop((const void *)(uintptr_t)p); /* freed whatever is staged: nothing may leak */

	STAGED(cuMemFree_v2);
	return r;
}

CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
	(void)flags;
	STAGED(cuMemHostAlloc);
	*p = take(bytes, false);
	return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *p)
{
	CUresult r = drop(p);

	STAGED(cuMemFreeHost);
	return r;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *p, void *host, unsigned flags)
{
	(void)flags;
	STAGED(cuMemHostGetDevicePointer_v2);
	*p = (uintptr_t)host;
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
	(void)p, (void)bytes, (void)flags;
	STAGED(cuMemHostRegister_v2);
	return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *p)
{
	(void)p;
	STAGED(cuMemHostUnregister);
	return CUDA_SUCCESS;
}

/* Work: done at once, or kept while a stream captures. */

static void fault(const struct CUkern_st *k, const unsigned char *args)
{
	const struct ref_row *row = ref_find(k->entry);
	uint64_t out = 0;

	if (!row || row->out == REF_NO_OUT)
		return;
	memcpy(&out, args + row->out, sizeof(out));
	if (stage_due("flip", k->entry))
		*(uint32_t *)(uintptr_t)out ^= 0x00400000u;
	if (stage_due("nan", k->entry))
		*(uint32_t *)(uintptr_t)out = 0x7fc00000u;
}

/* For a fake library above this one: so much time passes on the device. */
void fake_cuda_pass(double ns);
void fake_cuda_pass(double ns)
{
	device.now_ns += ns;
}

static void stamp(const struct stamp_args *a)
{
	struct stamp_record *r = (struct stamp_record *)(uintptr_t)a->record;
	double mhz = (double)stage_number("clock", 1980);

	for (uint64_t sm = 0; sm < stage_number("sms", 132) && sm < a->slots; sm++)
		r[sm] = (struct stamp_record){(uint64_t)(device.now_ns * mhz / 1e3), (uint64_t)device.now_ns,
					      a->sequence, 0};
}

/* Whose memory an address is; -1: none's. */
static int device_of(const void *p)
{
	for (const struct allocation *a = device.allocations; a; a = a->next)
		if ((const unsigned char *)p >= a->data && (const unsigned char *)p < a->data + a->bytes)
			return a->device;
	return -1;
}

/* What moving so many bytes from GPU to GPU takes. */
static double peer_ns(int from, int to, double bytes)
{
	double share = 1;

	(void)stage_pair("slow", from, to, &share);
	return bytes / (device.enabled[from][to] || device.enabled[to][from] ? PEER_RATE : STAGED_RATE) /
	       share;
}

static void copy_peer(const struct operation *o)
{
	device.now_ns += peer_ns(o->source, o->destination, (double)o->bytes);
	if (stage_pair("drop_peer", o->source, o->destination, NULL))
		return;
	memmove(o->to, o->from, o->bytes);
	if (stage_pair("flip_peer", o->source, o->destination, NULL))
		((uint32_t *)o->to)[o->bytes / 8] ^= 0x00400000u;
}

/* A kernel that reads or writes another GPU's memory waits for the link. */
static void wait_for_link(const struct operation *o)
{
	const struct link_args *a = (const struct link_args *)(const void *)o->args;
	const struct flag_args *hop = (const struct flag_args *)(const void *)o->args;
	bool moves = !strncmp(o->kernel->entry, "link_v", 6);
	int from, to;

	if (!moves && strcmp(o->kernel->entry, "link_hop"))
		return;
	from = device_of((const void *)(uintptr_t)(moves ? a->from : hop->next));
	to = device_of((const void *)(uintptr_t)(moves ? a->to : hop->at));
	if (from >= 0 && to >= 0 && from != to)
		device.now_ns += moves ? peer_ns(from, to, 16.0 * (double)a->count) : 700.0 * (double)hop->hops;
}

static void run(const struct operation *o)
{
	if (o->source != o->destination) {
		copy_peer(o);
	} else if (!o->kernel && o->from) {
		memmove(o->to, o->from, o->bytes);
		device.now_ns += LAUNCH_NS + (double)o->bytes / 50;
	} else if (!o->kernel) {
		for (size_t i = 0; i < o->bytes / 4; i++)
			((uint32_t *)o->to)[i] = o->value;
		device.now_ns += LAUNCH_NS + (double)o->bytes / 3000;
	} else if (!stage_due("drop", o->kernel->entry)) {
		device.now_ns += LAUNCH_NS;
		if (!strcmp(o->kernel->entry, "stamp"))
			stamp((const struct stamp_args *)(const void *)o->args);
		else if (!strcmp(o->kernel->entry, "spin"))
			device.now_ns += (double)((const struct spin_args *)(const void *)o->args)->ns;
		else
			ref_run(o->kernel->entry, o->grid, o->args);
		wait_for_link(o);
		fault(o->kernel, o->args);
	}
}

static CUresult enqueue(CUstream s, const struct operation *o)
{
	struct operation *more;

	if (s && s->leader && s->leader == capture)
		s = s->leader;
	if (!s || !s->capturing) { /* NULL: the device's default stream */
		run(o);
		return CUDA_SUCCESS;
	}
	more = realloc(s->graph->operation, (s->graph->count + 1) * sizeof(*more));
	if (!more)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->graph->operation = more;
	more[s->graph->count++] = *o;
	return CUDA_SUCCESS;
}

static CUresult copy(CUstream s, void *to, const void *from, size_t bytes)
{
	return enqueue(s, &(struct operation){.to = to, .from = from, .bytes = bytes});
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
	struct operation o = {.to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .bytes = bytes};

	STAGED(cuMemcpyPeerAsync);
	o.source = (int)(uintptr_t)from_context - 1;
	o.destination = (int)(uintptr_t)to_context - 1;
	if (device_of(o.from) != o.source || device_of(o.to) != o.destination)
		return CUDA_ERROR_INVALID_VALUE;
	return enqueue(s, &o);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t words, CUstream s)
{
	struct operation o = {.to = (void *)(uintptr_t)to, .bytes = words * 4, .value = value};

	STAGED(cuMemsetD32Async);
	return enqueue(s, &o);
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			unsigned bz, unsigned shared_bytes, CUstream s, void **params, void **extra)
{
	const struct CUkern_st *k = (const struct CUkern_st *)f;
	const struct ref_row *row = ref_find(k->entry);
	size_t size = row ? row->args_size : 16; /* spin, stamp */
	struct operation o = {.kernel = k, .grid = {gx * gy * gz, bx * by * bz}};

	(void)extra;
	STAGED(cuLaunchKernel);
	if (s && s->device != current) /* kernels belong to a context, and so do streams */
		return CUDA_ERROR_INVALID_VALUE;
	if (!gx || !gy || !gz || !bx || !by || !bz || bx * by * bz > 1024 || shared_bytes > 232448)
		return CUDA_ERROR_INVALID_VALUE;
	if (!strcmp(k->entry, "spin"))
		size = sizeof(struct spin_args);
	memcpy(o.args, params[0], size);
	return enqueue(s, &o);
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

CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary l, const char *name)
{
	(void)l;
	STAGED(cuLibraryGetKernel);
	if (!ref_find(name) && strcmp(name, "stamp") && strcmp(name, "spin"))
		return CUDA_ERROR_NOT_FOUND;
	for (int i = 0; i < KERNELS; i++) {
		struct CUkern_st *slot = &device.kernels[i];

		if (!slot->entry[0])
			snprintf(slot->entry, sizeof(slot->entry), "%s", name);
		if (!strcmp(slot->entry, name)) {
			*k = slot;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
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

/* Streams, events, graphs. */

CUresult cuStreamCreate(CUstream *s, unsigned flags)
{
	(void)flags;
	STAGED(cuStreamCreate);
	*s = calloc(1, sizeof(**s));
	if (*s)
		(*s)->device = current;
	return *s ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamDestroy_v2(CUstream s)
{
	free(s);
	STAGED(cuStreamDestroy_v2);
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream s)
{
	(void)s;
	STAGED(cuStreamSynchronize);
	return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
	(void)flags;
	STAGED(cuStreamWaitEvent);
	if (s != e->captured)
		s->leader = e->captured;
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode)
{
	(void)mode;
	STAGED(cuStreamBeginCapture_v2);
	s->graph = calloc(1, sizeof(*s->graph));
	s->capturing = s->graph;
	capture = s->graph ? s : NULL;
	return s->graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph g)
{
	if (g)
		free(g->operation);
	free(g);
	STAGED(cuGraphDestroy);
	return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *g)
{
	CUgraph captured = s->graph;
	int code = stage_code("cuStreamEndCapture");

	s->capturing = false;
	capture = NULL;
	s->graph = NULL;
	if (code) {
		if (captured)
			free(captured->operation);
		free(captured);
		return (CUresult)code;
	}
	*g = captured;
	return captured ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph g, unsigned long long flags)
{
	(void)flags;
	STAGED(cuGraphInstantiateWithFlags);
	*x = calloc(1, sizeof(**x));
	if (!*x)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*x)->graph.operation = calloc(g->count ? g->count : 1, sizeof(struct operation));
	if (!(*x)->graph.operation) {
		free(*x);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*x)->graph.count = g->count;
	if (g->count)
		memcpy((*x)->graph.operation, g->operation, g->count * sizeof(struct operation));
	return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec x, CUstream s)
{
	STAGED(cuGraphLaunch);
	for (size_t i = 0; i < x->graph.count; i++)
		enqueue(s, &x->graph.operation[i]);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec x)
{
	free(x->graph.operation);
	free(x);
	STAGED(cuGraphExecDestroy);
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *e, unsigned flags)
{
	(void)flags;
	STAGED(cuEventCreate);
	*e = calloc(1, sizeof(**e));
	if (*e)
		(*e)->device = current;
	return *e ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy_v2(CUevent e)
{
	free(e);
	STAGED(cuEventDestroy_v2);
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent e, CUstream s)
{
	STAGED(cuEventRecord);
	if (s && s->device != e->device)
		return CUDA_ERROR_INVALID_VALUE;
	e->at_ns = device.now_ns;
	e->captured = s && s->capturing ? s : NULL;
	return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent e)
{
	(void)e;
	STAGED(cuEventQuery);
	return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent e)
{
	(void)e;
	STAGED(cuEventSynchronize);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	STAGED(cuEventElapsedTime);
	*ms = (float)((to->at_ns - from->at_ns) / 1e6);
	return CUDA_SUCCESS;
}
