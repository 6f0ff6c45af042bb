/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a web configuration, and as the headers of a client: settings within their limits, or a refusal with the place. */
#include "fuzz.h"

#include "watch/serve/negotiate.h"
#include "watch/serve/passwords.h"

static void check_config(const char *text, size_t size)
{
	struct error err = {0};
	struct web_config c;
	enum status st = web_config_parse(&c, "input", text, size, &err);

	FUZZ_CHECK(st == err.status && (st == STATUS_OK || st == STATUS_BAD_INPUT));
	FUZZ_CHECK(!st || *err.text);
	FUZZ_CHECK(c.user_count <= WEB_USERS_MOST);
	for (size_t i = 0; i < c.user_count; i++)
		FUZZ_CHECK(strlen(c.user[i].hash) == WEB_HASH_SIZE && *c.user[i].name && !strchr(c.user[i].name, ':'));
	for (size_t i = 0; i < WEB_HEADERS; i++)
		FUZZ_CHECK(!c.header[i] || !strpbrk(c.header[i], "\r\n"));
	FUZZ_CHECK(st || !c.key == !c.certificate);
	FUZZ_CHECK(st || c.tls_least <= c.tls_most);
	web_config_release(&c);
}

static void check_headers(const char *text)
{
	char room[PASSWORDS_BYTES_MOST + 1];
	const char *user, *password;

	FUZZ_CHECK(negotiate_format(text) < PAGE_FORMATS);
	negotiate_gzip(text);
	if (!passwords_decode(text, room, &user, &password))
		return;
	FUZZ_CHECK(user == room && password > user && password + strlen(password) <= room + PASSWORDS_BYTES_MOST);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size > 65536)
		return 0;
	text = fuzz_text(data, size);
	check_config(text, size);
	check_headers(text);
	free(text);
	return 0;
}
