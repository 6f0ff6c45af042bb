/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of engine mpi, without supervisor and worker: prepare, verify, a timed window, verify, for each
 * line of options on stdin. Ranks agree through a file that all of them have mapped. tests/mpi/engine.sh
 * starts several by mpirun. usage: mpi_engine LINES_FILE SHARED_FILE     a line: "op=reduce type=fp64 root=1"
 * "rank R: LINE: STATUS, CAUSE: N wrong of M, X bytes/s busbw: WORDS"; exits 0 where all ranks were there to
 * the end.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/text/text.h"
#include "probe/registry.h"
#include "run/probe.h"
#include "run/meter/meter.h"
#include "team/links/links.h"

enum { RANKS = 16, BYTES = 1024, NAP_US = 500 };

/* -- links through a mapped file -- */

struct shared {
	_Atomic uint32_t come; /* to all meetings so far */
	char bytes[2][RANKS][BYTES];
};

struct file_links {
	struct team_links links;
	struct shared *shared;
	uint32_t meetings;
};

static enum status meet(struct team *t, enum team_meeting kind, const void *mine, size_t size, void *all,
			struct error *err)
{
	struct file_links *l = (struct file_links *)t->links;
	char(*bytes)[BYTES] = l->shared->bytes[l->meetings++ % 2];
	const struct team_verdict *worst = NULL;

	if (size > BYTES)
		return error_set(err, STATUS_BUG, "%zu bytes", size);
	memcpy(bytes[t->rank], mine, size);
	atomic_fetch_add(&l->shared->come, 1);
	for (unsigned i = 0; atomic_load(&l->shared->come) < l->meetings * t->size; i++) {
		if (i * NAP_US / 1000 > t->limit_ms)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT,
					       "somebody did not come");
		usleep(NAP_US);
	}
	for (unsigned r = 0; r < t->size; r++) {
		const struct team_verdict *v = (const struct team_verdict *)(const void *)bytes[r];

		if (kind == TEAM_MEET_GATHER)
			memcpy((char *)all + r * size, bytes[r], size);
		else if (kind == TEAM_MEET_AGREE && (!worst || v->status > worst->status))
			worst = v;
	}
	if (worst)
		memcpy(all, worst, size);
	return STATUS_OK;
}

static const struct team_links_ops ops = {.meet = meet};

static unsigned long from_env(const char *name)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 10) : 0;
}

static bool join(struct team *t, struct file_links *l, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *at = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, sizeof(struct shared)))
		at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return false;
	close(fd);
	*l = (struct file_links){.links = {&ops}, .shared = at};
	*t = (struct team){.rank = (unsigned)from_env("OMPI_COMM_WORLD_RANK"),
			   .size = (unsigned)from_env("OMPI_COMM_WORLD_SIZE"),
			   .limit_ms = 20000,
			   .links = &l->links};
	snprintf(t->name, sizeof(t->name), "rank %u", t->rank);
	return t->size >= 2 && t->size <= RANKS;
}

/* -- a case -- */

struct one {
	struct bench_case c;
	struct bench bench;
	struct target target;
	void *state;
	struct meter *meter;
	struct wrong wrong;
	double seconds; /* an iteration */
};

static enum status choose(struct one *o, char *line, struct error *err)
{
	struct assignment a[16];
	size_t count = 0;
	char *rest = line, *word;

	while ((word = strsep(&rest, " \n")) && count < 16) {
		char *value = strchr(word, '=');

		if (!value)
			continue;
		*value = '\0';
		a[count++] = (struct assignment){.name = word, .value = value + 1, .place = "line"};
	}
	return case_options(&o->c, a, count, err);
}

static enum status time_it(struct one *o, struct error *err)
{
	struct sample sample[8];
	struct window w = {.sample = sample, .room = 8};
	double ns;
	enum status st = o->meter->ops->once(o->meter, &ns, err);

	if (!st)
		st = o->meter->ops->begin(o->meter, &w, err);
	for (unsigned i = 0; !st && i < 4; i++)
		st = o->meter->ops->sample(o->meter, 2, err);
	if (!st)
		st = o->meter->ops->end(o->meter, err);
	for (size_t i = 0; !st && i < w.count; i++)
		o->seconds += w.sample[i].ns * 1e-9 / (double)w.count;
	return st;
}

static enum status verified(struct one *o, struct error *err)
{
	struct wrong w = {0};
	struct error why = {0};
	enum status st = o->c.probe->verify(o->state, &w, &why);

	if (w.count && !o->wrong.count)
		o->wrong = w;
	o->wrong.checked += o->wrong.count ? 0 : w.checked;
	if (st)
		error_set_cause(err, st, why.cause, "%s", why.text);
	return st == STATUS_MISMATCH ? STATUS_OK : st;
}

static enum status run(struct one *o, struct team *t, char *line, struct error *err)
{
	const struct engine *e = o->c.engine;
	enum status st = choose(o, line, err);

	o->target = (struct target){.kind = TARGET_TEAM, .ranks = t->size};
	o->bench = (struct bench){.target = &o->target,
				  .team = t,
				  .seed = 7,
				  .clock = clock_monotonic(),
				  .out = result_create()};
	o->state = calloc(1, e->state_size);
	if (!st)
		st = e->prepare(o->state, &o->bench, o->c.opts, err);
	if (!st)
		st = meter_cpu_create(&o->meter,
				      &(struct meter_spec){.engine = e,
							   .state = o->state,
							   .opts = o->c.opts,
							   .bench = &o->bench,
							   .clock = o->bench.clock},
				      err);
	if (!st)
		st = verified(o, err);
	if (!st)
		st = time_it(o, err);
	if (!st)
		st = verified(o, err);
	return st;
}

static void tell(struct one *o, const struct team *t, const char *line, const struct error *err)
{
	struct work w = {0};

	if (o->c.opts)
		w = o->c.probe->work(NULL, &o->target, o->c.opts);
	printf("rank %u: %s: %s, %s: %llu wrong of %llu, %s: %s\n", t->rank, line, status_name(err->status),
	       cause_name(err->cause), (unsigned long long)o->wrong.count,
	       (unsigned long long)o->wrong.checked,
	       o->seconds > 0 && w.link_bytes > 0 ? "timed" : "not timed", err->text);
	fflush(stdout);
}

static void release(struct one *o)
{
	meter_destroy(&o->meter);
	o->c.engine->release(o->state);
	free(o->state);
	result_destroy(o->bench.out);
	case_release(&o->c);
}

int main(int argc, char **argv)
{
	struct file_links links;
	struct team t;
	char line[512], shown[512];
	FILE *f = argc == 3 ? fopen(argv[1], "re") : NULL;
	bool lost = false;

	if (!f || !join(&t, &links, argv[2]))
		return 64;
	while (!lost && fgets(line, sizeof(line), f)) {
		struct one o = {.c = {.probe = probe_by_name(probe_list, "collective")}};
		struct error err = {0};
		enum status st;

		o.c.engine = engine_by_name(o.c.probe, "mpi");
		text_copy(shown, sizeof(shown), line);
		shown[strcspn(shown, "\n")] = '\0';
		st = run(&o, &t, line, &err);
		tell(&o, &t, shown, &err);
		lost = st == STATUS_NO_RESOURCE;
		release(&o);
	}
	fclose(f);
	if (t.close)
		t.close(&t);
	return lost;
}
