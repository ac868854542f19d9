/* SPDX-License-Identifier: Apache-2.0 */
/* Sending and receiving epochs of jobs on other machines. */
#include "study/epoch_feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/field.h"
#include "base/file.h"

#define AT_ONCE    64     /* epochs that are sent at a time */
#define MOST_EPOCH 100000 /* limit for a running job: messages are not trusted */
#define TEXT_CHARS 128

/* ---- On the other machine ---- */

void ew_epoch_feed_begin(struct ew_epoch_feed *f, const char *words, size_t size)
{
    static const char option[] = "--db=";
    *f = (struct ew_epoch_feed){0};
    for (const char *p = words; p < words + size; p += strlen(p) + 1)
        if (strncmp(p, option, sizeof(option) - 1) == 0)
            snprintf(f->db, sizeof(f->db), "%s", p + sizeof(option) - 1);
}

/* Sends the fields of an epoch, a line each. */
static ew_err send_epoch(const struct ew_epoch_row *row, struct ew_frames *io)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    EW_CHECK(out, EW_ERR_MEMORY, "no memory for an epoch");
    for (const struct ew_field *f = ew_record_kind(EW_RECORD_EPOCH)->fields; f->name; f++) {
        char value[TEXT_CHARS];
        if (ew_field_absent(f, row))
            continue;
        ew_field_print(f, row, value, sizeof(value));
        fprintf(out, "%s=%s\n", f->name, value);
    }
    EW_CHECK(ew_memstream_close(out, &text), EW_ERR_MEMORY, "no memory for an epoch");
    const ew_err e = ew_frames_put_text(io, "epoch", text);
    free(text);
    return e;
}

static ew_err send_rows(struct ew_epoch_feed *f, struct ew_store *s, struct ew_frames *io)
{
    struct ew_arena a;
    struct ew_rows *rows;
    ew_err e = EW_OK;
    EW_TRY(ew_store_query(s, &rows,
                          "SELECT epoch.*, run.id AS number FROM epoch JOIN run ON run.id = "
                          "epoch.run WHERE run.status = 'running' AND (run.id > ?1 OR (run.id = "
                          "?1 AND epoch.epoch > ?2)) ORDER BY run.id, epoch.epoch LIMIT ?3",
                          "iii", f->run, f->epoch, (int64_t)AT_ONCE));
    ew_arena_init(&a);
    const int number = ew_rows_find(rows, "number");
    while (e == EW_OK && ew_rows_next(rows)) {
        struct ew_epoch_row row;
        e = ew_rows_read(rows, EW_RECORD_EPOCH, &a, &row);
        if (e == EW_OK)
            e = send_epoch(&row, io);
        f->run = ew_rows_int(rows, number);
        f->epoch = row.epoch;
    }
    ew_arena_fini(&a);
    const ew_err end = ew_rows_free(rows);
    return e == EW_OK ? end : e;
}

ew_err ew_epoch_feed_send(struct ew_epoch_feed *f, struct ew_frames *io)
{
    struct ew_store *s = NULL;
    if (!f->db[0] || ew_store_open(f->db, &(struct ew_store_opts){.read_only = true}, &s) != EW_OK)
        return EW_OK;
    const ew_err e = send_rows(f, s, io);
    ew_store_close(s);
    return e;
}

/* ---- On this machine ---- */

ew_err ew_epoch_feed_take(struct ew_store *s, int64_t run, const struct ew_frame *message)
{
    struct ew_epoch_row row;
    char *save = NULL;
    ew_record_clear(EW_RECORD_EPOCH, &row);
    for (char *line = strtok_r(message->data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *equals = strchr(line, '=');
        EW_CHECK(equals, EW_ERR_FORMAT, "an epoch has '%.40s'", line);
        *equals = '\0';
        const struct ew_field *f = ew_field_find(ew_record_kind(EW_RECORD_EPOCH)->fields, line);
        if (f)
            EW_TRY(ew_field_parse(f, equals + 1, &row));
    }
    EW_CHECK(row.epoch >= 1 && row.epoch <= MOST_EPOCH, EW_ERR_FORMAT, "epoch %lld cannot be",
             (long long)row.epoch);
    return ew_store_put(s, EW_RECORD_EPOCH, run, &row);
}
