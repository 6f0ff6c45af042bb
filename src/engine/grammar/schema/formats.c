/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of the formats of JSON schema. Each allows a subset that every common checker accepts. Days of a
 * month are bounded by the month, but 29 February is left out, since years would have to be counted. */
#include "engine/grammar/schema/schema.h"

#define DAY                                                                                                  \
	"((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
#define DATE "(19|20)[0-9]{2}-" DAY
#define TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"
#define ZONE "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define WORD "[A-Za-z0-9]+(-[A-Za-z0-9]+)*"
#define HOST LABEL "(\\." LABEL "){0,7}"
#define HEX4 "[0-9A-Fa-f]{1,4}"

const char *schema_format_pattern(const char *format)
{
	static const struct {
		const char *name, *pattern;
	} formats[] = {
		{"date", DATE},
		{"time", TIME ZONE},
		{"date-time", DATE "T" TIME ZONE},
		{"duration",
		 "P([0-9]{1,6}W|([0-9]{1,6}Y([0-9]{1,6}M([0-9]{1,6}D)?)?|[0-9]{1,6}M([0-9]{1,6}D)?|"
		 "[0-9]{1,6}D)(T[0-9]{1,6}H)?|T([0-9]{1,6}H([0-9]{1,6}M([0-9]{1,6}S)?)?|"
		 "[0-9]{1,6}M([0-9]{1,6}S)?|[0-9]{1,6}S))"},
		{"uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"},
		{"email", "[A-Za-z0-9_%+-]+(\\.[A-Za-z0-9_%+-]+)*@" WORD "(\\." WORD ")+"},
		{"hostname", HOST},
		{"ipv4", BYTE "\\." BYTE "\\." BYTE "\\." BYTE},
		{"ipv6", "(" HEX4 "(:" HEX4 "){7}|(" HEX4 "(:" HEX4 "){0,2})?::(" HEX4 "(:" HEX4 "){0,3})?)"},
		{"uri",
		 "(https?|ftp)://" WORD "(\\." WORD ")*(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*"
		 "(\\?[A-Za-z0-9._~!$&'()*+,;=:@/-]*)?(#[A-Za-z0-9._~!$&'()*+,;=:@/-]*)?"},
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(format, formats[i].name))
			return formats[i].pattern;
	return NULL;
}
