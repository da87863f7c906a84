#include "act.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

static const char act_flag[] = "--act";

static int play(const char *name, const char *argument)
{
    for (const struct act *act = acts; act->name; act++)
        if (strcmp(act->name, name) == 0)
            return act->play(argument);
    process_complain("there is no act of the name %s", name);
    return 127;
}

void act_run(struct outcome *outcome, const char *name, const char *argument)
{
    char *arguments[] = {"act", (char *)act_flag, (char *)name, (char *)argument, NULL};

    process_execute(outcome, "/proc/self/exe", arguments);
}

void act_become(const char *name, const char *argument)
{
    execl("/proc/self/exe", "act", act_flag, name, argument, (char *)NULL);
}

int main(int argc, char *argv[])
{
    struct criterion_test_set *tests;
    int failed = 0;

    if (argc == 4 && strcmp(argv[1], act_flag) == 0)
        return play(argv[2], argv[3]);
    tests = criterion_initialize();
    if (criterion_handle_args(argc, argv, true))
        failed = !criterion_run_all_tests(tests);
    criterion_finalize(tests);
    return failed;
}
