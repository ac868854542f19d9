/* SPDX-License-Identifier: Apache-2.0 */
/* Getting data sets: from archives and folders, errors, and no partial results. */
#include "data/get.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "data/download.h"
#include "data/unpack.h"
#include "data_files.h"
#include "ew_test.h"

static void sha256(void)
{
    /* FIPS 180-2, appendix B, and the empty message. */
    static const struct {
        const char *text, *sum;
    } cases[] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                 {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                 {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    for (size_t i = 0; i < EW_COUNT(cases); i++)
        for (size_t step = 1; step < 70; step += 23) {
            struct ew_sha256 s;
            char text[EW_SHA256_TEXT];
            ew_sha256_init(&s);
            const size_t n = strlen(cases[i].text);
            for (size_t at = 0; at < n; at += step)
                ew_sha256_add(&s, cases[i].text + at, at + step < n ? step : n - at);
            ew_sha256_text(&s, text);
            EW_EXPECT_STR(text, cases[i].sum);
        }
}

/* Number of names in a folder that begin with a dot: leftover stages. */
static int hidden(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] == '.' && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d)
        closedir(d);
    return n;
}

static void refuses_what_is_not_it(void)
{
    const char *home = ew_data_files_dir("home"), *from = ew_data_files_idx("not-mnist", 6, 3);
    char to[512];
    snprintf(to, sizeof(to), "%s/mnist", home);
    struct ew_get_result r;
    EW_EXPECT_ERR(ew_dataset_get("mnist", from, to, &r), EW_ERR_FORMAT,
                  "train-images-idx3-ubyte has 136 bytes, the published file has 47040016");
    EW_EXPECT_ERR(ew_dataset_get("mnist", ew_data_files_dir("nothing"), to, &r), EW_ERR_NOT_FOUND,
                  "there is no train-images-idx3-ubyte");
    EW_EXPECT_ERR(ew_dataset_get("mnist", "/no/such/place", to, &r), EW_ERR_NOT_FOUND,
                  "/no/such/place");
    EW_EXPECT_ERR(ew_dataset_get("nist", NULL, to, &r), EW_ERR_NOT_FOUND, "not one of mnist");
    EW_EXPECT_ERR(ew_dataset_get("cifar100", "package", to, &r), EW_ERR_NOT_FOUND,
                  "cifar-100-binary.tar.gz by other means");
    EW_EXPECT(access(to, F_OK) != 0);
    EW_EXPECT_INT(hidden(home), 0);
    EW_EXPECT_OK(ew_dataset_get("mnist", NULL, from, &r)); /* a complete set is used as it is */
    EW_EXPECT(r.already);
    free(r.path);
}

