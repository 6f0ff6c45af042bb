/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that gave no figure: skipped, lost, cut off, refused. */
#include "judge/case/verdict.h"

static const char *why(const char *text, const char *otherwise)
{
	return text && *text ? text : otherwise;
}

/* Causes that decide the verdict by themselves, whichever case met them. */
static bool by_cause(struct judgement *out, enum cause cause, const char *text)
{
	switch (cause) {
	case CAUSE_GPU_MISSING:
	case CAUSE_GPU_SHARED:
	case CAUSE_HBM_DATA:
	case CAUSE_TEMPERATURE_STOP:
	case CAUSE_POWER_BRAKE:
		finding(out, VERDICT_FAIL, cause, "%s", why(text, cause_text(cause)));
		return true;
	case CAUSE_GPU_LOST:
		finding(out, VERDICT_ERROR, cause, "%s", why(text, cause_text(cause)));
		return true;
	default:
		return false;
	}
}

/* Verdict by the status that a call ended with. It serves skips of the plan and cases that ran. */
static void by_status(struct judgement *out, enum status status, enum cause cause, const char *text)
{
	switch (status) {
	case STATUS_OK:
		return;
	case STATUS_UNSUPPORTED:
		finding(out, VERDICT_SKIP, cause ? cause : CAUSE_UNSUPPORTED, "%s",
			why(text, status_text(status)));
		return;
	case STATUS_UNAVAILABLE:
		finding(out, VERDICT_UNKNOWN, cause ? cause : CAUSE_LIBRARY_MISSING, "%s",
			why(text, status_text(status)));
		return;
	case STATUS_NO_RESOURCE:
		finding(out, VERDICT_ERROR, cause ? cause : CAUSE_NO_MEMORY, "%s",
			why(text, status_text(status)));
		return;
	case STATUS_BAD_INPUT:
		finding(out, VERDICT_ERROR, cause ? cause : CAUSE_BAD_INPUT, "%s",
			why(text, status_text(status)));
		return;
	case STATUS_VENDOR:
		finding(out, VERDICT_ERROR, cause ? cause : CAUSE_VENDOR_CALL, "%s",
			why(text, status_text(status)));
		return;
	case STATUS_LOST:
		finding(out, VERDICT_ERROR, cause ? cause : CAUSE_GPU_LOST, "%s",
			why(text, status_text(status)));
		return;
	case STATUS_MISMATCH:
		finding(out, VERDICT_FAIL, cause ? cause : CAUSE_WRONG_RESULT, "%s",
			why(text, status_text(status)));
		return;
	case STATUS_CANCELLED:
		finding(out, VERDICT_UNKNOWN, cause ? cause : CAUSE_INTERRUPTED, "%s",
			why(text, status_text(status)));
		return;
	case STATUS_BUG:
	case STATUS_COUNT:
		break;
	}
	finding(out, VERDICT_ERROR, CAUSE_DEFECT, "%s", why(text, status_text(STATUS_BUG)));
}

static void skipped(struct judgement *out, const struct record_case *c)
{
	enum cause cause = c->skip_cause;

	if (by_cause(out, cause, c->skip_reason))
		return;
	if (cause == CAUSE_NOT_ASKED || cause == CAUSE_RECORDED || cause == CAUSE_NO_HARDWARE)
		finding(out, VERDICT_SKIP, cause, "%s", why(c->skip_reason, cause_text(cause)));
	else if (c->skip_status == STATUS_OK)
		finding(out, VERDICT_SKIP, cause ? cause : CAUSE_NOT_ASKED, "%s",
			why(c->skip_reason, "skipped"));
	else
		by_status(out, c->skip_status, cause, c->skip_reason);
}

bool verdict_ending(struct judgement *out, const struct subject *s)
{
	const struct record_case *c = s->c;
	enum cause cause = c->cause;

	if (c->skipped) {
		skipped(out, c);
		return true;
	}
	switch (c->ending) {
	case ENDING_DONE:
		if (c->status == STATUS_OK)
			return false;
		if (!by_cause(out, cause, c->text) && c->status != STATUS_MISMATCH)
			by_status(out, c->status, cause, c->text);
		/* Wrong data is judged later, by the place and count in the record. */
		return c->status != STATUS_MISMATCH;
	case ENDING_CRASHED:
		finding(out, VERDICT_ERROR, cause ? cause : CAUSE_CRASHED, "%s",
			why(c->text, cause_text(CAUSE_CRASHED)));
		return true;
	case ENDING_TIMED_OUT:
		finding(out, VERDICT_ERROR, cause ? cause : CAUSE_TIMED_OUT, "%s",
			why(c->text, cause_text(CAUSE_TIMED_OUT)));
		return true;
	case ENDING_STUCK:
		finding(out, VERDICT_ERROR, CAUSE_STUCK, "%s; assay no longer uses its device",
			why(c->text, cause_text(CAUSE_STUCK)));
		return true;
	case ENDING_CANCELLED:
		if (!by_cause(out, cause, c->text))
			finding(out, VERDICT_UNKNOWN, cause ? cause : CAUSE_INTERRUPTED, "%s",
				why(c->text, cause_text(cause ? cause : CAUSE_INTERRUPTED)));
		return true;
	case ENDING_NOT_RUN:
		if (!by_cause(out, cause, c->text))
			finding(out, VERDICT_UNKNOWN, cause ? cause : CAUSE_INTERRUPTED, "%s",
				why(c->text, "the run ended before this case"));
		return true;
	case ENDING_CUT:
	case ENDING_COUNT:
		break;
	}
	finding(out, VERDICT_UNKNOWN, CAUSE_CUT, "%s", cause_text(CAUSE_CUT));
	return true;
}
