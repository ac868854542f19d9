/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as messages of the video decoder process; the first byte says whether whole
 * frames were requested. */
#include <fcntl.h>
#include <unistd.h>

#include "data/video_wire.h"
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_video_frame f = {0};
    char text[EW_VIDEO_WIRE_TEXT];
    enum ew_video_wire_kind kind = EW_VIDEO_WIRE_FRAME;
    if (size < 1)
        return 0;
    const struct ew_video_opts o = {.stride = 1, .h = 2, .w = 3, .full = data[0] & 1};
    ew_fuzz_file("wire", data + 1, size - 1);
    const int fd = open(ew_fuzz_path("wire"), O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && ew_video_wire_take(fd, &o, 100, &f, &kind, text) == EW_OK &&
           kind == EW_VIDEO_WIRE_FRAME)
        continue;
    if (fd >= 0)
        close(fd);
    ew_video_frame_fini(&f);
    return 0;
}
