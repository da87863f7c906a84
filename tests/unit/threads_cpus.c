#include "cpus.h"
#include "threads.h"

#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { WORD_BITS = CHAR_BIT * sizeof(unsigned long) };

static void mask_add(struct cpu_mask *mask, int cpu)
{
    mask->words[cpu / WORD_BITS] |= 1UL << cpu % WORD_BITS;
}

Test(cpus, an_empty_mask_has_no_cpu)
{
    const struct cpu_mask mask = {{0}};

    cr_assert_eq(profil_cpus_next(&mask, 0), -1);
    cr_assert_eq(profil_cpus_next(&mask, CPUS_LIMIT - 1), -1);
    cr_assert_eq(profil_cpus_next(&mask, CPUS_LIMIT), -1);
}

Test(cpus, the_cpus_of_a_mask_come_in_order_across_the_borders_of_its_words)
{
    static const int cpus[] = {
        0,   1,    WORD_BITS - 1,  WORD_BITS,      2 * WORD_BITS - 1, 2 * WORD_BITS + 5,
        999, 1024, CPUS_LIMIT - 2, CPUS_LIMIT - 1,
    };
    struct cpu_mask mask = {{0}};
    int cpu = -1;

    for (size_t i = 0; i < LENGTH_OF(cpus); i++)
        mask_add(&mask, cpus[i]);
    for (size_t i = 0; i < LENGTH_OF(cpus); i++) {
        cpu = profil_cpus_next(&mask, cpu + 1);
        cr_assert_eq(cpu, cpus[i]);
    }
    cr_assert_eq(profil_cpus_next(&mask, cpu + 1), -1);
}

Test(cpus, the_search_finds_the_cpu_it_starts_at_and_none_before)
{
    for (int cpu = 0; cpu < CPUS_LIMIT; cpu++) {
        struct cpu_mask mask = {{0}};

        mask_add(&mask, cpu);
        if (profil_cpus_next(&mask, 0) != cpu || profil_cpus_next(&mask, cpu) != cpu ||
            profil_cpus_next(&mask, cpu + 1) != -1)
            cr_assert_fail("CPU %d alone was not found as it should be", cpu);
    }
}

static int count_cpus(const struct cpu_mask *mask)
{
    int count = 0;

    for (int cpu = profil_cpus_next(mask, 0); cpu >= 0; cpu = profil_cpus_next(mask, cpu + 1))
        count++;
    return count;
}

static struct cpu_mask affinity(void)
{
    struct cpu_mask mask = {{0}};

    cr_assert_gt(syscall(SYS_sched_getaffinity, 0, sizeof(mask), &mask), 0);
    return mask;
}

static void set_affinity(const struct cpu_mask *mask)
{
    cr_assert_eq(syscall(SYS_sched_setaffinity, 0, sizeof(*mask), mask), 0);
}

static bool same(const struct cpu_mask *left, const struct cpu_mask *right)
{
    return memcmp(left, right, sizeof(*left)) == 0;
}

/* What the kernel gives to a thread that asks for all. */
static struct cpu_mask widest_affinity(void)
{
    struct cpu_mask all;

    memset(&all, 0xff, sizeof(all));
    set_affinity(&all);
    return affinity();
}

Test(cpus, the_cpus_are_all_that_a_thread_can_be_given)
{
    struct cpu_mask mask, widest = widest_affinity();

    memset(&mask, 0xaa, sizeof(mask));
    cr_assert_eq(profil_cpus_read(&mask), 0);
    cr_assert_geq(count_cpus(&mask), 1);
    cr_assert(same(&mask, &widest));
}

static void check_from_one_cpu(int cpu, const struct cpu_mask *widest)
{
    struct cpu_mask pinned = {{0}}, mask, after;

    mask_add(&pinned, cpu);
    set_affinity(&pinned);
    cr_assert_eq(profil_cpus_read(&mask), 0);
    cr_assert(same(&mask, widest));
    after = affinity();
    cr_assert(same(&after, &pinned));
}

