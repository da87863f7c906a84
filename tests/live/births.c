/* Threads that are born while the profile is being turned on: none is missed, and none, though its
 * creator's events and its own may both follow it, is counted twice.
 *
 * They do nothing until the profile is on and all have been born; then each burns for so long that,
 * bound to one CPU, it has exactly one tick. */
#include "profile.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CREATORS = 4, BIRTHS = 10, STARTS = 6 };

static const double life = 0.015;

struct generation {
    pthread_barrier_t gate;
    _Atomic bool begin;
    struct creator *creators;
};

struct creator {
    struct generation *generation;
    pthread_t thread;
    int number;
    struct support_burner born[BIRTHS];
};

static void prepare(struct creator *creator, int birth)
{
    creator->born[birth] = (struct support_burner){
        .hot = &support_hot_first, .seconds = life, .gate = &creator->generation->gate};
}

static void wait_for_begin(const struct creator *creator)
{
    support_bind(creator->number);
    while (!creator->generation->begin)
        usleep(100);
}

/* All of a creator's threads are its children. */
static void *create_children(void *argument)
{
    struct creator *creator = argument;

    wait_for_begin(creator);
    for (int i = 0; i < BIRTHS; i++) {
        prepare(creator, i);
        support_burner_start(&creator->born[i]);
    }
    return NULL;
}

/* Each is the child of the one before, so that it inherits all that this one has. */
struct link {
    struct creator *creator;
    int birth;
};

static void *create_next_and_burn(void *argument)
{
    struct link *link = argument, next = {link->creator, link->birth + 1};
    struct support_burner *self = &link->creator->born[link->birth];
    pthread_t thread = {0};

    if (next.birth < BIRTHS) {
        prepare(next.creator, next.birth);
        cr_assert_eq(pthread_create(&thread, NULL, create_next_and_burn, &next), 0);
    }
    pthread_barrier_wait(self->gate);
    self->used = support_burn_in(self->hot, self->seconds);
    if (next.birth < BIRTHS)
        pthread_join(thread, NULL);
    return NULL;
}

static void *create_chain(void *argument)
{
    struct creator *creator = argument;
    struct link first = {creator, 0};

    wait_for_begin(creator);
    prepare(creator, 0);
    return create_next_and_burn(&first);
}

static unsigned long whole_ticks_of(const struct creator *creator)
{
    unsigned long ticks = 0;

    for (int i = 0; i < BIRTHS; i++)
        ticks += support_whole_ticks(creator->born[i].used);
    return ticks;
}

/* Turns the profile on among the births, sooner or later; adds to the sums. */
static void start_among_births(void *(*create)(void *), bool chain, unsigned long *ticks,
                               unsigned long *expected)
{
    struct generation generation = {0};
    struct creator creators[CREATORS];
    unsigned short counter = 0;

    pthread_barrier_init(&generation.gate, NULL, CREATORS * BIRTHS + 1);
    for (int i = 0; i < CREATORS; i++) {
        creators[i] = (struct creator){.generation = &generation, .number = i};
        cr_assert_eq(pthread_create(&creators[i].thread, NULL, create, &creators[i]), 0);
    }
    generation.begin = true;
    usleep((useconds_t)(random() % 1000));
    cr_assert_eq(profil(&counter, sizeof(counter), 0, 0), 0, "profil: %s", strerror(errno));
    pthread_barrier_wait(&generation.gate);
    for (int i = 0; i < CREATORS; i++) {
        pthread_join(creators[i].thread, NULL);
        for (int j = 0; j < BIRTHS && !chain; j++)
            support_burner_join(&creators[i].born[j]);
        *expected += whole_ticks_of(&creators[i]);
    }
    support_off();
    *ticks += counter;
}

static void start_again_and_again(void *(*create)(void *), bool chain)
{
    unsigned long ticks = 0, expected = 0;

    support_require_perf();
    srandom(1);
    for (int i = 0; i < STARTS; i++)
        start_among_births(create, chain, &ticks, &expected);
    support_assert_ticks(ticks, (double)expected);
}

Test(births, children_born_during_the_call_are_counted_once)
{
    start_again_and_again(create_children, false);
}

Test(births, descendants_born_during_the_call_are_counted_once)
{
    start_again_and_again(create_chain, true);
}

/* Where a fault is two software events of a thread, each gives a sample of it. Like the rest it is
 * the start that matters: by then some threads have inherited what others are given. */
enum { FAULTING_PAGES = 10, MOST_FAULTING = 400 };

SUPPORT_SECTION(live_fault);

