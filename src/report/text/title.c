/* SPDX-License-Identifier: Apache-2.0 */
/* The title of a case in plain words. Unknown probes are shown with their options. */
#include "report/text/format.h"
#include "core/text/units.h"
#include <stdbool.h>

static const char *option(const struct record_case *c, const char *name, const char *fallback)
{
	const char *text = record_option(c, name);

	return text && text[0] ? text : fallback;
}

static bool option_is(const struct record_case *c, const char *name, const char *value)
{
	return !strcmp(option(c, name, ""), value);
}

/* An option in bytes. For size=0 (the engine chooses) the value of `field` that the engine reported. */
static double option_bytes(const struct record_case *c, const char *name, const char *field)
{
	double value = 0;

	if (units_parse(&value, option(c, name, "0"), "B", NULL))
		value = 0;
	for (size_t i = 0; value == 0 && field && i < c->phase_count; i++)
		if (!record_number(&c->phase[i], field, &value))
			value = 0;
	return value > 0 ? value : 0;
}

static void add_bytes(struct text *t, const char *before, double bytes)
{
	char size[32];

	if (bytes <= 0)
		return;
	format_bytes(size, sizeof(size), bytes);
	text_addf(t, "%s%s", before, size);
}

static void title_gemm(struct text *t, const struct record_case *c)
{
	const char *m = option(c, "m", "?"), *n = option(c, "n", m), *k = option(c, "k", m);
	const char *search = option(c, "search", "first"), *type = option(c, "type", "");
	char shown[32];

	text_addf(t, "%s GEMM %s", format_type(type, shown, sizeof(shown)), m);
	if (strcmp(m, n) || strcmp(m, k))
		text_addf(t, "×%s×%s", n, k);
	if (strcmp(option(c, "batch", "1"), "1"))
		text_addf(t, " ×%s", option(c, "batch", "1"));
	if (option_is(c, "bias", "true"))
		text_add(t, " + bias");
	if (option_is(c, "data", "zeros"))
		text_add(t, ", zeros");
	if (option_is(c, "accumulate", "exact") && strstr(shown, "FP8"))
		text_add(t, ", exact accumulation");
	if (option_is(c, "scale", "block"))
		text_add(t, ", block scales");
	/* The result of a search is a separate figure (phase "best"); the verdict uses the first choice. */
	if (strcmp(search, "first") && strcmp(search, "top"))
		text_addf(t, ", %s search", search);
	if (option_is(c, "threads", "1"))
		text_add(t, ", one thread");
}

/* "H96/8": query heads and the key heads that they share. */
static void title_attention(struct text *t, const struct record_case *c)
{
	const char *kv_heads = option(c, "kv_heads", "0"), *kv_seq = option(c, "kv_seq", "0");
	const char *pattern = option(c, "pattern", "none");
	char shown[32];

	text_addf(t, "%s attention B%s H%s", format_type(option(c, "type", ""), shown, sizeof(shown)),
		  option(c, "batch", "?"), option(c, "heads", "?"));
	if (strcmp(kv_heads, "0") && strcmp(kv_heads, option(c, "heads", "?")))
		text_addf(t, "/%s", kv_heads);
	text_addf(t, " S%s", option(c, "seq", "?"));
	if (strcmp(kv_seq, "0") && strcmp(kv_seq, option(c, "seq", "?")))
		text_addf(t, "×%s", kv_seq);
	text_addf(t, " D%s", option(c, "head_dim", "?"));
	if (!option_is(c, "mask", "none"))
		text_addf(t, " %s", option(c, "mask", ""));
	if (option_is(c, "mask", "window"))
		text_addf(t, " %s:%s", option(c, "left", "0"), option(c, "right", "0"));
	if (strcmp(option(c, "lengths", "-"), "-"))
		text_add(t, " of different lengths");
	if (strcmp(pattern, "none"))
		text_addf(t, ", %s blocks", pattern);
	if (!strcmp(pattern, "random") || !strcmp(pattern, "strided"))
		text_addf(t, " %s", option(c, "density", "1"));
	if (option_is(c, "pass", "backward"))
		text_add(t, ", backward");
	if (option_is(c, "data", "large"))
		text_add(t, ", large logits");
	if (strcmp(option(c, "search", "first"), "first") && strcmp(option(c, "search", "first"), "top"))
		text_addf(t, ", %s search", option(c, "search", ""));
}

