/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/serve/web_config.h"

#include "core/file/file.h"
#include "core/input/tree.h"
#include "core/text/text.h"

enum { FILE_MOST = 1 << 20, PEM_MOST = 1 << 20, NAME_MOST = 128, HEADER_MOST = 2048 };

static const char *const header_names[WEB_HEADERS + 1] = {"Content-Security-Policy",   "X-Frame-Options",
							  "X-Content-Type-Options",    "X-XSS-Protection",
							  "Strict-Transport-Security", NULL};

/* What is being read. */
struct reading {
	struct web_config *c;
	const char *path; /* the file; its folder is the start of relative paths */
	bool files;	  /* false: files that it names are not opened */
	struct error *err;
};

const char *web_header_name(size_t i)
{
	return header_names[i];
}

static enum status refuse(const struct reading *r, const struct tree *at, const char *what)
{
	return error_set(r->err, STATUS_BAD_INPUT, "%s:%d: %s", at->file, at->line, what);
}

static enum status check_map(const struct reading *r, const struct tree *t, const char *name)
{
	char what[160];

	if (!t || t->kind == TREE_MAP || t->kind == TREE_NULL)
		return STATUS_OK;
	snprintf(what, sizeof(what), "%s is not a map", name);
	return refuse(r, t, what);
}

/* ---- TLS ---- */

static enum status read_pem(const struct reading *r, char **out, const struct tree *at)
{
	const char *slash = strrchr(r->path, '/');
	struct text path = {0};
	enum status st;
	size_t size;

	if (!r->files) {
		*out = strdup("");
		return *out ? STATUS_OK
			    : error_set(r->err, STATUS_NO_RESOURCE, "no memory for a certificate");
	}
	if (*at->text != '/' && slash)
		text_add_bytes(&path, r->path, (size_t)(slash - r->path) + 1);
	text_add(&path, at->text);
	st = file_read(out, &size, text_str(&path), PEM_MOST, r->err);
	text_release(&path);
	return st;
}

/* A part of the certificate: as text in `inline_key`, or in the file of `file_key`. */
static enum status read_part(const struct reading *r, const struct tree *tls, const char *inline_key,
			     const char *file_key, char **out)
{
	const struct tree *text = tree_get(tls, inline_key), *file = tree_get(tls, file_key);

	if (text && file)
		return refuse(r, file, "the certificate or key is given twice, as text and as a file");
	if (!text && !file)
		return STATUS_OK;
	if ((text ? text : file)->kind != TREE_SCALAR || !*(text ? text : file)->text)
		return refuse(r, text ? text : file, "the certificate or key is empty or not a text");
	if (file)
		return read_pem(r, out, file);
	*out = strdup(text->text);
	return *out ? STATUS_OK : error_set(r->err, STATUS_NO_RESOURCE, "no memory for a certificate");
}

static enum status read_version(const struct reading *r, const struct tree *tls, const char *key,
				unsigned *out)
{
	const struct tree *at = tree_get(tls, key);
	const char *word = tree_text(tls, key, "");

	if (!at)
		return STATUS_OK;
	if (!strcmp(word, "TLS12") || !strcmp(word, "TLS13")) {
		*out = word[4] == '2' ? 12 : 13;
		return STATUS_OK;
	}
	return refuse(r, at, "a TLS version is TLS12 or TLS13; older ones are not safe");
}

static enum status refuse_client_certificates(const struct reading *r, const struct tree *tls)
{
	static const char *const keys[] = {"client_ca", "client_ca_file", "client_allowed_sans", NULL};
	const struct tree *type = tree_get(tls, "client_auth_type");

	for (const char *const *key = keys; *key; key++)
		if (tree_get(tls, *key))
			return refuse(r, tree_get(tls, *key),
				      "assay exporter does not check certificates of clients; use "
				      "basic_auth_users, or a proxy that checks them");
	if (type && *tree_text(tls, "client_auth_type", "") &&
	    strcmp(tree_text(tls, "client_auth_type", ""), "NoClientCert") != 0)
		return refuse(r, type,
			      "client_auth_type must be NoClientCert: assay exporter does not check "
			      "certificates of clients");
	return STATUS_OK;
}

