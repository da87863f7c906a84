#include "ring.h"

#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { MOST_SAMPLES = 1024, UNKNOWN_TYPE = 12345 };

struct seen {
    size_t samples, throttles;
    uint64_t lost;
    struct sample sample[MOST_SAMPLES];
};

/* The kernel's side of a ring, and what a reader has seen of it. */
struct fixture {
    struct ring ring;
    struct perf_event_mmap_page page;
    unsigned char *data;
    size_t size;
    struct seen seen;
    struct ring_reader reader;
};

static void see_sample(void *context, const struct sample *sample)
{
    struct seen *seen = context;

    if (seen->samples < MOST_SAMPLES)
        seen->sample[seen->samples] = *sample;
    seen->samples++;
}

static void see_lost(void *context, uint64_t count)
{
    struct seen *seen = context;

    seen->lost += count;
}

static void see_throttled(void *context)
{
    struct seen *seen = context;

    seen->throttles++;
}

static struct fixture fixture;

static void empty_ring_at(uint64_t position)
{
    memset(&fixture.seen, 0, sizeof(fixture.seen));
    fixture.page = (struct perf_event_mmap_page){.data_head = position, .data_tail = position};
    fixture.ring = (struct ring){.page = &fixture.page,
                                 .data = fixture.data,
                                 .size = fixture.size,
                                 .tail = position,
                                 .id_word = 3,
                                 .register_word = 4};
    fixture.reader = (struct ring_reader){.sample = see_sample,
                                          .lost = see_lost,
                                          .throttled = see_throttled,
                                          .context = &fixture.seen};
}

/* The data ends on both sides at memory that may not be touched. */
static void new_ring(size_t pages)
{
    fixture.size = pages * page_size();
    fixture.data = guarded_pages(fixture.size);
    empty_ring_at(0);
}

static void one_page_ring(void)
{
    new_ring(1);
}

TestSuite(ring, .init = one_page_ring);

static void write_words(uint64_t position, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(fixture.data + (position + 8 * i) % fixture.size, &words[i], 8);
}

static void publish(size_t bytes)
{
    __atomic_store_n(&fixture.page.data_head, fixture.page.data_head + bytes, __ATOMIC_RELEASE);
}

static uint64_t header_word(uint32_t type, uint16_t misc, uint16_t size)
{
    const struct perf_event_header header = {.type = type, .misc = misc, .size = size};
    uint64_t word;

    memcpy(&word, &header, sizeof(word));
    return word;
}

/* A record of that many words; those after the header may be NULL: all ones. */
static void put(uint32_t type, uint16_t misc, const uint64_t *body, size_t words)
{
    static const uint64_t ones = UINT64_MAX;
    uint64_t head = fixture.page.data_head;
    uint64_t header = header_word(type, misc, (uint16_t)(8 * words));

    write_words(head, &header, 1);
    for (size_t i = 1; i < words; i++)
        write_words(head + 8 * i, body ? &body[i - 1] : &ones, 1);
    publish(8 * words);
}

static uint64_t pair(uint32_t first, uint32_t second)
{
    const uint32_t both[2] = {first, second};
    uint64_t word;

    memcpy(&word, both, sizeof(word));
    return word;
}

static void put_user_sample(uint64_t pc, uint32_t process, uint32_t thread, uint64_t id)
{
    const uint64_t body[] = {pc, pair(process, thread), id, PERF_SAMPLE_REGS_ABI_64, pc + 1};

    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, body, 6);
}

static void put_kernel_sample(uint64_t kernel_pc, uint64_t abi, uint64_t user_pc)
{
    const uint64_t body[] = {kernel_pc, pair(30, 31), 32, abi, user_pc};

    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, body, abi ? 6 : 5);
}

static void put_lost(uint64_t count)
{
    put(PERF_RECORD_LOST, 0, (const uint64_t[]){99, count}, 3);
}

static void put_throttle(uint32_t type)
{
    put(type, 0, (const uint64_t[]){1, 2, 3}, 4);
}

static size_t drain(void)
{
    return profil_ring_drain(&fixture.ring, &fixture.reader);
}

/* Everything that was published has been read, and the kernel knows. */
static void check_all_read(void)
{
    cr_assert_not(fixture.ring.corrupt);
    cr_assert_eq(fixture.ring.tail, fixture.page.data_head);
    cr_assert_eq(fixture.page.data_tail, fixture.page.data_head);
}

