/* SPDX-License-Identifier: Apache-2.0 */
/* Options as text. */
#include "api/train/api_options.h"

#include <string.h>

static bool is_allowed(const char *name, const char *const *allowed)
{
    if (!allowed)
        return true;
    while (*allowed && strcmp(*allowed, name) != 0)
        allowed++;
    return *allowed != NULL;
}

/* One "name = value"; `line` is cut up. */
static ew_err take_line(const struct ew_field *table, char *line, const char *const *allowed,
                        void *object)
{
    char *equals = strchr(line, '=');
    char *name = line + strspn(line, " \t");
    if (!*name)
        return EW_OK;
    EW_CHECK(equals, EW_ERR_ARG, "'%s': an option is \"name = value\"", name);
    char *value = equals + 1 + strspn(equals + 1, " \t");
    *equals = '\0';
    name[strcspn(name, " \t")] = '\0';
    for (size_t n = strlen(value); n > 0 && strchr(" \t\r", value[n - 1]); n--)
        value[n - 1] = '\0';
    const struct ew_field *f = ew_field_find(table, name);
    EW_CHECK(f && strcmp(name, "data") != 0, EW_ERR_ARG, "%s: unknown option", name);
    EW_CHECK(is_allowed(name, allowed), EW_ERR_ARG, "%s: cannot be changed when a run is resumed",
             name);
    return ew_field_parse(f, value, object);
}

ew_err ew_api_options(const struct ew_field *table, const char *text, const char *const *allowed,
                      struct ew_arena *arena, void *object)
{
    char *own = ew_arena_strdup(arena, text ? text : ""), *save = NULL;
    EW_CHECK(own, EW_ERR_MEMORY, "no memory for options");
    for (char *l = strtok_r(own, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        EW_TRY(take_line(table, l, allowed, object));
    return EW_OK;
}
