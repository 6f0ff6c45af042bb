/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks what a client received against the stub server's truth file. It shares no code with the server.
 * usage: stub_check TRUTH REQUEST BODY        one answer: BODY is the answer's body, without HTTP's chunks
 *        stub_check --arrivals TRUTH ARRIVALS  arrivals of tokens, as stub_client writes them
 * Prints each difference. Exit code: 0 no difference, 1 some, 2 the files cannot be read.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 1 << 20 };

struct seen {
	int *differences;
	unsigned *times; /* [WORDS_MOST] how often each word came */
	long events, words, broken, errors, done, finish, last, back;
	uint64_t filler;
	bool partial, after_done;
	json_t *usage;
};

static void compare(int *differences, const char *what, long long received, long long truth)
{
	if (received == truth)
		return;
	printf("%s: received %lld, truth %lld\n", what, received, truth);
	++*differences;
}

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *bytes = NULL;
	size_t room = 0, n = 1;

	*size = 0;
	while (f && n) {
		room = room ? 2 * room : 65536;
		bytes = realloc(bytes, room + 1);
		if (!bytes)
			exit(2);
		n = fread(bytes + *size, 1, room - *size, f);
		*size += n;
		if (*size < room)
			n = 0;
	}
	if (!f || ferror(f)) {
		perror(path);
		exit(2);
	}
	fclose(f);
	bytes[*size] = '\0';
	return bytes;
}

/* The line of the truth file with this request; NULL: none. */
static json_t *find_truth(const char *path, long long request)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	json_t *found = NULL;

	if (!f) {
		perror(path);
		exit(2);
	}
	while (!found && getline(&line, &room, f) > 0) {
		json_t *one = json_loads(line, 0, NULL);
		const json_t *number = json_object_get(one, "request");

		if (!one) {
			fprintf(stderr, "%s: a line is not JSON\n", path);
			exit(2);
		}
		if (number && json_integer_value(number) == request)
			found = json_incref(one);
		json_decref(one);
	}
	free(line);
	fclose(f);
	return found;
}

static long long number_of(const json_t *truth, const char *name)
{
	const json_t *v = json_object_get(truth, name);

	if (json_is_boolean(v))
		return json_is_true(v);
	return json_integer_value(v);
}

static void see_word(struct seen *s, const char *word, const char *letter)
{
	size_t size = strlen(letter);
	char *end;
	long n;

	if (*word == 'x' && strspn(word, "x") == strlen(word)) {
		s->filler += strlen(word);
		s->words++;
		s->times[1]++;
		return;
	}
	n = strncmp(word, letter, size) ? 0 : strtol(word + size, &end, 10);
	if (n < 1 || n >= WORDS_MOST || *end) {
		printf("unexpected word %.40s\n", word);
		++*s->differences;
		return;
	}
	s->words++;
	s->times[n]++;
	if (n < s->last)
		s->back++;
	s->last = n;
}

/* An event is one or more tokens: all but the first of an answer begin with a blank. */
static void see_text(struct seen *s, const char *text, const char *letter)
{
	char *copy = strdup(text), *at = copy, *next;

	if (!copy)
		exit(2);
	if (s->words && *at != ' ') {
		printf("no blank before %.40s\n", at);
		++*s->differences;
	}
	while (at && *at) {
		if (*at == ' ')
			at++;
		next = strchr(at, ' ');
		if (next)
			*next = '\0';
		see_word(s, at, letter);
		at = next;
		if (at)
			*at = ' ';
	}
	free(copy);
}

static void see_usage(struct seen *s, const json_t *root)
{
	json_t *usage = json_object_get(root, "usage");

	if (!json_is_object(usage))
		return;
	json_decref(s->usage);
	s->usage = json_incref(usage);
}

static void see_object(struct seen *s, const json_t *root, const char *letter)
{
	const json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
	const json_t *message = json_object_get(choice, "delta"), *text;

	if (json_object_get(root, "error"))
		s->errors++;
	if (!message)
		message = json_object_get(choice, "message");
	text = message ? json_object_get(message, "content") : json_object_get(choice, "text");
	if (json_string_length(text)) {
		s->events++;
		see_text(s, json_string_value(text), letter);
	}
	s->finish += json_is_string(json_object_get(choice, "finish_reason"));
	see_usage(s, root);
}