static void check_sample(size_t at, uint64_t pc, bool attributed, pid_t process, pid_t thread,
                         uint64_t id)
{
    const struct sample *sample = &fixture.seen.sample[at];

    cr_assert_lt(at, fixture.seen.samples);
    cr_assert_eq(sample->attributed, attributed);
    if (attributed)
        cr_assert_eq(sample->pc, (uintptr_t)pc);
    cr_assert_eq(sample->process, process);
    cr_assert_eq(sample->thread, thread);
    cr_assert_eq(sample->event_id, id);
}

Test(ring, an_empty_ring_gives_nothing)
{
    empty_ring_at(4000);
    cr_assert_eq(drain(), 0);
    cr_assert_eq(fixture.seen.samples + fixture.seen.throttles + fixture.seen.lost, 0);
    cr_assert_eq(fixture.page.data_tail, 4000);
    check_all_read();
}

Test(ring, a_user_sample_has_its_pc_process_thread_and_event)
{
    put_user_sample(0x1234567890, 3000000, 4000000, UINT64_C(0xfedcba9876543210));
    cr_assert_eq(drain(), 1);
    check_sample(0, 0x1234567890, true, 3000000, 4000000, UINT64_C(0xfedcba9876543210));
    check_all_read();
}

Test(ring, a_user_sample_without_registers_is_whole)
{
    fixture.ring.register_word = 0;
    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (const uint64_t[]){500, pair(1, 2), 3}, 4);
    cr_assert_eq(drain(), 1);
    check_sample(0, 500, true, 1, 2, 3);
}

Test(ring, a_kernel_sample_is_charged_to_the_user_pc_in_its_registers)
{
    put_kernel_sample(UINT64_C(0xffffffff81000000), PERF_SAMPLE_REGS_ABI_64, 700);
    put_kernel_sample(UINT64_C(0xffffffff81000000), PERF_SAMPLE_REGS_ABI_32, 800);
    cr_assert_eq(drain(), 2);
    check_sample(0, 700, true, 30, 31, 32);
    check_sample(1, 800, true, 30, 31, 32);
}

Test(ring, a_kernel_sample_without_user_registers_is_not_attributed)
{
    const uint64_t more[] = {900, pair(30, 31), 32, PERF_SAMPLE_REGS_ABI_NONE, 700};

    put_kernel_sample(900, PERF_SAMPLE_REGS_ABI_NONE, 0);
    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, more, 6);
    cr_assert_eq(drain(), 2);
    check_sample(0, 0, false, 30, 31, 32);
    check_sample(1, 0, false, 30, 31, 32);
}

Test(ring, a_kernel_sample_of_events_that_take_no_registers_is_not_attributed)
{
    fixture.ring.register_word = 0;
    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, (const uint64_t[]){900, pair(30, 31), 32}, 4);
    put_kernel_sample(900, PERF_SAMPLE_REGS_ABI_64, 700);
    cr_assert_eq(drain(), 2);
    check_sample(0, 0, false, 30, 31, 32);
    check_sample(1, 0, false, 30, 31, 32);
}

Test(ring, a_kernel_sample_whose_register_is_cut_off_is_not_attributed)
{
    const uint64_t body[] = {900, pair(30, 31), 32, PERF_SAMPLE_REGS_ABI_64};

    put_kernel_sample(900, PERF_SAMPLE_REGS_ABI_64, 700);
    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, body, 5);
    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, body, 4);
    cr_assert_eq(drain(), 3);
    check_sample(0, 700, true, 30, 31, 32);
    check_sample(1, 0, false, 30, 31, 32);
    check_sample(2, 0, false, 30, 31, 32);
}

/* A sample in the kernel that carries what a read(2) of its event gives: a value, the event's
 * number, and perhaps the number of lost records. */
static void put_kernel_sample_with_reading(size_t read_words, uint64_t abi)
{
    uint64_t body[] = {900, pair(30, 31), 5, 32, 6, 7, 8};

    body[2 + read_words] = abi;
    body[3 + read_words] = 700;
    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, body, abi ? 5 + read_words : 4 + read_words);
}

Test(ring, the_registers_are_found_behind_the_reading_that_a_sample_carries)
{
    fixture.ring.id_word = 4;
    for (size_t read_words = 2; read_words <= 3; read_words++) {
        fixture.seen.samples = 0;
        fixture.ring.register_word = 3 + read_words;
        put_kernel_sample_with_reading(read_words, PERF_SAMPLE_REGS_ABI_64);
        put_kernel_sample_with_reading(read_words, PERF_SAMPLE_REGS_ABI_NONE);
        cr_assert_eq(drain(), 2);
        check_sample(0, 700, true, 30, 31, 32);
        check_sample(1, 0, false, 30, 31, 32);
    }
}

