/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the file of machines. */
#include "study/machines.h"

#include <stdlib.h>
#include <string.h>

#include "base/field.h"
#include "base/file.h"
#include "base/ini.h"
#include "study/study.h"

#define FILE_LIMIT (1 << 20)

static const char *const lost_words[] = {"other", "wait", NULL};

/* A section's keys. */
struct keys {
    const char *launcher, *program, *folder, *device;
    int when_lost;
    int64_t least_disk, retries;
    double timeout, job_timeout;
};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "launcher", .type = EW_FIELD_STR, .offset = offsetof(struct keys, launcher)},
    {.name = "program", .type = EW_FIELD_STR, .offset = offsetof(struct keys, program)},
    {.name = "folder", .type = EW_FIELD_STR, .offset = offsetof(struct keys, folder), .def = "."},
    {.name = "device", .type = EW_FIELD_STR, .offset = offsetof(struct keys, device)},
    {.name = "when-lost", .type = EW_FIELD_ENUM, .offset = offsetof(struct keys, when_lost),
     .choices = lost_words, .def = "other"},
    {.name = "least-disk", .type = EW_FIELD_SIZE, .offset = offsetof(struct keys, least_disk),
     .min = 0, .max = 1e18, .def = "64M"},
    {.name = "retries", .type = EW_FIELD_INT, .offset = offsetof(struct keys, retries), .min = 0,
     .max = 1e6, .def = "5"},
    {.name = "timeout", .type = EW_FIELD_FLOAT, .offset = offsetof(struct keys, timeout), .min = 3,
     .max = 86400, .def = "60"},
    {.name = "job-timeout", .type = EW_FIELD_FLOAT, .offset = offsetof(struct keys, job_timeout),
     .min = 0, .max = 1e9, .def = "0"},
    EW_FIELD_END};
/* clang-format on */

/* Only characters without a meaning to shells. */
static bool is_plain(const char *text)
{
    static const char more[] = "_./+=:@%,-";
    for (const char *p = text; *p; p++) {
        const bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (!letter && !(*p >= '0' && *p <= '9') && !strchr(more, *p))
            return false;
    }
    return *text && *text != '-';
}

static ew_err add_machine(struct ew_arena *a, const char *path, const struct keys *k,
                          struct ew_fleet_machine *m)
{
    const char *plain[] = {m->name, k->program ? k->program : "edgewise", k->folder};
    for (size_t i = 0; i < EW_COUNT(plain); i++)
        EW_CHECK(is_plain(plain[i]), EW_ERR_FORMAT,
                 "%s: [%s]: '%s': letters, digits and _./+=:@%%,- only", path, m->name, plain[i]);
    const char **words;
    int n;
    EW_TRY(ew_fail_in(ew_study_words(a, k->launcher ? k->launcher : "", &words, &n), "%s: [%s]",
                      path, m->name));
    EW_CHECK(n == 0 || words[0][0] != '-', EW_ERR_FORMAT,
             "%s: [%s]: launcher '%s' is not a program", path, m->name, k->launcher);
    m->launcher = words;
    m->n_launcher = n;
    m->program = k->program;
    m->folder = k->folder;
    m->device = k->device;
    m->when_lost = k->when_lost;
    m->least_disk_bytes = k->least_disk;
    m->retries = k->retries;
    m->timeout_s = k->timeout;
    m->job_timeout_s = k->job_timeout;
    return EW_OK;
}

static ew_err begin_section(const struct ew_ini *ini, struct ew_machines *out)
{
    EW_CHECK(out->n < EW_MACHINES_MAX, EW_ERR_LIMIT, "%s: more than %d machines", ini->name,
             EW_MACHINES_MAX);
    for (int i = 0; i < out->n; i++)
        EW_CHECK(strcmp(out->list[i].name, ini->section) != 0, EW_ERR_FORMAT,
                 "%s:%d: [%s] appears twice", ini->name, ini->line, ini->section);
    out->list[out->n++].name = ini->section;
    return EW_OK;
}

static ew_err take_key(const struct ew_ini *ini, int n_machines, struct keys *k)
{
    EW_CHECK(n_machines > 0, EW_ERR_FORMAT, "%s:%d: a key before the first [machine]", ini->name,
             ini->line);
    const struct ew_field *f = ew_field_find(fields, ini->key);
    const char *near = f ? NULL : ew_field_nearest(fields, ini->key);
    EW_CHECK(f, EW_ERR_FORMAT, "%s:%d: machines have no key '%s'%s%s%s", ini->name, ini->line,
             ini->key, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return ew_fail_in(ew_field_parse(f, ini->value, k), "%s:%d", ini->name, ini->line);
}

ew_err ew_machines_read(struct ew_arena *a, const char *path, struct ew_machines *out)
{
    char *text;
    size_t size;
    struct ew_ini ini;
    struct keys k;
    *out = (struct ew_machines){.list = ew_arena_array(a, EW_MACHINES_MAX, sizeof(*out->list))};
    EW_CHECK(out->list, EW_ERR_MEMORY, "no memory for machines");
    EW_TRY(ew_file_read(path, FILE_LIMIT, &text, &size));
    char *kept = ew_arena_strdup(a, text);
    free(text);
    EW_CHECK(kept, EW_ERR_MEMORY, "no memory for machines");
    ew_ini_init(&ini, kept, path);
    ini.notes = true;
    while (ew_ini_next(&ini)) {
        if (ini.key) {
            EW_TRY(take_key(&ini, out->n, &k));
            continue;
        }
        if (out->n)
            EW_TRY(add_machine(a, path, &k, &out->list[out->n - 1]));
        EW_TRY(begin_section(&ini, out));
        ew_fields_default(fields, &k, sizeof(k));
    }
    EW_TRY(ini.err);
    EW_CHECK(out->n > 0, EW_ERR_FORMAT, "%s: no [machine]", path);
    return add_machine(a, path, &k, &out->list[out->n - 1]);
}

ew_err ew_machine_command(const struct ew_fleet_machine *m, const char *self, struct ew_arena *a,
                          const char ***out)
{
    const char **words = ew_arena_array(a, (size_t)m->n_launcher + 5, sizeof(*words));
    EW_CHECK(words, EW_ERR_MEMORY, "no memory for machines");
    int n = 0;
    for (; n < m->n_launcher; n++)
        words[n] = m->launcher[n];
    words[n++] = m->program ? m->program : m->n_launcher ? "edgewise" : self;
    words[n++] = "agent";
    words[n++] = ew_arena_printf(a, "--folder=%s", m->folder);
    words[n++] = ew_arena_printf(a, "--unit=%s", m->name);
    EW_CHECK(!a->failed, EW_ERR_MEMORY, "no memory for machines");
    *out = words;
    return EW_OK;
}
