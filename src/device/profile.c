/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the board profiles that are embedded at build time. */
#include "device/profile.h"

#include <string.h>

#include "base/ini.h"

#define EW_EMBED_LIST "boards_embed.h"
#include "base/embed_table.h"

#define STR(member, text)                                                                          \
    {                                                                                              \
        .name = #member, .type = EW_FIELD_STR, .offset = offsetof(struct ew_profile, member),      \
        .help = text                                                                               \
    }
#define INT(member, text)                                                                          \
    {                                                                                              \
        .name = #member, .type = EW_FIELD_INT, .offset = offsetof(struct ew_profile, member),      \
        .min = 0, .max = 1e9, .help = text                                                         \
    }
#define NUM(member, text)                                                                          \
    {                                                                                              \
        .name = #member, .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_profile, member),    \
        .min = 0, .max = 1e9, .help = text                                                         \
    }

const struct ew_field ew_profile_fields[] = {
    STR(title, "board"),
    STR(match, "known by"),
    STR(cpu, "CPU"),
    INT(cores, "CPU cores"),
    INT(cpu_mhz, "CPU MHz, at most"),
    STR(gpu, "accelerator"),
    INT(cuda_cores, "CUDA cores"),
    INT(tensor_cores, "tensor cores"),
    INT(gpu_mhz, "accelerator MHz, at most"),
    INT(ram_gb, "memory GB"),
    INT(mem_mhz, "memory MHz, at most"),
    STR(storage, "storage"),
    NUM(power_w, "power W, at most"),
    NUM(price_usd, "price USD"),
    STR(cpu_khz, "CPU frequencies kHz"),
    STR(gpu_hz, "GPU frequencies Hz"),
    STR(emc_hz, "memory frequencies Hz"),
    NUM(step_w, "power step W, as seen in logs"),
    STR(total, "total power rail"),
    STR(sum, "rails of the total"),
    STR(covers, "the total covers"),
    STR(notes, "notes"),
    EW_FIELD_END,
};

#define MODE_INT(member)                                                                           \
    {                                                                                              \
        .name = #member, .type = EW_FIELD_INT, .offset = offsetof(struct ew_profile_mode, member), \
        .min = 0, .max = 1e6                                                                       \
    }

static const struct ew_field mode_fields[] = {
    MODE_INT(cores),
    MODE_INT(cpu_mhz),
    MODE_INT(gpu_mhz),
    MODE_INT(mem_mhz),
    {.name = "note", .type = EW_FIELD_STR, .offset = offsetof(struct ew_profile_mode, note)},
    EW_FIELD_END,
};

#define MODEL_NUM(member)                                                                          \
    {                                                                                              \
        .name = #member, .type = EW_FIELD_FLOAT,                                                   \
        .offset = offsetof(struct ew_profile_model, member), .min = 0, .max = 1e6                  \
    }

static const struct ew_field model_fields[] = {
    MODEL_NUM(gpu),
    MODEL_NUM(mem),
    MODEL_NUM(host),
    MODEL_NUM(stall),
    MODEL_NUM(fetch),
    MODEL_NUM(gpu_energy),
    MODEL_NUM(cpu_energy),
    MODEL_NUM(base_w),
    MODEL_NUM(base_mem_w),
    MODEL_NUM(base_gpu_w),
    MODEL_NUM(base_cpu_w),
    MODEL_NUM(heat_c_per_w),
    MODEL_NUM(heat_j_per_c),
    MODEL_NUM(throttle_c),
    {.name = "source", .type = EW_FIELD_STR, .offset = offsetof(struct ew_profile_model, source)},
    EW_FIELD_END,
};

#define MAX_MODES 32

static ew_err read_key(const struct ew_ini *ini, const struct ew_field *table, void *object)
{
    const struct ew_field *f = ew_field_find(table, ini->key);
    EW_CHECK(f, EW_ERR_FORMAT, "%s:%d: no key '%s' in [%s]", ini->name, ini->line, ini->key,
             ini->section);
    return ew_fail_in(ew_field_parse(f, ini->value, object), "%s:%d", ini->name, ini->line);
}

