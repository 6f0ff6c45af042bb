/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the answer of a node: a refusal with a printable message, or events with safe names; the same ones however the bytes are
 * divided; and files only below the folder that they belong to. */
#include "folder.h"

#include "deploy/received.h"

struct seen {
	struct text log;
	struct received received;
	bool writes;
};

static enum status take(void *arg, const struct answer_event *e, struct error *err)
{
	struct seen *s = arg;

	if (e->kind == ANSWER_FILE || e->kind == ANSWER_SAME) {
		FUZZ_CHECK(answer_name_is_safe(e->text) && e->text[0] != '/' && !strstr(e->text, "/../"));
		FUZZ_CHECK(strlen(e->sum) == 64);
	}
	if (e->kind == ANSWER_BYTES)
		FUZZ_CHECK(!strcmp(e->text, "out") || !strcmp(e->text, "err"));
	if (e->kind == ANSWER_DATA)
		text_add_bytes(&s->log, e->data, e->size);
	else
		text_addf(&s->log, "<%d %s %llu %s %d>", e->kind, e->text ? e->text : "", (unsigned long long)e->number, e->sum, e->run);
	if (!s->writes)
		return STATUS_OK;
	switch (e->kind) {
	case ANSWER_FILE:
	case ANSWER_SAME:
	case ANSWER_SKIP:
		return received_take(&s->received, e, err);
	case ANSWER_DATA:
	case ANSWER_DATA_END:
		return s->received.open ? received_take(&s->received, e, err) : STATUS_OK;
	default:
		return STATUS_OK;
	}
}

static enum status feed(struct seen *s, const uint8_t *data, size_t size, size_t step, struct error *err)
{
	struct answer a = {.take = take, .arg = s};
	enum status st = STATUS_OK;

	for (size_t at = 0; at < size && !st; at += step)
		st = answer_feed(&a, (const char *)data + at, size - at < step ? size - at : step, err);
	FUZZ_CHECK(st == err->status);
	for (const char *c = err->text; *c; c++)
		FUZZ_CHECK(*c >= ' ' && *c <= '~');
	return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = {0}, parts = {0}, files = {.writes = true, .received.most = 1 << 16};
	struct error err = {0}, of_parts = {0}, of_files = {0};
	enum status st;

	if (size > 65536)
		return 0;
	st = feed(&whole, data, size, size ? size : 1, &err);
	FUZZ_CHECK(feed(&parts, data, size, 1 + size % 7, &of_parts) == st);
	FUZZ_CHECK(whole.log.size == parts.log.size && !memcmp(text_str(&whole.log), text_str(&parts.log), whole.log.size));
	text_copy(files.received.folder, sizeof(files.received.folder), fuzz_path("host"));
	feed(&files, data, size, 4096, &of_files);
	received_abandon(&files.received);
	file_remove_tree(fuzz_path("host"));
	text_release(&whole.log);
	text_release(&parts.log);
	text_release(&files.log);
	return 0;
}
