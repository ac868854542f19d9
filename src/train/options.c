/* SPDX-License-Identifier: Apache-2.0 */
/* Options and progress of a training run. */
#include "train/options.h"

#include <stdio.h>

#include "base/file.h"
#include "base/ini.h"
#include "base/mem.h"

#define LINE_CHARS 4096

struct ew_optimizer ew_train_optimizer(const struct ew_train_opts *o)
{
    return (struct ew_optimizer){.kind = (enum ew_optimizer_kind)o->optimizer,
                                 .lr = o->lr,
                                 .momentum = o->momentum,
                                 .weight_decay = o->weight_decay,
                                 .beta1 = 0.9,
                                 .beta2 = 0.999,
                                 .eps = 1e-8};
}

struct ew_schedule ew_train_schedule(const struct ew_train_opts *o, int64_t steps_per_epoch)
{
    return (struct ew_schedule){.kind = o->schedule,
                                .lr = o->lr,
                                .warmup = o->warmup,
                                .gamma = o->gamma,
                                .every = o->step_epochs,
                                .milestones = o->milestones,
                                .epochs = o->epochs,
                                .steps_per_epoch = steps_per_epoch};
}

/* ---- Position ---- */

#define POSITION(member, kind)                                                                     \
    {                                                                                              \
        .name = #member, .type = kind, .offset = offsetof(struct ew_train_position, member)        \
    }
#define ROWS(field, file)                                                                          \
    {                                                                                              \
        .name = #field, .type = EW_FIELD_INT,                                                      \
        .offset = offsetof(struct ew_train_position, rows_bytes[EW_ROWS_##file])                   \
    }
#define TIMES(part)                                                                                \
    POSITION(part.wall_s, EW_FIELD_FLOAT), POSITION(part.compute_s, EW_FIELD_FLOAT),               \
        POSITION(part.stall_s, EW_FIELD_FLOAT), POSITION(part.overhead_s, EW_FIELD_FLOAT),         \
        POSITION(part.comm_s, EW_FIELD_FLOAT), POSITION(part.hidden_s, EW_FIELD_FLOAT),            \
        POSITION(part.fetch_s, EW_FIELD_FLOAT), POSITION(part.decode_s, EW_FIELD_FLOAT),           \
        POSITION(part.augment_s, EW_FIELD_FLOAT)

#define SCORES(part)                                                                               \
    POSITION(part.accuracy, EW_FIELD_FLOAT), POSITION(part.precision, EW_FIELD_FLOAT),             \
        POSITION(part.recall, EW_FIELD_FLOAT), POSITION(part.f1, EW_FIELD_FLOAT),                  \
        POSITION(part.loss, EW_FIELD_FLOAT), POSITION(part.samples, EW_FIELD_INT)

const struct ew_field ew_train_position_fields[] = {POSITION(epoch, EW_FIELD_INT),
                                                    POSITION(batch, EW_FIELD_INT),
                                                    POSITION(step, EW_FIELD_INT),
                                                    TIMES(now),
                                                    TIMES(all),
                                                    POSITION(loss_sum, EW_FIELD_FLOAT),
                                                    POSITION(right, EW_FIELD_INT),
                                                    POSITION(counted, EW_FIELD_INT),
                                                    POSITION(images, EW_FIELD_INT),
                                                    POSITION(images_all, EW_FIELD_INT),
                                                    POSITION(read_bytes, EW_FIELD_INT),
                                                    POSITION(read_ops, EW_FIELD_INT),
                                                    POSITION(bad, EW_FIELD_INT),
                                                    POSITION(eval_s, EW_FIELD_FLOAT),
                                                    POSITION(checkpoint_s, EW_FIELD_FLOAT),
                                                    POSITION(energy_j, EW_FIELD_FLOAT),
                                                    POSITION(energy_epochs, EW_FIELD_INT),
                                                    POSITION(best_epoch, EW_FIELD_INT),
                                                    POSITION(validations, EW_FIELD_INT),
                                                    SCORES(best),
                                                    SCORES(last),
                                                    POSITION(loss_scale, EW_FIELD_FLOAT),
                                                    POSITION(loss_scale_good, EW_FIELD_INT),
                                                    POSITION(parts, EW_FIELD_INT),
                                                    POSITION(data_samples, EW_FIELD_INT),
                                                    ROWS(epochs_bytes, EPOCHS_CSV),
                                                    ROWS(epochs_json_bytes, EPOCHS_JSON),
                                                    ROWS(batches_csv_bytes, BATCHES_CSV),
                                                    ROWS(batches_bytes, BATCHES_JSON),
                                                    EW_FIELD_END};

/* True for a field without a default that was never set. */
static bool is_unset(const struct ew_field *f, const void *object)
{
    const void *at = (const char *)object + f->offset;
    if (f->def)
        return false;
    if (f->type == EW_FIELD_STR || f->type == EW_FIELD_FLOAT)
        return ew_field_absent(f, object);
    if (f->type == EW_FIELD_INTS)
        return ((const struct ew_ints *)at)->n == 0;
    return (f->type == EW_FIELD_INT || f->type == EW_FIELD_SIZE) && f->min > 0 &&
           *(const int64_t *)at == 0;
}

ew_err ew_fields_text(const struct ew_field *table, const void *object, char **out)
{
    char line[LINE_CHARS];
    size_t size;
    FILE *f = open_memstream(out, &size);
    EW_CHECK(f, EW_ERR_MEMORY, "no memory for the options' text");
    for (; table->name; table++) {
        if (is_unset(table, object))
            continue;
        ew_field_print(table, object, line, sizeof(line));
        fprintf(f, "%s = %s\n", table->name, line);
    }
    EW_CHECK(ew_memstream_close(f, out), EW_ERR_MEMORY, "no memory for the options' text");
    return EW_OK;
}

ew_err ew_fields_from_text(const struct ew_field *table, char *text, const char *what, void *object)
{
    struct ew_ini ini;
    ew_ini_init(&ini, text, what);
    while (ew_ini_next(&ini)) {
        const struct ew_field *f = ini.key ? ew_field_find(table, ini.key) : NULL;
        if (f && ew_field_parse(f, ini.value, object) != EW_OK)
            return ew_fail_in(EW_ERR_FORMAT, "%s", what);
    }
    return ini.err;
}
