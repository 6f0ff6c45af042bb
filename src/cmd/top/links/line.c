/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a state as one line, and derives the exit code from it. */
#include "cmd/command.h"
#include "cmd/info/info.h"
#include "cmd/top/links/links.h"
#include "core/json/member.h"
#include "core/text/units.h"

/* Counts over many rows for the line. */
struct tally {
	size_t rows, up, links;
	json_int_t risen;
	double out, in;
	bool out_known, in_known;
	const char *why;
};

static void tally_rates(struct tally *s, const json_t *rates, const char *out, const char *in)
{
	s->out_known = s->out_known || json_object_get(rates, out);
	s->in_known = s->in_known || json_object_get(rates, in);
	s->out += info_number(rates, out);
	s->in += info_number(rates, in);
}

static void add_tally(struct text *t, const struct tally *s)
{
	char out[32] = "-", in[32] = "-";

	if (s->out_known)
		units_format(out, sizeof(out), s->out, "B/s");
	if (s->in_known)
		units_format(in, sizeof(in), s->in, "B/s");
	text_addf(t, ", out %s, in %s, errors +%lld", out, in, (long long)s->risen);
	if (s->why)
		text_addf(t, ", %s", s->why);
}

static void nvlink_line(struct text *t, const json_t *part)
{
	struct tally s = {0};
	const json_t *gpu, *link;
	size_t i, l;

	json_array_foreach(json_object_get(part, "gpus"), i, gpu)
	{
		s.rows++;
		s.up += (size_t)info_number(gpu, "up");
		s.links += json_array_size(json_object_get(gpu, "links"));
		tally_rates(&s, json_object_get(gpu, "sum"), "payload_tx", "payload_rx");
		if (*json_member_text(gpu, "why"))
			s.why = json_member_text(gpu, "why");
		json_array_foreach(json_object_get(gpu, "links"), l, link) s.risen += links_risen(link);
	}
	if (*json_member_text(part, "why") || *json_member_text(part, "none")) {
		text_addf(t, "; nvlink: %s%s", json_member_text(part, "why"), json_member_text(part, "none"));
		return;
	}
	text_addf(t, "; nvlink %zu GPU%s, %zu of %zu up", s.rows, s.rows == 1 ? "" : "s", s.up, s.links);
	add_tally(t, &s);
}

static void ib_line(struct text *t, const json_t *part)
{
	struct tally s = {0};
	const json_t *port;
	size_t i;

	json_array_foreach(json_object_get(part, "ports"), i, port)
	{
		s.rows++;
		s.up += !strcmp(json_member_text(port, "state"), "ACTIVE");
		tally_rates(&s, json_object_get(port, "rates"), "tx", "rx");
		s.risen += links_risen(port);
	}
	if (*json_member_text(part, "why") || *json_member_text(part, "none")) {
		text_addf(t, "; ib: %s%s", json_member_text(part, "why"), json_member_text(part, "none"));
		return;
	}
	text_addf(t, "; ib %zu of %zu ports ACTIVE", s.up, s.rows);
	add_tally(t, &s);
}

static void nccl_line(struct text *t, const json_t *part)
{
	const json_t *row;
	size_t i, hurts = 0, unknown = 0;

	json_array_foreach(json_object_get(part, "settings"), i, row)
	{
		hurts += !strcmp(json_member_text(row, "verdict"), "hurts");
		unknown += !strcmp(json_member_text(row, "verdict"), "unknown");
	}
	text_addf(t, "; nccl %zu set, %zu hurt, %zu unknown",
		  json_array_size(json_object_get(part, "settings")), hurts, unknown);
}

void links_line(struct text *out, const json_t *state)
{
	text_add(out, json_member_text(state, "t"));
	if (json_object_get(state, "nccl"))
		nccl_line(out, json_object_get(state, "nccl"));
	if (json_object_get(state, "nvlink"))
		nvlink_line(out, json_object_get(state, "nvlink"));
	if (json_object_get(state, "ib"))
		ib_line(out, json_object_get(state, "ib"));
	text_add(out, "\n");
}

static int worse(int a, int b)
{
	/* As in a run, 1 (something is wrong) outranks 2 (something could not be read). */
	return a == EXIT_FAILED || b == EXIT_FAILED ? EXIT_FAILED : a > b ? a : b;
}

static int nvlink_code(const json_t *part)
{
	const json_t *gpu;
	int code = *json_member_text(part, "why") ? EXIT_INCONCLUSIVE : EXIT_PASS;
	size_t i;

	json_array_foreach(json_object_get(part, "gpus"), i, gpu)
	{
		if (*json_member_text(gpu, "why"))
			code = worse(code, EXIT_INCONCLUSIVE);
		if ((size_t)info_number(gpu, "up") < json_array_size(json_object_get(gpu, "links")))
			code = EXIT_FAILED;
	}
	return code;
}

int links_code(const json_t *state)
{
	const json_t *ib = json_object_get(state, "ib"), *nccl = json_object_get(state, "nccl"), *row;
	int code = nvlink_code(json_object_get(state, "nvlink"));
	size_t i;

	if (*json_member_text(ib, "why") || json_array_size(json_object_get(nccl, "unreadable")))
		code = worse(code, EXIT_INCONCLUSIVE);
	json_array_foreach(json_object_get(ib, "ports"), i, row)
	{
		if (json_object_get(row, "unreadable"))
			code = worse(code, EXIT_INCONCLUSIVE);
	}
	json_array_foreach(json_object_get(nccl, "settings"), i, row)
	{
		if (json_object_get(row, "fails"))
			code = EXIT_FAILED;
	}
	return code;
}
