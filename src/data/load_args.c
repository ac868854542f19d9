/* SPDX-License-Identifier: Apache-2.0 */
/* Command options to loader options. */
#include "data/load_args.h"

const char *const ew_cold_words[] = {"no", "yes", "every-epoch", NULL};
const char *const ew_on_bad_words[] = {"stop", "skip", NULL};

ew_err ew_load_args_apply(const struct ew_load_args *a, struct ew_loader_opts *o)
{
    o->workers = a->workers;
    o->prefetch = a->prefetch;
    o->prep.resize = a->resize > 0 ? a->resize : EW_RESIZE_COVER;
    o->on_bad = (enum ew_on_bad)a->on_bad_sample;
    EW_TRY(ew_augment_parse(a->augment ? a->augment : "none", &o->augment));
    return ew_storage_parse(a->storage ? a->storage : "none", &o->storage);
}
