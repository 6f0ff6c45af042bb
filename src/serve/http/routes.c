/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/routes.h"

#include "core/file/embedded.h"
#include "serve/protocol/json_out.h"

static void get_page(struct exchange *x, const char *path)
{
	const struct embedded *page = embedded_find("src/serve/page/chat.html");

	(void)path;
	if (page)
		text_add_bytes(&x->reply, (const char *)page->data, page->size);
	x->type = "text/html; charset=utf-8";
}

static void get_health(struct exchange *x, const char *path)
{
	(void)path;
	text_add(&x->reply, "{\"status\":\"ok\"}");
}

static void get_ready(struct exchange *x, const char *path)
{
	const struct front_end *fe = x->fe;
	const struct engine_ready *r = link_ready(fe->link);
	struct api_error e = {.retry_s = 5};

	(void)path;
	if (fe->draining)
		api_fail(&e, 503, "draining", "the server is shutting down");
	else if (link_state(fe->link) != LINK_READY)
		api_fail(&e, 503, "engine_unavailable", "%s", link_cause(fe->link));
	if (e.http) {
		exchange_error(x, &e);
		return;
	}
	text_add(&x->reply, "{\"status\":\"ready\",\"device\":");
	json_out_text(&x->reply, r->device);
	text_addf(&x->reply, ",\"context\":%lld,\"load_s\":%.3f}", (long long)r->context, r->load_s);
}

static void gather(struct front_end *fe)
{
	struct metrics *m = &fe->metrics;
	const struct engine_facts *f = &fe->facts;

	metrics_set(m, METRIC_CONNECTIONS, (double)fe->peer_count);
	metrics_set(m, METRIC_ENGINE_READY, link_state(fe->link) == LINK_READY);
	metrics_set(m, METRIC_REQUESTS_RUNNING, f->running);
	metrics_set(m, METRIC_REQUESTS_WAITING, f->waiting);
	metrics_set(m, METRIC_CACHE_PAGES, f->pages);
	metrics_set(m, METRIC_CACHE_USE, f->pages ? (double)f->pages_used / f->pages : 0);
	metrics_set(m, METRIC_STEP_SECONDS, f->step_s);
}

static void get_metrics(struct exchange *x, const char *path)
{
	(void)path;
	gather(x->fe);
	metrics_write(&x->reply, &x->fe->metrics, x->fe->o.models[0]);
	x->type = "text/plain; version=0.0.4; charset=utf-8";
}

static void add_model(struct text *out, const struct front_end *fe, const char *name, const char *parent)
{
	text_add(out, "{\"id\":");
	json_out_text(out, name);
	text_add(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"assay\",\"root\":");
	json_out_text(out, parent ? parent : name);
	text_add(out, ",\"parent\":");
	if (parent)
		json_out_text(out, parent);
	else
		text_add(out, "null");
	/* not known before the model is loaded */
	if (link_ready(fe->link)->context)
		text_addf(out, ",\"max_model_len\":%lld", (long long)link_ready(fe->link)->context);
	text_add(out, "}");
}

static const char *served(const char *const *names, const char *name)
{
	for (; names && *names; names++)
		if (!strcmp(*names, name))
			return *names;
	return NULL;
}

static void get_models(struct exchange *x, const char *path)
{
	const struct front_end *fe = x->fe;
	size_t count = 0;

	(void)path;
	text_add(&x->reply, "{\"object\":\"list\",\"data\":[");
	for (size_t i = 0; fe->o.models[i]; i++) {
		text_add(&x->reply, count++ ? "," : "");
		add_model(&x->reply, fe, fe->o.models[i], NULL);
	}
	for (size_t i = 0; fe->o.adapters && fe->o.adapters[i]; i++) {
		text_add(&x->reply, count++ ? "," : "");
		add_model(&x->reply, fe, fe->o.adapters[i], fe->o.models[0]);
	}
	text_add(&x->reply, "]}");
}

static void get_model(struct exchange *x, const char *path)
{
	const char *name = path + strlen("/v1/models/");
	struct api_error e = {0};

	if (served(x->fe->o.models, name)) {
		add_model(&x->reply, x->fe, name, NULL);
	} else if (served(x->fe->o.adapters, name)) {
		add_model(&x->reply, x->fe, name, x->fe->o.models[0]);
	} else {
		api_fail(&e, 404, "model_not_found", "the model \"%.100s\" is not served here", name);
		text_copy(e.param, sizeof(e.param), "model");
		exchange_error(x, &e);
	}
}

static const struct route routes[] = {
	{"GET", "/", .open = true, .get = get_page},
	{"GET", "/health", .open = true, .get = get_health},
	{"GET", "/ready", .open = true, .get = get_ready},
	{"GET", "/metrics", .open = true, .get = get_metrics},
	{"GET", "/v1/models", .get = get_models},
	{"GET", "/v1/models/", .prefix = true, .get = get_model},
	{"POST", "/v1/chat/completions", .protocol = PROTOCOL_CHAT},
	{"POST", "/v1/completions", .protocol = PROTOCOL_COMPLETION},
	{"POST", "/v1/responses", .protocol = PROTOCOL_RESPONSES},
	{"POST", "/v1/messages", .protocol = PROTOCOL_MESSAGES},
	{"POST", "/tokenize", .protocol = PROTOCOL_TOKENIZE},
	{"POST", "/detokenize", .protocol = PROTOCOL_DETOKENIZE},
};

const char *route_path(const char *target)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (!strncasecmp(target, schemes[i], strlen(schemes[i]))) {
			const char *path = strchr(target + strlen(schemes[i]), '/');

			return path ? path : "/";
		}
	return target;
}

const struct route *route_find(const char *method, const char *path, const char **takes,
			       struct api_error *err)
{
	const struct route *other = NULL;
	const char *verb = strcmp(method, "HEAD") ? method : "GET";

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		const struct route *r = &routes[i];

		if (r->prefix ? strncmp(path, r->path, strlen(r->path)) : strcmp(path, r->path))
			continue;
		if (!strcmp(verb, r->method))
			return r;
		other = r;
	}
	*takes = other ? other->method : NULL;
	if (other)
		api_fail(err, 405, "method_not_allowed", "%s takes %s, not %.20s", other->path, other->method,
			 method);
	else
		api_fail(err, 404, "not_found", "there is no endpoint %.200s", path);
	return NULL;
}
