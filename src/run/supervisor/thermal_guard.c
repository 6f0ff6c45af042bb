/* SPDX-License-Identifier: Apache-2.0 */
#include "run/supervisor/thermal_guard.h"
#include "machine/machine.h"
#include "vendor/nvml.h"

void thermal_guard_arm(struct thermal_guard *g, const struct gpu *gpu)
{
	double slowdown_c = gpu_get(gpu, GPU_FACT_temperature_slowdown_c, 0);

	*g = (struct thermal_guard){
		.stop_c = slowdown_c > THERMAL_GUARD_MARGIN_C ? slowdown_c - THERMAL_GUARD_MARGIN_C : 0};
}

static void on_temperature(struct thermal_guard *g, double c)
{
	if (!(g->stop_c > 0) || c < g->stop_c)
		return;
	g->cause = CAUSE_TEMPERATURE_STOP;
	snprintf(g->text, sizeof(g->text), "stopped at %.0f degrees C: the GPU slows down at %.0f", c,
		 g->stop_c + THERMAL_GUARD_MARGIN_C);
}

static void on_reasons(struct thermal_guard *g, uint64_t t_ns, double value)
{
	unsigned long long bits = value >= 0 && value < 0x1p63 ? (unsigned long long)value : 0;
	bool brake = bits & NVML_REASON_HW_POWER_BRAKE;

	if (!brake && !(bits & NVML_REASON_HW_THERMAL)) {
		g->braking = false;
		return;
	}
	if (!g->braking)
		g->braking_ns = t_ns;
	g->braking = true;
	if (t_ns - g->braking_ns <= THERMAL_GUARD_BRAKE_NS)
		return;
	g->cause = brake ? CAUSE_POWER_BRAKE : CAUSE_TEMPERATURE_STOP;
	snprintf(g->text, sizeof(g->text),
		 "stopped: the %s has slowed the GPU for more than a second (reasons 0x%llx)",
		 brake ? "power brake" : "hardware's thermal protection", bits);
}

void thermal_guard_reading(struct thermal_guard *g, const char *signal, uint64_t t_ns, double value)
{
	if (g->cause)
		return;
	if (!strcmp(signal, "temperature_c"))
		on_temperature(g, value);
	else if (!strcmp(signal, "clock_reasons"))
		on_reasons(g, t_ns, value);
}
