#include "symbols.h"

#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char *default_debuginfo_path;

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .debuginfo_path = &default_debuginfo_path,
};

/* A struct symbols is a Dwfl under another name. */
static Dwfl *session_of(struct symbols *symbols)
{
    return (Dwfl *)symbols;
}

struct symbols *symbols_open(void)
{
    Dwfl *session = dwfl_begin(&callbacks);

    if (session && dwfl_linux_proc_report(session, getpid()) == 0 &&
        dwfl_report_end(session, NULL, NULL) == 0)
        return (struct symbols *)session;
    fprintf(stderr, "cannot read symbols: %s\n", dwfl_errmsg(-1));
    dwfl_end(session);
    return NULL;
}

static const char *object_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (strncmp(path, "[vdso", 5) == 0)
        return "[vdso]"; /* libdwfl adds the process id */
    return slash ? slash + 1 : path;
}

struct symbol symbols_find(struct symbols *symbols, uintptr_t pc)
{
    Dwfl_Module *module = dwfl_addrmodule(session_of(symbols), pc);
    struct symbol symbol = {NULL, NULL};
    const char *path;

    if (!module)
        return symbol;
    symbol.function = dwfl_module_addrname(module, pc);
    path = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    symbol.object = path ? object_name(path) : NULL;
    return symbol;
}

void symbols_close(struct symbols *symbols)
{
    dwfl_end(session_of(symbols));
}
