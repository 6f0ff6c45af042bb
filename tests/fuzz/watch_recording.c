/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a recording: refused in words, or read up to where it is wrong. */
#include "fuzz.h"

#include <unistd.h>
#include "watch/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const double places[] = {0, 1e9, 0.5, 61, 3, -1};
	char path[] = "/tmp/assay-fuzz-XXXXXX";
	struct watch_replay *r = NULL;
	struct error err = {0};
	int fd;

	if (size > 1 << 20)
		return 0;
	fd = mkstemp(path);
	FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size && !close(fd));
	if (watch_replay_open(&r, path, &err)) {
		FUZZ_CHECK(!r && *err.text);
		unlink(path);
		return 0;
	}
	FUZZ_CHECK(watch_replay_nodes(r) && watch_replay_length(r) >= 0);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct error why = {0};
		enum status st = watch_replay_seek(r, places[i], &why);

		FUZZ_CHECK((st == STATUS_OK) == !*why.text);
		for (unsigned n = 0; n < watch_replay_nodes(r); n++)
			FUZZ_CHECK(watch_replay_state(r, n)->count <= WATCH_ENTITIES_MAX);
	}
	watch_replay_close(r);
	unlink(path);
	return 0;
}
