/* Memory straight from the kernel, for the sampler thread: malloc would give that thread an arena
 * of its own, which stays mapped when the thread has gone. And the question whether memory that the
 * program named can be written. */
#ifndef PROFIL_MEMORY_H
#define PROFIL_MEMORY_H

#include <stddef.h>

size_t profil_memory_page(void);

struct growable {
    void *base;
    size_t bytes;
};

/* Makes room for at least `bytes` bytes, new ones zero; the base may move. 0 or -ENOMEM. */
int profil_memory_grow(struct growable *memory, size_t bytes);

void profil_memory_free(struct growable *memory);

/* Zeroes that take no memory until they are written; NULL when there is no address space. */
void *profil_memory_reserve(size_t bytes);
void profil_memory_release(void *memory, size_t bytes);

/* 0 if every byte can be written by the program now, else -EFAULT. Contents do not change. May open
 * a descriptor for a moment. */
int profil_memory_check_writable(void *start, size_t bytes);

#endif
