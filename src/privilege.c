#include "privilege.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef HAVE_LIBCAP
#include <sys/capability.h>
#endif

/* Linux 5.8; the capability before that, and still, is CAP_SYS_ADMIN. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_SYS_ADMIN
#define CAP_SYS_ADMIN 21
#endif

enum { SECCOMP_FILTER = 2 };

/* The number that the file begins with, as a sysctl does. No malloc: the sampler is to have none.
 */
static int read_number(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *end;
    long number;

    if (fd < 0)
        return FACT_UNKNOWN;
    if (read(fd, text, sizeof(text) - 1) < 0)
        text[0] = '\0';
    close(fd);
    number = strtol(text, &end, 10);
    return end == text ? FACT_UNKNOWN : (int)number;
}

void profil_privilege_look(struct facts *facts)
{
    facts->paranoid = read_number("/proc/sys/kernel/perf_event_paranoid");
    facts->mlock_kb = read_number("/proc/sys/kernel/perf_event_mlock_kb");
}

static bool is_filtered(void)
{
    return prctl(PR_GET_SECCOMP) == SECCOMP_FILTER;
}

#ifdef HAVE_LIBCAP
static bool has(cap_t set, cap_value_t capability)
{
    cap_flag_value_t value = CAP_CLEAR;

    return cap_get_flag(set, capability, CAP_EFFECTIVE, &value) == 0 && value == CAP_SET;
}

static bool may_monitor(void)
{
    cap_t set = cap_get_proc();
    bool result = set && (has(set, CAP_PERFMON) || has(set, CAP_SYS_ADMIN));

    if (set)
        cap_free(set);
    return result;
}
#else
static bool may_monitor(void)
{
    return false;
}
#endif

static void add_hard_limit(struct reason *reason, const char *name, int resource)
{
    struct rlimit limit;

    if (getrlimit((__rlimit_resource_t)resource, &limit) == 0)
        profil_reason_add(reason, "%s is %llu", name, (unsigned long long)limit.rlim_max);
}

static void add_limit(struct reason *reason, const char *name, int resource, rlim_t unit,
                      const char *unit_name)
{
    struct rlimit limit;

    if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        profil_reason_add(reason, "%s is unlimited", name);
    else
        profil_reason_add(reason, "%s is %llu%s", name, (unsigned long long)(limit.rlim_cur / unit),
                          unit_name);
}

static void add_number(struct reason *reason, const char *name, int number)
{
    if (number == FACT_UNKNOWN)
        profil_reason_add(reason, "%s cannot be read", name);
    else
        profil_reason_add(reason, "%s is %d", name, number);
}

static void explain_permission(int level, struct reason *reason)
{
    /* 3 and more are the additions of Debian and others: no events at all for the unprivileged. */
    if (!may_monitor() && (level > 2 || level == FACT_UNKNOWN)) {
        add_number(reason, "the sysctl kernel.perf_event_paranoid", level);
        profil_reason_add(reason,
                          " and the process lacks CAP_PERFMON; set the sysctl to 2 or less, or "
                          "grant the capability");
    } else if (is_filtered()) {
        profil_reason_add(reason,
                          "a seccomp filter is in force, as in most containers, and refuses "
                          "the call; let it pass perf_event_open");
        profil_reason_add(reason, " (");
        add_number(reason, "kernel.perf_event_paranoid", level);
        profil_reason_add(reason, ")");
    } else {
        add_number(reason, "the sysctl kernel.perf_event_paranoid", level);
        profil_reason_add(reason,
                          ", which is not what stands in the way: look for a security module's "
                          "rule (SELinux perf_event, lockdown)");
    }
}

static void explain_missing_call(struct reason *reason)
{
    if (is_filtered())
        profil_reason_add(reason,
                          "a seccomp filter is in force, as in most containers, and answers for "
                          "the kernel; let it pass perf_event_open");
    else
        profil_reason_add(reason, "the kernel was built without CONFIG_PERF_EVENTS");
}

static void explain_full_system(struct reason *reason)
{
    profil_reason_add(reason, "the system's table of open files is full; raise the sysctl "
                              "fs.file-max");
}

static void explain_event(int error, const struct facts *facts, struct reason *reason)
{
    switch (error) {
    case -EACCES:
    case -EPERM:
        explain_permission(facts->paranoid, reason);
        break;
    case -ENOSYS:
        explain_missing_call(reason);
        break;
    case -EMFILE:
        profil_reason_add(reason, "an event for each thread and CPU is needed, and ");
        add_hard_limit(reason, "RLIMIT_NOFILE", RLIMIT_NOFILE);
        profil_reason_add(reason, " by its hard limit (ulimit -Hn); raise it");
        break;
    case -ENFILE:
        explain_full_system(reason);
        break;
    case -ENOENT:
    case -ENODEV:
    case -EOPNOTSUPP:
        profil_reason_add(reason,
                          "this machine does not have the event, as where a virtual machine is "
                          "given no performance counters; \"perf list\" shows what there is");
        break;
    case -ENOMEM:
        profil_reason_add(reason, "the kernel has no memory for another event");
        break;
    default:
        profil_reason_add(reason, "the kernel does not take the event as described");
        break;
    }
}

