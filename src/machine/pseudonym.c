/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/pseudonym.h"
#include <ctype.h>
#include <stdbool.h>
#include "core/file/file.h"
#include "core/math/random.h"
#include "core/text/text.h"

enum { NAMES_MAX = 4096, NAME_MIN = 3 };

enum kind {
	KIND_HOST,
	KIND_SERIAL,
	KIND_UUID,
	KIND_MAC,
	KIND_IP,
	KIND_GUID,
	KIND_USER,
	KIND_COMMAND,
	KIND_ID,
	KIND_MAPPED, /* a GUID that is an IPv4 address; that a RoCE port's GUID is one is a fact to keep */
};

static const char mapped[] = "0000:0000:0000:0000:0000:ffff:";

struct name {
	char *text;
	enum kind kind;
};

struct pseudonyms {
	char salt[65];
	struct name name[NAMES_MAX];
	size_t count;
};

/* Keys whose string value is a name, anywhere in the raw readings or the facts tree. */
static const struct {
	const char *key;
	enum kind kind;
} telling[] = {
	{"hostname", KIND_HOST},   {"SLURMD_NODENAME", KIND_HOST}, {"serial", KIND_SERIAL},
	{"SLURM_JOB_ID", KIND_ID}, {"command", KIND_COMMAND},
};

struct pseudonyms *pseudonyms_new_salted(const char *salt)
{
	struct pseudonyms *p = calloc(1, sizeof(*p));

	if (p)
		file_sha256(p->salt, salt, strlen(salt));
	return p;
}

struct pseudonyms *pseudonyms_new(void)
{
	/* Secrets of 128 bits, so that two runs of one machine give equal pseudonyms, and nobody else can try
	 * serials. Containers often have no machine id; then pseudonyms change at the next boot. */
	static const char *const secrets[] = {"/etc/machine-id", "/proc/sys/kernel/random/boot_id"};
	char *id = NULL;
	size_t size = 0;
	struct pseudonyms *p;

	for (size_t i = 0; !id && i < sizeof(secrets) / sizeof(secrets[0]); i++)
		if (!file_read(&id, &size, secrets[i], 256, NULL) && size < 32) {
			free(id);
			id = NULL;
		}
	p = id ? pseudonyms_new_salted(id) : pseudonyms_new_once();
	free(id);
	return p;
}

struct pseudonyms *pseudonyms_new_once(void)
{
	char salt[33];

	/* No pseudonyms without a salt, and no salt without random bits. */
	return random_hex(salt, sizeof(salt)) ? pseudonyms_new_salted(salt) : NULL;
}

void pseudonym_make(char out[32], const char *kind, const char *salt, const char *value)
{
	struct text t = {0};
	char hex[65];

	if (salt)
		text_addf(&t, "%s|%s|", salt, kind);
	text_add(&t, value);
	file_sha256(hex, text_str(&t), t.size);
	snprintf(out, 32, "%.16s-%.8s", kind, hex);
	text_release(&t);
}

void pseudonyms_free(struct pseudonyms *p)
{
	for (size_t i = 0; p && i < p->count; i++)
		free(p->name[i].text);
	free(p);
}

static void hash_of(const struct pseudonyms *p, enum kind kind, const char *text, size_t size, char hex[65])
{
	struct text t = {0};

	text_addf(&t, "%s|%d|", p->salt, (int)kind);
	text_add_bytes(&t, text, size);
	file_sha256(hex, text_str(&t), t.size);
	text_release(&t);
}

/* A pseudonym has the same form as the text that it replaces, so that parsers accept it. */
static void add_pseudonym(const struct pseudonyms *p, enum kind kind, const char *text, size_t size,
			  struct text *out)
{
	static const char *const words[] = {"host", "serial", "", "", "", "", "user", "process", "id"};
	char h[65];

