/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "counter/internal.h"
#include "gpu/device/gpu.h"

/* Reports the first unmet condition in one sentence. The flags are CUPTI's. */
static enum status unsupported(const struct counter_host *h, const struct cupti_supported *s,
			       struct error *err)
{
	const struct {
		int level;
		const char *what;
	} flags[] = {
		{s->architecture, "CUPTI does not support its architecture"},
		{s->sli, "SLI is on"},
		{s->vgpu, "it is a virtual GPU whose host does not allow profiling"},
		{s->confidential, "confidential computing is on"},
		{s->cmp, "mining processors have no counters"},
		{s->wsl, "WSL does not support it"},
	};
	const char *what = "CUPTI gives no reason";

	for (size_t i = sizeof(flags) / sizeof(flags[0]); i-- > 0;)
		if (flags[i].level == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED ||
		    flags[i].level == CUPTI_PROFILER_CONFIGURATION_DISABLED)
			what = flags[i].what;
	return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			       "the counters of %s cannot be read: %s", h->device_name, what);
}

static enum status ask_supported(struct counter_host *h, int type, struct error *err)
{
	struct cupti_supported s =
		CUPTI_PARAMS(supported, .device = h->device,
			     .api = type == CUPTI_PROFILER_TYPE_PM_SAMPLING ? CUPTI_PROFILER_PM_SAMPLING
									    : CUPTI_PROFILER_RANGE_PROFILING);
	enum status st = CUPTI_CALL(&h->cu, err, supported, &s);

	if (st)
		return st;
	return s.all == CUPTI_PROFILER_CONFIGURATION_SUPPORTED ? STATUS_OK : unsupported(h, &s, err);
}

static enum status image_room(struct counter_host *h, size_t size, struct error *err)
{
	h->availability = calloc(1, size ? size : 1);
	return h->availability ? STATUS_OK
			       : error_errno(err, ENOMEM, "the list of counters of %s", h->device_name);
}

/* Reads which counters this individual device has, because some are fused off. Two calls: the size, then the
 * image. */
static enum status read_availability(struct counter_host *h, const struct gpu_device *d, struct error *err)
{
	struct cupti_availability a = CUPTI_PARAMS(availability, .context = gpu_context_raw(d));
	enum status st = CUPTI_CALL(&h->cu, err, availability, &a);

	if (!st)
		st = image_room(h, a.image_size, err);
	a.image = h->availability;
	return st ? st : CUPTI_CALL(&h->cu, err, availability, &a);
}

/* As read_availability, for sampling, which has other counters. */
static enum status read_sampled(struct counter_host *h, struct error *err)
{
	struct cupti_pm_availability a = CUPTI_PARAMS(pm_availability, .device = (size_t)h->device);
	enum status st;

	if (!h->cu.pm_availability)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
			"this CUPTI cannot sample counters: that of CUDA 12.6 or newer is needed");
	st = CUPTI_CALL(&h->cu, err, pm_availability, &a);
	if (!st)
		st = image_room(h, a.image_size, err);
	a.image = h->availability;
	return st ? st : CUPTI_CALL(&h->cu, err, pm_availability, &a);
}

/* Opens a new host object. It contains no metrics. */
static enum status open_host(struct counter_host *h, struct error *err)
{
	struct cupti_host_open open =
		CUPTI_PARAMS(host_open, .type = h->type, .chip = h->chip, .availability = h->availability);
	enum status st;

	if (h->host)
		(void)h->cu.host_close(&CUPTI_PARAMS(host_close, .host = h->host));
	h->host = NULL;
	st = CUPTI_CALL(&h->cu, err, host_open, &open);
	h->host = open.host;
	return st;
}

enum status counter_host_open(struct counter_host *h, const struct gpu_device *d, int type, struct error *err)
{
	struct cupti_chip chip = CUPTI_PARAMS(chip, .device = (size_t)gpu_ordinal(d));
	enum status st = cupti_load(&h->cu, NULL, err);

	h->device = gpu_ordinal(d);
	h->type = type;
	h->device_name = gpu_name(d);
	if (st)
		return st;
	st = CUPTI_CALL(&h->cu, err, initialize, &CUPTI_PARAMS(initialize, .priv = NULL));
	if (st)
		return st;
	h->initialized = true;
	st = ask_supported(h, type, err);
	if (!st)
		st = CUPTI_CALL(&h->cu, err, chip, &chip);
	if (!st)
		st = type == CUPTI_PROFILER_TYPE_PM_SAMPLING ? read_sampled(h, err)
							     : read_availability(h, d, err);
	if (st)
		return st;
	snprintf(h->chip, sizeof(h->chip), "%s", chip.chip);
	return open_host(h, err);
}