static void explain_no_memory(struct reason *reason)
{
    profil_reason_add(reason, "there is no memory or address space for it");
}

static void explain_ring(int error, const struct facts *facts, struct reason *reason)
{
    if (error != -EPERM) {
        explain_no_memory(reason);
        return;
    }
    add_number(reason, "the sysctl kernel.perf_event_mlock_kb", facts->mlock_kb);
    profil_reason_add(reason,
                      " for each CPU and all of the user's processes together, beyond that ");
    add_limit(reason, "RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, 1024, " KiB");
    profil_reason_add(reason,
                      " (ulimit -l), and both are used up; raise one or stop other profilers");
}

static void explain_refusal(struct reason *reason)
{
    if (is_filtered())
        profil_reason_add(reason,
                          "a seccomp filter is in force, as in most containers, and refuses "
                          "the call; let it pass");
    else
        profil_reason_add(reason, "the kernel refuses it");
}

static void explain_thread(int error, struct reason *reason)
{
    if (error == -EAGAIN) {
        add_limit(reason, "RLIMIT_NPROC", RLIMIT_NPROC, 1, "");
        profil_reason_add(reason, " (ulimit -u), or the cgroup's pids.max is reached; raise it");
    } else if (error == -ENOMEM) {
        explain_no_memory(reason);
    } else {
        explain_refusal(reason);
    }
}

static const char *operation(enum refusal refusal)
{
    static const char *const names[] = {[REFUSAL_MEMORY] = "allocating memory",
                                        [REFUSAL_THREAD] = "creating the sampler thread",
                                        [REFUSAL_TABLE] = "leaving the program's descriptor table",
                                        [REFUSAL_SIGNALFD] = "signalfd",
                                        [REFUSAL_BUFFER] = "checking the counters",
                                        [REFUSAL_CPUS] = "reading the CPUs",
                                        [REFUSAL_THREADS] = "reading /proc/self/task",
                                        [REFUSAL_EVENT] = "perf_event_open",
                                        [REFUSAL_CONTROL] = "ioctl on an event",
                                        [REFUSAL_RING] = "mapping a ring buffer"};

    return names[refusal];
}

/* What can happen to any step that opens or allocates. */
static bool explain_shortage(int error, struct reason *reason)
{
    switch (error) {
    case -EMFILE:
        profil_reason_add(reason, "no descriptor can be had, and ");
        add_limit(reason, "RLIMIT_NOFILE", RLIMIT_NOFILE, 1, "");
        profil_reason_add(reason, " (ulimit -n); raise it");
        return true;
    case -ENFILE:
        explain_full_system(reason);
        return true;
    case -ENOMEM:
        explain_no_memory(reason);
        return true;
    default:
        return false;
    }
}

static void explain_threads(int error, struct reason *reason)
{
    if ((error == -EPERM || error == -ENOSYS) && is_filtered())
        explain_refusal(reason);
    else
        profil_reason_add(reason,
                          "the process's threads cannot be listed; mount the /proc of its own "
                          "process namespace");
}

static void explain_cause(enum refusal refusal, int error, const struct facts *facts,
                          struct reason *reason)
{
    if (refusal != REFUSAL_EVENT && refusal != REFUSAL_RING && refusal != REFUSAL_THREAD &&
        explain_shortage(error, reason))
        return;
    switch (refusal) {
    case REFUSAL_THREAD:
        explain_thread(error, reason);
        break;
    case REFUSAL_EVENT:
        explain_event(error, facts, reason);
        break;
    case REFUSAL_RING:
        explain_ring(error, facts, reason);
        break;
    case REFUSAL_TABLE:
        profil_reason_add(reason, "both close_range and unshare(CLONE_FILES) are refused, as by a "
                                  "seccomp filter; let one of them pass");
        break;
    case REFUSAL_BUFFER:
        profil_reason_add(reason, "not all of the buffer is memory that can be written");
        break;
    case REFUSAL_THREADS:
        explain_threads(error, reason);
        break;
    default:
        explain_refusal(reason);
        break;
    }
}

void profil_privilege_explain(enum refusal refusal, int error, const struct facts *facts,
                              struct reason *reason)
{
    const char *name = strerrorname_np(-error);

    profil_reason_set(reason, "%s failed with %s: ", operation(refusal), name ? name : "an error");
    explain_cause(refusal, error, facts, reason);
}

/* The kernel says EACCES to whoever may not have it sampled at levels 0 to 2. */
bool profil_privilege_lacks_kernel(int error, const struct facts *facts)
{
    return error == -EACCES && facts->paranoid == 2 && !may_monitor();
}

void profil_privilege_explain_kernel(const struct facts *facts, struct reason *reason)
{
    profil_reason_set(reason, "time in the kernel is not charged: ");
    if (facts->paranoid != FACT_UNKNOWN && facts->paranoid <= 1) {
        profil_reason_add(reason, "the kernel does not let it be sampled here");
        return;
    }
    add_number(reason, "the sysctl kernel.perf_event_paranoid", facts->paranoid);
    profil_reason_add(
        reason, " and the process lacks CAP_PERFMON; set the sysctl to 1 or grant the capability");
}
