/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/serve/forms.h"

#include <zlib.h>

enum { LEVEL = 1, WINDOW = 15, GZIP = 16, MEMORY = 8 };

void forms_add_headers(const struct microhttpd *mhd, const struct web_config *web,
		       struct MHD_Response *response)
{
	bool sniff = true;

	for (size_t i = 0; i < WEB_HEADERS; i++)
		if (web->header[i]) {
			mhd->add_response_header(response, web_header_name(i), web->header[i]);
			sniff = sniff && strcmp(web_header_name(i), "X-Content-Type-Options") != 0;
		}
	if (sniff)
		mhd->add_response_header(response, "X-Content-Type-Options", "nosniff");
}

struct MHD_Response *forms_response(const struct microhttpd *mhd, struct text *body)
{
	struct MHD_Response *response = NULL;

	if (!body->failed)
		response = mhd->create_response_from_buffer(
			body->size, body->data, body->data ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	if (!response)
		text_release(body);
	*body = (struct text){0};
	return response;
}

/* False: no memory. */
static bool compress_text(struct text *out, const char *text, size_t size)
{
	z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)text, .avail_in = (uInt)size};
	size_t room;
	int code;

	if (deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW + GZIP, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	room = deflateBound(&z, (uLong)size);
	out->data = malloc(room);
	z.next_out = (Bytef *)out->data;
	z.avail_out = (uInt)room;
	code = out->data ? deflate(&z, Z_FINISH) : Z_MEM_ERROR;
	out->size = z.total_out;
	deflateEnd(&z);
	return code == Z_STREAM_END;
}

/* Returns unused memory, because old pages live as long as slow clients read them. */
static void shrink(struct text *t)
{
	char *smaller = t->size ? realloc(t->data, t->size) : NULL;

	if (smaller) {
		t->data = smaller;
		t->room = t->size;
	}
}

static void add_page_headers(const struct microhttpd *mhd, const struct daemon_spec *spec,
			     enum page_format format, struct MHD_Response *response)
{
	mhd->add_response_header(response, "Content-Type", page_content_type(format));
	mhd->add_response_header(response, "Vary", "Accept, Accept-Encoding");
	forms_add_headers(mhd, spec->web, response);
}

static struct MHD_Response *plain(struct forms *f, const struct microhttpd *mhd,
				  const struct daemon_spec *spec, enum page_format format)
{
	struct text page = {0};
	const char *text;
	size_t size;

	if (f->form[format].plain)
		return f->form[format].plain;
	spec->page(spec->arg, &page, format);
	shrink(&page);
	text = page.data;
	size = page.size;
	f->form[format].plain = forms_response(mhd, &page);
	if (!f->form[format].plain)
		return NULL;
	f->form[format].text = text;
	f->form[format].size = size;
	add_page_headers(mhd, spec, format, f->form[format].plain);
	return f->form[format].plain;
}

struct MHD_Response *forms_get(struct forms *f, const struct microhttpd *mhd, const struct daemon_spec *spec,
			       enum page_format format, bool gzip)
{
	struct text small = {0};
	struct MHD_Response *whole = plain(f, mhd, spec, format);

	if (!whole || !gzip)
		return whole;
	if (f->form[format].gzip)
		return f->form[format].gzip;
	if (!compress_text(&small, f->form[format].text, f->form[format].size)) {
		text_release(&small);
		return whole;
	}
	shrink(&small);
	f->form[format].gzip = forms_response(mhd, &small);
	if (!f->form[format].gzip)
		return whole;
	mhd->add_response_header(f->form[format].gzip, "Content-Encoding", "gzip");
	add_page_headers(mhd, spec, format, f->form[format].gzip);
	return f->form[format].gzip;
}

void forms_drop(struct forms *f, const struct microhttpd *mhd)
{
	for (int i = 0; i < PAGE_FORMATS; i++) {
		if (f->form[i].plain)
			mhd->destroy_response(f->form[i].plain);
		if (f->form[i].gzip)
			mhd->destroy_response(f->form[i].gzip);
	}
	*f = (struct forms){0};
}
