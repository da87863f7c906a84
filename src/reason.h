/* A sentence for the user: what happened, the cause, the remedy. */
#ifndef PROFIL_REASON_H
#define PROFIL_REASON_H

enum { REASON_BYTES = 512 };

struct reason {
    char text[REASON_BYTES];
};

void profil_reason_clear(struct reason *reason);

/* Replaces the text. */
void profil_reason_set(struct reason *reason, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds to the text. */
void profil_reason_add(struct reason *reason, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
