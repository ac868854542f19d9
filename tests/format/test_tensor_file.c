/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor files: round trips of .npy and .pb, and errors of invalid ones. */
#include <stdio.h>
#include <string.h>

#include "ew_test.h"
#include "format/tensor_file.h"
#include "onnx.pb-c.h"
#include "run_graph.h"

static struct ew_tensor sample(struct ew_arena *a, enum ew_dtype dtype)
{
    struct ew_tensor t = {.dtype = dtype, .shape = {3, {2, 3, 4}}};
    t.data = ew_arena_alloc(a, ew_tensor_bytes(&t));
    for (int64_t i = 0; i < 24; i++)
        ew_tensor_store(&t, i, 1, &(double){(double)(dtype == EW_BOOL ? i % 2 : i)});
    return t;
}

static void there_and_back(void)
{
    struct ew_arena a;
    ew_arena_init(&a);
    for (int d = 0; d < EW_DTYPE_COUNT; d++) {
        const struct ew_tensor t = sample(&a, (enum ew_dtype)d);
        struct ew_tensor back;
        const char *name;
        if (EW_EXPECT_OK(ew_tensor_file_write(ew_test_path("t.pb"), &t, "t")) &&
            EW_EXPECT_OK(ew_tensor_file_read(ew_test_path("t.pb"), &a, &back, &name))) {
            EW_EXPECT_OK(ew_tensors_agree(&back, &t, 0, 0));
            EW_EXPECT_STR(name, "t");
        }
        if (d == EW_BF16) {
            EW_EXPECT_ERR(ew_tensor_file_write(ew_test_path("t.npy"), &t, "t"), EW_ERR_UNSUPPORTED,
                          "t.npy: .npy has no elements of type bfloat16");
        } else if (EW_EXPECT_OK(ew_tensor_file_write(ew_test_path("t.npy"), &t, "t")) &&
                   EW_EXPECT_OK(ew_tensor_file_read(ew_test_path("t.npy"), &a, &back, &name))) {
            EW_EXPECT_OK(ew_tensors_agree(&back, &t, 0, 0));
            EW_EXPECT_STR(name, "");
        }
    }
    ew_arena_fini(&a);
}

static void few_dimensions(void)
{
    struct ew_arena a;
    ew_arena_init(&a);
    for (int rank = 0; rank <= EW_MAX_RANK; rank++) {
        float data[1] = {7};
        struct ew_tensor t = {.dtype = EW_F32, .shape = {.rank = rank}, .data = data}, back;
        for (int i = 0; i < rank; i++)
            t.shape.dim[i] = 1;
        EW_EXPECT_OK(ew_tensor_file_write(ew_test_path("r.npy"), &t, ""));
        if (EW_EXPECT_OK(ew_tensor_file_read(ew_test_path("r.npy"), &a, &back, NULL)))
            EW_EXPECT_OK(ew_tensors_agree(&back, &t, 0, 0));
    }
    EW_EXPECT_ERR(ew_tensor_file_write(ew_test_path("r.txt"), &(struct ew_tensor){0}, ""),
                  EW_ERR_ARG, "r.txt: tensors are written as .npy or .pb");
    ew_arena_fini(&a);
}

/* A file with this header (version 1, 2 or 3) and the bytes 0, 1, 2, ... */
static ew_err read_npy(int version, const char *header, size_t data_bytes, struct ew_tensor *out)
{
    static char file[8192];
    static struct ew_arena a;
    const size_t n = strlen(header), at = version == 1 ? 10 : 12;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)version;
    file[7] = 0;
    memset(file + 8, 0, 4);
    file[8] = (char)(n & 255);
    file[9] = (char)(n >> 8);
    memcpy(file + at, header, n);
    for (size_t i = 0; i < data_bytes; i++)
        file[at + n + i] = (char)i;
    ew_arena_fini(&a);
    return ew_npy_read(file, at + n + data_bytes, "f.npy", &a, out);
}

