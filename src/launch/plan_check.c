/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a plan before any of it is printed, submitted or started. */
#include "launch/script.h"

#include <ctype.h>
#include "team/launcher/place.h"

enum { ENV_MAX = 32, WORDS_OF_ASSAY_MAX = 512, LINE_MOST = 1000, RANKS_MAX = 1024, WHOLE_MAX = 1 << 16 };

static bool printable(const char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			return false;
	return true;
}

static enum status check_text(const char *option, const char *text, struct error *err)
{
	if (!text || (*text && printable(text)))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s %s", option,
			 *text ? "contains control characters" : "is empty");
}

/* A line of a batch script must be short, because Slurm cuts long lines. */
static enum status check_line(const char *option, const char *text, struct error *err)
{
	if (!text || strlen(text) <= LINE_MOST)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s has %zu bytes; the limit is %d", option, strlen(text),
			 LINE_MOST);
}

/* A value of `#SBATCH --option=` must be one word. */
static enum status check_word(const char *option, const char *text, struct error *err)
{
	enum status st = check_text(option, text, err);

	if (!st)
		st = check_line(option, text, err);
	if (!st && text && strpbrk(text, " #'\"\\"))
		st = error_set(err, STATUS_BAD_INPUT, "%s \"%.80s\" is not one word", option, text);
	return st;
}

static enum status check_env(const char *word, struct error *err)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	if (!n || word[n] != '=' || isdigit((unsigned char)*word))
		return error_set(err, STATUS_BAD_INPUT, "--env \"%.80s\" is not written as NAME=value", word);
	if (!strncmp(word, "ASSAY_", 6) && strncmp(word, "ASSAY_LIB_", 10))
		return error_set(err, STATUS_BAD_INPUT, "--env %.*s: assay launch sets this variable itself",
				 (int)n, word);
	return check_text("--env", word, err);
}

/* Skips one to `most` digits. */
static bool digits(const char **at, size_t most)
{
	size_t n = strspn(*at, "0123456789");

	*at += n;
	return n && n <= most;
}

/* M, M:S, H:M:S, D-H, D-H:M, D-H:M:S */
static enum status check_time(const char *time, struct error *err)
{
	const char *at = time;
	bool right = digits(&at, 6), days = right && *at == '-';
	unsigned colons = 0;

	if (days) {
		at++;
		right = digits(&at, 6);
	}
	while (right && *at == ':' && colons++ < 2) {
		at++;
		right = digits(&at, 2);
	}
	if (right && !*at)
		return STATUS_OK;
	return error_set(
		err, STATUS_BAD_INPUT,
		"--time \"%.40s\" is not a time that Slurm accepts: minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S",
		time);
}

static enum status check_slurm(const struct launch_plan *p, struct error *err)
{
	enum status st = p->time ? check_time(p->time, err) : STATUS_OK;

	if (!st)
		st = check_word("--partition", p->partition, err);
	if (!st)
		st = check_word("--account", p->account, err);
	if (!st)
		st = check_text("--sbatch", p->sbatch, err);
	if (!st)
		st = check_line("--sbatch", p->sbatch, err);
	return st;
}

static enum status check_shape(const struct launch_plan *p, struct error *err)
{
	if (!p->ranks || p->ranks > RANKS_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%u ranks per node; use 1 to %d", p->ranks,
				 RANKS_MAX);
	if (p->hosts.count && p->hosts.count != p->nodes)
		return error_set(err, STATUS_BAD_INPUT, "--nodes is %u, but there are %zu hosts", p->nodes,
				 p->hosts.count);
	if ((size_t)p->nodes * p->ranks > WHOLE_MAX)
		return error_set(err, STATUS_BAD_INPUT,
				 "%u nodes with %u ranks each; the limit is %d ranks in all", p->nodes,
				 p->ranks, WHOLE_MAX);
	return STATUS_OK;
}

enum status launch_check(const struct launch_plan *p, struct error *err)
{
	enum status st = check_shape(p, err);

	if (!st)
		st = check_text("--master", p->master, err);
	if (!st && p->master) /* checked now, so that a job does not fail after hours in the queue */
		st = team_place_check_master(p->master, err);
	if (!st)
		st = check_text("--ssh-config", p->ssh_config, err);
	if (!st)
		st = check_text("the working folder's name", p->folder, err);
	if (!st && p->env.count > ENV_MAX)
		st = error_set(err, STATUS_BAD_INPUT, "--env has %zu variables; the limit is %d",
			       p->env.count, ENV_MAX);
	for (size_t i = 0; i < p->env.count && !st; i++)
		st = check_env(p->env.word[i], err);
	if (!st && p->words.count > WORDS_OF_ASSAY_MAX)
		st = error_set(err, STATUS_BAD_INPUT, "%zu words after --; the limit is %d", p->words.count,
			       WORDS_OF_ASSAY_MAX);
	for (size_t i = 0; i < p->words.count && !st; i++)
		if (!printable(p->words.word[i]))
			st = error_set(err, STATUS_BAD_INPUT, "word %zu after -- contains control characters",
				       i + 1);
	return st ? st : check_slurm(p, err);
}
