#include "process.h"

#include "support.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The whole file as a string, without malloc: that would change what is being looked at. */
static bool read_file(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got;

    if (fd < 0)
        return false;
    while (used + 1 < size && (got = read(fd, buffer + used, size - 1 - used)) > 0)
        used += (size_t)got;
    buffer[used] = '\0';
    close(fd);
    return true;
}

static size_t occurrences(const char *text, const char *pattern)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, pattern)); at += strlen(pattern))
        count++;
    return count;
}

static size_t entries(const char *path)
{
    DIR *directory = opendir(path);
    size_t count = 0;

    if (!directory)
        return 0;
    for (struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

void process_read_state(struct process_state *state)
{
    static char maps[1 << 20];
    char kilobytes[64] = "0";

    maps[0] = '\0';
    state->threads = entries("/proc/self/task");
    state->descriptors = entries("/proc/self/fd") - 1; /* one is that of the directory */
    process_thread_field(getpid(), "VmSize", kilobytes, sizeof(kilobytes));
    read_file("/proc/self/maps", maps, sizeof(maps));
    state->mappings = PROCESS_SANITIZED ? 0 : occurrences(maps, "\n");
    state->kilobytes = PROCESS_SANITIZED ? 0 : strtoul(kilobytes, NULL, 10);
    state->rings = occurrences(maps, "[perf_event]");
}

void process_read_settled_state(struct process_state *state, size_t threads)
{
    const struct timespec moment = {.tv_nsec = 5000000};

    for (int i = 0; i < 400 && entries("/proc/self/task") > threads; i++)
        nanosleep(&moment, NULL);
    process_read_state(state);
}

static bool find_field(const char *text, const char *field, char *value, size_t size)
{
    size_t length = strlen(field);

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, field, length) == 0 && line[length] == ':') {
            line += length + 1;
            line += strspn(line, " \t");
            snprintf(value, size, "%.*s", (int)strcspn(line, "\n"), line);
            return true;
        }
    }
    return false;
}

bool process_thread_field(pid_t tid, const char *field, char *value, size_t size)
{
    char path[64], text[8192];

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
    return read_file(path, text, sizeof(text)) && find_field(text, field, value, size);
}

void process_each_thread(void (*visit)(void *context, pid_t tid), void *context)
{
    DIR *directory = opendir("/proc/self/task");

    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.')
            visit(context, (pid_t)atol(entry->d_name));
    closedir(directory);
}

struct wanted {
    const char *name;
    pid_t found;
};

static void compare_name(void *context, pid_t tid)
{
    struct wanted *wanted = context;
    char name[64];

    if (process_thread_field(tid, "Name", name, sizeof(name)) && strcmp(name, wanted->name) == 0)
        wanted->found = tid;
}

pid_t process_thread_named(const char *name)
{
    struct wanted wanted = {.name = name};

    process_each_thread(compare_name, &wanted);
    return wanted.found;
}

bool process_ticks_fit(unsigned long ticks, double seconds, unsigned int threads)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    double unseen = (double)threads * (double)(cpus < 4 ? cpus : 4);
    double expected = seconds * 100, sampled = support_kernel_is_sampled() ? 0.96 : 0.8;

    return (double)ticks >= expected * sampled - unseen - 1 && (double)ticks <= expected * 1.02 + 1;
}

/* Appends what the pipe has; false at its end. */
static bool take(int fd, char *text, size_t size)
{
    size_t used = strlen(text);
    char discarded[512];
    bool full = used + 1 >= size;
    ssize_t got =
        full ? read(fd, discarded, sizeof(discarded)) : read(fd, text + used, size - 1 - used);

    if (got > 0 && !full)
        text[used + (size_t)got] = '\0';
    return got > 0;
}

static int milliseconds_since(const struct timespec *start)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int)((now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000);
}

/* Reads to the ends of both pipes; false when they do not come in time. */
static bool collect(struct outcome *outcome, int output, int complaints)
{
    struct pollfd pipes[] = {{.fd = output, .events = POLLIN},
                             {.fd = complaints, .events = POLLIN}};
    struct timespec start;

    clock_gettime(CLOCK_MONOTONIC, &start);
    while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
        if (poll(pipes, 2, PROCESS_WATCHDOG_SECONDS * 1000 - milliseconds_since(&start)) == 0)
            return false;
        if (pipes[0].revents && !take(output, outcome->output, sizeof(outcome->output)))
            pipes[0].fd = -1;
        if (pipes[1].revents && !take(complaints, outcome->complaints, sizeof(outcome->complaints)))
            pipes[1].fd = -1;
    }
    return true;
}

/* Forks; the child's standard output and error are pipes that the parent reads to their ends. True
 * in the child. */
static bool fork_watched(struct outcome *outcome)
{
    int output[2], complaints[2];
    pid_t child;

    *outcome = (struct outcome){0};
    cr_assert_eq(pipe2(output, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(complaints, O_CLOEXEC), 0);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        dup2(output[1], 1);
        dup2(complaints[1], 2);
        close(output[0]), close(output[1]);
        close(complaints[0]), close(complaints[1]);
        return true;
    }
    close(output[1]);
    close(complaints[1]);
    if (!collect(outcome, output[0], complaints[0]))
        kill(child, SIGKILL);
    close(output[0]), close(complaints[0]);
    cr_assert_eq(waitpid(child, &outcome->status, 0), child);
    return false;
}

void process_fork(struct outcome *outcome, void (*body)(void *context), void *context)
{
    if (!fork_watched(outcome))
        return;
    body(context);
    _exit(0);
}

void process_execute(struct outcome *outcome, const char *path, char *const arguments[])
{
    int null;

    if (!fork_watched(outcome))
        return;
    null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    closefrom(3);
    /* By this the test framework knows its own children, of which this is none. */
    unsetenv("BXFI_MAP");
    execv(path, arguments);
    process_complain("%s cannot be executed", path);
    _exit(127);
}

void process_profil_off(void)
{
    unsigned short *volatile off = NULL;

    if (profil(off, 0, 0, 0) != 0)
        process_complain("stop: %s", strerror(errno));
}

void process_complain(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    vdprintf(2, format, values);
    va_end(values);
    dprintf(2, "\n");
}

void process_expect(const struct outcome *outcome, int status)
{
    cr_assert(outcome->status == status && outcome->complaints[0] == '\0',
              "status %#x where %#x is right; output: \"%s\"; complaints: \"%s\"", outcome->status,
              status, outcome->output, outcome->complaints);
}

int process_exited(int code)
{
    return W_EXITCODE(code, 0);
}

int process_killed(int signal)
{
    return W_EXITCODE(0, signal);
}
