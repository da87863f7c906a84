/* Which range, and which bucket in it, a program counter belongs to. */
#ifndef PROFIL_RANGE_H
#define PROFIL_RANGE_H

#include "bucket.h"

struct range {
    void *counters;
    uint64_t buckets;
    uintptr_t offset;
    uint32_t scale;
    enum bucket_shift shift;
    bucket_carry *carries; /* one per bucket, or NULL: set by profil_range_set_prepare() */
};

struct range_set;

/* The set of profil(3): one range, whose offset may lie above the program counter. */
struct range_set *profil_range_set_single(const struct range *range);

/* The set of sprofil(3): each range serves the program counters from its offset upwards. A copy of
 * the ranges is sorted; overflow, if not NULL, takes in its first counter what no range has a
 * bucket for. NULL when there is no memory. */
struct range_set *profil_range_set_new(const struct range *ranges, size_t count,
                                       const struct range *overflow);

/* Gives each range the carries of its buckets, untouched. 0 or -ENOMEM. */
int profil_range_set_prepare(struct range_set *set);

/* Whether the set is the same as that of profil(3) for one range, which is stored. Its scale may
 * then be 0: the first counter takes all. */
bool profil_range_set_only(const struct range_set *set, struct range *range);

/* Gives the carries back, but not what malloc() gave. */
void profil_range_set_retire(struct range_set *set);

void profil_range_set_free(struct range_set *set);

/* The range with the greatest offset <= pc that has a bucket for pc; else the overflow range;
 * else NULL. */
const struct range *profil_range_find(const struct range_set *set, uintptr_t pc, uint64_t *index);

/* Calls visit for the counters of each range until one returns non-zero; returns that, or 0. */
int profil_range_each(const struct range_set *set, int (*visit)(void *counters, size_t bytes));

#endif
