/* SPDX-License-Identifier: Apache-2.0 */
/* PNG and JPEG decoded in a process apart, since their libraries read strangers' bytes: a fault of
 * theirs ends that process, names the file and reaches nothing.  It has no files, no sockets but
 * the one to here, starts nothing and makes no memory that can be run (base/sandbox.h).  Bytes and
 * pixels lie in memory that both have. */
#ifndef EW_DATA_IMAGE_DECODER_H
#define EW_DATA_IMAGE_DECODER_H

#include "data/data.h"

#define EW_IMAGE_JOBS 16 /* images of one request, at most */
#define EW_IMAGE_TEXT 200

/* One image, and what became of it. */
struct ew_image_job {
    const void *bytes;
    size_t size;
    const uint8_t *pixels; /* [h, w, c]; in the shared memory, until the decoder's next request */
    int64_t shape[3];
    ew_err err;
    char message[EW_IMAGE_TEXT]; /* of err */
};

struct ew_image_decoder;

/* Makes pixels of n images, with 1 or 3 channels, 0: as in the file.  *d is NULL before the first
 * call, which starts the process; one that died is started anew.  What is wrong with an image is in
 * its job, and EW_OK; a process that died or fell silent, and images that have no room together,
 * fail: asked for one image alone it is known which. */
ew_err ew_image_decoder_run(struct ew_image_decoder **d, int channels, struct ew_image_job *jobs,
                            int n);
/* NULL is fine.  The process is kept for the next decoder. */
void ew_image_decoder_free(struct ew_image_decoder *d);

/* The process, for tests that end it; 0: none. */
int ew_image_decoder_process(const struct ew_image_decoder *d);

#endif
