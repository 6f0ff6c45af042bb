/* SPDX-License-Identifier: Apache-2.0 */
/* Words that cross a link: made on a device, and compared with what should have come, every one of them. */
#ifndef PROBE_SHARED_TRANSFER_DATA_H
#define PROBE_SHARED_TRANSFER_DATA_H
#include "gpu/device/gpu.h"
#include "run/probe.h"

/* What is there before a copy: expected of one word in 2^32. */
#define TRANSFER_DATA_POISON 0xffffffffu

/* Word i of a Philox stream, `bytes` of them, on the device that is current. Owner: caller, gpu_free. */
enum status transfer_data_generate(struct gpu_device *d, struct gpu_stream *s, gpu_ptr *out, uint64_t bytes,
				   uint64_t seed, uint32_t stream, struct error *err);

struct transfer_data_found {
	uint64_t count, first; /* wrong words; the first of them */
	uint32_t word;	       /* what stands there */
};
/* `record` is room for a struct compare_record (transfer_data_record). Waits for the stream. */
enum status transfer_data_compare(struct gpu_device *d, struct gpu_stream *s, gpu_ptr data, gpu_ptr expected,
				  gpu_ptr record, uint64_t bytes, struct transfer_data_found *out,
				  struct error *err);
enum status transfer_data_record(struct gpu_device *d, gpu_ptr *record, struct error *err);
/* MISMATCH where words were wrong, with their number and the first of them. */
enum status transfer_data_judge(const char *probe, const struct wrong *w, struct error *err);
#endif
