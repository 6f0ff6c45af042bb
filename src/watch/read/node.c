/* SPDX-License-Identifier: Apache-2.0 */
/* assay __watch node: one process for each source, one stream. It opens no vendor library and blocks on
 * nothing, so a driver that hangs stops one source only. */
#include "watch/read/node.h"
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"

enum { CHUNK = 4096, TURN_MS = 1000 }; /* a pipe that is writable takes so many bytes at once */
/* The sources read at about the same time. Once all have answered, their lines are sent together, so that the
 * node and the reader of the stream wake up once per round. */
enum { TOGETHER_MS = 100 };
#define TOGETHER_SHARE 0.1 /* of the interval */
/* A heartbeat goes with the lines of a round if it is nearly due, else it is due a little later. */
#define BEAT_EARLY 0.75
#define BEAT_LATE 1.25
#define WALL_NS 60000000000ull
#define SILENCE_NS 20000000000ull

static double wall_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The first one is that of GPUs. */
static unsigned sources_of(const struct reader_spec *spec)
{
	return spec->gpus_only ? WATCH_SOURCE_gpu + 1 : WATCH_SOURCE_COUNT;
}

static void send_header(struct node *n)
{
	static const char *const names[] = {
#define X(name, ...) #name,
		WATCH_SOURCES(X)
#undef X
	};
	char boot[64], host[128] = "?";
	struct text t = {0};

	if (!reader_text(boot, sizeof(boot), "%s/sys/kernel/random/boot_id", n->spec->proc))
		text_copy(boot, sizeof(boot), "unknown");
	boot[strcspn(boot, "\n")] = '\0';
	gethostname(host, sizeof(host) - 1);
	text_addf(&t, "{\"watch\":%d,\"node\":", WATCH_VERSION);
	out_add_string(&t, host);
	text_add(&t, ",\"boot\":");
	out_add_string(&t, boot);
	text_addf(&t, ",\"t\":%llu,\"wall\":%.3f,\"interval\":%.9g,\"sources\":[",
		  (unsigned long long)clock_now_ns(clock_monotonic()), wall_now(), n->spec->interval);
	for (unsigned i = 0; i < sources_of(n->spec); i++)
		text_addf(&t, "%s\"%s\"", i ? "," : "", names[i]);
	text_add(&t, "],\"metrics\":[");
	for (int c = 0; c < CATALOGUE_COUNT; c++) {
		struct text name = {0};

		catalogue_add_full(&name, (enum catalogue)c);
		text_add(&t, c ? "," : "");
		out_add_string(&t, text_str(&name));
		text_release(&name);
	}
	text_add(&t, "]}");
	node_send(n, text_str(&t), t.size);
	text_release(&t);
}

/* In a container, NVML gives the process numbers of the host, which mean other processes here. */
static bool is_inner_namespace(const char *proc)
{
	static const char first[] = "pid:[4026531836]"; /* PROC_PID_INIT_INO of the kernel */
	char path[PATH_MAX], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/self/ns/pid", proc);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return strcmp(target, first) != 0;
}

static void begin(struct node *n, const struct reader_spec *spec)
{
	static const struct {
		const char *name;
		double limit;
	} sources[] = {
#define X(name, limit, ...) {#name, limit},
		WATCH_SOURCES(X)
#undef X
	};
	struct reader_pci pci;

	n->spec = spec;
	for (int i = 0; i < WATCH_SOURCE_COUNT; i++) {
		double limit = (spec->limit > 0 ? spec->limit : sources[i].limit) + spec->interval;

		n->source[i].name = sources[i].name;
		n->source[i].limit_ns = (uint64_t)(1e9 * limit);
		n->source[i].input = n->source[i].errors = n->source[i].page_fd = -1;
	}
	n->names = (struct child){.name = "names", .input = -1, .errors = -1, .page_fd = -1};
	n->nameless = is_inner_namespace(spec->proc);
	send_header(n);
	reader_pci_list(&pci, spec->sys, spec->proc);
	for (unsigned i = 0; i < pci.count; i++)
		node_declare_gpu(n, pci.address[i], i);
	n->lifeline_ns = clock_now_ns(clock_monotonic());
}

