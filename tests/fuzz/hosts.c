/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of hosts, or a list of them: names that ssh and a shell take as names, or a refusal with the place. */
#include "folder.h"

#include "launch/hosts.h"

static void check(struct hosts *h, enum status st, const struct error *err)
{
	FUZZ_CHECK(st == err->status && (st == STATUS_OK || st == STATUS_BAD_INPUT));
	FUZZ_CHECK(!st || *err->text);
	FUZZ_CHECK(st || (h->count && h->count <= HOSTS_MAX));
	for (size_t i = 0; !st && i < h->count; i++) {
		FUZZ_CHECK(*h->name[i] && *h->name[i] != '-');
		FUZZ_CHECK(!h->name[i][strspn(h->name[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@-")]);
		FUZZ_CHECK(*hosts_address(h->name[i]));
	}
	hosts_release(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0}, of_text = {0};
	struct hosts h = {0};
	char *text;

	if (size > 65536)
		return 0;
	fuzz_write("hosts", data, size);
	check(&h, hosts_read(&h, fuzz_path("hosts"), &err), &err);
	text = fuzz_text(data, size);
	h = (struct hosts){0};
	check(&h, hosts_parse(&h, text, "input", &of_text), &of_text);
	free(text);
	return 0;
}
