/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the client and of the server's statements. If one fails, the run is untrusted. */
#ifndef LOAD_MEASURE_TRUST_H
#define LOAD_MEASURE_TRUST_H
#include "load/measure/window.h"

/*
 * Sets the values of the checks; "checks": [{name, value, limit, kept}..]; "untrusted": [reason..]; and
 * "notes": [text..], which do not make a run untrusted. *out holds the other figures already. False: no
 * memory.
 */
bool load_trust_put(json_t *out, const struct load_window *w);
#endif
