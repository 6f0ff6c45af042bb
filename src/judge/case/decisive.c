/* SPDX-License-Identifier: Apache-2.0 */
/* Readings without their decisive fields. A field that the device lacks gives a skip. A field that the device
 * has but the driver does not report gives unknown, with the vendor's reason. Grammar:
 * docs/explanation/design/expectations.md, `decisive`. */
#include "judge/case/verdict.h"
#include "core/text/text.h"

/* Why one field is missing. */
struct lack {
	bool lacking; /* true: the device does not have the feature; false: the driver did not report the
			 field */
	enum cause cause;
	char why[160];
	const char *action;
};

static const json_t *gpu_facts(const struct subject *s)
{
	const json_t *list = json_object_get(context_facts(s->ctx->record), "gpus"), *gpu;
	size_t i;

	json_array_foreach((json_t *)list, i, gpu)
	{
		const char *pci = json_string_value(json_object_get(gpu, "pci"));

		if (s->gpu && pci && !strcmp(pci, s->gpu->pci))
			return gpu;
	}
	return NULL;
}

/* What the facts say about a layer that returned nothing. False: the layer answered. */
static bool layer_failed(const struct subject *s, enum decisive_reads layer, struct lack *out)
{
	static const char *const names[] = {[DECISIVE_NVML] = "NVML", [DECISIVE_CUDA] = "CUDA driver"};
	const json_t *list = json_object_get(context_facts(s->ctx->record), "unreadable"), *row;
	size_t i;

	json_array_foreach((json_t *)list, i, row)
	{
		const char *what = json_string_value(json_object_get(row, "what"));
		const char *cause = json_string_value(json_object_get(row, "cause"));
		const char *why = json_string_value(json_object_get(row, "why"));

		if (!what || strcmp(what, names[layer]))
			continue;
		if (!cause || !cause_from_name(cause, &out->cause))
			out->cause = CAUSE_VENDOR_CALL;
		snprintf(out->why, sizeof(out->why), "%s: %.140s", names[layer], why ? why : "not read");
		return true;
	}
	return false;
}

/* True if the expectations state that the product or its architecture has the feature. */
static bool stated(const struct subject *s, enum sku_fact feature)
{
	return feature < SKU_FACT_COUNT && s->flops && s->flops->fact[feature].present &&
	       s->flops->fact[feature].value > 0;
}

/* True if the field depends on the product, and the expectations know neither the product nor its
 * architecture. */
static bool not_known(const struct subject *s, const struct decisive_row *d)
{
	return d->feature < SKU_FACT_COUNT && s->gpu && !s->sku && !s->flops;
}

/* The driver says "not supported". Either the device lacks the feature, or it should have it, or assay does
 * not know. */
static void not_supported(const struct subject *s, const struct decisive_row *d, struct lack *out)
{
	out->cause = CAUSE_UNSUPPORTED;
	if (s->gpu && gpu_get(s->gpu, GPU_FACT_mig_mode, 0) > 0) {
		out->cause = CAUSE_MIG_MODE;
		out->action = "the GPU is in MIG mode; read the field as root, or switch MIG off";
	} else if (d->always || stated(s, d->feature)) {
		out->action = "this device has the field; reload or update the driver";
	} else if (not_known(s, d)) {
		out->action = "assay does not know whether this product has the field; describe the product "
			      "in an expectation file";
	} else {
		out->lacking = true;
	}
}

static void why_refused(const struct subject *s, const struct decisive_row *d, const char *why,
			struct lack *out)
{
	text_copy(out->why, sizeof(out->why), why);
	out->cause = CAUSE_VENDOR_CALL;
	out->action = "read the kernel log, then reload the driver";
	if (strstr(why, "ermission")) {
		out->cause = CAUSE_PERMISSION;
		out->action = "run assay as root, or ask the operator for the right to read the field";
	} else if (strstr(why, "timed out")) {
		out->cause = CAUSE_TIMED_OUT;
	} else if (strstr(why, "not supported") || strstr(why, "no such function") ||
		   strstr(why, "deprecated")) {
		not_supported(s, d, out);
	}
}

static void lack_of(const struct subject *s, const struct decisive_row *d, struct lack *out)
{
	const char *why =
		json_string_value(json_object_get(json_object_get(gpu_facts(s), "unreadable"), d->fact));

	*out = (struct lack){.cause = d->cause};
	if (d->reads == DECISIVE_HOST) {
		snprintf(out->why, sizeof(out->why), "%s", cause_text(d->cause));
		out->action = cause_action(d->cause);
	} else if (why) {
		why_refused(s, d, why, out);
	} else if (layer_failed(s, d->reads, out)) {
		out->action = cause_action(out->cause);
	} else if (s->gpu && s->gpu->nvml_index >= 0) {
		why_refused(s, d, "this driver's NVML has no such function", out);
	} else {
		out->cause = CAUSE_LIBRARY_MISSING;
		snprintf(out->why, sizeof(out->why), "%s did not report it",
			 d->reads == DECISIVE_CUDA ? "the CUDA driver" : "NVML");
		out->action = cause_action(out->cause);
	}
}

static bool is_there(const struct subject *s, const char *field)
{
	double value;

	return case_number(s->c, field, &value) || case_text(s->c, field);
}

bool verdict_decisive(struct judgement *out, const struct subject *s)
{
	const struct expectations *e = s->ctx->e;
	struct lack first = {0}, lacking = {0}, l;
	unsigned read = 0, unread = 0;
	const char *field = "", *none = NULL;
	char more[24] = "";
	size_t i;

	for (i = 0; i < e->decisive_count; i++) {
		const struct decisive_row *d = &e->decisive[i];

		if (strcmp(d->probe, s->c->probe) || !when_matches(&d->needed_when, subject_word, s))
			continue;
		if (is_there(s, d->field)) {
			read++;
			continue;
		}
		lack_of(s, d, &l);
		if (l.lacking && !none) {
			lacking = l;
			none = d->field;
		}
		if (!l.lacking && !unread++) {
			first = l;
			field = d->field;
		}
	}
	if (unread > 1)
		snprintf(more, sizeof(more), " and %u more", unread - 1);
	if (unread)
		finding(out, VERDICT_UNKNOWN, first.cause, "%s%s could not be read (%s): %s", field, more,
			first.why, first.action);
	else if (none && !read)
		finding(out, VERDICT_SKIP, CAUSE_UNSUPPORTED, "%s: %s", none, lacking.why);
	return unread > 0;
}
