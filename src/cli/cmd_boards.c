/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise boards: the published properties of the boards that Edgewise knows. */
#include <stdio.h>
#include <string.h>

#include "advise/mode_grid.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "device/profile.h"

struct opts {
    bool modes;
};

static const struct ew_field fields[] = {
    {.name = "modes",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct opts, modes),
     .help = "list and count every combination of cores and clocks that the board allows"},
    EW_FIELD_END,
};

static void json_field(struct ew_json *j, const struct ew_field *f, const struct ew_profile *p)
{
    char text[1024];
    const int n = ew_field_print(f, p, text, sizeof(text));
    const bool set = n > 0 && strcmp(text, "0") != 0;
    double number;
    memcpy(&number, (const char *)p + f->offset, sizeof(number));
    if (!set)
        ew_json_null(j, f->name);
    else if (f->type == EW_FIELD_STR)
        ew_json_str(j, f->name, text);
    else if (f->type == EW_FIELD_FLOAT)
        ew_json_num(j, f->name, number);
    else {
        int64_t whole;
        memcpy(&whole, (const char *)p + f->offset, sizeof(whole));
        ew_json_int(j, f->name, whole);
    }
}

/* A clock; 0 in a profile means not known or not limited: null. */
static void json_mhz(struct ew_json *j, const char *key, int64_t mhz)
{
    if (mhz > 0)
        ew_json_int(j, key, mhz);
    else
        ew_json_null(j, key);
}

static void json_board(struct ew_json *j, const struct ew_profile *p)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "name", p->name);
    for (const struct ew_field *f = ew_profile_fields; f->name; f++)
        json_field(j, f, p);
    ew_json_array(j, "modes");
    for (int i = 0; i < p->n_modes; i++) {
        const struct ew_profile_mode *m = &p->modes[i];
        ew_json_object(j, NULL);
        ew_json_str(j, "name", m->name);
        ew_json_int(j, "cores", m->cores);
        json_mhz(j, "cpu_mhz", m->cpu_mhz);
        json_mhz(j, "gpu_mhz", m->gpu_mhz);
        json_mhz(j, "mem_mhz", m->mem_mhz);
        ew_json_str(j, "note", m->note);
        ew_json_end(j);
    }
    ew_json_end(j);
    ew_json_end(j);
}

static void print_line(const struct ew_profile *p)
{
    char price[16] = "-", power[16] = "-";
    if (p->price_usd > 0)
        snprintf(price, sizeof(price), "%.0f", p->price_usd);
    if (p->power_w > 0)
        snprintf(power, sizeof(power), "%.0f", p->power_w);
    printf("%-12s %-20s %2lld x %-14.14s %5lld %5lld %6s %6s\n", p->name, p->title,
           (long long)p->cores, p->cpu, (long long)p->cpu_mhz, (long long)p->ram_gb, power, price);
}

static void print_mhz(int64_t mhz)
{
    if (mhz > 0)
        printf(" %8lld", (long long)mhz);
    else
        printf(" %8s", "-");
}

static void print_board(const struct ew_profile *p)
{
    printf("%-26s %s\n", "name", p->name);
    for (const struct ew_field *f = ew_profile_fields; f->name; f++) {
        char text[1024];
        if (ew_field_print(f, p, text, sizeof(text)) > 0 && strcmp(text, "0") != 0)
            printf("%-26s %s\n", f->help, text);
    }
    if (p->n_modes)
        printf("\n%-18s %5s %8s %8s %8s\n", "mode", "cores", "CPU MHz", "GPU MHz", "mem MHz");
    for (int i = 0; i < p->n_modes; i++) {
        const struct ew_profile_mode *m = &p->modes[i];
        printf("%-18s %5lld", m->name, (long long)m->cores);
        print_mhz(m->cpu_mhz);
        print_mhz(m->gpu_mhz);
        print_mhz(m->mem_mhz);
        printf("%s%s\n", m->note ? "  " : "", m->note ? m->note : "");
    }
}

/* The number of values of each setting.  The modes are all combinations, so the values of one are
 * found where the others have their lowest. */
