/* SPDX-License-Identifier: Apache-2.0 */
/* API keys. They are compared in constant time. */
#ifndef SERVE_HTTP_KEYS_H
#define SERVE_HTTP_KEYS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

struct keys {
	uint8_t (*digests)[32]; /* SHA-256 of each key */
	size_t count;
};
/* One key a line; empty lines and those that begin with # are left out. BAD_INPUT: there is none, or the file
 * may be read by others. */
enum status keys_read(struct keys *k, const char *path, struct error *err);
bool keys_match(const struct keys *k, const char *key);
void keys_release(struct keys *k);
#endif
