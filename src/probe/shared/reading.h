/* SPDX-License-Identifier: Apache-2.0 */
/* What the readings share. Their fields stand in docs/explanation/design/readings.md. */
#ifndef PROBE_SHARED_READING_H
#define PROBE_SHARED_READING_H
#include "run/probe.h"

/* A reading lists its fields once: X(name, unit, kind, better, help); the expansions are its table
 * (FIELD_ROW), the places in it and, where the fields are facts of a GPU, which facts. */
#define READING_PLACE(name, ...) AT_##name,
#define READING_FACT(name, ...) GPU_FACT_##name,

/* The GPU of a GPU target. LOST, UNAVAILABLE.. with its cause where it does not answer; *g is set all the
 * same. */
enum status reading_gpu(const struct gpu **g, const struct machine *m, const struct target *t,
			struct error *err);
/* The GPU's own part of the facts tree; NULL: none. Lent. */
const json_t *reading_gpu_json(const struct machine *m, const struct gpu *g);
/* Sets the facts that are there, in the fields of the same place. Returns how many. */
unsigned reading_facts(struct result *out, const struct gpu *g, const struct field *fields,
		       const enum gpu_fact *facts, size_t count);
/* The whole observe of a reading that is nothing but facts of a GPU: those, or why there are none of `what`.
 */
enum status reading_observe_facts(const struct machine *m, const struct target *t, const char *what,
				  const struct field *fields, const enum gpu_fact *facts, size_t count,
				  struct result *out, struct error *err);
/* Why none of the facts could be read: UNSUPPORTED, or UNAVAILABLE with cause PERMISSION. */
enum status reading_none(const struct machine *m, const struct gpu *g, const char *what,
			 const enum gpu_fact *facts, size_t count, struct error *err);
/* A number by its path in a JSON object, "memory", "total_bytes"; absent leaves the field absent. */
void reading_number(struct result *out, const struct field *f, const json_t *object, const char *key);
/* True where a GPU stands on the PCI bus or is listed; else *err says that there is none (UNSUPPORTED: a
 * skip). */
bool reading_has_gpus(const struct machine *m, const char *what, struct error *err);
/* Why a vendor's library ("NVML", "CUDA driver") gave nothing at all, and its cause. NULL: it answered, or
 * was not asked. Lent. */
const char *reading_layer_failed(const struct machine *m, const char *what, enum cause *cause);
/* 1 or 0 of facts.kernel_log.readable; false where the facts say nothing of it. */
bool reading_log(const struct machine *m, bool *readable);
#endif
