#include "tasks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void visit(void (*each)(void *context, pid_t tid), void *context)
{
    DIR *directory = opendir("/proc/self/task");
    struct dirent *entry;

    while (directory && (entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            each(context, (pid_t)atoi(entry->d_name));
    if (directory)
        closedir(directory);
}

static void add(void *context, pid_t tid)
{
    struct tasks *tasks = context;

    if (tasks->count < MOST_TASKS)
        tasks->tid[tasks->count++] = tid;
}

void tasks_read(struct tasks *tasks)
{
    tasks->count = 0;
    visit(add, tasks);
}

static FILE *open_file(pid_t tid, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)tid, name);
    return fopen(path, "r");
}

static uint64_t wakeups(pid_t tid)
{
    static const char key[] = "voluntary_ctxt_switches:";
    FILE *file = open_file(tid, "status");
    uint64_t count = 0;
    char line[128];

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, key, sizeof(key) - 1) == 0)
            count = strtoull(line + sizeof(key) - 1, NULL, 10);
    if (file)
        fclose(file);
    return count;
}

/* The first figure of schedstat is the time on a CPU in ns. */
static uint64_t cpu_time(pid_t tid)
{
    FILE *file = open_file(tid, "schedstat");
    uint64_t nanoseconds = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%" SCNu64, &nanoseconds) != 1)
        nanoseconds = 0;
    fclose(file);
    return nanoseconds;
}

struct other {
    const struct tasks *known;
    struct task_figures *figures;
};

static void add_other(void *context, pid_t tid)
{
    const struct other *other = context;

    for (size_t i = 0; i < other->known->count; i++)
        if (other->known->tid[i] == tid)
            return;
    other->figures->count++;
    other->figures->wakeups += wakeups(tid);
    other->figures->cpu_time += cpu_time(tid);
}

void tasks_of_others(const struct tasks *known, struct task_figures *figures)
{
    struct other other = {.known = known, .figures = figures};

    *figures = (struct task_figures){0};
    visit(add_other, &other);
}
