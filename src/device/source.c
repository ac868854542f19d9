/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a board that are read repeatedly, and helpers of probes. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "device/sensor.h"

enum ew_absent ew_absent_of(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return EW_ABSENT_NO_PERMISSION;
    case EAGAIN:
    case EBUSY:
        return EW_ABSENT_NOT_READY;
    case ENOENT:
    case ENOTDIR:
        return EW_ABSENT_NO_SENSOR;
    case ENODEV:
    case ENXIO:
    case ESTALE:
        return EW_ABSENT_LOST;
    default: /* EINVAL, EOPNOTSUPP, EIO, ENODATA: not supported by the driver */
        return EW_ABSENT_UNSUPPORTED;
    }
}

/* The errno in a captured file; 0: ordinary text. */
static int captured_error(const char *text)
{
    static const struct {
        const char *name;
        int code;
    } known[] = {{"EACCES", EACCES}, {"EPERM", EPERM},   {"EAGAIN", EAGAIN},
                 {"EBUSY", EBUSY},   {"EINVAL", EINVAL}, {"ENODEV", ENODEV},
                 {"ENXIO", ENXIO},   {"EIO", EIO},       {"ENODATA", ENODATA}};
    if (text[0] != '!')
        return 0;
    for (size_t i = 0; i < EW_COUNT(known); i++)
        if (strcmp(text + 1, known[i].name) == 0)
            return known[i].code;
    return EIO;
}

static ew_err __attribute__((format(printf, 3, 0)))
format_path(struct ew_probe *p, const char **out, const char *fmt, va_list ap)
{
    char text[512];
    const int n = vsnprintf(text, sizeof(text), fmt, ap);
    EW_CHECK(n >= 0 && (size_t)n < sizeof(text), EW_ERR_LIMIT, "path too long: %.80s...", text);
    *out = ew_arena_strdup(p->arena, text);
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for a path");
    return EW_OK;
}

bool ew_source_open(struct ew_probe *p, struct ew_source *s, const char *fmt, ...)
{
    *s = (struct ew_source){.fd = -1, .captured = p->captured, .absent = EW_ABSENT_NO_SENSOR};
    va_list ap;
    va_start(ap, fmt);
    const ew_err named = format_path(p, &s->path, fmt, ap);
    va_end(ap);
    if (named != EW_OK)
        return false;
    if (ew_root_open_file(p->root, s->path, O_RDONLY, &s->fd) != EW_OK)
        s->absent = ew_absent_of(errno);
    else
        s->absent = EW_ABSENT_NOT;
    return s->absent != EW_ABSENT_NO_SENSOR;
}

void ew_source_close(struct ew_source *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

enum ew_absent ew_source_read(const struct ew_source *s, char *buf, size_t size)
{
    buf[0] = '\0';
    if (s->fd < 0)
        return s->absent;
    size_t used = 0;
    while (used + 1 < size) {
        const ssize_t n = pread(s->fd, buf + used, size - 1 - used, (off_t)used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ew_absent_of(errno);
        if (n == 0)
            break;
        used += (size_t)n;
    }
    while (used > 0 && isspace((unsigned char)buf[used - 1]))
        used--;
    buf[used] = '\0';
    const int error = s->captured ? captured_error(buf) : 0;
    return error ? ew_absent_of(error) : EW_ABSENT_NOT;
}

struct ew_sample_value ew_source_value(const struct ew_source *s, double scale)
{
    char text[64];
    const enum ew_absent absent = ew_source_read(s, text, sizeof(text));
    if (absent != EW_ABSENT_NOT)
        return ew_sample_value_absent(absent);
    text[strcspn(text, " \t\n@")] = '\0'; /* "32760 ma" and "40@1300" begin with the number */
    double v;
    if (!ew_num_float(text, &v) || !(v < 1e300 && v > -1e300))
        return ew_sample_value_absent(EW_ABSENT_BAD);
    return ew_sample_value_of(v * scale);
}

/* ---- Probes ---------------------------------------------------------------------------------- */

ew_err ew_probe_text(struct ew_probe *p, const char **out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const ew_err err = format_path(p, out, fmt, ap);
    va_end(ap);
    return err;
}

ew_err ew_probe_list(struct ew_probe *p, const char *path, const char *const **names, int *n)
{
    *n = 0;
    const ew_err err = ew_root_list(p->root, path, p->arena, names, n);
    return err == EW_ERR_MEMORY ? err : EW_OK;
}

/* k of before + k + after, or -1. */
static int number_in(const char *name, const char *before, const char *after)
{
    const size_t n = strlen(before);
    if (strncmp(name, before, n) != 0 || !isdigit((unsigned char)name[n]))
        return -1;
    char *end;
    const long k = strtol(name + n, &end, 10);
    return strcmp(end, after) == 0 && k < 10000 ? (int)k : -1;
}

ew_err ew_probe_numbers(struct ew_probe *p, const char *dir, const char *before, const char *after,
                        struct ew_numbers *out)
{
    const char *const *names;
    int n;
    out->n = 0;
    EW_TRY(ew_probe_list(p, dir, &names, &n));
    for (int i = 0; i < n && out->n < (int)EW_COUNT(out->k); i++) {
        const int k = number_in(names[i], before, after);
        int at = out->n;
        if (k < 0)
            continue;
        for (; at > 0 && out->k[at - 1] > k; at--) /* names are sorted as "1", "10", "2" */
            out->k[at] = out->k[at - 1];
        out->k[at] = k;
        out->n++;
    }
    return EW_OK;
}

bool ew_probe_read(struct ew_probe *p, char *buf, size_t size, const char *fmt, ...)
{
    char path[512];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(path, sizeof(path), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(path) || ew_root_read(p->root, path, buf, size) != EW_OK)
        return false;
    return !(p->captured && captured_error(buf));
}
