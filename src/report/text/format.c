/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/format.h"
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

struct word {
	const char *name, *shown;
};

static const struct word engine_words[] = {
	{"cpu", "own loops"}, {"cublaslt", "cuBLASLt"}, {"cublas", "cuBLAS"},  {"cudnn", "cuDNN"},
	{"driver", "driver"}, {"mkl", "MKL"},		{"mpi", "MPI"},	       {"nccl", "NCCL"},
	{"onednn", "oneDNN"}, {"openblas", "OpenBLAS"}, {"own", "own kernel"},
};

static const struct word type_words[] = {
	{"bf16", "BF16"},	  {"f16", "FP16"},
	{"f32", "FP32"},	  {"f64", "FP64"},
	{"fp16", "FP16"},	  {"fp32", "FP32"},
	{"fp64", "FP64"},	  {"fp8", "FP8"},
	{"fp8_e4m3", "FP8 E4M3"}, {"fp8_e5m2", "FP8 E5M2"},
	{"e4m3", "FP8 E4M3"},	  {"e5m2", "FP8 E5M2"},
	{"int8", "INT8"},	  {"s8", "INT8"},
	{"tf32", "TF32"},	  {"fp8_block", "FP8 (block scales)"},
};

/* Units that are scaled by a prefix, with the powers of 1000 of their smallest and largest prefix. T is the
 * largest, so 1,070 TFLOPS and 689 TFLOPS have the same unit. */
struct scaled {
	const char *unit, *base;
	int low, high;
};

static const struct scaled scaled_units[] = {
	{"FLOP/s", "FLOPS", 0, 4}, {"FLOPS", "FLOPS", 0, 4}, {"OP/s", "OPS", 0, 4}, {"FLOP", "FLOP", 0, 4},
	{"B/s", "B/s", 0, 4},	   {"B", "B", 0, 4},	     {"Hz", "Hz", 0, 3},    {"1/s", "/s", 0, 4},
	{"s", "s", -3, 0},	   {"J", "J", -1, 2},	     {"W", "W", 0, 1},
};

static const char *const prefixes[] = {"n", "u", "m", "", "k", "M", "G", "T"};

static const struct scaled *scaled_by_unit(const char *unit)
{
	for (size_t i = 0; i < sizeof(scaled_units) / sizeof(scaled_units[0]); i++)
		if (!strcmp(scaled_units[i].unit, unit))
			return &scaled_units[i];
	return NULL;
}

/* The power of 1000 that shows `value` with one to three digits before the point. */
static int prefix_of(double value, const struct scaled *s)
{
	int power = 0;

	value = fabs(value);
	if (value == 0)
		return 0;
	while (power < s->high && value >= 999.5 * pow(1000, power))
		power++;
	while (power > s->low && value < 0.9995 * pow(1000, power))
		power--;
	return power;
}

static int decimals_of(double value)
{
	value = fabs(value);
	return value == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3;
}

void format_quantity(char *out, size_t size, double value, double like, const char *unit)
{
	const struct scaled *s = scaled_by_unit(unit);
	double factor = 1;
	int power = 0;

	if (!isfinite(value)) {
		snprintf(out, size, FORMAT_NONE);
		return;
	}
	if (!strcmp(unit, "ns")) { /* fields are in ns; people prefer us and ms */
		format_quantity(out, size, value * 1e-9, like * 1e-9, "s");
		return;
	}
	if (!s) {
		bool whole = value == floor(value) && fabs(value) < 1e15;

		snprintf(out, size, "%.*f%s%s", whole ? 0 : decimals_of(value), value, unit[0] ? " " : "",
			 unit);
		return;
	}
	power = prefix_of(isfinite(like) && like != 0 ? like : value, s);
	factor = pow(1000, power);
	snprintf(out, size, "%.*f %s%s", decimals_of(value / factor), value / factor, prefixes[power + 3],
		 s->base);
}

void format_range(char *out, size_t size, double low, double high, const char *unit)
{
	char first[48], last[48];
	char *space;

	format_quantity(first, sizeof(first), low, high, unit);
	format_quantity(last, sizeof(last), high, high, unit);
	space = strchr(first, ' ');
	if (space && unit[0])
		*space = '\0';
	snprintf(out, size, "%s–%s", first, last);
}

void format_share(char *out, size_t size, double share)
{
	double percent = 100 * share;

	if (!isfinite(share))
		snprintf(out, size, FORMAT_NONE);
	else
		snprintf(out, size, "%.*f %%", fabs(percent) < 1 && percent != 0 ? 2 : 1, percent);
}

void format_bytes(char *out, size_t size, double bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t i = 0;

	while (i + 1 < sizeof(units) / sizeof(units[0]) && bytes >= 1024) {
		bytes /= 1024;
		i++;
	}
	if (bytes == floor(bytes))
		snprintf(out, size, "%.0f %s", bytes, units[i]);
	else
		snprintf(out, size, "%.1f %s", bytes, units[i]);
}

static const char *find_word(const struct word *words, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(words[i].name, name))
			return words[i].shown;
	return NULL;
}

const char *format_engine(const char *engine)
{
	const char *shown = find_word(engine_words, sizeof(engine_words) / sizeof(engine_words[0]), engine);

	return shown ? shown : engine;
}

const char *format_type(const char *type, char *out, size_t size)
{
	const char *dot = strchr(type, '.');
	const char *name = dot ? dot + 1 : type;
	const char *shown = find_word(type_words, sizeof(type_words) / sizeof(type_words[0]), name);

	text_copy(out, size, shown ? shown : name);
	for (char *c = out; !shown && *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return out;
}

/* NVML's clock event reasons (nvml.h of CUDA 13.0). */
static const struct {
	uint64_t bit;
	const char *shown;
} reason_words[] = {
	{0x1, "idle"},
	{0x2, "clock setting"},
	{0x4, "power or current limit"},
	{0x8, "hardware slowdown"},
	{0x10, "sync boost"},
	{0x20, "thermal (software)"},
	{0x40, "thermal (hardware)"},
	{0x80, "power brake"},
	{0x100, "display clock"},
};

void format_clock_reasons(char *out, size_t size, uint64_t bits)
{
	size_t used = 0;

	text_copy(out, size, bits ? "" : "none");
	for (size_t i = 0; i < sizeof(reason_words) / sizeof(reason_words[0]); i++) {
		if (!(bits & reason_words[i].bit) || used >= size)
			continue;
		bits &= ~reason_words[i].bit;
		used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
					 reason_words[i].shown);
	}
	if (bits && used < size)
		snprintf(out + used, size - used, "%s0x%" PRIx64, used ? ", " : "", bits);
}
