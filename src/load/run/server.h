/* SPDX-License-Identifier: Apache-2.0 */
/* What is learned of a server before the load: whether it answers, its models, and whether it takes our
 * requests. */
#ifndef LOAD_RUN_SERVER_H
#define LOAD_RUN_SERVER_H
#include "load/client/http.h"

struct load_server {
	char base[1024]; /* address without "/v1" and without a slash at its end */
	char model[256]; /* the name that requests use */
	int64_t context; /* longest sequence in tokens; 0: not stated */
};
/* Makes s->base from the address that the user gave. BAD_INPUT: none, or too long. */
enum status load_server_base(struct load_server *s, const char *url, struct error *err);
/* Asks for the models. `model`: the name to use; NULL: the first one. A server without a list of models is
 * BAD_INPUT only if `model` is NULL. UNAVAILABLE: no connection, or the server refuses our key; names the
 * address. */
enum status load_server_meet(struct load_server *s, struct http *h, const char *model, struct error *err);
/* Sends one request and waits for its answer. BAD_INPUT: the server refuses it; the message has the server's
 * words. *again_ms: not 0 for status 503, as while a server loads its model, and for 429: so many
 * milliseconds later the request may be repeated. */
enum status load_server_try(const struct load_server *s, const struct http *h, const char *path,
			    const struct text *body, unsigned *again_ms, struct error *err);
#endif
