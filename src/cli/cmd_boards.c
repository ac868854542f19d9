/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise boards: what documents say about the boards that Edgewise knows. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cmd.h"
#include "device/profile.h"

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

/* 0 in a profile: not known, or not limited. */
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

static ew_err show(struct ew_cmd_call *c, const struct ew_profile *list, int n)
{
    if (c->n_args) {
        const struct ew_profile *p = ew_profile_find(list, n, c->args[0]);
        EW_CHECK(p, EW_ERR_NOT_FOUND, "boards: no board called '%s'", c->args[0]);
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
    .summary = "boards that are known: specifications, clocks, power modes, price",
    .args = "[NAME]",
    .about = "Lists the boards that Edgewise has a profile of, or shows one.\n"
             "The figures come from documents; nothing of it was measured.",
    .examples = "boards\nboards agx-xavier",
    .max_args = 1,
    .run = run,
};
