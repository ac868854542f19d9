/* SPDX-License-Identifier: Apache-2.0 */
/* Field tables: one row per member of a plain struct.  The same row gives an operator's attribute
 * its ONNX mapping, a command's option its flag, help, man-page entry and completion, and a member
 * of a record its SQL column, CSV and JSON name and axis. */
#ifndef EW_BASE_FIELD_H
#define EW_BASE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define EW_MAX_INTS 16

/* A short list of integers: dimensions, strides, axes. */
struct ew_ints {
    int32_t n;
    int64_t v[EW_MAX_INTS];
};

enum ew_field_type {
    EW_FIELD_BOOL,  /* bool */
    EW_FIELD_INT,   /* int64_t */
    EW_FIELD_FLOAT, /* double */
    EW_FIELD_STR,   /* const char *, NULL when unset */
    EW_FIELD_ENUM,  /* int, index into `choices` */
    EW_FIELD_INTS,  /* struct ew_ints */
    EW_FIELD_SIZE   /* int64_t bytes; text may end in K, M, G (powers of 1024) */
};

/* Preferred direction of a measured quantity. */
enum ew_better { EW_BETTER_NEITHER, EW_BETTER_LOWER, EW_BETTER_HIGHER };

#define EW_INT_ABSENT INT64_MIN /* absent INT and SIZE; an absent ENUM is -1 */

struct ew_field {
    const char *name; /* flag, key and attribute name: never changes */
    const char *also; /* its former name, which is still accepted; NULL: none */
    enum ew_field_type type;
    size_t offset;   /* in the described struct */
    const char *def; /* default as text; NULL: zero, false, empty or unset */
    double min, max; /* for INT, FLOAT, SIZE and members of INTS; no check when min == max */
    const char *const *choices; /* for ENUM, NULL-terminated */
    const char *metavar;        /* shown in help: "FILE", "HxWxC" */
    const char *verbs;          /* subcommands with this option: "fit, generate"; NULL: all */
    const char *help;
    char letter;           /* short flag, or 0 */
    const char *unit;      /* of a record: "s", "J"; NULL: none */
    enum ew_better better; /* of a record */
};

#define EW_FIELD_END                                                                               \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Zeroes `object` of `size` bytes and writes every default of the table. */
void ew_fields_default(const struct ew_field *table, void *object, size_t size);

/* Parses `text` into the field of `object`; the error names the field, the text and the allowed
 * values.  STR fields borrow `text`. */
ew_err ew_field_parse(const struct ew_field *f, const char *text, void *object);

/* Parses "stride=2x2 groups=4".  `line` is modified and borrowed by STR fields; fields that it does
 * not name are unchanged. */
ew_err ew_fields_parse(const struct ew_field *table, char *line, void *object);

/* The row called `name`, now or formerly, or NULL. */
const struct ew_field *ew_field_find(const struct ew_field *table, const char *name);

/* Formats the field's value so that ew_field_parse reads it back; returns the required length. */
int ew_field_print(const struct ew_field *f, const void *object, char *buf, size_t size);

/* Makes every field of `object` absent: nan, NULL, EW_INT_ABSENT, -1; false and empty for BOOL and
 * INTS, which have no such value. */
void ew_fields_clear(const struct ew_field *table, void *object, size_t size);

/* True if the field is absent, which differs from zero; never for BOOL and INTS. */
bool ew_field_absent(const struct ew_field *f, const void *object);

/* The name in the table closest to `name`, within two edits or a third of its length; NULL: none.
 */
const char *ew_field_nearest(const struct ew_field *table, const char *name);

/* Levenshtein distance. */
int ew_edit_distance(const char *a, const char *b);

#endif
