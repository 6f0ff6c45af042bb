/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as deploy.json: a refusal that names the file, or a deployment whose hosts have folders of their own. What is read can be
 * written and read again, and is the same then. */
#include "folder.h"

#include "deploy/deploy.h"

static void check_hosts(const struct deploy *d)
{
	char folder[PATH_MAX], other[PATH_MAX];

	FUZZ_CHECK(d->count && d->count <= HOSTS_MAX);
	for (size_t i = 0; i < d->count; i++) {
		const struct deploy_host *h = &d->host[i];

		deploy_host_folder(folder, d, h);
		FUZZ_CHECK(h->state < HOST_STATE_COUNT && strlen(h->run) == HOST_RUN - 1);
		FUZZ_CHECK(h->exit_code >= -1 && h->exit_code <= 255);
		FUZZ_CHECK(*h->name && *h->name != '-' && !strchr(h->name, '/') && h->name[strspn(h->name, ".")]);
		for (size_t k = 0; k < i && i < 64; k++) {
			deploy_host_folder(other, d, &d->host[k]);
			FUZZ_CHECK(strcmp(folder, other));
		}
	}
}

static void check_job(const struct deploy_job *j)
{
	const struct opt_words *lists[] = {&j->words, &j->env, &j->send};

	FUZZ_CHECK(j->bundle && strlen(j->id) == 64 && !j->id[strspn(j->id, "0123456789abcdef")]);
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < lists[i]->count; k++)
			FUZZ_CHECK(lists[i]->word[k]);
}

static char *saved(struct deploy *d)
{
	struct error err = {0};
	char *content = NULL;
	size_t size;

	FUZZ_CHECK(!deploy_save(d, &err));
	FUZZ_CHECK(!file_read(&content, &size, fuzz_path(DEPLOY_FILE), 1 << 24, &err));
	return content;
}

static enum status load(struct deploy *d, struct error *err)
{
	char *end;

	*d = (struct deploy){0};
	snprintf(d->folder, sizeof(d->folder), "%s", fuzz_path(""));
	end = strrchr(d->folder, '/');
	*end = '\0';
	return deploy_load(d, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct deploy d, again;
	struct error err = {0};
	char *first, *second;
	enum status st;

	if (size > 65536)
		return 0;
	fuzz_write(DEPLOY_FILE, data, size);
	st = load(&d, &err);
	FUZZ_CHECK(st == STATUS_OK || (st == STATUS_BAD_INPUT && err.status == st && strstr(err.text, DEPLOY_FILE)));
	if (!st) {
		check_hosts(&d);
		check_job(&d.job);
		first = saved(&d);
		FUZZ_CHECK(!load(&again, &err));
		second = saved(&again);
		FUZZ_CHECK(!strcmp(first, second));
		free(first);
		free(second);
		deploy_release(&again);
	}
	deploy_release(&d);
	return 0;
}
