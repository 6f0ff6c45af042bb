/* SPDX-License-Identifier: Apache-2.0 */
#include "core/log.h"

#include <stdarg.h>

bool log_topic_from_name(const char *name, enum log_topic *out)
{
#define X(id, text, ...) [LOG_TOPIC_##id] = text,
	static const char *const names[] = {LOG_TOPICS(X)};
#undef X
	int i;

	for (i = 0; i < LOG_TOPIC_COUNT; i++) {
		if (strcmp(names[i], name))
			continue;
		*out = (enum log_topic)i;
		return true;
	}
	return false;
}

void log_line(const struct log *log, enum log_level level, enum log_topic topic, const char *format, ...)
{
	char line[1024];
	va_list args;

	if (!log || !log->sink || (level == LOG_INFO && log->quiet))
		return;
	va_start(args, format);
	if (vsnprintf(line, sizeof(line), format, args) < 0)
		line[0] = '\0';
	va_end(args);
	log->sink(log->arg, level, topic, line);
}
