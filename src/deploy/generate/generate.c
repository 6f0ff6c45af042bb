/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/generate/generate.h"

#include <string.h>

void generate_reason(struct text *t, unsigned indent, const char *reason)
{
	for (const char *at = reason, *end; *at; at = *end ? end + 1 : end) {
		end = at + strcspn(at, "\n");
		text_addf(t, "%*s# %.*s\n", (int)indent, "", (int)(end - at), at);
	}
}

void generate_quoted(struct text *t, const char *word)
{
	text_add(t, "\"");
	for (const char *c = word; *c; c++)
		text_addf(t, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	text_add(t, "\"");
}

/* A label of DNS (RFC 1123), as Kubernetes demands of names. */
static bool is_label(const char *name)
{
	static const char inner[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t n = strlen(name);

	return n && n <= 63 && strspn(name, inner) == n && name[0] != '-' && name[n - 1] != '-';
}

static bool is_image(const char *image)
{
	static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/:@-";

	return *image && strspn(image, good) == strlen(image) && *image != '-' && *image != '/';
}

enum status generate_check(const struct generate_plan *p, struct error *err)
{
	bool pods = p->kind == GENERATE_JOB || p->kind == GENERATE_DAEMONSET;

	if (!is_label(p->name))
		return error_set(
			err, STATUS_BAD_INPUT,
			"--name \"%.70s\" is not a name that Kubernetes and Slurm accept: at most 63 of a-z 0-9 and -, no - "
			"at either end",
			p->name);
	if (!is_label(p->space))
		return error_set(
			err, STATUS_BAD_INPUT,
			"--namespace \"%.70s\" is not a name that Kubernetes accepts: at most 63 of a-z 0-9 and -, no - at "
			"either end",
			p->space);
	if (pods && !p->image)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--image is missing: the name of an image with assay; --as containerfile prints its recipe");
	if (p->image && !is_image(p->image))
		return error_set(err, STATUS_BAD_INPUT, "--image \"%.80s\" is not the name of an image",
				 p->image);
	if (p->kind == GENERATE_HPA && p->nodes < 2)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--as kubernetes-hpa needs --nodes of at least 2: the autoscaler keeps between one and that many pods, "
			"so with 1 it never scales");
	for (size_t i = 0; i < p->words.count; i++)
		for (const char *c = p->words.word[i]; *c; c++)
			if ((unsigned char)*c < ' ' || *c == 127)
				return error_set(err, STATUS_BAD_INPUT,
						 "deploy: \"%.40s\" after -- contains control characters",
						 p->words.word[i]);
	return STATUS_OK;
}

void generate_write(struct text *t, const struct generate_plan *p)
{
	static void (*const writers[GENERATE_KIND_COUNT])(struct text *, const struct generate_plan *) = {
		[GENERATE_SLURM_ARRAY] = generate_slurm_array,
		[GENERATE_JOB] = generate_job,
		[GENERATE_DAEMONSET] = generate_daemonset,
		[GENERATE_HPA] = generate_hpa,
		[GENERATE_SERVICEMONITOR] = generate_servicemonitor,
		[GENERATE_CONTAINERFILE] = generate_containerfile};

	writers[p->kind](t, p);
}
