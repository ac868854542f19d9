/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the machine that a job asks for: whether they are possible here, and the command that
 * makes them.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "device/nvpmodel.h"
#include "device/powermode.h"
#include "study/runner.h"

static bool asks(const struct ew_study_power *p)
{
    return p->mode || p->dvfs || p->cores || p->cpu_mhz || p->gpu_mhz || p->mem_mhz || p->fan;
}

static int64_t number(const char *text)
{
    int64_t v = 0;
    return text && ew_num_int(text, &v) ? v : 0;
}

static ew_err find_changes(struct ew_board *b, const struct ew_study_power *p,
                           struct ew_power_list *out)
{
    struct ew_nvpmodel nvp = {0};
    const ew_err err = ew_nvpmodel_read(&b->root, &b->arena, &nvp);
    if (err != EW_ERR_NOT_FOUND)
        EW_TRY(err);
    const int dvfs = p->dvfs ? strcmp(p->dvfs, "on") == 0 : -1;
    const struct ew_power_want want = {number(p->cores),
                                       number(p->cpu_mhz),
                                       number(p->gpu_mhz),
                                       number(p->mem_mhz),
                                       dvfs,
                                       p->fan && strcmp(p->fan, "full") == 0};
    return p->mode ? ew_powermode_named(b, &nvp, p->mode, &want, out)
                   : ew_powermode_custom(b, &want, out);
}

/* Opening a file of sysfs for writing changes nothing. */
static ew_err check_writable(const struct ew_board *b, const struct ew_power_list *changes)
{
    EW_CHECK(changes->n > 0, EW_ERR_UNSUPPORTED, "there is no clock here that can be set");
    for (int i = 0; i < changes->n; i++) {
        int fd;
        EW_TRY(ew_root_open_file(&b->root, changes->items[i].path, O_WRONLY, &fd));
        close(fd);
    }
    return EW_OK;
}

static void add_word(const char **words, int max, int *n, const char *word)
{
    if (*n < max)
        words[(*n)++] = word;
}

ew_err ew_runner_power(struct ew_board *b, const struct ew_study_power *p, const char **words,
                       int max, int *n)
{
    *n = 0;
    if (!asks(p))
        return EW_OK;
    struct ew_power_list changes = {0};
    ew_err err = find_changes(b, p, &changes);
    if (err == EW_OK)
        err = check_writable(b, &changes);
    ew_power_list_free(&changes);
    EW_TRY(err);
    add_word(words, max, n, "power");
    add_word(words, max, n, "set");
    if (p->mode)
        add_word(words, max, n, p->mode);
    const char *const flags[] = {"--dvfs",    "--cores",   "--cpu-mhz",
                                 "--gpu-mhz", "--mem-mhz", "--fan"};
    const char *const values[] = {p->dvfs, p->cores, p->cpu_mhz, p->gpu_mhz, p->mem_mhz, p->fan};
    for (size_t i = 0; i < EW_COUNT(flags); i++)
        if (values[i]) {
            add_word(words, max, n, flags[i]);
            add_word(words, max, n, values[i]);
        }
    add_word(words, max, n, "--");
    EW_CHECK(*n < max, EW_ERR_LIMIT, "too many power settings in one job");
    return EW_OK;
}
