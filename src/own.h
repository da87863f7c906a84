/* Which threads are the library's own: they are never profiled, nor is their CPU time counted. */
#ifndef PROFIL_OWN_H
#define PROFIL_OWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

void profil_own_add(pid_t tid);
void profil_own_remove(pid_t tid);
bool profil_own_has(pid_t tid);

/* Adds what the calling thread has used since the last call, of which `known` is kept, to the CPU
 * time of all own threads. */
void profil_own_account(uint64_t *known);

/* ns. */
uint64_t profil_own_cpu_time(void);

#endif
