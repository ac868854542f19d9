/* SPDX-License-Identifier: Apache-2.0 */
/* The board's identity: device tree, DMI, L4T release, CPU, kernel. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "device/board.h"
#include "device/cpulist.h"

/* A file's text in the arena; NULL where it is not there or empty. */
static const char *text_of(struct ew_board *b, const char *path)
{
    char text[4096];
    if (ew_root_read(&b->root, path, text, sizeof(text)) != EW_OK || !text[0] || text[0] == '!')
        return NULL;
    ew_utf8_sanitize(text);
    return ew_arena_strdup(&b->arena, text);
}

/* "nvidia,p3668\0nvidia,tegra194\0" with spaces instead of the zeros. */
static const char *strings_of(struct ew_board *b, const char *path)
{
    int fd;
    if (ew_root_open_file(&b->root, path, O_RDONLY, &fd) != EW_OK)
        return NULL;
    char text[1024];
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return NULL;
    for (ssize_t i = 0; i < n; i++)
        if (text[i] == '\0' || text[i] == '\n')
            text[i] = ' ';
    size_t end = (size_t)n;
    while (end > 0 && text[end - 1] == ' ')
        end--;
    text[end] = '\0';
    ew_utf8_sanitize(text);
    return ew_arena_strdup(&b->arena, text);
}

/* The value of the first "key : value" line of /proc/cpuinfo with this key. */
static const char *cpuinfo(struct ew_board *b, const char *text, const char *key)
{
    for (const char *p = text; (p = strstr(p, key)); p++) {
        const char *colon = p + strlen(key);
        colon += strspn(colon, " \t");
        if (*colon != ':' || (p != text && p[-1] != '\n'))
            continue;
        colon++;
        colon += strspn(colon, " \t");
        char *value = ew_arena_printf(&b->arena, "%.*s", (int)strcspn(colon, "\n"), colon);
        if (value)
            ew_utf8_sanitize(value);
        return value;
    }
    return NULL;
}

/* Arm gives numbers only; these are the cores of the boards that have a profile. */
static const char *arm_core(const char *part)
{
    static const struct {
        const char *part, *name;
    } known[] = {{"0xd03", "Cortex-A53"}, {"0xd07", "Cortex-A57"},   {"0xd08", "Cortex-A72"},
                 {"0xd0b", "Cortex-A76"}, {"0xd42", "Cortex-A78AE"}, {"0x004", "Carmel"},
                 {"0x003", "Denver 2"}};
    for (size_t i = 0; i < EW_COUNT(known); i++)
        if (strcmp(known[i].part, part) == 0)
            return known[i].name;
    return NULL;
}

static void read_cpu(struct ew_board *b)
{
    char text[8192];
    int fd;
    if (ew_root_open_file(&b->root, "proc/cpuinfo", O_RDONLY, &fd) != EW_OK)
        return;
    const ssize_t n = read(fd, text, sizeof(text) - 1); /* the first core is enough */
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    b->id.cpu = cpuinfo(b, text, "model name");
    const char *part = cpuinfo(b, text, "CPU part");
    if (part && arm_core(part))
        b->id.cpu = arm_core(part);
    const char *flags = cpuinfo(b, text, "flags");
    b->id.virtual_machine = flags && strstr(flags, " hypervisor");
}

/* "# R35 (release), REVISION: 4.1, ..." -> "R35.4.1" */
static void read_release(struct ew_board *b)
{
    const char *text = text_of(b, "etc/nv_tegra_release");
    const char *major = text ? strstr(text, "# R") : NULL;
    const char *minor = text ? strstr(text, "REVISION: ") : NULL;
    if (!major || !minor)
        return;
    major += 3;
    minor += strlen("REVISION: ");
    b->id.release = ew_arena_printf(&b->arena, "R%.*s.%.*s", (int)strspn(major, "0123456789"),
                                    major, (int)strspn(minor, "0123456789."), minor);
    const long l4t = strtol(major, NULL, 10);
    b->id.jetpack = l4t >= 38 ? 7 : l4t >= 36 ? 6 : l4t >= 34 ? 5 : l4t >= 31 ? 4 : 0;
}

ew_err ew_board_identify(struct ew_board *b)
{
    struct ew_board_id *id = &b->id;
    id->model = strings_of(b, "proc/device-tree/model");
    if (!id->model)
        id->model = text_of(b, "sys/class/dmi/id/product_name");
    id->compatible = strings_of(b, "proc/device-tree/compatible");
    id->kernel = text_of(b, "proc/sys/kernel/osrelease");
    read_cpu(b);
    read_release(b);
    struct ew_cpulist list;
    id->cores = ew_cpulist_read(&b->root, "present", &list) ? list.n : 0;
    id->online = ew_cpulist_read(&b->root, "online", &list) ? list.n : 0;
    return EW_OK;
}