static void unpacks_tar(void)
{
    const char *dir = ew_data_files_idx("tarred", 6, 3), *to = ew_data_files_dir("untarred");
    char command[2048], path[512];
    snprintf(command, sizeof(command),
             "cd %s && gzip -k t10k-images-idx3-ubyte && tar -czf ../t.tgz -C .. tarred && tar -cf "
             "../t.tar -C .. tarred",
             dir);
    if (system(command) != 0)
        EW_SKIP("there is no tar program");
    const char *const wanted[] = {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte", NULL};
    int found = 0;
    const ew_err err = ew_unpack_tar(ew_test_path("t.tgz"), wanted, to, &found);
    if (err == EW_ERR_UNSUPPORTED)
        EW_SKIP("a build without zlib");
    if (!EW_EXPECT_OK(err))
        return;
    EW_EXPECT_INT(found, 3); /* one of them twice, plain and as .gz */
    snprintf(path, sizeof(path), "%s/train-images-idx3-ubyte", to);
    struct stat st;
    EW_EXPECT(stat(path, &st) == 0 && st.st_size == 136);
    snprintf(path, sizeof(path), "%s/train-labels-idx1-ubyte", to);
    EW_EXPECT(access(path, F_OK) != 0); /* not needed */
    EW_EXPECT_OK(ew_unpack_tar(ew_test_path("t.tar"), wanted, to, &found));
    EW_EXPECT_INT(truncate(ew_test_path("t.tgz"), 300), 0);
    EW_EXPECT(ew_unpack_tar(ew_test_path("t.tgz"), wanted, to, &found) != EW_OK);
    EW_EXPECT_INT(truncate(ew_test_path("t.tar"), 700), 0);
    EW_EXPECT(ew_unpack_tar(ew_test_path("t.tar"), wanted, to, &found) != EW_OK);
    const char *text = ew_test_file("text", "this is no archive at all, but long enough", 40);
    EW_EXPECT_ERR(ew_unpack_tar(text, wanted, to, &found), EW_ERR_FORMAT, "not a tar file");
}

/* 100 MB of zeros are 97 KB as gzip. */
static void bounds_what_unpacks(void)
{
    char command[2048];
    snprintf(command, sizeof(command),
             "cd %s && head -c 100000000 /dev/zero >zeros && gzip -k zeros && tar -czf zeros.tgz "
             "zeros && rm zeros",
             ew_test_dir());
    if (system(command) != 0)
        EW_SKIP("there is no tar program");
    const char *const wanted[] = {"zeros", NULL}, *const out = ew_test_path("unpacked");
    int found = 0;
    const ew_err err = ew_unpack_gzip(ew_test_path("zeros.gz"), out);
    if (err == EW_ERR_UNSUPPORTED)
        EW_SKIP("a build without zlib");
    EW_EXPECT_ERR(err, EW_ERR_LIMIT, "inflates to more than 67108864 bytes");
    EW_EXPECT(access(out, F_OK) != 0);
    EW_EXPECT_ERR(ew_unpack_tar(ew_test_path("zeros.tgz"), wanted, ew_test_dir(), &found),
                  EW_ERR_LIMIT, "zeros.tgz: inflates to more than");
    EW_EXPECT(access(ew_test_path("zeros"), F_OK) != 0);
}

/* Existing parts are not downloaded again; a failed download leaves nothing in place. */
static void downloads_go_on(void)
{
    const char *source = ew_test_file("source.bin", "0123456789abcdef", 16);
    const char *to = ew_test_path("copy.bin");
    char url[600];
    snprintf(url, sizeof(url), "file://%s", source);
    ew_test_file("copy.bin.part", "0123456789", 10);
    const ew_err err = ew_download(url, to, 16);
    if (err == EW_ERR_UNSUPPORTED)
        EW_SKIP("a build without libcurl");
    if (!EW_EXPECT(err == EW_OK))
        return;
    char *data = NULL;
    size_t size = 0;
    EW_EXPECT_OK(ew_file_read(to, 100, &data, &size));
    EW_EXPECT_STR(data, "0123456789abcdef");
    free(data);
    EW_EXPECT(access(ew_test_path("copy.bin.part"), F_OK) != 0);
    EW_EXPECT(ew_download("file:///no/such/file", ew_test_path("none.bin"), 16) != EW_OK);
    EW_EXPECT(access(ew_test_path("none.bin"), F_OK) != 0);
    EW_EXPECT(access(ew_test_path("none.bin.part"), F_OK) != 0);
}

/* A server that never stops sending does not fill the disk. */
static void downloads_have_a_bound(void)
{
    const char *source = ew_test_file("long.bin", "0123456789abcdef", 16);
    const char *to = ew_test_path("bound.bin");
    char url[600];
    snprintf(url, sizeof(url), "file://%s", source);
    const ew_err err = ew_download(url, to, 15);
    if (err == EW_ERR_UNSUPPORTED)
        EW_SKIP("a build without libcurl");
    EW_EXPECT_ERR(err, EW_ERR_FORMAT, "sends more than the 15 bytes");
    EW_EXPECT(access(to, F_OK) != 0);
    EW_EXPECT(access(ew_test_path("bound.bin.part"), F_OK) != 0);
}

EW_TEST_MAIN(EW_TEST(sha256), EW_TEST(downloads_have_a_bound), EW_TEST(refuses_what_is_not_it),
             EW_TEST(unpacks_tar), EW_TEST(bounds_what_unpacks), EW_TEST(downloads_go_on))
