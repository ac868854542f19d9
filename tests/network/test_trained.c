/* SPDX-License-Identifier: Apache-2.0 */
/* Trained networks by name: the list is complete, downloads are verified, the user's folder is
 * searched. */
#include "network/trained.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ew_test.h"

static void the_list_is_whole(void)
{
    struct ew_arena a;
    const struct ew_trained *list;
    int n = 0;
    ew_arena_init(&a);
    EW_EXPECT_OK(ew_trained_list(&a, &list, &n));
    EW_EXPECT(n >= 8);
    for (int i = 0; i < n; i++) {
        EW_EXPECT(list[i].what && list[i].input && list[i].bytes > 0);
        EW_EXPECT_INT((int)strlen(list[i].sha256), 64);
        EW_EXPECT(!list[i].url || strncmp(list[i].url, "https://", 8) == 0);
        /* a name of the zoo means that network, without weights */
        EW_EXPECT(strchr(list[i].name, '-') != NULL);
    }
    ew_arena_fini(&a);
}

/* SHA-256 of "abc", from FIPS 180-4's examples. */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void what_is_fetched_is_checked(void)
{
    const struct ew_trained t = {.name = "tiny-abc", .bytes = 3, .sha256 = ABC};
    char path[EW_TRAINED_PATH];
    bool already;
    char *right = strdup(ew_test_file("right", "abc", 3));
    char *wrong = strdup(ew_test_file("wrong", "abd", 3));
    char *cache = strdup(ew_test_path("cache"));
    setenv("XDG_CACHE_HOME", cache, 1);
    unsetenv("EW_MODELS");
    EW_EXPECT_ERR(ew_trained_get(&t, NULL, path, &already), EW_ERR_NOT_FOUND,
                  "is part of Edgewise");
    EW_EXPECT_ERR(ew_trained_get(&t, wrong, path, &already), EW_ERR_FORMAT, "its SHA-256 is");
    EW_EXPECT(!ew_trained_find("tiny-abc", path));
    EW_EXPECT_OK(ew_trained_get(&t, right, path, &already));
    EW_EXPECT(!already && access(path, R_OK) == 0);
    EW_EXPECT(ew_trained_find("tiny-abc", path));
    EW_EXPECT_OK(ew_trained_get(&t, wrong, path, &already));
    EW_EXPECT(already);
    free(right);
    free(wrong);
    free(cache);
}

static void ones_own_folder_comes_first(void)
{
    char path[EW_TRAINED_PATH];
    char *file = strdup(ew_test_file("mine.ewe", "x", 1));
    char *folder = strdup(file);
    *strrchr(folder, '/') = '\0';
    setenv("EW_MODELS", folder, 1);
    EW_EXPECT(ew_trained_find("mine", path));
    EW_EXPECT_STR(path, file);
    EW_EXPECT(!ew_trained_find("../mine", path));
    unsetenv("EW_MODELS");
    free(file);
    free(folder);
}

EW_TEST_MAIN(EW_TEST(the_list_is_whole), EW_TEST(what_is_fetched_is_checked),
             EW_TEST(ones_own_folder_comes_first))
