/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's power modes. */
#include "device/nvpmodel.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define CONF_BYTES (256 << 10)
#define MAX_ROWS   8192

/* What the lines belong to. */
enum section { NOWHERE, PARAM, MODE };

struct parser {
    struct ew_arena *arena;
    struct ew_nvpmodel *out;
    enum section section;
    const char *param; /* of the PARAM section */
    bool clock;
    int line;
    int cap_paths, cap_settings, cap_modes;
};

static ew_err room(struct parser *p, void **list, int *cap, int n, size_t item)
{
    if (n < *cap)
        return EW_OK;
    EW_CHECK(n < MAX_ROWS, EW_ERR_LIMIT, "nvpmodel.conf:%d: more than %d rows", p->line, MAX_ROWS);
    const int more = *cap ? 2 * *cap : 64;
    void *bigger = ew_arena_array(p->arena, (size_t)more, item);
    EW_CHECK(bigger, EW_ERR_MEMORY, "nvpmodel.conf: no memory for %d rows", more);
    if (n)
        memcpy(bigger, *list, (size_t)n * item);
    *list = bigger;
    *cap = more;
    return EW_OK;
}

/* The value of KEY=value among the words of a heading; NULL: it has none. */
static const char *attribute(char *const *words, int n, const char *key)
{
    const size_t length = strlen(key);
    for (int i = 0; i < n; i++)
        if (strncmp(words[i], key, length) == 0 && words[i][length] == '=')
            return words[i] + length + 1;
    return NULL;
}

static int split(char *line, char **words, int max)
{
    int n = 0;
    char *save = NULL;
    for (char *w = strtok_r(line, " \t\r", &save); w && n < max; w = strtok_r(NULL, " \t\r", &save))
        words[n++] = w;
    return n;
}

static ew_err begin_mode(struct parser *p, char *const *words, int n)
{
    struct ew_nvpmodel *m = p->out;
    const char *id = attribute(words, n, "ID"), *name = attribute(words, n, "NAME");
    int64_t number;
    EW_CHECK(id && name && ew_num_int(id, &number) && number >= 0, EW_ERR_FORMAT,
             "nvpmodel.conf:%d: POWER_MODEL without ID or NAME", p->line);
    void *list = m->modes;
    EW_TRY(room(p, &list, &p->cap_modes, m->n_modes, sizeof(*m->modes)));
    m->modes = list;
    m->modes[m->n_modes++] =
        (struct ew_nvpm_mode){.id = number, .name = name, .first = m->n_settings};
    p->section = MODE;
    return EW_OK;
}

/* "< PARAM TYPE=FILE NAME=x >", with or without the blanks beside the brackets. */
static ew_err heading(struct parser *p, char *line)
{
    char *close = strchr(line, '>');
    EW_CHECK(close, EW_ERR_FORMAT, "nvpmodel.conf:%d: no '>' after '<'", p->line);
    *close = '\0';
    char *words[8];
    const int n = split(line + 1, words, 8);
    EW_CHECK(n > 0, EW_ERR_FORMAT, "nvpmodel.conf:%d: empty heading", p->line);
    p->section = NOWHERE;
    if (strcmp(words[0], "PARAM") == 0) {
        const char *type = attribute(words, n, "TYPE");
        p->param = attribute(words, n, "NAME");
        EW_CHECK(p->param, EW_ERR_FORMAT, "nvpmodel.conf:%d: PARAM without NAME", p->line);
        p->clock = type && strcmp(type, "CLOCK") == 0;
        p->section = PARAM;
    } else if (strcmp(words[0], "POWER_MODEL") == 0) {
        return begin_mode(p, words, n);
    } else if (strcmp(words[0], "PM_CONFIG") == 0) {
        const char *id = attribute(words, n, "DEFAULT");
        EW_CHECK(id && ew_num_int(id, &p->out->default_id), EW_ERR_FORMAT,
                 "nvpmodel.conf:%d: PM_CONFIG without DEFAULT", p->line);
    }
    return EW_OK; /* other headings (FAN_CONFIG and the like) are not ours */
}

