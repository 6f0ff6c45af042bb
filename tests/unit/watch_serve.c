/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter's web configuration, what clients take, and the check of passwords. */
#include "test.h"

#include <poll.h>

#include "watch/serve/negotiate.h"
#include "watch/serve/passwords.h"

/* "secret", cost 4 */
#define HASH "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"

/* ---- the configuration ---- */

static enum status parse(struct web_config *c, const char *text, struct error *err)
{
	*err = (struct error){0};
	return web_config_parse(c, "web.yml", text, strlen(text), err);
}

static void accept_config(struct web_config *c, const char *text)
{
	struct error err;

	if (parse(c, text, &err))
		fail_msg("%s: %s", text, err.text);
}

static void refuse_config(const char *text, const char *message)
{
	struct web_config c;
	struct error err;

	if (parse(&c, text, &err) != STATUS_BAD_INPUT)
		fail_msg("accepted: %s", text);
	if (!strstr(err.text, message))
		fail_msg("%s\ngives: %s", text, err.text);
	web_config_release(&c);
}

static void test_web_config__what_prometheus_has(void **state)
{
	struct web_config c;

	(void)state;
	accept_config(&c, "");
	assert_true(!c.key && !c.user_count);
	web_config_release(&c);
	accept_config(&c, "tls_server_config:\n  cert_file: a.pem\n  key_file: b.pem\n  min_version: TLS13\n"
			  "  client_auth_type: NoClientCert\n  prefer_server_cipher_suites: true\n"
			  "http_server_config:\n  http2: true\n  headers:\n    X-Frame-Options: deny\n"
			  "basic_auth_users:\n  alice: " HASH "\n  bob: " HASH "\n");
	assert_true(c.key && c.certificate && c.tls_least == 13 && c.tls_most == 13);
	assert_int_equal(c.user_count, 2);
	assert_int_equal(c.http2_line, 8);
	assert_string_equal(c.user[1].name, "bob");
	assert_string_equal(c.user[1].hash, HASH);
	assert_string_equal(web_header_name(1), "X-Frame-Options");
	assert_string_equal(c.header[1], "deny");
	web_config_release(&c);
	accept_config(&c, "tls_server_config:\n  cert: |\n    PEM\n  key: |\n    KEY\n");
	assert_string_equal(c.key, "KEY\n");
	web_config_release(&c);
	accept_config(&c, "http_server_config:\n  http2: true\n"); /* without TLS it is none for Prometheus either */
	assert_int_equal(c.http2_line, 0);
	web_config_release(&c);
	accept_config(&c, "http_server_config:\n  http2: false\ntls_server_config:\n  cert_file: a\n  key_file: b\n");
	assert_int_equal(c.http2_line, 0);
	web_config_release(&c);
	accept_config(&c, "tls_server_config:\nbasic_auth_users:\n");
	web_config_release(&c);
}

static void test_web_config__errors_name_the_place(void **state)
{
	(void)state;
	refuse_config("tls_server_config:\n  cert_file: a\n", "web.yml:1: tls_server_config needs cert_file and key_file");
	refuse_config("tls_server_config:\n  cert_file: a\n  cert: b\n  key: c\n", "given twice");
	refuse_config("tls_server_config:\n  cert_file: ''\n  key_file: b\n", "web.yml:2: the certificate or key is empty");
	refuse_config("tls_server_config:\n  cert_file: a\n  key_file: b\n  min_version: TLS10\n", "web.yml:4: a TLS version is TLS12 or TLS13");
	refuse_config("tls_server_config:\n  min_version: TLS13\n  max_version: TLS12\n  cert_file: a\n  key_file: b\n", "min_version is higher");
	refuse_config("tls_server_config:\n  cert_file: a\n  key_file: b\n  client_auth_type: RequireAndVerifyClientCert\n",
		      "web.yml:4: client_auth_type must be NoClientCert");
	refuse_config("tls_server_config:\n  client_ca_file: a\n", "does not check certificates of clients");
	refuse_config("tls_server_config:\n  cipher_suites: [a]\n", "no choice of cipher suites");
	refuse_config("tls_server_config: 5\n", "web.yml:1: tls_server_config is not a map");
	refuse_config("tls_server_config:\n  certfile: a\n", "cert_file"); /* the nearest name */
	refuse_config("basic_auth_users:\n  alice: secret\n", "web.yml:2: the hash of the password is not bcrypt's");
	refuse_config("basic_auth_users:\n  alice: [a]\n", "web.yml:2: the hash is not a text");
	refuse_config("basic_auth_users:\n  alice: $2y$15$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u\n", "must be 4 to 14");
	refuse_config("basic_auth_users:\n  'a:b': " HASH "\n", "no colon");
	refuse_config("basic_auth_users:\n  a: " HASH "\n  a: " HASH "\n", "web.yml:3");
	refuse_config("basic_auth_users: yes\n", "is not a map");
	refuse_config("http_server_config:\n  headers:\n    X-Frame-Options: \"a\\nb\"\n", "printable ASCII");
	refuse_config("http_server_config:\n  headers:\n    Server: a\n", "web.yml:3");
	refuse_config("http_server_config:\n  http2: perhaps\n", "web.yml:2");
	refuse_config("rate_limit:\n  burst: 5\n", "has no rate_limit");
	refuse_config("basic_auth_user:\n  alice: x\n", "basic_auth_users");
	refuse_config("- a\n", "is not a map");
	refuse_config("a: [\n", "web.yml:");
}

