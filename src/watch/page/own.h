/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter's metrics about itself, beside the catalogue's rows of scope EXPORTER. */
#ifndef WATCH_PAGE_OWN_H
#define WATCH_PAGE_OWN_H
#include "journal/metrics/catalogue.h"

/* symbol, name, type, unit, help */
/* clang-format off */
#define PAGE_OWN(X) \
	X(READER_UP, "assay_exporter_reader_up", GAUGE, "bool", "1 while the process that reads the machine sends readings") \
	X(SERIES, "assay_exporter_series", GAUGE, "series", "Series of this page") \
	X(SCRAPES, "assay_exporter_scrapes_total", COUNTER, "scrapes", "Pages sent") \
	X(CONNECTIONS, "assay_exporter_connections", GAUGE, "connections", "Open connections") \
	X(CLOSED, "assay_exporter_closed_total", COUNTER, "connections", "Connections closed because they were slow, or to make room for others") \
	X(REFUSED, "assay_exporter_refused_total", COUNTER, "requests", "Requests refused because of their password") \
	X(MEMORY, "process_resident_memory_bytes", GAUGE, "bytes", "Resident memory of the exporter") \
	X(START, "process_start_time_seconds", GAUGE, "seconds", "Start of the exporter, in seconds since 1970")
/* clang-format on */
#define X(symbol, ...) PAGE_OWN_##symbol,
enum page_own_row { PAGE_OWN(X) PAGE_OWN_COUNT };
#undef X

struct page_own {
	double value[PAGE_OWN_COUNT];
	bool present[PAGE_OWN_COUNT];
	double cpu_seconds; /* of this process */
};
struct page_own_line {
	const char *symbol, *name, *unit, *help;
	enum metric_type type;
};
const struct page_own_line *page_own_line(enum page_own_row row);
/* Sets a value, which is then present. */
void page_own_set(struct page_own *own, enum page_own_row row, double value);
/* Sets what the kernel says of this process. */
void page_own_read_process(struct page_own *own);
#endif
