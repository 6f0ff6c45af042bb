/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the device of a training step and takes the memory that the plan needs. Errors name the settings to
 * change. */
#ifndef TRAIN_STEP_DEVICE_H
#define TRAIN_STEP_DEVICE_H
#include "train/step/stepper.h"

/* Of a configuration for a GPU. */
enum gpu_precision train_device_precision(const struct config_training *t);
struct train_device_needs {
	size_t bytes, pinned; /* of the arena; of host memory for offloaded data */
	unsigned threads;     /* on a CPU */
};
/* Sets back end and arenas of *s. stepper_release ends their use, also after an error. */
enum status train_device_open(struct stepper *s, const struct config *c, const struct train_device_needs *n,
			      struct error *err);
#endif