void counter_host_close(struct counter_host *h)
{
	if (h->host)
		(void)h->cu.host_close(&CUPTI_PARAMS(host_close, .host = h->host));
	if (h->initialized)
		(void)h->cu.deinitialize(&CUPTI_PARAMS(deinitialize, .priv = NULL));
	free(h->availability);
	free(h->image);
	free(h->data);
	*h = (struct counter_host){0};
}

static bool known(struct counter_host *h, const char *metric)
{
	return !h->cu.host_properties(&CUPTI_PARAMS(host_properties, .host = h->host, .metric = metric));
}

void counter_host_choose(struct counter_host *h, unsigned row, const char *metrics)
{
	while (metrics && *metrics && h->count < COUNTER_CHOSEN_MAX) {
		size_t n = strcspn(metrics, "|");

		snprintf(h->name[h->count], sizeof(h->name[0]), "%.*s", (int)n, metrics);
		metrics += n + (metrics[n] == '|');
		if (!known(h, h->name[h->count]))
			continue;
		h->metric[h->count] = h->name[h->count];
		h->row[h->count++] = row;
		return;
	}
}

/* Adds all metrics in one call. Added one by one, each would need passes of its own. */
static enum status add(struct counter_host *h, const char **metrics, size_t count, struct error *err)
{
	return CUPTI_CALL(&h->cu, err, host_add,
			  &CUPTI_PARAMS(host_add, .host = h->host, .metrics = metrics, .count = count));
}

/* Keeps the metrics that can be added one by one. A device may lack parts that its chip has, such as links.
 * CUPTI knows their metrics, but one of them makes the call that adds all metrics fail. */
static enum status keep_countable(struct counter_host *h, struct error *err)
{
	struct error why = {0};
	enum status st = STATUS_OK;
	size_t kept = 0;

	for (size_t i = 0; i < h->count && !st; i++) {
		st = open_host(h, err);
		if (st || add(h, &h->metric[i], 1, &why))
			continue;
		h->metric[kept] = h->metric[i];
		h->row[kept++] = h->row[i];
	}
	h->count = st ? h->count : kept;
	return st ? st : open_host(h, err);
}

static enum status add_chosen(struct counter_host *h, struct error *err)
{
	struct error why = {0};

	if (!add(h, h->metric, h->count, &why))
		return STATUS_OK;
	if (keep_countable(h, err))
		return err->status;
	if (h->count)
		return add(h, h->metric, h->count, err);
	*err = why;
	return why.status;
}

enum status counter_host_configure(struct counter_host *h, struct error *err)
{
	struct cupti_host_image_size size = CUPTI_PARAMS(host_image_size, .image_size = 0);
	struct cupti_host_image image = CUPTI_PARAMS(host_image, .image_size = 0);
	struct cupti_host_passes passes = CUPTI_PARAMS(host_passes, .passes = 0);
	enum status st;

	if (!h->count)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "CUPTI knows none of our metrics for %s", h->device_name);
	st = add_chosen(h, err);
	size.host = image.host = h->host; /* a new object if metrics were dropped */
	if (!st)
		st = CUPTI_CALL(&h->cu, err, host_image_size, &size);
	if (st)
		return st;
	h->image = calloc(1, size.image_size ? size.image_size : 1);
	if (!h->image)
		return error_errno(err, ENOMEM, "the configuration of %zu counters", h->count);
	h->image_size = image.image_size = passes.image_size = size.image_size;
	image.image = passes.image = h->image;
	st = CUPTI_CALL(&h->cu, err, host_image, &image);
	if (!st)
		st = CUPTI_CALL(&h->cu, err, host_passes, &passes);
	h->passes = (unsigned)passes.passes;
	return st;
}

enum status counter_host_values(struct counter_host *h, size_t index, double *values, struct error *err)
{
	return CUPTI_CALL(&h->cu, err, host_evaluate,
			  &CUPTI_PARAMS(host_evaluate, .host = h->host, .data = h->data,
					.data_size = h->data_size, .range = index, .metrics = h->metric,
					.count = h->count, .values = values));
}
