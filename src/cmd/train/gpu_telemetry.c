/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry of the training GPU, added to step lines (the last moments) and to the run's results (all
 * steps except the first two, because the second one tunes kernels). */
#include <math.h>
#include "cmd/train/train.h"
#include "run/supervisor/supervisor.h"
#include "team/links/flight.h"

#define FACTS_NS 1000000000u
#define LAST_NS 2000000000u /* long enough to contain whole GPM intervals, which arrive late */
enum { CHOOSING_STEPS = 2 };

/* The telemetry values to add, with their usual names. */
static const struct field *const told[] = {&field_tensor_active_share, &field_sm_active_share,
					   &field_dram_active_share, &field_power_integral_w,
					   &field_clock_nvml_hz};

/* Room for the name of the GPU's telemetry. */
enum { SOURCE_MAX = 40 };
static const char *source_of(const struct training *t, char source[SOURCE_MAX])
{
	snprintf(source, SOURCE_MAX, "gpu:%s", t->gpu);
	return source;
}

static struct result *seen(const struct training *t, uint64_t t0_ns, uint64_t t1_ns)
{
	struct result *r = *t->gpu && t1_ns > t0_ns ? result_create() : NULL;
	size_t count;
	const struct series *series = job_series(t->job, &count);
	char source[SOURCE_MAX];

	if (r)
		telemetry_reader_values(series, count, source_of(t, source), t0_ns, t1_ns, r);
	return r;
}

void train_watch_step(struct training *t, json_t *line)
{
	const uint64_t now_ns = clock_now_ns(clock_monotonic());
	struct result *r;

	t->stepped_ns = now_ns;
	if (t->chosen_steps < CHOOSING_STEPS) {
		t->chosen_steps += t->config.training.logging_steps; /* number of steps per line */
		t->first_ns = now_ns;
		return;
	}
	r = seen(t, now_ns - t->first_ns > LAST_NS ? now_ns - LAST_NS : t->first_ns, now_ns);
	for (size_t i = 0; r && i < sizeof(told) / sizeof(told[0]); i++)
		if (result_has(r, told[i]))
			json_object_set_new(line, told[i]->name, json_real(result_get(r, told[i], 0)));
	result_destroy(r);
}

/* PCIe generation times lanes, as the link is now. */
static double link_rate(const struct training *t, uint64_t t0_ns, uint64_t t1_ns)
{
	size_t count;
	const struct series *series = job_series(t->job, &count);
	char source[SOURCE_MAX];

	source_of(t, source);
	return telemetry_reader_mean(series, count, source, "pcie_gen", t0_ns, t1_ns) *
	       telemetry_reader_mean(series, count, source, "pcie_width", t0_ns, t1_ns);
}

void train_watch_facts(struct training *t)
{
	const uint64_t now_ns = clock_now_ns(clock_monotonic());
	struct team_facts facts = {0};
	struct result *r;

	if (!t->ranks.board || !*t->gpu || now_ns - t->facts_ns < FACTS_NS)
		return;
	t->facts_ns = now_ns;
	r = seen(t, now_ns - LAST_NS, now_ns);
	if (!r)
		return;
	facts.clock_hz = result_get(r, &field_clock_nvml_hz, 0);
	facts.slowed_share = fmax(result_get(r, &field_violation_power_share, 0),
				  result_get(r, &field_violation_thermal_share, 0));
	facts.link_rate = link_rate(t, now_ns - LAST_NS, now_ns);
	facts.tensor_share = result_get(r, &field_tensor_active_share, 0);
	facts.memory_share = result_get(r, &field_dram_active_share, 0);
	facts.sm_share = result_get(r, &field_sm_active_share, 0);
	team_facts_set(t->ranks.board, &facts);
	result_destroy(r);
}

void train_watch_run(struct training *t)
{
	struct result *r = t->end.values ? seen(t, t->first_ns, t->stepped_ns) : NULL;
	json_t *values = r ? result_json(r) : NULL;

	if (values)
		json_object_update_missing(t->end.values, values);
	json_decref(values);
	result_destroy(r);
}

void train_watch_text(struct text *out, const json_t *line)
{
	const json_t *tensor = json_object_get(line, field_tensor_active_share.name);
	const json_t *power = json_object_get(line, field_power_integral_w.name);
	const json_t *clock = json_object_get(line, field_clock_nvml_hz.name);

	if (tensor || power || clock)
		text_add(out, " |");
	if (tensor)
		text_addf(out, " tensor %.0f %%", 100 * json_number_value(tensor));
	if (power)
		text_addf(out, " %.0f W", json_number_value(power));
	if (clock)
		text_addf(out, " %.0f MHz", 1e-6 * json_number_value(clock));
}