static ew_err param_line(struct parser *p, char *line)
{
    struct ew_nvpmodel *m = p->out;
    char *words[4];
    const int n = split(line, words, 4);
    if (n < 2)
        return EW_OK;
    void *list = m->paths;
    EW_TRY(room(p, &list, &p->cap_paths, m->n_paths, sizeof(*m->paths)));
    m->paths = list;
    const char *path = words[1];
    if (n > 2) { /* HWMON: a folder and a file in it */
        path = ew_arena_printf(p->arena, "%s/%s", words[1], words[2]);
        EW_CHECK(path, EW_ERR_MEMORY, "nvpmodel.conf: no memory");
    }
    m->paths[m->n_paths++] =
        (struct ew_nvpm_path){.param = p->param, .arg = words[0], .path = path, .clock = p->clock};
    return EW_OK;
}

static ew_err mode_line(struct parser *p, char *line)
{
    struct ew_nvpmodel *m = p->out;
    char *words[4];
    const int n = split(line, words, 4);
    int64_t value;
    if (n < 3)
        return EW_OK;
    EW_CHECK(ew_num_int(words[2], &value), EW_ERR_FORMAT,
             "nvpmodel.conf:%d: %s %s: '%.40s' is not a whole number", p->line, words[0], words[1],
             words[2]);
    void *list = m->settings;
    EW_TRY(room(p, &list, &p->cap_settings, m->n_settings, sizeof(*m->settings)));
    m->settings = list;
    m->settings[m->n_settings++] =
        (struct ew_nvpm_setting){.param = words[0], .arg = words[1], .value = value};
    m->modes[m->n_modes - 1].n++;
    return EW_OK;
}

ew_err ew_nvpmodel_parse(struct ew_arena *a, char *text, struct ew_nvpmodel *out)
{
    *out = (struct ew_nvpmodel){.default_id = -1};
    struct parser p = {.arena = a, .out = out};
    for (char *next = text; next;) {
        char *line = next;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        p.line++;
        line += strspn(line, " \t\r");
        if (*line == '\0' || *line == '#')
            continue;
        if (*line == '<')
            EW_TRY(heading(&p, line));
        else if (p.section == PARAM)
            EW_TRY(param_line(&p, line));
        else if (p.section == MODE)
            EW_TRY(mode_line(&p, line));
    }
    return EW_OK;
}

ew_err ew_nvpmodel_read(const struct ew_root *root, struct ew_arena *a, struct ew_nvpmodel *out)
{
    char *text = ew_arena_alloc(a, CONF_BYTES);
    EW_CHECK(text, EW_ERR_MEMORY, "no memory for nvpmodel.conf");
    EW_TRY(ew_root_read(root, EW_NVPMODEL_CONF, text, CONF_BYTES));
    return ew_nvpmodel_parse(a, text, out);
}

const struct ew_nvpm_mode *ew_nvpmodel_find(const struct ew_nvpmodel *m, const char *name)
{
    int64_t id;
    const bool number = ew_num_int(name, &id);
    for (int i = 0; i < m->n_modes; i++)
        if (strcmp(m->modes[i].name, name) == 0 || (number && m->modes[i].id == id))
            return &m->modes[i];
    return NULL;
}

const struct ew_nvpm_path *ew_nvpmodel_path(const struct ew_nvpmodel *m,
                                            const struct ew_nvpm_setting *s)
{
    for (int i = 0; i < m->n_paths; i++)
        if (strcmp(m->paths[i].param, s->param) == 0 && strcmp(m->paths[i].arg, s->arg) == 0)
            return &m->paths[i];
    return NULL;
}

int64_t ew_nvpmodel_active(const struct ew_root *root)
{
    char text[256];
    if (ew_root_read(root, "var/lib/nvpmodel/status", text, sizeof(text)) != EW_OK)
        return -1;
    const char *p = strstr(text, "pmode:");
    if (!p || p[6] < '0' || p[6] > '9')
        return -1;
    return strtol(p + 6, NULL, 10);
}