static void see_event(struct seen *s, const char *event, size_t size, const char *letter)
{
	json_t *root;

	s->after_done |= s->done > 0;
	if (size < 6 || strncmp(event, "data: ", 6)) {
		printf("unexpected event %.*s\n", (int)(size < 60 ? size : 60), event);
		++*s->differences;
		return;
	}
	event += 6;
	size -= 6;
	if (size == 6 && !strncmp(event, "[DONE]", 6)) {
		s->done++;
		return;
	}
	root = json_loadb(event, size, 0, NULL);
	if (root)
		see_object(s, root, letter);
	else
		s->broken++;
	json_decref(root);
}

static void see_stream(struct seen *s, const char *body, size_t size, const char *letter)
{
	while (size) {
		const char *end = memmem(body, size, "\n\n", 2);

		if (!end) {
			s->partial = true;
			return;
		}
		see_event(s, body, (size_t)(end - body), letter);
		size -= (size_t)(end + 2 - body);
		body = end + 2;
	}
}

static void see_whole(struct seen *s, const char *body, size_t size, const char *letter)
{
	json_t *root = json_loadb(body, size, 0, NULL);

	if (root)
		see_object(s, root, letter);
	else
		s->broken++;
	json_decref(root);
}

/* Tokens with a send time came, in order; those without did not, nor did any after the last one. */
static void compare_tokens(const struct seen *s, const json_t *truth)
{
	const json_t *times = json_object_get(truth, "token_ns"), *at;
	long long before = number_of(truth, "received_ns"), repeated = 0, beyond = 0;
	size_t i;

	json_array_foreach(times, i, at)
	{
		bool sent = json_is_integer(at);

		compare(s->differences, "a token's presence", s->times[i + 1] > 0, sent);
		repeated += s->times[i + 1] > 1;
		if (sent && json_integer_value(at) < before)
			compare(s->differences, "a send time's order", json_integer_value(at), before);
		if (sent)
			before = json_integer_value(at);
	}
	for (i = json_array_size(times); i < WORDS_MOST - 1; i++)
		beyond += s->times[i + 1];
	compare(s->differences, "tokens beyond those in the truth", beyond, 0);
	compare(s->differences, "tokens sent twice", repeated, number_of(truth, "duplicated"));
	compare(s->differences, "tokens out of order", s->back, 0);
	compare(s->differences, "tokens", s->words,
		number_of(truth, "sent") + number_of(truth, "duplicated"));
}

static void compare_due(const struct seen *s, const json_t *truth)
{
	const json_t *times = json_object_get(truth, "token_ns");
	size_t count = json_array_size(times);
	long long last = json_integer_value(json_array_get(times, count ? count - 1 : 0));

	if (!count)
		return;
	if (last && last < number_of(truth, "last_due_ns"))
		compare(s->differences, "the last token came before it was due", last,
			number_of(truth, "last_due_ns"));
	if (number_of(truth, "first_due_ns") < number_of(truth, "received_ns"))
		compare(s->differences, "the first token was due before the request", 0, 1);
}

static void compare_usage(const struct seen *s, const json_t *truth)
{
	const json_t *usage = json_object_get(truth, "usage");
	const json_t *details = json_object_get(s->usage, "prompt_tokens_details");

	compare(s->differences, "usage present", s->usage != NULL, json_is_object(usage));
	if (!s->usage || !json_is_object(usage))
		return;
	compare(s->differences, "prompt_tokens", number_of(s->usage, "prompt_tokens"),
		number_of(usage, "prompt_tokens"));
	compare(s->differences, "completion_tokens", number_of(s->usage, "completion_tokens"),
		number_of(usage, "completion_tokens"));
	compare(s->differences, "cached_tokens", number_of(details, "cached_tokens"),
		number_of(usage, "cached_tokens"));
	compare(s->differences, "total_tokens", number_of(s->usage, "total_tokens"),
		number_of(usage, "prompt_tokens") + number_of(usage, "completion_tokens"));
}