static enum status refuse_choices(const struct reading *r, const struct tree *tls)
{
	static const char *const keys[] = {"cipher_suites", "curve_preferences", NULL};

	for (const char *const *key = keys; *key; key++)
		if (tree_get(tls, *key))
			return refuse(
				r, tree_get(tls, *key),
				"assay exporter has no choice of cipher suites and curves; it uses those "
				"of GnuTLS's level NORMAL");
	return STATUS_OK;
}

static enum status read_tls(const struct reading *r, const struct tree *tls)
{
	static const char *const keys[] = {"cert",
					   "key",
					   "cert_file",
					   "key_file",
					   "client_ca",
					   "client_ca_file",
					   "client_auth_type",
					   "client_allowed_sans",
					   "min_version",
					   "max_version",
					   "cipher_suites",
					   "prefer_server_cipher_suites",
					   "curve_preferences",
					   NULL};
	enum status st = check_map(r, tls, "tls_server_config");
	bool prefer = true;

	if (!tls || st || !tls->count)
		return st;
	st = tree_check_keys(tls, keys, r->err);
	if (!st)
		st = tree_bool(tls, "prefer_server_cipher_suites", &prefer, r->err);
	if (!st)
		st = refuse_client_certificates(r, tls);
	if (!st)
		st = refuse_choices(r, tls);
	if (!st)
		st = read_version(r, tls, "min_version", &r->c->tls_least);
	if (!st)
		st = read_version(r, tls, "max_version", &r->c->tls_most);
	if (!st && r->c->tls_least > r->c->tls_most)
		st = refuse(r, tls, "min_version is higher than max_version");
	if (!st)
		st = read_part(r, tls, "cert", "cert_file", &r->c->certificate);
	if (!st)
		st = read_part(r, tls, "key", "key_file", &r->c->key);
	if (!st && (!r->c->certificate || !r->c->key))
		st = refuse(r, tls, "tls_server_config needs cert_file and key_file");
	return st;
}

/* ---- users ---- */

/* $2y$10$ and 53 characters. The cost is bounded, because each wrong password costs that much work. */
static const char *wrong_hash(const char *hash)
{
	static const char letters[] = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	int cost;

	if (strlen(hash) != WEB_HASH_SIZE || hash[0] != '$' || hash[1] != '2' || !strchr("aby", hash[2]) ||
	    hash[3] != '$' || hash[6] != '$' || strspn(hash + 7, letters) != WEB_HASH_SIZE - 7 ||
	    strspn(hash + 4, "0123456789") != 2)
		return "the hash of the password is not bcrypt's; make it with htpasswd -nBC 10 \"\"";
	cost = 10 * (hash[4] - '0') + hash[5] - '0';
	if (cost < 4 || cost > WEB_COST_MOST)
		return "the cost of the password's hash must be 4 to 14; 10 is usual";
	return NULL;
}

static enum status read_users(const struct reading *r, const struct tree *users)
{
	enum status st = check_map(r, users, "basic_auth_users");

	for (size_t i = 0; !st && users && i < users->count; i++) {
		const struct tree *hash = users->items[i];
		const char *name = users->keys[i], *wrong;
		struct web_user *u = &r->c->user[r->c->user_count];

		if (r->c->user_count == WEB_USERS_MOST)
			return refuse(r, hash, "more than 64 users");
		if (!*name || strchr(name, ':') || strlen(name) > NAME_MOST)
			return refuse(r, hash, "a user's name has 1 to 128 bytes and no colon");
		wrong = hash->kind == TREE_SCALAR ? wrong_hash(hash->text) : "the hash is not a text";
		if (wrong)
			return refuse(r, hash, wrong);
		u->name = strdup(name);
		if (!u->name)
			return error_set(r->err, STATUS_NO_RESOURCE, "no memory for users");
		text_copy(u->hash, sizeof(u->hash), hash->text);
		r->c->user_count++;
	}
	return st;
}

/* ---- headers ---- */

static enum status read_headers(const struct reading *r, const struct tree *headers)
{
	enum status st = check_map(r, headers, "headers");

