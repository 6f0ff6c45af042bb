/* SPDX-License-Identifier: Apache-2.0 */
/* The finished forms of a page: each format, plain and compressed. libmicrohttpd counts the connections that
 * still send an old one, and frees it after the last. */
#ifndef WATCH_SERVE_FORMS_H
#define WATCH_SERVE_FORMS_H
#include "vendor/http/microhttpd.h"
#include "watch/serve/daemon.h"

struct forms {
	struct {
		struct MHD_Response *plain, *gzip;
		const char *text; /* of the plain one */
		size_t size;
	} form[PAGE_FORMATS];
};

/* The response for a scrape, made now if it is the first one. NULL: no memory. Borrowed. */
struct MHD_Response *forms_get(struct forms *f, const struct microhttpd *mhd, const struct daemon_spec *spec,
			       enum page_format format, bool gzip);
/* Drops all forms. */
void forms_drop(struct forms *f, const struct microhttpd *mhd);
/* Adds the headers of the web configuration, and those that every response has. */
void forms_add_headers(const struct microhttpd *mhd, const struct web_config *web,
		       struct MHD_Response *response);
/* Makes a response of a text, which it takes. NULL: no memory. */
struct MHD_Response *forms_response(const struct microhttpd *mhd, struct text *body);
#endif
