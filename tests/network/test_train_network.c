/* SPDX-License-Identifier: Apache-2.0 */
/* Files prepared for training: what is not trained as it stands in the file is said. */
#include "network/train_network.h"

#include "ew_test.h"
#include "onnx_build.h"

/* Opens the model for training on ten classes, and listens. */
static void open_model(struct ew_build *b, const char *file)
{
    struct ew_dataset *data = NULL;
    struct ew_train_network n = {0};
    ew_test_listen();
    if (EW_EXPECT_OK(ew_dataset_open("synthetic:kind=digits,train=10,test=10", &data))) {
        const struct ew_train_network_opts how = {.what = ew_build_file(b, file),
                                                  .net = {.width = 1}};
        EW_EXPECT_OK(ew_train_network_open(&how, data, &n));
    }
    ew_graph_free(n.graph);
    ew_dataset_close(data);
    ew_build_fini(b);
}

static void weight(struct ew_build *b, const char *name, const char *dims)
{
    ew_build_init_tensor(b, name, EW_PB_FLOAT, dims);
}

/* Regression: all of this was done without a word. */
static void says_what_is_not_trained(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "-1,1,6,6");
    weight(&b, "w", "36,5");
    weight(&b, "v", "36,10");
    ew_build_node(&b, "Flatten", "x", "f");
    ew_build_node(&b, "MatMul", "f,w", "h");
    ew_build_ints(&b, ew_build_node(&b, "Transpose", "w", "t"), "perm", "1,0");
    ew_build_node(&b, "MatMul", "h,t", "r");
    ew_build_node(&b, "MatMul", "r,v", "y");
    ew_build_output(&b, "y");
    ew_build_output(&b, "h");
    open_model(&b, "tied.onnx");
    EW_EXPECT(ew_test_heard("has 2 outputs: the first, y, is used"));
    EW_EXPECT(ew_test_heard("are one weight, once transposed: they are trained apart"));

    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "-1,1,6,6");
    weight(&b, "c", "64,1,1,1");
    weight(&b, "w", "72,64,1,1");
    weight(&b, "v", "72,10");
    ew_build_ints(&b, ew_build_node(&b, "ReduceMean", "w", "m"), "axes", "1,2,3");
    ew_build_node(&b, "Sub", "w,m", "s");
    ew_build_node(&b, "Conv", "x,c", "a");
    ew_build_node(&b, "Conv", "a,s", "d");
    ew_build_node(&b, "GlobalAveragePool", "d", "p");
    ew_build_node(&b, "Flatten", "p", "f");
    ew_build_node(&b, "MatMul", "f,v", "y");
    ew_build_output(&b, "y");
    open_model(&b, "standard.onnx");
    EW_EXPECT(ew_test_heard("the weights of 1 layer"));
    EW_EXPECT(!ew_test_heard("outputs") && !ew_test_heard("transposed"));
}

EW_TEST_MAIN(EW_TEST(says_what_is_not_trained))
