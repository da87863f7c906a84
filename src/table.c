#include "table.h"

#include "kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

/* Closes what one reading of the directory shows; whether that was anything. */
static bool close_listed(int directory, unsigned int first)
{
    union {
        char bytes[2048];
        struct dirent64 aligned;
    } buffer;
    bool closed = false;
    long got;

    lseek(directory, 0, SEEK_SET);
    while ((got = kernel_getdents64(directory, &buffer, sizeof(buffer))) > 0)
        for (long at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(buffer.bytes + at);
            long fd = strtol(entry->d_name, NULL, 10);

            if (entry->d_name[0] != '.' && fd >= first && fd != directory)
                closed = close((int)fd) == 0 || closed;
            at += entry->d_reclen;
        }
    return closed;
}

/* Before Linux 5.9 the table is copied, and what the copy holds is closed. */
static int copy_and_close(unsigned int first)
{
    int directory;

    if (unshare(CLONE_FILES) < 0)
        return -errno;
    close((int)first); /* in a full table, for the directory to have a number */
    directory = open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    while (close_listed(directory, first))
        ;
    close(directory);
    return 0;
}

int profil_table_leave(unsigned int first)
{
    int result = kernel_close_range(first, ~0U, CLOSE_RANGE_UNSHARE);

    return result == 0 ? 0 : copy_and_close(first);
}
