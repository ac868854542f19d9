/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: experiment files.  Accepted ones have jobs, each with a hash and a command line. */
#include <stdlib.h>
#include <string.h>

#include "study/study_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ew_study *s)
{
    for (int i = 0; i < s->n_jobs; i++) {
        const struct ew_study_job *j = &s->jobs[i];
        char value[EW_STUDY_VALUE];
        if (strlen(j->row.id) != EW_RECORD_ID_CHARS - 1 || !j->argv[0] || j->argv[j->n_argv])
            abort();
        if (!ew_study_value(j, "workers", value))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    for (int quick = 0; quick < 2; quick++) {
        struct ew_arena a;
        struct ew_study s;
        ew_arena_init(&a);
        if (kit_parse(&a, text, quick == 1, NULL, &s) == EW_OK)
            check(&s);
        ew_arena_fini(&a);
    }
    free(text);
    return 0;
}
