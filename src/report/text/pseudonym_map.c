/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/pseudonym_map.h"
#include <ctype.h>
#include <strings.h>

static void make_pseudonym(const struct pseudonym_map *n, char out[32], const char *prefix, const char *value)
{
	pseudonym_make(out, prefix, *n->salt ? n->salt : NULL, value);
}

/* Adds a pair for `value`; NULL: the value has a pair already, or out of memory. */
static struct pseudonym_map_pair *new_pair(struct pseudonym_map *n, const char *value)
{
	for (size_t i = 0; i < n->count; i++)
		if (!strcmp(n->pair[i].value, value))
			return NULL;
	if (n->count == n->room) {
		size_t room = n->room ? 2 * n->room : 16;
		void *more = realloc(n->pair, room * sizeof(*n->pair));

		if (!more) {
			n->failed = true;
			return NULL;
		}
		n->pair = more;
		n->room = room;
	}
	n->pair[n->count].value = strdup(value);
	if (!n->pair[n->count].value) {
		n->failed = true;
		return NULL;
	}
	return &n->pair[n->count++];
}

static void learn(struct pseudonym_map *n, const char *prefix, const char *value)
{
	struct pseudonym_map_pair *pair;

	/* Values of one or two letters would match inside other words. */
	if (!value || strlen(value) < 3 || pseudonym_is(value, strlen(value)) || !strcmp(value, "localhost"))
		return;
	pair = new_pair(n, value);
	if (pair)
		make_pseudonym(n, pair->shown, prefix, value);
}

void pseudonym_map_set(struct pseudonym_map *n, const char *shown, const char *name)
{
	struct pseudonym_map_pair *pair = n->real ? NULL : new_pair(n, shown);

	if (pair)
		text_copy(pair->shown, sizeof(pair->shown), name);
}

/* True for a name such as "host-11ccc27a-rank-4". If two nodes have the same pseudonym, the second one gets
 * its lowest rank appended. */
static bool stands_for_node(const char *name)
{
	const char *rank = strstr(name, "-rank-");

	return rank && pseudonym_is(name, (size_t)(rank - name)) && rank[6] &&
	       strspn(rank + 6, "0123456789") == strlen(rank + 6);
}

/* Adds a host name unless it could be an ordinary word: "host" and "node" occur in every report. */
static void learn_host(struct pseudonym_map *n, const char *name)
{
	if (name && !stands_for_node(name) && (strlen(name) >= 8 || strpbrk(name, "0123456789-._")))
		learn(n, "host", name);
}

void pseudonym_map_learn(struct pseudonym_map *n, const struct machine *m)
{
	if (n->real || !m)
		return;
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		const struct gpu *g = machine_gpu(m, i);

		learn(n, "serial", g->serial);
		learn(n, "uuid", g->uuid);
	}
	learn_host(n, json_string_value(
			      json_object_get(json_object_get(machine_json(m), "system"), "hostname")));
}

void pseudonym_map_init(struct pseudonym_map *n, const struct record *r, const struct machine *m, bool real)
{
	const char *salt;

	*n = (struct pseudonym_map){.real = real};
	if (real)
		return;
	salt = r && r->open ? json_string_value(json_object_get(r->open, "salt")) : NULL;
	text_copy(n->salt, sizeof(n->salt), salt ? salt : "");
	pseudonym_map_learn(n, m);
	if (r && r->open) {
		learn_host(n, json_string_value(json_object_get(r->open, "node")));
		learn_host(n, json_string_value(json_object_get(r->open, "hostname")));
	}
	for (size_t i = 0; r && i < r->node_count; i++)
		learn_host(n, r->node[i].name);
}

void pseudonym_map_release(struct pseudonym_map *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->pair[i].value);
	free(n->pair);
	*n = (struct pseudonym_map){0};
}

static size_t span_of(const char *s, const char *extra)
{
	size_t n = 0;

	while (isxdigit((unsigned char)s[n]) || (s[n] && strchr(extra, s[n])))
		n++;
	return n;
}

/* True if the number at `s` is a version, as in "cuBLAS 13.1.0.3" and "libcublas.so.13.1.0.3". */
static bool version_before(const char *start, const char *s)
{
	static const char *const words[] = {"version", "cublas", "cublaslt", "cudnn",
					    "cuda",    "nccl",	 "driver",   "v"};
	const char *end = s;

	if (s > start && (s[-1] == '.' || s[-1] == '-'))
		return true;
	while (end > start && !isalnum((unsigned char)end[-1]))
		end--;
	for (s = end; s > start && isalpha((unsigned char)s[-1]);)
		s--;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == (size_t)(end - s) && !strncasecmp(words[i], s, (size_t)(end - s)))
			return true;
	return false;
}

