/* SPDX-License-Identifier: Apache-2.0 */
/* Federated learning for programs (edgewise_federate.h), over federate/. */
#include <stdlib.h>

#include "api/train/api_options.h"
#include "base/num.h"
#include "base/sized.h"
#include "edgewise_federate.h"
#include "federate/federation.h"
#include "format/image_card.h"
#include "train/adapt.h"

struct options {
    struct ew_federation_opts f;
};

static const struct ew_field fields[] = {EW_FEDERATION_FIELDS(struct options, f), EW_FIELD_END};

struct ew_federated {
    struct ew_federation *federation;
    struct ew_fleet fleet;
    struct ew_arena arena; /* of texts */
    struct options o;
};

static ew_err take_options(struct ew_federated *f, const struct ew_federated_opts *o)
{
    EW_CHECK(o->clients >= 0 && o->threads >= 0 && o->share >= 0 && o->share <= 1, EW_ERR_ARG,
             "clients and threads are not negative, share is at most 1");
    ew_fields_default(fields, &f->o, sizeof(f->o));
    struct ew_federation_opts *to = &f->o.f;
    to->clients = o->clients ? o->clients : to->clients;
    to->share = o->share > 0 ? o->share : to->share;
    to->threads = o->threads;
    to->seed = o->seed ? (int64_t)o->seed : to->seed;
    EW_TRY(ew_api_options(fields, o->options, NULL, &f->arena, &f->o));
    EW_CHECK(o->fleet || !(to->deadline_s > 0), EW_ERR_ARG,
             "deadline is in simulated time and needs a fleet");
    return EW_OK;
}

static ew_err open_federation(struct ew_federated *f, struct ew_graph *net,
                              const struct ew_dataset *data, const char *fleet)
{
    const struct ew_dataset_info *info = ew_dataset_info(data);
    EW_TRY(ew_adapt_check(net));
    const struct ew_shape *out = &net->values[net->outputs[0]].t.shape;
    struct ew_federation_job job = {.opts = f->o.f, .net = net, .data = data};
    struct ew_image_card card;
    EW_CHECK(out->rank == 2 && out->dim[1] >= info->classes, EW_ERR_SHAPE,
             "%s: is no classifier of the %lld classes of %s", net->name, (long long)info->classes,
             info->name);
    EW_TRY(ew_image_card_get(net, &f->arena, &card));
    job.prep = card.prep;
    if (!job.prep.normalised)
        EW_TRY(ew_preprocess_measure(data, &job.prep));
    card = (struct ew_image_card){.prep = job.prep};
    EW_TRY(ew_image_card_put(net, &card));
    EW_TRY(ew_image_card_random(net, false)); /* they will not be for long */
    if (fleet) {
        EW_TRY(ew_fleet_read(fleet, net, f->o.f.batch, &f->fleet));
        job.fleet = &f->fleet;
    }
    return ew_federation_open(&job, &f->federation);
}

EW_API ew_err ew_federated_open(struct ew_graph *net, const struct ew_dataset *data,
                                const struct ew_federated_opts *opts, struct ew_federated **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(net);
    EW_NEED(data);
    struct ew_federated_opts o;
    EW_TRY(ew_sized_import(opts, &o, sizeof(o)));
    struct ew_federated *f = calloc(1, sizeof(*f));
    EW_CHECK(f, EW_ERR_MEMORY, "no memory for a federation");
    ew_arena_init(&f->arena);
    ew_err e = take_options(f, &o);
    if (e == EW_OK)
        e = open_federation(f, net, data, o.fleet);
    if (e != EW_OK)
        ew_federated_close(f);
    else
        *out = f;
    return e;
}

EW_API void ew_federated_close(struct ew_federated *f)
{
    EW_C_LOCALE;
    if (!f)
        return;
    ew_federation_close(f->federation);
    ew_arena_fini(&f->arena);
    free(f);
}

EW_API ew_err ew_federated_round(struct ew_federated *f, struct ew_federated_round *out)
{
    EW_C_LOCALE;
    EW_NEED(f);
    EW_NEED(out);
    struct ew_federation_row r;
    EW_TRY(ew_sized_check(out));
    EW_TRY(ew_federation_round(f->federation, &r));
    const struct ew_federated_round round = {.round = r.round,
                                             .asked = r.asked,
                                             .answered = r.answered,
                                             .dropped = r.dropped,
                                             .late = r.late,
                                             .refused = r.refused,
                                             .loss = r.loss,
                                             .test_loss = r.test_loss,
                                             .accuracy = r.accuracy,
                                             .f1 = r.f1,
                                             .simulated_s = r.sim_s,
                                             .simulated_j = r.sim_j};
    ew_sized_export(&round, sizeof(round), out);
    return EW_OK;
}
