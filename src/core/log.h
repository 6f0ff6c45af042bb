/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostic messages. They go to a callback; only main's callback writes to stderr. A message is lower
 * case, has no full stop, and says what happened and to which thing. Nothing logs inside a timed region.
 * The topic's bit is tested before anything is formatted. */
#ifndef CORE_LOG_H
#define CORE_LOG_H
#include <stdbool.h>

/* name, word for --debug=WORD, meaning */
/* clang-format off */
#define LOG_TOPICS(X)                                 \
	X(RUN, "run", "plan, supervisor, worker")     \
	X(TIMING, "timing", "phases and samples")     \
	X(VENDOR, "vendor", "libraries and symbols")  \
	X(MACHINE, "machine", "facts and recordings") \
	X(JUDGE, "judge", "expectations and verdicts")
/* clang-format on */
#define X(name, ...) LOG_TOPIC_##name,
enum log_topic { LOG_TOPICS(X) LOG_TOPIC_COUNT };
#undef X
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log {
	void (*sink)(void *arg, enum log_level level, enum log_topic topic, const char *line);
	void *arg;
	unsigned topics; /* one bit per topic: topics whose debug lines are wanted */
	bool quiet;	 /* suppress info lines */
};

bool log_topic_from_name(const char *name, enum log_topic *out);
void log_line(const struct log *log, enum log_level level, enum log_topic topic, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
#define log_debug(log, topic, ...)                                                                           \
	((log) && ((log)->topics & 1u << (topic)) ? log_line((log), LOG_DEBUG, (topic), __VA_ARGS__)         \
						  : (void)0)
#define log_info(log, topic, ...) log_line((log), LOG_INFO, (topic), __VA_ARGS__)
#define log_warn(log, topic, ...) log_line((log), LOG_WARN, (topic), __VA_ARGS__)
#define log_error(log, topic, ...) log_line((log), LOG_ERROR, (topic), __VA_ARGS__)
#endif
