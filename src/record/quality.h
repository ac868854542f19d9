/* SPDX-License-Identifier: Apache-2.0 */
/* The origin of a value.  Values of different quality never share a series. */
#ifndef EW_RECORD_QUALITY_H
#define EW_RECORD_QUALITY_H

/* clang-format off */
/* The names are stored: they never change. */
#define EW_QUALITY_MAP(X)                                                                          \
    X(MEASURED,  "measured")  /* read from a sensor or counter */                           \
    X(DERIVED,   "derived")   /* computed from measured ones */                                  \
    X(MODELLED,  "modelled")  /* predicted */                                                      \
    X(SIMULATED, "simulated") /* by a simulated board */                                           \
    X(EMULATED,  "emulated")  /* measured under an emulated limit */
/* clang-format on */

enum ew_quality {
#define EW_QUALITY_ENUM(id, name) EW_QUALITY_##id,
    EW_QUALITY_MAP(EW_QUALITY_ENUM)
#undef EW_QUALITY_ENUM
        EW_QUALITY_N
};

const char *ew_quality_name(enum ew_quality q);

/* All names, NULL-terminated: the `choices` of a field. */
extern const char *const ew_quality_names[];

#endif
