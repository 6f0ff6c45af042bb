/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of one GPU by NVML. The fast signals need one call each for fields, clock and clock event reasons
 * per tick. */
#include "telemetry/sample.h"
#include "core/math/plausible_range.h"

/* Fields read in one call: signal, field, factor from the field's unit to the signal's. */
static const struct {
	enum telemetry_signal_id id;
	unsigned field;
	double scale;
} fields[] = {
	{TELEMETRY_power_w, NVML_FIELD_power_instant, 1e-3},
	{TELEMETRY_energy_j, NVML_FIELD_energy_total, 1e-3},
	{TELEMETRY_violation_power_s, NVML_FIELD_violation_power, 1e-9},
	{TELEMETRY_violation_thermal_s, NVML_FIELD_violation_thermal, 1e-9},
	{TELEMETRY_violation_board_s, NVML_FIELD_violation_board, 1e-9},
	{TELEMETRY_violation_reliability_s, NVML_FIELD_violation_reliability, 1e-9},
	{TELEMETRY_temperature_memory_c, NVML_FIELD_memory_temperature, 1},
	{TELEMETRY_pcie_replays, NVML_FIELD_pcie_replay, 1},
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* signal, metric, factor from the metric's unit (percent, MiB/s) to the signal's. */
static const struct {
	enum telemetry_signal_id id;
	unsigned metric;
	double scale;
} gpm_metrics[] = {
	{TELEMETRY_gpm_sm_share, NVML_GPM_SM, 1e-2},
	{TELEMETRY_gpm_tensor_share, NVML_GPM_TENSOR, 1e-2},
	{TELEMETRY_gpm_dram_share, NVML_GPM_DRAM, 1e-2},
	{TELEMETRY_gpm_fp64_share, NVML_GPM_FP64, 1e-2},
	{TELEMETRY_gpm_fp32_share, NVML_GPM_FP32, 1e-2},
	{TELEMETRY_gpm_pcie_tx_rate, NVML_GPM_PCIE_TX, 1048576},
	{TELEMETRY_gpm_pcie_rx_rate, NVML_GPM_PCIE_RX, 1048576},
	{TELEMETRY_gpm_nvlink_rx_rate, NVML_GPM_NVLINK_RX, 1048576},
	{TELEMETRY_gpm_nvlink_tx_rate, NVML_GPM_NVLINK_TX, 1048576},
};
enum { GPM_METRICS = sizeof(gpm_metrics) / sizeof(gpm_metrics[0]) };

/* Errors that a later call will return too. */
static bool is_final(nvmlReturn_t ret)
{
	return nvml_lacks(ret) || ret == NVML_ERROR_NO_PERMISSION;
}

/* Adds a reading. An impossible value is left out, and one warning names the function that returned it.
 * `function` NULL: the one in core/math/plausible_range.h. */
static void add(struct sample_gpu *g, struct batch *b, enum telemetry_signal_id id, uint64_t t_ns,
		double value, const char *function)
{
	const struct telemetry_signal *signal = telemetry_signal_at(id);

	if (plausible(signal->name, value)) {
		batch_add(b, g->source, id, t_ns, value);
		return;
	}
	if (g->log && !(g->impossible >> id & 1))
		log_warn(g->log, LOG_TOPIC_RUN,
			 "%s: %s answered %.10g%s%s as %s, which is impossible: such readings are left out",
			 b->name[g->source], function ? function : plausible_of(signal->name)->function,
			 value, *signal->unit ? " " : "", signal->unit, signal->name);
	g->impossible |= 1u << id;
}

/* Reports once that a signal stopped, if the health of the GPU cannot be judged without it. */
static void tell(struct sample_gpu *g, struct batch *b, enum telemetry_signal_id id, nvmlReturn_t ret,
		 uint64_t t_ns)
{
	bool needed = id == TELEMETRY_sm_clock_mhz || id == TELEMETRY_temperature_c ||
		      id == TELEMETRY_clock_reasons;

	if (needed && g->heard_ns[id] && !(g->told >> id & 1))
		batch_add(b, g->source, TELEMETRY_nvml_error, t_ns, (double)ret);
	g->told |= 1u << id;
}

/* A call may fail once, or for a short time while the driver is busy. */
static bool failed_long(const struct sample_gpu *g, enum telemetry_signal_id id, uint64_t t_ns)
{
	uint64_t patience_ns = 1000000000u + 2000000ull * telemetry_signal_at(id)->period_ms;

	return t_ns > g->heard_ns[id] + patience_ns;
}

/* Handles the result of a call: a value, an unsupported signal, or a lost device. */
static void take(struct sample_gpu *g, struct batch *b, enum telemetry_signal_id id, nvmlReturn_t ret,
		 uint64_t t_ns, double value)
{
	if (ret == NVML_SUCCESS) {
		add(g, b, id, t_ns, value, NULL);
		g->heard_ns[id] = t_ns;
		g->told &= ~(1u << id);
	} else if (is_final(ret)) {
		schedule_never(&g->schedule, id);
		tell(g, b, id, ret, t_ns);
	} else if (ret == NVML_ERROR_GPU_IS_LOST || ret == NVML_ERROR_RESET_REQUIRED) {
		g->lost = true;
		batch_add(b, g->source, TELEMETRY_nvml_error, t_ns, (double)ret);
	} else if (failed_long(g, id, t_ns)) {
		tell(g, b, id, ret, t_ns);
	}
}

static uint64_t middle(uint64_t before_ns, const struct clock *clock)
{
	return before_ns + (clock_now_ns(clock) - before_ns) / 2;
}

/* Reads a signal without a field. Power: on GA100 and older, where the plain call is instantaneous; newer
 * GPUs return an average. Violation times: by the call that NVIDIA has deprecated. */
static nvmlReturn_t read_by_call(const struct sample_gpu *g, enum telemetry_signal_id id, double *value)
{
	nvmlViolationTime_t violation = {0};
	nvmlPerfPolicyType_t policy;
	int major = 0, minor = 0;
	unsigned mw = 0;
	nvmlReturn_t ret;

	switch ((int)id) {
	case TELEMETRY_power_w:
		if (!g->nvml->power || !g->nvml->compute_capability ||
		    g->nvml->compute_capability(g->device, &major, &minor) || 10 * major + minor > 80)
			return NVML_ERROR_NOT_SUPPORTED;
		ret = g->nvml->power(g->device, &mw);
		*value = mw * 1e-3;
		return ret;
	case TELEMETRY_violation_power_s:
		policy = NVML_PERF_POLICY_POWER;
		break;
	case TELEMETRY_violation_thermal_s:
		policy = NVML_PERF_POLICY_THERMAL;
		break;
	case TELEMETRY_violation_board_s:
		policy = NVML_PERF_POLICY_BOARD_LIMIT;
		break;
	case TELEMETRY_violation_reliability_s:
		policy = NVML_PERF_POLICY_RELIABILITY;
		break;
	default:
		return NVML_ERROR_NOT_SUPPORTED;
	}
	if (!g->nvml->violation_old)
		return NVML_ERROR_NOT_SUPPORTED;
	ret = g->nvml->violation_old(g->device, policy, &violation);
	*value = (double)violation.violationTime * 1e-9;
	return ret;
}

static void take_call(struct sample_gpu *g, struct batch *b, enum telemetry_signal_id id,
		      const struct clock *clock)
{
	uint64_t now = clock_now_ns(clock);
	double value = 0;
	nvmlReturn_t ret = read_by_call(g, id, &value);

	g->by_call |= 1u << id;
	take(g, b, id, ret, middle(now, clock), value);
}

static void take_field(struct sample_gpu *g, struct batch *b, unsigned row, const nvmlFieldValue_t *value,
		       uint64_t t_ns, const struct clock *clock)
{
	double number = 0;

	if (is_final(value->nvmlReturn))
		take_call(g, b, fields[row].id, clock);
	else if (value->nvmlReturn)
		take(g, b, fields[row].id, value->nvmlReturn, t_ns, 0);
	else if (nvml_field_f64(value, &number))
		add(g, b, fields[row].id, t_ns, number * fields[row].scale, "nvmlDeviceGetFieldValues");
}

static void tick_fields(struct sample_gpu *g, struct batch *b, const struct clock *clock)
{
	nvmlFieldValue_t values[FIELDS] = {0};
	unsigned row[FIELDS], count = 0, i;
	uint64_t now = clock_now_ns(clock), t_ns;
	nvmlReturn_t ret;

	for (i = 0; i < FIELDS; i++) {
		if (!schedule_due(&g->schedule, fields[i].id, now))
			continue;
		if (g->by_call >> fields[i].id & 1) {
			take_call(g, b, fields[i].id, clock);
			continue;
		}
		values[count].fieldId = fields[i].field;
		row[count++] = i;
	}
	if (!count)
		return;
	now = clock_now_ns(clock);
	ret = g->nvml->fields ? g->nvml->fields(g->device, (int)count, values)
			      : NVML_ERROR_FUNCTION_NOT_FOUND;
	t_ns = middle(now, clock);
	for (i = 0; i < count; i++) {
		if (ret)
			values[i].nvmlReturn = ret;
		take_field(g, b, row[i], &values[i], t_ns, clock);
	}
}

static void tick_clock(struct sample_gpu *g, struct batch *b, enum telemetry_signal_id id,
		       nvmlClockType_t type, const struct clock *clock)
{
	uint64_t now = clock_now_ns(clock);
	nvmlReturn_t ret;
	unsigned mhz = 0;

	if (!schedule_due(&g->schedule, id, now))
		return;
	ret = g->nvml->clock ? g->nvml->clock(g->device, type, &mhz) : NVML_ERROR_FUNCTION_NOT_FOUND;
	take(g, b, id, ret, middle(now, clock), mhz);
}

static void tick_reasons(struct sample_gpu *g, struct batch *b, const struct clock *clock)
{
	uint64_t now = clock_now_ns(clock);
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	unsigned long long bits = 0;

	if (!schedule_due(&g->schedule, TELEMETRY_clock_reasons, now))
		return;
	if (g->nvml->reasons)
		ret = g->nvml->reasons(g->device, &bits);
	if (is_final(ret) && g->nvml->reasons_old)
		ret = g->nvml->reasons_old(g->device, &bits);
	take(g, b, TELEMETRY_clock_reasons, ret, middle(now, clock), (double)bits);
}

static void tick_temperature(struct sample_gpu *g, struct batch *b, const struct clock *clock)
{
	nvmlTemperature_t reading = {.version = nvmlTemperature_v1, .sensorType = NVML_TEMPERATURE_GPU};
	uint64_t now = clock_now_ns(clock);
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	unsigned old = 0;
	double c;

	if (!schedule_due(&g->schedule, TELEMETRY_temperature_c, now))
		return;
	if (g->nvml->temperature)
		ret = g->nvml->temperature(g->device, &reading);
	c = reading.temperature;
	if (is_final(ret) && g->nvml->temperature_old) {
		ret = g->nvml->temperature_old(g->device, NVML_TEMPERATURE_GPU, &old);
		c = old;
	}
	take(g, b, TELEMETRY_temperature_c, ret, middle(now, clock), c);
}

/* The older call counts what the driver reserves as used. */
static void tick_memory(struct sample_gpu *g, struct batch *b, const struct clock *clock)
{
	nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
	uint64_t now = clock_now_ns(clock);
	nvmlReturn_t ret = NVML_ERROR_FUNCTION_NOT_FOUND;
	nvmlMemory_t old = {0};
	double used;

	if (!schedule_due(&g->schedule, TELEMETRY_memory_used_bytes, now))
		return;
	if (g->nvml->memory_v2)
		ret = g->nvml->memory_v2(g->device, &memory);
	used = (double)memory.used;
	if (is_final(ret) && g->nvml->memory) {
		ret = g->nvml->memory(g->device, &old);
		used = (double)old.used;
	}
	take(g, b, TELEMETRY_memory_used_bytes, ret, middle(now, clock), used);
}

static void tick_pcie(struct sample_gpu *g, struct batch *b, enum telemetry_signal_id id,
		      nvmlReturn_t (*call)(nvmlDevice_t, unsigned int *), const struct clock *clock)
{
	uint64_t now = clock_now_ns(clock);
	nvmlReturn_t ret;
	unsigned value = 0;

	if (!schedule_due(&g->schedule, id, now))
		return;
	ret = call ? call(g->device, &value) : NVML_ERROR_FUNCTION_NOT_FOUND;
	take(g, b, id, ret, middle(now, clock), value);
}

static void stop_gpm(struct sample_gpu *g)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		if (g->gpm[i])
			g->nvml->gpm_sample_free(g->gpm[i]);
		g->gpm[i] = NULL;
	}
}

