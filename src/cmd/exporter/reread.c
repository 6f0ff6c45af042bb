/* SPDX-License-Identifier: Apache-2.0 */
/* A web configuration that changes while the exporter runs: a certificate that was renewed, a new user. */
#include "cmd/exporter/exporter.h"
#include "core/clock.h"

enum { REREAD_S = 10 };

/* Takes a configuration into use. After an error the old one stays. */
static enum status use(struct exporter *x, struct web_config *web, struct error *err)
{
	struct daemon_spec *spec = exporter_spec(x, web);
	enum status st;

	if (!spec)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for the web configuration");
	st = daemon_replace(&x->daemon, spec, err);
	if (st) {
		free(spec);
		return st;
	}
	web_config_release(x->web);
	free(x->web);
	free(x->spec);
	x->web = web;
	x->spec = spec;
	return STATUS_OK;
}

/* An error is told once. */
static void refuse(struct exporter *x, const struct error *err)
{
	if (strcmp(x->refused, err->text) != 0)
		log_warn(x->c->log, LOG_TOPIC_RUN, "exporter: the old web configuration stays in use: %s",
			 err->text);
	text_copy(x->refused, sizeof(x->refused), err->text);
}

void exporter_reread(struct exporter *x)
{
	struct web_config *web;
	struct error err = {0};
	enum status st;

	if (!x->o->web_config || clock_now_ns(clock_monotonic()) < x->reread_ns)
		return;
	x->reread_ns = clock_now_ns(clock_monotonic()) + REREAD_S * 1000000000ull;
	web = calloc(1, sizeof(*web));
	if (!web)
		return;
	st = web_config_read(web, x->o->web_config, &err);
	if (!st && web_config_equal(web, x->web)) {
		*x->refused = '\0';
	} else if (!st && !(st = use(x, web, &err))) {
		*x->refused = '\0';
		log_info(x->c->log, LOG_TOPIC_RUN, "exporter: the web configuration has changed");
		exporter_warn(x, web);
		return;
	}
	if (st)
		refuse(x, &err);
	web_config_release(web);
	free(web);
}
