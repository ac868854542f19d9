/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of widths in files. */
#include "network/width_list.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"

#define MAX_BYTES (1 << 20)

static void drop_remarks(char *text)
{
    for (char *at = text; (at = strchr(at, '#'));)
        while (*at && *at != '\n')
            *at++ = ' ';
}

ew_err ew_width_list_read(const char *path, int32_t *widths, int max, int *n)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size;
    char *rest = NULL;
    EW_TRY(ew_file_read(path, MAX_BYTES, &text, &size));
    EW_CHECK(strlen(text) == size, EW_ERR_FORMAT, "%s: not a list of widths", path);
    drop_remarks(text);
    *n = 0;
    for (char *word = strtok_r(text, " ,;\t\r\n", &rest); word;
         word = strtok_r(NULL, " ,;\t\r\n", &rest)) {
        int64_t v;
        EW_CHECK(ew_num_int(word, &v) && v >= 1 && v < 1 << 24, EW_ERR_FORMAT,
                 "%s: width %d is '%.40s', not a number of filters", path, *n + 1, word);
        EW_CHECK(*n < max, EW_ERR_LIMIT, "%s: more than %d widths", path, max);
        widths[(*n)++] = (int32_t)v;
    }
    EW_CHECK(*n > 0, EW_ERR_FORMAT, "%s: has no widths", path);
    return EW_OK;
}

ew_err ew_width_list_write(const char *path, const char *about, const int32_t *widths, int n)
{
    struct ew_file_out o;
    EW_TRY(ew_file_out_open(path, &o));
    fprintf(o.f, "# %s\n", about);
    for (int i = 0; i < n; i++)
        fprintf(o.f, "%d%c", (int)widths[i], i + 1 < n ? ' ' : '\n');
    return ew_file_out_commit(&o);
}
