#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void report(const char *name, double value)
{
    printf("%s=%.9g\n", name, value);
    fflush(stdout);
}

_Noreturn void report_unsupported(const char *reason)
{
    printf("unsupported=%s\n", reason);
    exit(EXIT_SUCCESS);
}

_Noreturn void report_failure(const char *what, int error)
{
    printf("failed=%s: %s\n", what, strerror(-error));
    exit(EXIT_FAILURE);
}
