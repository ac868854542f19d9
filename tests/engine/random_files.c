/* SPDX-License-Identifier: Apache-2.0 */
/* Writes random graphs as ONNX files: random_files FOLDER FIRST_SEED COUNT, for comparing with
 * other programs (bench/peers/run diff).  A graph that ONNX cannot say is left out. */
#include <stdio.h>
#include <stdlib.h>

#include "edgewise.h"
#include "random_graph.h"

static bool write_one(const char *folder, uint64_t seed)
{
    struct ew_graph *g = NULL;
    char path[512];
    snprintf(path, sizeof(path), "%s/random-%llu.onnx", folder, (unsigned long long)seed);
    /* A step between two quantised numbers is no difference that another program can be asked
     * about: quantised networks have a comparison of their own. */
    const struct ew_random_graph o = {.seed = seed, .no_quant = true};
    if (ew_random_graph(&o, &g) != EW_OK) {
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, ew_error_message());
        return false;
    }
    const bool written = ew_onnx_save(g, path, NULL) == EW_OK;
    ew_graph_free(g);
    return written;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "random_files FOLDER FIRST_SEED COUNT\n");
        return 2;
    }
    const uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    uint64_t written = 0;
    for (uint64_t i = 0; i < count; i++)
        written += write_one(argv[1], first + i);
    printf("%llu of %llu graphs written\n", (unsigned long long)written, (unsigned long long)count);
    return 0;
}