Test(ring, a_sample_without_the_words_that_it_should_have_is_none)
{
    fixture.ring.id_word = 4;
    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (const uint64_t[]){900, pair(30, 31), 5}, 4);
    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (const uint64_t[]){900, pair(30, 31), 5, 32}, 5);
    cr_assert_eq(drain(), 2);
    cr_assert_eq(fixture.seen.samples, 1);
    check_sample(0, 900, true, 30, 31, 32);
}

Test(ring, a_sample_of_a_guest_or_hypervisor_is_not_taken_for_the_program)
{
    static const uint16_t modes[] = {PERF_RECORD_MISC_CPUMODE_UNKNOWN, PERF_RECORD_MISC_HYPERVISOR,
                                     PERF_RECORD_MISC_GUEST_KERNEL, PERF_RECORD_MISC_GUEST_USER};

    for (size_t i = 0; i < LENGTH_OF(modes); i++)
        put(PERF_RECORD_SAMPLE, modes[i], (const uint64_t[]){900, pair(30, 31), 32, 0}, 5);
    cr_assert_eq(drain(), LENGTH_OF(modes));
    for (size_t i = 0; i < LENGTH_OF(modes); i++)
        check_sample(i, 0, false, 30, 31, 32);
}

Test(ring, other_bits_of_the_header_do_not_hide_the_mode)
{
    const uint64_t body[] = {500, pair(1, 2), 3};

    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP, body, 4);
    cr_assert_eq(drain(), 1);
    check_sample(0, 500, true, 1, 2, 3);
}

Test(ring, a_sample_with_more_fields_than_are_known_is_read_as_far_as_they_are)
{
    uint64_t body[499] = {500, pair(1, 2), 3, PERF_SAMPLE_REGS_ABI_64, 700};

    put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, body, 500);
    put_user_sample(600, 4, 5, 6);
    cr_assert_eq(drain(), 2);
    check_sample(0, 500, true, 1, 2, 3);
    check_sample(1, 600, true, 4, 5, 6);
    check_all_read();
}

Test(ring, a_record_too_short_for_a_sample_is_skipped)
{
    for (size_t words = 1; words < 4; words++)
        put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, NULL, words);
    put_user_sample(600, 4, 5, 6);
    cr_assert_eq(drain(), 4);
    cr_assert_eq(fixture.seen.samples, 1);
    check_sample(0, 600, true, 4, 5, 6);
    check_all_read();
}

Test(ring, the_counts_of_lost_records_add_up)
{
    put_lost(3);
    put_lost(UINT64_C(1) << 40);
    put(PERF_RECORD_LOST, 0, (const uint64_t[]){99}, 2);
    put(PERF_RECORD_LOST, 0, (const uint64_t[]){99, 4, 5, 6, 7, 8}, 7);
    cr_assert_eq(drain(), 4);
    cr_assert_eq(fixture.seen.lost, (UINT64_C(1) << 40) + 7);
    check_all_read();
}

Test(ring, throttling_is_told_and_its_end_is_not)
{
    put_throttle(PERF_RECORD_THROTTLE);
    put_throttle(PERF_RECORD_UNTHROTTLE);
    put_throttle(PERF_RECORD_THROTTLE);
    cr_assert_eq(drain(), 3);
    cr_assert_eq(fixture.seen.throttles, 2);
    check_all_read();
}

Test(ring, a_reader_may_have_no_use_for_lost_or_throttled)
{
    fixture.reader.lost = NULL;
    fixture.reader.throttled = NULL;
    put_lost(3);
    put_throttle(PERF_RECORD_THROTTLE);
    put_user_sample(600, 4, 5, 6);
    cr_assert_eq(drain(), 3);
    check_sample(0, 600, true, 4, 5, 6);
}

Test(ring, what_has_been_read_is_not_read_again)
{
    for (uint64_t i = 0; i < 1000; i++) {
        put_user_sample(i, 4, 5, 6);
        cr_assert_eq(drain(), 1);
        cr_assert_eq(drain(), 0);
        check_sample(i, i, true, 4, 5, 6);
        check_all_read();
    }
    cr_assert_eq(fixture.seen.samples, 1000);
}

/* One of each kind, a record longer than any that is looked into among them. */
static void check_one_of_each_at(uint64_t position)
{
    empty_ring_at(position);
    put_user_sample(500, 1, 2, 3);
    put_lost(position | 1);
    put(UNKNOWN_TYPE, 0, NULL, 1);
    put_kernel_sample(1, PERF_SAMPLE_REGS_ABI_64, 700);
    put(UNKNOWN_TYPE, 0, NULL, 41);
    put_throttle(PERF_RECORD_THROTTLE);
    put_kernel_sample(1, PERF_SAMPLE_REGS_ABI_NONE, 0);
    cr_assert_eq(drain(), 7);
    cr_assert_eq(fixture.seen.samples, 3);
    check_sample(0, 500, true, 1, 2, 3);
    check_sample(1, 700, true, 30, 31, 32);
    check_sample(2, 0, false, 30, 31, 32);
    cr_assert_eq(fixture.seen.lost, position | 1);
    cr_assert_eq(fixture.seen.throttles, 1);
    check_all_read();
}

