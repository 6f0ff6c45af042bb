/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver API, narrow: device, stream, event, buffer, module, graph. Worker processes only. Every call
 * returns a status and fills *err with the driver's own words; nothing exits.
 */
#ifndef GPU_DEVICE_GPU_H
#define GPU_DEVICE_GPU_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

struct cuda; /* vendor/cuda.h: the driver's table */
struct gpu_device;
struct gpu_stream;
struct gpu_event;
struct gpu_graph;
struct gpu_kernel;
typedef uint64_t gpu_ptr; /* a CUdeviceptr: never dereferenced here */

/* Opens the driver, the device by PCI address (NULL: CUDA's first) and makes its primary context current on
 * this thread. Owner: caller, gpu_close. UNAVAILABLE: no driver; LOST: listed but silent. */
enum status gpu_open(struct gpu_device **d, const char *pci, struct error *err);
void gpu_close(struct gpu_device **d);
/* "NVIDIA H100 80GB HBM3 (0000:1B:00.0)", for messages. Lent. */
const char *gpu_name(const struct gpu_device *d);
/* Driver attribute by its CUdevice_attribute number; -1 where the driver refuses. */
int gpu_attribute(const struct gpu_device *d, int attribute);
/* Bytes of shared memory that a block may ask for; 0 where the driver refuses to tell. */
unsigned gpu_shared_most(const struct gpu_device *d);
unsigned gpu_sm_count(const struct gpu_device *d);
unsigned gpu_cc(const struct gpu_device *d);	   /* 90 for sm_90 */
int gpu_ordinal(const struct gpu_device *d);	   /* CUDA's number of it in this process: a CUdevice */
void *gpu_context_raw(const struct gpu_device *d); /* CUcontext */
/* Bytes a second by twice the memory clock times the bus; 0 where the driver does not say. */
double gpu_dram_rate(const struct gpu_device *d);
enum status gpu_memory(const struct gpu_device *d, uint64_t *free_bytes, uint64_t *total_bytes,
		       struct error *err);
/* What gpu_alloc would give now, all calls together; 0 where the driver does not say. */
uint64_t gpu_memory_usable(const struct gpu_device *d);
enum status gpu_synchronize(struct gpu_device *d, struct error *err);

/* What gpu_alloc never takes of what is free: METHODS "Device memory". Who plans leaves as much. */
#define GPU_LEAVE_BYTES ((uint64_t)2 << 30)
/* GPU_LEAVE_BYTES are always left free; beyond it NO_RESOURCE with cause NO_MEMORY. */
enum status gpu_alloc(struct gpu_device *d, gpu_ptr *p, uint64_t size, struct error *err);
void gpu_free(struct gpu_device *d, gpu_ptr *p); /* 0 is fine; sets 0 */
enum status gpu_host_alloc(struct gpu_device *d, void **p, uint64_t size, struct error *err); /* pinned */
void gpu_host_free(struct gpu_device *d, void **p);
/* Pins memory that the caller allocated (mapped for the device too); undo before freeing it. */
enum status gpu_host_register(struct gpu_device *d, void *p, uint64_t size, struct error *err);
void gpu_host_unregister(struct gpu_device *d, void *p); /* NULL is fine */
/* Where a kernel finds pinned host memory. */
enum status gpu_host_pointer(struct gpu_device *d, void *host, gpu_ptr *p, struct error *err);
/* Both wait for all work of the device, then for the copy. */
enum status gpu_copy_to(struct gpu_device *d, gpu_ptr to, const void *from, uint64_t size, struct error *err);
enum status gpu_copy_from(struct gpu_device *d, void *to, gpu_ptr from, uint64_t size, struct error *err);

enum status gpu_stream_create(struct gpu_device *d, struct gpu_stream **s, struct error *err);
void gpu_stream_destroy(struct gpu_stream **s);
void *gpu_stream_raw(const struct gpu_stream *s); /* CUstream */
enum status gpu_stream_wait(struct gpu_stream *s, struct error *err);
enum status gpu_stream_copy(struct gpu_stream *s, gpu_ptr to, gpu_ptr from, uint64_t size, struct error *err);
/* Host memory that is not pinned is staged by the driver, and the call may wait. */
enum status gpu_stream_copy_to(struct gpu_stream *s, gpu_ptr to, const void *from, uint64_t size,
			       struct error *err);
enum status gpu_stream_copy_from(struct gpu_stream *s, void *to, gpu_ptr from, uint64_t size,
				 struct error *err);
/* What follows on `s` waits for `e`, which may have been recorded on another stream. */
enum status gpu_stream_after(struct gpu_stream *s, const struct gpu_event *e, struct error *err);
enum status gpu_stream_fill32(struct gpu_stream *s, gpu_ptr to, uint32_t value, uint64_t words,
			      struct error *err);