	hash_of(p, kind, text, size, h);
	switch (kind) {
	case KIND_UUID:
		text_addf(out, "%.8s-0000-0000-0000-000000000000", h);
		break;
	case KIND_MAC:
		text_addf(out, "02:%.2s:%.2s:%.2s:%.2s:%.2s", h, h + 2, h + 4, h + 6, h + 8);
		break;
	case KIND_IP: /* an address of the documentation network */
		text_addf(out, "192.0.2.%lu", strtoul((char[3]){h[0], h[1], 0}, NULL, 16));
		break;
	case KIND_GUID:
		text_addf(out, "%.4s:%.4s:%.4s:%.4s", h, h + 4, h + 8, h + 12);
		break;
	case KIND_MAPPED: /* an address of the documentation network */
		text_addf(out, "%sc000:02%.2s", mapped, h);
		break;
	case KIND_HOST:
	case KIND_SERIAL:
	case KIND_USER:
	case KIND_COMMAND:
	case KIND_ID:
		text_addf(out, "%s-%.8s", words[kind], h);
		break;
	}
}

bool pseudonym_is(const char *text, size_t size)
{
	static const char *const before[] = {"host-", "serial-",  "uuid-", "address-", "mac-", "user-",
					     "node-", "process-", "id-",   "GPU-",     "MIG-", ""};
	static const char zeros[] = "-0000-0000-0000-000000000000", network[] = "192.0.2.";

	if (size > strlen(network) && !strncmp(text, network, strlen(network)))
		return true;
	if (size > strlen(mapped) && !strncmp(text, mapped, strlen(mapped)) &&
	    !strncmp(text + strlen(mapped), "c000:02", strlen("c000:02")))
		return true;
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		size_t n = strlen(before[i]);
		bool uuid = !n || before[i][0] == 'G' || before[i][0] == 'M';

		if (strncmp(text, before[i], n) || size < n + 8 || strspn(text + n, "0123456789abcdef") != 8)
			continue;
		if ((n && size == n + 8) ||
		    (uuid && size == n + 8 + strlen(zeros) && !strncmp(text + n + 8, zeros, strlen(zeros))))
			return true;
	}
	return false;
}

static void learn(struct pseudonyms *p, enum kind kind, const char *text)
{
	if (!text || pseudonym_is(text, strlen(text)) || strlen(text) < NAME_MIN || p->count == NAMES_MAX ||
	    !strcmp(text, "root") || !strcmp(text, "/root"))
		return;
	for (size_t i = 0; i < p->count; i++) {
		if (!strcmp(p->name[i].text, text))
			return;
	}
	p->name[p->count].text = strdup(text);
	p->name[p->count].kind = kind;
	p->count += p->name[p->count].text != NULL;
}

/* A raw reading is [code, value]. */
static const char *text_of(const json_t *value)
{
	return json_string_value(json_is_array(value) ? json_array_get(value, 1) : value);
}

static void learn_processes(struct pseudonyms *p, const json_t *list)
{
	const json_t *row;
	size_t i;

	list = json_is_array(json_array_get(list, 1)) ? json_array_get(list, 1) : list;
	json_array_foreach((json_t *)list, i, row)
		learn(p, KIND_COMMAND, json_string_value(json_object_get(row, "name")));
}

/* Collects hexadecimal words of at least 16 characters, which name containers and control groups. */
static void learn_groups(struct pseudonyms *p, const char *text)
{
	while (*text) {
		size_t n = strspn(text, "0123456789abcdef");
		char word[129];

		if (n >= 16 && n < sizeof(word)) {
			snprintf(word, sizeof(word), "%.*s", (int)n, text);
			learn(p, KIND_ID, word);
		}
		text += n;
		text += strcspn(text, "0123456789abcdef");
	}
}

/* Collects names in kernel messages such as "NVRM: Xid (PCI:0000:1b:00): 31, pid=7, name=train.py, ..". */
static void learn_log(struct pseudonyms *p, const json_t *lines)
{
	const json_t *line;
	size_t i;

	json_array_foreach((json_t *)lines, i, line)
	{
		const char *at = json_string_value(line) ? strstr(json_string_value(line), ", name=") : NULL;
		char name[64];

		if (!at || at[7] == '<')
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 7, ","), at + 7);
		learn(p, KIND_COMMAND, name);
	}
}

