/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/grammar/automaton/marks.h"
#include "engine/grammar/automaton/expr.h"

static int compare_bytes(const void *a, const void *b)
{
	const struct bytes *x = a, *y = b;
	int order = memcmp(x->data, y->data, x->size < y->size ? x->size : y->size);

	return order ? order : x->size < y->size ? -1 : x->size > y->size;
}

/* Bytes that all texts of a sorted group share behind `depth`. */
static size_t shared_bytes(const struct bytes *first, const struct bytes *last, size_t depth)
{
	size_t n = depth;

	while (n < first->size && n < last->size && first->data[n] == last->data[n])
		n++;
	return n - depth;
}

/* Texts [begin, end) of the sorted list share their first `depth` bytes. */
struct group {
	size_t begin, end, depth;
	uint32_t from;
};

/* Splits the tree of texts without recursion, since texts may be long. */
void build_choice(struct builder *b, uint32_t from, struct bytes *texts, size_t count, uint32_t to)
{
	struct group *stack;
	size_t used = 0;

	if (!count || !builder_step(b, count))
		return;
	qsort(texts, count, sizeof(*texts), compare_bytes);
	/* Each group on the stack holds texts of its own, so there are at most `count`. */
	stack = malloc((count + 1) * sizeof(*stack));
	if (!stack) {
		builder_no_memory(b);
		return;
	}
	stack[used++] = (struct group){0, count, 0, from};
	while (used && !b->status) {
		struct group g = stack[--used];
		size_t shared = shared_bytes(&texts[g.begin], &texts[g.end - 1], g.depth);

		if (texts[g.begin].size == g.depth + shared) {
			if (g.end - g.begin == 1) {
				build_text(b, g.from, texts[g.begin].data + g.depth, shared, to);
				continue;
			}
		}
		if (shared) {
			uint32_t next = build_node(b);

			build_text(b, g.from, texts[g.begin].data + g.depth, shared, next);
			g.from = next;
			g.depth += shared;
		}
		while (g.begin < g.end && texts[g.begin].size == g.depth) {
			build_empty(b, g.from, to);
			g.begin++;
		}
		while (g.begin < g.end) {
			size_t end = g.begin + 1;

			while (end < g.end && texts[end].data[g.depth] == texts[g.begin].data[g.depth])
				end++;
			stack[used++] = (struct group){g.begin, end, g.depth, g.from};
			g.begin = end;
		}
	}
	free(stack);
}

/* Edges from a node to the nodes of a table, one per run of equal bytes; 0: no edge. */
static void build_table(struct builder *b, uint32_t from, const uint32_t target[256])
{
	for (unsigned low = 0, high; low < 256; low = high + 1) {
		for (high = low; high < 255 && target[high + 1] == target[low]; high++)
			;
		if (target[low])
			build_byte(b, from, low, high, target[low]);
	}
}

/* The Knuth-Morris-Pratt automaton of the mark: state i has read the mark's first i bytes. */
static void matching(const char *mark, size_t size, uint8_t next[MARK_MOST][256])
{
	uint8_t restart = 0; /* the state behind the mark's bytes 1 to i - 1 */

	memset(next[0], 0, 256);
	next[0][(uint8_t)mark[0]] = 1;
	for (size_t i = 1; i < size; i++) {
		uint8_t then = next[restart][(uint8_t)mark[i]];

		memcpy(next[i], next[restart], 256);
		next[i][(uint8_t)mark[i]] = (uint8_t)(i + 1);
		restart = then;
	}
}

void build_until(struct builder *b, uint32_t from, const char *mark, uint32_t to, uint32_t stop)
{
	uint32_t node[MARK_MOST + 1], table[256];
	uint8_t next[MARK_MOST][256];
	size_t size = strlen(mark);

	if (!size || size > MARK_MOST) {
		builder_fail(b, STATUS_BAD_INPUT, "a mark has %zu bytes: expected 1 to %d", size, MARK_MOST);
		return;
	}
	matching(mark, size, next);
	for (size_t i = 0; i < size; i++)
		node[i] = build_node(b);
	node[size] = to;
	build_empty(b, from, node[0]);
	for (size_t i = 0; i < size; i++) {
		for (unsigned byte = 0; byte < 256; byte++)
			table[byte] = node[next[i][byte]];
		build_table(b, node[i], table);
		if (stop)
			build_empty(b, node[i], stop);
	}
}

