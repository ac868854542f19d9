/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of tegrastats as printed by six boards and four releases. */
#include "device/tegrastats.h"

#include <string.h>

#include "base/mem.h"
#include "ew_test.h"

static struct ew_sample_value rail(const struct ew_tegrastats *t, const char *name)
{
    for (int i = 0; i < t->n_rails; i++)
        if (strcmp(t->rails[i].name, name) == 0)
            return t->rails[i].value;
    return ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
}

static struct ew_sample_value temp(const struct ew_tegrastats *t, const char *name)
{
    for (int i = 0; i < t->n_temps; i++)
        if (strcmp(t->temps[i].name, name) == 0)
            return t->temps[i].value;
    return ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
}

static void jetpack_4(void)
{
    struct ew_tegrastats t;
    EW_EXPECT(ew_tegrastats_parse(
        "RAM 3520/3964MB (lfb 23x1MB) SWAP 1944/1982MB (cached 2MB) IRAM 0/252kB(lfb 252kB) CPU "
        "[19%@204,4%@204,8%@204,27%@204] EMC_FREQ 7%@204 GR3D_FREQ 0%@76 APE 25 PLL@19C CPU@23C "
        "PMIC@50C GPU@22C AO@29C thermal@22.5C POM_5V_IN 1331/1331 POM_5V_GPU 0/0 POM_5V_CPU "
        "208/208",
        &t));
    EW_EXPECT_INT(t.n_cores, 4);
    EW_EXPECT_NEAR(t.core_load[3].v, 27, 0);
    EW_EXPECT_NEAR(t.core_mhz[0].v, 204, 0);
    EW_EXPECT_NEAR(t.ram_used.v, 3520.0 * 1048576, 0);
    EW_EXPECT_NEAR(t.emc_load.v, 7, 0);
    EW_EXPECT_NEAR(t.gpu_mhz.v, 76, 0);
    EW_EXPECT_INT(t.n_rails, 3);
    EW_EXPECT_NEAR(rail(&t, "POM_5V_IN").v, 1.331, 1e-12);
    EW_EXPECT_INT(t.n_temps, 5); /* without PMIC */
    EW_EXPECT_NEAR(temp(&t, "thermal").v, 22.5, 0);
}

/* Rails named GPU, CPU and SOC, beside GPU@40C and CPU [. */
static void agx_xavier(void)
{
    struct ew_tegrastats t;
    EW_EXPECT(ew_tegrastats_parse(
        "RAM 721/31927MB (lfb 7291x4MB) SWAP 0/15963MB (cached 0MB) CPU "
        "[2%@1190,0%@1190,0%@1190,0%@1190,off,off,off,off] EMC_FREQ 0%@665 GR3D_FREQ 0%@318 APE "
        "150 MTS fg 0% bg 0% AO@37.5C GPU@37.5C Tdiode@40C PMIC@100C AUX@36C CPU@37.5C "
        "thermal@36.9C Tboard@37C GPU 0/0 CPU 311/311 SOC 932/932 CV 0/0 VDDRQ 621/621 SYS5V "
        "1482/1482",
        &t));
    EW_EXPECT_INT(t.n_cores, 8);
    EW_EXPECT_INT(t.core_load[4].absent, EW_ABSENT_OFF);
    EW_EXPECT_INT(t.n_rails, 6);
    EW_EXPECT_NEAR(rail(&t, "CPU").v, 0.311, 1e-12);
    EW_EXPECT_NEAR(temp(&t, "CPU").v, 37.5, 0);
}

static void jetpack_5_and_6(void)
{
    struct ew_tegrastats t;
    EW_EXPECT(ew_tegrastats_parse(
        "04-11-2025 10:36:27 RAM 4321/62801MB (lfb 1759x4MB) SWAP 19/31400MB (cached 0MB) CPU "
        "[0%@729,0%@729] EMC_FREQ 0%@2133 GR3D_FREQ 40%@[0,305] VIC_FREQ 729 APE 174 CV0@-256C "
        "CPU@44.562C NC 0mW/0mW VDD_GPU_SOC 2340mW/2341mW VDDQ_VDD2_1V8AO 301mW/301mW NC 0mW/0mW",
        &t));
    EW_EXPECT_INT(t.n_rails, 2);
    EW_EXPECT_NEAR(rail(&t, "VDD_GPU_SOC").v, 2.34, 1e-12);
    EW_EXPECT_INT(temp(&t, "CV0").absent, EW_ABSENT_NOT_READY);
    EW_EXPECT_NEAR(temp(&t, "CPU").v, 44.562, 1e-9);
    EW_EXPECT_NEAR(t.gpu_load.v, 40, 0);
    EW_EXPECT_NEAR(t.gpu_mhz.v, 305, 0); /* the first GPC is off */
}

/* No SWAP, three figures per rail, temperature pairs; not root: no memory clock. */
static void jetpack_7_and_not_root(void)
{
    struct ew_tegrastats t;
    EW_EXPECT(ew_tegrastats_parse(
        "07-25-2026 09:08:28 RAM 20642/62817MB (lfb 1x2MB) CPU [23%@2201,10%@2201] EMC_FREQ "
        "3%@3199 GR3D_FREQ 12%@[1300,1300] NVENC0 off APE 174 cpu@52.968C/52.968C VDD_GPU_SOC "
        "5139mW/5139mW/5140mW",
        &t));
    EW_EXPECT_INT(t.swap_used.absent, EW_ABSENT_NO_SENSOR);
    EW_EXPECT_NEAR(temp(&t, "cpu").v, 52.968, 1e-9);
    EW_EXPECT_NEAR(rail(&t, "VDD_GPU_SOC").v, 5.139, 1e-12);
    EW_EXPECT(ew_tegrastats_parse("RAM 1288/3964MB (lfb 28x4MB)    CPU [100%@1479,89%@1479] "
                                  "EMC_FREQ 0% GR3D_FREQ 35% NVENC      off  PLL@32C",
                                  &t));
    EW_EXPECT_INT(t.gpu_mhz.absent, EW_ABSENT_NO_SENSOR);
    EW_EXPECT_NEAR(t.gpu_load.v, 35, 0);
    EW_EXPECT(ew_tegrastats_parse("GR3D_FREQ @[1575,0,0] cpu@40C", &t));
    EW_EXPECT_INT(t.gpu_load.absent, EW_ABSENT_NO_SENSOR);
    EW_EXPECT_NEAR(t.gpu_mhz.v, 1575, 0);
}

static void not_a_line(void)
{
    struct ew_tegrastats t;
    static const char *const lines[] = {
        "",   " ",   "# comment", "tegrastats: command not found", "CPU", "RAM", "RAM x/y",
        "@C", "A@C", "CPU [",     "99999999999999999999/1"};
    for (size_t i = 0; i < EW_COUNT(lines); i++)
        if (ew_tegrastats_parse(lines[i], &t) && strcmp(lines[i], "CPU [") != 0)
            EW_FAIL("'%s' was taken for a line", lines[i]);
}

EW_TEST_MAIN(EW_TEST(jetpack_4), EW_TEST(agx_xavier), EW_TEST(jetpack_5_and_6),
             EW_TEST(jetpack_7_and_not_root), EW_TEST(not_a_line))
