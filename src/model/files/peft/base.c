/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether an adapter was trained on this base model. */
#include "model/files/peft/base.h"

#include "model/files/fingerprint.h"

/* The last part of a path or of a hub's model name. */
static const char *leaf(const char *path, size_t *size)
{
	const char *end = path + strlen(path), *begin;

	while (end > path + 1 && end[-1] == '/')
		end--;
	for (begin = end; begin > path && begin[-1] != '/';)
		begin--;
	*size = (size_t)(end - begin);
	return begin;
}

static bool same_leaf(const char *a, const char *b)
{
	size_t a_size, b_size;

	a = leaf(a, &a_size);
	b = leaf(b, &b_size);
	return a_size == b_size && !memcmp(a, b, a_size);
}

enum status peft_check_base(const struct peft *p, const struct weights *w, bool any, const struct log *log,
			    struct error *err)
{
	const char *base = p->config.base[0] ? p->config.base : "an unnamed model";
	char sum[FINGERPRINT_SIZE];
	enum status st;

	if (!p->config.base_sum[0]) {
		if (p->config.base[0] && !same_leaf(p->config.base, w->path))
			log_warn(
				log, LOG_TOPIC_RUN,
				"%s: it names %s as its base model; assay can only check that its sizes fit %s",
				p->path, p->config.base, w->path);
		return STATUS_OK;
	}
	st = weights_fingerprint(sum, w, FINGERPRINT_NUMBERS, err);
	if (st || !strcmp(sum, p->config.base_sum))
		return st;
	if (!any)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%.150s: it is an adapter of %.150s, but %.150s has other weights (another model, "
			"or another precision); --any-base uses it anyway",
			p->path, base, w->path);
	log_warn(log, LOG_TOPIC_RUN, "%s: it is an adapter of %s, but %s has other weights", p->path, base,
		 w->path);
	return STATUS_OK;
}
