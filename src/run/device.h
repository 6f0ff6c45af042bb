/* SPDX-License-Identifier: Apache-2.0 */
/* What a case works on: CPUs of its node, or the GPU with its streams, kept open from case to case. */
#ifndef RUN_DEVICE_H
#define RUN_DEVICE_H
#include "run/measure.h"
#include "run/meter.h"

enum { DEVICE_CPUS = 1024 };

/* Fills target, machine, seed, device, streams, cpus, threads of *b. `cpus` has room for DEVICE_CPUS and is
 * lent to it. */
enum status device_open(struct measure *w, const struct bench_case *c, struct bench *b, unsigned *cpus,
			struct error *err);
/* Streams and device, if any: before another GPU's case, and at the worker's end. */
void device_close(struct measure *w);
/* The meter for this engine on this target: the GPU's where the engine has streams. */
enum status device_meter(struct meter **m, const struct bench_case *c, const struct meter_spec *spec,
			 struct error *err);
#endif
