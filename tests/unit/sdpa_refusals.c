/* SPDX-License-Identifier: Apache-2.0 */
/* Every way in which the library, its version, the memory or the order of calls can refuse a plan of
 * attention. */
#include "sdpa_bed.h"

/* A plan up to its first run; where it stops, and with what. */
static enum status run_staged(const struct fixture *f, const char *staged, uint64_t workspace_max,
			      struct error *err)
{
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_CAUSAL);
	struct fixture own = *f;
	enum status st;
	struct life l;

	*err = (struct error){0};
	begin(&l, f, &p);
	setenv("FAKE_CUDNN", staged, 1);
	st = sdpa_open(&own.sdpa, f->device, NULL, workspace_max, err);
	if (!st)
		st = sdpa_plan_create(&l.forward, own.sdpa, &p, SDPA_FORWARD, err);
	if (!st)
		st = sdpa_plan_first(l.forward, err);
	if (!st)
		st = sdpa_plan_enqueue(l.forward, &l.operands, NULL, f->stream, err);
	unsetenv("FAKE_CUDNN");
	end(&l);
	sdpa_close(&own.sdpa);
	return st;
}

static void refusals_keep_the_librarys_words(void **state)
{
	static const struct {
		const char *staged;
		enum status st;
		enum cause cause;
		const char *word;
	} refusals[] = {
		{"version=90501", STATUS_UNSUPPORTED, CAUSE_VERSION_MISMATCH, "9.5.1 is too old"},
		{"version=91001", STATUS_UNSUPPORTED, CAUSE_VERSION_MISMATCH,
		 "9.10.1 computes attention wrongly"},
		{"cudnnCreate=1001", STATUS_VENDOR, CAUSE_VENDOR_CALL, "create returned"},
		{"cudnnCreate=1008", STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING, "1008"},
		{"cudnnCreate=1002", STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH, "1002"},
		{"cudnnCreate=3005", STATUS_UNAVAILABLE, CAUSE_DRIVER_OLD, "3005"},
		{"cudnnBackendCreateDescriptor=4003", STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "desc_create"},
		{"set=2000", STATUS_VENDOR, CAUSE_VENDOR_CALL,
		 "desc_set returned CUDNN_STATUS_BAD_PARAM (2000): staged"},
		{"graph=3001", STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "desc_finalize"},
		{"nothing=1", STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "no engine"},
		{"plan=3000", STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "CUDNN_STATUS_NOT_SUPPORTED"},
		{"plan=3008", STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING, "3008"},
		{"plan=4004", STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "4004"},
		{"plan=4001", STATUS_VENDOR, CAUSE_VENDOR_CALL, "4001"},
		{"pack=2003", STATUS_VENDOR, CAUSE_VENDOR_CALL, "2003"},
		{"cudnnSetStream=5000", STATUS_VENDOR, CAUSE_VENDOR_CALL, "set_stream"},
		{"cudnnBackendExecute=5001", STATUS_VENDOR, CAUSE_VENDOR_CALL, "execute returned"},
		{"workspace=5000000", STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
		 "5000000 bytes of workspace, but only 1048576"},
	};

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct error err;
		enum status st = run_staged(*state, refusals[i].staged, 1 << 20, &err);

		if (st != refusals[i].st || err.cause != refusals[i].cause ||
		    !strstr(err.text, refusals[i].word))
			fail_msg("%s: %s (%s), \"%s\"", refusals[i].staged, status_name(st),
				 cause_name(err.cause), err.text);
	}
}

static void memory_that_is_not_there_is_said(void **state)
{
	struct error err;

	setenv("FAKE_CUDA", "cuMemAlloc_v2=2@11",
	       1); /* after the operands and the plan's numbers: the workspace */
	assert_int_equal(run_staged(*state, "", 0, &err), STATUS_NO_RESOURCE);
	setenv("FAKE_CUDA", "cuMemAlloc_v2=2@10", 1);
	assert_int_equal(run_staged(*state, "", 0, &err), STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_NO_MEMORY);
}

