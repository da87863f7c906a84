/* Which threads are the library's own: they are never profiled. */
#ifndef PROFIL_OWN_H
#define PROFIL_OWN_H

#include <stdbool.h>
#include <sys/types.h>

void profil_own_add(pid_t tid);
void profil_own_remove(pid_t tid);
bool profil_own_has(pid_t tid);

#endif
