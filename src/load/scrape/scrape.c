/* SPDX-License-Identifier: Apache-2.0 */
#include "load/scrape/scrape.h"
#include "load/scrape/prometheus.h"

json_t *scrape_read(const char *text, size_t size)
{
	struct load_scrape s;
	json_t *line;

	if (load_scrape_read(&s, text, size, NULL) || !s.server)
		return NULL;
	line = json_pack("{s:s}", "server", s.server);
	for (int r = 0; r < LOAD_READING_COUNT && line; r++)
		if (s.known[r])
			json_object_set_new(line, load_reading_row((enum load_reading)r)->word,
					    json_real(s.value[r]));
	return line;
}
