/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of a training run. */
#include "cli/train_board.h"

#include <stdlib.h>

#include "base/log.h"
#include "cli/board_text.h"
#include "record/record.h"
#include "study/machine.h"

static ew_err describe(struct ew_board *b, struct ew_arena *a, const char **out)
{
    struct ew_machine_row row;
    struct ew_json j;
    char *text = NULL;
    EW_TRY(ew_machine_read(b, a, &row));
    ew_json_init_text(&j, &text);
    ew_json_object(&j, NULL);
    ew_record_json(&j, EW_RECORD_MACHINE, &row);
    ew_json_end(&j);
    EW_TRY(ew_json_finish(&j));
    *out = ew_arena_strdup(a, text);
    free(text);
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

ew_err ew_train_board_open(struct ew_arena *a, const char *power_from, struct ew_board **board,
                           const char **json)
{
    *board = NULL;
    *json = NULL;
    const ew_err err = ew_board_open(&(struct ew_board_opts){.power_from = power_from}, board);
    if (err != EW_OK && power_from)
        return err; /* requested by --power-from: not optional */
    if (err != EW_OK) {
        EW_WARN("%s; power is not measured", ew_error_message());
        *board = NULL;
        return EW_OK;
    }
    ew_board_recover(*board);
    return describe(*board, a, json);
}

void ew_train_board_close(struct ew_board *board)
{
    ew_board_close(board);
}
