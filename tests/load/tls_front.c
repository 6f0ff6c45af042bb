/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS before a server that has none: accepts at a free port of 127.0.0.1, which it prints as "port N", and
 * passes the bytes on. Writes the certificate of its own authority to a file. usage: tls_front CA-FILE PORT
 * CERTIFICATE [COUNT CERTIFICATE] CERTIFICATE: good, self_signed, expired or wrong_name; after COUNT
 * connections it presents the second one.
 */
#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DAY_S = 86400, BUFFER = 16384, EXIT_USAGE = 64 };

static const char *const kinds[] = {"good", "self_signed", "expired", "wrong_name"};
enum kind { GOOD, SELF_SIGNED, EXPIRED, WRONG_NAME, KINDS };

struct signer {
	gnutls_x509_crt_t certificate;
	gnutls_x509_privkey_t key;
};

struct connection {
	gnutls_certificate_credentials_t credentials;
	int client;
	uint16_t port;
};

static void must(int code, const char *what)
{
	if (code >= 0)
		return;
	fprintf(stderr, "tls_front: %s: %s\n", what, gnutls_strerror(code));
	exit(1);
}

static gnutls_x509_privkey_t make_key(void)
{
	gnutls_x509_privkey_t key;

	must(gnutls_x509_privkey_init(&key), "a key");
	must(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
					  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
	     "a key");
	return key;
}

/* A certificate without its names and signature. */
static gnutls_x509_crt_t make_blank(gnutls_x509_privkey_t key, const char *name, unsigned char serial,
				    bool past)
{
	const time_t now = time(NULL);
	gnutls_x509_crt_t c;

	must(gnutls_x509_crt_init(&c), "a certificate");
	must(gnutls_x509_crt_set_version(c, 3), "version");
	must(gnutls_x509_crt_set_serial(c, &serial, 1), "serial");
	must(gnutls_x509_crt_set_activation_time(c, now - 20 * DAY_S), "time");
	must(gnutls_x509_crt_set_expiration_time(c, now + (past ? -10 : 10) * DAY_S), "time");
	must(gnutls_x509_crt_set_dn_by_oid(c, GNUTLS_OID_X520_COMMON_NAME, 0, name, (unsigned)strlen(name)),
	     "name");
	must(gnutls_x509_crt_set_key(c, key), "key");
	return c;
}

static struct signer make_authority(const char *path)
{
	struct signer a = {.key = make_key()};
	gnutls_datum_t pem;
	FILE *f = fopen(path, "w");

	a.certificate = make_blank(a.key, "test authority", 1, false);
	must(gnutls_x509_crt_set_basic_constraints(a.certificate, 1, -1), "constraints");
	must(gnutls_x509_crt_set_key_usage(a.certificate, GNUTLS_KEY_KEY_CERT_SIGN), "usage");
	must(gnutls_x509_crt_sign2(a.certificate, a.certificate, a.key, GNUTLS_DIG_SHA256, 0), "signature");
	must(gnutls_x509_crt_export2(a.certificate, GNUTLS_X509_FMT_PEM, &pem), "PEM");
	if (!f || fwrite(pem.data, 1, pem.size, f) != pem.size || fclose(f)) {
		perror(path);
		exit(1);
	}
	gnutls_free(pem.data);
	return a;
}

static gnutls_certificate_credentials_t make_credentials(const struct signer *authority, enum kind kind)
{
	static const unsigned char loopback[] = {127, 0, 0, 1};
	const char *name = kind == WRONG_NAME ? "other.example" : "localhost";
	gnutls_certificate_credentials_t credentials;
	gnutls_x509_privkey_t key = make_key();
	gnutls_x509_crt_t c = make_blank(key, name, (unsigned char)(2 + kind), kind == EXPIRED);

	must(gnutls_x509_crt_set_subject_alt_name(c, GNUTLS_SAN_DNSNAME, name, (unsigned)strlen(name),
						  GNUTLS_FSAN_SET),
	     "name");
	if (kind != WRONG_NAME)
		must(gnutls_x509_crt_set_subject_alt_name(c, GNUTLS_SAN_IPADDRESS, loopback, sizeof(loopback),
							  GNUTLS_FSAN_APPEND),
		     "address");
	must(kind == SELF_SIGNED
		     ? gnutls_x509_crt_sign2(c, c, key, GNUTLS_DIG_SHA256, 0)
		     : gnutls_x509_crt_sign2(c, authority->certificate, authority->key, GNUTLS_DIG_SHA256, 0),
	     "signature");
	must(gnutls_certificate_allocate_credentials(&credentials), "credentials");
	must(gnutls_certificate_set_x509_key(credentials, &c, 1, key), "credentials");
	return credentials;
}

