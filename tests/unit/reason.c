#include "reason.h"

#include "support.h"

#include <string.h>

static struct reason reason;

Test(reason, setting_replaces_and_adding_appends)
{
    profil_reason_set(&reason, "%s is %d", "one", 1);
    profil_reason_set(&reason, "%s is %d", "two", 2);
    profil_reason_add(&reason, ", not %d", 3);
    cr_assert_str_eq(reason.text, "two is 2, not 3");
}

Test(reason, adding_to_a_cleared_reason_begins_it)
{
    profil_reason_set(&reason, "old");
    profil_reason_clear(&reason);
    cr_assert_str_eq(reason.text, "");
    profil_reason_add(&reason, "new");
    cr_assert_str_eq(reason.text, "new");
}

Test(reason, what_does_not_fit_is_cut_off_before_the_final_zero)
{
    char longer[2 * REASON_BYTES];

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    profil_reason_set(&reason, "%s", longer);
    cr_assert_eq(strlen(reason.text), REASON_BYTES - 1);

    longer[REASON_BYTES - 2] = '\0';
    profil_reason_set(&reason, "%s", longer);
    profil_reason_add(&reason, "yz");
    cr_assert_eq(strlen(reason.text), REASON_BYTES - 1);
    cr_assert_eq(reason.text[REASON_BYTES - 2], 'y');

    profil_reason_add(&reason, "more");
    cr_assert_eq(strlen(reason.text), REASON_BYTES - 1);
    cr_assert_eq(reason.text[REASON_BYTES - 2], 'y');
}
