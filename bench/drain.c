/* The drain loop by itself: records as the kernel writes them in a ring of ordinary memory, read
 * by the library's own code into counters.
 *
 * drain time ROUNDS        ns per record, the median and the quartiles of the rounds
 * drain count ROUNDS       the same work, for a tool that counts the instructions
 * drain system-calls       ends by SIGSYS if draining makes a system call */
#include "report.h"
#include "tally.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_BYTES = 32 << 10, /* the default at 10 ms */
    RECORD_WORDS = 8,      /* header, IP, TID, value, ID, lost, ABI, register */
    RECORDS = RING_BYTES / (8 * RECORD_WORDS),
    COUNTERS = 4096,
    TEXT = 0x400000
};

static struct perf_event_mmap_page page;
static uint64_t data[RING_BYTES / 8] __attribute__((aligned(4096)));
static unsigned int counters[COUNTERS];

/* A list of rings with one ring in it. The attachment's own elements begin with theirs, and the
 * library reads no further. */
static union {
    struct ring ring;
    unsigned char room[4096];
} rings;

static struct attachment attachment = {.ring_count = 1, .ring_memory = {.base = &rings}};
static struct tally tally = {.subticks = 1, .sample_period = 10000000, .random = 1};

static void prepare(void)
{
    const struct range range = {.counters = counters,
                                .buckets = COUNTERS,
                                .offset = TEXT,
                                .scale = 65536,
                                .shift = BUCKET_SHIFT_32};

    rings.ring = (struct ring){.page = &page,
                               .data = (const unsigned char *)data,
                               .size = RING_BYTES,
                               .id_word = 4,
                               .register_word = 6};
    tally.process = getpid();
    tally.ranges = profil_range_set_new(&range, 1, NULL);
    if (!tally.ranges)
        report_failure("ranges", -ENOMEM);
}

/* Fills the ring to its end, one record in eight of them from the kernel. */
static void fill(void)
{
    static uint32_t random = 1;

    for (size_t i = 0; i < RECORDS; i++) {
        uint64_t *word = &data[i * RECORD_WORDS];
        struct perf_event_header header = {.type = PERF_RECORD_SAMPLE,
                                           .misc = i % 8 ? PERF_RECORD_MISC_USER
                                                         : PERF_RECORD_MISC_KERNEL,
                                           .size = 8 * RECORD_WORDS};
        uint32_t ids[2] = {(uint32_t)tally.process, (uint32_t)tally.process};

        random = random * 1664525 + 1013904223;
        memcpy(&word[0], &header, sizeof(header));
        word[1] = TEXT + random % (4 * COUNTERS);
        memcpy(&word[2], ids, sizeof(ids));
        word[3] = 10000000;
        word[4] = 1;
        word[5] = 0;
        word[6] = PERF_SAMPLE_REGS_ABI_64;
        word[7] = word[1];
    }
    __atomic_store_n(&page.data_head, page.data_head + RING_BYTES, __ATOMIC_RELEASE);
}

/* Apart from the rest, as the place where an instruction counter begins. */
__attribute__((noinline)) static size_t drain_ring(void)
{
    return profil_tally_drain(&tally, &attachment);
}

static void drain(void)
{
    uint64_t before = tally.counts.ticks;

    if (drain_ring() != RECORDS || tally.counts.ticks - before != RECORDS) {
        fputs("records were not counted\n", stderr);
        abort();
    }
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void time_rounds(size_t rounds)
{
    double *taken = calloc(rounds + 1, sizeof(*taken));

    if (!taken || rounds == 0)
        report_failure("calloc", -ENOMEM);
    for (size_t i = 0; i < rounds; i++) {
        double begin;

        fill();
        begin = nanoseconds();
        drain();
        taken[i] = (nanoseconds() - begin) / RECORDS;
    }
    qsort(taken, rounds, sizeof(*taken), compare);
    report("records_per_round", RECORDS);
    report("ns_per_record", taken[rounds / 2]);
    report("ns_per_record_q1", taken[rounds / 4]);
    report("ns_per_record_q3", taken[rounds * 3 / 4]);
    free(taken);
}

static void count_rounds(size_t rounds)
{
    for (size_t i = 0; i < rounds; i++) {
        fill();
        drain();
    }
    report("records", (double)rounds * RECORDS);
}

/* From here on, the end of the program is the only call that the kernel takes. */
static void forbid_system_calls(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
        report_failure("seccomp", -errno);
}

static void drain_without_system_calls(void)
{
    fill();
    forbid_system_calls();
    drain();
    _exit(0);
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;

    prepare();
    if (argc > 1 && strcmp(argv[1], "time") == 0)
        time_rounds(rounds);
    else if (argc > 1 && strcmp(argv[1], "count") == 0)
        count_rounds(rounds);
    else if (argc > 1 && strcmp(argv[1], "system-calls") == 0)
        drain_without_system_calls();
    else
        return 2;
    return 0;
}
