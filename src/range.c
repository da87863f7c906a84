#include "range.h"

#include "memory.h"

#include <errno.h>
#include <stdlib.h>

/* reach: no range up to and including this one has a bucket for a program counter from here on, so
 * that a search backwards through overlapping ranges can stop. 0 stands for "no end". */
struct entry {
    struct range range;
    uintptr_t reach;
};

struct range_set {
    bool any_pc; /* profil(3): pc - offset may wrap */
    bool has_overflow;
    struct range overflow;
    size_t count;
    struct entry entries[];
};

/* The first address above the offset that has no bucket, or 0 when that is beyond the address
 * space. The smallest distance d with d * scale / 65536 >= buckets is ceil(buckets * 65536 /
 * scale). */
static uintptr_t range_end(const struct range *range)
{
    uint64_t product, bytes;
    uintptr_t end;

    if (range->scale == 0 || __builtin_mul_overflow(range->buckets, (uint64_t)65536, &product))
        return 0;
    bytes = product / range->scale + (product % range->scale != 0);
    if (__builtin_mul_overflow(bytes, (uint64_t)1 << range->shift, &bytes) ||
        __builtin_add_overflow(range->offset, bytes, &end))
        return 0;
    return end;
}

/* Equal offsets keep the order in which they were given: the first one given is found first. */
static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;

    if (a->range.offset != b->range.offset)
        return a->range.offset < b->range.offset ? -1 : 1;
    /* reach holds the given position until the sort is over. */
    return a->reach > b->reach ? -1 : a->reach < b->reach;
}

static void set_reaches(struct range_set *set)
{
    bool endless = false;
    uintptr_t reach = 0;

    for (size_t i = 0; i < set->count; i++) {
        uintptr_t end = range_end(&set->entries[i].range);

        endless = endless || end == 0;
        reach = end > reach ? end : reach;
        set->entries[i].reach = endless ? 0 : reach;
    }
}

struct range_set *profil_range_set_new(const struct range *ranges, size_t count,
                                       const struct range *overflow)
{
    struct range_set *set = NULL;
    size_t bytes;

    if (!__builtin_mul_overflow(count, sizeof(set->entries[0]), &bytes) &&
        !__builtin_add_overflow(bytes, sizeof(*set), &bytes))
        set = calloc(1, bytes);
    if (!set)
        return NULL;

    set->count = count;
    for (size_t i = 0; i < count; i++)
        set->entries[i] = (struct entry){.range = ranges[i], .reach = i};
    qsort(set->entries, count, sizeof(set->entries[0]), compare_entries);
    set_reaches(set);
    if (overflow) {
        set->has_overflow = true;
        set->overflow = *overflow;
    }
    return set;
}

struct range_set *profil_range_set_single(const struct range *range)
{
    struct range_set *set = profil_range_set_new(range, 1, NULL);

    if (set)
        set->any_pc = true;
    return set;
}

bool profil_range_set_only(const struct range_set *set, struct range *range)
{
    if (set->count + set->has_overflow != 1)
        return false;
    *range = set->has_overflow ? set->overflow : set->entries[0].range;
    if (set->has_overflow)
        range->scale = 0;
    return true;
}

static int add_carries(struct range *range)
{
    size_t bytes;

    if (range->carries || range->buckets == 0)
        return 0;
    if (__builtin_mul_overflow(range->buckets, sizeof(bucket_carry), &bytes))
        return -ENOMEM;
    range->carries = profil_memory_reserve(bytes);
    return range->carries ? 0 : -ENOMEM;
}

int profil_range_set_prepare(struct range_set *set)
{
    int result = set->has_overflow ? add_carries(&set->overflow) : 0;

    for (size_t i = 0; i < set->count && result == 0; i++)
        result = add_carries(&set->entries[i].range);
    return result;
}

static void free_carries(struct range *range)
{
    if (range->carries)
        profil_memory_release(range->carries, (size_t)range->buckets * sizeof(bucket_carry));
    range->carries = NULL;
}

void profil_range_set_retire(struct range_set *set)
{
    free_carries(&set->overflow);
    for (size_t i = 0; i < set->count; i++)
        free_carries(&set->entries[i].range);
}

void profil_range_set_free(struct range_set *set)
{
    if (!set)
        return;
    profil_range_set_retire(set);
    free(set);
}

static bool has_bucket(const struct range *range, uintptr_t pc, uint64_t *index)
{
    return profil_bucket_index(pc, range->offset, range->scale, range->shift, index) &&
           *index < range->buckets;
}

/* The number of entries whose offset is at most pc. */
static size_t entries_below(const struct range_set *set, uintptr_t pc)
{
    size_t low = 0, high = set->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (set->entries[middle].range.offset <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct range *profil_range_find(const struct range_set *set, uintptr_t pc, uint64_t *index)
{
    size_t i = set->any_pc ? set->count : entries_below(set, pc);

    for (; i > 0; i--) {
        const struct entry *entry = &set->entries[i - 1];

        if (has_bucket(&entry->range, pc, index))
            return &entry->range;
        if (entry->reach != 0 && pc >= entry->reach)
            break;
    }
    if (!set->has_overflow)
        return NULL;
    *index = 0;
    return &set->overflow;
}

int profil_range_each(const struct range_set *set, int (*visit)(void *counters, size_t bytes))
{
    int result = 0;

    for (size_t i = 0; i < set->count && result == 0; i++) {
        const struct range *range = &set->entries[i].range;

        result = visit(range->counters, (size_t)range->buckets << range->shift);
    }
    if (set->has_overflow && result == 0)
        result =
            visit(set->overflow.counters, (size_t)set->overflow.buckets << set->overflow.shift);
    return result;
}
