#include "memory.h"

#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Sizes on both sides of the one from which the memory map is read instead of the memory. */
static const size_t megabytes[] = {1, 8, 9, 32};
enum { LARGE = 32 << 20 };

static unsigned char pattern_at(size_t at)
{
    return (unsigned char)(at % 251 + 1);
}

static void fill_pattern(unsigned char *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        bytes[i] = pattern_at(i);
}

static bool is_pattern(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != pattern_at(i))
            return false;
    return true;
}

static bool is_zero(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

Test(memory, growing_keeps_the_contents_and_adds_zeroes)
{
    const size_t sizes[] = {1, 100, page_size(), page_size() + 1, 100000, 5000000, 5000001};
    struct growable memory = {0};
    size_t used = 0;

    for (size_t i = 0; i < LENGTH_OF(sizes); i++) {
        cr_assert_eq(profil_memory_grow(&memory, sizes[i]), 0);
        cr_assert_geq(memory.bytes, sizes[i]);
        cr_assert(is_pattern(memory.base, used));
        cr_assert(is_zero((unsigned char *)memory.base + used, memory.bytes - used));
        fill_pattern(memory.base, used, sizes[i]);
        used = sizes[i];
    }
    profil_memory_free(&memory);
}

Test(memory, room_that_is_there_already_stays_where_it_is)
{
    struct growable memory = {0}, before;

    cr_assert_eq(profil_memory_grow(&memory, 10000), 0);
    before = memory;
    for (size_t bytes = 1; bytes <= memory.bytes; bytes += 999)
        cr_assert_eq(profil_memory_grow(&memory, bytes), 0);
    cr_assert_eq(profil_memory_grow(&memory, memory.bytes), 0);
    cr_assert_eq(memory.base, before.base);
    cr_assert_eq(memory.bytes, before.bytes);
    profil_memory_free(&memory);
}

Test(memory, room_that_cannot_be_had_leaves_the_old_one_as_it_was, .timeout = 10)
{
    const size_t impossible[] = {SIZE_MAX / 4, SIZE_MAX / 2 + 2, SIZE_MAX};
    struct growable memory = {0}, before;

    cr_assert_eq(profil_memory_grow(&memory, 5000), 0);
    fill_pattern(memory.base, 0, 5000);
    before = memory;
    for (size_t i = 0; i < LENGTH_OF(impossible); i++) {
        cr_assert_eq(profil_memory_grow(&memory, impossible[i]), -ENOMEM);
        cr_assert_eq(memory.base, before.base);
        cr_assert_eq(memory.bytes, before.bytes);
        cr_assert(is_pattern(memory.base, 5000));
    }
    profil_memory_free(&memory);
}

Test(memory, freed_memory_is_unmapped_and_can_grow_anew)
{
    struct growable memory = {0};
    unsigned char resident;
    void *base;

    cr_assert_eq(profil_memory_grow(&memory, 5000), 0);
    memset(memory.base, 1, 5000);
    base = memory.base;
    profil_memory_free(&memory);
    cr_assert_null(memory.base);
    cr_assert_eq(memory.bytes, 0);
    cr_assert_eq(mincore(base, 1, &resident), -1);
    cr_assert_eq(errno, ENOMEM);

    cr_assert_eq(profil_memory_grow(&memory, 5000), 0);
    cr_assert(is_zero(memory.base, 5000));
    profil_memory_free(&memory);
    profil_memory_free(&memory);
}

static char in_bss[40000];
static char in_data[40000] = {1};

static void check_accepted(void *start, size_t bytes)
{
    if (profil_memory_check_writable(start, bytes) != 0)
        cr_assert_fail("%zu bytes at %p were refused", bytes, start);
}

static void check_refused(const void *start, size_t bytes)
{
    int result = profil_memory_check_writable((void *)(uintptr_t)start, bytes);

    if (result != -EFAULT)
        cr_assert_fail("%zu bytes at %p gave %d", bytes, start, result);
}

/* Every small misalignment and odd size, and all of it. */
static void check_pieces_accepted(char *start, size_t bytes)
{
    for (size_t from = 0; from < 9; from++)
        for (size_t size = 1; size < 9; size++)
            check_accepted(start + from, size);
    for (size_t from = 0; from < 9; from++)
        check_accepted(start + from, bytes - from);
}

Test(memory, heap_stack_bss_and_data_are_writable_at_every_alignment)
{
    char on_stack[40000];
    char *on_heap = malloc(40000), *on_large_heap = malloc(LARGE);

    check_pieces_accepted(on_heap, 40000);
    check_pieces_accepted(on_large_heap, LARGE);
    check_pieces_accepted(on_stack, sizeof(on_stack));
    check_pieces_accepted(in_bss, sizeof(in_bss));
    check_pieces_accepted(in_data, sizeof(in_data));
    free(on_heap);
    free(on_large_heap);
}

Test(memory, no_bytes_are_writable_anywhere)
{
    check_accepted(NULL, 0);
    check_accepted((void *)UINTPTR_MAX, 0);
}

Test(memory, text_constants_the_first_page_and_the_last_are_not_writable)
{
    static const char constant[] = "constant";

    check_refused((const void *)(uintptr_t)profil_memory_grow, 2);
    check_refused((const void *)(uintptr_t)profil_memory_grow, LARGE);
    check_refused(constant, 1);
    check_refused(constant, LARGE);
    check_refused(NULL, 1);
    check_refused(NULL, LARGE);
    check_refused((const void *)1, 2);
    check_refused((const void *)UINTPTR_MAX, 1);
    check_refused((const void *)(UINTPTR_MAX - 7), 8);
}

Test(memory, a_size_that_goes_round_the_end_of_the_address_space_is_refused)
{
    check_refused(in_bss, SIZE_MAX);
    check_refused(in_bss, SIZE_MAX - (uintptr_t)in_bss + 2);
    check_refused(in_bss, SIZE_MAX - (uintptr_t)in_bss + 1);
    check_refused(in_bss, SIZE_MAX / 2);
    check_refused((const void *)UINTPTR_MAX, 2);
    check_refused(NULL, SIZE_MAX);
}

Test(memory, a_buffer_may_end_exactly_where_forbidden_memory_begins)
{
    for (size_t i = 0; i < LENGTH_OF(megabytes); i++) {
        size_t size = megabytes[i] << 20;
        unsigned char *bytes = guarded_pages(size);

        check_accepted(bytes, size);
        check_refused(bytes, size + 1);
        check_refused(bytes - 1, size);
        check_refused(bytes - 1, 1);
        for (size_t tail = 1; tail < 10; tail++) {
            check_accepted(bytes + size - tail, tail);
            check_refused(bytes + size - tail, tail + 1);
            check_accepted(bytes + tail, size - tail);
            check_refused(bytes - tail, size);
        }
    }
}

static size_t resident_pages(void *start, size_t bytes)
{
    size_t pages = bytes / page_size(), resident = 0;
    unsigned char *map = malloc(pages);

    cr_assert_eq(mincore(start, bytes, map), 0);
    for (size_t i = 0; i < pages; i++)
        resident += map[i] & 1;
    free(map);
    return resident;
}

static void make_read_only(unsigned char *page)
{
    cr_assert_eq(mprotect(page, page_size(), PROT_READ), 0);
}

static void make_hole(unsigned char *page)
{
    cr_assert_eq(munmap(page, page_size()), 0);
}

/* One spoilt page, wherever it is, is enough to refuse the buffer; on both sides of it one may
 * write. */
static void check_spoilt_page(size_t size, size_t at, void (*spoil)(unsigned char *page))
{
    size_t page = page_size();
    unsigned char *bytes = guarded_pages(size);

    check_accepted(bytes, size);
    spoil(bytes + at);
    check_refused(bytes, size);
    check_refused(bytes + at, 1);
    check_refused(bytes + at + page - 1, 1);
    check_accepted(bytes, at);
    check_accepted(bytes + at + page, size - at - page);
    if (at > 0)
        check_refused(bytes + 1, at);
    if (at + page < size)
        check_refused(bytes + at + page - 1, size - at - page + 1);
    munmap(bytes, size);
}

static void check_spoilt_pages(void (*spoil)(unsigned char *page))
{
    for (size_t i = 0; i < LENGTH_OF(megabytes); i++) {
        size_t size = megabytes[i] << 20;

        check_spoilt_page(size, 0, spoil);
        check_spoilt_page(size, page_size(), spoil);
        check_spoilt_page(size, size / 2, spoil);
        check_spoilt_page(size, size - page_size(), spoil);
    }
}

Test(memory, one_read_only_page_at_any_place_is_refused)
{
    check_spoilt_pages(make_read_only);
}

Test(memory, one_page_that_is_not_mapped_at_any_place_is_refused)
{
    check_spoilt_pages(make_hole);
}

Test(memory, contents_do_not_change)
{
    for (size_t i = 0; i < LENGTH_OF(megabytes); i++) {
        size_t size = megabytes[i] << 20;
        unsigned char *bytes = guarded_pages(size);

        fill_pattern(bytes, 0, size);
        check_accepted(bytes, size);
        check_accepted(bytes + 3, size - 5);
        check_refused(bytes, size + 1);
        cr_assert(is_pattern(bytes, size));
    }
}

static _Atomic uint32_t busy_counter;
static _Atomic bool enough;

static void *count_up(void *counted)
{
    uint32_t *count = counted;

    while (!atomic_load(&enough)) {
        atomic_fetch_add(&busy_counter, 1);
        ++*count;
    }
    return NULL;
}

Test(memory, nothing_is_lost_that_others_write_meanwhile)
{
    uint32_t count = 0;
    pthread_t writer;

    cr_assert_eq(pthread_create(&writer, NULL, count_up, &count), 0);
    while (atomic_load(&busy_counter) == 0)
        ;
    for (int i = 0; i < 100000; i++)
        check_accepted(&busy_counter, sizeof(busy_counter));
    atomic_store(&enough, true);
    pthread_join(writer, NULL);
    cr_assert_eq(atomic_load(&busy_counter), count);
}

/* Shared memory of a file, and memory of its own, one directly behind the other. */
static unsigned char *two_kinds_of_memory(size_t each)
{
    unsigned char *bytes = guarded_pages(2 * each);

    cr_assert_eq(mmap(bytes + each, each, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                 bytes + each);
    return bytes;
}

Test(memory, adjacent_mappings_of_different_kinds_are_one_buffer)
{
    for (size_t i = 0; i < LENGTH_OF(megabytes); i++) {
        size_t each = megabytes[i] << 19;
        unsigned char *bytes = two_kinds_of_memory(each);

        check_accepted(bytes, 2 * each);
        check_accepted(bytes + 5000, 2 * each - 5000 - 777);
        check_refused(bytes, 2 * each + 1);
        make_read_only(bytes + each);
        check_refused(bytes, 2 * each);
        check_accepted(bytes, each);
        make_hole(bytes + each);
        check_refused(bytes, 2 * each);
        check_accepted(bytes + each + page_size(), each - page_size());
    }
}

static void check_stays_sparse(size_t size)
{
    unsigned char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    cr_assert_neq((void *)bytes, MAP_FAILED);
    check_accepted(bytes, size);
    check_accepted(bytes + 1, size - 3);
    make_read_only(bytes + size / 4 * 3);
    check_refused(bytes, size);
    /* A page looked at may be a huge one, of which this is room for two. */
    cr_assert_leq(resident_pages(bytes, size) * page_size(), 4 << 20);
    munmap(bytes, size);
}

Test(memory, a_buffer_of_gigabytes_is_accepted_and_does_not_become_resident)
{
    check_stays_sparse(64 << 20);
    check_stays_sparse(sizeof(size_t) > 4 ? (size_t)1 << 32 : (size_t)1 << 29);
}

static struct rlimit set_limit(int resource, rlim_t soft)
{
    struct rlimit before, limit;

    cr_assert_eq(getrlimit(resource, &before), 0);
    limit = before;
    limit.rlim_cur = soft;
    cr_assert_eq(setrlimit(resource, &limit), 0);
    return before;
}

Test(memory, no_descriptor_is_left_open)
{
    unsigned char *bytes = guarded_pages(LARGE);
    int before = dup(STDERR_FILENO), after;

    close(before);
    check_accepted(bytes, LARGE);
    check_refused(bytes, LARGE + 1);
    after = dup(STDERR_FILENO);
    cr_assert_eq(after, before);
    close(after);
}

Test(memory, a_large_buffer_is_judged_also_when_no_descriptor_is_free)
{
    unsigned char *bytes = guarded_pages(LARGE);
    struct rlimit before = set_limit(RLIMIT_NOFILE, 0);
    int writable, spoilt, probe;

    probe = open("/dev/null", O_RDONLY);
    writable = profil_memory_check_writable(bytes, LARGE);
    make_read_only(bytes + LARGE / 2);
    spoilt = profil_memory_check_writable(bytes, LARGE);
    setrlimit(RLIMIT_NOFILE, &before);
    cr_assert_eq(probe, -1);
    cr_assert_eq(writable, 0);
    cr_assert_eq(spoilt, -EFAULT);
}

/* Not inlined, lest its frame be there before the limit is raised. */
__attribute__((noinline)) static int judge_untouched_stack(void)
{
    unsigned char never_touched[LARGE];

    return profil_memory_check_writable(never_touched, sizeof(never_touched));
}

/* The kernel extends the stack of the main thread down to where it is touched: by the call, below
 * the array. */
Test(memory, a_large_array_on_the_stack_that_was_never_touched_is_writable)
{
    struct rlimit before = set_limit(RLIMIT_STACK, 2 * LARGE);
    int result = judge_untouched_stack();

    setrlimit(RLIMIT_STACK, &before);
    cr_assert_eq(result, 0);
}

static void *judge_large_buffer_alone(void *main_thread)
{
    static char large[LARGE];

    pthread_join(*(pthread_t *)main_thread, NULL);
    _exit(profil_memory_check_writable(large, sizeof(large)) == 0 &&
                  profil_memory_check_writable(NULL, sizeof(large)) == -EFAULT
              ? 0
              : 1);
}

Test(memory, a_large_buffer_is_judged_also_when_the_main_thread_has_gone)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        static pthread_t self, judge;

        self = pthread_self();
        pthread_create(&judge, NULL, judge_large_buffer_alone, &self);
        pthread_exit(NULL);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 0);
}

