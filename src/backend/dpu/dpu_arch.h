/* SPDX-License-Identifier: Apache-2.0 */
/* DPU sizes, boards that carry them, and how a device is named:
 *
 *   dpu[:SIZE or BOARD][,cores=N][,clock=MHZ][,ddr=GB/S]     dpu:B4096,cores=2   dpu:kv260 */
#ifndef EW_BACKEND_DPU_ARCH_H
#define EW_BACKEND_DPU_ARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* A size of the DPUCZDX8G (product guide PG338). */
struct ew_dpu_arch {
    const char *name;
    int pp, icp, ocp;          /* pixels, input and output channels multiplied in a cycle */
    int image_kib, weight_kib; /* on chip */
    int dsp, bram;             /* of one core with the documented defaults: DSP48 slices, BRAM36 */
};

/* A board with its usual DPU. */
struct ew_dpu_board {
    const char *name, *title;
    const char *arch;
    int cores;
    double clock_mhz;
    double ddr_gb_s;     /* peak of the board's memory */
    double idle_w;       /* power of the board at rest; 0: unknown */
    double host_ms;      /* a thread's own work for an image: pictures in, scores out, start-up */
    int dsp, bram, uram; /* that the chip has; BRAM36 and UltraRAM288 */
};

struct ew_dpu_config {
    const struct ew_dpu_arch *arch;
    const struct ew_dpu_board *board;
    int cores;
    double clock_mhz;
    double ddr_gb_s; /* peak, shared by the cores */
};

extern const struct ew_dpu_arch ew_dpu_archs[];
extern const int ew_dpu_n_archs;
extern const struct ew_dpu_board ew_dpu_boards[];
extern const int ew_dpu_n_boards;

/* What stands after "dpu:"; "" is a ZCU104's.  Fails with what there is. */
ew_err ew_dpu_config_parse(const char *arguments, struct ew_dpu_config *out);
/* "B4096 x 2 at 300 MHz (zcu104)" */
void ew_dpu_config_text(const struct ew_dpu_config *c, char *buf, size_t size);

#endif
