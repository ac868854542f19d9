/* SPDX-License-Identifier: Apache-2.0 */
/* CPU quotas of control groups, of made-up machines. */
#include "base/cpu_quota.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/owned.h"
#include "ew_test.h"

static void put(const char *machine, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", machine, file);
    EW_EXPECT_OK(ew_folder_make_parents(ew_test_path(path)));
    ew_test_file(path, text, strlen(text));
}

static int quota_of(const char *machine)
{
    struct ew_root r;
    if (!EW_EXPECT_OK(ew_root_open(ew_test_path(machine), &r)))
        return 0;
    const int cpus = ew_cpu_quota(&r);
    ew_root_close(&r);
    return cpus;
}

static void without_groups(void)
{
    put("none", "proc/self/stat", "1");
    EW_EXPECT_INT(quota_of("none"), INT_MAX);
}

static void a_container(void)
{
    put("max", "proc/self/cgroup", "0::/\n");
    put("max", "sys/fs/cgroup/cpu.max", "max 100000\n");
    EW_EXPECT_INT(quota_of("max"), INT_MAX);
    put("two", "proc/self/cgroup", "0::/\n");
    put("two", "sys/fs/cgroup/cpu.max", "200000 100000\n");
    EW_EXPECT_INT(quota_of("two"), 2);
    put("part", "sys/fs/cgroup/cpu.max", "150000 100000\n"); /* one and a half */
    EW_EXPECT_INT(quota_of("part"), 2);
    put("odd", "sys/fs/cgroup/cpu.max", "200000 0\n");
    EW_EXPECT_INT(quota_of("odd"), INT_MAX);
}

/* The least of a service's quota and those of the slices around it. */
static void a_service(void)
{
    put("service", "proc/self/cgroup", "1:name=x:/y\n0::/a.slice/b.service\n");
    put("service", "sys/fs/cgroup/a.slice/cpu.max", "300000 100000\n");
    put("service", "sys/fs/cgroup/a.slice/b.service/cpu.max", "50000 10000\n");
    EW_EXPECT_INT(quota_of("service"), 3);
}

static void version_one(void)
{
    put("old", "proc/self/cgroup", "3:cpu,cpuacct:/\n");
    put("old", "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("old", "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EW_EXPECT_INT(quota_of("old"), INT_MAX);
    put("old", "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
    EW_EXPECT_INT(quota_of("old"), 4);
}

EW_TEST_MAIN(EW_TEST(without_groups), EW_TEST(a_container), EW_TEST(a_service),
             EW_TEST(version_one))