static void print_count(const struct ew_mode *m, int n)
{
    int count[4] = {0};
    for (int i = 0; i < n; i++) {
        const bool cpu = m[i].cpu <= m[0].cpu, gpu = m[i].gpu <= m[0].gpu,
                   mem = m[i].mem <= m[0].mem;
        const bool cores = m[i].cores <= m[0].cores;
        count[0] += cpu && gpu && mem;
        count[1] += cores && gpu && mem;
        count[2] += cores && cpu && mem;
        count[3] += cores && cpu && gpu;
    }
    printf("%d modes: %d core counts x %d CPU x %d GPU x %d memory clocks\n", n, count[0], count[1],
           count[2], count[3]);
}

static ew_err print_all_modes(struct ew_cmd_call *c, const struct ew_profile *p)
{
    struct ew_arena arena;
    struct ew_mode *m;
    int n = 0;
    ew_arena_init(&arena);
    const ew_err err = ew_grid_of_board(&arena, p, &m, &n);
    struct ew_json j;
    ew_json_init(&j, stdout);
    if (err == EW_OK && c->json)
        ew_json_array(&j, NULL);
    else if (err == EW_OK) {
        print_count(m, n);
        printf("%5s %8s %8s %8s\n", "cores", "CPU MHz", "GPU MHz", "mem MHz");
    }
    for (int i = 0; err == EW_OK && i < n; i++) {
        if (!c->json) {
            printf("%5.0f %8.1f %8.1f %8.1f\n", m[i].cores, 1e3 * m[i].cpu, 1e3 * m[i].gpu,
                   1e3 * m[i].mem);
            continue;
        }
        ew_json_object(&j, NULL);
        ew_json_int(&j, "cores", (int64_t)m[i].cores);
        ew_json_num(&j, "cpu_mhz", 1e3 * m[i].cpu);
        ew_json_num(&j, "gpu_mhz", 1e3 * m[i].gpu);
        ew_json_num(&j, "mem_mhz", 1e3 * m[i].mem);
        ew_json_end(&j);
    }
    ew_arena_fini(&arena);
    EW_TRY(err);
    if (!c->json)
        return EW_OK;
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err show(struct ew_cmd_call *c, const struct ew_profile *list, int n)
{
    const struct opts *o = c->opts;
    const int at =
        c->n_args > 0 && strcmp(c->args[0], "show") == 0; /* the word "show" is optional */
    const char *name = c->n_args > at ? c->args[at] : NULL;
    EW_CHECK(name || (!at && !o->modes), EW_ERR_USAGE, "boards: which board?");
    EW_CHECK(c->n_args <= at + 1, EW_ERR_USAGE, "boards: unexpected '%s'", c->args[at + 1]);
    if (name) {
        const struct ew_profile *p;
        EW_TRY(ew_profile_named(list, n, name, &p));
        if (o->modes)
            return print_all_modes(c, p);
        list = p;
        n = 1;
    }
    if (c->json) {
        struct ew_json j;
        ew_json_init(&j, stdout);
        ew_json_array(&j, NULL);
        for (int i = 0; i < n; i++)
            json_board(&j, &list[i]);
        ew_json_end(&j);
        return ew_json_finish(&j);
    }
    if (c->n_args) {
        print_board(list);
        return EW_OK;
    }
    printf("%-12s %-20s %-19s %5s %5s %6s %6s\n", "name", "board", "CPU", "MHz", "GB", "W", "USD");
    for (int i = 0; i < n; i++)
        print_line(&list[i]);
    printf("\nFrom documents, not measured; 'edgewise boards NAME' shows one with its modes.\n");
    return EW_OK;
}

static ew_err run(struct ew_cmd_call *c)
{
    struct ew_arena arena;
    const struct ew_profile *list;
    int n;
    ew_arena_init(&arena);
    ew_err err = ew_profiles_load(&arena, &list, &n);
    if (err == EW_OK)
        err = show(c, list, n);
    if (err == EW_ERR_NOT_FOUND)
        ew_cmd_hint(c, "edgewise boards");
    ew_arena_fini(&arena);
    return err;
}

const struct ew_cmd ew_cmd_boards = {
    .name = "boards",
    .group = EW_CMD_MEASURE,
    .summary = "board profiles: specifications, clocks, power modes, price",
    .args = "[[show] NAME]",
    .about = "Lists the boards of which Edgewise has a profile, or shows one.\n"
             "The figures come from data sheets and papers; none is measured here.",
    .examples = "boards\nboards agx-xavier\nboards show agx-xavier --modes",
    .max_args = 2,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
