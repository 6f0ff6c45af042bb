/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/shared/transfer_data.h"
#include <inttypes.h>
#include "kernel/test_data/numbers.h"

enum { PER_SM = 4, THREADS = 256 };

enum status transfer_data_generate(struct gpu_device *d, struct gpu_stream *s, gpu_ptr *out, uint64_t bytes,
				   uint64_t seed, uint32_t stream, struct error *err)
{
	struct gpu_kernel *fill;
	enum status st = gpu_alloc(d, out, bytes, err);

	if (!st)
		st = gpu_kernel(d, &fill, "data", "fill_words", err);
	return st ? st
		  : gpu_launch_1d(fill, s, PER_SM * gpu_sm_count(d), THREADS, 0,
				  &(struct fill_args){
					  .out = *out, .count = bytes / 4, .seed = seed, .stream = stream},
				  err);
}

enum status transfer_data_record(struct gpu_device *d, gpu_ptr *record, struct error *err)
{
	return gpu_alloc(d, record, sizeof(struct compare_record), err);
}

enum status transfer_data_compare(struct gpu_device *d, struct gpu_stream *s, gpu_ptr data, gpu_ptr expected,
				  gpu_ptr record, uint64_t bytes, struct transfer_data_found *out,
				  struct error *err)
{
	struct compare_record r = {.first = UINT64_MAX};
	struct gpu_kernel *compare;
	enum status st = gpu_kernel(d, &compare, "data", "compare", err);

	*out = (struct transfer_data_found){0};
	if (!st)
		st = gpu_copy_to(d, record, &r, sizeof(r), err);
	if (!st)
		st = gpu_launch_1d(compare, s, PER_SM * gpu_sm_count(d), THREADS, 0,
				   &(struct hash_args){data, expected, record, bytes / 4}, err);
	if (!st)
		st = gpu_copy_from(d, &r, record, sizeof(r), err);
	if (st || !r.count)
		return st;
	out->count = r.count;
	out->first = r.first;
	return gpu_copy_from(d, &out->word, data + 4 * r.first, sizeof(out->word), err);
}

enum status transfer_data_judge(const char *probe, const struct wrong *w, struct error *err)
{
	if (!w->count)
		return STATUS_OK;
	return error_set_cause(err, STATUS_MISMATCH, CAUSE_WRONG_RESULT,
			       "%s: %" PRIu64 " of %" PRIu64
			       " words are wrong, the first is %s: expected %.0f, found %.0f",
			       probe, w->count, w->checked, w->place, w->expected, w->found);
}
