#include "workload.h"

#include "backend.h"
#include "report.h"

#include <time.h>

/* Registers only: a loop that touches no memory takes the same time whatever else the machine has
 * in its caches. The functions differ in a constant, and take the same time per round. */
#define HOT(name, constant)                                                                        \
    extern const char __start_##name[], __stop_##name[];                                           \
    static                                                                                         \
        __attribute__((noinline, section(#name))) unsigned long run_##name(unsigned long rounds)   \
    {                                                                                              \
        unsigned long value = rounds | 1;                                                          \
                                                                                                   \
        while (rounds-- > 0) {                                                                     \
            value ^= value << 13;                                                                  \
            value ^= value >> 7;                                                                   \
            value ^= value << 17;                                                                  \
            value += (constant);                                                                   \
        }                                                                                          \
        return value;                                                                              \
    }

#define ENTRY(name)                                                                                \
    {                                                                                              \
        run_##name, __start_##name, __stop_##name                                                  \
    }

HOT(hot_one, 1)
HOT(hot_two, 3)
HOT(hot_three, 5)
HOT(hot_four, 7)
HOT(hot_five, 9)

const struct hot workload_hot[HOT_FUNCTIONS] = {ENTRY(hot_one), ENTRY(hot_two), ENTRY(hot_three),
                                                ENTRY(hot_four), ENTRY(hot_five)};

/* What a function returns goes here: a result that nobody sees would not be computed. */
static volatile unsigned long sink;

size_t workload_find(uintptr_t pc)
{
    size_t i = 0;

    while (i < HOT_FUNCTIONS &&
           (pc < (uintptr_t)workload_hot[i].start || pc >= (uintptr_t)workload_hot[i].end))
        i++;
    return i;
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t workload_thread_time(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t workload_process_time(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t workload_wall_time(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* Rounds in a millisecond, the fastest of a few: what interrupts a trial only makes it slower. */
static unsigned long rounds_per_millisecond(void)
{
    enum { TRIALS = 5, TRIAL_ROUNDS = 200000 };
    static unsigned long rounds;
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < TRIALS && rounds == 0; i++) {
        uint64_t begin = workload_thread_time(), took;

        sink = workload_hot[0].run(TRIAL_ROUNDS);
        took = workload_thread_time() - begin;
        best = took < best ? took : best;
    }
    if (rounds == 0)
        rounds = (unsigned long)(TRIAL_ROUNDS * 1000000.0 / (double)(best + 1)) + 1;
    return rounds;
}

unsigned long workload_rounds(uint64_t nanoseconds)
{
    return (unsigned long)((double)nanoseconds / 1e6 * (double)rounds_per_millisecond()) + 1;
}

uint64_t workload_burn(size_t function, uint64_t nanoseconds)
{
    enum { CHUNK_NANOSECONDS = 100000 };
    unsigned long chunk = workload_rounds(CHUNK_NANOSECONDS);
    uint64_t begin = workload_thread_time(), used;

    do {
        sink = workload_hot[function].run(chunk);
        used = workload_thread_time() - begin;
    } while (used + CHUNK_NANOSECONDS < nanoseconds);
    if (used < nanoseconds)
        sink = workload_hot[function].run(workload_rounds(nanoseconds - used));
    return workload_thread_time() - begin;
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    uint64_t begin;

    backend_enter();
    if (worker->gate)
        pthread_barrier_wait(worker->gate);
    begin = workload_thread_time();
    if (worker->rounds)
        sink = workload_hot[worker->function].run(worker->rounds);
    else
        workload_burn(worker->function, worker->nanoseconds);
    worker->used = workload_thread_time() - begin;
    backend_leave();
    return NULL;
}

void worker_start(struct worker *worker)
{
    int error = pthread_create(&worker->thread, NULL, run_worker, worker);

    if (error)
        report_failure("pthread_create", -error);
}

void worker_join(struct worker *worker)
{
    pthread_join(worker->thread, NULL);
}

uint64_t workers_burn(struct worker *workers, size_t count)
{
    pthread_barrier_t gate;
    uint64_t used = 0;

    workload_rounds(1); /* calibrates, before there are threads */
    pthread_barrier_init(&gate, NULL, (unsigned int)count);
    for (size_t i = 0; i < count; i++) {
        workers[i].gate = &gate;
        worker_start(&workers[i]);
    }
    for (size_t i = 0; i < count; i++) {
        worker_join(&workers[i]);
        used += workers[i].used;
    }
    pthread_barrier_destroy(&gate);
    return used;
}

uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

double random_unit(uint64_t *state)
{
    return (double)(random_next(state) >> 11) * 0x1p-53;
}
