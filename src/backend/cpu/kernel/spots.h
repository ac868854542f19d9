/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of few positions: the geometry that both directions share.
 *
 * On images of 2x2 pixels a 3x3 filter meets padding with five of its nine taps at every output.
 * What is left are 16 pairs of an output and an input position, each a product of its own between
 * the images' channels and one tap of the filter:
 *
 *   y[out] [images x O] += x[in] [images x I] w[tap] [I x O]
 *
 * A dense layer is the case of one pair.  Filters take all the time there is: they are larger than
 * anything else and change at each step, so that packing them costs as much as multiplying. */
#ifndef EW_BACKEND_CPU_KERNEL_SPOTS_H
#define EW_BACKEND_CPU_KERNEL_SPOTS_H

#include "backend/cpu/kernel/fetch.h"

#define SPOT_TAPS  32
#define SPOT_PAIRS 64
#define SPOT_ROWS  1024 /* images x positions, at most, of either side */

struct spot_pair {
    int tap, out, in;
};

struct spots {
    int64_t batch, cin, cout, taps, outs, ins;
    int count;
    struct spot_pair pair[SPOT_PAIRS]; /* by tap */
    int first[SPOT_TAPS + 1];          /* pairs of tap t: [first[t], first[t + 1]) */
    int used;                          /* taps that have any */
};

/* False where there are too many of anything. */
bool EW_K(spots_init)(struct spots *p, const struct ew_conv_shape *s);

#endif
