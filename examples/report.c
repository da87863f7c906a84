#include "report.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAR_COLUMNS = 26, TICKS_PER_SECOND = 100 };

struct function {
    struct symbol symbol;
    unsigned long ticks;
};

struct report {
    struct function *functions; /* by falling ticks */
    size_t count;
    unsigned long ticks;
};

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct function *find_function(struct report *report, const struct symbol *symbol)
{
    struct function *functions;

    for (size_t i = 0; i < report->count; i++)
        if (same_text(report->functions[i].symbol.function, symbol->function) &&
            same_text(report->functions[i].symbol.object, symbol->object))
            return &report->functions[i];
    functions = reallocarray(report->functions, report->count + 1, sizeof(*functions));
    if (!functions)
        return NULL;
    report->functions = functions;
    functions[report->count] = (struct function){.symbol = *symbol};
    return &functions[report->count++];
}

static int add_ticks(struct report *report, struct symbol symbol, unsigned long ticks)
{
    struct function *function = ticks ? find_function(report, &symbol) : NULL;

    if (function)
        function->ticks += ticks;
    report->ticks += ticks;
    return ticks && !function ? -1 : 0;
}

static int add_text(struct report *report, const struct text *text, unsigned int width,
                    struct symbols *symbols)
{
    for (size_t i = 0; i < text->counter_count; i++)
        if (text->counters[i] > 0 &&
            add_ticks(report, symbols_find(symbols, text->start + i * width), text->counters[i]))
            return -1;
    return 0;
}

static int by_falling_ticks(const void *a, const void *b)
{
    const struct function *left = a;
    const struct function *right = b;

    return (left->ticks < right->ticks) - (left->ticks > right->ticks);
}

struct report *report_new(const struct texts *texts, struct symbols *symbols)
{
    static const struct symbol outside = {"(outside)", NULL};
    struct report *report = calloc(1, sizeof(*report));
    int result = report ? add_ticks(report, outside, texts->outside) : -1;

    for (size_t i = 0; i < texts->count && result == 0; i++)
        result = add_text(report, &texts->items[i], texts->width, symbols);
    if (result == -1) {
        report_free(report);
        return NULL;
    }
    if (report->count > 0)
        qsort(report->functions, report->count, sizeof(*report->functions), by_falling_ticks);
    return report;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void print_bar(double share, double full)
{
    int columns = (int)lround(full > 0 ? BAR_COLUMNS * share / full : 0);

    for (int i = 0; i < columns; i++)
        putchar('#');
    putchar('\n');
}

static void print_function(const struct report *report, const struct function *function)
{
    const char *object = function->symbol.object;

    printf(" %5.1f %% %6lu  %-20.20s %-14.14s ", percent(function->ticks, report->ticks),
           function->ticks, function->symbol.function ? function->symbol.function : "(no symbol)",
           object ? object : "-");
    print_bar(function->ticks, report->functions[0].ticks);
}

void report_print_functions(const struct report *report, size_t lines)
{
    printf("   share  ticks  %-20s %s\n", "function", "object");
    for (size_t i = 0; i < report->count && i < lines; i++)
        print_function(report, &report->functions[i]);
    if (report->count > lines)
        printf("                 and %zu more\n", report->count - lines);
}

/* A compiler's clone is the function too: heap_sort.isra.0. */
static bool is_named(const char *name, const char *function)
{
    size_t length = strlen(name);

    return strncmp(name, function, length) == 0 &&
           (function[length] == '\0' || function[length] == '.');
}

static bool is_function_of(const struct stage *stage, const struct symbol *symbol)
{
    for (size_t i = 0; i < sizeof(stage->functions) / sizeof(*stage->functions); i++)
        if (stage->functions[i] && symbol->function &&
            is_named(stage->functions[i], symbol->function))
            return true;
    return false;
}

static bool is_object_of(const struct stage *stage, const struct symbol *symbol)
{
    return stage->object && symbol->object &&
           strncmp(symbol->object, stage->object, strlen(stage->object)) == 0;
}

/* The stage that names the function, else the stage that names its object, else WORKLOAD_STAGES. */
static int stage_of(const struct symbol *symbol)
{
    for (int i = 0; i < WORKLOAD_STAGES; i++)
        if (is_function_of(&workload_stages[i], symbol))
            return i;
    for (int i = 0; i < WORKLOAD_STAGES; i++)
        if (is_object_of(&workload_stages[i], symbol))
            return i;
    return WORKLOAD_STAGES;
}

/* The profile's share is given with its standard error: what chance makes of that many ticks. */
static void print_stage(const char *name, double clock_seconds, unsigned long ticks,
                        double process_seconds)
{
    double clock = percent(clock_seconds, process_seconds);
    double profile = percent((double)ticks / TICKS_PER_SECOND, process_seconds);
    double error = percent(sqrt(fmax(0, (double)ticks * (1 - profile / 100))) / TICKS_PER_SECOND,
                           process_seconds);

    printf("  %-16s %8.1f %% %10.1f %% +/- %3.1f %+11.1f\n", name, clock, profile, error,
           profile - clock);
}

/* Ticks per stage; the rest goes to the last element. */
static void sum_stages(const struct report *report, unsigned long ticks[WORKLOAD_STAGES + 1])
{
    memset(ticks, 0, (WORKLOAD_STAGES + 1) * sizeof(*ticks));
    for (size_t i = 0; i < report->count; i++)
        ticks[stage_of(&report->functions[i].symbol)] += report->functions[i].ticks;
}

void report_print_stages(const struct report *report, const double stage_seconds[WORKLOAD_STAGES],
                         double process_seconds)
{
    unsigned long ticks[WORKLOAD_STAGES + 1];
    double rest = process_seconds;

    sum_stages(report, ticks);
    printf("  %-16s %10s %20s %11s\n", "stage", "by clock", "by profile   ", "difference");
    for (int i = 0; i < WORKLOAD_STAGES; i++) {
        print_stage(workload_stages[i].name, stage_seconds[i], ticks[i], process_seconds);
        rest -= stage_seconds[i];
    }
    print_stage("anything else", rest, ticks[WORKLOAD_STAGES], process_seconds);
}

void report_print_total(const struct report *report, double process_seconds)
{
    double seconds = (double)report->ticks / TICKS_PER_SECOND;

    printf("  %lu ticks of 10 ms make %.2f s; the process used %.2f s of CPU: ratio %.3f\n",
           report->ticks, seconds, process_seconds, seconds / process_seconds);
}

void report_free(struct report *report)
{
    if (report)
        free(report->functions);
    free(report);
}
