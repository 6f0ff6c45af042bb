/* SPDX-License-Identifier: Apache-2.0 */
/* Test data of transfers: generated on a device, and after the transfer compared word by word with the
 * expected data. */
#ifndef PROBE_SHARED_TRANSFER_DATA_H
#define PROBE_SHARED_TRANSFER_DATA_H
#include "gpu/device/gpu.h"
#include "run/probe.h"

/* Written to the destination before a transfer. Only one generated word in 2^32 has this value. */
#define TRANSFER_DATA_POISON 0xffffffffu

/* Allocates `bytes` on the device, which must be current, and fills word i from Philox stream `stream`.
 * Owner: caller, gpu_free. */
enum status transfer_data_generate(struct gpu_device *d, struct gpu_stream *s, gpu_ptr *out, uint64_t bytes,
				   uint64_t seed, uint32_t stream, struct error *err);

struct transfer_data_found {
	uint64_t count, first; /* count of wrong words; index of the first */
	uint32_t word;	       /* value of the first wrong word */
};
/* Compares data with the expected data on the device. `record` holds a struct compare_record and comes from
 * transfer_data_record. Waits for the stream. */
enum status transfer_data_compare(struct gpu_device *d, struct gpu_stream *s, gpu_ptr data, gpu_ptr expected,
				  gpu_ptr record, uint64_t bytes, struct transfer_data_found *out,
				  struct error *err);
enum status transfer_data_record(struct gpu_device *d, gpu_ptr *record, struct error *err);
/* MISMATCH if words are wrong; the message gives their number and the first one. */
enum status transfer_data_judge(const char *probe, const struct wrong *w, struct error *err);
#endif
