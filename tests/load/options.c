/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "load/options.h"

enum { EXIT_USAGE = 64 };

#define X(name, word, value, meaning) word,
static const char *const fault_words[] = {STUB_FAULTS(X)};
#undef X
static const char *const names_words[] = {"vllm", "sglang", "tgi", "llamacpp", "assay"};

const char *stub_fault_word(enum stub_fault f)
{
	return fault_words[f];
}

static const char help[] =
	"usage: stub_server [OPTION..]\n"
	"An OpenAI server without a model, with exact times and planted faults. It prints `port N`, serves on\n"
	"127.0.0.1 until TERM or INT, and then prints a summary as JSON.\n"
	"  --port N            0: any free port (default)\n"
	"  --threads N         each with its own socket on the port (default 1)\n"
	"  --ttft-ms X         from the request's last byte to the first token (default 20)\n"
	"  --itl-ms X          between tokens (default 10)\n"
	"  --role-ms X         from the request to the role chunk (default: together with the first token)\n"
	"  --jitter KIND:SIZE  uniform: each time is multiplied by 1-SIZE .. 1+SIZE; lognormal: by a factor with\n"
	"                      mean 1, SIZE is sigma of its logarithm\n"
	"  --seed N            of jitter and choice of faults (default 1)\n"
	"  --by-content        a request's jitter and fault follow from its body instead of its number\n"
	"  --fault NAME:SHARE[:VALUE]  a share of the requests has this fault; may be repeated\n"
	"  --burst N           N requests in a row share their fault (default 1)\n"
	"  --rate-most N       N requests are begun in a second; others wait for their turn (default 0: no limit)\n"
	"  --loading N         the first N requests get 503, as while a server loads its model\n"
	"  --metrics WHOSE     names in /metrics: vllm (default), sglang, tgi, llamacpp, assay\n"
	"  --model NAME        (default stub)\n"
	"  --truth FILE        a JSON line for each request with what was really done\n"
	"faults:\n";

static void print_help(void)
{
#define X(name, word, preset, text) {word, text, preset},
	static const struct {
		const char *word, *text;
		double preset;
	} rows[] = {STUB_FAULTS(X)};
#undef X
	fputs(help, stdout);
	for (size_t i = 1; i < sizeof(rows) / sizeof(rows[0]); i++) {
		printf("  %-15s %s", rows[i].word, rows[i].text);
		if (rows[i].preset > 0)
			printf(" (default VALUE %.0f)", rows[i].preset);
		putchar('\n');
	}
}

static int wrong(const char *option, const char *value)
{
	fprintf(stderr, "stub_server: --%s does not accept %s\n", option, value);
	return EXIT_USAGE;
}

static int number(const char *s, char **end, double most, double *out)
{
	errno = 0;
	*out = strtod(s, end);
	return *end == s || errno || !isfinite(*out) || *out < 0 || *out > most;
}

static int whole(const char *s, double most, double *out)
{
	char *end;

	return number(s, &end, most, out) || *end;
}

static int read_fault(struct stub_options *o, const char *spec)
{
	size_t word = strcspn(spec, ":");
	double share, value;
	char *end;
	int kind;

	for (kind = 1; kind < STUB_FAULT_COUNT; kind++)
		if (strlen(fault_words[kind]) == word && !strncmp(spec, fault_words[kind], word))
			break;
	if (kind == STUB_FAULT_COUNT || spec[word] != ':' || number(spec + word + 1, &end, 1, &share))
		return wrong("fault", spec);
	o->share[kind] = share;
	if (*end == ':') {
		if (whole(end + 1, 1e10, &value))
			return wrong("fault", spec);
		o->value[kind] = value;
	} else if (*end) {
		return wrong("fault", spec);
	}
	return 0;
}

static int read_jitter(struct stub_options *o, const char *spec)
{
	size_t word = strcspn(spec, ":");

	if (word == 7 && !strncmp(spec, "uniform", 7))
		o->jitter = STUB_JITTER_UNIFORM;
	else if (word == 9 && !strncmp(spec, "lognormal", 9))
		o->jitter = STUB_JITTER_LOGNORMAL;
	else
		return wrong("jitter", spec);
	if (spec[word] != ':' ||
	    whole(spec + word + 1, o->jitter == STUB_JITTER_UNIFORM ? 1 : 3, &o->jitter_size))
		return wrong("jitter", spec);
	return 0;
}

static int read_names(struct stub_options *o, const char *word)
{
	for (int i = 0; i < STUB_NAMES_COUNT; i++)
		if (!strcmp(word, names_words[i])) {
			o->names = (enum stub_names)i;
			return 0;
		}
	return wrong("metrics", word);
}

