/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/trace/trace.h"
#include <errno.h>
#include <inttypes.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "journal/field.h"
#include "profile/trace/gzip_out.h"

enum {
	BLOCK = 1 << 18,
	PID_DEVICES = 10000000 /* Linux allows at most 2^22 processes */,
	PID_TELEMETRY = 2000000000
};

/* Allocation units on an SM; see blocks_per_sm. */
enum { REGISTER_UNIT = 256, SHARED_UNIT = 128, SHARED_RESERVED = 1024 };

/* State while a trace is written. */
struct trace {
	const struct timeline *t;
	uint16_t process; /* one process, or TRACE_ALL */
	bool alone;	  /* a single process: devices use their own numbers as pid */
	uint64_t base_ns; /* time of ts 0 */
	char **escaped;	  /* by name: escaped JSON strings; NULL: not needed yet */
	struct text out;
	uint64_t events;
	struct gzip_out *gzip;
	int code; /* errno of the failed write */
};

static void flush(struct trace *w)
{
	if (w->out.failed)
		w->code = ENOMEM;
	if (!w->code && w->out.size)
		w->code = gzip_out_add(w->gzip, w->out.data, w->out.size);
	w->out.size = 0;
}

static void begin_object(struct trace *w)
{
	if (w->out.size >= BLOCK || w->out.failed)
		flush(w);
	text_add(&w->out, w->events++ ? ",\n" : "\n");
}

/* Writes a foreign name as a JSON string. Valid UTF-8 stays as it is. */
static void add_string(struct text *out, const char *s)
{
	json_t *j = field_string(s);
	char *dumped = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;

	text_add(out, dumped ? dumped : "\"\"");
	free(dumped);
	json_decref(j);
}

/* The escaped form of a name. Names recur, so each is escaped once. */
static const char *escaped(struct trace *w, uint32_t name)
{
	struct text one = {0};

	if (name >= w->t->names)
		return "\"\"";
	if (!w->escaped[name]) {
		add_string(&one, timeline_name(w->t, name));
		w->escaped[name] = one.data;
	}
	return w->escaped[name] ? w->escaped[name] : "\"\"";
}

static double us_of(const struct trace *w, uint64_t ns)
{
	return ((double)(int64_t)(ns - w->base_ns)) * 1e-3;
}

static bool wanted(const struct trace *w, uint16_t process)
{
	return w->process == TRACE_ALL || w->process == process;
}

/* The pid that a trace viewer shows. For a single process it is the device's number, as in Kineto's traces.
 * For several processes, devices get numbers that no process has, because the processes' pids are in the
 * trace too. */
static uint32_t pid_of_device(const struct trace *w, uint16_t process, uint32_t device)
{
	return w->alone ? device : PID_DEVICES + 1000u * process + device;
}

static void begin_event(struct trace *w, const struct timeline_event *e, char phase)
{
	const struct timeline_track *track = &w->t->track[e->track];
	uint32_t pid = track->device ? pid_of_device(w, e->process, track->device_id)
				     : w->t->process[e->process].pid;

	begin_object(w);
	text_addf(&w->out, "{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f", phase, pid,
		  track->device ? track->stream : track->thread, us_of(w, e->start_ns));
}

