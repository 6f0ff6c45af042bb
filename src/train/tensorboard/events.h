/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard's event file: scalars by tag and step. */
#ifndef TRAIN_TENSORBOARD_EVENTS_H
#define TRAIN_TENSORBOARD_EVENTS_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

struct events;

struct scalar {
	const char *tag; /* "train/loss" */
	double value;	 /* kept as float */
};

/* A new file in the folder, which is made; what other runs left there stays. UNAVAILABLE: built without
 * protobuf-c. Owner: caller, events_close. `wall` is seconds since 1970. */
enum status events_open(struct events **e, const char *dir, double wall, struct error *err);
/* One event with all of them, written at once. */
enum status events_add(struct events *e, double wall, int64_t step, const struct scalar *scalars,
		       size_t count, struct error *err);
void events_close(struct events **e); /* NULL-safe */
#endif
