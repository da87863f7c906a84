/* The figures of a profile, as the program and the user see them. */
#ifndef PROFIL_STATISTICS_H
#define PROFIL_STATISTICS_H

#include "engine.h"

/* Fills in everything but the size. */
void profil_statistics_fill(const struct engine *engine, const struct settings *settings,
                            const struct plan *plan, struct profil_stats *stats);

/* One line on standard error. */
void profil_statistics_print(const struct profil_stats *stats, bool counts_time,
                             const struct reason *reason);

/* The same where there is no profile. */
void profil_statistics_print_failure(const struct reason *reason);

#endif
