/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/screen/value.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/text/text.h"
#include "core/text/units.h"

/* Units as they are shown: what a counter counts becomes a rate. */
enum shown { SHARE, BYTES, BYTE_RATE, CELSIUS, WATTS, HERTZ, SECONDS, TOKEN_RATE, NUMBER, RATE };

static enum shown shown_as(const struct catalogue_row *r)
{
	bool counter = r->type == METRIC_COUNTER;

	if (!strcmp(r->unit, "ratio"))
		return SHARE;
	if (!strcmp(r->unit, "bytes"))
		return counter ? BYTE_RATE : BYTES;
	if (!strcmp(r->unit, "seconds"))
		return counter ? SHARE : SECONDS;
	if (!strcmp(r->unit, "joules"))
		return counter ? WATTS : NUMBER;
	if (!strcmp(r->unit, "bytes/second"))
		return BYTE_RATE;
	if (!strcmp(r->unit, "celsius"))
		return CELSIUS;
	if (!strcmp(r->unit, "watts"))
		return WATTS;
	if (!strcmp(r->unit, "hertz"))
		return HERTZ;
	if (!strcmp(r->unit, "tokens/second"))
		return TOKEN_RATE;
	return counter ? RATE : NUMBER;
}

bool screen_sample(double *out, const struct watch_entity *e, enum catalogue row)
{
	const struct watch_value *v = catalogue_row(row)->scope == e->scope ? watch_get(e, row) : NULL;

	if (!v)
		return false;
	if (catalogue_row(row)->type == METRIC_COUNTER)
		return watch_rate(out, e, row) && isfinite(*out);
	if (!isfinite(v->value))
		return false;
	*out = v->value;
	return true;
}

void screen_compact(char out[SCREEN_VALUE], double value, double base)
{
	static const char prefixes[] = {0, 'k', 'M', 'G', 'T', 'P', 'E'};
	double size = fabs(value);
	size_t i = 0;

	value += 0.0; /* no "-0" */
	while (size >= 999.5 && i + 1 < sizeof(prefixes)) {
		size /= base;
		value /= base;
		i++;
	}
	if (!i && size == floor(size) && size < 1000)
		snprintf(out, SCREEN_VALUE, "%.0f", value);
	else
		snprintf(out, SCREEN_VALUE, "%.*f", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, value);
	if (prefixes[i])
		snprintf(out + strlen(out), SCREEN_VALUE - strlen(out), "%c", prefixes[i]);
}

const char *screen_short(char out[SCREEN_VALUE], enum catalogue row, double value, bool present)
{
	if (!present || !isfinite(value))
		return "-";
	value += 0.0; /* no "-0" */
	switch (shown_as(catalogue_row(row))) {
	case SHARE:
		snprintf(out, SCREEN_VALUE, "%.0f%%", fmin(100 * value, 9999));
		return out;
	case CELSIUS:
		snprintf(out, SCREEN_VALUE, "%.0fC", fmin(value, 9999));
		return out;
	case HERTZ:
		snprintf(out, SCREEN_VALUE, "%.0fM", fmin(1e-6 * value, 99999));
		return out;
	case BYTES:
		screen_compact(out, value, 1024);
		return out;
	case WATTS:
		screen_compact(out, round(value), 1000);
		text_copy(out + strlen(out), SCREEN_VALUE - strlen(out), "W");
		return out;
	case SECONDS:
		screen_compact(out, value < 1 ? 1e3 * value : value, 1000);
		text_copy(out + strlen(out), SCREEN_VALUE - strlen(out), value < 1 ? "ms" : "s");
		return out;
	case BYTE_RATE:
	case TOKEN_RATE:
	case NUMBER:
	case RATE:
		break;
	}
	screen_compact(out, value, 1000);
	return out;
}

static void binary_bytes(char out[SCREEN_VALUE], double value)
{
	screen_compact(out, value, 1024);
	if (fabs(value) >= 999.5) {
		size_t n = strlen(out);
		char prefix = out[n - 1] == 'k' ? 'K' : out[n - 1];

		snprintf(out + n - 1, SCREEN_VALUE - n + 1, " %ciB", prefix);
	} else {
		snprintf(out + strlen(out), SCREEN_VALUE - strlen(out), " B");
	}
}

const char *screen_long(char out[SCREEN_VALUE], enum catalogue row, double value, bool present)
{
	const struct catalogue_row *r = catalogue_row(row);

	if (!present || !isfinite(value))
		return "-";
	value += 0.0; /* no "-0" */
	switch (shown_as(r)) {
	case SHARE:
		snprintf(out, SCREEN_VALUE, "%.1f %%", fmin(100 * value, 1e9));
		break;
	case BYTES:
		binary_bytes(out, value);
		break;
	case CELSIUS:
		snprintf(out, SCREEN_VALUE, "%.4g C", value);
		break;
	case BYTE_RATE:
		units_format(out, SCREEN_VALUE, value, "B/s");
		break;
	case WATTS:
		units_format(out, SCREEN_VALUE, value, "W");
		break;
	case HERTZ:
		units_format(out, SCREEN_VALUE, value, "Hz");
		break;
	case SECONDS:
		units_format(out, SCREEN_VALUE, value, "s");
		break;
	case TOKEN_RATE:
		snprintf(out, SCREEN_VALUE, "%.4g tokens/s", value);
		break;
	case RATE:
		snprintf(out, SCREEN_VALUE, "%.4g/s", value);
		break;
	case NUMBER:
		snprintf(out, SCREEN_VALUE, "%.6g", value);
		break;
	}
	return out;
}

const char *screen_row_name(char out[96], enum catalogue row)
{
	const struct catalogue_row *r = catalogue_row(row);
	const char *name = r->name, *scope = metric_scope_row(r->scope)->name, *value;
	size_t length = strlen(scope);

	if (!strncmp(name, "assay_", 6))
		name += 6;
	if (!strncmp(name, scope, length) && name[length] == '_')
		name += length + 1;
	value = r->fixed ? strchr(r->fixed, '"') : NULL;
	if (value)
		snprintf(out, 96, "%s %.*s", name, (int)strcspn(value + 1, "\""), value + 1);
	else
		snprintf(out, 96, "%s", name);
	return out;
}

const char *screen_duration(char out[SCREEN_VALUE], double seconds)
{
	if (seconds < 120)
		snprintf(out, SCREEN_VALUE, "%.0f s", fmax(seconds, 0));
	else if (seconds < 7200)
		snprintf(out, SCREEN_VALUE, "%.0f min", seconds / 60);
	else if (seconds < 172800)
		snprintf(out, SCREEN_VALUE, "%.0f h", seconds / 3600);
	else
		snprintf(out, SCREEN_VALUE, "%.0f days", fmin(seconds / 86400, 1e9));
	return out;
}
