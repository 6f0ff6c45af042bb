/* SPDX-License-Identifier: Apache-2.0 */
/* A regular file mapped for reading. */
#ifndef MODEL_MAPPED_H
#define MODEL_MAPPED_H
#include <stdint.h>
#include "core/error.h"

/* Owner: caller, mapped_close. An empty file is NULL and 0. */
enum status mapped_open(void **data, uint64_t *size, const char *path, struct error *err);
void mapped_close(void *data, uint64_t size);
#endif
