/* SPDX-License-Identifier: Apache-2.0 */
/* The settings themselves, and what must hold among them. */
#ifndef TRAIN_CONFIG_ROWS_H
#define TRAIN_CONFIG_ROWS_H
#include "train/config.h"

/* `place` leads the message. */
enum status config_check(const struct config *c, const char *place, struct error *err);
#endif
