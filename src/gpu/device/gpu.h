/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A narrow interface to the CUDA driver API: device, stream, event, buffer, module and graph. Only worker
 * processes use it. Every call returns a status and puts the driver's message in *err. No call exits the
 * process.
 */
#ifndef GPU_DEVICE_GPU_H
#define GPU_DEVICE_GPU_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

struct cuda; /* vendor/cuda.h: the driver's function table */
struct gpu_device;
struct gpu_stream;
struct gpu_event;
struct gpu_graph;
struct gpu_kernel;
typedef uint64_t gpu_ptr; /* a CUdeviceptr; never dereferenced here */

/* Opens the driver and the device with this PCI address (NULL: CUDA's first), and makes its primary context
 * current on this thread. Owner: caller, gpu_close. UNAVAILABLE: no driver; LOST: the device is listed but
 * does not respond. */
enum status gpu_open(struct gpu_device **d, const char *pci, struct error *err);
void gpu_close(struct gpu_device **d);
/* For example "NVIDIA H100 80GB HBM3 (0000:1B:00.0)", for messages. Lent. */
const char *gpu_name(const struct gpu_device *d);
/* Driver attribute by its CUdevice_attribute number; -1 if the driver refuses. */
int gpu_attribute(const struct gpu_device *d, int attribute);
/* Maximum bytes of shared memory per block (opt-in); 0 if the driver refuses. */
unsigned gpu_shared_most(const struct gpu_device *d);
unsigned gpu_sm_count(const struct gpu_device *d);
unsigned gpu_cc(const struct gpu_device *d);	   /* 90 for sm_90 */
int gpu_ordinal(const struct gpu_device *d);	   /* CUDA's device number in this process: a CUdevice */
void *gpu_context_raw(const struct gpu_device *d); /* CUcontext */
/* DRAM rate in bytes per second: 2 x memory clock x bus width. 0 if the driver does not report it. */
double gpu_dram_rate(const struct gpu_device *d);
enum status gpu_memory(const struct gpu_device *d, uint64_t *free_bytes, uint64_t *total_bytes,
		       struct error *err);
/* Bytes that gpu_alloc would allocate now, over all calls together; 0 if the driver does not report it. */
uint64_t gpu_memory_usable(const struct gpu_device *d);
enum status gpu_synchronize(struct gpu_device *d, struct error *err);

/* Free device memory that gpu_alloc never takes (docs/explanation/methods/gpu-memory-and-links.md, "Device
 * memory"). Planning must leave as much. */
#define GPU_LEAVE_BYTES ((uint64_t)2 << 30)
/* Allocates device memory. It always leaves GPU_LEAVE_BYTES free, else it fails with NO_RESOURCE and cause
 * NO_MEMORY. */
enum status gpu_alloc(struct gpu_device *d, gpu_ptr *p, uint64_t size, struct error *err);
void gpu_free(struct gpu_device *d, gpu_ptr *p); /* *p may be 0; becomes 0 */
enum status gpu_host_alloc(struct gpu_device *d, void **p, uint64_t size, struct error *err); /* pinned */
void gpu_host_free(struct gpu_device *d, void **p);
/* Pins memory that the caller allocated, and maps it for the device. Undo this before freeing the memory. */
enum status gpu_host_register(struct gpu_device *d, void *p, uint64_t size, struct error *err);
void gpu_host_unregister(struct gpu_device *d, void *p); /* p may be NULL */
/* Device address of pinned host memory. */
enum status gpu_host_pointer(struct gpu_device *d, void *host, gpu_ptr *p, struct error *err);
/* Both wait for all work on the device, then for the copy. */
enum status gpu_copy_to(struct gpu_device *d, gpu_ptr to, const void *from, uint64_t size, struct error *err);
enum status gpu_copy_from(struct gpu_device *d, void *to, gpu_ptr from, uint64_t size, struct error *err);

enum status gpu_stream_create(struct gpu_device *d, struct gpu_stream **s, struct error *err);
void gpu_stream_destroy(struct gpu_stream **s);
void *gpu_stream_raw(const struct gpu_stream *s); /* CUstream */
enum status gpu_stream_wait(struct gpu_stream *s, struct error *err);
enum status gpu_stream_copy(struct gpu_stream *s, gpu_ptr to, gpu_ptr from, uint64_t size, struct error *err);
/* If the host memory is not pinned, the driver stages it, and the call may wait. */
enum status gpu_stream_copy_to(struct gpu_stream *s, gpu_ptr to, const void *from, uint64_t size,
			       struct error *err);
enum status gpu_stream_copy_from(struct gpu_stream *s, void *to, gpu_ptr from, uint64_t size,
				 struct error *err);
/* Later work on `s` waits for `e`, which may have been recorded on another stream. */
enum status gpu_stream_after(struct gpu_stream *s, const struct gpu_event *e, struct error *err);
/* Writes one word when all earlier work of the stream has ended. UNSUPPORTED: this driver cannot do it. */
enum status gpu_stream_write32(struct gpu_stream *s, gpu_ptr to, uint32_t value, struct error *err);
enum status gpu_stream_fill32(struct gpu_stream *s, gpu_ptr to, uint32_t value, uint64_t words,
			      struct error *err);

/*
 * Two devices in one process. Memory, events, kernels and graphs of a device must be created while it is
 * current on this thread. gpu_open leaves its own device current.
 */
enum status gpu_current(struct gpu_device *d, struct error *err);
struct gpu_peer { /* what the driver reports for `d` accessing `peer`; -1: not reported */
	bool access;
	int performance_rank, native_atomics;
};
enum status gpu_peer_attributes(const struct gpu_device *d, const struct gpu_device *peer,
				struct gpu_peer *out, struct error *err);
