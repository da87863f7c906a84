#include "event.h"

#include "kernel.h"

/* The register that holds the user's program counter, by the kernel's numbering in
 * arch/.../include/uapi/asm/perf_regs.h. Elsewhere kernel time stays unattributed. */
#if defined(__x86_64__) || defined(__i386__)
#include <asm/perf_regs.h>
static const uint64_t program_counter_register = UINT64_C(1) << PERF_REG_X86_IP;
#elif defined(__aarch64__)
#include <asm/perf_regs.h>
static const uint64_t program_counter_register = UINT64_C(1) << PERF_REG_ARM64_PC;
#else
static const uint64_t program_counter_register = 0;
#endif

const struct event_source profil_event_task_clock = {.type = PERF_TYPE_SOFTWARE,
                                                     .config = PERF_COUNT_SW_TASK_CLOCK};

static void leave_kernel_out(struct perf_event_attr *attr)
{
    attr->exclude_kernel = 1;
    attr->sample_type &= ~(uint64_t)PERF_SAMPLE_REGS_USER;
    attr->sample_regs_user = 0;
}

/* PERF_SAMPLE_READ is asked for what it keeps the kernel from doing. Threads that have inherited
 * the same events are switched between by handing the events on with the rest of their period, so
 * that they share one clock, and the tick goes to whoever runs when it ends: two equal threads on
 * one CPU were seen to differ by 30 %. An event whose value is sampled stays with its thread
 * (Linux 6.12). With the value comes the event's number, and is taken from there: where several
 * software events count the same fault of a thread, the PERF_SAMPLE_ID in all of their samples is
 * that of the first. */
void profil_event_describe(struct event_spec *spec, const struct event_source *source,
                           uint64_t period, uint32_t wakeup, enum event_kernel kernel)
{
    *spec = (struct event_spec){.kernel_required = kernel == EVENT_KERNEL_REQUIRED,
                                .attr = {
                                    .type = source->type,
                                    .size = sizeof(struct perf_event_attr),
                                    .config = source->config,
                                    .config1 = source->config1,
                                    .config2 = source->config2,
                                    .exclude_user = source->exclude_user,
                                    .sample_period = period,
                                    .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                                   PERF_SAMPLE_READ | PERF_SAMPLE_REGS_USER,
                                    .sample_regs_user = program_counter_register,
                                    .read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST,
                                    .disabled = 1,
                                    .inherit = 1,
                                    .inherit_thread = 1,
                                    .exclude_hv = 1,
                                    .wakeup_events = wakeup,
                                }};
    if (program_counter_register == 0 || source->exclude_kernel || kernel == EVENT_KERNEL_EXCLUDED)
        leave_kernel_out(&spec->attr);
}

void profil_event_watch_threads(struct event_spec *spec)
{
    spec->attr.task = 1;
}

static bool is_clock(uint64_t type, uint64_t config)
{
    return type == PERF_TYPE_SOFTWARE &&
           (config == PERF_COUNT_SW_TASK_CLOCK || config == PERF_COUNT_SW_CPU_CLOCK);
}

bool profil_event_is_clock(const struct event_spec *spec)
{
    return is_clock(spec->attr.type, spec->attr.config);
}

bool profil_event_source_is_clock(const struct event_source *source)
{
    return is_clock(source->type, source->config);
}

bool profil_event_samples_kernel(const struct event_spec *spec)
{
    return !spec->attr.exclude_kernel;
}

/* The next demand after a refusal; false when less would not help. */
static bool lower(struct event_spec *spec, int error)
{
    struct perf_event_attr *attr = &spec->attr;

    switch (error) {
    case -EACCES:
    case -EPERM: /* perf_event_paranoid 2 keeps the kernel's samples from the unprivileged */
        if (attr->exclude_kernel || spec->kernel_required)
            return false;
        leave_kernel_out(attr);
        return true;
    case -EINVAL: /* an older kernel: before 6.12, 6.0, 5.13 */
        if (attr->sample_type & PERF_SAMPLE_READ)
            attr->sample_type ^= PERF_SAMPLE_READ | PERF_SAMPLE_ID;
        else if (attr->read_format & PERF_FORMAT_LOST)
            attr->read_format &= ~(uint64_t)PERF_FORMAT_LOST;
        else if (attr->inherit_thread)
            attr->inherit_thread = 0; /* the reader drops the samples of other processes */
        else
            return false;
        return true;
    default:
        return false;
    }
}

int profil_event_open(struct event_spec *spec, pid_t tid, int cpu)
{
    int fd;

    do
        fd = kernel_perf_event_open(&spec->attr, tid, cpu);
    while (fd < 0 && !spec->settled && lower(spec, fd));
    if (fd >= 0)
        spec->settled = true;
    return fd;
}

/* Births and ends of threads are no samples, and wake nobody each by itself: that would make them
 * dear. So many bytes of them do, which is four threads. */
enum { WATCH_WAKEUP_BYTES = 256 };

/* A ring takes its watermark, in bytes of whatever records, from the event that it is mapped over;
 * beside it, samples wake the reader as their own events say. 0: half the ring. */
int profil_event_open_ring(const struct event_spec *spec, int cpu)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .disabled = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .watermark = 1,
                                   .wakeup_watermark = spec->attr.task ? WATCH_WAKEUP_BYTES : 0};

    return kernel_perf_event_open(&attr, 0, cpu);
}
