/* The threads of the process that are not the program's, as /proc shows them. */
#ifndef BENCH_TASKS_H
#define BENCH_TASKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MOST_TASKS = 16384 };

struct tasks {
    size_t count;
    pid_t tid[MOST_TASKS];
};

/* Those that there are now. */
void tasks_read(struct tasks *tasks);

struct task_figures {
    size_t count;
    uint64_t wakeups;  /* voluntary context switches */
    uint64_t cpu_time; /* ns */
};

/* The sum over all threads that are not in the list. */
void tasks_of_others(const struct tasks *known, struct task_figures *figures);

#endif
