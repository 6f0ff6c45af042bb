/* SPDX-License-Identifier: Apache-2.0 */
/* A rank 0 by hand that dies or misbehaves, and what a real rank makes of it. */
#include "strangers_bed.h"

struct host { /* a rank 0 by hand */
	pthread_t thread;
	struct listener l;
	const char *team;
	enum { HOST_SILENT, HOST_DIES, HOST_ODD_WELCOME, HOST_ODD_SHAPE, HOST_NO_SHAPE, HOST_ODD_ANSWER, HOST_FEW } how;
};

static void *play_host(void *arg)
{
	struct host *h = arg;
	char hello[4096], rest[4096], address[RENDEZVOUS_ADDRESS], job[64], challenge[160];
	struct pollfd p = {.fd = h->l.fd[0], .events = POLLIN};
	struct channel ch;

	poll(&p, 1, 30000);
	channel_open(&ch, rendezvous_accept(&h->l, address));
	assert_true(await(&ch, WIRE_HELLO, hello));
	snprintf(challenge, sizeof(challenge), "{\"nonce\":\"00112233445566778899aabbccddeeff\",\"team\":\"%s\"}", bed_job(job));
	channel_send(&ch, WIRE_CHALLENGE, challenge, strlen(challenge), NULL);
	keys(&ch, "rank 0", "rank", hello, challenge);
	assert_true(await(&ch, WIRE_PROOF, rest));
	if (h->how == HOST_ODD_WELCOME)
		say(&ch, WIRE_WELCOME, "{\"left_ms\":-1}");
	else
		say(&ch, WIRE_WELCOME, "{\"left_ms\":10}");
	if (h->how == HOST_NO_SHAPE)
		say(&ch, WIRE_GO, "{}");
	if (h->how == HOST_ODD_SHAPE)
		say(&ch, WIRE_SHAPE, "{\"nodes\":[{\"name\":\"a\"}],\"ranks\":[]}");
	if (h->how == HOST_ODD_ANSWER || h->how == HOST_FEW) {
		static const char shape[] = "{\"nodes\":[{\"name\":\"a\",\"boot\":\"\",\"host\":\"\",\"shown\":\"a\",\"leader\":0}],"
					    "\"ranks\":[{\"node\":0},{\"node\":0}]}";

		channel_send(&ch, WIRE_SHAPE, shape, sizeof(shape) - 1, NULL);
		if (h->how == HOST_FEW) /* of two ranks */
			say(&ch, WIRE_GO, "{\"all\":[{}]}");
		else
			say(&ch, WIRE_SHARE, "x");
	}
	if (h->how == HOST_DIES)
		assert_true(await(&ch, WIRE_SHAPE, rest)); /* bytes left unread would make it a reset */
	else
		while (next(&ch, &(enum wire_kind){0}, rest))
			; /* until it has gone */
	channel_close(&ch);
	return NULL;
}

static enum status gather_on(struct actor *a)
{
	json_t *all = NULL;
	enum status st = control_gather(a->control, "the next round", json_object(), &all, LONG_MS, &a->err);

	assert_true(!st || !all);
	json_decref(all);
	return st;
}

static void test_strangers__a_rank_0_that_misbehaves(void **state)
{
	static const struct {
		int how;
		enum cause cause;
		const char *says;
	} rows[] = {
		{HOST_SILENT, CAUSE_TEAM_LOST, "lost rank 0: it has been silent"},
		{HOST_DIES, CAUSE_TEAM_LOST, "lost rank 0: it closed the connection; last: its welcome"},
		{HOST_ODD_WELCOME, CAUSE_TEAM_REFUSED, "a welcome of an unknown form"},
		{HOST_ODD_SHAPE, CAUSE_TEAM_REFUSED, "an invalid list of nodes and ranks"},
		{HOST_NO_SHAPE, CAUSE_TEAM_REFUSED, "did not send the list of nodes and ranks"},
		{HOST_ODD_ANSWER, CAUSE_TEAM_REFUSED, "sent the answer of another step"},
		{HOST_FEW, CAUSE_TEAM_REFUSED, "did not send the objects of all ranks"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct host h = {.how = rows[i].how};
		struct stage s;

		stage_set(&s, 2, rows[i].how == HOST_FEW ? gather_on : go_on);
		assert_int_equal(rendezvous_listen(&h.l, s.port, "127.0.0.1", NULL), STATUS_OK);
		s.actor[0] = s.actor[1];
		s.actor[0].o.place.rank = 1;
		s.actor[0].o.quiet_ms = rows[i].how == HOST_SILENT ? SHORT_MS : LONG_MS;
		s.count = 1;
		pthread_create(&h.thread, NULL, play_host, &h);
		stage_play(&s);
		all_fail(&s, rows[i].cause, rows[i].says, "");
		stage_clear(&s);
		pthread_join(h.thread, NULL);
		rendezvous_close(&h.l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strangers__a_rank_0_that_misbehaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