static void title_memory(struct text *t, const struct record_case *c)
{
	const char *op = option(c, "op", "read");
	const char *where = !strcmp(c->limit, "cache") ? "cache" : "memory";

	if (!strcmp(op, "chase"))
		text_add(t, "pointer chase");
	else if (!strcmp(op, "set"))
		text_addf(t, "%s fill", where);
	else
		text_addf(t, "%s %s", where, op);
	add_bytes(t, " ", option_bytes(c, "size", "stream_bytes"));
	if (option_is(c, "store", "nontemporal"))
		text_add(t, ", bypassing the cache");
	if (option_is(c, "store", "regular"))
		text_add(t, ", regular stores");
	if (option_is(c, "threads", "1"))
		text_add(t, ", one thread");
}

static void title_streams(struct text *t, const char *unit)
{
	static const struct {
		const char *name, *shown;
	} rows[] = {
		{"read", "read ceiling"},
		{"read2", "ceiling of reading two streams"},
		{"write", "write ceiling"},
		{"write_nt", "write ceiling, bypassing the cache"},
		{"read_write", "ceiling of reading one stream and writing one"},
		{"read_write_nt", "ceiling of reading one stream and writing one, bypassing the cache"},
		{"read2_write", "ceiling of reading two streams and writing one"},
		{"read2_write_nt", "ceiling of reading two streams and writing one, bypassing the cache"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, unit)) {
			text_add(t, rows[i].shown);
			return;
		}
	text_addf(t, "ceiling, unit %s", unit[0] ? unit : "?");
}

static void title_peak(struct text *t, const struct record_case *c)
{
	const char *unit = option(c, "unit", "");
	char shown[32];

	format_type(option(c, "type", ""), shown, sizeof(shown));
	if (!strcmp(unit, "fma"))
		text_addf(t, "%s multiply-add ceiling", shown);
	else if (!strcmp(unit, "mma"))
		text_addf(t, "%s matrix unit ceiling", shown);
	else if (!strcmp(unit, "add"))
		text_add(t, "clock by dependent adds");
	else
		title_streams(t, unit);
	if (strcmp(option(c, "isa", "auto"), "auto"))
		text_addf(t, ", %s", option(c, "isa", ""));
	if (option_is(c, "threads", "1"))
		text_add(t, ", one thread");
}

static const struct {
	const char *name, *shown;
} link_words[] = {
	{"h2d", "host to device"},
	{"d2h", "device to host"},
	{"both", "host and device, both ways"},
	{"bidir", "host and device, both ways"},
	{"latency", "reading host memory, latency"},
	{"p2p", "GPU to GPU"},
};

static void title_link(struct text *t, const struct record_case *c)
{
	const char *way = option(c, "direction", option(c, "dir", option(c, "op", "")));
	const char *memory = option(c, "memory", option(c, "host", ""));

	for (size_t i = 0; i < sizeof(link_words) / sizeof(link_words[0]); i++)
		if (!strcmp(link_words[i].name, way))
			way = link_words[i].shown;
	text_add(t, way[0] ? way : "host link");
	add_bytes(t, " ", option_bytes(c, "size", NULL));
	if (memory[0])
		text_addf(t, ", %s", memory);
}

static void title_p2p(struct text *t, const struct record_case *c)
{
	if (option_is(c, "direction", "latency")) {
		text_add(t, "reading another GPU's memory, latency");
		return;
	}
	if (option_is(c, "pattern", "all"))
		text_add(t, "every GPU to all others at once");
	else if (option_is(c, "pattern", "out"))
		text_add(t, "one GPU to all others at once");
	else if (option_is(c, "pattern", "in"))
		text_add(t, "all other GPUs to one at once");
	else
		text_add(t, option_is(c, "direction", "both") ? "GPU to GPU, both ways" : "GPU to GPU");
	add_bytes(t, " ", option_bytes(c, "size", NULL));
}

/* Options of a collective that the title names if they differ from their default `own`. `how`: the option
 * changes how the work is run, not the work. */
static const struct {
	const char *option, *own, *behind;
	bool how;
} collective_rest[] = {
	{"place", "out", "", false},	   {"buffers", "plain", " buffers", true},
	{"launch", "stream", "", true},	   {"algorithm", "auto", "", true},
	{"protocol", "auto", "", true},	   {"ctas", "0", " CTAs", true},
	{"root", "0", " the root", false},
};

static void add_rest(struct text *t, const struct record_case *c, bool what, bool how)
{
	for (size_t i = 0; i < sizeof(collective_rest) / sizeof(collective_rest[0]); i++) {
		const char *name = collective_rest[i].option, *own = collective_rest[i].own;
		const char *value = option(c, name, own);

		if (!strcmp(value, own) || !(collective_rest[i].how ? how : what))
			continue;
		text_addf(t, "%s%s%s", t->size ? ", " : "", !strcmp(name, "place") ? "in place" : value,
			  collective_rest[i].behind);
	}
}

