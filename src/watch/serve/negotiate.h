/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of a page a client takes, from its headers Accept and Accept-Encoding. */
#ifndef WATCH_SERVE_NEGOTIATE_H
#define WATCH_SERVE_NEGOTIATE_H
#include <stdbool.h>
#include "watch/page/page.h"

/* OpenMetrics only if the client names it and does not like the text form better. NULL: no header. */
enum page_format negotiate_format(const char *accept);
/* True if the client takes gzip. NULL: no header. */
bool negotiate_gzip(const char *accept_encoding);
#endif