static void take_gpm(struct sample_gpu *g, struct batch *b, uint64_t t_ns)
{
	nvmlGpmMetricsGet_t get = {.version = NVML_GPM_METRICS_GET_VERSION,
				   .numMetrics = GPM_METRICS,
				   .sample1 = g->gpm[g->gpm_last],
				   .sample2 = g->gpm[!g->gpm_last]};
	unsigned i;

	for (i = 0; i < GPM_METRICS; i++)
		get.metrics[i].metricId = gpm_metrics[i].metric;
	if (g->nvml->gpm_metrics(&get))
		return; /* NVML rejects the interval: no reading */
	for (i = 0; i < GPM_METRICS; i++)
		if (!get.metrics[i].nvmlReturn)
			batch_add(b, g->source, gpm_metrics[i].id, t_ns,
				  get.metrics[i].value * gpm_metrics[i].scale);
}

/* A sample ends one interval and begins the next, so two buffers alternate. */
static void tick_gpm(struct sample_gpu *g, struct batch *b, const struct clock *clock)
{
	uint64_t now = clock_now_ns(clock), t_ns;
	nvmlReturn_t ret;

	if (!g->gpm[0] || !schedule_due(&g->schedule, TELEMETRY_gpm_tensor_share, now))
		return;
	ret = g->nvml->gpm_sample(g->device, g->gpm[!g->gpm_last]);
	t_ns = middle(now, clock);
	if (ret == NVML_SUCCESS && g->gpm_began)
		take_gpm(g, b, t_ns);
	if (ret == NVML_SUCCESS) {
		g->gpm_last = !g->gpm_last;
		g->gpm_began = true;
	} else if (is_final(ret)) {
		stop_gpm(g);
	} else {
		take(g, b, TELEMETRY_gpm_tensor_share, ret, t_ns, 0);
	}
}