/* The length of an IPv4 address at `s`, 0 if there is none: four decimal numbers up to 255 with points
 * between, and no fifth. */
static size_t ipv4(const char *start, const char *s)
{
	const char *p = s;

	if (!isdigit((unsigned char)*s) || version_before(start, s))
		return 0;
	for (unsigned part = 0; part < 4; part++) {
		unsigned value = 0, digits = 0;

		for (; isdigit((unsigned char)*p) && digits < 4; p++, digits++)
			value = value * 10 + (unsigned)(*p - '0');
		if (!digits || digits > 3 || value > 255)
			return 0;
		if (part < 3 && *p++ != '.')
			return 0;
	}
	return isalnum((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1])) ? 0
											 : (size_t)(p - s);
}

/* The length of a MAC or IPv6 address at `s`, 0 if there is none. Both have at least five colons, or "::" and
 * at least three colons. PCI addresses ("0000:1b:00.0") have two. */
static size_t colon_address(const char *s)
{
	size_t n = span_of(s, ":");
	unsigned colons = 0, run = 0;
	bool twice = false;

	for (size_t i = 0; i < n; i++) {
		run = s[i] == ':' ? 0 : run + 1;
		colons += s[i] == ':';
		twice |= i && s[i] == ':' && s[i - 1] == ':';
		if (run > 4)
			return 0;
	}
	return colons >= 5 || (twice && colons >= 3) ? n : 0;
}

/* The length of a UUID (8-4-4-4-12 digits) at `s`; 0 if there is none. */
static size_t uuid(const char *s)
{
	static const unsigned groups[] = {8, 4, 4, 4, 12};
	size_t n = 0;

	for (size_t g = 0; g < 5; g++) {
		for (unsigned i = 0; i < groups[g]; i++)
			if (!isxdigit((unsigned char)s[n++]))
				return 0;
		if (g < 4 && s[n++] != '-')
			return 0;
	}
	return isalnum((unsigned char)s[n]) ? 0 : n;
}

static size_t looks_like(const char *start, const char *s, const char **prefix)
{
	size_t n = uuid(s);

	*prefix = "uuid";
	if (n)
		return n;
	*prefix = "address";
	n = ipv4(start, s);
	if (n && !strncmp(s, "127.", 4)) /* every machine has these, so they name none */
		return 0;
	return n ? n : colon_address(s);
}

static const struct pseudonym_map_pair *known_at(const struct pseudonym_map *n, const char *s)
{
	const struct pseudonym_map_pair *best = NULL;

	for (size_t i = 0; i < n->count; i++) {
		size_t size = strlen(n->pair[i].value);

		/* Whole words only: a host called "rack1" is not the start of "rack12". */
		if (!strncmp(s, n->pair[i].value, size) && !isalnum((unsigned char)s[size]) &&
		    (!best || size > strlen(best->value)))
			best = &n->pair[i];
	}
	return best;
}

void pseudonym_map_add(const struct pseudonym_map *n, struct text *out, const char *s)
{
	const char *start = s, *from = s, *prefix = "";
	bool inside = false; /* inside a word: patterns match only at its start */

	if (n->real) {
		text_add(out, s);
		return;
	}
	if (n->failed) {
		text_add(out, "(hidden: out of memory for names)");
		return;
	}
	while (*s) {
		const struct pseudonym_map_pair *pair = inside ? NULL : known_at(n, s);
		size_t size = pair ? strlen(pair->value) : inside ? 0 : looks_like(start, s, &prefix);
		char value[64], shown[32];

		if (!pair && size &&
		    pseudonym_is(s, size)) { /* already a pseudonym in the recording or the journal */
			s += size;
			inside = true;
			continue;
		}
		if (!size) {
			inside = isalnum((unsigned char)*s);
			s++;
			continue;
		}
		text_add_bytes(out, from, (size_t)(s - from));
		if (!pair) {
			snprintf(value, sizeof(value), "%.*s", (int)size, s);
			make_pseudonym(n, shown, prefix, value);
		}
		text_add(out, pair ? pair->shown : shown);
		s += size;
		from = s;
		inside = true;
	}
	text_add(out, from);
}

void pseudonym_map_copy(const struct pseudonym_map *n, char *out, size_t size, const char *s)
{
	struct text t = {0};

	pseudonym_map_add(n, &t, s);
	text_copy(out, size, text_str(&t));
	text_release(&t);
}