/*
 * Two devices of one process. What is made on a device (memory, events, kernels, graphs) is made while it is
 * current on this thread; gpu_open leaves its own current.
 */
enum status gpu_current(struct gpu_device *d, struct error *err);
struct gpu_peer { /* of `d` towards `peer`, by the driver; -1: it does not say */
	bool access;
	int performance_rank, native_atomics;
};
enum status gpu_peer_attributes(const struct gpu_device *d, const struct gpu_device *peer,
				struct gpu_peer *out, struct error *err);
/* Kernels of `d` and copies between the two may reach the peer's memory directly from now on; `d` is current
 * afterwards. *possible false, with OK: the driver allows it not, and copies go through the host. */
enum status gpu_peer_enable(struct gpu_device *d, const struct gpu_device *peer, bool *possible,
			    struct error *err);
/* `s` belongs to either of the two; its device is the one that should be current. */
enum status gpu_stream_copy_peer(struct gpu_stream *s, gpu_ptr to, const struct gpu_device *to_device,
				 gpu_ptr from, const struct gpu_device *from_device, uint64_t size,
				 struct error *err);

enum status gpu_event_create(struct gpu_device *d, struct gpu_event **e, struct error *err);
void gpu_event_destroy(struct gpu_event **e);
enum status gpu_event_record(struct gpu_event *e, struct gpu_stream *s, struct error *err);
/* While `s` captures: the graph records it each time it runs. What only forks and joins the capture is
 * gpu_event_record. */
enum status gpu_event_record_captured(struct gpu_event *e, struct gpu_stream *s, struct error *err);
enum status gpu_event_elapsed_ns(const struct gpu_event *from, const struct gpu_event *to, double *ns,
				 struct error *err);
bool gpu_event_done(const struct gpu_event *e);
enum status gpu_event_wait(const struct gpu_event *e, struct error *err);

/* Kernels by file and entry name from the embedded fatbins ("memory", "copy_v3"). UNSUPPORTED where the file
 * holds no code for this device. Lent, cached for the device's life. */
enum status gpu_kernel(struct gpu_device *d, struct gpu_kernel **k, const char *file, const char *entry,
		       struct error *err);
/* One argument: the struct shared with the kernel. shared_bytes above 48 KiB is opted into. */
enum status gpu_launch(struct gpu_kernel *k, struct gpu_stream *s, const unsigned grid[3],
		       const unsigned block[3], unsigned shared_bytes, const void *args, struct error *err);
enum status gpu_launch_1d(struct gpu_kernel *k, struct gpu_stream *s, unsigned blocks, unsigned threads,
			  unsigned shared_bytes, const void *args, struct error *err);
/* As gpu_launch_1d, all blocks at once on the device, so that they may wait for each other; refused where
 * they do not fit. */
enum status gpu_launch_together(struct gpu_kernel *k, struct gpu_stream *s, unsigned blocks, unsigned threads,
				unsigned shared_bytes, const void *args, struct error *err);
/* Blocks of this kernel an SM holds at once. */
enum status gpu_kernel_occupancy(struct gpu_kernel *k, unsigned threads, unsigned shared_bytes,
				 unsigned *blocks, struct error *err);

enum status gpu_capture_begin(struct gpu_stream *s, struct error *err);
enum status gpu_capture_end(struct gpu_stream *s, struct gpu_graph **g, struct error *err);
enum status gpu_graph_launch(struct gpu_graph *g, struct gpu_stream *s, struct error *err);
void gpu_graph_destroy(struct gpu_graph **g);

/*
 * Held clock: a stamp kernel writes (SM id, clock64, globaltimer) on every SM. Enqueue one before and one
 * after the window, wait, then read: f = cycles / ns on each SM. METHODS "The held clock". UNAVAILABLE: other
 * work has most SMs, so the clock is not known; that is no fault of what was timed.
 */
struct gpu_stamps;
struct gpu_clock {
	double hz_mean, hz_min, hz_max;
	double ns; /* between the two stamps by the device's timer, mean over SMs */
	unsigned sms;
};
enum status gpu_stamps_create(struct gpu_device *d, struct gpu_stamps **s, struct error *err);
enum status gpu_stamps_enqueue(struct gpu_stamps *s, unsigned which /* 0 before, 1 after */,
			       struct gpu_stream *stream, struct error *err);
enum status gpu_stamps_read(struct gpu_stamps *s, struct gpu_clock *out, struct error *err);
void gpu_stamps_destroy(struct gpu_stamps **s);
#endif