static int connect_to(uint16_t port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool send_plain(int fd, const char *bytes, size_t size)
{
	while (size) {
		const ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		bytes += n;
		size -= (size_t)n;
	}
	return true;
}

static bool send_secret(gnutls_session_t s, const char *bytes, size_t size)
{
	while (size) {
		const ssize_t n = gnutls_record_send(s, bytes, size);

		if (n < 0 && n != GNUTLS_E_INTERRUPTED && n != GNUTLS_E_AGAIN)
			return false;
		bytes += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Passes bytes on until one side ends. */
static void relay(gnutls_session_t s, int client, int server)
{
	char bytes[BUFFER];

	for (;;) {
		struct pollfd in[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
		const bool held = gnutls_record_check_pending(s) > 0;
		ssize_t n;

		if (poll(in, 2, held ? 0 : -1) < 0)
			return;
		if (held || in[0].revents) {
			n = gnutls_record_recv(s, bytes, sizeof(bytes));
			if (n != GNUTLS_E_INTERRUPTED && n != GNUTLS_E_AGAIN &&
			    (n <= 0 || !send_plain(server, bytes, (size_t)n)))
				return;
		}
		if (in[1].revents) {
			n = recv(server, bytes, sizeof(bytes), 0);
			if (n <= 0 || !send_secret(s, bytes, (size_t)n))
				return;
		}
	}
}

static void *serve(void *arg)
{
	struct connection *c = arg;
	const int server = connect_to(c->port);
	gnutls_session_t s;

	must(gnutls_init(&s, GNUTLS_SERVER), "a session");
	must(gnutls_set_default_priority(s), "a session");
	must(gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, c->credentials), "a session");
	gnutls_transport_set_int(s, c->client);
	if (server >= 0 && gnutls_handshake(s) >= 0)
		relay(s, c->client, server);
	gnutls_bye(s, GNUTLS_SHUT_WR);
	gnutls_deinit(s);
	close(c->client);
	if (server >= 0)
		close(server);
	free(c);
	return NULL;
}

static int listen_here(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&at, &size)) {
		perror("tls_front");
		exit(1);
	}
	printf("port %u\n", (unsigned)ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

static enum kind kind_of(const char *word)
{
	for (int i = 0; i < KINDS; i++)
		if (!strcmp(word, kinds[i]))
			return (enum kind)i;
	fprintf(stderr, "tls_front: %s is no certificate\n", word);
	exit(EXIT_USAGE);
}

int main(int argc, char **argv)
{
	gnutls_certificate_credentials_t first, later;
	struct signer authority;
	unsigned long change, count;
	int listener;

	if (argc != 4 && argc != 6) {
		fputs("usage: tls_front CA-FILE PORT CERTIFICATE [COUNT CERTIFICATE]\n", stderr);
		return EXIT_USAGE;
	}
	authority = make_authority(argv[1]);
	first = make_credentials(&authority, kind_of(argv[3]));
	later = make_credentials(&authority, kind_of(argv[argc - 1]));
	change = argc == 6 ? strtoul(argv[4], NULL, 10) : 0;
	listener = listen_here();
	for (count = 0;; count++) {
		struct connection *c = calloc(1, sizeof(*c));
		pthread_t thread;

		if (!c)
			return 1;
		c->port = (uint16_t)strtoul(argv[2], NULL, 10);
		c->credentials = count < change ? first : later;
		c->client = accept(listener, NULL, NULL);
		if (c->client < 0 || pthread_create(&thread, NULL, serve, c)) {
			perror("tls_front");
			return 1;
		}
		pthread_detach(thread);
	}
}
