/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVE_HTTP_LISTEN_H
#define SERVE_HTTP_LISTEN_H
#include <stdint.h>
#include "core/error.h"

/* Listens on a numeric address or a name. *port 0: any; it is set to the real one. UNAVAILABLE: the port is
 * in use, which the message says. Owner of *fd: caller. */
enum status listen_open(int *fd, const char *address, uint16_t *port, struct error *err);
#endif