void build_beginning(struct builder *b, uint32_t from, const char *mark, uint32_t to, uint32_t stop)
{
	size_t size = strlen(mark);
	uint32_t free_text = build_node(b), node = from, table[256];

	build_byte(b, free_text, 0, 255, free_text);
	build_empty(b, free_text, stop);
	for (size_t i = 0; i < size; i++) {
		uint32_t next = i + 1 < size ? build_node(b) : to;

		for (unsigned byte = 0; byte < 256; byte++)
			table[byte] = free_text;
		if (!i)
			table[' '] = table['\n'] = node;
		table[(uint8_t)mark[i]] = next;
		build_table(b, node, table);
		build_empty(b, node, stop);
		node = next;
	}
}

/* Texts [begin, end) of the sorted list share their first `depth` bytes, which end with a character. */
static void leave_texts(struct builder *b, struct group g, const struct bytes *texts, uint32_t rest,
			uint32_t to)
{
	bool ends = texts[g.begin].size == g.depth;
	struct char_set others = {.range = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}, .count = 3};

	for (size_t i = g.begin; i < g.end; i++) {
		const char *at = texts[i].data + g.depth;
		uint32_t code;

		if (texts[i].size > g.depth && char_read(&at, texts[i].data + texts[i].size, &code))
			char_set_add(&others, code, code);
	}
	char_set_invert(&others);
	build_expr(b, expr_class(b, &others, ENCODE_RAW), g.from, rest);
	if (!ends)
		build_byte(b, g.from, '"', '"', to);
}

static bool is_plain(const struct bytes *text)
{
	for (size_t i = 0; i < text->size; i++)
		if ((unsigned char)text->data[i] < 0x20 || text->data[i] == '"' || text->data[i] == '\\')
			return false;
	return true;
}

/* The groups of texts with one more character in common. Returns the number of groups on the stack. */
static size_t split_by_char(struct builder *b, struct group g, const struct bytes *texts, struct group *stack,
			    size_t used)
{
	while (g.begin < g.end && texts[g.begin].size == g.depth)
		g.begin++;
	while (g.begin < g.end && !b->status) {
		const char *first = texts[g.begin].data + g.depth, *at = first;
		size_t end = g.begin + 1, taken;
		uint32_t code, next = build_node(b);

		if (!char_read(&at, texts[g.begin].data + texts[g.begin].size, &code))
			builder_fail(b, STATUS_BAD_INPUT, "a name is not UTF-8");
		taken = (size_t)(at - first);
		while (end < g.end && texts[end].size >= g.depth + taken &&
		       !memcmp(texts[end].data + g.depth, first, taken))
			end++;
		build_text(b, g.from, first, taken, next);
		stack[used++] = (struct group){g.begin, end, g.depth + taken, next};
		g.begin = end;
	}
	return used;
}

void build_other_string(struct builder *b, uint32_t from, struct bytes *texts, size_t count, uint32_t to)
{
	struct char_set plain = {.range = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}, .count = 3};
	uint32_t rest = build_node(b), begin = build_node(b);
	struct group *stack;
	size_t used = 0, kept = 0;

	/* A text that needs an escape cannot be equal. */
	for (size_t i = 0; i < count; i++)
		if (is_plain(&texts[i]))
			texts[kept++] = texts[i];
	qsort(texts, kept, sizeof(*texts), compare_bytes);
	char_set_invert(&plain);
	build_byte(b, from, '"', '"', kept ? begin : rest);
	build_expr(b, expr_class(b, &plain, ENCODE_RAW), rest, rest);
	build_byte(b, rest, '"', '"', to);
	stack = malloc((kept + 1) * sizeof(*stack));
	if (!stack) {
		builder_no_memory(b);
		return;
	}
	if (kept)
		stack[used++] = (struct group){0, kept, 0, begin};
	while (used && !b->status) {
		struct group g = stack[--used];

		leave_texts(b, g, texts, rest, to);
		used = split_by_char(b, g, texts, stack, used);
	}
	free(stack);
}
