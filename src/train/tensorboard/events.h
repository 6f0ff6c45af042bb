/* SPDX-License-Identifier: Apache-2.0 */
/* Writes TensorBoard's event files: scalars by tag and step. */
#ifndef TRAIN_TENSORBOARD_EVENTS_H
#define TRAIN_TENSORBOARD_EVENTS_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

struct events;

struct scalar {
	const char *tag; /* "train/loss" */
	double value;	 /* written as a float */
};

/* Creates a new event file in the folder, which is created if missing; files of other runs stay.
 * UNAVAILABLE: the program was built without protobuf-c. Owner: caller, events_close. `wall`: seconds since
 * 1970. */
enum status events_open(struct events **e, const char *dir, double wall, struct error *err);
/* Writes one event with all scalars. */
enum status events_add(struct events *e, double wall, int64_t step, const struct scalar *scalars,
		       size_t count, struct error *err);
void events_close(struct events **e); /* NULL-safe */
#endif
