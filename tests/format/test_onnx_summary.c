/* SPDX-License-Identifier: Apache-2.0 */
/* Summary of a file, with all unsupported operators, not only the first. */
#include "format/onnx_summary.h"

#include "ew_test.h"
#include "onnx_build.h"

static void says_who_made_it(void)
{
    struct ew_build b;
    struct ew_arena a;
    struct ew_onnx_summary s;
    ew_arena_init(&a);
    ew_build_small(&b);
    b.model.producer_name = ew_build_text(&b, "somebody");
    b.model.producer_version = ew_build_text(&b, "1.2");
    ew_build_opset(&b, "com.x", 3);
    if (EW_EXPECT_OK(ew_onnx_summarise(ew_build_file(&b, "small.onnx"), &a, &s))) {
        EW_EXPECT_STR(s.producer, "somebody 1.2");
        EW_EXPECT_STR(s.opsets, "13, com.x 3");
        EW_EXPECT_INT(s.ir, 8);
        EW_EXPECT_INT(s.n_inputs, 1); /* weights are not counted among them */
        EW_EXPECT_STR(s.inputs[0].shape, "1 x 2 x 5 x 5");
        EW_EXPECT_STR(s.inputs[0].type, "float");
        EW_EXPECT_INT(s.n_outputs, 1);
        EW_EXPECT_INT(s.n_unsupported, 0);
    }
    ew_build_fini(&b);
    ew_arena_fini(&a);
}

static void lists_all_that_is_missing(void)
{
    struct ew_build b;
    struct ew_arena a;
    struct ew_onnx_summary s;
    ew_arena_init(&a);
    ew_build_small(&b);
    ew_build_node(&b, "Frobnicate", "y", "f1");
    ew_build_node(&b, "Frobnicate", "f1", "f2")->name = ew_build_text(&b, "second");
    ew_build_node(&b, "Twist", "f2", "t")->domain = ew_build_text(&b, "com.x");
    if (EW_EXPECT_OK(ew_onnx_summarise(ew_build_file(&b, "lacks.onnx"), &a, &s))) {
        EW_EXPECT_INT(s.n_unsupported, 2);
        EW_EXPECT_STR(s.unsupported[0].op, "Frobnicate");
        EW_EXPECT_INT(s.unsupported[0].count, 2);
        EW_EXPECT_HAS(s.unsupported[0].first, "Frobnicate");
        EW_EXPECT_STR(s.unsupported[1].op, "com.x::Twist");
    }
    ew_build_fini(&b);
    ew_arena_fini(&a);
}

static void damaged_files_are_refused(void)
{
    struct ew_arena a;
    struct ew_onnx_summary s;
    ew_arena_init(&a);
    EW_EXPECT_ERR(ew_onnx_summarise(ew_test_file("text.onnx", "no model\n", 9), &a, &s),
                  EW_ERR_FORMAT, "text.onnx: ");
    EW_EXPECT_ERR(ew_onnx_summarise("/nowhere/x.onnx", &a, &s), EW_ERR_NOT_FOUND, "/nowhere");
    ew_arena_fini(&a);
}

EW_TEST_MAIN(EW_TEST(says_who_made_it), EW_TEST(lists_all_that_is_missing),
             EW_TEST(damaged_files_are_refused))