Test(ring, records_wrap_at_every_offset)
{
    for (uint64_t offset = 0; offset < fixture.size; offset += 8)
        check_one_of_each_at(offset);
}

Test(ring, positions_pass_32_bits_at_every_offset_of_a_record)
{
    for (uint64_t before = 0; before <= 600; before += 8)
        check_one_of_each_at((UINT64_C(1) << 32) - before);
    check_one_of_each_at(UINT64_C(0x123456789abcde00));
}

Test(ring, positions_pass_64_bits_at_every_offset_of_a_record)
{
    for (uint64_t before = 8; before <= 600; before += 8)
        check_one_of_each_at(0 - before);
}

Test(ring, records_of_unknown_types_are_skipped_whatever_their_size)
{
    static const uint32_t types[] = {0, PERF_RECORD_MMAP, PERF_RECORD_COMM, PERF_RECORD_EXIT,
                                     UINT32_MAX};

    for (size_t words = 1; words <= fixture.size / 8 - 6; words++) {
        empty_ring_at(8 * words * 31);
        put(types[words % LENGTH_OF(types)], 0, NULL, words);
        put_user_sample(words, 4, 5, 6);
        cr_assert_eq(drain(), 2);
        cr_assert_eq(fixture.seen.samples, 1);
        check_sample(0, words, true, 4, 5, 6);
        check_all_read();
    }
}

Test(ring, one_record_may_fill_the_whole_ring)
{
    for (uint64_t offset = 0; offset < fixture.size; offset += 8) {
        empty_ring_at(offset);
        put(UNKNOWN_TYPE, 0, NULL, fixture.size / 8);
        cr_assert_eq(drain(), 1);
        check_all_read();
    }
}

Test(ring, a_full_ring_of_samples_gives_each_of_them_once)
{
    for (uint64_t offset = 0; offset < fixture.size; offset += 8) {
        size_t count = fixture.size / 32;

        empty_ring_at(offset);
        for (size_t i = 0; i < count; i++)
            put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (const uint64_t[]){i, 0, offset}, 4);
        cr_assert_eq(fixture.page.data_head - offset, fixture.size);
        cr_assert_eq(drain(), count);
        check_sample(0, 0, true, 0, 0, offset);
        check_sample(count - 1, count - 1, true, 0, 0, offset);
        check_all_read();
    }
}

Test(ring, the_longest_record_there_can_be_is_skipped)
{
    new_ring(131072 / page_size());
    empty_ring_at(100000);
    put(UNKNOWN_TYPE, 0, NULL, 65528 / 8);
    put_user_sample(600, 4, 5, 6);
    cr_assert_eq(drain(), 2);
    check_sample(0, 600, true, 4, 5, 6);
    check_all_read();
}

/* Behind a good sample a header with that size, and that many bytes in all from there to the head.
 */
static void check_torn(uint64_t position, uint16_t size, size_t published)
{
    uint64_t header = header_word(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, size);

    empty_ring_at(position);
    put_user_sample(600, 4, 5, 6);
    write_words(position + 48, &header, 1);
    publish(published);
    if (drain() != 1 || fixture.seen.samples != 1)
        cr_assert_fail("size %u of %zu bytes was read as a record", size, published);
    cr_assert(fixture.ring.corrupt);
    cr_assert_eq(fixture.page.data_tail, position + 48);

    /* Where the next record begins nobody knows: good ones do not heal it. */
    fixture.page.data_head = position + 48;
    put_user_sample(600, 4, 5, 6);
    cr_assert_eq(drain(), 0);
    cr_assert_eq(fixture.seen.samples, 1);
    cr_assert(fixture.ring.corrupt);
}

Test(ring, a_record_of_an_impossible_size_ends_the_reading)
{
    for (uint64_t offset = 0; offset < fixture.size; offset += 8) {
        check_torn(offset, 0, 48);
        check_torn(offset, 4, 48);
        check_torn(offset, 7, 48);
        check_torn(offset, 12, 48);
        check_torn(offset, 47, 48);
        check_torn(offset, 65535, 48);
    }
}

