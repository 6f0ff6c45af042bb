/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the headers Accept and Accept-Encoding, by which a client chooses the form of a page. */
#ifndef WATCH_SERVE_NEGOTIATE_H
#define WATCH_SERVE_NEGOTIATE_H
#include <stdbool.h>
#include "watch/page/page.h"

/* OpenMetrics only if the client names it and does not like the text form better. NULL: no header. */
enum page_format negotiate_format(const char *accept);
/* True if the client takes gzip. NULL: no header. */
bool negotiate_gzip(const char *accept_encoding);
#endif
