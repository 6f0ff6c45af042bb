/* SPDX-License-Identifier: Apache-2.0 */
/* A regular file mapped for reading. */
#ifndef MODEL_MAPPED_H
#define MODEL_MAPPED_H
#include <stdint.h>
#include "core/error.h"

/* Owner: caller, mapped_close. An empty file is NULL and 0. */
enum status mapped_open(void **data, uint64_t *size, const char *path, struct error *err);
void mapped_close(void *data, uint64_t size);
/* What was read of it no longer counts as this process's memory; read again, it comes from the file again. */
void mapped_forget(void *data, uint64_t size);
#endif
