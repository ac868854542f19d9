/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: "name=value" lines through a field table with every type.  Accepted values must
 * survive printing and parsing. */
#include <stdlib.h>
#include <string.h>

#include "base/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const colours[] = {"red", "green", NULL};

struct all {
    bool b;
    int64_t i, size;
    double f;
    const char *s;
    int e;
    struct ew_ints list;
};

static const struct ew_field table[] = {
    {.name = "b", .type = EW_FIELD_BOOL, .offset = offsetof(struct all, b)},
    {.name = "i", .type = EW_FIELD_INT, .offset = offsetof(struct all, i), .min = -9, .max = 1e15},
    {.name = "f", .type = EW_FIELD_FLOAT, .offset = offsetof(struct all, f)},
    {.name = "s", .type = EW_FIELD_STR, .offset = offsetof(struct all, s)},
    {.name = "e", .type = EW_FIELD_ENUM, .offset = offsetof(struct all, e), .choices = colours},
    {.name = "list", .type = EW_FIELD_INTS, .offset = offsetof(struct all, list)},
    {.name = "size", .type = EW_FIELD_SIZE, .offset = offsetof(struct all, size)},
    EW_FIELD_END,
};

/* Printed, parsed and printed again, the value gives the same text. */
static void check_round_trip(const struct ew_field *f, const struct all *o)
{
    char once[2048], twice[2048];
    struct all back;
    const int n = ew_field_print(f, o, once, sizeof(once));
    if (n < 0 || (size_t)n >= sizeof(once))
        return;
    memset(&back, 0, sizeof(back));
    if (ew_field_parse(f, once, &back) != EW_OK)
        abort();
    ew_field_print(f, &back, twice, sizeof(twice));
    if (strcmp(once, twice) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1);
    if (!line)
        return 0;
    if (size)
        memcpy(line, data, size);
    line[size] = '\0';
    struct all o;
    ew_fields_default(table, &o, sizeof(o));
    if (ew_fields_parse(table, line, &o) == EW_OK)
        for (const struct ew_field *f = table; f->name; f++)
            check_round_trip(f, &o);
    ew_field_nearest(table, line);
    free(line);
    return 0;
}