static void no_library_is_said(void **state)
{
	const struct fixture *f = *state;
	struct error err = {0};
	struct sdpa *s;

	assert_int_equal(sdpa_open(&s, f->device, "/nowhere/libcudnn.so.9", 0, &err), STATUS_UNAVAILABLE);
	assert_null(s);
	assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
	assert_non_null(strstr(err.text, "/nowhere/libcudnn.so.9"));
	/* Another library of that name: a symbol is missing. */
	err = (struct error){0};
	assert_int_equal(sdpa_open(&s, f->device, FAKE_DIR "/libcublasLt.so.13", 0, &err),
			 STATUS_UNAVAILABLE);
	if (!strstr(err.text, "no symbol cudnn"))
		fail_msg("%s", err.text);
	assert_int_equal(sdpa_version(f->sdpa), 91900);
	assert_non_null(strstr(sdpa_path(f->sdpa), "libcudnn.so.9"));
}

static void refused(const struct fixture *f, const char *version, const struct attention_problem *p,
		    enum sdpa_direction direction, const char *word)
{
	struct sdpa *s;
	struct sdpa_plan *m;
	struct error err = {0};

	setenv("FAKE_CUDNN", version, 1);
	assert_int_equal(sdpa_open(&s, f->device, NULL, 0, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_create(&m, s, p, direction, &err), STATUS_UNSUPPORTED);
	assert_null(m);
	if (!strstr(err.text, word))
		fail_msg("\"%s\" does not say \"%s\"", err.text, word);
	sdpa_close(&s);
	unsetenv("FAKE_CUDNN");
}

static void what_a_version_lacks_is_named(void **state)
{
	static const uint32_t empty[] = {0, 9, 9}, keys[] = {0, 12, 24}, many[] = {0, 1 << 27, 1 << 28};
	struct attention_problem p = small(ATTENTION_E4M3, ATTENTION_FULL);
	struct attention_problem bad = p;

	refused(*state, "version=91900", &p, SDPA_BACKWARD, "only 16-bit types");
	p = small(ATTENTION_F16, ATTENTION_FULL);
	p.q_len = p.kv_len = 1;
	refused(*state, "version=91900", &p, SDPA_FORWARD, "one query with one key");
	p = small(ATTENTION_F16, ATTENTION_CAUSAL);
	p.q_len = 13;
	refused(*state, "version=91900", &p, SDPA_FORWARD, "at least as many keys as queries");
	p.mask = ATTENTION_WINDOW;
	refused(*state, "version=91900", &p, SDPA_FORWARD, "at least as many keys as queries");
	p.q_len = 12;
	refused(*state, "version=90900", &p, SDPA_FORWARD, "needs 9.10.2 or newer");
	p.kv_len = 1025;
	refused(*state, "version=91400", &p, SDPA_FORWARD, "gives wrong results above 1024 keys");
	p = small(ATTENTION_F16, ATTENTION_FULL);
	p.q_starts = empty;
	p.kv_starts = keys;
	refused(*state, "version=91900", &p, SDPA_FORWARD, "without tokens");
	p.q_starts = p.kv_starts = many;
	p.q_len = p.kv_len = 1 << 27;
	refused(*state, "version=91900", &p, SDPA_FORWARD, "32-bit offset");
	bad.kv_heads = 0;
	assert_int_equal(sdpa_plan_create(&(struct sdpa_plan *){NULL}, ((struct fixture *)*state)->sdpa, &bad,
					  SDPA_FORWARD, NULL),
			 STATUS_BAD_INPUT);
}

static void a_plan_is_not_run_too_early(void **state)
{
	const struct fixture *f = *state;
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_CAUSAL);
	struct error err = {0};
	struct life l;

	begin(&l, f, &p);
	assert_int_equal(sdpa_plan_create(&l.forward, f->sdpa, &p, SDPA_FORWARD, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_enqueue(l.forward, &l.operands, NULL, f->stream, NULL), STATUS_BUG);
	assert_int_equal(sdpa_plan_first(l.forward, NULL), STATUS_OK);
	l.operands.lse = 0;
	assert_int_equal(sdpa_plan_enqueue(l.forward, &l.operands, NULL, f->stream, &err), STATUS_BUG);
	assert_non_null(strstr(err.text, "without one of its operands"));
	l.operands.lse = l.lse;
	run_forward(&l);
	check_against_definition(&l, false);
	end(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refusals_keep_the_librarys_words),
		TEST(memory_that_is_not_there_is_said),
		TEST(no_library_is_said),
		TEST(what_a_version_lacks_is_named),
		TEST(a_plan_is_not_run_too_early),
	};

	return cmocka_run_group_tests_name("sdpa_refusals", tests, NULL, NULL);
}
