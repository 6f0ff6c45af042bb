/* SPDX-License-Identifier: Apache-2.0 */
/* Counters over a range of work. The caller defines the ranges and repeats the work for each pass. */
#include <errno.h>
#include <math.h>
#include "counter/internal.h"
#include "gpu/device/gpu.h"

struct counter_range {
	struct counter_host host;
	void *profiler;
	unsigned number; /* number of the next range of the pass */
	bool started, pushed;
};

/* Allocates room for the ranges and sets how they are counted. */
static enum status configure(struct counter_range *r, unsigned ranges, struct error *err)
{
	struct counter_host *h = &r->host;
	struct cupti_range_data_size size =
		CUPTI_PARAMS(range_data_size, .profiler = r->profiler, .metrics = h->metric,
			     .count = h->count, .ranges = ranges, .nodes = ranges);
	enum status st = CUPTI_CALL(&h->cu, err, range_data_size, &size);

	if (st)
		return st;
	h->data_size = size.data_size;
	h->data = calloc(1, size.data_size ? size.data_size : 1);
	if (!h->data)
		return error_errno(err, ENOMEM, "the data of %zu counters", h->count);
	st = CUPTI_CALL(&h->cu, err, range_data,
			&CUPTI_PARAMS(range_data, .profiler = r->profiler, .data_size = h->data_size,
				      .data = h->data));
	if (st)
		return st;
	return CUPTI_CALL(&h->cu, err, range_config,
			  &CUPTI_PARAMS(range_config, .profiler = r->profiler, .image = h->image,
					.image_size = h->image_size, .data = h->data,
					.data_size = h->data_size, .range = CUPTI_UserRange,
					.replay = CUPTI_UserReplay, .ranges = ranges, .levels = 1,
					.level_min = 1, .level = 1));
}

static void choose(struct counter_host *h, const struct counter_request *wish)
{
	for (unsigned i = 0; i < COUNTER_METRIC_COUNT; i++) {
		const struct counter_row *row = &counter_rows[i];

		if (row->set & wish->sets)
			counter_host_choose(h, i,
					    row->metric ? row->metric : counter_tensor_metric(wish->type));
	}
}

enum status counter_range_open(struct counter_range **out, const struct gpu_device *d,
			       const struct counter_request *wish, struct error *err)
{
	struct counter_range *r = calloc(1, sizeof(*r));
	struct cupti_range_enable enable = CUPTI_PARAMS(range_enable, .context = gpu_context_raw(d));
	enum status st;

	*out = NULL;
	if (!r)
		return error_errno(err, ENOMEM, "the counters of %s", gpu_name(d));
	st = counter_host_open(&r->host, d, CUPTI_PROFILER_TYPE_RANGE_PROFILER, err);
	if (!st) {
		choose(&r->host, wish);
		st = counter_host_configure(&r->host, err);
	}
	if (!st)
		st = CUPTI_CALL(&r->host.cu, err, range_enable, &enable);
	if (!st) {
		r->profiler = enable.profiler;
		st = configure(r, wish->ranges ? wish->ranges : 1, err);
	}
	if (st)
		counter_range_close(&r);
	*out = r;
	return st;
}

void counter_range_close(struct counter_range **r)
{
	struct cupti *cu;

	if (!*r)
		return;
	cu = &(*r)->host.cu;
	if ((*r)->pushed)
		(void)cu->range_pop(&CUPTI_PARAMS(range_pop, .profiler = (*r)->profiler));
	if ((*r)->started)
		(void)cu->range_stop(&CUPTI_PARAMS(range_stop, .profiler = (*r)->profiler));
	if ((*r)->profiler)
		(void)cu->range_disable(&CUPTI_PARAMS(range_disable, .profiler = (*r)->profiler));
	counter_host_close(&(*r)->host);
	free(*r);
	*r = NULL;
}

unsigned counter_range_passes(const struct counter_range *r)
{
	return r->host.passes;
}

enum status counter_range_begin(struct counter_range *r, struct error *err)
{
	enum status st = CUPTI_CALL(&r->host.cu, err, range_start,
				    &CUPTI_PARAMS(range_start, .profiler = r->profiler));

	r->started = !st;
	r->number = 0;
	return st;
}

enum status counter_range_push(struct counter_range *r, struct error *err)
{
	char name[16]; /* unique, because ranges of one name are counted as one */
	enum status st;

	snprintf(name, sizeof(name), "%u", r->number++);
	st = CUPTI_CALL(&r->host.cu, err, range_push,
			&CUPTI_PARAMS(range_push, .profiler = r->profiler, .name = name));
	r->pushed = !st;
	return st;
}

enum status counter_range_pop(struct counter_range *r, struct error *err)
{
	r->pushed = false;
	return CUPTI_CALL(&r->host.cu, err, range_pop, &CUPTI_PARAMS(range_pop, .profiler = r->profiler));
}

enum status counter_range_end(struct counter_range *r, bool *done, struct error *err)
{
	struct cupti_range_stop stop = CUPTI_PARAMS(range_stop, .profiler = r->profiler);
	enum status st = CUPTI_CALL(&r->host.cu, err, range_stop, &stop);

	r->started = st != STATUS_OK;
	*done = stop.all;
	if (!st && stop.all)
		st = CUPTI_CALL(&r->host.cu, err, range_decode,
				&CUPTI_PARAMS(range_decode, .profiler = r->profiler));
	return st;
}

enum status counter_range_read(struct counter_range *r, unsigned index, struct counter_values *out,
			       struct error *err)
{
	struct counter_host *h = &r->host;
	struct cupti_range_info info = CUPTI_PARAMS(range_info, .data = h->data, .data_size = h->data_size);
	double value[COUNTER_CHOSEN_MAX];
	enum status st = CUPTI_CALL(&h->cu, err, range_info, &info);

	*out = (struct counter_values){0};
	if (!st && index >= info.ranges)
		st = error_set_cause(err, STATUS_VENDOR, CAUSE_VENDOR_CALL,
				     "CUPTI counted only %zu ranges of %s and dropped the later ones",
				     info.ranges, h->device_name);
	if (!st)
		st = counter_host_values(h, index, value, err);
	for (size_t i = 0; !st && i < h->count; i++) {
		/* Values that the hardware did not count are not finite. */
		out->has[h->row[i]] = isfinite(value[i]);
		out->value[h->row[i]] = value[i] * counter_rows[h->row[i]].factor;
	}
	return st;
}
