/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise data list and info. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/data_cmd.h"
#include "data/get.h"
#include "data/reader.h"
#include "data/storage.h"
#include "data/write_set.h"
#include "report/text_table.h"

#define MAX_LISTED    256
#define STATS_ENCODED 2000 /* samples that are inspected if they must be decoded */
#define SHEET_COLUMNS 12

const char *ew_data_nearest(const char *what)
{
    for (int i = 0; i < ew_known_count(); i++)
        if (ew_edit_distance(ew_known_at(i)->name, what) <= 2)
            return ew_known_at(i)->name;
    return NULL;
}

/* The colon of "DATA:1000"; NULL: there is none. */
static const char *count_at(const char *what)
{
    const char *colon = strrchr(what, ':');
    const bool counted = colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
    return counted ? colon : NULL;
}

ew_err ew_data_hint(struct ew_cmd_call *c, const char *what, ew_err err)
{
    char name[EW_DATA_PATH];
    const char *colon = count_at(what);
    snprintf(name, sizeof(name), "%.*s", (int)(colon ? colon - what : (long)strlen(what)), what);
    if (err != EW_ERR_NOT_FOUND || !strstr(ew_error_message(), name))
        return err;
    const char *near = ew_data_nearest(name);
    if (near && strcmp(near, name) == 0)
        ew_cmd_hint(c, "edgewise data get %s", name);
    else if (near)
        ew_cmd_hint(c, "did you mean %s? edgewise data list shows all of them", near);
    else
        ew_cmd_hint(c, "edgewise data list shows all of them");
    return err;
}

ew_err ew_data_open(struct ew_cmd_call *c, const char *what, struct ew_dataset **out)
{
    const ew_err e = ew_dataset_open(what, out);
    if (e == EW_ERR_NOT_FOUND && count_at(what)) {
        ew_cmd_hint(c, "N of DATA:N is for evaluation and calibration; `train` has --samples N");
        return e;
    }
    return ew_data_hint(c, what, e);
}

enum ew_split ew_data_split(const struct ew_cmd_call *c, const struct ew_dataset *d)
{
    const struct ew_data_opts *o = c->opts;
    const int64_t *count = ew_dataset_info(d)->count;
    if (ew_cmd_given(c, "split") || count[EW_SPLIT_TRAIN])
        return (enum ew_split)o->split;
    return count[EW_SPLIT_TEST] ? EW_SPLIT_TEST : EW_SPLIT_UNLABELLED;
}

/* ---- list ------------------------------------------------------------------------------------ */

/* A data set that can be downloaded, is stored, or both. */
struct row {
    char name[256];
    const struct ew_known_set *known;
    char path[EW_DATA_PATH]; /* "": not stored */
    int64_t train, test, classes;
    const char *format; /* format of the stored one */
};

