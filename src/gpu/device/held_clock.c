/* SPDX-License-Identifier: Apache-2.0 */
/* Measured SM clock: f = cycles / ns between two stamps, for each SM.
 * docs/explanation/methods/gpu-memory-and-links.md, "Measured SM clock". */
#include "gpu/device/gpu.h"
#include "gpu/device/internal.h"
#include "kernel/timing/stamp.h"

enum { SLOTS = 1024 }; /* %smid is below this on every known device; SMs above it are not stamped */

struct gpu_stamps {
	struct gpu_device *device;
	struct gpu_kernel *kernel;
	gpu_ptr record[2];
	uint32_t sequence, written[2]; /* the launch that wrote each of the two sets of records; 0: none */
};

enum status gpu_stamps_create(struct gpu_device *d, struct gpu_stamps **out, struct error *err)
{
	struct gpu_stamps *s = calloc(1, sizeof(*s));
	static const struct stamp_record never[SLOTS];
	enum status st;

	*out = NULL;
	if (!s)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for stamps");
	s->device = d;
	st = gpu_kernel(d, &s->kernel, "stamp", "stamp", err);
	for (int i = 0; i < 2 && !st; i++) {
		st = gpu_alloc(d, &s->record[i], sizeof(never), err);
		if (!st)
			st = gpu_copy_to(d, s->record[i], never, sizeof(never), err);
	}
	if (st)
		gpu_stamps_destroy(&s);
	*out = s;
	return st;
}

enum status gpu_stamps_enqueue(struct gpu_stamps *s, unsigned which, struct gpu_stream *stream,
			       struct error *err)
{
	struct stamp_args args = {.record = s->record[which], .slots = SLOTS, .sequence = ++s->sequence};

	s->written[which] = s->sequence;
	return gpu_launch_1d(s->kernel, stream, 2 * gpu_sm_count(s->device), 32, 0, &args, err);
}

static enum status clock_of(struct gpu_stamps *s, const struct stamp_record *before,
			    const struct stamp_record *after, struct gpu_clock *out, struct error *err)
{
	double sum = 0;

	for (unsigned i = 0; i < SLOTS; i++) {
		double hz;

		if (before[i].sequence != s->written[0] || after[i].sequence != s->written[1] ||
		    after[i].ns <= before[i].ns || after[i].cycles <= before[i].cycles)
			continue;
		hz = (double)(after[i].cycles - before[i].cycles) * 1e9 /
		     (double)(after[i].ns - before[i].ns);
		sum += hz;
		out->ns += (double)(after[i].ns - before[i].ns);
		if (!out->sms || hz < out->hz_min)
			out->hz_min = hz;
		if (!out->sms || hz > out->hz_max)
			out->hz_max = hz;
		out->sms++;
	}
	/* A few SMs may miss a stamp because a neighbour took both blocks. If half of them miss it, other
	 * work fills the device, and blocks ran only where some of that work ended. Next to a kernel that
	 * took all 132 SMs, 3 to 61 were stamped. */
	if (2 * out->sms < gpu_sm_count(s->device))
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_BUSY,
				       "only %u of %u SMs were stamped: other work occupies the rest",
				       out->sms, gpu_sm_count(s->device));
	out->hz_mean = sum / out->sms;
	out->ns /= out->sms;
	return STATUS_OK;
}

enum status gpu_stamps_read(struct gpu_stamps *s, struct gpu_clock *out, struct error *err)
{
	struct stamp_record *record = calloc(2 * SLOTS, sizeof(*record));
	enum status st = STATUS_OK;

	*out = (struct gpu_clock){0};
	if (!record)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for stamps");
	for (unsigned i = 0; i < 2 && !st; i++)
		st = gpu_copy_from(s->device, record + i * SLOTS, s->record[i], SLOTS * sizeof(*record), err);
	if (!st)
		st = clock_of(s, record, record + SLOTS, out, err);
	free(record);
	return st;
}

void gpu_stamps_destroy(struct gpu_stamps **s)
{
	if (!*s)
		return;
	gpu_free((*s)->device, &(*s)->record[0]);
	gpu_free((*s)->device, &(*s)->record[1]);
	free(*s);
	*s = NULL;
}