	if (!headers || st)
		return st;
	st = tree_check_keys(headers, header_names, r->err);
	for (size_t i = 0; !st && i < WEB_HEADERS; i++) {
		const struct tree *at = tree_get(headers, header_names[i]);
		const char *value = tree_text(headers, header_names[i], "");

		if (!*value)
			continue;
		for (const char *p = value; *p; p++)
			if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
				return refuse(r, at, "a header has printable ASCII characters only");
		if (strlen(value) > HEADER_MOST)
			return refuse(r, at, "a header has 2048 bytes at most");
		r->c->header[i] = strdup(value);
		if (!r->c->header[i])
			return error_set(r->err, STATUS_NO_RESOURCE, "no memory for headers");
	}
	return st;
}

static enum status read_http(const struct reading *r, const struct tree *http)
{
	static const char *const keys[] = {"http2", "headers", NULL};
	enum status st = check_map(r, http, "http_server_config");
	bool http2 = false;

	if (!http || st)
		return st;
	st = tree_check_keys(http, keys, r->err);
	if (!st)
		st = tree_bool(http, "http2", &http2, r->err);
	if (!st && http2 && r->c->key) /* without TLS, Prometheus' own server has no HTTP/2 either */
		r->c->http2_line = tree_get(http, "http2")->line;
	return st ? st : read_headers(r, tree_get(http, "headers"));
}

/* ---- the file ---- */

static enum status read_root(const struct reading *r, const struct tree *root)
{
	static const char *const keys[] = {"tls_server_config", "http_server_config", "basic_auth_users",
					   "rate_limit", NULL};
	enum status st = check_map(r, root, "the web configuration");

	if (!st && root->kind == TREE_MAP)
		st = tree_check_keys(root, keys, r->err);
	if (st || root->kind != TREE_MAP)
		return st;
	if (tree_get(root, "rate_limit"))
		return refuse(r, tree_get(root, "rate_limit"),
			      "assay exporter has no rate_limit; a scrape copies a finished page");
	st = read_tls(r, tree_get(root, "tls_server_config"));
	if (!st)
		st = read_http(r, tree_get(root, "http_server_config"));
	return st ? st : read_users(r, tree_get(root, "basic_auth_users"));
}

static enum status parse(const struct reading *r, const char *text, size_t size)
{
	struct tree *root = NULL;
	enum status st = tree_parse(&root, r->path, text, size, r->err);

	*r->c = (struct web_config){.tls_least = 12, .tls_most = 13};
	if (!st)
		st = read_root(r, root);
	tree_free(root);
	return st;
}

enum status web_config_parse(struct web_config *c, const char *name, const char *text, size_t size,
			     struct error *err)
{
	const struct reading r = {.c = c, .path = name, .err = err};

	return parse(&r, text, size);
}

enum status web_config_read(struct web_config *c, const char *path, struct error *err)
{
	const struct reading r = {.c = c, .path = path, .files = true, .err = err};
	char *text = NULL;
	size_t size;
	enum status st = file_read(&text, &size, path, FILE_MOST, err);

	*c = (struct web_config){0};
	if (!st)
		st = parse(&r, text, size);
	if (text)
		explicit_bzero(text, size); /* it may hold a key */
	free(text);
	return st;
}

void web_config_release(struct web_config *c)
{
	if (c->key)
		explicit_bzero(c->key, strlen(c->key));
	free(c->certificate);
	free(c->key);
	for (size_t i = 0; i < c->user_count; i++)
		free(c->user[i].name);
	for (size_t i = 0; i < WEB_HEADERS; i++)
		free(c->header[i]);
	*c = (struct web_config){0};
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool web_config_equal(const struct web_config *a, const struct web_config *b)
{
	if (!same(a->certificate, b->certificate) || !same(a->key, b->key) || a->tls_least != b->tls_least ||
	    a->tls_most != b->tls_most || a->user_count != b->user_count)
		return false;
	for (size_t i = 0; i < a->user_count; i++)
		if (!same(a->user[i].name, b->user[i].name) || strcmp(a->user[i].hash, b->user[i].hash) != 0)
			return false;
	for (size_t i = 0; i < WEB_HEADERS; i++)
		if (!same(a->header[i], b->header[i]))
			return false;
	return true;
}