/* Collects the names after each "/home/" of a path. */
static void learn_homes(struct pseudonyms *p, const char *text)
{
	char name[64];

	while ((text = strstr(text, "/home/"))) {
		text += strlen("/home/");
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "/:"), text);
		learn(p, KIND_USER, name);
	}
}

void pseudonyms_learn(struct pseudonyms *p, const json_t *tree)
{
	const json_t *value;
	const char *key;
	size_t i;

	if (json_is_string(tree))
		learn_homes(p, json_string_value(tree));

	json_array_foreach((json_t *)tree, i, value) pseudonyms_learn(p, value);
	json_object_foreach((json_t *)tree, key, value)
	{
		for (i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
			if (!strcmp(key, telling[i].key))
				learn(p, telling[i].kind, text_of(value));
		}
		if (!strcmp(key, "compute_processes") || !strcmp(key, "graphics_processes") ||
		    !strcmp(key, "processes"))
			learn_processes(p, value);
		if ((!strcmp(key, "/proc/self/cgroup") || !strcmp(key, "/proc/1/cgroup")) &&
		    json_is_string(value))
			learn_groups(p, json_string_value(value));
		if (!strcmp(key, "kernel_log"))
			learn_log(p, value);
		if (!strcmp(key, "user") && json_is_object(value))
			learn(p, KIND_USER, json_string_value(json_object_get(value, "name")));
		pseudonyms_learn(p, value);
	}
}

static size_t hex_run(const char *s)
{
	return strspn(s, "0123456789abcdefABCDEF");
}

/* Length of groups of exactly `widths` hexadecimal digits, separated by `sep`; 0: no match. */
static size_t groups(const char *s, const unsigned char *widths, size_t count, char sep)
{
	const char *p = s;

	for (size_t i = 0; i < count; i++) {
		if (hex_run(p) != widths[i])
			return 0;
		p += widths[i];
		if (i + 1 < count && *p++ != sep)
			return 0;
	}
	return *p == sep ? 0 : (size_t)(p - s);
}

static size_t ipv4(const char *s)
{
	unsigned a, b, c, d;
	int n = 0;

	if (sscanf(s, "%3u.%3u.%3u.%3u%n", &a, &b, &c, &d, &n) != 4 || a > 255 || b > 255 || c > 255 ||
	    d > 255)
		return 0;
	/* Version numbers are not addresses: they have leading zeros, or more or longer parts. */
	for (const char *p = s; p < s + n; p++) {
		if (*p == '0' && (p == s || p[-1] == '.') && isdigit((unsigned char)p[1]))
			return 0;
	}
	if (s[n] == '.' || isdigit((unsigned char)s[n]) || a == 127 || a == 0)
		return 0;
	return (size_t)n;
}

