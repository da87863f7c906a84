/* What the unit tests share: numbers that look random and are the same in every run, and memory
 * whose two ends are watched. */
#ifndef UNIT_SUPPORT_H
#define UNIT_SUPPORT_H

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

struct generator {
    uint64_t state;
};

/* A linear congruence; its low bits are weak by themselves and are mixed with the high ones. */
static inline uint64_t generator_next(struct generator *generator)
{
    generator->state = generator->state * 6364136223846793005u + 1442695040888963407u;
    return generator->state ^ generator->state >> 29 ^ generator->state << 35;
}

static inline uint64_t generator_below(struct generator *generator, uint64_t bound)
{
    return (generator_next(generator) >> 11) % bound;
}

/* An address: often next to a power of 65536 or to an end of the address space, else of any size.
 */
static inline uintptr_t generator_address(struct generator *generator)
{
    uint64_t near = generator_below(generator, 9);

    switch (generator_below(generator, 8)) {
    case 0:
        return (uintptr_t)(near - 4);
    case 1:
    case 2:
        return (uintptr_t)(((uint64_t)1 << 16 * (1 + generator_below(generator, 3))) + near - 4);
    case 3:
        return (uintptr_t)(((uint64_t)1 << (8 * sizeof(uintptr_t) - 1)) + near - 4);
    default:
        return (uintptr_t)(generator_next(generator) >> generator_below(generator, 64));
    }
}

static inline uint32_t generator_scale(struct generator *generator)
{
    static const uint32_t edges[] = {0, 1, 2, 3, 65535, 65536, 65537, 131072, 0xffffffff};
    uint64_t choice = generator_below(generator, LENGTH_OF(edges) + 3);

    if (choice < LENGTH_OF(edges))
        return edges[choice];
    return (uint32_t)(generator_next(generator) >> (32 + generator_below(generator, 32)));
}

/* Wide enough for the product of a distance and a scale. */
#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 exact_type;
#else
typedef uint64_t exact_type;
#endif

/* The bucket of pc by its definition: floor(floor((pc - offset) / width) * scale / 65536). */
static inline exact_type exact_index(uintptr_t pc, uintptr_t offset, uint32_t scale, size_t width)
{
    uintptr_t distance = pc - offset;

    return (exact_type)(distance / width) * scale / 65536;
}

static inline size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Zeroed memory of whole pages between two pages that may not be touched. It goes with the test's
 * process. */
static inline unsigned char *guarded_pages(size_t bytes)
{
    size_t page = page_size();
    unsigned char *base =
        mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq((void *)base, MAP_FAILED);
    cr_assert_eq(mprotect(base + page, bytes, PROT_READ | PROT_WRITE), 0);
    return base + page;
}

#endif
