/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets, caches and governor of the CPU. */
#include "device/cpu_facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CPU "sys/devices/system/cpu/"

/* Flags of /proc/cpuinfo that matter to kernels. */
static const struct {
    const char *flag;
    const char *dot; /* name of the int8 dot-product instructions of this flag */
} sets[] = {{"sse4_2", NULL},
            {"avx", NULL},
            {"avx2", NULL},
            {"fma", NULL},
            {"f16c", NULL},
            {"avx512f", NULL},
            {"avx512_vnni", "VNNI"},
            {"avx_vnni", "VNNI"},
            {"avx512_bf16", NULL},
            {"avx512_fp16", NULL},
            {"amx_int8", "AMX"},
            {"asimd", NULL},
            {"asimddp", "dot product"},
            {"fphp", NULL},
            {"asimdhp", NULL},
            {"i8mm", "i8mm"},
            {"bf16", NULL},
            {"sve", NULL},
            {"sve2", NULL}};

static bool has_word(const char *line, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = line; (p = strstr(p, word)); p += n)
        if (p > line && (p[-1] == ' ' || p[-1] == '\t') && (!p[n] || p[n] == ' ' || p[n] == '\n'))
            return true;
    return false;
}

/* The first "flags" (x86) or "Features" (Arm) line, cut out of the text. */
static char *flags_line(char *text)
{
    static const char *const keys[] = {"flags\t", "Features\t"};
    for (size_t i = 0; i < EW_COUNT(keys); i++) {
        char *p = strstr(text, keys[i]);
        if (!p)
            continue;
        p[strcspn(p, "\n")] = '\0';
        return p;
    }
    return NULL;
}

static ew_err read_sets(struct ew_board *b, struct ew_cpu_facts *out)
{
    char text[16384];
    int fd;
    out->sets = "";
    if (ew_root_open_file(&b->root, "proc/cpuinfo", O_RDONLY, &fd) != EW_OK)
        return EW_OK;
    /* the first CPU is enough: a large machine's file is long */
    ssize_t n = 0, k;
    while (n < (ssize_t)sizeof(text) - 1 &&
           (k = read(fd, text + n, sizeof(text) - 1 - (size_t)n)) > 0)
        n += k;
    close(fd);
    text[n] = '\0';
    const char *line = flags_line(text);
    for (size_t i = 0; line && i < EW_COUNT(sets); i++) {
        if (!has_word(line, sets[i].flag))
            continue;
        out->sets =
            ew_arena_printf(&b->arena, "%s%s%s", out->sets, *out->sets ? " " : "", sets[i].flag);
        EW_CHECK(out->sets, EW_ERR_MEMORY, "no memory for the CPU's facts");
        out->dot = sets[i].dot ? sets[i].dot : out->dot;
    }
    return EW_OK;
}

/* "32K", "1024K", "8M" */
static int64_t size_of(const char *text)
{
    long long v = 0;
    char unit = 0;
    if (sscanf(text, "%lld%c", &v, &unit) < 1)
        return 0;
    return v * (unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1);
}

static int count_cpus(const char *list)
{
    int n = 0, first, last, used;
    for (const char *p = list; sscanf(p, "%d%n", &first, &used) == 1;) {
        p += used;
        last = first;
        if (*p == '-' && sscanf(p + 1, "%d%n", &last, &used) == 1)
            p += used + 1;
        n += last - first + 1;
        if (*p != ',')
            break;
        p++;
    }
    return n;
}

static bool read_cache(const struct ew_root *root, int index, struct ew_cache_fact *out)
{
    char path[128], text[128];
    int64_t level;
    snprintf(path, sizeof(path), CPU "cpu0/cache/index%d/level", index);
    if (ew_root_read_int(root, path, &level) != EW_OK)
        return false;
    *out = (struct ew_cache_fact){.level = (int)level, .type = 'u', .shared = 1};
    snprintf(path, sizeof(path), CPU "cpu0/cache/index%d/size", index);
    if (ew_root_read(root, path, text, sizeof(text)) == EW_OK)
        out->bytes = size_of(text);
    snprintf(path, sizeof(path), CPU "cpu0/cache/index%d/type", index);
    if (ew_root_read(root, path, text, sizeof(text)) == EW_OK)
        out->type = text[0] == 'D' ? 'd' : text[0] == 'I' ? 'i' : 'u';
    snprintf(path, sizeof(path), CPU "cpu0/cache/index%d/shared_cpu_list", index);
    if (ew_root_read(root, path, text, sizeof(text)) == EW_OK && count_cpus(text) > 0)
        out->shared = count_cpus(text);
    return true;
}

static ew_err read_governor(struct ew_board *b, struct ew_cpu_facts *out)
{
    char text[64];
    static const char *const places[] = {CPU "cpufreq/policy0/scaling_governor",
                                         CPU "cpu0/cpufreq/scaling_governor"};
    for (size_t i = 0; i < EW_COUNT(places) && !out->governor; i++)
        if (ew_root_read(&b->root, places[i], text, sizeof(text)) == EW_OK) {
            out->governor = ew_arena_strdup(&b->arena, text);
            EW_CHECK(out->governor, EW_ERR_MEMORY, "no memory for the CPU's facts");
        }
    return EW_OK;
}

ew_err ew_cpu_facts_read(struct ew_board *b, struct ew_cpu_facts *out)
{
    *out = (struct ew_cpu_facts){0};
    EW_TRY(read_sets(b, out));
    EW_TRY(read_governor(b, out));
    while (out->n_caches < EW_MAX_CACHES &&
           read_cache(&b->root, out->n_caches, &out->caches[out->n_caches]))
        out->n_caches++;
    return EW_OK;
}