Test(cpus, a_thread_on_one_cpu_sees_all_of_them_and_stays_on_its_own)
{
    struct cpu_mask widest = widest_affinity();
    int first = profil_cpus_next(&widest, 0), second = profil_cpus_next(&widest, first + 1);

    check_from_one_cpu(first, &widest);
    if (second >= 0)
        check_from_one_cpu(second, &widest);
}

enum { MOST_THREADS = 512 };

/* Threads that sleep until they are let go. */
struct crowd {
    size_t count;
    pthread_t threads[MOST_THREADS];
    _Atomic pid_t ids[MOST_THREADS];
    _Atomic size_t started;
    sem_t leave;
};

static struct crowd crowd;

static void *sleep_in_crowd(void *unused)
{
    (void)unused;
    atomic_store(&crowd.ids[atomic_fetch_add(&crowd.started, 1)], (pid_t)syscall(SYS_gettid));
    while (sem_wait(&crowd.leave) < 0)
        ;
    return NULL;
}

static void start_sleepers(size_t count)
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 << 10);
    for (size_t i = 0; i < count; i++) {
        pthread_t *thread = &crowd.threads[crowd.count++];

        cr_assert_eq(pthread_create(thread, &attributes, sleep_in_crowd, NULL), 0);
    }
    pthread_attr_destroy(&attributes);
    for (size_t i = 0; i < crowd.count; i++)
        while (atomic_load(&crowd.ids[i]) == 0)
            sched_yield();
}

static void begin_crowd(void)
{
    sem_init(&crowd.leave, 0, 0);
}

static void end_crowd(void)
{
    for (size_t i = 0; i < crowd.count; i++)
        sem_post(&crowd.leave);
    for (size_t i = 0; i < crowd.count; i++)
        pthread_join(crowd.threads[i], NULL);
}

TestSuite(threads, .init = begin_crowd, .fini = end_crowd, .timeout = 60);

struct visits {
    size_t count;
    pid_t ids[4 * MOST_THREADS];
    unsigned int generations[4 * MOST_THREADS];
    size_t newborn_left; /* to be started from inside the visits */
    size_t stop_at;
    int stop_result;
};

static struct visits visits;

static int note_visit(void *context, pid_t tid, unsigned int generation)
{
    struct visits *noted = context;

    cr_assert_lt(noted->count, LENGTH_OF(noted->ids));
    noted->ids[noted->count] = tid;
    noted->generations[noted->count] = generation;
    noted->count++;
    if (noted->newborn_left > 0) {
        noted->newborn_left--;
        start_sleepers(1);
    }
    return noted->count == noted->stop_at ? noted->stop_result : 0;
}

static size_t times_visited(pid_t tid)
{
    size_t times = 0;

    for (size_t i = 0; i < visits.count; i++)
        times += visits.ids[i] == tid;
    return times;
}

static unsigned int generation_of(pid_t tid)
{
    for (size_t i = 0; i < visits.count; i++)
        if (visits.ids[i] == tid)
            return visits.generations[i];
    return UINT_MAX;
}

static unsigned int last_generation(void)
{
    return visits.generations[visits.count - 1];
}

static void check_each_visited_once(void)
{
    cr_assert_eq(times_visited(getpid()), 1);
    for (size_t i = 0; i < crowd.count; i++)
        if (times_visited(crowd.ids[i]) != 1)
            cr_assert_fail("thread %zu of %zu was visited %zu times", i, crowd.count,
                           times_visited(crowd.ids[i]));
}

Test(threads, each_is_visited_once)
{
    start_sleepers(300);
    cr_assert_eq(profil_threads_visit(note_visit, &visits), 0);
    check_each_visited_once();
    cr_assert_eq(last_generation(), 0);
}