struct giver {
	struct node *node;
	unsigned source;
};

static bool take(void *arg, const char *line, size_t size)
{
	const struct giver *g = arg;

	return node_take(g->node, g->source, line, size);
}

static void tell(struct node *n, unsigned source, const char *why)
{
	node_send_why(n, source, why);
	n->source[source].told = true;
}

static void end_late(struct node *n, unsigned source, uint64_t now_ns)
{
	struct child *c = &n->source[source];
	char why[200], at[16] = "";
	bool gpu;

	if (c->page)
		text_copy(at, sizeof(at), c->page);
	gpu = strchr(at, ':') != NULL;
	reader_child_stop(c);
	snprintf(why, sizeof(why), "%s did not answer for %.3g s%s%s%s",
		 source == WATCH_SOURCE_gpu ? "NVML" : c->name, 1e-9 * (double)(now_ns - c->heard_ns),
		 gpu ? " at GPU " : "", gpu ? at : "",
		 c->stuck ? "; its reader cannot be ended, so no other one starts" : "");
	tell(n, source, why);
	if (gpu && strlen(c->skip) + strlen(at) + 2 < sizeof(c->skip))
		snprintf(c->skip + strlen(c->skip), sizeof(c->skip) - strlen(c->skip), "%s%s",
			 *c->skip ? "," : "", at);
}

/* Reads one source, ends it when it is late, and starts it (again). */
static void turn(struct node *n, unsigned source, uint64_t now_ns)
{
	struct child *c = &n->source[source];
	struct giver g = {n, source};

	if (c->stuck) {
		if (process_poll(&c->process))
			reader_child_stop(c);
		return;
	}
	if (c->running && !reader_child_read(c, take, &g)) {
		tell(n, source, c->error);
		return;
	}
	if (c->running && now_ns > c->heard_ns && now_ns - c->heard_ns > c->limit_ns)
		end_late(n, source, now_ns);
	if (c->running || c->stuck || now_ns < c->start_ns)
		return;
	reader_child_start(c, n->spec, n->spec->proc);
	if (!c->running && *c->error)
		tell(n, source, c->error);
}

static void beat(struct node *n, uint64_t now_ns)
{
	uint64_t early_ns = (uint64_t)(1e9 * (BEAT_LATE - BEAT_EARLY) * n->spec->interval);

	if (now_ns + (n->queue.text.size ? early_ns : 0) < n->beat_ns)
		return;
	n->beat_ns = now_ns + (uint64_t)(1e9 * BEAT_LATE * n->spec->interval);
	if (now_ns >= n->wall_ns) {
		n->wall_ns = now_ns + WALL_NS;
		node_sendf(n, "{\"t\":%llu,\"wall\":%.3f}", (unsigned long long)now_ns, wall_now());
	} else {
		node_sendf(n, "{\"t\":%llu}", (unsigned long long)now_ns);
	}
}

/* Writes what the pipe takes without blocking. */
static void write_queue(struct node *n)
{
	struct queue *q = &n->queue;
	size_t done = 0;

	while (done < q->text.size) {
		struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
		size_t size = q->text.size - done < CHUNK ? q->text.size - done : CHUNK;
		ssize_t written;

		if (poll(&out, 1, 0) <= 0 || !(out.revents & (POLLOUT | POLLERR | POLLHUP)))
			break;
		written = write(STDOUT_FILENO, q->text.data + done, size);
		if (written <= 0) {
			q->closed = true;
			return;
		}
		done += (size_t)written;
	}
	if (done == q->text.size) {
		text_release(&q->text);
	} else if (done) {
		memmove(q->text.data, q->text.data + done, q->text.size - done + 1);
		q->text.size -= done;
	}
	if (q->full && !q->text.size) {
		watch_state_write(&n->state, &q->text);
		q->full = q->text.failed;
	}
}