static const char *memory_name(unsigned kind)
{
	static const char *const names[] = {"Unknown", "Pageable", "Pinned",	    "Device",
					    "Array",   "Managed",  "Device Static", "Managed Static"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : names[0];
}

static void add_where(struct trace *w, const struct timeline_event *e)
{
	const struct timeline_track *track = &w->t->track[e->track];

	/* Waits for a context have no stream; Kineto writes -1. */
	text_addf(&w->out, "\"device\":%u,\"context\":%u,\"stream\":%" PRId32 ",\"correlation\":%u",
		  track->device_id, track->context, (int32_t)track->stream, e->correlation);
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* Number of blocks of this kernel that fit on a multiprocessor, limited by threads, registers, shared memory
 * and the device's own limit. docs/explanation/methods/profile.md, "Estimated occupancy". */
static double blocks_per_sm(const struct timeline_kernel *k, const struct timeline_device *d)
{
	uint64_t threads = (uint64_t)k->block[0] * k->block[1] * k->block[2];
	uint64_t warps = (threads + d->warp - 1) / d->warp;
	uint64_t shared = k->shared_static + (uint64_t)k->shared_dynamic;
	uint64_t registers = ((uint64_t)k->registers * d->warp + REGISTER_UNIT - 1) / REGISTER_UNIT *
			     REGISTER_UNIT * warps;
	double fit = d->blocks_per_sm ? d->blocks_per_sm : 1e9;

	if (!warps)
		return 0;
	shared += d->major >= 8 ? SHARED_RESERVED : 0;
	shared = (shared + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
	fit = least(fit, (double)(d->warps_per_sm / warps));
	if (registers && d->registers_per_sm)
		fit = least(fit, (double)(d->registers_per_sm / registers));
	if (shared && d->shared_per_sm)
		fit = least(fit, (double)(d->shared_per_sm / shared));
	return fit;
}

static void add_kernel(struct trace *w, const struct timeline_event *e)
{
	const struct timeline_kernel *k = &w->t->kernel[e->detail];
	const struct timeline_device *d =
		timeline_device_of(w->t, e->process, w->t->track[e->track].device_id);
	double blocks = (double)k->grid[0] * k->grid[1] * k->grid[2];
	double threads = (double)k->block[0] * k->block[1] * k->block[2], fit, held;

	text_addf(&w->out, ",\"name\":%s,\"args\":{\"queued\":0,", escaped(w, e->name));
	add_where(w, e);
	text_addf(
		&w->out,
		",\"registers per thread\":%u,\"shared memory\":%u,\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]",
		k->registers, k->shared_static + k->shared_dynamic, k->grid[0], k->grid[1], k->grid[2],
		k->block[0], k->block[1], k->block[2]);
	if (d && d->sms && d->warp && d->warps_per_sm) {
		fit = blocks_per_sm(k, d);
		held = blocks / d->sms < fit ? blocks / d->sms : fit;
		text_addf(&w->out,
			  ",\"blocks per SM\":%.4g,\"warps per SM\":%.4g,\"est. achieved occupancy %%\":%.0f",
			  blocks / d->sms, blocks / d->sms * (threads / d->warp),
			  100 * held * (threads / d->warp) / d->warps_per_sm);
	}
	if (k->cluster[0])
		text_addf(&w->out, ",\"cluster\":[%u,%u,%u]", k->cluster[0], k->cluster[1], k->cluster[2]);
	if (k->graph)
		text_addf(&w->out, ",\"graph id\":%u,\"graph node id\":%" PRIu64, k->graph, k->graph_node);
	text_add(&w->out, "}");
}

static void add_copy(struct trace *w, const struct timeline_event *e)
{
	const struct timeline_copy *c = &w->t->copy[e->detail];
	double ns = (double)(e->end_ns - e->start_ns);

	if (e->kind == TIMELINE_COPY)
		text_addf(&w->out, ",\"name\":\"%s (%s -> %s)\"", timeline_name(w->t, e->name),
			  memory_name(c->from), memory_name(c->to));
	else
		text_add(&w->out, ",\"name\":\"Memset (Device)\"");
	text_add(&w->out, ",\"args\":{");
	add_where(w, e);
	text_addf(&w->out, ",\"bytes\":%" PRIu64 ",\"memory bandwidth (GB/s)\":%.4g", c->bytes,
		  ns > 0 ? (double)c->bytes / ns : 0.0);
	if (c->from_device != c->to_device)
		text_addf(&w->out, ",\"fromDevice\":%u,\"toDevice\":%u", c->from_device, c->to_device);
	text_add(&w->out, "}");
}

static void add_values(struct trace *w, const struct timeline_range *r)
{
	for (uint32_t i = 0; i < r->values; i++) {
		const struct timeline_value *v = &w->t->value[r->value_first + i];

		text_addf(&w->out, ",%s:", v->name ? escaped(w, v->name) : "\"payload\"");
		if (v->is_float && v->f64 - v->f64 == 0)
			text_addf(&w->out, "%.9g", v->f64);
		else
			text_addf(&w->out, v->is_float ? "null" : "%" PRIu64, v->u64);
	}
}

static void add_range(struct trace *w, const struct timeline_event *e)
{
	const struct timeline_range *r = &w->t->range[e->detail];

	text_addf(&w->out, ",\"name\":%s,\"args\":{\"domain\":%s", escaped(w, e->name),
		  r->domain ? escaped(w, r->domain) : "\"\"");
	add_values(w, r);
	if (r->cut)
		text_add(&w->out, ",\"unfinished\":1");
	text_add(&w->out, "}");
}

static void add_body(struct trace *w, const struct timeline_event *e)
{
	switch ((enum timeline_kind)e->kind) {
	case TIMELINE_KERNEL:
		add_kernel(w, e);
		break;
	case TIMELINE_COPY:
	case TIMELINE_SET:
		add_copy(w, e);
		break;
	case TIMELINE_RANGE:
	case TIMELINE_MARK:
		add_range(w, e);
		break;
	case TIMELINE_GRAPH:
	case TIMELINE_SYNC:
		text_addf(&w->out, ",\"name\":%s,\"args\":{", escaped(w, e->name));
		add_where(w, e);
		text_add(&w->out, "}");
		break;
	case TIMELINE_RUNTIME:
	case TIMELINE_DRIVER:
		text_addf(&w->out, ",\"name\":%s,\"args\":{\"correlation\":%u,\"result\":%u}",
			  escaped(w, e->name), e->correlation, e->detail);
		break;
	case TIMELINE_OVERHEAD:
	case TIMELINE_KIND_COUNT:
		text_addf(&w->out, ",\"name\":%s,\"args\":{}", escaped(w, e->name));
		break;
	}
}

/* Adds an arrow from a call to the work that it put on the device. */
static void add_flow(struct trace *w, const struct timeline_event *e)
{
	const struct timeline_event *call = timeline_call(w->t, e);
	const char *const format = ",\"id\":%u,\"cat\":\"ac2g\",\"name\":\"ac2g\"%s}";

	if (!call || call->track == TIMELINE_NONE)
		return;
	begin_event(w, call, 's');
	text_addf(&w->out, format, e->correlation, "");
	begin_event(w, e, 'f');
	text_addf(&w->out, format, e->correlation, ",\"bp\":\"e\"");
}

static void add_event(struct trace *w, const struct timeline_event *e)
{
	bool mark = e->kind == TIMELINE_MARK;

	if (!wanted(w, e->process) || e->track == TIMELINE_NONE)
		return;
	begin_event(w, e, mark ? 'i' : 'X');
	if (mark)
		text_add(&w->out, ",\"s\":\"t\"");
	else
		text_addf(&w->out, ",\"dur\":%.3f", (double)(e->end_ns - e->start_ns) * 1e-3);
	text_addf(&w->out, ",\"cat\":\"%s\"", timeline_kind_category(e->kind));
	add_body(w, e);
	text_add(&w->out, "}");
	if (timeline_on_device(e->kind))
		add_flow(w, e);
}

/* Adds a {"ph":"M"} object, which tells viewers how to name and sort a process or thread. */
static void add_name(struct trace *w, const char *what, uint32_t pid, uint32_t tid, const char *key,
		     const char *text)
{
	begin_object(w);
	text_addf(&w->out,
		  "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":0,\"args\":{\"%s\":", what, pid,
		  tid, key);
	add_string(&w->out, text);
	text_add(&w->out, "}}");
}

static void name_process(struct trace *w, const struct timeline_process *p)
{
	char label[96];

	add_name(w, "process_name", p->pid, 0, "name", p->command);
	if (p->rank >= 0)
		snprintf(label, sizeof(label), "CPU, rank %d, pid %u", p->rank, p->pid);
	else
		snprintf(label, sizeof(label), "CPU, pid %u", p->pid);
	add_name(w, "process_labels", p->pid, 0, "labels", label);
}

static void name_track(struct trace *w, const struct timeline_track *track)
{
	const struct timeline_process *p = &w->t->process[track->process];
	char text[160];
	uint32_t pid;

	if (!track->device) {
		if (track->name)
			snprintf(text, sizeof(text), "thread %u (%.120s)", track->thread,
				 timeline_name(w->t, track->name));
		else
			snprintf(text, sizeof(text), "thread %u", track->thread);
		add_name(w, "thread_name", p->pid, track->thread, "name", text);
		return;
	}
	pid = pid_of_device(w, track->process, track->device_id);
	snprintf(text, sizeof(text), "GPU %u of pid %u", track->device_id, p->pid);
	add_name(w, "process_name", pid, 0, "name", p->command);
	add_name(w, "process_labels", pid, 0, "labels", text);
	snprintf(text, sizeof(text), "stream %u", track->stream);
	add_name(w, "thread_name", pid, track->stream, "name", text);
}

static void add_device(struct trace *w, const struct timeline_device *d, bool first)
{
	struct text *out = &w->out;

	text_addf(out, "%s{\"id\":%u,\"name\":%s,\"totalGlobalMem\":%" PRIu64 ",", first ? "" : ",",
		  pid_of_device(w, d->process, d->id), escaped(w, d->name), d->memory_bytes);
	text_addf(out, "\"computeMajor\":%u,\"computeMinor\":%u,\"maxThreadsPerBlock\":%u,", d->major,
		  d->minor, d->threads_per_block);
	text_addf(out, "\"maxThreadsPerMultiprocessor\":%u,\"regsPerBlock\":%u,\"regsPerMultiprocessor\":%u,",
		  d->warps_per_sm * d->warp, d->registers_per_block, d->registers_per_sm);
	text_addf(out,
		  "\"warpSize\":%u,\"sharedMemPerBlock\":%u,\"sharedMemPerMultiprocessor\":%u,\"numSms\":%u}",
		  d->warp, d->shared_per_block, d->shared_per_sm, d->sms);
}

static void add_head(struct trace *w)
{
	const struct timeline *t = w->t;
	bool first = true;

	text_add(&w->out, "{\"schemaVersion\":1,\"deviceProperties\":[");
	for (size_t i = 0; i < t->devices; i++)
		if (wanted(w, t->device[i].process)) {
			add_device(w, &t->device[i], first);
			first = false;
		}
	text_add(&w->out, "],");
	if (w->process != TRACE_ALL && t->process[w->process].rank >= 0)
		text_addf(&w->out,
			  "\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":%d,\"world_size\":%d},",
			  t->process[w->process].rank, t->process[w->process].world);
	text_addf(&w->out, "\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%" PRIu64 ",\"traceEvents\":[",
		  w->base_ns);
}

static void add_series(struct trace *w, const struct series *s, uint32_t pid)
{
	uint64_t slack_ns = 1000000000;

	for (size_t i = 0; i < s->count; i++) {
		if (s->t_ns[i] + slack_ns < w->t->start_ns || s->t_ns[i] > w->t->end_ns + slack_ns ||
		    s->value[i] - s->value[i] != 0)
			continue;
		begin_object(w);
		text_addf(
			&w->out,
			"{\"ph\":\"C\",\"pid\":%u,\"tid\":0,\"ts\":%.3f,\"cat\":\"telemetry\",\"name\":\"%s\",",
			pid, us_of(w, s->t_ns[i]), s->signal);
		text_addf(&w->out, "\"args\":{\"%s\":%.9g}}", s->signal, s->value[i]);
	}
}

/* Writes telemetry as counter tracks. Each source becomes a process, with numbers from `pid` on. */
static void add_counters(struct trace *w, const struct series *series, size_t count, uint32_t pid)
{
	for (size_t i = 0; i < count; i++) {
		size_t first = 0;

		while (strcmp(series[first].source, series[i].source))
			first++;
		if (first == i)
			add_name(w, "process_name", pid + (uint32_t)i, 0, "name", series[i].source);
		if (series[i].kind == SIGNAL_GAUGE || series[i].kind == SIGNAL_EVENT)
			add_series(w, &series[i], pid + (uint32_t)first);
	}
}

static void add_all(struct trace *w, const struct series *series, size_t series_count)
{
	const struct timeline *t = w->t;

	add_head(w);
	for (size_t i = 0; i < t->processes; i++)
		if (wanted(w, (uint16_t)i))
			name_process(w, &t->process[i]);
	for (size_t i = 0; i < t->tracks; i++)
		if (wanted(w, t->track[i].process))
			name_track(w, &t->track[i]);
	for (size_t i = 0; i < t->events && !w->code; i++)
		add_event(w, &t->event[i]);
	add_counters(w, series, series_count, PID_TELEMETRY);
	text_add(&w->out, "\n]}\n");
	flush(w);
}

/* Returns 0, or the errno of the first failure. */
static int write_all(struct trace *w, int fd, const struct series *series, size_t series_count)
{
	int ended;

	w->gzip = gzip_out_begin(fd);
	if (!w->gzip)
		return ENOMEM;
	add_all(w, series, series_count);
	ended = gzip_out_end(w->gzip);
	return w->code ? w->code : ended;
}

enum status trace_write(const char *path, const struct timeline *t, uint16_t process,
			const struct series *series, size_t series_count, struct error *err)
{
	struct trace w = {.t = t,
			  .process = process,
			  .alone = process != TRACE_ALL || t->processes <= 1,
			  .base_ns = t->start_ns};
	struct file_new file;
	enum status st;
	int code;

	w.escaped = calloc(t->names + 1, sizeof(*w.escaped));
	if (!w.escaped)
		return error_errno(err, ENOMEM, "cannot write a trace with %zu names", t->names);
	st = file_new_begin(&file, path, err);
	if (!st) {
		code = write_all(&w, file.fd, series, series_count);
		if (code)
			st = error_errno(err, code, "cannot write %s", path);
		st = file_new_end(&file, st, err);
	}
	for (size_t i = 0; i < t->names; i++)
		free(w.escaped[i]);
	free(w.escaped);
	text_release(&w.out);
	return st;
}