Test(threads, those_born_during_the_visits_are_visited_too_as_a_later_generation)
{
    start_sleepers(100);
    visits.newborn_left = 200;
    cr_assert_eq(profil_threads_visit(note_visit, &visits), 0);
    cr_assert_eq(crowd.count, 300);
    check_each_visited_once();
    for (size_t i = 0; i < crowd.count; i++)
        cr_assert_eq(generation_of(crowd.ids[i]) > 0, i >= 100);
}

static int start_one_each_time(void *context, pid_t tid, unsigned int generation)
{
    (void)tid, (void)generation;
    ++*(size_t *)context;
    if (crowd.count < MOST_THREADS)
        start_sleepers(1);
    return 0;
}

Test(threads, the_visits_end_where_each_of_them_begets_a_thread)
{
    size_t visited = 0;

    cr_assert_eq(profil_threads_visit(start_one_each_time, &visited), 0);
    cr_assert_geq(visited, 20);
    cr_assert_lt(crowd.count, MOST_THREADS);
}

Test(threads, the_first_negative_result_ends_the_visits_and_is_returned)
{
    start_sleepers(50);
    visits.stop_at = 7;
    visits.stop_result = -EMFILE;
    cr_assert_eq(profil_threads_visit(note_visit, &visits), -EMFILE);
    cr_assert_eq(visits.count, 7);
}

Test(threads, a_positive_result_is_not_the_end)
{
    start_sleepers(50);
    visits.stop_at = 7;
    visits.stop_result = 1;
    cr_assert_eq(profil_threads_visit(note_visit, &visits), 0);
    check_each_visited_once();
    cr_assert_eq(last_generation(), 0);
}

static void *leave_at_once(void *unused)
{
    return unused;
}

static _Atomic bool enough;

/* The kernel cuts its listing short when the thread it has come to is gone. */
static void *be_many_short_threads(void *unused)
{
    while (!atomic_load(&enough)) {
        pthread_t brief[4];
        size_t count = 0;

        while (count < LENGTH_OF(brief) &&
               pthread_create(&brief[count], NULL, leave_at_once, NULL) == 0)
            count++;
        while (count > 0)
            pthread_join(brief[--count], NULL);
    }
    return unused;
}

Test(threads, those_that_come_and_go_hide_none_that_stay)
{
    pthread_t coming_and_going;

    start_sleepers(40);
    cr_assert_eq(pthread_create(&coming_and_going, NULL, be_many_short_threads, NULL), 0);
    for (int round = 0; round < 200; round++) {
        visits.count = 0;
        cr_assert_eq(profil_threads_visit(note_visit, &visits), 0);
        check_each_visited_once();
    }
    atomic_store(&enough, true);
    pthread_join(coming_and_going, NULL);
}

Test(threads, no_descriptor_is_left_open)
{
    int before = dup(STDERR_FILENO), after;

    close(before);
    cr_assert_eq(profil_threads_visit(note_visit, &visits), 0);
    visits.count = 0;
    visits.stop_at = 1;
    visits.stop_result = -EIO;
    cr_assert_eq(profil_threads_visit(note_visit, &visits), -EIO);
    after = dup(STDERR_FILENO);
    cr_assert_eq(after, before);
    close(after);
}

static void *visit_alone(void *main_thread)
{
    int result;

    pthread_join(*(pthread_t *)main_thread, NULL);
    start_sleepers(3);
    result = profil_threads_visit(note_visit, &visits);
    _exit(result == 0 && times_visited((pid_t)syscall(SYS_gettid)) == 1 &&
                  times_visited(crowd.ids[0]) == 1 && times_visited(crowd.ids[2]) == 1
              ? 0
              : 1);
}

Test(threads, they_are_visited_also_when_the_main_thread_has_gone)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        static pthread_t self, visitor;

        self = pthread_self();
        pthread_create(&visitor, NULL, visit_alone, &self);
        pthread_exit(NULL);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 0);
}
