/* From a program counter to a counter, and the count itself. */
#ifndef PROFIL_BUCKET_H
#define PROFIL_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A counter is 2, 4 or 8 bytes wide; the shift is the logarithm of that. A bucket of scale 65536
 * spans as many bytes of text as its counter is wide. */
enum bucket_shift { BUCKET_SHIFT_16 = 1, BUCKET_SHIFT_32 = 2, BUCKET_SHIFT_64 = 3 };

/* The bucket of pc: floor(floor((pc - offset) / width) * scale / 65536), where pc - offset wraps.
 * False when the exact result does not fit 64 bits, which lies beyond any buffer. */
bool profil_bucket_index(uintptr_t pc, uintptr_t offset, uint32_t scale, enum bucket_shift shift,
                         uint64_t *index);

/* Adds one to the counter, which need not be aligned; false, and no change, when it is at its
 * maximum. The caller is the only writer; others may read at any time. */
bool profil_bucket_count(void *counters, size_t index, enum bucket_shift shift);

/* Sub-ticks: `subticks` samples of one bucket make a tick. What is left over is carried, and starts
 * from a number drawn evenly from 0 .. subticks - 1, so that n samples give floor((n + r) /
 * subticks) ticks: n / subticks on average, whatever n is. The carry of an untouched bucket is 0;
 * `random` is the state of the generator, not 0. True when a tick is complete. */
typedef uint16_t bucket_carry;
enum { BUCKET_SUBTICKS_MAX = 1000 };

bool profil_bucket_carry(bucket_carry *carry, unsigned int subticks, uint64_t *random);

#endif