static void npy_headers(void)
{
    struct ew_tensor t;
    for (int version = 1; version <= 3; version++)
        if (EW_EXPECT_OK(read_npy(
                version, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n", 6, &t)))
            EW_EXPECT_INT(ew_tensor_get_int(&t, 5), 5);
    if (EW_EXPECT_OK(read_npy(1, "{'shape':(2,3),'descr':'|u1','fortran_order':True}", 6, &t))) {
        EW_EXPECT_INT(t.shape.dim[0], 2);
        EW_EXPECT_INT(ew_tensor_get_int(&t, 1), 2); /* row 0, column 1 */
    }
    EW_EXPECT_OK(read_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}", 0, &t));
}

static void bad_npy(void)
{
    struct ew_tensor t;
#define HEAD(descr, order, shape)                                                                  \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"
    EW_EXPECT_ERR(read_npy(4, HEAD("<f4", "False", "(1,)"), 4, &t), EW_ERR_UNSUPPORTED,
                  "f.npy: version 4");
    EW_EXPECT_ERR(read_npy(1, HEAD(">f4", "False", "(1,)"), 4, &t), EW_ERR_UNSUPPORTED, ">f4");
    EW_EXPECT_ERR(read_npy(1, HEAD("|O", "False", "(1,)"), 4, &t), EW_ERR_UNSUPPORTED, "|O");
    EW_EXPECT_ERR(read_npy(1, HEAD("<f4", "Maybe", "(1,)"), 4, &t), EW_ERR_FORMAT, "fortran");
    EW_EXPECT_ERR(read_npy(1, HEAD("<f4", "False", "(2,)"), 7, &t), EW_ERR_FORMAT,
                  "f.npy: is 2 of float32, but has only 7 bytes");
    EW_EXPECT_ERR(read_npy(1, HEAD("<f4", "False", "(-2,)"), 8, &t), EW_ERR_FORMAT, "damaged");
    EW_EXPECT_ERR(read_npy(1, HEAD("<f4", "False", "(1,1,1,1,1,1,1,1,1)"), 8, &t), EW_ERR_LIMIT,
                  "more than 8 dimensions");
    EW_EXPECT_ERR(read_npy(1, HEAD("<f4", "False", "(99999999999999999999,)"), 8, &t),
                  EW_ERR_FORMAT, "64 bits");
    EW_EXPECT_ERR(read_npy(1, HEAD("<f4", "False", "(4294967296,4294967296)"), 8, &t), EW_ERR_LIMIT,
                  "f.npy: the array");
    EW_EXPECT_ERR(read_npy(1, HEAD("<f4", "False", "(1"), 8, &t), EW_ERR_FORMAT, "damaged");
    EW_EXPECT_ERR(read_npy(1, "{}", 8, &t), EW_ERR_FORMAT, "descr");
    struct ew_arena a;
    ew_arena_init(&a);
    const char *path = ew_test_file("short.npy", "\x93NUMPY\x01", 7);
    EW_EXPECT_ERR(ew_tensor_file_read(path, &a, &t, NULL), EW_ERR_FORMAT, "short.npy: is not an");
    path = ew_test_file("long.npy", "\x93NUMPY\x01\x00\xff\xffxx", 12);
    EW_EXPECT_ERR(ew_tensor_file_read(path, &a, &t, NULL), EW_ERR_FORMAT, "a header of 65535");
    path = ew_test_file("bad.pb", "\x08\x02\x10\x01", 4);
    EW_EXPECT_ERR(ew_tensor_file_read(path, &a, &t, NULL), EW_ERR_FORMAT, "bad.pb: tensor");
    ew_arena_fini(&a);
}

/* Typed lists instead of raw bytes, as written by older tools. */
static void typed_lists(void)
{
    static const struct {
        int type;
        double want;
    } kinds[] = {{1, 2.5}, {11, 2.5}, {10, 2.5}, {16, 2.5}, {2, 200}, {3, -7}, {4, 60000},
                 {5, -7},  {6, -7},   {7, -7},   {9, 1},    {12, 7},  {13, 7}};
    struct ew_arena a;
    ew_arena_init(&a);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const int type = kinds[i].type;
        int64_t dims[] = {1}, s64[] = {-7};
        float f32[] = {2.5f};
        double f64[] = {2.5};
        uint64_t u64[] = {7};
        int32_t s32[] = {type == 10 ? 0x4100 : type == 16 ? 0x4020 : (int32_t)kinds[i].want};
        Ew__OnnxTensor m;
        ew__onnx_tensor__init(&m);
        m.dims = dims;
        m.has_data_type = true;
        m.data_type = type;
        m.float_data = f32;
        m.double_data = f64;
        m.int64_data = s64;
        m.uint64_data = u64;
        m.int32_data = s32;
        m.n_dims = 1;
        *(type == 1                  ? &m.n_float_data
          : type == 11               ? &m.n_double_data
          : type == 7                ? &m.n_int64_data
          : type == 12 || type == 13 ? &m.n_uint64_data
                                     : &m.n_int32_data) = 1;
        uint8_t bytes[128];
        const size_t size = ew__onnx_tensor__pack(&m, bytes);
        struct ew_tensor t;
        if (EW_EXPECT_OK(ew_tensor_file_read(ew_test_file("l.pb", bytes, size), &a, &t, NULL)))
            EW_EXPECT_NEAR(ew_tensor_get(&t, 0), kinds[i].want, 0);
    }
    ew_arena_fini(&a);
}

EW_TEST_MAIN(EW_TEST(there_and_back), EW_TEST(few_dimensions), EW_TEST(npy_headers),
             EW_TEST(bad_npy), EW_TEST(typed_lists))
