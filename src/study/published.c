/* SPDX-License-Identifier: Apache-2.0 */
/* What others have published, row by row. */
#include "study/published.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "base/num.h"

#define EW_EMBED_LIST "published_embed.h"
#include "base/embed_table.h"

#define MOST_VALUES 4096

const char *ew_published_value_get(const struct ew_published_value *f, const char *column)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->names[i], column) == 0)
            return f->cells[i];
    return "";
}

/* ---- Reading --------------------------------------------------------------------------------- */

static ew_err copy_cells(struct ew_arena *a, const struct ew_csv *csv, const char *const **out)
{
    const char **cells = ew_arena_array(a, (size_t)csv->n + 1, sizeof(*cells));
    for (int i = 0; cells && i < csv->n; i++)
        cells[i] = csv->cells[i];
    *out = cells;
    EW_CHECK(cells, EW_ERR_MEMORY, "no memory for published values");
    return EW_OK;
}

/* The columns of figure 9's file, which has a row for each mode: each cell becomes one value. */
static const struct {
    const char *column, *metric, *unit, *where;
} wide[] = {{"stall_s", "stall", "s/epoch", "Fig 9a"},
            {"compute_s", "compute", "s/epoch", "Fig 9a"},
            {"epoch_s", "e2e", "s/epoch", "Fig 9a"},
            {"energy_mWh", "energy", "mWh/epoch", "Fig 9b"},
            {"base_energy_mWh", "base_energy", "mWh/epoch", "Fig 9b"},
            {"power_W", "power_mean", "W", "Fig 9b"},
            {"base_power_W", "base_load", "W", "Fig 9b"}};

static ew_err add_wide(struct ew_arena *a, const struct ew_published_value *row,
                       struct ew_published_list *out)
{
    static const char *const names[] = {"device", "power_mode", "network", "metric",
                                        "value",  "unit",       "where",   "kind"};
    static const char *const nets[][2] = {
        {"lenet", "lenet5"}, {"resnet", "resnet18"}, {"mobnet", "mobilenet_v3_large"}};
    const char *network = ew_published_value_get(row, "network");
    for (size_t i = 0; i < EW_COUNT(nets); i++)
        if (strcmp(nets[i][0], network) == 0)
            network = nets[i][1];
    for (size_t i = 0; i < EW_COUNT(wide); i++) {
        const char **cells = ew_arena_array(a, EW_COUNT(names), sizeof(*cells));
        EW_CHECK(cells && out->n < MOST_VALUES, EW_ERR_MEMORY, "no memory for published values");
        cells[0] = "AGX Xavier";
        cells[1] = ew_published_value_get(row, "mode");
        cells[2] = network;
        cells[3] = wide[i].metric;
        cells[4] = ew_published_value_get(row, wide[i].column);
        cells[5] = wide[i].unit;
        cells[6] = wide[i].where;
        cells[7] = ew_published_value_get(row, "kind");
        out->v[out->n++] = (struct ew_published_value){
            .file = row->file, .names = names, .cells = cells, .n = EW_COUNT(names)};
    }
    return EW_OK;
}

static ew_err read_file(struct ew_arena *a, int k, struct ew_published_list *out)
{
    char *text = ew_arena_alloc(a, embedded[k].size), *file = ew_arena_strdup(a, embedded[k].file);
    EW_CHECK(text && file, EW_ERR_MEMORY, "no memory for published values");
    memcpy(text, embedded[k].text, embedded[k].size);
    file[strcspn(file, ".")] = '\0';
    struct ew_csv csv;
    struct ew_published_value row = {.file = file};
    ew_csv_init(&csv, text, embedded[k].file);
    if (!ew_csv_next(&csv))
        return csv.err;
    EW_TRY(copy_cells(a, &csv, &row.names));
    row.n = csv.n;
    const bool is_wide = ew_csv_column(&csv, "metric") < 0;
    while (ew_csv_next(&csv)) {
        EW_CHECK(csv.n == row.n, EW_ERR_FORMAT, "%s:%d: %d cells, not %d", file, csv.line, csv.n,
                 row.n);
        EW_TRY(copy_cells(a, &csv, &row.cells));
        if (is_wide) {
            EW_TRY(add_wide(a, &row, out));
            continue;
        }
        EW_CHECK(out->n < MOST_VALUES, EW_ERR_LIMIT, "more than %d published values", MOST_VALUES);
        out->v[out->n++] = row;
    }
    return csv.err;
}

/* ---- Errata ------------------------------------------------------------------- */

static bool is_errata(const struct ew_published_value *f)
{
    return strcmp(f->file, "errata") == 0;
}

/* Whether the erratum applies to the value; its empty cells match anything. */
static bool is_meant(const struct ew_published_value *erratum, const struct ew_published_value *f)
{
    static const char *const columns[] = {"where", "network", "dataset", "metric", "value"};
    if (strcmp(ew_published_value_get(erratum, "file"), f->file) != 0)
        return false;
    for (size_t i = 0; i < EW_COUNT(columns); i++) {
        const char *want = ew_published_value_get(erratum, columns[i]);
        if (*want && strcmp(want, ew_published_value_get(f, columns[i])) != 0)
            return false;
    }
    return true;
}

