/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that jobs write into, and outputs that are kept. */
#include "study/outputs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/owned.h"

/* ---- Names ----------------------------------------------------------------------------------- */

/* `path` without "." and empty parts and a slash at its end; false: it has "..", or is too long. */
static bool plain_path(const char *path, char out[EW_OUTPUT_CHARS])
{
    size_t n = 0;
    if (*path == '/')
        out[n++] = '/';
    while (*path) {
        const size_t part = strcspn(path, "/");
        const bool dot = part == 1 && path[0] == '.';
        if (part == 2 && strncmp(path, "..", 2) == 0)
            return false;
        if (part && !dot) {
            if (n + part + 2 > EW_OUTPUT_CHARS)
                return false;
            if (n && out[n - 1] != '/')
                out[n++] = '/';
            memcpy(out + n, path, part);
            n += part;
        }
        path += part + (path[part] == '/');
    }
    out[n] = '\0';
    return n > 0;
}

/* The longest existing part of `path`, symbolic links followed. */
static bool existing_part(const char *path, char real[PATH_MAX])
{
    char part[EW_OUTPUT_CHARS];
    snprintf(part, sizeof(part), "%s", path);
    while (!realpath(part, real)) {
        char *slash = strrchr(part, '/');
        if (slash == part)
            slash[1] = '\0';
        else if (slash)
            *slash = '\0';
        else
            snprintf(part, sizeof(part), ".");
    }
    return true;
}

/* Refuses a path outside of the current folder, symbolic links followed. */
static ew_err check_inside(const char *what, const char *path)
{
    char plain[EW_OUTPUT_CHARS], here[PATH_MAX], real[PATH_MAX];
    EW_CHECK(realpath(".", here), EW_ERR_IO, "the current folder: %s", strerror(errno));
    const size_t n = strcmp(here, "/") == 0 ? 0 : strlen(here);
    const bool inside = plain_path(path, plain) && existing_part(plain, real) &&
                        strncmp(real, here, n) == 0 && (real[n] == '/' || !real[n]);
    EW_CHECK(inside, EW_ERR_FORMAT,
             "%s '%s' is not a name inside this folder; --allow-outside lets the study write "
             "elsewhere",
             what, path);
    return EW_OK;
}

/* Whether the paths are equal or one lies inside the other. */
static bool overlap(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b), k = n < m ? n : m;
    if (strncmp(a, b, k) != 0)
        return false;
    return n == m || (n > m ? a : b)[k] == '/';
}

static ew_err check_keep(const struct ew_study *s, int at, char (*names)[EW_OUTPUT_CHARS])
{
    const struct ew_study_job *j = &s->jobs[at];
    names[at][0] = '\0';
    if (!j->keep)
        return EW_OK;
    if (!plain_path(j->keep,
                    names[at])) /* outside of the folder, which is allowed: kept as written */
        snprintf(names[at], EW_OUTPUT_CHARS, "%s", j->keep);
    for (int i = 0; i < at; i++)
        EW_CHECK(!*names[i] || strcmp(s->jobs[i].row.id, j->row.id) == 0 ||
                     !overlap(names[i], names[at]),
                 EW_ERR_FORMAT,
                 "%s: two jobs would keep their output as '%s' (sections [%s] and [%s]); use "
                 "settings in the name, as in keep = out/{network}-{batch}",
                 s->name, j->keep, s->jobs[i].label, j->label);
    return EW_OK;
}

static ew_err check_setup(const struct ew_study *s)
{
    char path[EW_OUTPUT_CHARS];
    for (const char *line = s->setup; line && *line;) {
        line += strspn(line, " \t\n");
        snprintf(path, sizeof(path), "%.*s", (int)strcspn(line, " \t|\n"), line);
        if (*path)
            EW_TRY(ew_fail_in(check_inside("setup", path), "%s", s->name));
        line = strchr(line, '\n');
    }
    return EW_OK;
}

ew_err ew_output_check(const struct ew_study *s, bool outside)
{
    char(*names)[EW_OUTPUT_CHARS] = calloc((size_t)s->n_jobs + 1, sizeof(*names));
    EW_CHECK(names, EW_ERR_MEMORY, "%s: no memory for a study", s->name);
    ew_err err = outside ? EW_OK : check_setup(s);
    for (int i = 0; err == EW_OK && i < s->n_jobs; i++) {
        if (s->jobs[i].keep && !outside)
            err = ew_fail_in(check_inside("keep", s->jobs[i].keep), "%s: [%s]", s->name,
                             s->jobs[i].label);
        if (err == EW_OK)
            err = check_keep(s, i, names);
    }
    free(names);
    return err;
}

/* ---- One job --------------------------------------------------------------------------------- */

ew_err ew_output_find(const struct ew_study *s, const struct ew_study_job *j, const char *scratch,
                      struct ew_output *out)
{
    *out = (struct ew_output){.keep = NULL};
    const struct ew_field *f = ew_field_find(j->fields, "output");
    if (!f || ew_study_given(j, "seconds"))
        return EW_OK;
    out->keep = j->repeat == 0 ? j->keep : NULL;
    const bool onnx = f->metavar && strcmp(f->metavar, "FILE.onnx") == 0;
    const char *keep = out->keep, *slash = keep ? strrchr(keep, '/') : NULL;
    const char *base = slash ? slash + 1 : keep;
    int n;
    if (keep) { /* beside its name, so that it is on the same disk */
        EW_CHECK(*base && strcmp(base, ".") != 0 && strcmp(base, "..") != 0, EW_ERR_FORMAT,
                 "%s: [%s]: keep = '%s' is not a name for a new file or folder", s->name, j->label,
                 keep);
        n = snprintf(out->folder, sizeof(out->folder), "%.*s.%s-%s.part", (int)(base - keep), keep,
                     s->name, j->row.id);
    } else {
        n = snprintf(out->folder, sizeof(out->folder), "%s/%s-%s-%lld", scratch ? scratch : ".",
                     s->name, j->row.id, (long long)j->repeat);
    }
    const int m =
        snprintf(out->path, sizeof(out->path), "%.*s/%s", EW_OUTPUT_CHARS - 1, out->folder,
                 keep   ? base
                 : onnx ? "output.onnx"
                        : "output");
    EW_CHECK(n > 0 && n < EW_OUTPUT_CHARS && m < EW_OUTPUT_CHARS, EW_ERR_LIMIT,
             "%s: the path is too long", s->name);
    return EW_OK;
}

ew_err ew_output_check_free(const struct ew_study *s, const struct ew_study_job *j)
{
    struct stat st;
    EW_CHECK(!j->keep || j->repeat > 0 || lstat(j->keep, &st) != 0, EW_ERR_ARG,
             "%s: [%s]: keep = '%s' exists already, and a study overwrites nothing; move it away "
             "or choose another name",
             s->name, j->label, j->keep);
    return EW_OK;
}

ew_err ew_output_begin(const struct ew_output *o)
{
    return *o->folder ? ew_owned_make(o->folder) : EW_OK;
}

ew_err ew_output_keep(const struct ew_output *o)
{
    const ew_err err =
        o->keep && access(o->path, F_OK) == 0 ? ew_owned_publish(o->path, o->keep) : EW_OK;
    if (err != EW_OK)
        return ew_fail_in(err, "the output stays at %s", o->path);
    ew_output_drop(o);
    return EW_OK;
}

void ew_output_drop(const struct ew_output *o)
{
    if (*o->folder)
        ew_owned_remove(o->folder);
}
