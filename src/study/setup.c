/* SPDX-License-Identifier: Apache-2.0 */
/* What a study needs before its first job: data sets and networks that other commands make.  A line
 * is "PATH | words"; in the words {} stands for a name beside PATH, which becomes PATH when all is
 * well: what was killed half-way is not taken for the whole. */
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
static ew_err run_words(const char *program, struct ew_arena *a, const char *part,
                        const char *words, struct ew_child *child)
{
    const char **list, **argv;
    int n;
    EW_TRY(ew_study_words(a, words, &list, &n));
    argv = ew_arena_array(a, (size_t)n + 2, sizeof(*argv));
    EW_CHECK(argv, EW_ERR_MEMORY, "no memory for a study");
    argv[0] = program;
    for (int i = 0; i < n; i++)
        argv[i + 1] = strcmp(list[i], "{}") == 0 ? part : list[i];
    return ew_child_run(argv, "", child);
}

/* In a folder of our own beside `path`, and then under its name. */
static ew_err make(const char *program, struct ew_arena *a, const char *path, const char *words)
{
    struct ew_child child;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *folder = ew_arena_printf(a, "%.*s.%s.part", (int)(base - path), path, base);
    const char *part = ew_arena_printf(a, "%s/%s", folder ? folder : "", base);
    EW_CHECK(folder && part, EW_ERR_MEMORY, "no memory for a study");
    EW_TRY(ew_owned_make(folder));
    ew_err err = run_words(program, a, part, words, &child);
    if (err == EW_OK && !(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0))
        err = ew_fail(EW_ERR_IO, "%s: cannot be made: %s", path, child.said);
    if (err == EW_OK)
        err = ew_owned_publish(part, path);
    ew_owned_remove(folder);
    return err;
}

ew_err ew_runner_setup(const struct ew_study *study, const char *program, struct ew_arena *a,
                       bool run, const char **what)
{
    *what = NULL;
    char *text = ew_arena_strdup(a, study->setup ? study->setup : ""), *save = NULL;
    EW_CHECK(text, EW_ERR_MEMORY, "no memory for a study");
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *path, *words;
        EW_CHECK(cut_line(line, &path, &words), EW_ERR_FORMAT,
                 "%s: setup: '%.60s' is not PATH | words", study->name, line);
        if (access(path, F_OK) == 0)
            continue;
        *what = path;
        return run ? make(program, a, path, words) : EW_OK;
    }
    return EW_OK;
}
