/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning records: filters by gate, one row per step, in memory and as CSV. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/num.h"
#include "scale/power_law.h"

#define MAX_BYTES (16 << 20)

ew_err ew_prune_rows_add(struct ew_prune_rows *r, const int32_t *counts, int gates)
{
    EW_CHECK(r->n == 0 || r->gates == gates, EW_ERR_FORMAT, "row %d has %d numbers, the first %d",
             r->n + 1, gates, r->gates);
    r->gates = gates;
    void *grown = r->counts;
    EW_TRY(ew_grow(&grown, &r->cap, (r->n + 1) * gates, sizeof(*r->counts)));
    r->counts = grown;
    memcpy(r->counts + (size_t)r->n * (size_t)gates, counts, (size_t)gates * sizeof(*counts));
    r->n++;
    return EW_OK;
}

void ew_prune_rows_fini(struct ew_prune_rows *r)
{
    free(r->counts);
    *r = (struct ew_prune_rows){0};
}

static ew_err read_row(const struct ew_csv *csv, struct ew_prune_rows *out)
{
    int32_t counts[EW_CSV_CELLS];
    for (int i = 0; i < csv->n; i++) {
        int64_t v;
        EW_CHECK(ew_num_int(csv->cells[i], &v) && v >= 0 && v < 1 << 24, EW_ERR_FORMAT,
                 "%s:%d: '%.40s' is not a number of filters", csv->name, csv->line, csv->cells[i]);
        counts[i] = (int32_t)v;
    }
    return ew_fail_in(ew_prune_rows_add(out, counts, csv->n), "%s:%d", csv->name, csv->line);
}

ew_err ew_prune_rows_read(const char *path, struct ew_prune_rows *out)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size;
    struct ew_csv csv;
    *out = (struct ew_prune_rows){0};
    EW_TRY(ew_file_read(path, MAX_BYTES, &text, &size));
    ew_csv_init(&csv, text, path);
    ew_err e = EW_OK;
    while (e == EW_OK && ew_csv_next(&csv))
        e = read_row(&csv, out);
    if (e == EW_OK)
        e = csv.err;
    if (e == EW_OK && out->n == 0)
        e = ew_fail(EW_ERR_FORMAT, "%s: has no rows", path);
    if (e != EW_OK)
        ew_prune_rows_fini(out);
    return e;
}

ew_err ew_prune_rows_write(const struct ew_prune_rows *r, const char *path)
{
    struct ew_file_out o;
    EW_TRY(ew_file_out_open(path, &o));
    for (int i = 0; i < r->n; i++)
        for (int l = 0; l < r->gates; l++)
            fprintf(o.f, "%d%c", (int)r->counts[(size_t)i * (size_t)r->gates + (size_t)l],
                    l + 1 < r->gates ? ',' : '\n');
    return ew_file_out_commit(&o);
}
