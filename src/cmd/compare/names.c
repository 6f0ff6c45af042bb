/* SPDX-License-Identifier: Apache-2.0 */
/* Names runs by the part of their paths that differs. Folders that all paths share at the beginning or the
 * end are left out. */
#include "cmd/compare/compare.h"

enum { PARTS_MAX = 64 };

struct parts {
	const char *at[PARTS_MAX];
	size_t size[PARTS_MAX], count;
};

static struct parts parts_of(const char *path)
{
	struct parts p = {0};

	while (*path && p.count < PARTS_MAX) {
		size_t n = strcspn(path, "/");

		if (n || !p.count) { /* an empty part only at the beginning: the root folder */
			p.at[p.count] = path;
			p.size[p.count++] = n;
		}
		path += n + (path[n] == '/');
	}
	return p;
}

static bool same(const struct parts *a, size_t i, const struct parts *b, size_t k)
{
	return a->size[i] == b->size[k] && !strncmp(a->at[i], b->at[k], a->size[i]);
}

/* Number of parts, below `most`, that both paths share at the beginning, or at the end if `back` is set. */
static size_t shared(const struct parts *a, const struct parts *b, size_t most, bool back)
{
	size_t n = 0;

	while (n < most && (back ? same(a, a->count - 1 - n, b, b->count - 1 - n) : same(a, n, b, n)))
		n++;
	return n;
}

void compare_name(char *out, size_t size, const struct compare_run *runs, size_t count, const char *name)
{
	struct parts own = parts_of(name);
	size_t least = own.count, front, back;
	const char *end;

	for (size_t i = 0; i < count; i++) {
		const struct parts p = parts_of(runs[i].name);

		least = p.count < least ? p.count : least;
	}
	front = back = least ? least - 1 : 0; /* at least one part of each path stays */
	for (size_t i = 0; i < count; i++) {
		const struct parts p = parts_of(runs[i].name);

		front = shared(&own, &p, front, false);
	}
	back = least > front ? least - front - 1 : 0;
	for (size_t i = 0; i < count; i++) {
		const struct parts p = parts_of(runs[i].name);

		back = shared(&own, &p, back, true);
	}
	if (!own.count || count < 2) {
		text_copy(out, size, name);
		return;
	}
	end = own.at[own.count - 1 - back] + own.size[own.count - 1 - back];
	snprintf(out, size, "%.*s", (int)(end - own.at[front]), own.at[front]);
}
