/* Stands in for Criterion where that cannot run, which is under an emulator and under the thread
 * sanitizer: as much of it as the unit tests use. Included by one file, it makes that a program
 * which runs the file's tests one after the other, each in a forked child, and prints TAP. */
#ifndef PLAIN_CRITERION_H
#define PLAIN_CRITERION_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct plain_options {
    int unused; /* so that an empty list of options is no empty initialiser */
    void (*init)(void);
    void (*fini)(void);
    unsigned int timeout; /* seconds */
};

struct plain_test {
    struct plain_test *next;
    const char *suite, *name;
    void (*run)(void); /* NULL: these are the options of the suite */
    struct plain_options options;
};

static struct plain_test *plain_tests, **plain_last = &plain_tests;

static inline void plain_register(struct plain_test *test)
{
    *plain_last = test;
    plain_last = &test->next;
}

#define PLAIN_REGISTER(suite_name, test_name, function, ...)                                       \
    __attribute__((constructor)) static void plain_register_##suite_name##_##test_name(void)       \
    {                                                                                              \
        static struct plain_test test = {                                                          \
            .suite = #suite_name,                                                                  \
            .name = #test_name,                                                                    \
            .run = (function),                                                                     \
            .options = {.unused = 0, __VA_ARGS__},                                                 \
        };                                                                                         \
        plain_register(&test);                                                                     \
    }

#define TestSuite(suite, ...) PLAIN_REGISTER(suite, , NULL, __VA_ARGS__)
#define Test(suite, name, ...)                                                                     \
    static void suite##_##name(void);                                                              \
    PLAIN_REGISTER(suite, name, suite##_##name, __VA_ARGS__)                                       \
    static void suite##_##name(void)

static bool plain_failed;

/* Says what does not hold, with the message of the test's if there is one. */
__attribute__((format(printf, 6, 7))) static inline void plain_check(bool holds, bool go_on,
                                                                     const char *file, int line,
                                                                     const char *claim,
                                                                     const char *format, ...)
{
    va_list values;

    if (holds)
        return;
    printf("# %s:%d: not so: %s", file, line, claim);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    printf("\n");
    fflush(stdout);
    if (!go_on)
        _exit(1);
    plain_failed = true;
}

#define PLAIN_CHECK(holds, go_on, claim, ...)                                                      \
    plain_check((holds), go_on, __FILE__, __LINE__, claim, " " __VA_ARGS__)
#define PLAIN_COMPARE(left, operator, right, go_on, ...)                                           \
    PLAIN_CHECK((left) operator(right), go_on, #left " " #operator" " #right, __VA_ARGS__)
#define PLAIN_COMPARE_STRINGS(left, right, go_on, ...)                                             \
    PLAIN_CHECK(strcmp(left, right) == 0, go_on, "the same text: " #left ", " #right, __VA_ARGS__)

#define cr_assert(condition, ...) PLAIN_CHECK(condition, false, #condition, __VA_ARGS__)
#define cr_assert_not(condition, ...) cr_assert(!(condition), __VA_ARGS__)
#define cr_assert_null(pointer, ...) PLAIN_COMPARE(pointer, ==, NULL, false, __VA_ARGS__)
#define cr_assert_not_null(pointer, ...) PLAIN_COMPARE(pointer, !=, NULL, false, __VA_ARGS__)
#define cr_assert_eq(left, right, ...) PLAIN_COMPARE(left, ==, right, false, __VA_ARGS__)
#define cr_assert_neq(left, right, ...) PLAIN_COMPARE(left, !=, right, false, __VA_ARGS__)
#define cr_assert_lt(left, right, ...) PLAIN_COMPARE(left, <, right, false, __VA_ARGS__)
#define cr_assert_leq(left, right, ...) PLAIN_COMPARE(left, <=, right, false, __VA_ARGS__)
#define cr_assert_gt(left, right, ...) PLAIN_COMPARE(left, >, right, false, __VA_ARGS__)
#define cr_assert_geq(left, right, ...) PLAIN_COMPARE(left, >=, right, false, __VA_ARGS__)
#define cr_assert_str_eq(left, right, ...) PLAIN_COMPARE_STRINGS(left, right, false, __VA_ARGS__)
#define cr_assert_fail(...) PLAIN_CHECK(false, false, "this is never reached:", __VA_ARGS__)

#define cr_expect(condition, ...) PLAIN_CHECK(condition, true, #condition, __VA_ARGS__)
#define cr_expect_not(condition, ...) cr_expect(!(condition), __VA_ARGS__)
#define cr_expect_null(pointer, ...) PLAIN_COMPARE(pointer, ==, NULL, true, __VA_ARGS__)
#define cr_expect_not_null(pointer, ...) PLAIN_COMPARE(pointer, !=, NULL, true, __VA_ARGS__)
#define cr_expect_eq(left, right, ...) PLAIN_COMPARE(left, ==, right, true, __VA_ARGS__)
#define cr_expect_neq(left, right, ...) PLAIN_COMPARE(left, !=, right, true, __VA_ARGS__)
#define cr_expect_lt(left, right, ...) PLAIN_COMPARE(left, <, right, true, __VA_ARGS__)
#define cr_expect_leq(left, right, ...) PLAIN_COMPARE(left, <=, right, true, __VA_ARGS__)
#define cr_expect_gt(left, right, ...) PLAIN_COMPARE(left, >, right, true, __VA_ARGS__)
#define cr_expect_geq(left, right, ...) PLAIN_COMPARE(left, >=, right, true, __VA_ARGS__)
#define cr_expect_str_eq(left, right, ...) PLAIN_COMPARE_STRINGS(left, right, true, __VA_ARGS__)
#define cr_expect_fail(...) PLAIN_CHECK(false, true, "this is never reached:", __VA_ARGS__)

/* What a test does not set is as the suite has it. */
static inline struct plain_options plain_options_of(const struct plain_test *test)
{
    struct plain_options options = test->options;

    for (const struct plain_test *suite = plain_tests; suite; suite = suite->next)
        if (!suite->run && strcmp(suite->suite, test->suite) == 0) {
            options.init = options.init ? options.init : suite->options.init;
            options.fini = options.fini ? options.fini : suite->options.fini;
            options.timeout = options.timeout ? options.timeout : suite->options.timeout;
        }
    return options;
}

static inline void plain_run_here(const struct plain_test *test)
{
    struct plain_options options = plain_options_of(test);

    alarm(options.timeout);
    if (options.init)
        options.init();
    test->run();
    if (options.fini)
        options.fini();
    exit(plain_failed); /* a sanitizer has its word then */
}

static inline bool plain_run(const struct plain_test *test)
{
    pid_t child;
    int status = -1;

    fflush(stdout);
    child = fork();
    if (child == 0)
        plain_run_here(test);
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        printf("# ended by signal %d\n", WTERMSIG(status));
    return status == 0;
}

int main(void)
{
    int count = 0, failed = 0;

    for (const struct plain_test *test = plain_tests; test; test = test->next) {
        bool passed;

        if (!test->run)
            continue;
        passed = plain_run(test);
        failed += !passed;
        printf("%sok %d - %s::%s\n", passed ? "" : "not ", ++count, test->suite, test->name);
    }
    printf("1..%d\n", count);
    return failed > 0;
}

#endif
