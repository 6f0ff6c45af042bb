/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the interface on the route to a host; sends nothing. */
#ifndef LAUNCH_ROUTE_H
#define LAUNCH_ROUTE_H
#include <stdbool.h>
#include <stddef.h>

/* False: no such host, no route, or the host is this one by its loopback address. */
bool route_interface(char *out, size_t size, const char *host);
#endif
