/* SPDX-License-Identifier: Apache-2.0 */
/* Writes random graphs as ONNX files: random_files FOLDER FIRST_SEED COUNT writes COUNT graphs of
 * each generator, for comparison with other programs (bench/peers/run diff).  Graphs that ONNX
 * cannot express are skipped. */
#include <stdio.h>
#include <stdlib.h>

#include "edgewise.h"
#include "random_graph.h"
#include "random_layout.h"

/* Quantised values may differ by a step between programs: quantised networks have their own
 * comparison. */
static ew_err make_graph(uint64_t seed, struct ew_graph **out)
{
    return ew_random_graph(&(struct ew_random_graph){.seed = seed, .no_quant = true}, out);
}

static ew_err make_layout(uint64_t seed, struct ew_graph **out)
{
    struct ew_graph *plain = NULL;
    const ew_err e = ew_random_layout(&(struct ew_random_layout){.seed = seed}, out, &plain);
    ew_graph_free(plain);
    return e;
}

static bool write_one(const char *folder, const char *kind,
                      ew_err (*make)(uint64_t seed, struct ew_graph **out), uint64_t seed)
{
    struct ew_graph *g = NULL;
    char path[512];
    snprintf(path, sizeof(path), "%s/%s-%llu.onnx", folder, kind, (unsigned long long)seed);
    if (make(seed, &g) != EW_OK) {
        fprintf(stderr, "%s, seed %llu: %s\n", kind, (unsigned long long)seed, ew_error_message());
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
    for (uint64_t i = 0; i < count; i++) {
        written += write_one(argv[1], "random", make_graph, first + i);
        written += write_one(argv[1], "layout", make_layout, first + i);
    }
    printf("%llu of %llu graphs written\n", (unsigned long long)written,
           (unsigned long long)(2 * count));
    return 0;
}
