/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: nvpmodel.conf. */
#include <stdlib.h>
#include <string.h>

#include "device/nvpmodel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    struct ew_arena a;
    struct ew_nvpmodel m;
    ew_arena_init(&a);
    if (ew_nvpmodel_parse(&a, text, &m) == EW_OK)
        for (int i = 0; i < m.n_modes; i++) {
            const struct ew_nvpm_mode *mode = &m.modes[i];
            if (mode->first < 0 || mode->n < 0 || mode->first + mode->n > m.n_settings)
                abort();
            if (!ew_nvpmodel_find(&m, mode->name))
                abort();
            for (int k = 0; k < mode->n; k++)
                ew_nvpmodel_path(&m, &m.settings[mode->first + k]);
        }
    ew_arena_fini(&a);
    free(text);
    return 0;
}
