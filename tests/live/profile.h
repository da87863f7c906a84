/* Profiles with a handle, as the tests make them. What goes wrong in here fails the test. */
#ifndef LIVE_PROFILE_H
#define LIVE_PROFILE_H

#include "libprofil.h"
#include "support.h"

enum { PROFILE_REASON_BYTES = 1024 };

/* With struct_size set, and perf events or nothing: a test must not be content with the C library's
 * profil(). */
profil_profile *profile_open(struct profil_options options);

/* With a tick of 1 ms, which is one sample: a fifth of a second has 200 of them, and no bucket
 * carries anything. */
profil_profile *profile_open_fast(void);

/* Gives each width of a counter in the loop's text a counter, of which there must be enough. */
void profile_add_loop(profil_profile *profile, const struct support_hot *hot, void *counters,
                      size_t bytes, unsigned int counter_bits);

/* One counter for all of the loop. */
void profile_add_loop_as_one(profil_profile *profile, const struct support_hot *hot,
                             uint64_t *counter);

/* One counter for all that no other range has a counter for. */
void profile_add_rest(profil_profile *profile, uint64_t *counter);

void profile_start(profil_profile *profile);
void profile_stop(profil_profile *profile);
void profile_close(profil_profile *profile);

struct profil_stats profile_stats(profil_profile *profile);

/* The sentence, in memory that lasts until the next call. */
const char *profile_reason(profil_profile *profile);

/* CPU time of the process so far, in seconds, without that of the samplers which are running. */
double profile_program_seconds(void);

#endif
