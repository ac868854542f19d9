/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing an instruction set at run time.  The kernels themselves are in kernel/. */
#include "backend/cpu/isa.h"

#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/mem.h"
#include "base/text.h"

#define EW_ISA_ROW(isa) extern const struct ew_kernels ew_kernels_##isa;
#include "isa_list.h"
#undef EW_ISA_ROW

static const struct ew_kernels *const built[] = {
#define EW_ISA_ROW(isa) &ew_kernels_##isa,
#include "isa_list.h"
#undef EW_ISA_ROW
};

#if defined(__x86_64__)
/* VNNI on 256-bit registers.  Not all supported compilers know AVX-VNNI by name, hence CPUID: leaf
 * 7, subleaf 1, EAX bit 4. */
static bool machine_has_vnni_256(void)
{
#if defined(EW_VNNI_EVEX)
    return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#else
    unsigned a = 0, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & 1u << 4;
#endif
}
#endif

/* __builtin_cpu_supports also checks that the operating system saves the registers (XGETBV). */
static bool machine_has(const char *isa)
{
#if defined(__x86_64__)
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("fma");
    if (strcmp(isa, "avx512vnni") == 0)
        return avx512 && __builtin_cpu_supports("avx512vnni") &&
               __builtin_cpu_supports("avx512vbmi");
    if (strcmp(isa, "avx512") == 0)
        return avx512;
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (strcmp(isa, "avx2vnni") == 0)
        return avx2 && machine_has_vnni_256();
    if (strcmp(isa, "avx2") == 0)
        return avx2;
#elif defined(__aarch64__)
    if (strcmp(isa, "neondot") == 0)
        return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#endif
    return true; /* NEON is part of every aarch64 */
}

const struct ew_kernels *ew_isa_at(int i)
{
    for (size_t k = 0; k < EW_COUNT(built); k++)
        if (machine_has(built[k]->isa) && i-- == 0)
            return built[k];
    return NULL;
}

ew_err ew_isa_find(const char *name, const struct ew_kernels **out)
{
    for (size_t k = 0; k < EW_COUNT(built); k++) {
        if (strcmp(built[k]->isa, name) != 0)
            continue;
        EW_CHECK(machine_has(name), EW_ERR_UNSUPPORTED,
                 "instruction set %s: this machine does not have it", name);
        *out = built[k];
        return EW_OK;
    }
    char all[128] = "";
    for (size_t k = 0; k < EW_COUNT(built); k++)
        ew_text_add(all, sizeof(all), "%s%s", k ? ", " : "", built[k]->isa);
    return ew_fail(EW_ERR_UNSUPPORTED, "instruction set %s: not in this build, which has %s", name,
                   all);
}

ew_err ew_isa_pick(const struct ew_kernels **out)
{
    const char *forced = getenv("EW_ISA");
    if (forced && *forced)
        return ew_fail_in(ew_isa_find(forced, out), "EW_ISA");
    *out = ew_isa_at(0);
    EW_CHECK(*out, EW_ERR_UNSUPPORTED,
             "this machine has none of the instruction sets of this build, the last of which is %s",
             built[EW_COUNT(built) - 1]->isa);
    return EW_OK;
}
