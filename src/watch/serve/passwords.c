/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/serve/passwords.h"

#include <nettle/base64.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "core/text/text.h"
#include "vendor/http/crypt.h"

enum { DIGEST_BYTES = SHA256_DIGEST_SIZE, SALT_BYTES = 32 };
/* Pause after a wrong password, so that guesses take no core. */
enum { PAUSE_MS = 500 };

struct question {
	void *who;		     /* NULL: nobody waits any more */
	const struct web_user *user; /* NULL: unknown */
	char password[PASSWORDS_BYTES_MOST + 1];
	uint8_t digest[DIGEST_BYTES];
	bool right;
};

struct passwords {
	const struct web_config *users;
	struct crypt_library crypt;
	struct crypt_data *data; /* of the thread */
	uint8_t salt[SALT_BYTES];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int fd;
	bool stop;
	/* A ring, oldest first. The first `done` have an answer. */
	struct question ring[PASSWORDS_WAITING_MOST];
	size_t first, count, done;
	/* The digest of each user's right password, once it is known. */
	uint8_t known[WEB_USERS_MOST][DIGEST_BYTES];
	bool is_known[WEB_USERS_MOST];
};

bool passwords_decode(const char *header, char room[PASSWORDS_BYTES_MOST + 1], const char **user,
		      const char **password)
{
	struct base64_decode_ctx base64;
	size_t size, got = PASSWORDS_BYTES_MOST;
	char *colon;

	if (!header || strncasecmp(header, "Basic ", 6))
		return false;
	header += 6 + strspn(header + 6, " ");
	size = strlen(header);
	if (!size || BASE64_DECODE_LENGTH(size) > PASSWORDS_BYTES_MOST)
		return false;
	base64_decode_init(&base64);
	if (!base64_decode_update(&base64, &got, (uint8_t *)room, size, header) ||
	    !base64_decode_final(&base64))
		return false;
	room[got] = '\0';
	colon = strchr(room, ':');
	if (!colon || strlen(room) != got) /* a NUL byte */
		return false;
	*colon = '\0';
	*user = room;
	*password = colon + 1;
	return true;
}

static void digest_of(const struct passwords *p, uint8_t out[DIGEST_BYTES], const char *user,
		      const char *password)
{
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, sizeof(p->salt), p->salt);
	sha256_update(&sha, strlen(user) + 1, (const uint8_t *)user);
	sha256_update(&sha, strlen(password), (const uint8_t *)password);
	sha256_digest(&sha, DIGEST_BYTES, out);
}

/* ---- the thread ---- */

/* For an unknown user the first one's hash is computed, so that the time does not tell whether a name exists.
 */
static bool is_right(struct passwords *p, const struct question *q)
{
	const char *want = q->user ? q->user->hash : p->users->user[0].hash;
	const char *got = p->crypt.hash(q->password, want, p->data, (int)sizeof(*p->data));

	return q->user && got && strlen(got) == WEB_HASH_SIZE && memeql_sec(got, want, WEB_HASH_SIZE);
}

static void tell(const struct passwords *p)
{
	const uint64_t one = 1;
	ssize_t written = write(p->fd, &one, sizeof(one));

	(void)written; /* it fails only if the counter is full, and then it is readable */
}

static void learn(struct passwords *p, const struct question *q)
{
	size_t i = (size_t)(q->user - p->users->user);

	memcpy(p->known[i], q->digest, DIGEST_BYTES);
	p->is_known[i] = true;
}

/* Called with the lock, which is open meanwhile. Ends early for a stop. */
static void pause_a_while(struct passwords *p)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PAUSE_MS * 1000000l;
	until.tv_sec += until.tv_nsec / 1000000000l;
	until.tv_nsec %= 1000000000l;
	while (!p->stop && !pthread_cond_timedwait(&p->wake, &p->lock, &until))
		;
}

