/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU can do, as the system says: instruction sets that matter to networks, caches,
 * governor.  Read through the board's root. */
#ifndef EW_DEVICE_CPU_FACTS_H
#define EW_DEVICE_CPU_FACTS_H

#include "device/board.h"

struct ew_cache_fact {
    int level;
    char type;     /* 'd'ata, 'i'nstructions, 'u'nified */
    int64_t bytes; /* of one */
    int shared;    /* number of CPUs that share it */
};

#define EW_MAX_CACHES 8

struct ew_cpu_facts {
    const char *sets;     /* "avx2 fma avx512f avx512_vnni"; "": it does not say */
    const char *dot;      /* int8 dot products: "VNNI", "dot product", "i8mm"; NULL: none */
    const char *governor; /* of the first clock; NULL: none */
    struct ew_cache_fact caches[EW_MAX_CACHES]; /* that the first CPU sees */
    int n_caches;
};

/* Texts are in the board's arena.  Unknown facts are left out. */
ew_err ew_cpu_facts_read(struct ew_board *b, struct ew_cpu_facts *out);

#endif
