/* SPDX-License-Identifier: Apache-2.0 */
/* The library in a program whose locale writes 1,5 for 1.5, like GUI programs in most of Europe.
 * Regression: networks with fractions in attributes were refused, and CSV rows had commas in
 * numbers. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "edgewise_train.h"
#include "ew_test.h"

/* Changes the number format of glibc's locale object, so that no locale must be installed. */
static bool commas(void)
{
    static const unsigned char numeric[] = {
        0x14, 0x11, 0x03, 0x20, 6,   0, 0,    0, 0x20, 0, 0,    0, 0x22, 0,   0,   0,   0x24, 0,
        0,    0,    0x28, 0,    0,   0, 0x2c, 0, 0,    0, 0x30, 0, 0,    0,   ',', 0,   '.',  0,
        3,    3,    0,    0,    ',', 0, 0,    0, '.',  0, 0,    0, 'U',  'T', 'F', '-', '8',  0};
    char text[8], folder[1024];
    snprintf(folder, sizeof(folder), "%s", ew_test_dir());
    if (mkdir(ew_test_path("comma"), 0777) != 0)
        return false;
    ew_test_file("comma/LC_NUMERIC", numeric, sizeof(numeric));
    setenv("LOCPATH", folder, 1);
    const bool set = setlocale(LC_NUMERIC, "comma") != NULL;
    snprintf(text, sizeof(text), "%.1f", 1.5);
    return set && strcmp(text, "1,5") == 0;
}

/* Each line must have as many commas as the title. */
static void expect_rows(const char *path)
{
    char *text = NULL;
    size_t size;
    if (!EW_EXPECT_OK(ew_file_read(path, 1 << 20, &text, &size)))
        return;
    int title = 0, n = 0, rows = 0;
    for (const char *p = text; *p; p++) {
        n += *p == ',';
        if (*p != '\n')
            continue;
        title = rows == 0 ? n : title;
        EW_EXPECT_INT(n, title);
        n = 0;
        rows++;
    }
    EW_EXPECT(rows > 1);
    free(text);
}

static void trains(void)
{
    if (!commas()) {
        ew_test_skip("this C library reads no locale of glibc's");
        return;
    }
    struct ew_graph *g = NULL, *again = NULL;
    struct ew_dataset *d = NULL;
    struct ew_training *t = NULL;
    char folder[1024], file[1100], text[8];
    const char *net = ew_test_path("net.onnx");
    EW_EXPECT_OK(ew_dataset_open("synthetic:train=40,test=16,classes=4,size=32,noise=0.2", &d));
    if (!d || !EW_EXPECT_OK(ew_network_for_data("mobilenet_v2_tiny", d, 3, &g)))
        return;
    EW_EXPECT_OK(ew_onnx_save(g, net, NULL));
    EW_EXPECT_OK(ew_onnx_load(net, NULL, &again));
    snprintf(folder, sizeof(folder), "%s", ew_test_path("run"));
    const struct ew_training_opts o = {.size = sizeof(o),
                                       .epochs = 1,
                                       .batch = 20,
                                       .lr = 0.05,
                                       .threads = 1,
                                       .folder = folder,
                                       .options = "workers = 1\nlabel-smoothing = 0.1\n"};
    if (EW_EXPECT_OK(ew_training_open(g, d, &o, &t))) {
        int event = EW_TRAINING_BATCH;
        while (event != EW_TRAINING_DONE && EW_EXPECT_OK(ew_training_step(t, &event)))
            continue;
        ew_training_close(t);
        snprintf(file, sizeof(file), "%s/epochs.csv", folder);
        expect_rows(file);
    }
    snprintf(text, sizeof(text), "%.1f", 1.5);
    EW_EXPECT_STR(text, "1,5"); /* the host's locale is restored */
    ew_graph_free(g);
    ew_graph_free(again);
    ew_dataset_close(d);
}

EW_TEST_MAIN(EW_TEST(trains))
