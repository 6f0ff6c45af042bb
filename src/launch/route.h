/* SPDX-License-Identifier: Apache-2.0 */
/* By which interface the kernel reaches a host; nothing is sent. */
#ifndef LAUNCH_ROUTE_H
#define LAUNCH_ROUTE_H
#include <stdbool.h>
#include <stddef.h>

/* False: no such host, no route, or it is this very host by its loopback address. */
bool route_interface(char *out, size_t size, const char *host);
#endif
