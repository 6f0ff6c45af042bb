/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the readings share. docs/explanation/design/readings.md lists the fields of all readings. */
#ifndef PROBE_SHARED_READING_H
#define PROBE_SHARED_READING_H
#include "run/probe.h"

/* A reading lists its fields once, as X(name, unit, kind, better, help). This list expands to the field table
 * (FIELD_ROW), to the index of each field (READING_PLACE), and to the GPU fact of each field
 * (READING_FACT). */
#define READING_PLACE(name, ...) AT_##name,
#define READING_FACT(name, ...) GPU_FACT_##name,

/* Finds the GPU of a GPU target. If the GPU does not answer, returns LOST, UNAVAILABLE or another status,
 * with its cause; *g is set in this case too. */
enum status reading_gpu(const struct gpu **g, const struct machine *m, const struct target *t,
			struct error *err);
/* The GPU's object in the facts tree; NULL: none. The object is lent. */
const json_t *reading_gpu_json(const struct machine *m, const struct gpu *g);
/* Sets fields[i] to facts[i] for every fact that is present. Returns the number of fields set. */
unsigned reading_facts(struct result *out, const struct gpu *g, const struct field *fields,
		       const enum gpu_fact *facts, size_t count);
/* The whole observe function of a reading whose fields are all facts of a GPU. It sets the facts, or says why
 * there are none of `what`. */
enum status reading_observe_facts(const struct machine *m, const struct target *t, const char *what,
				  const struct field *fields, const enum gpu_fact *facts, size_t count,
				  struct result *out, struct error *err);
/* Says why no fact could be read: UNSUPPORTED, or UNAVAILABLE with cause PERMISSION. */
enum status reading_none(const struct machine *m, const struct gpu *g, const char *what,
			 const enum gpu_fact *facts, size_t count, struct error *err);
/* Sets the field to the number under `key` of the object. If there is none, the field stays absent. */
void reading_number(struct result *out, const struct field *f, const json_t *object, const char *key);
/* True if a GPU is on the PCI bus or listed by the driver. Else *err says that there is none (UNSUPPORTED:
 * the reading is skipped). */
bool reading_has_gpus(const struct machine *m, const char *what, struct error *err);
/* Why a vendor's library ("NVML", "CUDA driver") answered nothing at all, and the cause. NULL: it answered,
 * or was not queried. The text is lent. */
const char *reading_layer_failed(const struct machine *m, const char *what, enum cause *cause);
/* Reads facts.kernel_log.readable; returns false if the facts do not contain it. */
bool reading_log(const struct machine *m, bool *readable);
#endif
