/* SPDX-License-Identifier: Apache-2.0 */
/* The power journal: a text file, one "path<TAB>old value" line per file, whole or not there. */
#include "device/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"

#define MAGIC         "edgewise power journal 1"
#define JOURNAL_BYTES (1 << 20)

static ew_err journal_path(const struct ew_root *root, const char *name, char out[512])
{
    const int n = snprintf(out, 512, "%s/%s", strcmp(root->path, "/") == 0 ? "" : root->path, name);
    EW_CHECK(n > 0 && n < 512, EW_ERR_LIMIT, "%s: path too long", root->path);
    return EW_OK;
}

void ew_journal_own(struct ew_journal *j)
{
    j->owner = (int)getpid();
    j->owner_start = ew_process_start(j->owner);
}

bool ew_journal_owner_alive(const struct ew_journal *j)
{
    return j->owner > 0 && ew_process_start(j->owner) == j->owner_start && j->owner_start >= 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static ew_err parse_line(struct ew_journal *j, char *line, bool *same_boot)
{
    char boot[EW_BOOT_CHARS];
    int keep;
    ew_process_boot(boot);
    char *tab = strchr(line, '\t');
    if (tab) {
        *tab = '\0';
        return ew_power_list_set(&j->old, line, tab + 1);
    }
    if (strncmp(line, "boot ", 5) == 0)
        *same_boot = strcmp(line + 5, boot) == 0;
    else if (sscanf(line, "owner %d %lld keep %d", &j->owner, &j->owner_start, &keep) == 3)
        j->keep = keep != 0;
    return EW_OK;
}

static ew_err parse(struct ew_journal *j, char *text, const char *path)
{
    bool same_boot = true;
    EW_CHECK(strncmp(text, MAGIC "\n", sizeof(MAGIC)) == 0, EW_ERR_FORMAT,
             "%s: not a power journal; remove it by hand", path);
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        EW_TRY(parse_line(j, line, &same_boot));
    j->there = same_boot; /* a reboot has put everything back already */
    return EW_OK;
}

ew_err ew_journal_read(const struct ew_root *root, struct ew_journal *j)
{
    memset(j, 0, sizeof(*j));
    char path[512], *text = NULL;
    size_t size;
    EW_TRY(journal_path(root, EW_POWER_JOURNAL, path));
    ew_err err = ew_file_read(path, JOURNAL_BYTES, &text, &size);
    if (err == EW_ERR_NOT_FOUND)
        return EW_OK;
    if (err == EW_OK)
        err = parse(j, text, path);
    free(text);
    if (err != EW_OK)
        ew_power_list_free(&j->old);
    return err;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static ew_err make_folders(const struct ew_root *root)
{
    static const char *const dirs[] = {"run", "run/edgewise"};
    for (size_t i = 0; i < EW_COUNT(dirs); i++) {
        char path[512];
        EW_TRY(journal_path(root, dirs[i], path));
        EW_CHECK(mkdir(path, 0755) == 0 || errno == EEXIST, EW_ERR_IO, "%s: %s", path,
                 strerror(errno));
    }
    return EW_OK;
}

ew_err ew_journal_write(const struct ew_root *root, const struct ew_journal *j)
{
    char path[512], boot[EW_BOOT_CHARS];
    EW_TRY(make_folders(root));
    EW_TRY(journal_path(root, EW_POWER_JOURNAL, path));
    ew_process_boot(boot);
    struct ew_file_out out;
    EW_TRY(ew_file_out_open(path, &out));
    fprintf(out.f, MAGIC "\nboot %s\nowner %d %lld keep %d\n", boot, j->owner, j->owner_start,
            j->keep);
    for (int i = 0; i < j->old.n; i++)
        fprintf(out.f, "%s\t%s\n", j->old.items[i].path, j->old.items[i].value);
    return ew_file_out_commit(&out);
}

int ew_journal_lock(const struct ew_root *root)
{
    char path[512];
    if (make_folders(root) != EW_OK || journal_path(root, EW_POWER_JOURNAL ".lock", path) != EW_OK)
        return -1;
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
        continue;
    return fd;
}

ew_err ew_journal_remove(const struct ew_root *root)
{
    char path[512];
    EW_TRY(journal_path(root, EW_POWER_JOURNAL, path));
    EW_CHECK(unlink(path) == 0 || errno == ENOENT, EW_ERR_IO, "%s: %s", path, strerror(errno));
    return EW_OK;
}
