/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that run concurrently with the timed one. */
#include "measure/beside.h"

#include <string.h>

int ew_beside_count(const char *list)
{
    int n = list && *list ? 1 : 0;
    for (const char *p = list; p && *p; p++)
        n += *p == ',';
    return n;
}

ew_err ew_beside_open(const char *list, const struct ew_side_opts *o, struct ew_beside *out)
{
    *out = (struct ew_beside){.n = 0};
    ew_arena_init(&out->arena);
    EW_CHECK(ew_beside_count(list) <= EW_BENCH_BESIDE, EW_ERR_USAGE,
             "--beside takes at most %d networks", EW_BENCH_BESIDE);
    for (const char *p = list ? list : ""; *p;) {
        const size_t len = strcspn(p, ",");
        const char *name = ew_arena_printf(&out->arena, "%.*s", (int)len, p);
        EW_CHECK(name, EW_ERR_MEMORY, "no memory for --beside");
        EW_CHECK(len, EW_ERR_USAGE, "--beside %s: a name is missing", list);
        EW_TRY(ew_side_load(name, o, &out->sides[out->n++]));
        p += len + (p[len] == ',');
    }
    return EW_OK;
}

void ew_beside_close(struct ew_beside *b)
{
    for (int i = 0; i < b->n; i++)
        ew_side_fini(&b->sides[i]);
    ew_arena_fini(&b->arena);
    *b = (struct ew_beside){.n = 0};
}
