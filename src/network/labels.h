/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the classes of data sets that many networks are trained on, built in from share/labels.
 */
#ifndef EW_NETWORK_LABELS_H
#define EW_NETWORK_LABELS_H

#include "base/mem.h"
#include "format/image_card.h"

/* Sets the card's classes to those called `name` ("imagenet"); false where there are none so
 * called. Names are put into the arena. */
ew_err ew_labels_builtin(const char *name, struct ew_arena *a, struct ew_image_card *card,
                         bool *found);

/* The lines of `text`, in the arena, as the card's classes; `what` is for messages. */
ew_err ew_labels_parse(const char *text, const char *what, struct ew_arena *a,
                       struct ew_image_card *card);

#endif
