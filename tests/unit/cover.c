#include "cover.h"

#include "support.h"

#include <string.h>

static struct cover cover;

Test(cover, a_thread_with_one_event_always_counts)
{
    size_t accepted = 0;

    for (pid_t sample = 0; sample < 100000; sample++)
        accepted += profil_cover_accepts(&cover, 1000 + sample % 7, 500 + sample % 7);
    cr_assert_eq(accepted, 100000);
}

Test(cover, of_two_events_that_take_turns_the_first_counts_and_the_second_never)
{
    for (int sample = 0; sample < 10000; sample++) {
        if (!profil_cover_accepts(&cover, 1000, 77))
            cr_assert_fail("sample %d of the first event was dropped", sample);
        if (profil_cover_accepts(&cover, 1000, 1000))
            cr_assert_fail("sample %d of the second event was counted", sample);
    }
}

/* One tick of two events: each gives a sample, in any order, and after a change of CPU one of the
 * two gives one more. */
static void two_events_tick(struct generator *generator, const pid_t owners[2], size_t given[2],
                            size_t accepted[2])
{
    size_t first = generator_below(generator, 2);
    size_t order[3] = {first, !first, !first};
    size_t samples = 2 + generator_below(generator, 2);

    if (samples == 3 && generator_below(generator, 2))
        order[1] = first;
    for (size_t i = 0; i < samples; i++) {
        given[order[i]]++;
        accepted[order[i]] += profil_cover_accepts(&cover, 4321, owners[order[i]]);
    }
}

Test(cover, of_two_events_in_any_order_and_doubled_by_changes_of_cpu_exactly_one_counts)
{
    const pid_t owners[2] = {4000, 4321};
    struct generator generator = {5};

    for (int round = 0; round < 200; round++) {
        size_t given[2] = {0}, accepted[2] = {0};
        size_t owner;

        memset(&cover, 0, sizeof(cover));
        for (int tick = 0; tick < 500; tick++)
            two_events_tick(&generator, owners, given, accepted);
        owner = accepted[0] > 0 ? 0 : 1;
        cr_assert_eq(accepted[owner], given[owner]);
        cr_assert_eq(accepted[!owner], 0);
    }
}

Test(cover, a_new_thread_under_an_old_number_counts_after_a_few_samples)
{
    size_t dropped = 0;

    for (int sample = 0; sample < 10; sample++)
        profil_cover_accepts(&cover, 1000, 77);
    while (dropped < 100 && !profil_cover_accepts(&cover, 1000, 88))
        dropped++;
    /* Fewer would be mistaken for a change of CPU; more would be ticks lost. */
    cr_assert_leq(dropped, 5);
    cr_assert_geq(dropped, 3);
    for (int sample = 0; sample < 1000; sample++)
        cr_assert(profil_cover_accepts(&cover, 1000, 88));
}

Test(cover, samples_of_strangers_do_not_add_up_over_those_of_the_owner)
{
    for (int sample = 0; sample < 1000; sample++) {
        cr_assert(profil_cover_accepts(&cover, 1000, 77));
        cr_assert_not(profil_cover_accepts(&cover, 1000, 78));
        cr_assert_not(profil_cover_accepts(&cover, 1000, 79));
    }
}

Test(cover, as_many_neighbouring_threads_as_it_has_entries_do_not_disturb_each_other)
{
    enum { FIRST = 31007, ROUNDS = 20 };
    size_t owned = 0, foreign = 0;

    for (int round = 0; round < ROUNDS; round++) {
        for (pid_t thread = FIRST; thread < FIRST + COVER_THREADS; thread++)
            owned += profil_cover_accepts(&cover, thread, 2 * thread);
        for (pid_t thread = FIRST; thread < FIRST + COVER_THREADS; thread++)
            foreign += profil_cover_accepts(&cover, thread, 2 * thread + 1);
    }
    cr_assert_eq(owned, (size_t)ROUNDS * COVER_THREADS);
    cr_assert_eq(foreign, 0);
}

Test(cover, threads_that_meet_in_an_entry_lose_nothing_when_each_has_one_event)
{
    size_t accepted = 0;

    for (int sample = 0; sample < 1000; sample++)
        for (pid_t thread = 100; thread < 100 + 3 * COVER_THREADS; thread += COVER_THREADS)
            accepted += profil_cover_accepts(&cover, thread, thread);
    cr_assert_eq(accepted, 3000);
}
