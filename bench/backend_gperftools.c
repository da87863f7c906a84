/* gperftools' CPU profiler: ITIMER_PROF and SIGPROF, with call stacks, to a file. */
#include "backend.h"

#include <errno.h>
#include <gperftools/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const bool backend_sees_all_threads = true;

static char file_name[] = "gperftools-XXXXXX";
static struct counts sum;

int backend_start(uint64_t period, enum scope scope)
{
    char frequency[24];
    int fd = mkstemp(file_name);

    (void)scope;
    if (fd < 0)
        return -errno;
    close(fd);
    snprintf(frequency, sizeof(frequency), "%u", (unsigned int)(1000000000 / period));
    setenv("CPUPROFILE_FREQUENCY", frequency, 1);
    return ProfilerStart(file_name) ? 0 : -EIO;
}

/* The file is in words: a header whose second word is the number of words that follow it, then
 * { samples, depth, pc[depth] } up to { 0, 1, 0 }, then text. */
static void read_file(FILE *file)
{
    uintptr_t word[2], pc[256];

    if (fread(word, sizeof(word[0]), 2, file) != 2 || word[1] > 256 ||
        fread(pc, sizeof(pc[0]), word[1], file) != word[1])
        return;
    while (fread(word, sizeof(word[0]), 2, file) == 2 && word[0] != 0 && word[1] >= 1 &&
           word[1] <= 256 && fread(pc, sizeof(pc[0]), word[1], file) == word[1])
        counts_add(&sum, pc[0], word[0]);
}

void backend_stop(void)
{
    FILE *file;

    ProfilerStop();
    file = fopen(file_name, "rb");
    if (file) {
        read_file(file);
        fclose(file);
    }
    unlink(file_name);
}

void backend_read(struct counts *counts)
{
    *counts = sum;
}

const char *backend_reason(void)
{
    return "";
}

void backend_enter(void)
{
    ProfilerRegisterThread();
}

void backend_leave(void)
{
}
