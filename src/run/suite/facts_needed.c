/* SPDX-License-Identifier: Apache-2.0 */
#include "run/suite/facts_needed.h"
#include "core/text/text.h"
#include "run/probe.h"
#include "run/suite/target.h"

static bool add_lib(struct facts_needed *s, const char *name, size_t size)
{
	for (size_t i = 0; i < s->count; i++)
		if (strlen(s->name[i]) == size && !memcmp(s->name[i], name, size))
			return true;
	if (s->count == FACTS_NEEDED_LIBS || size >= FACTS_NEEDED_NAME)
		return false;
	memcpy(s->name[s->count], name, size);
	s->lib[s->count] = s->name[s->count];
	s->count++;
	return true;
}

/* Adds "cublaslt cuda" and the like; false: no room. */
static bool add_libs(struct facts_needed *s, const char *libs)
{
	while (libs && *libs) {
		size_t size = strcspn(libs, " ");

		if (size && !add_lib(s, libs, size))
			return false;
		libs += size + strspn(libs + size, " ");
	}
	return true;
}

static bool names_engine(const struct suite_case *line, const char *name)
{
	for (size_t i = 0; i < line->engines.count; i++)
		if (!strcmp(line->engines.word[i], name) || !strcmp(line->engines.word[i], "all"))
			return true;
	return !line->engines.count;
}

static bool on_cpu(const struct suite_case *line, const struct probe *p)
{
	for (size_t i = 0; i < line->targets.count; i++)
		if (strncmp(line->targets.word[i], "cpu", 3))
			return false;
	return line->targets.count ||
	       !strcmp(target_default(p, line->engines.word, line->engines.count), "cpu");
}

/* False: the suite needs all facts. */
static bool add_line(struct facts_needed *s, const struct suite_case *line,
		     const struct probe *const *registry)
{
	const struct probe *p = probe_by_name(registry, line->probe);
	bool cpu;

	if (!p || p->kind == PROBE_READING)
		return false;
	cpu = on_cpu(line, p);
	if (!cpu)
		s->machine.up_to = LAYER_CUDA;
	for (const struct engine *const *e = p->engines; *e; e++)
		if ((!cpu || ((*e)->targets & TARGET_CPU)) && names_engine(line, (*e)->name) &&
		    (!add_libs(s, (*e)->libs) || !add_libs(s, (*e)->others)))
			return false;
	return true;
}

void facts_needed_of(struct facts_needed *s, const struct suite *suite, const struct probe *const *registry)
{
	*s = (struct facts_needed){.machine = {.up_to = LAYER_HOST, .libs = s->lib}};
	for (size_t i = 0; i < suite->count; i++)
		for (size_t k = 0; k < suite->steps[i].count; k++)
			if (!add_line(s, &suite->steps[i].cases[k], registry)) {
				s->machine = (struct machine_scope){.up_to = LAYER_SOFTWARE};
				return;
			}
}