ew_err ew_published_list_load(struct ew_arena *a, struct ew_published_list *out)
{
    struct ew_published_list all = {.v = ew_arena_array(a, MOST_VALUES, sizeof(*all.v))};
    EW_CHECK(all.v, EW_ERR_MEMORY, "no memory for published values");
    for (size_t k = 0; k < EW_COUNT(embedded); k++)
        EW_TRY(read_file(a, (int)k, &all));
    *out = (struct ew_published_list){.v = all.v};
    for (int i = 0; i < all.n; i++)
        for (int k = 0; is_errata(&all.v[i]) && k < all.n; k++)
            if (is_meant(&all.v[i], &all.v[k]))
                all.v[k].wrong = ew_published_value_get(&all.v[i], "says");
    for (int i = 0; i < all.n; i++)
        if (!is_errata(&all.v[i]))
            out->v[out->n++] = all.v[i];
    return EW_OK;
}

/* ---- Facts as published rows ----------------------------------------------------------------- */

static bool fits_one(const char *value, const char *patterns)
{
    char one[128];
    for (const char *p = patterns;; p++) {
        const size_t n = strcspn(p, ",");
        snprintf(one, sizeof(one), "%.*s", (int)n, p);
        if (fnmatch(one, value, 0) == 0)
            return true;
        p += n;
        if (!*p)
            return false;
    }
}

/* Whether the value matches all words "column=PATTERN,PATTERN": one of the shell patterns of
 * each. */
static bool fits_words(const struct ew_published_value *f, const char *const *words, int n)
{
    for (int i = 0; i < n; i++) {
        char column[64];
        const char *equals = strchr(words[i], '=');
        if (!equals)
            return false;
        snprintf(column, sizeof(column), "%.*s", (int)(equals - words[i]), words[i]);
        if (!fits_one(ew_published_value_get(f, column), equals + 1))
            return false;
    }
    return true;
}

int ew_published_kind_rank(const char *kind)
{
    static const char *const kinds[] = {"stated", "read from figure 9", "approx", "derived"};
    for (size_t i = 0; i < EW_COUNT(kinds); i++)
        if (kind && strcmp(kinds[i], kind) == 0)
            return (int)(EW_COUNT(kinds) - i);
    return 0;
}

/* Translates a published name into ours. */
static const char *ours(const struct ew_published_value *f, const struct ew_published_rule *rule,
                        const char *column)
{
    const char *value = ew_published_value_get(f, column);
    for (int i = 0; i < rule->n_renamed; i++)
        if (strcmp(rule->renamed[i].column, column) == 0 &&
            strcmp(rule->renamed[i].theirs, value) == 0)
            return rule->renamed[i].ours;
    return value;
}

/* "workers": workers=4, where 4 stands in that column; "label={dataset}-{network}": filled in. */
static const char *setting(struct ew_arena *a, const struct ew_published_value *f,
                           const struct ew_published_rule *rule, const char *word)
{
    const char *out = "";
    if (!strpbrk(word, "={"))
        return ew_arena_printf(a, "%s=%s", word, ours(f, rule, word));
    for (const char *p = word; out && *p;) {
        const size_t plain = strcspn(p, "{");
        out = ew_arena_printf(a, "%s%.*s", out, (int)plain, p);
        p += plain;
        const char *end = *p ? strchr(p, '}') : NULL;
        if (!end)
            return *p ? NULL : out;
        const char *column = ew_arena_printf(a, "%.*s", (int)(end - p - 1), p + 1);
        out = column && out ? ew_arena_printf(a, "%s%s", out, ours(f, rule, column)) : NULL;
        p = end + 1;
    }
    return out;
}

static double factor(const char *from, const char *to)
{
    static const struct {
        const char *from, *to;
        double factor;
    } known[] = {{"s", "ms", 1e3},        {"s/epoch", "s", 1}, {"Wh/epoch", "J", 3600},
                 {"mWh/epoch", "J", 3.6}, {"J/epoch", "J", 1}, {"MFLOPs", "FLOPs", 1e6},
                 {"%", "share", 0.01},    {"x", "", 1},        {"GHz", "MHz", 1e3}};
    for (size_t i = 0; i < EW_COUNT(known); i++)
        if (strcmp(known[i].from, from) == 0 && strcmp(known[i].to, to) == 0)
            return known[i].factor;
    return 1;
}

static const char *board_name(const char *device)
{
    static const char *const names[][2] = {{"AGX Xavier", "Jetson AGX Xavier"},
                                           {"Xavier NX", "Jetson Xavier NX"},
                                           {"Nano", "Jetson Nano"},
                                           {"AGX Orin", "Jetson AGX Orin"},
                                           {"any", "any: counted"}};
    for (size_t i = 0; i < EW_COUNT(names); i++)
        if (strcmp(names[i][0], device) == 0)
            return names[i][1];
    return device;
}

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

bool ew_published_value_row(struct ew_arena *a, const struct ew_published_value *f,
                            const struct ew_published_rule *rule, struct ew_published_row *row)
{
    double value;
    if (strcmp(f->file, rule->file) != 0 || !fits_words(f, rule->fit, rule->n_fit) ||
        !ew_num_float(ew_published_value_get(f, "value"), &value))
        return false;
    const char *settings = "";
    for (int i = 0; settings && i < rule->n_settings; i++) {
        const char *one = setting(a, f, rule, rule->settings[i]);
        settings = one ? ew_arena_printf(a, "%s%s%s", settings, *settings ? " " : "", one) : NULL;
    }
    const char *unit = ew_published_value_get(f, "unit");
    row->metric = rule->metric;
    row->value = value * (rule->unit ? factor(unit, rule->unit) : 1);
    row->unit = or_null(rule->unit ? rule->unit : unit);
    row->settings = settings;
    row->board = board_name(ew_published_value_get(f, "device"));
    row->place = or_null(ew_published_value_get(f, "where"));
    row->kind = or_null(ew_published_value_get(f, "kind"));
    row->note = or_null(ew_published_value_get(f, "note"));
    row->wrong = f->wrong;
    return settings != NULL;
}
