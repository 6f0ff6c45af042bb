/* SPDX-License-Identifier: Apache-2.0 */
/* --adapter: DIR, or NAME=DIR,NAME=DIR,.. */
#ifndef CMD_SERVE_ADAPTERS_H
#define CMD_SERVE_ADAPTERS_H
#include "core/error.h"
#include "engine/load/adapters.h"

struct serve_adapters {
	char *text;						      /* holds names and folders; owned */
	const char *name[ADAPTERS_MOST + 1], *dir[ADAPTERS_MOST + 1]; /* NULL behind the last */
	int32_t count;
};
/* Reads the option's text, which may be NULL. A single folder without a name gets the name NULL. `base`: the
 * name of the base model, which no adapter may have. Owner: caller, serve_adapters_release. */
enum status serve_adapters_read(struct serve_adapters *a, const char *text, const char *base,
				struct error *err);
void serve_adapters_release(struct serve_adapters *a);
#endif
