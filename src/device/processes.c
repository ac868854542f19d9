/* SPDX-License-Identifier: Apache-2.0 */
/* Processes from /proc: CPU time and memory, and their use since the last reading. */
#include "device/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

/* Parses "PID (NAME) STATE ..." of proc(5); the name may contain any characters, also ')' and
 * blanks. */
static bool parse(char *text, struct ew_process *out)
{
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    unsigned long long user, sys, pages;
    if (!open || !close || close < open ||
        sscanf(close + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u "
               "%*u %llu",
               &user, &sys, &pages) != 3)
        return false;
    *close = '\0';
    snprintf(out->name, sizeof(out->name), "%s", open + 1);
    out->ticks = (double)user + (double)sys;
    out->rss = (int64_t)pages * sysconf(_SC_PAGESIZE);
    return true;
}

static const struct ew_process *find(const struct ew_process *list, int n, int pid)
{
    int low = 0, high = n;
    while (low < high) {
        const int mid = (low + high) / 2;
        if (list[mid].pid < pid)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && list[low].pid == pid ? &list[low] : NULL;
}

static void add_load(const struct ew_processes *p, struct ew_process *x)
{
    const struct ew_process *before = find(p->before, p->n_before, x->pid);
    const double seconds = (double)(p->now_ns - p->before_ns) * 1e-9;
    x->load = -1;
    if (before && seconds > 0 && x->ticks >= before->ticks)
        x->load = 100 * (x->ticks - before->ticks) / (double)sysconf(_SC_CLK_TCK) / seconds;
}

static ew_err add(struct ew_processes *p, const struct ew_root *root, int pid)
{
    char path[64], text[1024];
    struct ew_process x = {.pid = pid};
    snprintf(path, sizeof(path), "proc/%d/stat", pid);
    if (ew_root_read(root, path, text, sizeof(text)) != EW_OK || !parse(text, &x))
        return EW_OK; /* it has ended */
    add_load(p, &x);
    EW_TRY(ew_grow((void **)&p->now, &p->cap_now, p->n_now + 1, sizeof(*p->now)));
    p->now[p->n_now++] = x;
    return EW_OK;
}

static int by_pid(const void *a, const void *b)
{
    const struct ew_process *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

ew_err ew_processes_read(struct ew_processes *p, const struct ew_root *root)
{
    struct ew_process *list = p->before;
    const int cap = p->cap_before;
    p->before = p->now, p->n_before = p->n_now, p->cap_before = p->cap_now;
    p->now = list, p->n_now = 0, p->cap_now = cap;
    p->before_ns = p->now_ns;
    p->now_ns = ew_clock_ns();
    int fd;
    if (ew_root_open_file(root, "proc", O_RDONLY | O_DIRECTORY, &fd) != EW_OK)
        return EW_OK;
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return EW_OK;
    }
    ew_err e = EW_OK;
    for (const struct dirent *f; e == EW_OK && (f = readdir(d));)
        if (isdigit((unsigned char)f->d_name[0]))
            e = add(p, root, atoi(f->d_name));
    closedir(d);
    if (p->n_now)
        qsort(p->now, (size_t)p->n_now, sizeof(*p->now), by_pid);
    return e;
}

/* Larger values first; ties by age, so that lines keep their order. */
static bool before_in_list(const struct ew_process *a, const struct ew_process *b, bool by_memory)
{
    if (by_memory && a->rss != b->rss)
        return a->rss > b->rss;
    if (!by_memory && (a->load > b->load || a->load < b->load))
        return a->load > b->load;
    return a->pid < b->pid;
}

ew_err ew_processes_sort(struct ew_processes *p, bool by_memory)
{
    EW_TRY(ew_grow((void **)&p->order, &p->cap_order, p->n_now + 1, sizeof(*p->order)));
    p->n_order = 0;
    for (int i = 0; i < p->n_now; i++) { /* insertion sort: few processes have load */
        int at = p->n_order++;
        for (; at > 0 && before_in_list(&p->now[i], &p->now[p->order[at - 1]], by_memory); at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = i;
    }
    return EW_OK;
}

void ew_processes_fini(struct ew_processes *p)
{
    free(p->now);
    free(p->before);
    free(p->order);
    *p = (struct ew_processes){0};
}
