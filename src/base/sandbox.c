/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp filters and Landlock rules, written by hand, without a library. */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif

#if defined(__x86_64__)
#define NATIVE_ARCH   AUDIT_ARCH_X86_64
#define FOREIGN_CALLS 0x40000000u /* x32 has the same architecture value but other numbers */
#elif defined(__aarch64__)
#define NATIVE_ARCH   AUDIT_ARCH_AARCH64
#define FOREIGN_CALLS UINT32_MAX
#endif

#ifdef NATIVE_ARCH
static const uint32_t refused_calls[] = {
    SYS_execve,
    SYS_execveat,
    SYS_socket,
    SYS_connect,
    SYS_process_vm_readv,
#ifndef __SANITIZE_ADDRESS__ /* whose leak detection traces the process */
    SYS_ptrace,
#endif
    SYS_process_vm_writev,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_add_key,
    SYS_keyctl,
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup, /* could open sockets without the calls above */
#endif
};
#define N_REFUSED (sizeof(refused_calls) / sizeof(refused_calls[0]))

static struct sock_filter load(size_t offset)
{
    return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static struct sock_filter answer(uint32_t what)
{
    return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what);
}

/* Skips `skip` instructions if the loaded word compares true with k. */
static struct sock_filter skip_if(unsigned short compare, uint32_t k, size_t skip)
{
    return (struct sock_filter)BPF_JUMP((unsigned short)(BPF_JMP | compare | BPF_K), k,
                                        (unsigned char)skip, 0);
}

static bool hold(struct sock_filter *code, size_t n)
{
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/* Rejects calls of other architectures, then loads the call's number.  Returns the number of
 * instructions. */
static size_t begin_filter(struct sock_filter *code, size_t refuse)
{
    size_t n = 0;
    code[n++] = load(offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 0,
                                             (unsigned char)(refuse - 2));
    code[n++] = load(offsetof(struct seccomp_data, nr));
    code[n] = skip_if(BPF_JGE, FOREIGN_CALLS, refuse - n - 1);
    n++;
    return n;
}

bool ew_sandbox_no_programs(void)
{
    /* header, one comparison per refused call, "allow", "refuse" */
    struct sock_filter code[N_REFUSED + 6];
    const size_t refuse = N_REFUSED + 5;
    size_t n = begin_filter(code, refuse);
    for (size_t i = 0; i < N_REFUSED; i++, n++)
        code[n] = skip_if(BPF_JEQ, refused_calls[i], refuse - n - 1);
    code[n++] = answer(SECCOMP_RET_ALLOW);
    code[n++] = answer(SECCOMP_RET_ERRNO | EPERM);
    return hold(code, n);
}

/* Calls of a compute-only process: open descriptors, memory, exit. */
static const uint32_t computing_calls[] = {
    SYS_read,        SYS_write,          SYS_futex,         SYS_munmap,          SYS_mremap,
    SYS_brk,         SYS_madvise,        SYS_clock_gettime, SYS_sched_yield,     SYS_getpid,
    SYS_gettid,      SYS_rt_sigprocmask, SYS_rt_sigreturn,  SYS_restart_syscall, SYS_exit,
    SYS_exit_group,
#ifdef __SANITIZE_ADDRESS__ /* which calls it before every noreturn function */
    SYS_sigaltstack,
#endif
};
#define N_COMPUTING (sizeof(computing_calls) / sizeof(computing_calls[0]))

/* Loads the lower half of an argument, which suffices for int arguments. */
static struct sock_filter load_argument(int i)
{
    const size_t lower = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;
    return load(offsetof(struct seccomp_data, args) + 8 * (size_t)i + lower);
}

bool ew_sandbox_compute_only(void)
{
    /* header, one comparison per call, calls with checked arguments, "refuse", "allow" */
    struct sock_filter code[N_COMPUTING + 14];
    const size_t refuse = N_COMPUTING + 12, allow = refuse + 1;
    size_t n = begin_filter(code, refuse);
    for (size_t i = 0; i < N_COMPUTING; i++, n++)
        code[n] = skip_if(BPF_JEQ, computing_calls[i], allow - n - 1);
    code[n++] = skip_if(BPF_JEQ, SYS_mmap, 4);
    code[n++] = skip_if(BPF_JEQ, SYS_mprotect, 3);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 5);
    code[n++] = load_argument(0); /* abort() signals the process itself */
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 4, 3);
    code[n++] = load_argument(2); /* no executable memory */
    code[n++] = skip_if(BPF_JSET, PROT_EXEC, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1);
    code[n++] = answer(SECCOMP_RET_ERRNO | EPERM);
    code[n++] = answer(SECCOMP_RET_ALLOW);
    return hold(code, n);
}
#else
bool ew_sandbox_no_programs(void)
{
    return false;
}

bool ew_sandbox_compute_only(void)
{
    return false;
}
#endif

#if defined(LANDLOCK_CREATE_RULESET_VERSION) && defined(SYS_landlock_create_ruleset)
#define READ_FILE_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE)
#define TRUNCATE_RIGHT   (UINT64_C(1) << 14) /* since Landlock ABI 3 */
#define FIRST_RIGHTS     ((UINT64_C(1) << 13) - 1)

/* Adds a rule.  Rights that only apply to folders are masked for files, for which the kernel would
 * reject them. */
static void grant(int rules, const char *path, uint64_t rights)
{
    struct stat st;
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rights &= READ_FILE_RIGHTS | LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE_RIGHT;
    const struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};
    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(fd);
}

bool ew_sandbox_files(const char *const *read, const char *const *write)
{
    const long version =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return false;
    const uint64_t all = FIRST_RIGHTS | (version >= 3 ? TRUNCATE_RIGHT : 0);
    const struct landlock_ruleset_attr attr = {.handled_access_fs = all};
    const int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (rules < 0)
        return false;
    for (; *read; read++)
        grant(rules, *read, READ_FILE_RIGHTS | LANDLOCK_ACCESS_FS_READ_DIR);
    for (; *write; write++)
        grant(rules, *write, all);
    const bool held = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                      syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return held;
}
#else
bool ew_sandbox_files(const char *const *read, const char *const *write)
{
    return false;
}
#endif
