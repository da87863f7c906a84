#include "reason.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void profil_reason_clear(struct reason *reason)
{
    reason->text[0] = '\0';
}

void profil_reason_set(struct reason *reason, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason->text, sizeof(reason->text), format, arguments);
    va_end(arguments);
}

void profil_reason_add(struct reason *reason, const char *format, ...)
{
    size_t used = strlen(reason->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason->text + used, sizeof(reason->text) - used, format, arguments);
    va_end(arguments);
}
