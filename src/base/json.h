/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON writer, to a file or to memory.  The output is always one complete value.
 *
 *   struct ew_json j;
 *   ew_json_init(&j, stdout);
 *   ew_json_object(&j, NULL);
 *   ew_json_int(&j, "params", 61706);
 *   ew_json_end(&j);
 *   return ew_json_finish(&j);
 *
 * Inside an object each value has a key; inside an array and at the top it is NULL.  Failures are
 * sticky and reported by finish.  One thread at a time. */
#ifndef EW_BASE_JSON_H
#define EW_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct ew_json {
    FILE *out;
    char **text;     /* memory only: result of finish */
    char *mem;       /* memory only: owned by the stream until finish */
    size_t mem_size; /* memory only */
    uint64_t arrays; /* bit d: level d is an array */
    uint64_t filled; /* bit d: level d has a member */
    int depth;
    bool compact; /* set after init: one line, for JSON lines */
    ew_err err;
};

/* Writes to `out`, which is borrowed. */
void ew_json_init(struct ew_json *j, FILE *out);

/* Writes to memory; finish sets *text, to be freed with free() (NULL on failure). */
void ew_json_init_text(struct ew_json *j, char **text);

void ew_json_object(struct ew_json *j, const char *key);
void ew_json_array(struct ew_json *j, const char *key);
void ew_json_end(struct ew_json *j); /* of the innermost object or array */

void ew_json_str(struct ew_json *j, const char *key, const char *value); /* NULL: null */
void ew_json_int(struct ew_json *j, const char *key, int64_t value);
void ew_json_num(struct ew_json *j, const char *key, double value); /* nan, inf: null */
void ew_json_bool(struct ew_json *j, const char *key, bool value);
void ew_json_null(struct ew_json *j, const char *key);

/* Ends the text with a newline and reports the first failure.  Must be called exactly once. */
ew_err ew_json_finish(struct ew_json *j);

#endif
