/* SPDX-License-Identifier: Apache-2.0 */
/* Trained networks by name: those that come with Edgewise, those that `models get` fetches
 * (share/models/models.ini lists both), and a folder of the user's own, $EW_MODELS. */
#ifndef EW_NETWORK_TRAINED_H
#define EW_NETWORK_TRAINED_H

#include "base/mem.h"
#include "format/image_card.h"

struct ew_trained {
    const char *name;
    const char *what;
    const char *input;  /* "224x224x3" */
    const char *url;    /* of its publisher; NULL: it comes with the program */
    const char *sha256; /* of the file */
    const char *images; /* "imagenet": mean and deviation that its file does not say; or NULL */
    const char *labels; /* built-in names of its classes; or NULL */
    int64_t bytes;
};

/* All that are listed; everything lies in the arena. */
ew_err ew_trained_list(struct ew_arena *a, const struct ew_trained **list, int *n);

#define EW_TRAINED_PATH 1024

/* The file of the network: NAME.onnx, .ckpt or .ewe in $EW_MODELS, NAME.onnx where `get` puts it,
 * in the folder that is installed beside the program, or in the build's.  False: there is none. */
bool ew_trained_find(const char *name, char path[EW_TRAINED_PATH]);

/* What is listed of a network's images and classes, where its own file does not say. */
ew_err ew_trained_card(const char *name, struct ew_arena *a, struct ew_image_card *card);

/* Fetches a listed network into the user's cache from `from` (a URL or file; NULL: its publisher),
 * going on where an earlier attempt ended, and checks it: it appears whole and right or not at all.
 * *already: it was there. */
ew_err ew_trained_get(const struct ew_trained *t, const char *from, char path[EW_TRAINED_PATH],
                      bool *already);

#endif
