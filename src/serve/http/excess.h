/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections beyond the limit. The server accepts a few of them, so that their clients get an answer instead
 * of waiting for a free connection: status 503, or the health of the server. Then the connection ends. One
 * that sends no request is closed soon, and the oldest one is closed if there are too many.
 */
#ifndef SERVE_HTTP_EXCESS_H
#define SERVE_HTTP_EXCESS_H
#include "serve/http/server.h"

/* Connections that MHD may hold beyond the limit. MHD accepts up to 10 at once, so some are left when
 * EXCESS_MOST are open. */
enum { EXCESS_ROOM = 64, EXCESS_MOST = 48 };

/* A new connection, which is in fe->peers. */
void excess_add(struct peer *p);
void excess_remove(struct peer *p);
/* The connection may not have a request served. One beyond the limit counts as an ordinary one as soon as
 * there is room. */
bool excess_is(struct peer *p);
/* Fails with 503. */
bool excess_fail(const struct front_end *fe, struct api_error *e);
/* Closes those that have waited without a request. */
void excess_tick(struct front_end *fe);
#endif
