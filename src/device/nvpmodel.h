/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's power modes: /etc/nvpmodel.conf and the active mode.
 *
 *   < PARAM TYPE=FILE|CLOCK|HWMON NAME=p >   then lines  ARG path [file]
 *   < POWER_MODEL ID=n NAME=s >              then lines  PARAM ARG value
 *   < PM_CONFIG DEFAULT=n >
 *
 * Numbers and names of modes differ from module to module: they are always taken from the file. */
#ifndef EW_DEVICE_NVPMODEL_H
#define EW_DEVICE_NVPMODEL_H

#include "base/mem.h"
#include "base/rootfs.h"

#define EW_NVPMODEL_CONF "etc/nvpmodel.conf"

struct ew_nvpm_path {
    const char *param, *arg, *path;
    bool clock; /* TYPE=CLOCK: the value is a frequency */
};

struct ew_nvpm_setting {
    const char *param, *arg;
    int64_t value; /* -1: no limit */
};

struct ew_nvpm_mode {
    int64_t id;
    const char *name;
    int first, n; /* of the settings */
};

struct ew_nvpmodel {
    struct ew_nvpm_path *paths;
    struct ew_nvpm_setting *settings;
    struct ew_nvpm_mode *modes;
    int n_paths, n_settings, n_modes;
    int64_t default_id; /* -1: not stated */
};

/* Cuts `text` up in place.  The message names the line. */
ew_err ew_nvpmodel_parse(struct ew_arena *a, char *text, struct ew_nvpmodel *out);

/* Reads the board's file; EW_ERR_NOT_FOUND where it has none. */
ew_err ew_nvpmodel_read(const struct ew_root *root, struct ew_arena *a, struct ew_nvpmodel *out);

/* By number or by name; NULL: none. */
const struct ew_nvpm_mode *ew_nvpmodel_find(const struct ew_nvpmodel *m, const char *name);

/* The file that a setting goes to; NULL: the PARAM section does not say. */
const struct ew_nvpm_path *ew_nvpmodel_path(const struct ew_nvpmodel *m,
                                            const struct ew_nvpm_setting *s);

/* The active mode's number from /var/lib/nvpmodel/status; -1: not known. */
int64_t ew_nvpmodel_active(const struct ew_root *root);

#endif
