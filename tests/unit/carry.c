/* Sub-ticks: n samples of a bucket give floor((n + r) / K) ticks, r being any of 0 .. K - 1. */
#include "bucket.h"

#include "support.h"

#include <math.h>
#include <string.h>

static const unsigned int divisions[] = {1, 2, 3, 10, 100, BUCKET_SUBTICKS_MAX};

static const uint64_t seed = 20;

/* Gives an untouched bucket that many samples; returns its ticks. */
static unsigned int ticks_of(unsigned int samples, unsigned int subticks, uint64_t *random)
{
    bucket_carry carry = 0;
    unsigned int ticks = 0;

    for (unsigned int i = 0; i < samples; i++)
        ticks += profil_bucket_carry(&carry, subticks, random);
    return ticks;
}

/* The samples up to the first tick of an untouched bucket tell what it started from. */
static unsigned int start_of(bucket_carry *carry, unsigned int subticks, uint64_t *random)
{
    unsigned int samples = 1;

    *carry = 0;
    while (!profil_bucket_carry(carry, subticks, random))
        if (++samples > subticks)
            cr_assert_fail("no tick in %u samples of %u", samples, subticks);
    return subticks - samples;
}

/* What follows the first tick, of which `start` and the samples up to it are known. */
static void check_ticks_after_start(bucket_carry carry, unsigned int start, unsigned int subticks,
                                    uint64_t *random)
{
    unsigned int ticks = 1;

    for (unsigned int n = subticks - start + 1; n <= 5 * subticks + 3; n++) {
        ticks += profil_bucket_carry(&carry, subticks, random);
        if (ticks != (n + start) / subticks)
            cr_assert_fail("%u samples of %u from %u: %u ticks", n, subticks, start, ticks);
    }
}

/* A thousand starts, each as likely as the others, are all seen after some 7,500 buckets. */
static void check_every_start(unsigned int subticks)
{
    static bool seen[BUCKET_SUBTICKS_MAX];
    uint64_t random = seed;
    unsigned int found = 0, bucket = 0;

    memset(seen, 0, sizeof(seen));
    for (; found < subticks && bucket < 100000; bucket++) {
        bucket_carry carry;
        unsigned int start = start_of(&carry, subticks, &random);

        if (seen[start])
            continue;
        seen[start] = true;
        found++;
        check_ticks_after_start(carry, start, subticks, &random);
    }
    cr_assert_eq(found, subticks, "%u of %u starts in %u buckets", found, subticks, bucket);
}

Test(carry, n_samples_give_the_floor_of_n_plus_the_start_over_k_for_every_start)
{
    for (size_t i = 0; i < LENGTH_OF(divisions); i++)
        check_every_start(divisions[i]);
}

/* Chi squared has `starts - 1` degrees of freedom, and twice that as its variance. */
Test(carry, every_start_is_as_likely_as_the_others)
{
    enum { BUCKETS = 100000 };

    for (size_t i = 0; i < LENGTH_OF(divisions); i++) {
        unsigned int starts = divisions[i], counts[BUCKET_SUBTICKS_MAX] = {0};
        double expected = (double)BUCKETS / starts, chi_squared = 0;
        uint64_t random = seed;
        bucket_carry carry;

        for (int bucket = 0; bucket < BUCKETS; bucket++)
            counts[start_of(&carry, starts, &random)]++;
        for (unsigned int start = 0; start < starts; start++)
            chi_squared += (counts[start] - expected) * (counts[start] - expected) / expected;
        cr_expect_leq(chi_squared, starts - 1 + 4 * sqrt(2 * (starts - 1)), "K = %u: %.1f", starts,
                      chi_squared);
    }
}

/* The ticks are floor(n / K), or one more with the chance f = frac(n / K): their variance is
 * f (1 - f). The mean of T buckets is within 4 sqrt(f (1 - f) / T) in all but one of 16,000 cases;
 * the seed is fixed. Where a share p of the buckets has the one more, the variance found is
 * p (1 - p), which differs from f (1 - f) by (p - f) (1 - 2 f) - (p - f)^2. */
