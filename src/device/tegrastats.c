/* SPDX-License-Identifier: Apache-2.0 */
/* Parses one line of tegrastats. */
#include "device/tegrastats.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define WORD_CHARS 512

/* The words of a line, with one word of lookahead. */
struct words {
    const char *rest;
    char word[WORD_CHARS], next[WORD_CHARS];
};

static void take(struct words *w, char out[WORD_CHARS])
{
    w->rest += strspn(w->rest, " \t\r\n");
    const size_t n = strcspn(w->rest, " \t\r\n");
    snprintf(out, WORD_CHARS, "%.*s", n < WORD_CHARS ? (int)n : WORD_CHARS - 1, w->rest);
    w->rest += n;
}

static bool advance(struct words *w)
{
    memcpy(w->word, w->next, WORD_CHARS);
    take(w, w->next);
    return w->word[0] != '\0';
}

/* Parses a decimal number with at most 9 digits before the point; *p moves past it. */
static bool number(const char **p, double *out)
{
    const char *s = *p;
    const bool minus = *s == '-';
    s += minus;
    double v = 0, place = 1;
    int digits = 0;
    for (; *s >= '0' && *s <= '9'; s++, digits++)
        v = v * 10 + (*s - '0');
    if (digits == 0 || digits > 9)
        return false;
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9' && place > 1e-9; s++)
            v += (*s - '0') * (place /= 10);
    *out = minus ? -v : v;
    *p = s;
    return true;
}

/* "2690/6854MB" */
static void used_of_total(const char *p, struct ew_sample_value *used,
                          struct ew_sample_value *total)
{
    double a, b;
    if (!number(&p, &a) || *p++ != '/' || !number(&p, &b))
        return;
    const double unit = *p == 'k' ? 1024.0 : *p == 'G' ? 1073741824.0 : 1048576.0;
    *used = ew_sample_value_of(a * unit);
    if (total)
        *total = ew_sample_value_of(b * unit);
}

/* "12%", "12%@1300", "12%@[1300,1300]", "@[1300,0,0]": of several clocks the first nonzero one. */
static void load_at(const char *p, struct ew_sample_value *load, struct ew_sample_value *mhz)
{
    double v;
    if (number(&p, &v) && *p == '%') {
        *load = ew_sample_value_of(v);
        p++;
    }
    if (*p != '@')
        return;
    p++;
    const bool list = *p == '[';
    p += list;
    while (number(&p, &v)) {
        *mhz = ew_sample_value_of(v);
        if (!list || v > 0 || *p++ != ',')
            break;
    }
}

/* "[5%@1479,off,22%@1479]" */
static void cores(const char *p, struct ew_tegrastats *out)
{
    for (p++; *p && *p != ']' && out->n_cores < EW_TEGRA_CORES;) {
        const int i = out->n_cores++;
        out->core_load[i] = out->core_mhz[i] =
            ew_sample_value_absent(strncmp(p, "off", 3) == 0 ? EW_ABSENT_OFF : EW_ABSENT_BAD);
        load_at(p, &out->core_load[i], &out->core_mhz[i]);
        p += strcspn(p, ",]");
        p += *p == ',';
    }
}

static void add_item(struct ew_tegra_item *list, int *n, const char *name, size_t length,
                     struct ew_sample_value value)
{
    if (*n == EW_TEGRA_ITEMS || length == 0 || length >= EW_TEGRA_NAME)
        return;
    struct ew_tegra_item *item = &list[(*n)++];
    memcpy(item->name, name, length);
    item->name[length] = '\0';
    item->value = value;
}

/* "CPU@41.5C" and "cpu@52.9C/52.9C"; -256: the sensor did not respond. */
static bool temperature(const char *word, struct ew_tegrastats *out)
{
    const char *at = strchr(word, '@');
    if (!at)
        return false;
    const char *p = at + 1;
    double v;
    if (!number(&p, &v) || *p != 'C')
        return false;
    const struct ew_sample_value value =
        v > -200 ? ew_sample_value_of(v) : ew_sample_value_absent(EW_ABSENT_NOT_READY);
    if (strncmp(word, "PMIC@", 5) != 0) /* fixed value */
        add_item(out->temps, &out->n_temps, word, (size_t)(at - word), value);
    return true;
}

/* "4067/4067", "4067mW/4067mW", "5139mW/5139mW/5139mW": the first is the present power. */
static bool rail(const char *name, const char *p, struct ew_tegrastats *out)
{
    double now, mean;
    if (!number(&p, &now))
        return false;
    p += strncmp(p, "mW", 2) == 0 ? 2 : 0;
    if (*p++ != '/' || !number(&p, &mean))
        return false;
    p += strncmp(p, "mW", 2) == 0 ? 2 : 0;
    if (*p && *p != '/')
        return false;
    if (strcmp(name, "NC") != 0)
        add_item(out->rails, &out->n_rails, name, strlen(name), ew_sample_value_of(now * 1e-3));
    return true;
}

/* A word that takes the next one as its value; true where it did. */
static bool pair(const char *word, const char *next, struct ew_tegrastats *out)
{
    if (strcmp(word, "RAM") == 0)
        used_of_total(next, &out->ram_used, &out->ram_total);
    else if (strcmp(word, "SWAP") == 0)
        used_of_total(next, &out->swap_used, NULL);
    else if (strcmp(word, "CPU") == 0 && next[0] == '[')
        cores(next, out);
    else if (strcmp(word, "EMC_FREQ") == 0)
        load_at(next, &out->emc_load, &out->emc_mhz);
    else if (strcmp(word, "GR3D_FREQ") == 0)
        load_at(next, &out->gpu_load, &out->gpu_mhz);
    else
        return strcmp(word, "IRAM") == 0 || rail(word, next, out);
    return true;
}

bool ew_tegrastats_parse(const char *line, struct ew_tegrastats *out)
{
    const struct ew_sample_value none = ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
    memset(out, 0, sizeof(*out));
    struct ew_sample_value *const all[] = {&out->ram_used, &out->ram_total, &out->swap_used,
                                           &out->gpu_load, &out->gpu_mhz,   &out->emc_load,
                                           &out->emc_mhz};
    for (size_t i = 0; i < EW_COUNT(all); i++)
        *all[i] = none;
    struct words w = {.rest = line};
    take(&w, w.next);
    while (advance(&w)) {
        if (w.word[0] < 'A' || temperature(w.word, out)) /* dates, times and brackets begin lower */
            continue;
        if (pair(w.word, w.next, out))
            advance(&w);
    }
    return out->n_cores || out->n_temps || out->n_rails || ew_sample_value_is(out->ram_used);
}
