#include "bucket.h"

#include <string.h>

bool profil_bucket_index(uintptr_t pc, uintptr_t offset, uint32_t scale, enum bucket_shift shift,
                         uint64_t *index)
{
    uint64_t distance = (uintptr_t)(pc - offset) >> shift;
    uint64_t whole;

    /* Split so that the second product always fits: 65535 * scale < 2^48. */
    if (__builtin_mul_overflow(distance / 65536, (uint64_t)scale, &whole))
        return false;
    return !__builtin_add_overflow(whole, distance % 65536 * scale / 65536, index);
}

/* xorshift64*, of S. Vigna, "An experimental exploration of Marsaglia's xorshift generators,
 * scrambled" (2016). */
static uint32_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * UINT64_C(2685821657736338717) >> 32);
}

bool profil_bucket_carry(bucket_carry *carry, unsigned int subticks, uint64_t *random)
{
    /* One more than the carried samples, so that 0 can stand for "untouched". */
    unsigned int stored = *carry;

    if (stored == 0)
        stored = 1 + (unsigned int)((uint64_t)next_random(random) * subticks >> 32);
    stored++;
    if (stored > subticks) {
        *carry = 1;
        return true;
    }
    *carry = (bucket_carry)stored;
    return false;
}

/* The program reads its buffer while it is written: an aligned counter is accessed whole. An
 * unaligned one cannot be, in C or on every machine, and goes through memcpy. */
#define DEFINE_COUNT(type, name)                                                                   \
    static bool name(unsigned char *counter)                                                       \
    {                                                                                              \
        typedef type __attribute__((may_alias)) counter_type;                                      \
        counter_type *aligned = (counter_type *)(void *)counter;                                   \
        type value;                                                                                \
                                                                                                   \
        if ((uintptr_t)counter % sizeof(type) == 0) {                                              \
            value = __atomic_load_n(aligned, __ATOMIC_RELAXED);                                    \
            if (value == (type)-1)                                                                 \
                return false;                                                                      \
            __atomic_store_n(aligned, (type)(value + 1), __ATOMIC_RELAXED);                        \
            return true;                                                                           \
        }                                                                                          \
        memcpy(&value, counter, sizeof(value));                                                    \
        if (value == (type)-1)                                                                     \
            return false;                                                                          \
        value++;                                                                                   \
        memcpy(counter, &value, sizeof(value));                                                    \
        return true;                                                                               \
    }

DEFINE_COUNT(uint16_t, count_16)
DEFINE_COUNT(uint32_t, count_32)
DEFINE_COUNT(uint64_t, count_64)

bool profil_bucket_count(void *counters, size_t index, enum bucket_shift shift)
{
    unsigned char *counter = (unsigned char *)counters + (index << shift);

    switch (shift) {
    case BUCKET_SHIFT_16:
        return count_16(counter);
    case BUCKET_SHIFT_32:
        return count_32(counter);
    default:
        return count_64(counter);
    }
}
