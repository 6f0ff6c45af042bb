/* SPDX-License-Identifier: Apache-2.0 */
/* Counters sampled by time. The hardware samples into a ring, which is decoded into an image with room for
 * `room` samples. */
#include <errno.h>
#include <math.h>
#include "counter/internal.h"
#include "gpu/device/gpu.h"

enum { BUFFER_BYTES = 128 << 20, SYSTEM_CLOCK_MHZ = 1700, NO_INTERVAL_CC = 80 };

struct counter_sampling {
	struct counter_host host;
	void *sampler;
	bool started;
};

/* Empties the image. Each read fills it again. */
static enum status empty(struct counter_sampling *s, struct error *err)
{
	return CUPTI_CALL(&s->host.cu, err, pm_data,
			  &CUPTI_PARAMS(pm_data, .sampler = s->sampler, .data_size = s->host.data_size,
					.data = s->host.data));
}

/* GA100 has no time trigger. There the interval is in cycles of the system clock, whose rate is close
 * enough. */
static enum status configure(struct counter_sampling *s, const struct gpu_device *d, uint64_t interval_ns,
			     unsigned room, struct error *err)
{
	struct counter_host *h = &s->host;
	bool timed = gpu_cc(d) > NO_INTERVAL_CC;
	struct cupti_pm_data_size size =
		CUPTI_PARAMS(pm_data_size, .sampler = s->sampler, .metrics = h->metric, .count = h->count,
			     .samples = room);
	enum status st = CUPTI_CALL(
		&h->cu, err, pm_config,
		&CUPTI_PARAMS(pm_config, .sampler = s->sampler, .image = h->image,
			      .image_size = h->image_size, .buffer_size = BUFFER_BYTES,
			      .interval = timed ? interval_ns : interval_ns * SYSTEM_CLOCK_MHZ / 1000,
			      .trigger = timed ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL
					       : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL,
			      .append = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST));

	if (!st)
		st = CUPTI_CALL(&h->cu, err, pm_data_size, &size);
	if (st)
		return st;
	h->data_size = size.data_size;
	h->data = calloc(1, size.data_size ? size.data_size : 1);
	return h->data ? empty(s, err) : error_errno(err, ENOMEM, "room for %u samples", room);
}

enum status counter_sampling_open(struct counter_sampling **out, const struct gpu_device *d,
				  uint64_t interval_ns, unsigned room, struct error *err)
{
	struct counter_sampling *s = calloc(1, sizeof(*s));
	struct cupti_pm_enable enable = CUPTI_PARAMS(pm_enable, .device = (size_t)gpu_ordinal(d));
	enum status st;

	*out = NULL;
	if (!s)
		return error_errno(err, ENOMEM, "the counters of %s", gpu_name(d));
	st = counter_host_open(&s->host, d, CUPTI_PROFILER_TYPE_PM_SAMPLING, err);
	if (!st) {
		for (unsigned i = 0; i < COUNTER_SAMPLED_COUNT; i++)
			counter_host_choose(&s->host, i, counter_sampled_rows[i].metric);
		st = counter_host_configure(&s->host, err);
	}
	if (!st)
		st = CUPTI_CALL(&s->host.cu, err, pm_enable, &enable);
	if (!st) {
		s->sampler = enable.sampler;
		st = configure(s, d, interval_ns, room, err);
	}
	if (st)
		counter_sampling_close(&s);
	*out = s;
	return st;
}

void counter_sampling_close(struct counter_sampling **s)
{
	if (!*s)
		return;
	if ((*s)->started)
		(void)counter_sampling_stop(*s, NULL);
	if ((*s)->sampler)
		(void)(*s)->host.cu.pm_disable(&CUPTI_PARAMS(pm_disable, .sampler = (*s)->sampler));
	counter_host_close(&(*s)->host);
	free(*s);
	*s = NULL;
}

bool counter_sampling_has(const struct counter_sampling *s, enum counter_sampled which)
{
	for (size_t i = 0; i < s->host.count; i++)
		if (s->host.row[i] == which)
			return true;
	return false;
}

enum status counter_sampling_start(struct counter_sampling *s, struct error *err)
{
	enum status st =
		CUPTI_CALL(&s->host.cu, err, pm_start, &CUPTI_PARAMS(pm_start, .sampler = s->sampler));

	s->started = !st;
	return st;
}

enum status counter_sampling_stop(struct counter_sampling *s, struct error *err)
{
	s->started = false;
	return CUPTI_CALL(&s->host.cu, err, pm_stop, &CUPTI_PARAMS(pm_stop, .sampler = s->sampler));
}

static enum status read_one(struct counter_sampling *s, size_t index, struct counter_sample *out,
			    struct error *err)
{
	struct counter_host *h = &s->host;
	struct cupti_pm_sample one = CUPTI_PARAMS(pm_sample, .sampler = s->sampler, .data = h->data,
						  .data_size = h->data_size, .sample = index);
	double value[COUNTER_CHOSEN_MAX];
	enum status st = CUPTI_CALL(&h->cu, err, pm_sample, &one);

	if (!st)
		st = counter_host_values(h, index, value, err);
	if (st)
		return st;
	*out = (struct counter_sample){.begin_ns = one.begin_ns, .end_ns = one.end_ns};
	for (size_t i = 0; i < h->count; i++)
		out->value[h->row[i]] = value[i] * counter_sampled_rows[h->row[i]].factor;
	return STATUS_OK;
}

enum status counter_sampling_read(struct counter_sampling *s, struct counter_sample *out, size_t most,
				  size_t *count, bool *lost, struct error *err)
{
	struct counter_host *h = &s->host;
	struct cupti_pm_decode decode =
		CUPTI_PARAMS(pm_decode, .sampler = s->sampler, .data = h->data, .data_size = h->data_size);
	struct cupti_pm_info info = CUPTI_PARAMS(pm_info, .data = h->data, .data_size = h->data_size);
	enum status st = CUPTI_CALL(&h->cu, err, pm_decode, &decode);

	*count = 0;
	*lost = decode.overflow;
	if (!st)
		st = CUPTI_CALL(&h->cu, err, pm_info, &info);
	for (size_t i = 0; !st && i < info.complete && *count < most; i++) {
		st = read_one(s, i, &out[*count], err);
		*count += !st;
	}
	return st ? st : empty(s, err);
}