static _Atomic uint32_t waited_word = 1;
static _Atomic pid_t waiter_id;

static void *wait_on_word(void *result)
{
    const struct timespec timeout = {.tv_nsec = 300 * 1000 * 1000};

    atomic_store(&waiter_id, (pid_t)syscall(SYS_gettid));
    *(int *)result =
        syscall(SYS_futex, &waited_word, FUTEX_WAIT_PRIVATE, 1, &timeout, NULL, 0) == 0 ? 0 : errno;
    return NULL;
}

static bool sleeps(pid_t thread)
{
    char path[64], text[256], state = '?';
    const char *name_end;
    FILE *status;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    status = fopen(path, "r");
    if (status && fgets(text, sizeof(text), status) && (name_end = strrchr(text, ')')))
        state = name_end[2];
    if (status)
        fclose(status);
    return state == 'S';
}

Test(memory, nobody_who_waits_on_a_word_of_the_buffer_is_woken)
{
    pthread_t waiter;
    int result = 0;

    cr_assert_eq(pthread_create(&waiter, NULL, wait_on_word, &result), 0);
    while (atomic_load(&waiter_id) == 0 || !sleeps(atomic_load(&waiter_id)))
        sched_yield();
    check_accepted(&waited_word, sizeof(waited_word));
    pthread_join(waiter, NULL);
    cr_assert_eq(result, ETIMEDOUT);
}
