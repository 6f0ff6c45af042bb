/* SPDX-License-Identifier: Apache-2.0 */
/* Path and version of each library. Each one is opened in its own child process, so a library that crashes or
 * hangs while it is loaded affects only its own row. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/process/process.h"
#include "core/text/text.h"
#include "machine/raw/raw.h"
#include "vendor/lib.h"

/* How a library reports its version. */
enum how {
	HOW_MODULE, /* no version: a module of assay, present if it can be loaded with the library that it
		       needs */
	HOW_NONE,   /* only after an initialization that must be avoided here */
	HOW_INT_RETURNED, /* int f(void) or size_t f(void) */
	HOW_INT_POINTER,  /* int f(int *) */
	HOW_TEXT,	  /* const char *f(void) */
	HOW_STRUCT,	  /* const struct { int major, minor, patch; .. } *f(void): oneDNN */
	HOW_TWO_POINTERS, /* int f(int *major, int *minor): NVRTC */
	HOW_TEXT_BUFFER,  /* int f(char *buffer, int *length): MPI; void f(char *, int): MKL */
};

/* How to read a version number. */
enum shape {
	SHAPE_NONE,
	SHAPE_1000,  /* 13010 or 130100 as in CUDA: major * 1000 + minor * 10 */
	SHAPE_CUPTI, /* 130001 as in the toolkit; before 12.6 a counter of its own */
	SHAPE_10000, /* 130102 as in cuBLAS, NCCL since 2.9, cuDNN 9: major * 10000 + minor * 100 + patch */
};

struct library {
	const char *name;
	const char *sonames[8];
	const char *wheel, *function;
	enum how how;
	enum shape shape;
};

