/* The register that a sample in the kernel is charged by. */
#include "event.h"

#include "support.h"

/* The kernel's numbers, which are its interface and never change; 0 bits: the code knows no number
 * for this architecture. */
#if defined(__x86_64__) || defined(__i386__)
static const uint64_t program_counter = UINT64_C(1) << 8;
#elif defined(__aarch64__)
static const uint64_t program_counter = UINT64_C(1) << 32;
#else
static const uint64_t program_counter = 0;
#endif

static struct event_spec describe(enum event_kernel kernel)
{
    struct event_spec spec;

    profil_event_describe(&spec, &profil_event_task_clock, EVENT_TICK_NANOSECONDS, 1, kernel);
    return spec;
}

static bool takes_registers(const struct event_spec *spec)
{
    return spec->attr.sample_type & PERF_SAMPLE_REGS_USER;
}

Test(registers, the_one_that_is_sampled_holds_the_users_program_counter)
{
    struct event_spec spec = describe(EVENT_KERNEL_IF_PERMITTED);

    cr_assert_eq(spec.attr.sample_regs_user, program_counter);
}

Test(registers, the_kernel_is_sampled_exactly_where_that_register_is_known)
{
    struct event_spec spec = describe(EVENT_KERNEL_IF_PERMITTED);

    cr_assert_eq(takes_registers(&spec), program_counter != 0);
    cr_assert_eq(profil_event_samples_kernel(&spec), program_counter != 0);
    cr_assert_eq(spec.attr.exclude_kernel, program_counter == 0);
}

Test(registers, none_are_taken_where_the_kernel_is_left_out)
{
    struct event_spec spec = describe(EVENT_KERNEL_EXCLUDED);

    cr_assert_eq(spec.attr.sample_regs_user, 0);
    cr_assert_not(takes_registers(&spec));
    cr_assert_not(profil_event_samples_kernel(&spec));
}