static void check_mean_and_variance(unsigned int samples, unsigned int subticks, uint64_t *random)
{
    enum { BUCKETS = 10000 };
    double part = (double)(samples % subticks) / subticks;
    double mean_bound = 4 * sqrt(part * (1 - part) / BUCKETS);
    double variance_bound = mean_bound * fabs(1 - 2 * part) + mean_bound * mean_bound;
    double sum = 0, squares = 0, mean, variance;

    for (int i = 0; i < BUCKETS; i++) {
        unsigned int ticks = ticks_of(samples, subticks, random);

        sum += ticks;
        squares += (double)ticks * ticks;
    }
    mean = sum / BUCKETS;
    variance = squares / BUCKETS - mean * mean;
    cr_expect_leq(fabs(mean - (double)samples / subticks), mean_bound + 1e-9,
                  "%u samples of %u: mean %.4f", samples, subticks, mean);
    cr_expect_leq(fabs(variance - part * (1 - part)), variance_bound + 1e-6,
                  "%u samples of %u: variance %.4f, not %.4f", samples, subticks, variance,
                  part * (1 - part));
}

Test(carry, the_ticks_of_n_samples_have_the_mean_n_over_k_and_the_variance_of_a_rounding)
{
    uint64_t random = seed;

    for (size_t i = 0; i < LENGTH_OF(divisions); i++) {
        unsigned int k = divisions[i];
        const unsigned int samples[] = {0, 1, 2, k / 2, k - 1, k, k + 1, 2 * k + k / 3, 5 * k + 3};

        for (size_t j = 0; j < LENGTH_OF(samples); j++)
            check_mean_and_variance(samples[j], k, &random);
    }
}

/* As in a short profile of a large program: what single buckets gain and lose adds up to nothing.
 * The errors are independent, so that their variances add up. */
Test(carry, many_buckets_with_few_samples_each_have_the_right_sum)
{
    enum { BUCKETS = 100000, SUBTICKS = 10 };
    static bucket_carry carries[BUCKETS];
    static unsigned int samples[BUCKETS];
    struct generator generator = {20};
    uint64_t random = seed;
    double ticks = 0, variance = 0;

    /* In the order in which they come, not bucket by bucket. */
    for (int i = 0; i < 2 * BUCKETS; i++) {
        uint64_t bucket = generator_below(&generator, BUCKETS);

        samples[bucket]++;
        ticks += profil_bucket_carry(&carries[bucket], SUBTICKS, &random);
    }
    for (int i = 0; i < BUCKETS; i++) {
        double part = samples[i] % SUBTICKS / (double)SUBTICKS;

        variance += part * (1 - part);
    }
    cr_expect_leq(fabs(ticks - 2.0 * BUCKETS / SUBTICKS), 4 * sqrt(variance),
                  "%.0f ticks of %d samples", ticks, 2 * BUCKETS);
}

/* Untouched is 0: a bucket that fell back to it would draw anew, and be biased. */
Test(carry, a_touched_bucket_is_never_untouched_again_nor_carries_more_than_a_tick)
{
    for (size_t i = 0; i < LENGTH_OF(divisions); i++) {
        uint64_t random = seed;
        bucket_carry carry = 0;

        for (int sample = 0; sample < 10000; sample++) {
            profil_bucket_carry(&carry, divisions[i], &random);
            if (carry == 0 || carry > divisions[i])
                cr_assert_fail("K = %u: carry %u", divisions[i], carry);
        }
    }
}

Test(carry, only_an_untouched_bucket_draws_a_number)
{
    uint64_t random = seed, drawn;
    bucket_carry carry = 0;

    profil_bucket_carry(&carry, 10, &random);
    cr_assert_neq(random, seed);
    drawn = random;
    for (int sample = 0; sample < 100; sample++)
        profil_bucket_carry(&carry, 10, &random);
    cr_assert_eq(random, drawn);
}

Test(carry, with_one_subtick_every_sample_is_a_tick)
{
    uint64_t random = seed;

    for (unsigned int samples = 0; samples < 100; samples++)
        cr_assert_eq(ticks_of(samples, 1, &random), samples);
}