static struct row *find_row(struct row *rows, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static void look_at(struct row *r)
{
    struct ew_dataset *d = NULL;
    if (ew_dataset_open(r->path, &d) != EW_OK) {
        r->format = "damaged";
        return;
    }
    const struct ew_dataset_info *i = ew_dataset_info(d);
    r->train = i->count[EW_SPLIT_TRAIN];
    r->test = i->count[EW_SPLIT_TEST];
    r->classes = i->classes;
    r->format = d->reader->name;
    ew_dataset_close(d);
}

static int by_name(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static ew_err collect(struct row *rows, int *n)
{
    for (int i = 0; i < ew_known_count(); i++) {
        const struct ew_known_set *k = ew_known_at(i);
        struct row *r = &rows[(*n)++];
        snprintf(r->name, sizeof(r->name), "%s", k->name);
        r->known = k;
        r->train = k->train;
        r->test = k->test;
        r->classes = k->classes;
    }
    EW_CLEANUP(ew_free_ptr) char *home = NULL;
    EW_TRY(ew_dataset_home(&home));
    DIR *d = opendir(home);
    for (const struct dirent *e; d && (e = readdir(d));) {
        struct row *r = find_row(rows, *n, e->d_name);
        if (e->d_name[0] == '.' || (!r && *n == MAX_LISTED))
            continue;
        if (!r) {
            r = &rows[(*n)++];
            snprintf(r->name, sizeof(r->name), "%s", e->d_name);
        }
        if (ew_data_join(r->path, home, e->d_name))
            look_at(r);
    }
    if (d)
        closedir(d);
    const int known = ew_known_count();
    qsort(rows + known, (size_t)(*n - known), sizeof(*rows), by_name);
    return EW_OK;
}

static ew_err list_json(const struct row *rows, int n)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (int i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", r->name);
        ew_json_int(&j, "train", r->train);
        ew_json_int(&j, "test", r->test);
        ew_json_int(&j, "classes", r->classes);
        ew_json_str(&j, "what", r->known ? r->known->what : NULL);
        ew_json_str(&j, "path", *r->path ? r->path : NULL);
        ew_json_str(&j, "format", r->format);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err list_text(const struct row *rows, int n)
{
    static const char *const head[] = {"name", "train", "test", "classes", "stored", "what"};
    struct ew_table t;
    ew_table_init(&t, "lrrrll");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        ew_table_cell(&t, "%s", r->name);
        ew_table_count(&t, r->train);
        ew_table_count(&t, r->test);
        ew_table_count(&t, r->classes);
        ew_table_cell(&t, "%s", *r->path ? r->path : "no");
        ew_table_cell(&t, "%s", r->known ? r->known->what : r->format);
    }
    ew_table_cell(&t, "synthetic");
    for (int i = 0; i < 3; i++)
        ew_table_cell(&t, "any");
    ew_table_cell(&t, "never");
    ew_table_cell(&t, "digits, shapes or moving shapes, drawn when they are read");
    return ew_table_print(&t, stdout);
}

ew_err ew_data_list(struct ew_cmd_call *c)
{
    EW_CLEANUP(ew_free_ptr) struct row *rows = calloc(MAX_LISTED, sizeof(*rows));
    EW_CHECK(rows, EW_ERR_MEMORY, "no memory for a list");
    int n = 0;
    EW_TRY(collect(rows, &n));
    return c->json ? list_json(rows, n) : list_text(rows, n);
}

/* ---- info ------------------------------------------------------------------------------------ */

struct facts {
    enum ew_split split;
    const struct ew_dataset_info *info;
    struct ew_dataset_stats stats;
    int64_t bytes;   /* on disk; -1: not stored */
    double resident; /* share in the page cache; negative: not known */
};

/* Bytes of all files of the set; a packed file holds every split. */
static int64_t count_bytes(const struct ew_dataset *d)
{
    int64_t sum = 0;
    char path[EW_DATA_PATH], last[EW_DATA_PATH] = "";
    if (!d->reader->file)
        return -1;
    for (int split = 0; split < EW_SPLIT_COUNT; split++)
        for (int64_t k = 0; d->reader->file(d, (enum ew_split)split, k, path); k++) {
            struct stat st;
            if (strcmp(path, last) != 0 && stat(path, &st) == 0)
                sum += st.st_size;
            strcpy(last, path);
        }
    return sum;
}

static void print_numbers(const char *what, const double *v, int64_t n)
{
    printf("%-10s", what);
    for (int64_t c = 0; c < n; c++)
        printf(" %.4f", v[c]);
    printf("\n");
}

static void print_classes(const struct ew_dataset *d)
{
    const int64_t n = ew_dataset_info(d)->classes;
    printf("%-10s %lld%s", "classes", (long long)n, n ? ":" : "");
    for (int64_t k = 0; k < n && k < 12; k++)
        printf(" %s", ew_dataset_class(d, k));
    printf(n > 12 ? " ...\n" : "\n");
}

static ew_err info_text(const struct ew_dataset *d, const struct facts *f)
{
    char a[EW_TEXT_CHARS];
    const struct ew_dataset_info *i = f->info;
    printf("%-10s %s\n%-10s %s (%s)\n", "name", i->name, "format", i->format, d->reader->layout);
    if (*i->path)
        printf("%-10s %s\n", "path", i->path);
    for (int s = 0; s < EW_SPLIT_COUNT; s++)
        if (i->count[s])
            printf("%-10s %s\n", ew_split_name((enum ew_split)s), ew_text_count(i->count[s], a));
    print_classes(d);
    if (i->frames)
        printf("%-10s %lldx%lldx%lldx%lld\n", "clips", (long long)i->frames,
               (long long)(i->h / i->frames), (long long)i->w, (long long)i->c);
    else if (i->h)
        printf("%-10s %lldx%lldx%lld\n", "images", (long long)i->h, (long long)i->w,
               (long long)i->c);
    else
        printf("%-10s of several sizes, %lld channels\n", "images", (long long)i->c);
    if (f->stats.samples) {
        print_numbers("mean", f->stats.mean, i->c);
        print_numbers("deviation", f->stats.std, i->c);
    }
    printf("%-10s %s %s samples", "from",
           f->stats.samples ? ew_text_count(f->stats.samples, a) : "none of the",
           f->split == EW_SPLIT_TRAIN ? "training" : ew_split_name(f->split));
    if (f->stats.bad)
        printf(f->stats.samples ? ", %s more cannot be read" : ": %s cannot be read",
               ew_text_count(f->stats.bad, a));
    printf("\n");
    if (f->bytes >= 0)
        printf("%-10s %s\n", "on disk", ew_text_bytes(f->bytes, a));
    if (f->resident >= 0)
        printf("%-10s %.1f %% before this command read it\n", "in memory", 100 * f->resident);
    return EW_OK;
}

static void json_numbers(struct ew_json *j, const char *key, const double *v, int64_t n)
{
    ew_json_array(j, key);
    for (int64_t c = 0; c < n; c++)
        ew_json_num(j, NULL, v[c]);
    ew_json_end(j);
}

static ew_err info_json(const struct ew_dataset *d, const struct facts *f)
{
    const struct ew_dataset_info *i = f->info;
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", i->name);
    ew_json_str(&j, "format", i->format);
    ew_json_str(&j, "path", i->path);
    for (int s = 0; s < EW_SPLIT_COUNT; s++)
        ew_json_int(&j, ew_split_name((enum ew_split)s), i->count[s]);
    ew_json_int(&j, "classes", i->classes);
    ew_json_array(&j, "class_names");
    for (int64_t k = 0; k < i->classes; k++)
        ew_json_str(&j, NULL, ew_dataset_class(d, k));
    ew_json_end(&j);
    if (i->frames)
        ew_json_int(&j, "frames", i->frames);
    ew_json_int(&j, "height", i->frames ? i->h / i->frames : i->h);
    ew_json_int(&j, "width", i->w);
    ew_json_int(&j, "channels", i->c);
    if (f->stats.samples) {
        json_numbers(&j, "mean", f->stats.mean, i->c);
        json_numbers(&j, "deviation", f->stats.std, i->c);
    }
    ew_json_int(&j, "measured_samples", f->stats.samples);
    ew_json_int(&j, "bad_samples", f->stats.bad);
    if (f->bytes >= 0)
        ew_json_int(&j, "bytes", f->bytes);
    if (f->resident >= 0)
        ew_json_num(&j, "resident", f->resident);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err show(struct ew_cmd_call *c, const struct ew_dataset *d)
{
    const struct ew_data_opts *o = c->opts;
    const enum ew_split split = ew_data_split(c, d);
    struct facts f = {.split = split, .info = ew_dataset_info(d), .bytes = count_bytes(d)};
    EW_CHECK(f.info->count[split] > 0, EW_ERR_NOT_FOUND, "%s: there are no %s samples",
             f.info->name, ew_split_name(split));
    EW_TRY(ew_dataset_resident(d, split, &f.resident));
    const bool decoded = strcmp(f.info->format, "folder") == 0 || f.info->h == 0;
    EW_TRY(ew_dataset_measure(d, split, decoded ? STATS_ENCODED : 0, &f.stats));
    EW_TRY(c->json ? info_json(d, &f) : info_text(d, &f));
    if (o->sheet)
        EW_TRY(ew_dataset_sheet(d, split, SHEET_COLUMNS, o->sheet));
    return EW_OK;
}

ew_err ew_data_info(struct ew_cmd_call *c, const char *what)
{
    struct ew_dataset *d = NULL;
    EW_TRY(ew_data_open(c, what, &d));
    const ew_err err = show(c, d);
    ew_dataset_close(d);
    return err;
}
