/* The executable code of the program and of the shared libraries it has loaded, and the counters
 * that profil() or sprofil() fills for it. */
#ifndef EXAMPLE_TEXTS_H
#define EXAMPLE_TEXTS_H

#include <stddef.h>
#include <stdint.h>

struct text {
    uintptr_t start;
    size_t bytes;
    unsigned short *counters;
    size_t counter_count;
};

struct texts {
    struct text *items; /* the first is the program's own */
    size_t count;
    unsigned int width; /* bytes of text for each counter */
    unsigned short outside;
};

enum texts_choice { TEXTS_PROGRAM, TEXTS_ALL };

/* Each returns 0, or -1 with errno. */
int texts_find(struct texts *texts, unsigned int width);
int texts_profile(struct texts *texts, enum texts_choice choice);
int texts_stop(void);

void texts_free(struct texts *texts);

#endif
