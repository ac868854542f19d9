/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of PNG and JPEG in a sandboxed process (base/sandbox.h), since the libraries parse
 * untrusted bytes: a crash ends that process only, and names the file.  It has no files, no sockets
 * but the one to the parent, starts no programs and maps no executable memory.  Bytes and pixels
 * are in shared memory. */
#ifndef EW_DATA_IMAGE_DECODER_H
#define EW_DATA_IMAGE_DECODER_H

#include "data/data.h"

#define EW_IMAGE_JOBS 16 /* most images per request */
#define EW_IMAGE_TEXT 200

/* One image and its result. */
struct ew_image_job {
    const void *bytes;
    size_t size;
    const uint8_t *pixels; /* [h, w, c]; in shared memory, until the decoder's next request */
    int64_t shape[3];
    ew_err err;
    char message[EW_IMAGE_TEXT]; /* of err */
};

struct ew_image_decoder;

/* Decodes n images to 1 or 3 channels, 0: as in the file.  *d is NULL before the first call, which
 * starts the process; a process that died is restarted.  Errors of an image are in its job, with
 * EW_OK; a process that died or timed out, and images that do not fit together, fail the call:
 * decode one by one to find the cause. */
ew_err ew_image_decoder_run(struct ew_image_decoder **d, int channels, struct ew_image_job *jobs,
                            int n);
/* NULL is fine.  The process is kept for the next decoder. */
void ew_image_decoder_free(struct ew_image_decoder *d);

/* The process, for tests that kill it; 0: none. */
int ew_image_decoder_process(const struct ew_image_decoder *d);

#endif
