/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/health/hook.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/process/process.h"

enum { OUTPUT_MAX = 65536 };

void hook_reason(char out[GATE_REASON], const char *line)
{
	snprintf(out, GATE_REASON, "assay health: %s", line);
	for (char *c = out; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* Appends what stands for %n, %r or %%. False: nothing does. */
static bool expand(struct text *word, char sign, const struct hook_values *values)
{
	if (sign == '%')
		text_add(word, "%");
	else if (sign == 'n')
		text_add(word, values->node);
	else if (sign == 'r')
		text_add(word, values->reason);
	else
		return false;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* Reads one word from *at, which is not a blank. */
static enum status one_word(struct text *word, const char **at, const char *option,
			    const struct hook_values *values, struct error *err)
{
	char quote = '\0';
	const char *c = *at;

	for (; *c && (quote || !is_blank(*c)); c++) {
		if (*c == quote) {
			quote = '\0';
		} else if (!quote && (*c == '\'' || *c == '"')) {
			quote = *c;
		} else if (*c == '%') {
			if (!expand(word, c[1], values))
				return error_set(
					err, STATUS_BAD_INPUT,
					"--%s: %%%.1s has no meaning: use %%n for the node, %%r for the reason, %%%% for a percent sign",
					option, c + 1);
			c++;
		} else {
			if (*c == '\\' && quote != '\'' && c[1])
				c++;
			text_add_bytes(word, c, 1);
		}
	}
	*at = c;
	if (quote)
		return error_set(err, STATUS_BAD_INPUT, "--%s: a %c is not closed", option, quote);
	return STATUS_OK;
}

enum status hook_words(struct command_words *out, const char *option, const char *command,
		       const struct hook_values *values, struct error *err)
{
	enum status st = STATUS_OK;

	*out = (struct command_words){.count = 0};
	while (!st) {
		struct text word = {0};

		while (is_blank(*command))
			command++;
		if (!*command)
			break;
		st = one_word(&word, &command, option, values, err);
		if (!st)
			command_words_add(out, text_str(&word));
		if (!st && (word.failed || out->failed))
			st = error_set(err, STATUS_BAD_INPUT, "--%s: the command is too long", option);
		text_release(&word);
	}
	if (!st && (!out->count || !*out->word[0]))
		st = error_set(err, STATUS_BAD_INPUT, "--%s: there is no command", option);
	if (st)
		command_words_release(out);
	return st;
}

enum status hook_run(const char *option, const char *command, const struct hook_values *values,
		     const volatile sig_atomic_t *stop, struct error *err)
{
	char node[HOOK_NODE + 32], reason[GATE_REASON + 32], cause[96];
	const char *env[] = {node, reason, cause, NULL};
	struct process_spec spec = {.env = env, .cpu_numa = -1, .stop = stop};
	struct command_words words;
	char *out = NULL;
	int code = 0;
	enum status st = hook_words(&words, option, command, values, err);

	if (st)
		return st;
	snprintf(node, sizeof(node), "ASSAY_HEALTH_NODE=%s", values->node);
	snprintf(reason, sizeof(reason), "ASSAY_HEALTH_REASON=%s", values->reason);
	snprintf(cause, sizeof(cause), "ASSAY_HEALTH_CAUSE=%s", cause_name(values->cause));
	spec.argv = (const char *const *)words.word;
	st = process_run(&spec, HOOK_MS, OUTPUT_MAX, &out, NULL, &code, err);
	if (!st && code)
		st = error_set(err, STATUS_VENDOR, "--%s: %.128s ended with exit code %d", option,
			       words.word[0], code);
	free(out);
	command_words_release(&words);
	return st;
}
