/* SPDX-License-Identifier: Apache-2.0 */
/* Setup of a study: data sets and networks that other commands make before the first job.  A line
 * is "PATH | words"; in the words {} stands for a temporary name beside PATH, renamed to PATH on
 * success, so that interrupted work is not mistaken for a result; {db} stands for the study's
 * database. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/owned.h"
#include "study/child.h"
#include "study/runner.h"

/* The line's path and words, cut; false: there is no '|' in it. */
static bool cut_line(char *line, char **path, char **words)
{
    char *bar = strchr(line, '|');
    if (!bar)
        return false;
    *bar = '\0';
    *path = line + strspn(line, " \t");
    (*path)[strcspn(*path, " \t")] = '\0';
    *words = bar + 1;
    return **path != '\0';
}

/* Runs the words, which write `part`. */
static ew_err run_words(const struct ew_setup_opts *by, struct ew_arena *a, const char *part,
                        const char *words, struct ew_child *child)
{
    const char **list, **argv;
    int n;
    EW_TRY(ew_study_words(a, words, &list, &n));
    argv = ew_arena_array(a, (size_t)n + 2, sizeof(*argv));
    EW_CHECK(argv, EW_ERR_MEMORY, "no memory for a study");
    argv[0] = by->program;
    for (int i = 0; i < n; i++)
        argv[i + 1] = strcmp(list[i], "{}") == 0     ? part
                      : strcmp(list[i], "{db}") == 0 ? by->db
                                                     : list[i];
    return ew_child_run(argv, "", child);
}

/* Makes it in a temporary folder beside `path`, then renames it. */
static ew_err make(const struct ew_setup_opts *by, struct ew_arena *a, const char *path,
                   const char *words)
{
    struct ew_child child;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *folder = ew_arena_printf(a, "%.*s.%s.part", (int)(base - path), path, base);
    const char *part = ew_arena_printf(a, "%s/%s", folder ? folder : "", base);
    EW_CHECK(folder && part, EW_ERR_MEMORY, "no memory for a study");
    EW_TRY(ew_owned_make(folder));
    ew_err err = run_words(by, a, part, words, &child);
    if (err == EW_OK && !(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0))
        err = ew_fail(EW_ERR_IO, "%s: cannot be made: %s", path, child.said);
    if (err == EW_OK)
        err = ew_owned_publish(part, path);
    ew_owned_remove(folder);
    return err;
}

static size_t count_lines(const char *text)
{
    size_t n = 1;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* A line of the setup. */
struct line {
    char *path, *words;
    bool needed;
};

static bool jobs_name(const struct ew_study *study, const char *path)
{
    for (int i = 0; i < study->n_jobs; i++)
        for (int k = 0; k < study->jobs[i].n_argv; k++)
            if (strstr(study->jobs[i].argv[k], path))
                return true;
    return false;
}

/* Marks the needed lines: all, or with --only those that the remaining jobs name, and the lines
 * that these name in turn. */
static void find_needed(const struct ew_study *study, struct line *lines, int n)
{
    for (int i = 0; i < n; i++)
        lines[i].needed = !study->partial || jobs_name(study, lines[i].path);
    for (int i = n - 1; i > 0; i--) /* a line needs earlier ones */
        for (int k = 0; k < i && lines[i].needed; k++)
            lines[k].needed = lines[k].needed || strstr(lines[i].words, lines[k].path);
}

ew_err ew_runner_setup(const struct ew_study *study, const struct ew_setup_opts *by,
                       struct ew_arena *a, const char **what)
{
    *what = NULL;
    char *text = ew_arena_strdup(a, study->setup ? study->setup : ""), *save = NULL;
    struct line *lines = text ? ew_arena_array(a, count_lines(text), sizeof(*lines)) : NULL;
    int n = 0;
    EW_CHECK(lines, EW_ERR_MEMORY, "no memory for a study");
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save), n++)
        EW_CHECK(cut_line(l, &lines[n].path, &lines[n].words), EW_ERR_FORMAT,
                 "%s: setup: '%.60s' is not PATH | words", study->name, l);
    find_needed(study, lines, n);
    for (int i = 0; i < n; i++) {
        if (!lines[i].needed || access(lines[i].path, F_OK) == 0)
            continue;
        *what = lines[i].path;
        return by ? make(by, a, lines[i].path, lines[i].words) : EW_OK;
    }
    return EW_OK;
}
