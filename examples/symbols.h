/* The names of functions, by elfutils' libdw. */
#ifndef EXAMPLE_SYMBOLS_H
#define EXAMPLE_SYMBOLS_H

#include <stdint.h>

struct symbols;

struct symbol {
    const char *function; /* NULL where the object's symbol table has no name */
    const char *object;   /* NULL where nothing is loaded */
};

/* Of all objects that are loaded in this process now. NULL with a message on stderr. */
struct symbols *symbols_open(void);

/* The strings live until symbols_close(). */
struct symbol symbols_find(struct symbols *symbols, uintptr_t pc);

void symbols_close(struct symbols *symbols);

#endif
