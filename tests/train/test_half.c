/* SPDX-License-Identifier: Apache-2.0 */
/* float16 in messages: the same as the tensors' conversions. */
#include <math.h>

#include "ew_test.h"
#include "graph/tensor.h"
#include "train/half.h"

static void every_half_is_read(void)
{
    int wrong = 0;
    for (uint32_t h = 0; h < 0x10000; h++)
        if ((h & 0x7c00) != 0x7c00) /* infinities and nan are never sent */
            wrong +=
                ew_half_bits(ew_half_to((uint16_t)h)) != ew_half_bits(ew_f16_to_f32((uint16_t)h));
    EW_EXPECT_INT(wrong, 0);
}

/* Every half, the midpoint to the next, and the floats next to that. */
static void floats_are_rounded(void)
{
    int wrong = 0;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        const float a = ew_f16_to_f32((uint16_t)h), b = ew_f16_to_f32((uint16_t)(h + 1));
        const float middle = (a + b) / 2;
        const float all[] = {a, middle, nextafterf(middle, a), nextafterf(middle, b), -middle};
        for (int i = 0; i < 5; i++)
            wrong += ew_half_from(all[i]) != ew_f32_to_f16(all[i]);
    }
    EW_EXPECT_INT(wrong, 0);
    EW_EXPECT_INT(ew_half_from(EW_HALF_MOST), 0x7bff);
}

EW_TEST_MAIN(EW_TEST(every_half_is_read), EW_TEST(floats_are_rounded))