static void start_gpm(struct sample_gpu *g)
{
	nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};
	const struct nvml *n = g->nvml;

	if (!n->gpm_support || !n->gpm_sample_alloc || !n->gpm_sample_free || !n->gpm_sample ||
	    !n->gpm_metrics)
		return;
	if (n->gpm_support(g->device, &support) || !support.isSupportedDevice)
		return;
	if (n->gpm_sample_alloc(&g->gpm[0]) || n->gpm_sample_alloc(&g->gpm[1]))
		stop_gpm(g);
}

void sample_gpu_init(struct sample_gpu *g, const struct nvml *nvml, nvmlDevice_t device, unsigned source,
		     uint64_t now_ns)
{
	*g = (struct sample_gpu){.nvml = nvml, .device = device, .source = source};
	schedule_init(&g->schedule, now_ns, source);
	start_gpm(g);
}

void sample_gpu_release(struct sample_gpu *g)
{
	stop_gpm(g);
}

void sample_gpu_align(struct sample_gpu *g, uint64_t now_ns)
{
	uint64_t *due_ns = &g->schedule.due_ns[TELEMETRY_gpm_tensor_share];

	if (*due_ns != UINT64_MAX)
		*due_ns = now_ns + SERIES_GPM_ASK_NS;
}

void sample_gpu_tick(struct sample_gpu *g, struct batch *b, const struct clock *clock)
{
	if (!g->lost)
		tick_fields(g, b, clock);
	if (!g->lost)
		tick_clock(g, b, TELEMETRY_sm_clock_mhz, NVML_CLOCK_SM, clock);
	if (!g->lost)
		tick_reasons(g, b, clock);
	if (!g->lost)
		tick_gpm(g, b, clock);
	if (!g->lost)
		tick_clock(g, b, TELEMETRY_memory_clock_mhz, NVML_CLOCK_MEM, clock);
	if (!g->lost)
		tick_temperature(g, b, clock);
	if (!g->lost)
		tick_memory(g, b, clock);
	if (!g->lost)
		tick_pcie(g, b, TELEMETRY_pcie_gen, g->nvml->pcie_gen, clock);
	if (!g->lost)
		tick_pcie(g, b, TELEMETRY_pcie_width, g->nvml->pcie_width, clock);
}