/* Lets kernels of `d`, and copies between the two, access the peer's memory directly from now on. `d` is
 * current afterwards. If the driver does not allow this, the status is OK with *possible false, and copies go
 * through the host. */
enum status gpu_peer_enable(struct gpu_device *d, const struct gpu_device *peer, bool *possible,
			    struct error *err);
/* `s` belongs to either device, and that device should be current. */
enum status gpu_stream_copy_peer(struct gpu_stream *s, gpu_ptr to, const struct gpu_device *to_device,
				 gpu_ptr from, const struct gpu_device *from_device, uint64_t size,
				 struct error *err);

enum status gpu_event_create(struct gpu_device *d, struct gpu_event **e, struct error *err);
/* An event whose wait sleeps instead of spinning, and which cannot be timed. */
enum status gpu_event_create_sleeping(struct gpu_device *d, struct gpu_event **e, struct error *err);
void gpu_event_destroy(struct gpu_event **e);
enum status gpu_event_record(struct gpu_event *e, struct gpu_stream *s, struct error *err);
/* Records an event while `s` captures, so that the graph records it each time it runs. To fork and join
 * within a capture, use gpu_event_record. */
enum status gpu_event_record_captured(struct gpu_event *e, struct gpu_stream *s, struct error *err);
enum status gpu_event_elapsed_ns(const struct gpu_event *from, const struct gpu_event *to, double *ns,
				 struct error *err);
bool gpu_event_done(const struct gpu_event *e);
enum status gpu_event_wait(const struct gpu_event *e, struct error *err);

/* Finds a kernel by file and entry name in the embedded fatbins ("memory", "copy_v3"). UNSUPPORTED: the file
 * has no code for this device. Lent, cached until gpu_close. */
enum status gpu_kernel(struct gpu_device *d, struct gpu_kernel **k, const char *file, const char *entry,
		       struct error *err);
/* Launches with one argument: the struct shared with the kernel. The function opts in to shared_bytes above
 * 48 KiB. */
enum status gpu_launch(struct gpu_kernel *k, struct gpu_stream *s, const unsigned grid[3],
		       const unsigned block[3], unsigned shared_bytes, const void *args, struct error *err);
enum status gpu_launch_1d(struct gpu_kernel *k, struct gpu_stream *s, unsigned blocks, unsigned threads,
			  unsigned shared_bytes, const void *args, struct error *err);
/* As gpu_launch, but the kernel may begin while the one before it on the stream ends (programmatic dependent
 * launch). It must wait for that one by itself before it reads or writes what others may write or read
 * (kernel/step/device.cuh). Devices and drivers without this launch as usual. Can be captured. */
enum status gpu_launch_early(struct gpu_kernel *k, struct gpu_stream *s, const unsigned grid[3],
			     const unsigned block[3], unsigned shared_bytes, const void *args,
			     struct error *err);
/* As gpu_launch_1d, with all blocks resident at once (cooperative), so they may wait for each other. Fails if
 * they do not fit. */
enum status gpu_launch_together(struct gpu_kernel *k, struct gpu_stream *s, unsigned blocks, unsigned threads,
				unsigned shared_bytes, const void *args, struct error *err);
/* A launch of blocks in clusters, from sm_90 on. */
struct gpu_cluster_launch {
	unsigned blocks; /* a multiple of the cluster */
	unsigned threads, shared_bytes;
	unsigned cluster; /* blocks of a cluster, 1 .. 8 */
	/* Programmatic dependent launch: the kernel may begin before the stream's last kernel has ended. It
	 * then waits for that itself (griddepcontrol.wait). */
	bool overlap;
};
/* UNAVAILABLE: the driver is older than CUDA 11.8. */
enum status gpu_launch_clusters(struct gpu_kernel *k, struct gpu_stream *s,
				const struct gpu_cluster_launch *l, const void *args, struct error *err);
/* Number of such clusters that fit on the device at once. `blocks` is not read. */
enum status gpu_kernel_clusters(struct gpu_kernel *k, const struct gpu_cluster_launch *l, unsigned *clusters,
				struct error *err);
/* Number of blocks of this kernel that fit on an SM at once. */
enum status gpu_kernel_occupancy(struct gpu_kernel *k, unsigned threads, unsigned shared_bytes,
				 unsigned *blocks, struct error *err);

enum status gpu_capture_begin(struct gpu_stream *s, struct error *err);
enum status gpu_capture_end(struct gpu_stream *s, struct gpu_graph **g, struct error *err);
enum status gpu_graph_launch(struct gpu_graph *g, struct gpu_stream *s, struct error *err);
void gpu_graph_destroy(struct gpu_graph **g);

/*
 * Measured SM clock. A stamp kernel writes (SM id, clock64, globaltimer) on every SM. Enqueue one before and
 * one after the window, wait, then read: f = cycles / ns on each SM
 * (docs/explanation/methods/gpu-memory-and-links.md, "Measured SM clock"). UNAVAILABLE: other work occupies
 * most SMs, so the clock is not known. The timed work itself is not at fault.
 */
struct gpu_stamps;
struct gpu_clock {
	double hz_mean, hz_min, hz_max;
	double ns; /* time between the two stamps by the device's timer, mean over SMs */
	unsigned sms;
};
enum status gpu_stamps_create(struct gpu_device *d, struct gpu_stamps **s, struct error *err);
enum status gpu_stamps_enqueue(struct gpu_stamps *s, unsigned which /* 0 before, 1 after */,
			       struct gpu_stream *stream, struct error *err);
enum status gpu_stamps_read(struct gpu_stamps *s, struct gpu_clock *out, struct error *err);
void gpu_stamps_destroy(struct gpu_stamps **s);
#endif