static void *work(void *arg)
{
	struct passwords *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct question *q;
		bool right;

		while (!p->stop && p->done == p->count)
			pthread_cond_wait(&p->wake, &p->lock);
		if (p->stop)
			break;
		/* Answered questions leave the ring meanwhile, but this one keeps its place. */
		q = &p->ring[(p->first + p->done) % PASSWORDS_WAITING_MOST];
		pthread_mutex_unlock(&p->lock);
		right = is_right(p, q);
		pthread_mutex_lock(&p->lock);
		q->right = right;
		explicit_bzero(q->password, sizeof(q->password));
		if (right)
			learn(p, q);
		p->done++;
		tell(p);
		if (!right)
			pause_a_while(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Signals are for the thread that polls. */
static int start_thread(struct passwords *p)
{
	sigset_t all, before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&p->thread, NULL, work, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

/* ---- the other side ---- */

static void release(struct passwords *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->data);
	explicit_bzero(p, sizeof(*p));
	free(p);
}

enum status passwords_start(struct passwords **out, const struct web_config *users, struct error *err)
{
	struct passwords *p = calloc(1, sizeof(*p));
	pthread_condattr_t monotonic;
	enum status st;

	if (!p)
		return error_set(err, STATUS_NO_RESOURCE, "no memory to check passwords");
	p->users = users;
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->data = calloc(1, sizeof(*p->data));
	st = crypt_open(&p->crypt, err);
	if (!st && (p->fd < 0 || !p->data || getrandom(p->salt, SALT_BYTES, 0) != SALT_BYTES))
		st = error_set(err, STATUS_NO_RESOURCE, "no memory or descriptor to check passwords");
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (!st && start_thread(p))
		st = error_set(err, STATUS_NO_RESOURCE, "no thread to check passwords");
	if (st)
		release(p);
	else
		*out = p;
	return st;
}

void passwords_stop(struct passwords *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	release(p);
}

int passwords_fd(const struct passwords *p)
{
	return p->fd;
}

static const struct web_user *find_user(const struct passwords *p, const char *name)
{
	const struct web_user *found = NULL;

	for (size_t i = 0; i < p->users->user_count; i++)
		if (!strcmp(p->users->user[i].name, name))
			found = &p->users->user[i];
	return found;
}

static bool is_known(const struct passwords *p, const struct web_user *user,
		     const uint8_t digest[DIGEST_BYTES])
{
	size_t i = (size_t)(user - p->users->user);

	return p->is_known[i] && memeql_sec(p->known[i], digest, DIGEST_BYTES);
}

enum password_answer passwords_ask(struct passwords *p, const char *header, void *who)
{
	char room[PASSWORDS_BYTES_MOST + 1];
	enum password_answer answer = PASSWORD_LATER;
	const char *user, *password;
	struct question q = {.who = who};

	if (!passwords_decode(header, room, &user, &password))
		return PASSWORD_WRONG;
	q.user = find_user(p, user);
	digest_of(p, q.digest, user, password);
	text_copy(q.password, sizeof(q.password), password);
	pthread_mutex_lock(&p->lock);
	if (q.user && is_known(p, q.user, q.digest)) {
		answer = PASSWORD_RIGHT;
	} else if (p->count == PASSWORDS_WAITING_MOST) {
		answer = PASSWORD_BUSY;
	} else {
		p->ring[(p->first + p->count++) % PASSWORDS_WAITING_MOST] = q;
		pthread_cond_signal(&p->wake);
	}
	pthread_mutex_unlock(&p->lock);
	explicit_bzero(room, sizeof(room));
	explicit_bzero(&q, sizeof(q));
	return answer;
}

/* Takes the oldest question, which has an answer, out of the ring. */
static void *take(struct passwords *p, bool *right)
{
	struct question *q = &p->ring[p->first];
	void *who = q->who;

	*right = q->right;
	*q = (struct question){0};
	p->first = (p->first + 1) % PASSWORDS_WAITING_MOST;
	p->count--;
	p->done--;
	return who;
}

void *passwords_next(struct passwords *p, bool *right)
{
	uint64_t count;
	ssize_t got = read(p->fd, &count, sizeof(count));
	void *who = NULL;

	(void)got; /* empty: nothing new, but answers may be left from the last time */
	pthread_mutex_lock(&p->lock);
	while (!who && p->done)
		who = take(p, right);
	if (p->done)
		tell(p);
	pthread_mutex_unlock(&p->lock);
	return who;
}

void passwords_forget(struct passwords *p, const void *who)
{
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->count; i++) {
		struct question *q = &p->ring[(p->first + i) % PASSWORDS_WAITING_MOST];

		if (q->who == who)
			q->who = NULL;
	}
	pthread_mutex_unlock(&p->lock);
}
