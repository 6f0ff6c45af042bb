/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_NET_LISTEN_H
#define CORE_NET_LISTEN_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/* Listens on a numeric address, which may be in brackets, or on a name. *port 0: any; it is set to the real
 * one. UNAVAILABLE: the port is in use, which the message says. Owner of *fd: caller. */
enum status listen_open(int *fd, const char *address, uint16_t *port, struct error *err);
/* Raises the limit of open files for `wanted` connections. Returns the number of connections that it allows.
 */
size_t listen_allow_files(size_t wanted);
#endif