Test(ring, a_record_that_reaches_beyond_the_head_ends_the_reading)
{
    for (uint64_t offset = 0; offset < fixture.size; offset += 8) {
        check_torn(offset, 56, 48);
        check_torn(offset, 65528, 48);
        check_torn(offset, 16, 8);
        check_torn(offset, 8, 4);
        check_torn(offset, (uint16_t)(fixture.size), fixture.size - 48 - 8);
    }
}

static void check_impossible_head(uint64_t tail, uint64_t head)
{
    empty_ring_at(tail);
    put_user_sample(600, 4, 5, 6);
    fixture.page.data_head = head;
    cr_assert_eq(drain(), 0);
    cr_assert_eq(fixture.seen.samples, 0);
    cr_assert(fixture.ring.corrupt);
    cr_assert_eq(fixture.page.data_tail, tail);
}

Test(ring, a_head_behind_the_tail_or_more_than_a_ring_ahead_is_not_followed)
{
    check_impossible_head(4096, 4088);
    check_impossible_head(4096, 0);
    check_impossible_head(4096, 4096 + fixture.size + 8);
    check_impossible_head(4096, UINT64_MAX);
    check_impossible_head(0, UINT64_C(1) << 32);
}

/* Random records one behind the other, as many as the ring holds or up to one in thirty whose
 * header is random too; their length. */
static size_t write_random_records(struct generator *generator, uint64_t position)
{
    size_t used = 0;

    while (used + 8 * 20 <= fixture.size) {
        size_t words = 1 + generator_below(generator, 20);
        uint64_t word = header_word((uint32_t)generator_below(generator, 12),
                                    (uint16_t)generator_below(generator, 8), (uint16_t)(8 * words));
        bool torn = generator_below(generator, 60) == 0;

        for (size_t i = 0; i < words; i++) {
            if (i > 0 || torn)
                word = generator_next(generator);
            write_words(position + used + 8 * i, &word, 1);
        }
        used += 8 * words;
        if (torn)
            break;
    }
    return used;
}

Test(ring, random_contents_are_read_without_leaving_the_ring_and_to_an_end)
{
    struct generator generator = {17};
    size_t whole = 0, corrupt = 0;

    for (int round = 0; round < 3000; round++) {
        uint64_t tail = generator_next(&generator) & ~(uint64_t)7;
        size_t records, published;

        empty_ring_at(tail);
        published = write_random_records(&generator, tail);
        if (generator_below(&generator, 3) == 0)
            published = generator_below(&generator, published + 1);
        publish(published);
        records = drain();
        if (fixture.ring.tail - tail > published || 8 * records > fixture.ring.tail - tail ||
            fixture.seen.samples + fixture.seen.throttles > records ||
            fixture.page.data_tail != fixture.ring.tail ||
            fixture.ring.corrupt != (fixture.ring.tail != fixture.page.data_head))
            cr_assert_fail("round %d: %zu records in %ju bytes of %zu", round, records,
                           (uintmax_t)(fixture.ring.tail - tail), published);
        whole += !fixture.ring.corrupt && records > 2;
        corrupt += fixture.ring.corrupt;
    }
    /* Neither end is so rare that it would not have been tried. */
    cr_assert_gt(whole, 500);
    cr_assert_gt(corrupt, 500);
}

enum { STREAM_RECORDS = 100000 };

/* The kernel: writes where there is room, never into what has not been read. */
static void *write_stream(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < STREAM_RECORDS; i++) {
        size_t words = 4 + i % 5;

        while (fixture.page.data_head + 8 * words -
                   __atomic_load_n(&fixture.page.data_tail, __ATOMIC_ACQUIRE) >
               fixture.size)
            sched_yield();
        put(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (const uint64_t[]){i, 1, 2, 0, 0, 0, 0, 0},
            words);
    }
    return NULL;
}

static void see_next(void *context, const struct sample *sample)
{
    uint64_t *expected = context;

    if (sample->pc != *expected)
        cr_assert_fail("sample %ju came where %ju was next", (uintmax_t)sample->pc,
                       (uintmax_t)*expected);
    ++*expected;
}

Test(ring, records_that_come_while_it_is_read_arrive_once_and_in_order)
{
    uint64_t arrived = 0;
    pthread_t writer;

    empty_ring_at(0 - UINT64_C(1000000));
    fixture.reader = (struct ring_reader){.sample = see_next, .context = &arrived};
    cr_assert_eq(pthread_create(&writer, NULL, write_stream, NULL), 0);
    while (arrived < STREAM_RECORDS && !fixture.ring.corrupt)
        if (drain() == 0)
            sched_yield();
    pthread_join(writer, NULL);
    cr_assert_eq(arrived, STREAM_RECORDS);
    check_all_read();
}