static void compare_answer(const struct seen *s, const json_t *truth)
{
	const char *end = json_string_value(json_object_get(truth, "end"));
	const char *fault = json_string_value(json_object_get(truth, "fault"));
	bool stream = number_of(truth, "stream"), cut = !strcmp(end, "closed") || !strcmp(end, "reset");

	compare_tokens(s, truth);
	compare_due(s, truth);
	compare_usage(s, truth);
	if (stream)
		compare(s->differences, "events with text", s->events, number_of(truth, "events"));
	compare(s->differences, "finish_reason", s->finish, number_of(truth, "finish"));
	compare(s->differences, "[DONE]", s->done, number_of(truth, "done"));
	compare(s->differences, "broken JSON", s->broken, !strcmp(fault, "bad_json") || (cut && !stream));
	compare(s->differences, "error events", s->errors, !strcmp(end, "error_event"));
	compare(s->differences, "an event that does not end", s->partial, !strcmp(end, "closed") && stream);
	compare(s->differences, "events after [DONE]", s->after_done, 0);
	compare(s->differences, "bytes of filler", (long long)s->filler, number_of(truth, "fill_bytes"));
}

static void check_answer(int *differences, const char *truth_path, const char *request, const char *body_path)
{
	json_t *truth = find_truth(truth_path, strtoll(request, NULL, 10));
	const char *letter = json_string_value(json_object_get(truth, "letter"));
	struct seen s = {.differences = differences, .times = calloc(WORDS_MOST, sizeof(*s.times))};
	size_t size;
	char *body = read_file(body_path, &size);

	if (!truth || !letter || !s.times) {
		printf("the truth file has no request %s\n", request);
		exit(1);
	}
	if (number_of(truth, "stream"))
		see_stream(&s, body, size, letter);
	else
		see_whole(&s, body, size, letter);
	compare_answer(&s, truth);
	json_decref(s.usage);
	json_decref(truth);
	free(s.times);
	free(body);
}

/* No token arrived before it was sent. */
static void check_arrival(int *differences, const json_t *arrived, const json_t *truth, double *delays_us)
{
	const json_t *sent = json_object_get(truth, "token_ns"), *got = json_object_get(arrived, "token_ns"),
		     *at;
	size_t i;

	compare(differences, "tokens that arrived", (long long)json_array_size(got),
		(long long)json_array_size(sent));
	json_array_foreach(got, i, at)
	{
		long long delay = json_integer_value(at) - json_integer_value(json_array_get(sent, i));

		if (delay < 0)
			compare(differences, "a token arrived before it was sent, by ns", delay, 0);
		*delays_us += (double)delay * 1e-3;
	}
}

static void check_arrivals(int *differences, const char *truth_path, const char *arrivals_path)
{
	FILE *f = fopen(arrivals_path, "r");
	char *line = NULL;
	size_t room = 0, tokens = 0;
	double delays_us = 0;
	json_t *arrived, *truth;

	if (!f) {
		perror(arrivals_path);
		exit(2);
	}
	while (getline(&line, &room, f) > 0) {
		arrived = json_loads(line, 0, NULL);
		truth = find_truth(truth_path, number_of(arrived, "request"));
		compare(differences, "the request in the truth file", truth != NULL, 1);
		check_arrival(differences, arrived, truth, &delays_us);
		tokens += json_array_size(json_object_get(arrived, "token_ns"));
		json_decref(arrived);
		json_decref(truth);
	}
	compare(differences, "some tokens arrived", tokens > 0, 1);
	printf("%zu tokens, %.1f us on the way on average\n", tokens,
	       tokens ? delays_us / (double)tokens : 0);
	free(line);
	fclose(f);
}

int main(int argc, char **argv)
{
	int differences = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: stub_check TRUTH REQUEST BODY | --arrivals TRUTH ARRIVALS\n");
		return 2;
	}
	if (!strcmp(argv[1], "--arrivals"))
		check_arrivals(&differences, argv[2], argv[3]);
	else
		check_answer(&differences, argv[1], argv[2], argv[3]);
	return differences > 0;
}