static const struct library libraries[] = {
	{"cuda", {"libcuda.so.1", NULL}, NULL, "cuDriverGetVersion", HOW_INT_POINTER, SHAPE_1000},
	{"nvml", {"libnvidia-ml.so.1", NULL}, NULL, NULL, HOW_NONE, SHAPE_NONE},
	{"cudart",
	 {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", NULL},
	 "nvidia/cu13/lib",
	 "cudaRuntimeGetVersion",
	 HOW_INT_POINTER,
	 SHAPE_1000},
	{"cublas",
	 {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", NULL},
	 "nvidia/cu13/lib",
	 "cublasGetProperty",
	 HOW_INT_RETURNED,
	 SHAPE_NONE},
	{"cublaslt",
	 {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", NULL},
	 "nvidia/cu13/lib",
	 "cublasLtGetVersion",
	 HOW_INT_RETURNED,
	 SHAPE_10000},
	{"cudnn",
	 {"libcudnn.so.9", "libcudnn.so.8", NULL},
	 "nvidia/cudnn/lib",
	 "cudnnGetVersion",
	 HOW_INT_RETURNED,
	 SHAPE_10000},
	{"nccl", {"libnccl.so.2", NULL}, "nvidia/nccl/lib", "ncclGetVersion", HOW_INT_POINTER, SHAPE_10000},
	{"cupti",
	 {"libcupti.so.13", "libcupti.so.12", NULL},
	 "nvidia/cu13/lib",
	 "cuptiGetVersion",
	 HOW_INT_POINTER,
	 SHAPE_CUPTI},
	{"nvrtc",
	 {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL},
	 "nvidia/cu13/lib",
	 "nvrtcVersion",
	 HOW_TWO_POINTERS,
	 SHAPE_NONE},
	{"openblas",
	 {"libopenblas.so.0", "libopenblasp.so.0", "libopenblas.so", NULL},
	 NULL,
	 "openblas_get_config",
	 HOW_TEXT,
	 SHAPE_NONE},
	/* OpenBLAS in wheels of numpy and scipy; ASSAY_LIB_OPENBLAS=PATH uses it for GEMM */
	{"openblas_wheel",
	 {"libscipy_openblas*.so", NULL},
	 "{numpy.libs,scipy.libs,scipy_openblas64/lib,scipy_openblas32/lib}",
	 "openblas_get_config",
	 HOW_TEXT,
	 SHAPE_NONE},
	{"mkl",
	 {"libmkl_rt.so.2", "libmkl_rt.so.1", NULL},
	 LIB_WHEEL_PREFIX,
	 "MKL_Get_Version_String",
	 HOW_TEXT_BUFFER,
	 SHAPE_NONE},
	{"aocl",
	 {"libblis-mt.so.5", "libblis-mt.so.4", "libblis.so.4", NULL},
	 NULL,
	 "bli_info_get_version_str",
	 HOW_TEXT,
	 SHAPE_NONE},
	{"onednn",
	 {"libdnnl.so.3", "libdnnl.so.2", NULL},
	 LIB_WHEEL_PREFIX,
	 "dnnl_version",
	 HOW_STRUCT,
	 SHAPE_NONE},
	{"mpi",
	 {"libmpi.so.40", "libmpi.so.12", NULL},
	 NULL,
	 "MPI_Get_library_version",
	 HOW_TEXT_BUFFER,
	 SHAPE_NONE},
	{"mpi_plugin", {"libassay-mpi.so", NULL}, NULL, NULL, HOW_MODULE, SHAPE_NONE},
};
enum { LIBRARIES = sizeof(libraries) / sizeof(libraries[0]), LIMIT_MS = 20000 };

union version_call {
	void (*any)(void);
	size_t (*returned)(void);
	int (*property)(int, int *);
	int (*pointer)(int *);
	const char *(*text)(void);
	const int *(*numbers)(void);
	int (*two)(int *, int *);
	int (*buffer)(char *, int *);
	void (*mkl)(char *, int);
};

static void number_text(char *out, size_t size, enum shape shape, long v)
{
	if (shape == SHAPE_1000)
		snprintf(out, size, "%ld.%ld", v / 1000, v % 1000 / 10);
	else if (shape == SHAPE_CUPTI && v < 100000)
		snprintf(out, size, "API %ld", v);
	else if (shape != SHAPE_NONE && v >= 10000)
		snprintf(out, size, "%ld.%ld.%ld", v / 10000, v % 10000 / 100, v % 100);
	else if (shape == SHAPE_10000) /* cuDNN 8 and NCCL before 2.9: major * 1000 + minor * 100 + patch */
		snprintf(out, size, "%ld.%ld.%ld", v / 1000, v % 1000 / 100, v % 100);
	else
		snprintf(out, size, "%ld", v);
}

/* Calls cublasGetProperty(which, *value): 0 major, 1 minor, 2 patch. */
static void property_text(char *out, size_t size, int (*property)(int, int *))
{
	int v[3] = {0};

	for (int i = 0; i < 3; i++) {
		if (property(i, &v[i]))
			return;
	}
	snprintf(out, size, "%d.%d.%d", v[0], v[1], v[2]);
}

static void ask_version(const struct library *l, const union version_call *call, char *out, size_t size)
{
	int a = 0, b = 0, length = 0;
	const int *n;
	char text[8192] = "";

	switch (l->how) {
	case HOW_MODULE:
	case HOW_NONE:
		break;
	case HOW_INT_RETURNED:
		if (!strcmp(l->function, "cublasGetProperty"))
			property_text(out, size, call->property);
		else
			number_text(out, size, l->shape, (long)call->returned());
		break;
	case HOW_INT_POINTER:
		if (!call->pointer(&a))
			number_text(out, size, l->shape, a);
		break;
	case HOW_TEXT:
		text_copy(out, size, call->text());
		break;
	case HOW_STRUCT:
		n = call->numbers();
		if (n)
			snprintf(out, size, "%d.%d.%d", n[0], n[1], n[2]);
		break;
	case HOW_TWO_POINTERS:
		if (!call->two(&a, &b))
			snprintf(out, size, "%d.%d", a, b);
		break;
	case HOW_TEXT_BUFFER:
		if (!strncmp(l->function, "MKL", 3))
			call->mkl(text, (int)sizeof(text) - 1);
		else if (call->buffer(text, &length))
			text[0] = 0;
		text[strcspn(text, "\n")] = 0;
		text_copy(out, size, text);
		break;
	}
	if (!strncmp(out, "OpenBLAS ", 9)) /* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH .." */
		memmove(out, out + 9, strlen(out + 9) + 1);
	out[strcspn(out, ",")] = 0; /* "Open MPI v4.1.6, package: .." */
}

/* Runs in the child: writes one JSON object to `fd`. */
static void report(const struct library *l, int fd)
{
	/* Symbols of OpenBLAS in wheels have a prefix and, with 64-bit integers, a suffix. */
	enum { NAMES = 3 };
	const bool blas = l->function && !strcmp(l->function, "openblas_get_config");
	const struct lib_symbol symbol[NAMES] = {
		{l->function, 0, LIB_NEED_OPTIONAL},
		{"scipy_openblas_get_config", sizeof(union version_call), LIB_NEED_OPTIONAL},
		{"scipy_openblas_get_config64_", 2 * sizeof(union version_call), LIB_NEED_OPTIONAL},
	};
	const struct lib_spec spec = {.name = l->name,
				      .sonames = l->sonames,
				      .wheel = l->wheel,
				      .module = l->how == HOW_MODULE,
				      .symbols = symbol,
				      .symbol_count = blas ? NAMES : l->function != NULL,
				      .table_size = NAMES * sizeof(union version_call)};
	union version_call call[NAMES];
	struct lib_fact fact;
	char version[128] = "", *out;
	json_t *row = json_object();

	if (lib_open(call, &spec, NULL, &fact, NULL)) {
		json_object_set_new(row, "missing", json_string(fact.missing ? fact.missing : "not found"));
	} else {
		json_object_set_new(row, "path", json_string(fact.path ? fact.path : ""));
		for (unsigned i = 0; i < NAMES; i++)
			if (call[i].any && !version[0])
				ask_version(l, &call[i], version, sizeof(version));
		if (version[0])
			json_object_set_new(row, "version", json_string(version));
	}
	out = json_dumps(row, JSON_COMPACT);
	if (out && write(fd, out, strlen(out)) < 0)
		_exit(1);
	_exit(0);
}

/* Reads the child's output until it ends or LIMIT_MS passed; then ends the child. */
static json_t *take(pid_t pid, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char data[16384];
	size_t size = 0;
	int status = 0, ready = 0;
	json_t *row;
	char why[64];

	while (size < sizeof(data) - 1 && (ready = poll(&p, 1, LIMIT_MS)) > 0) {
		ssize_t n = read(fd, data + size, sizeof(data) - 1 - size);

		if (n <= 0)
			break;
		size += (size_t)n;
	}
	if (ready == 0)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	row = json_loadb(data, size, 0, NULL);
	if (json_is_object(row))
		return row;
	json_decref(row);
	if (ready == 0)
		snprintf(why, sizeof(why), "loading it took more than %d s", LIMIT_MS / 1000);
	else if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "crashed while it was loaded, signal %d", WTERMSIG(status));
	else
		snprintf(why, sizeof(why), "ended the process that loaded it");
	return json_pack("{s:s}", "missing", why);
}

static bool named(const char *const *names, const char *name)
{
	for (; names && *names; names++)
		if (!strcmp(*names, name))
			return true;
	return !names;
}

json_t *raw_software(const char *const *names)
{
	json_t *raw = json_pack("{s:s,s:{}}", "layer", "software", "libraries");
	json_t *found = json_object_get(raw, "libraries");
	pid_t pid[LIBRARIES];
	int from[LIBRARIES];
	pid_t parent = getpid();

	fflush(NULL);
	for (size_t i = 0; i < LIBRARIES;
	     i++) { /* in parallel, because most of the time is waiting for the disk */
		int pair[2];

		pid[i] = from[i] = -1;
		if (!named(names, libraries[i].name) || pipe(pair))
			continue;
		pid[i] = fork();
		if (!pid[i]) {
			process_follow(parent);
			close(pair[0]);
			report(&libraries[i], pair[1]);
		}
		close(pair[1]);
		from[i] = pair[0];
	}
	for (size_t i = 0; i < LIBRARIES; i++) {
		if (!named(names, libraries[i].name))
			continue;
		json_object_set_new(found, libraries[i].name,
				    pid[i] < 0
					    ? json_pack("{s:s}", "missing", "no child process to open it in")
					    : take(pid[i], from[i]));
		if (from[i] >= 0)
			close(from[i]);
	}
	return raw;
}