/* Length of the name at `s` that is recognized by its form: UUID, MAC (6 or 20 bytes) or GUID; 0: none. */
static size_t by_form(const char *s, enum kind *kind)
{
	static const unsigned char uuid[] = {8, 4, 4, 4, 12};
	static const unsigned char mac[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
	static const unsigned char guid[] = {4, 4, 4, 4, 4, 4, 4, 4};
	size_t n;

	*kind = KIND_UUID;
	n = groups(s, uuid, 5, '-');
	if (n)
		return n;
	*kind = KIND_MAC;
	n = groups(s, mac, 6, ':');
	if (!n)
		n = groups(s, mac, 20, ':');
	if (n)
		return strspn(s, "0:") == n ? 0 : n; /* an address of zeros identifies nobody */
	*kind = KIND_GUID;
	n = groups(s, guid, 4, ':');
	if (!n)
		n = groups(s, guid, 8, ':');
	if (n > strlen(mapped) && !strncmp(s, mapped, strlen(mapped)))
		*kind = KIND_MAPPED;
	return n && strspn(s, "0:") != n ? n : 0;
}

static bool inside_word(const char *whole, const char *s)
{
	return s > whole && (isalnum((unsigned char)s[-1]) || s[-1] == ':' || s[-1] == '.');
}

/* Length of the longest collected name at `s`; 0: none. */
static size_t learnt_at(const struct pseudonyms *p, const char *whole, const char *s, enum kind *kind)
{
	size_t best = 0;

	for (size_t i = 0; i < p->count; i++) {
		size_t n = strlen(p->name[i].text);
		char after = s[n < strlen(s) ? n : strlen(s)];

		if (n > best && !strncmp(s, p->name[i].text, n) &&
		    !(s > whole && isalnum((unsigned char)s[-1]) && isalnum((unsigned char)s[0])) &&
		    !isalnum((unsigned char)after)) {
			best = n;
			*kind = p->name[i].kind;
		}
	}
	return best;
}

/* The text with all names replaced; the caller frees it. NULL: nothing to replace. `addresses`: dotted
 * numbers are IPv4 addresses and not versions. */
static char *replaced(struct pseudonyms *p, const char *whole, bool addresses)
{
	struct text t = {0};
	bool changed = false;

	for (const char *s = whole; *s;) {
		enum kind kind = KIND_ID;
		size_t n = learnt_at(p, whole, s, &kind);

		if (!n && isxdigit((unsigned char)*s) && !inside_word(whole, s))
			n = by_form(s, &kind);
		if (!n && addresses && isdigit((unsigned char)*s) && !inside_word(whole, s)) {
			kind = KIND_IP;
			n = ipv4(s);
		}
		if (n && pseudonym_is(s, n)) {
			text_add_bytes(&t, s, n);
			s += n;
		} else if (n) {
			add_pseudonym(p, kind, s, n, &t);
			changed = true;
			s += n;
		} else {
			text_add_bytes(&t, s++, 1);
		}
	}
	if (changed && !t.failed)
		return t.data;
	text_release(&t);
	return NULL;
}

/* A short host name is not searched for in other texts, but the value under its own key is replaced. */
static char *whole_name(struct pseudonyms *p, const char *key, const json_t *value)
{
	const char *text = json_string_value(value);
	struct text t = {0};

	if (text && pseudonym_is(text, strlen(text)))
		return NULL;
	for (size_t i = 0; text && *text && i < sizeof(telling) / sizeof(telling[0]); i++) {
		if (!strcmp(key, telling[i].key)) {
			add_pseudonym(p, telling[i].kind, text, strlen(text), &t);
			return t.data;
		}
	}
	return NULL;
}

static size_t apply(struct pseudonyms *p, json_t *tree, bool addresses)
{
	json_t *value;
	const char *key;
	size_t i, changed = 0;
	void *tmp;

	json_array_foreach(tree, i, value)
	{
		char *text = json_is_string(value) ? replaced(p, json_string_value(value), addresses) : NULL;

		changed += text ? 1 : apply(p, value, addresses);
		if (text)
			json_array_set_new(tree, i, json_string(text));
		free(text);
	}
	json_object_foreach_safe(tree, tmp, key, value)
	{
		bool here = addresses || !strcmp(key, "environment") || !strcmp(key, "filesystems");
		char *text = whole_name(p, key, value);
		char *name = replaced(p, key, false);

		if (!text && json_is_string(value))
			text = replaced(p, json_string_value(value), here);

		changed += text ? 1 : apply(p, value, here);
		if (text)
			json_object_set_new(tree, key, json_string(text));
		if (name) {
			json_object_set(tree, name, json_object_get(tree, key));
			json_object_del(tree, key);
		}
		free(text);
		free(name);
	}
	return changed;
}

size_t pseudonyms_apply(struct pseudonyms *p, json_t *tree)
{
	return apply(p, tree, false);
}
