/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rate schedules. */
#include "train/schedule.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

const char *const ew_schedule_names[] = {
#define EW_SCHEDULE_NAME(id, name) name,
    EW_SCHEDULE_MAP(EW_SCHEDULE_NAME)
#undef EW_SCHEDULE_NAME
        NULL};

static double decay_at(const struct ew_schedule *s, int64_t epoch)
{
    int64_t drops = 0;
    if (s->kind == EW_SCHEDULE_STEP)
        drops = s->every > 0 ? epoch / s->every : 0;
    for (int i = 0; s->kind == EW_SCHEDULE_MULTISTEP && i < s->milestones.n; i++)
        drops += epoch >= s->milestones.v[i];
    return pow(s->gamma, (double)drops);
}

double ew_schedule_rate(const struct ew_schedule *s, int64_t step)
{
    const double per_epoch = s->steps_per_epoch > 0 ? (double)s->steps_per_epoch : 1;
    const double warm = s->warmup * per_epoch, at = (double)step;
    if (at < warm)
        return s->lr * (at + 1) / (warm + 1);
    if (s->kind == EW_SCHEDULE_CONSTANT)
        return s->lr;
    if (s->kind != EW_SCHEDULE_COSINE)
        return s->lr * decay_at(s, (int64_t)(at / per_epoch));
    const double left = (double)s->epochs * per_epoch - warm;
    const double share = left > 0 ? (at - warm) / left : 1;
    return s->lr * 0.5 * (1 + cos(pi * (share < 1 ? share : 1)));
}