static int read_model(struct stub_options *o, const char *name)
{
	if (!*name || strlen(name) > 64 || strpbrk(name, "\"\\\n\r"))
		return wrong("model", name);
	o->model = name;
	return 0;
}

enum option_number { NUM_PORT, NUM_THREADS, NUM_TTFT, NUM_ITL, NUM_ROLE, NUM_SEED, NUM_BURST, NUM_LOADING, NUM_RATE_MOST, NUM_END };

static int read_number(struct stub_options *o, enum option_number which, const char *name, const char *text)
{
	static const double most[] = {65535, 64, 1e7, 1e7, 1e7, 9e15, 1e6, 1e6, 1e6};
	double x;

	if (whole(text, most[which], &x) || (x < 1 && (which == NUM_THREADS || which == NUM_BURST)))
		return wrong(name, text);
	switch (which) {
	case NUM_PORT:
		o->port = (uint16_t)x;
		break;
	case NUM_THREADS:
		o->threads = (unsigned)x;
		break;
	case NUM_TTFT:
		o->ttft_ns = (uint64_t)(x * 1e6);
		break;
	case NUM_ITL:
		o->itl_ns = (uint64_t)(x * 1e6);
		break;
	case NUM_ROLE:
		o->role_ns = (uint64_t)(x * 1e6);
		break;
	case NUM_SEED:
		o->seed = (uint64_t)x;
		break;
	case NUM_BURST:
		o->burst = (uint64_t)x;
		break;
	case NUM_LOADING:
		o->loading = (uint64_t)x;
		break;
	case NUM_RATE_MOST:
		o->rate_most = x;
		break;
	case NUM_END:
		break;
	}
	return 0;
}

static int read_option(struct stub_options *o, int which, const char *name)
{
	if (which < NUM_END)
		return read_number(o, (enum option_number)which, name, optarg);
	switch (which) {
	case 'f':
		return read_fault(o, optarg);
	case 'j':
		return read_jitter(o, optarg);
	case 'm':
		return read_names(o, optarg);
	case 'n':
		return read_model(o, optarg);
	case 't':
		o->truth = optarg;
		return 0;
	case 'c':
		o->by_content = true;
		return 0;
	case 'h':
		print_help();
		return -1;
	default:
		return EXIT_USAGE; /* getopt has said why */
	}
}

static int check_shares(const struct stub_options *o)
{
	double sum = 0;

	for (int i = 0; i < STUB_FAULT_COUNT; i++)
		if (i != STUB_FAULT_REFUSE)
			sum += o->share[i];
	if (sum <= 1 + 1e-9)
		return 0;
	fprintf(stderr, "stub_server: the shares of faults add up to %g, more than 1\n", sum);
	return EXIT_USAGE;
}

int stub_options_read(struct stub_options *o, int argc, char **argv)
{
	static const struct option rows[] = {
		{"port", 1, NULL, NUM_PORT},
		{"threads", 1, NULL, NUM_THREADS},
		{"ttft-ms", 1, NULL, NUM_TTFT},
		{"itl-ms", 1, NULL, NUM_ITL},
		{"role-ms", 1, NULL, NUM_ROLE},
		{"seed", 1, NULL, NUM_SEED},
		{"burst", 1, NULL, NUM_BURST},
		{"loading", 1, NULL, NUM_LOADING},
		{"rate-most", 1, NULL, NUM_RATE_MOST},
		{"fault", 1, NULL, 'f'},
		{"jitter", 1, NULL, 'j'},
		{"metrics", 1, NULL, 'm'},
		{"model", 1, NULL, 'n'},
		{"truth", 1, NULL, 't'},
		{"by-content", 0, NULL, 'c'},
		{"help", 0, NULL, 'h'},
		{0},
	};
#define X(name, word, preset, meaning) preset,
	static const double presets[] = {STUB_FAULTS(X)};
#undef X
	int which, row = 0, code;

	*o = (struct stub_options){.threads = 1,
				   .seed = 1,
				   .ttft_ns = 20000000,
				   .itl_ns = 10000000,
				   .role_ns = UINT64_MAX,
				   .burst = 1,
				   .model = "stub"};
	memcpy(o->value, presets, sizeof(presets));
	while ((which = getopt_long(argc, argv, "", rows, &row)) != -1) {
		code = read_option(o, which, which == '?' ? "" : rows[row].name);
		if (code)
			return code;
	}
	if (optind < argc) {
		fprintf(stderr, "stub_server: %s is not an option\n", argv[optind]);
		return EXIT_USAGE;
	}
	return check_shares(o);
}
