/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenAI server without a model, for tests of the load test: it answers with numbered words at exact
 * times, plants faults, and writes down what it really did. --help lists the options.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "load/worker.h"

enum { BACKLOG = 4096, THREADS_MOST = 64 };

/* port 0: any; *port is the one that was taken. -1: not possible. */
static int listen_at(uint16_t *port, bool shared)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, shared ? SO_REUSEPORT : SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&at, size) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&at, &size)) {
		close(fd);
		return -1;
	}
	*port = ntohs(at.sin_port);
	return fd;
}

static int open_truth(struct workers *all)
{
	all->truth_fd = -1;
	if (!all->options->truth)
		return 0;
	all->truth_fd = open(all->options->truth, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (all->truth_fd >= 0)
		return 0;
	fprintf(stderr, "stub_server: cannot open %s: %s\n", all->options->truth, strerror(errno));
	return 1;
}

static int create_workers(struct workers *all, uint16_t *port)
{
	for (unsigned i = 0; i < all->options->threads; i++) {
		int fd = listen_at(port, all->options->threads > 1);

		if (fd < 0) {
			fprintf(stderr, "stub_server: cannot listen at port %u: %s\n", (unsigned)*port,
				strerror(errno));
			return 1;
		}
		all->worker[i] = worker_create(all, fd);
		if (!all->worker[i])
			return 1;
		all->count++;
	}
	return 0;
}

static void raise_limit(void)
{
	struct rlimit files;

	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static double monotonic_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void add_late(struct late *sum, const struct late *more)
{
	sum->count += more->count;
	if (more->max_ns > sum->max_ns)
		sum->max_ns = more->max_ns;
	for (int i = 0; i < LATE_BUCKETS; i++)
		sum->bucket[i] += more->bucket[i];
}

/* The smallest number of whole microseconds within which this share was sent. */
static int late_us(const struct late *l, double share)
{
	uint64_t seen = 0;

	for (int i = 0; i < LATE_BUCKETS; i++) {
		seen += l->bucket[i];
		if ((double)seen >= share * (double)l->count)
			return i + 1;
	}
	return LATE_BUCKETS;
}

static void print_summary(const struct workers *all, double wall_s)
{
	struct late *late = must_alloc(sizeof(*late));
	struct counters sum = {0};
	struct rusage used;
	double cpu_s;

	for (unsigned i = 0; i < all->count; i++) {
		counters_sum(&sum, worker_counters(all->worker[i]));
		add_late(late, worker_late(all->worker[i]));
	}
	getrusage(RUSAGE_SELF, &used);
	cpu_s = seconds(&used.ru_utime) + seconds(&used.ru_stime);
	printf("{\"connections\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"requests\":%" PRIu64
	       ",\"complete\":%" PRIu64 ",\"clients_left\":%" PRIu64 ",\"chunks\":%" PRIu64
	       ",\"tokens\":%" PRIu64,
	       sum.value[COUNTER_CONNECTIONS], sum.value[COUNTER_REFUSED], sum.value[COUNTER_REQUESTS],
	       sum.value[COUNTER_COMPLETE], sum.value[COUNTER_LEFT], sum.value[COUNTER_CHUNKS],
	       sum.value[COUNTER_TOKENS]);
	printf(",\"wall_s\":%.6f,\"cpu_s\":%.6f,\"cpu_user_s\":%.6f,\"cpu_system_s\":%.6f", wall_s, cpu_s,
	       seconds(&used.ru_utime), seconds(&used.ru_stime));
	printf(",\"late_us_p50\":%d,\"late_us_p99\":%d,\"late_us_max\":%" PRIu64 "}\n", late_us(late, 0.5),
	       late_us(late, 0.99), late->max_ns / 1000);
	free(late);
}

/* Runs the workers until TERM or INT. */
static int serve(struct workers *all, const sigset_t *ending, uint16_t port)
{
	pthread_t thread[THREADS_MOST];
	double begun_s = monotonic_s();
	unsigned running = 0;
	int signal;

	while (running < all->count &&
	       !pthread_create(&thread[running], NULL, worker_run, all->worker[running]))
		running++;
	if (running == all->count) {
		printf("port %u\n", (unsigned)port);
		fflush(stdout);
		sigwait(ending, &signal);
	} else {
		fputs("stub_server: cannot start a thread\n", stderr);
	}
	for (unsigned i = 0; i < running; i++)
		worker_stop(all->worker[i]);
	for (unsigned i = 0; i < running; i++)
		pthread_join(thread[i], NULL);
	print_summary(all, monotonic_s() - begun_s);
	return running < all->count;
}

int main(int argc, char **argv)
{
	struct worker *workers[THREADS_MOST] = {0};
	struct stub_options options;
	struct workers all = {.options = &options, .worker = workers};
	int code = stub_options_read(&options, argc, argv);
	uint16_t port = options.port;
	sigset_t ending;

	if (code)
		return code < 0 ? 0 : code;
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	pthread_sigmask(SIG_BLOCK, &ending, NULL);
	raise_limit();
	code = open_truth(&all);
	if (!code)
		code = create_workers(&all, &port);
	if (!code)
		code = serve(&all, &ending, port);
	for (unsigned i = 0; i < all.count; i++) {
		code |= worker_failed(workers[i]);
		worker_destroy(workers[i]);
	}
	if (all.truth_fd >= 0)
		close(all.truth_fd);
	return code;
}