SUPPORT_IN_SECTION(live_fault) static void fault(volatile char *pages, size_t page)
{
    for (size_t i = 0; i < FAULTING_PAGES; i++)
        pages[i * page] = 1;
}

static _Atomic bool breeding, faulting;

static void *fault_when_told(void *pages)
{
    while (!faulting)
        usleep(1000);
    fault(pages, (size_t)sysconf(_SC_PAGESIZE));
    return NULL;
}

struct faulters {
    pthread_t breeder, thread[MOST_FAULTING];
    char *pages;  /* of the base size, which huge pages are not: a fault for each */
    size_t bytes; /* of one thread */
    int count;
};

static void *breed_faulters(void *argument)
{
    struct faulters *faulters = argument;

    while (breeding && faulters->count < MOST_FAULTING) {
        char *pages = faulters->pages + (size_t)faulters->count * faulters->bytes;

        if (pthread_create(&faulters->thread[faulters->count], NULL, fault_when_told, pages) != 0)
            break;
        faulters->count++;
    }
    return NULL;
}

static void begin_breeding(struct faulters *faulters)
{
    faulters->bytes = FAULTING_PAGES * (size_t)sysconf(_SC_PAGESIZE);
    faulters->pages = mmap(NULL, MOST_FAULTING * faulters->bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq((void *)faulters->pages, MAP_FAILED);
    madvise(faulters->pages, MOST_FAULTING * faulters->bytes, MADV_NOHUGEPAGE);
    faulters->count = 0;
    faulting = false;
    breeding = true;
    cr_assert_eq(pthread_create(&faulters->breeder, NULL, breed_faulters, faulters), 0);
    usleep(2000);
}

static void let_fault(struct faulters *faulters)
{
    breeding = false;
    pthread_join(faulters->breeder, NULL);
    faulting = true;
    for (int i = 0; i < faulters->count; i++)
        pthread_join(faulters->thread[i], NULL);
    munmap(faulters->pages, MOST_FAULTING * faulters->bytes);
}

Test(births, page_faults_of_threads_born_during_the_call_are_counted_once)
{
    static const struct support_hot faulty = {.start = __start_live_fault,
                                              .end = __stop_live_fault};
    uint64_t duplicates = 0;

    support_require_perf();
    for (int i = 0; i < STARTS; i++) {
        profil_profile *profile = profile_open((struct profil_options){.event = "page-faults"});
        static struct faulters faulters;
        uint64_t faults = 0, others = 0;
        struct profil_stats stats;

        profile_add_loop_as_one(profile, &faulty, &faults);
        profile_add_rest(profile, &others);
        begin_breeding(&faulters);
        profile_start(profile);
        let_fault(&faulters);
        profile_stop(profile);
        stats = profile_stats(profile);
        profile_close(profile);
        cr_expect_eq(faults, (uint64_t)faulters.count * FAULTING_PAGES, "%ju of %d, %ju duplicates",
                     (uintmax_t)faults, faulters.count * FAULTING_PAGES,
                     (uintmax_t)stats.duplicate);
        /* The kernel counts those of the calls and of the sampler, too. */
        cr_expect_geq(stats.event_count, faults + others);
        cr_expect_leq(stats.event_count, faults + others + stats.foreign + 5);
        duplicates += stats.duplicate;
    }
    cr_expect_gt(duplicates, 0, "no thread had two events: the comparison shows nothing");
}

/* A listing of threads ends early where one of them ends, and then may lack even the one that reads
 * it. */
static _Atomic bool ephemerals_go_on;

static void *be_ephemeral(void *unused)
{
    return unused;
}

static void *breed_ephemerals(void *unused)
{
    while (ephemerals_go_on) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, be_ephemeral, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return unused;
}

Test(births, a_start_beside_threads_that_come_and_go_does_not_fail)
{
    enum { BREEDERS = 2 };
    static unsigned short counter;
    pthread_t threads[BREEDERS];
    unsigned int starts = 0, failures = 0;
    double end = support_process_seconds() + 3;

    support_require_perf();
    cr_assert_eq(setenv("PROFIL_ENGINE", "perf", 1), 0);
    ephemerals_go_on = true;
    for (int i = 0; i < BREEDERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, breed_ephemerals, NULL), 0);
    while (support_process_seconds() < end) {
        starts++;
        failures += profil(&counter, sizeof(counter), 0, 0) != 0;
        support_off();
    }
    ephemerals_go_on = false;
    for (int i = 0; i < BREEDERS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_gt(starts, 20);
    cr_assert_eq(failures, 0, "%u of %u starts failed", failures, starts);
}