/* False: the reader of the stream is gone. */
static bool heed_lifeline(struct node *n, short events, uint64_t now_ns)
{
	char block[256];
	ssize_t got;

	if (!n->spec->lifeline)
		return true;
	if (events) {
		got = read(STDIN_FILENO, block, sizeof(block));
		if (got <= 0)
			return false;
		n->lifeline_ns = now_ns;
	}
	return now_ns < n->lifeline_ns || now_ns - n->lifeline_ns < SILENCE_NS;
}

static bool all_answered(const struct node *n)
{
	for (unsigned i = 0; i < n->state.source_count; i++)
		if (!n->state.source[i].heard_ns)
			return false;
	return true;
}

/* Lets the sources that read at the same time answer too. */
static void gather(const struct node *n)
{
	double ms = 1e3 * TOGETHER_SHARE * n->spec->interval;
	struct pollfd p = {.fd = n->spec->lifeline ? STDIN_FILENO : -1, .events = POLLIN};

	if (n->state.source_count > 1 && all_answered(n))
		poll(&p, 1, ms < TOGETHER_MS ? (int)ms : TOGETHER_MS);
}

/* Waits until something can be read, a beat is due, or a second has passed. */
static short wait_for(struct node *n, uint64_t now_ns)
{
	struct pollfd p[WATCH_SOURCE_COUNT + 3];
	uint64_t left_ms = n->beat_ns > now_ns ? (n->beat_ns - now_ns) / 1000000 + 1 : 0;
	nfds_t count = 0;
	bool lines = false;

	p[count++] = (struct pollfd){.fd = n->spec->lifeline ? STDIN_FILENO : -1, .events = POLLIN};
	p[count++] = (struct pollfd){.fd = STDOUT_FILENO, .events = n->queue.text.size ? POLLOUT : 0};
	for (int i = 0; i < WATCH_SOURCE_COUNT; i++)
		p[count++] = (struct pollfd){
			.fd = n->source[i].running && !n->source[i].stuck ? n->source[i].process.output : -1,
			.events = POLLIN};
	p[count++] = (struct pollfd){.fd = n->names.running && !n->names.stuck ? n->names.process.output : -1,
				     .events = POLLIN};
	poll(p, count, left_ms < TURN_MS ? (int)left_ms : TURN_MS);
	n->queue.closed |= (p[1].revents & (POLLERR | POLLHUP)) != 0;
	for (int i = 0; i < WATCH_SOURCE_COUNT; i++)
		lines |= p[2 + i].revents == POLLIN;
	if (lines && !p[0].revents && !n->queue.closed)
		gather(n);
	return p[0].revents;
}

int reader_node(const struct reader_spec *spec)
{
	struct node *n = calloc(1, sizeof(*n));
	bool heard = true;

	if (!n)
		return 1;
	begin(n, spec);
	write_queue(n);
	while (!*spec->stop && heard && !n->queue.closed) {
		uint64_t now_ns = clock_now_ns(clock_monotonic());
		short events;

		for (unsigned i = 0; i < sources_of(spec); i++)
			turn(n, i, now_ns);
		names_turn(n, now_ns);
		beat(n, now_ns);
		write_queue(n);
		events = wait_for(n, clock_now_ns(clock_monotonic()));
		heard = heed_lifeline(n, events, clock_now_ns(clock_monotonic()));
	}
	for (int i = 0; i < WATCH_SOURCE_COUNT; i++)
		reader_child_release(&n->source[i]);
	reader_child_release(&n->names);
	text_release(&n->queue.text);
	watch_state_release(&n->state);
	json_decref(n->pods);
	free(n);
	return 0;
}