static const char *collective_name(const struct record_case *c)
{
	static const char *const names[][2] = {{"allreduce", "all-reduce"},
					       {"allgather", "all-gather"},
					       {"reducescatter", "reduce-scatter"},
					       {"alltoall", "all-to-all"},
					       {"sendrecv", "send and receive"}};
	const char *op = option(c, "op", "");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(op, names[i][0]))
			return names[i][1];
	return op;
}

static void add_element(struct text *t, const struct record_case *c)
{
	const char *reduce = option(c, "reduce", "sum");

	text_addf(t, ", %s", option(c, "type", ""));
	if (strcmp(reduce, "sum"))
		text_addf(t, " %s", reduce);
}

static void title_collective(struct text *t, const struct record_case *c)
{
	text_add(t, collective_name(c));
	add_bytes(t, " ", option_bytes(c, "size", NULL));
	add_element(t, c);
	add_rest(t, c, true, true);
	if (option_is(c, "search", "top"))
		text_add(t, ", searched");
}

void format_collective(struct text *what, struct text *how, const struct record_case *c)
{
	text_add(what, collective_name(c));
	add_element(what, c);
	add_rest(what, c, true, false);
	add_rest(how, c, false, true);
}

static void title_dispatch(struct text *t, const struct record_case *c)
{
	if (option_is(c, "what", "graph"))
		text_addf(t, "graph replay of %s kernels", option(c, "nodes", "?"));
	else
		text_add(t, "kernel launch");
}

static void title_stress(struct text *t, const struct record_case *c)
{
	const char *unit = option(c, "unit", "all");
	char shown[32];

	if (!strcmp(unit, "memory"))
		text_add(t, "stress of memory");
	else
		text_addf(t, "stress of %s, %s", !strcmp(unit, "all") ? "all units" : "the matrix units",
			  format_type(option(c, "type", "bf16"), shown, sizeof(shown)));
}

static void title_scaling(struct text *t, const struct record_case *c)
{
	char shown[32];

	text_addf(t, "training step, %s layers of %s, %s rows, %s", option(c, "layers", "?"),
		  option(c, "width", "?"), option(c, "m", "?"),
		  format_type(option(c, "type", "bf16"), shown, sizeof(shown)));
	if (option_is(c, "overlap", "false"))
		text_add(t, ", no overlap");
}

static const struct {
	const char *probe, *shown;
} plain[] = {
	{"hbm", "device memory walk"},
	{"sm", "each SM by itself"},
	{"null", "null probe"},
};

/* The probe's name and up to three of its options. */
static void title_other(struct text *t, const struct record_case *c)
{
	const json_t *options = json_object_get(c->plan, "options");
	const char *name = c->probe, *key;
	unsigned shown = 0;
	json_t *value;

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(plain[i].probe, c->probe))
			name = plain[i].shown;
	for (const char *p = name; *p; p++)
		text_add_bytes(t, *p == '_' ? " " : p, 1);
	if (name != c->probe)
		return;
	json_object_foreach((json_t *)options, key, value)
	{
		const char *text = json_string_value(value);

		if (text && text[0] && shown++ < 3)
			text_addf(t, "%s%s %s", shown == 1 ? " " : ", ", key, text);
	}
}

/* True if the title names the engine. Own loops and kernels are the default and not named, except on links
 * and for attention, where several engines run side by side. */
static bool names_engine(const struct record_case *c)
{
	return !strcmp(c->probe, "link") || !strcmp(c->probe, "p2p") || !strcmp(c->probe, "attention") ||
	       (strcmp(c->engine, "own") && strcmp(c->engine, "cpu"));
}

void format_title(char *out, size_t size, const struct record_case *c)
{
	static const struct {
		const char *probe;
		void (*title)(struct text *t, const struct record_case *c);
	} known[] = {
		{"attention", title_attention},
		{"collective", title_collective},
		{"dispatch", title_dispatch},
		{"gemm", title_gemm},
		{"link", title_link},
		{"memory", title_memory},
		{"p2p", title_p2p},
		{"peak", title_peak},
		{"scaling", title_scaling},
		{"stress", title_stress},
	};
	void (*title)(struct text *, const struct record_case *) = title_other;
	struct text t = {0};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].probe, c->probe))
			title = known[i].title;
	if (title == title_attention && !*option(c, "seq", "")) /* a journal with other options */
		title = title_other;
	title(&t, c);
	if (c->together)
		text_add(&t, ", together");
	if (c->round)
		text_addf(&t, ", round %u", c->round);
	if (c->engine[0] && !c->reading && names_engine(c))
		text_addf(&t, ", %s", format_engine(c->engine));
	text_copy(out, size, text_str(&t));
	text_release(&t);
}
