/* SPDX-License-Identifier: Apache-2.0 */
/* Reads members of a request's JSON object. A wrong type or range is an error that names the field. */
#ifndef SERVE_PROTOCOL_FIELDS_H
#define SERVE_PROTOCOL_FIELDS_H
#include <jansson.h>
#include <stdint.h>
#include "serve/protocol/error.h"

enum field_kind { FIELD_BOOL, FIELD_INT, FIELD_NUMBER };

/* A field that is copied to a struct: bool, int64_t or double at `offset`. Absent or null: unchanged. */
struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	double least, most; /* inclusive; for FIELD_INT and FIELD_NUMBER */
	bool above;	    /* `least` itself is not allowed */
};

bool fields_read(const json_t *object, const struct field *fields, size_t count, void *out,
		 struct api_error *err);
/* NULL if absent or null. */
const json_t *field_value(const json_t *object, const char *name);
/* Each leaves *out as it is if the field is absent or null. Texts belong to the object. */
bool field_text(const json_t *object, const char *name, const char **out, struct api_error *err);
bool field_bool(const json_t *object, const char *name, bool *out, struct api_error *err);
/* A member of an object that is itself at `place`: errors name "place.name". */
bool field_text_in(const json_t *object, const char *place, const char *name, const char **out,
		   struct api_error *err);
bool field_bool_in(const json_t *object, const char *place, const char *name, bool *out,
		   struct api_error *err);
bool field_array(const json_t *object, const char *name, const json_t **out, size_t most,
		 struct api_error *err);
bool field_object(const json_t *object, const char *name, const json_t **out, struct api_error *err);
/* "an array", "a number", .. for messages. */
const char *field_type_name(const json_t *value);
#endif