static void test_web_config__too_many_users(void **state)
{
	struct text config = {0};

	(void)state;
	text_add(&config, "basic_auth_users:\n");
	for (int i = 0; i <= WEB_USERS_MOST; i++)
		text_addf(&config, "  user%d: %s\n", i, HASH);
	refuse_config(text_str(&config), "more than 64 users");
	text_release(&config);
}

static void test_web_config__files(void **state)
{
	struct web_config c;
	struct error err = {0};

	(void)state;
	assert_int_equal(web_config_read(&c, "/nonexistent/web.yml", &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "/nonexistent/web.yml"));
	web_config_release(&c);
	err = (struct error){0};
	assert_int_equal(web_config_read(&c, SOURCE_DIR "/tests/data/watch/no-certificate.yml", &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "/tests/data/watch/missing.pem")); /* relative to the file */
	web_config_release(&c);
}

/* ---- what clients take ---- */

static void test_negotiate__format(void **state)
{
	(void)state;
	assert_int_equal(negotiate_format(NULL), PAGE_TEXT);
	assert_int_equal(negotiate_format("*/*"), PAGE_TEXT);
	assert_int_equal(negotiate_format("text/html,application/xhtml+xml"), PAGE_TEXT);
	/* Prometheus 2.42, then 3 */
	assert_int_equal(negotiate_format("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
					  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
			 PAGE_OPENMETRICS);
	assert_int_equal(negotiate_format("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
					  "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
					  "text/plain;version=0.0.4;q=0.2,/;q=0.1"),
			 PAGE_OPENMETRICS);
	assert_int_equal(negotiate_format("text/plain;version=0.0.4;q=0.9, application/openmetrics-text; version=\"1.0.0\"; q=0.5"), PAGE_TEXT);
	assert_int_equal(negotiate_format("application/openmetrics-text;version=2.0.0"), PAGE_TEXT);
	assert_int_equal(negotiate_format("application/openmetrics-text;q=0"), PAGE_TEXT);
	assert_int_equal(negotiate_format("application/openmetrics-text;q=x"), PAGE_TEXT);
	assert_int_equal(negotiate_format(",;,;q=1;;,application/openmetrics-text"), PAGE_OPENMETRICS);
}

static void test_negotiate__gzip(void **state)
{
	(void)state;
	assert_false(negotiate_gzip(NULL));
	assert_true(negotiate_gzip("gzip"));
	assert_true(negotiate_gzip("deflate, GZIP;q=0.5"));
	assert_false(negotiate_gzip("gzip;q=0"));
	assert_false(negotiate_gzip("gzip;q=0.000, *"));
	assert_true(negotiate_gzip("*"));
	assert_false(negotiate_gzip("identity, gzipped"));
}

/* ---- passwords ---- */

static void test_passwords__decode(void **state)
{
	char room[PASSWORDS_BYTES_MOST + 1], header[2000];
	const char *user, *password;

	(void)state;
	assert_true(passwords_decode("Basic YWxpY2U6c2VjcmV0", room, &user, &password));
	assert_string_equal(user, "alice");
	assert_string_equal(password, "secret");
	assert_true(passwords_decode("basic   OjpiOmM=", room, &user, &password));
	assert_string_equal(user, "");
	assert_string_equal(password, ":b:c");
	assert_false(passwords_decode(NULL, room, &user, &password));
	assert_false(passwords_decode("Basic ", room, &user, &password));
	assert_false(passwords_decode("Bearer YWxpY2U6c2VjcmV0", room, &user, &password));
	assert_false(passwords_decode("Basic YWxpY2U", room, &user, &password)); /* not whole */
	assert_false(passwords_decode("Basic YWxpY2U=", room, &user, &password)); /* no colon */
	assert_false(passwords_decode("Basic !!!!", room, &user, &password));
	assert_false(passwords_decode("Basic YTpiAGM=", room, &user, &password)); /* a NUL byte */
	memset(header, 'Y', sizeof(header) - 1);
	memcpy(header, "Basic ", 6);
	header[sizeof(header) - 1] = '\0';
	assert_false(passwords_decode(header, room, &user, &password));
}

static struct passwords *start(struct web_config *c, const char *users)
{
	struct passwords *p = NULL;
	struct error err = {0};

	accept_config(c, users);
	if (passwords_start(&p, c, &err))
		fail_msg("%s", err.text);
	return p;
}

/* Waits for one answer. */
static void *answer(struct passwords *p, bool *right)
{
	struct pollfd fd = {.fd = passwords_fd(p), .events = POLLIN};
	void *who;

	while (!(who = passwords_next(p, right)))
		assert_int_equal(poll(&fd, 1, 60000), 1);
	return who;
}

static void test_passwords__right_wrong_and_known(void **state)
{
	struct web_config c;
	struct passwords *p = start(&c, "basic_auth_users:\n  alice: " HASH "\n");
	int a, b;
	bool right = false;

	(void)state;
	assert_int_equal(passwords_ask(p, "Basic YWxpY2U6c2VjcmV0", &a), PASSWORD_LATER); /* alice:secret */
	assert_ptr_equal(answer(p, &right), &a);
	assert_true(right);
	assert_int_equal(passwords_ask(p, "Basic YWxpY2U6c2VjcmV0", &a), PASSWORD_RIGHT); /* from now on at once */
	assert_int_equal(passwords_ask(p, "Basic YWxpY2U6d3Jvbmc=", &b), PASSWORD_LATER); /* alice:wrong */
	assert_int_equal(passwords_ask(p, "Basic YWxpY2U6c2VjcmV0", &a), PASSWORD_RIGHT);
	assert_ptr_equal(answer(p, &right), &b);
	assert_false(right);
	assert_int_equal(passwords_ask(p, "Basic Ym9iOnNlY3JldA==", &b), PASSWORD_LATER); /* bob:secret */
	assert_ptr_equal(answer(p, &right), &b);
	assert_false(right);
	assert_int_equal(passwords_ask(p, "Basic YWxpY2U=", &b), PASSWORD_WRONG);
	passwords_stop(p);
	web_config_release(&c);
}

static void test_passwords__few_wait(void **state)
{
	struct web_config c;
	struct passwords *p = start(&c, "basic_auth_users:\n  alice: " HASH "\n");
	int who[PASSWORDS_WAITING_MOST + 8], later = 0, busy = 0;
	bool right;

	(void)state;
	for (int i = 0; i < PASSWORDS_WAITING_MOST + 8; i++)
		switch (passwords_ask(p, "Basic YWxpY2U6d3Jvbmc=", &who[i])) {
		case PASSWORD_LATER:
			later++;
			break;
		case PASSWORD_BUSY:
			busy++;
			break;
		default:
			fail();
		}
	assert_int_equal(later, PASSWORDS_WAITING_MOST); /* answers that were not taken count too */
	assert_int_equal(busy, 8);
	for (int i = 1; i < PASSWORDS_WAITING_MOST; i++)
		passwords_forget(p, &who[i]);
	assert_ptr_equal(answer(p, &right), &who[0]);
	passwords_stop(p); /* while others wait */
	web_config_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_web_config__what_prometheus_has),
		cmocka_unit_test(test_web_config__errors_name_the_place),
		cmocka_unit_test(test_web_config__too_many_users),
		cmocka_unit_test(test_web_config__files),
		cmocka_unit_test(test_negotiate__format),
		cmocka_unit_test(test_negotiate__gzip),
		cmocka_unit_test(test_passwords__decode),
		cmocka_unit_test(test_passwords__right_wrong_and_known),
		cmocka_unit_test(test_passwords__few_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
