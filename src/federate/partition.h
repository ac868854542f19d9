/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples are on which client. */
#ifndef EW_FEDERATE_PARTITION_H
#define EW_FEDERATE_PARTITION_H

#include <stdint.h>

#include "base/err.h"

/* clang-format off */
#define EW_PARTITION_MAP(X)                                                                        \
    X(EVEN, "even")           /* as many samples of the same mixture for each client */            \
    X(DIRICHLET, "dirichlet") /* each class goes to the clients in shares drawn from Dir(alpha):    \
                                 Hsu et al., arXiv:1909.06335 */                                   \
    X(SHARDS, "shards")       /* sorted by class and cut, some pieces for each client: McMahan et   \
                                 al., AISTATS 2017 */                                              \
    X(KEY, "key")             /* by the key of each sample: its writer or camera */
/* clang-format on */

enum ew_partition_kind {
#define EW_PARTITION_ENUM(id, name) EW_PARTITION_##id,
    EW_PARTITION_MAP(EW_PARTITION_ENUM)
#undef EW_PARTITION_ENUM
        EW_PARTITION_COUNT
};

extern const char *const ew_partition_names[]; /* NULL at the end */

struct ew_partition_opts {
    enum ew_partition_kind kind;
    int64_t clients;
    double alpha;        /* dirichlet: the smaller, the fewer classes a client has */
    int64_t shards;      /* shards: pieces for each client */
    const int32_t *keys; /* key: the client of each sample, all of [0, clients) */
    uint64_t seed;
};

/* The samples of client k are samples[first[k]] up to samples[first[k + 1]]. */
struct ew_partition {
    int64_t clients;
    int64_t *samples, *first;
};

/* Assigns every sample to one client; `labels` has the class of each of the n, in [0, classes).
 * Fails where a client would have none. */
ew_err ew_partition_make(const struct ew_partition_opts *o, const int32_t *labels, int64_t n,
                         int64_t classes, struct ew_partition *out);
void ew_partition_free(struct ew_partition *p);

#endif