/* Parses one profile; it inserts NULs into `text`, which must outlive the profile. */
static ew_err parse_profile(struct ew_arena *a, const char *name, char *text,
                            struct ew_profile *out)
{
    struct ew_profile_mode *modes = ew_arena_array(a, MAX_MODES, sizeof(*modes));
    EW_CHECK(modes, EW_ERR_MEMORY, "%s: no memory", name);
    *out = (struct ew_profile){.name = name, .modes = modes};
    struct ew_ini ini;
    ew_ini_init(&ini, text, name);
    while (ew_ini_next(&ini)) {
        const bool board = strcmp(ini.section, "board") == 0;
        const bool mode = strncmp(ini.section, "mode ", 5) == 0;
        const bool model = strcmp(ini.section, "model") == 0;
        EW_CHECK(board || mode || model, EW_ERR_FORMAT,
                 "%s:%d: unknown section [%s]; expected [board], [mode NAME] or [model]", name,
                 ini.line, ini.section);
        if (!ini.key && mode) {
            EW_CHECK(out->n_modes < MAX_MODES, EW_ERR_LIMIT, "%s: more than %d modes", name,
                     MAX_MODES);
            modes[out->n_modes++].name = ini.section + 5;
        } else if (ini.key && board) {
            EW_TRY(read_key(&ini, ew_profile_fields, out));
        } else if (ini.key && model) {
            EW_TRY(read_key(&ini, model_fields, &out->model));
        } else if (ini.key) {
            EW_TRY(read_key(&ini, mode_fields, &modes[out->n_modes - 1]));
        }
    }
    return ini.err;
}

ew_err ew_profiles_load(struct ew_arena *a, const struct ew_profile **list, int *n)
{
    struct ew_profile *all = ew_arena_array(a, EW_COUNT(embedded), sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for board profiles");
    for (size_t i = 0; i < EW_COUNT(embedded); i++) {
        char *text = ew_arena_alloc(a, embedded[i].size);
        char *name = ew_arena_strdup(a, embedded[i].file);
        EW_CHECK(text && name, EW_ERR_MEMORY, "no memory for board profiles");
        memcpy(text, embedded[i].text, embedded[i].size);
        name[strcspn(name, ".")] = '\0';
        EW_TRY(parse_profile(a, name, text, &all[i]));
    }
    *list = all;
    *n = (int)EW_COUNT(embedded);
    return EW_OK;
}

const struct ew_profile *ew_profile_find(const struct ew_profile *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

/* The profile whose name contains this one (jetson-nano for nano), else one with a similar name. */
static const char *nearest(const struct ew_profile *list, int n, const char *name)
{
    for (int i = 0; *name && i < n; i++)
        if (strstr(list[i].name, name))
            return list[i].name;
    for (int i = 0; i < n; i++)
        if (ew_edit_distance(list[i].name, name) <= 2)
            return list[i].name;
    return NULL;
}

ew_err ew_profile_named(const struct ew_profile *list, int n, const char *name,
                        const struct ew_profile **out)
{
    *out = ew_profile_find(list, n, name);
    const char *near = *out ? NULL : nearest(list, n, name);
    EW_CHECK(*out || !near, EW_ERR_NOT_FOUND,
             "no board is called '%s'; did you mean %s?  'edgewise boards' lists them", name, near);
    EW_CHECK(*out, EW_ERR_NOT_FOUND, "no board is called '%s': 'edgewise boards' lists them", name);
    return EW_OK;
}

/* Length of the longest word of `pieces` that `text` contains; 0: none. */
static size_t fit(const char *pieces, const char *text)
{
    size_t best = 0;
    for (const char *p = pieces; p && *p;) {
        p += strspn(p, " ");
        const size_t n = strcspn(p, " ");
        if (n > best && memmem(text, strlen(text), p, n))
            best = n;
        p += n;
    }
    return best;
}

const struct ew_profile *ew_profile_match(const struct ew_profile *list, int n, const char *text)
{
    const struct ew_profile *found = NULL;
    size_t best = 0;
    for (int i = 0; i < n; i++) {
        const size_t length = fit(list[i].match, text);
        if (length > best) {
            best = length;
            found = &list[i];
        }
    }
    return found;
}
