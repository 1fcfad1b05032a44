/* What is remembered of a job's phases. */
#include "core/policy/phase-book.h"

#include <math.h>

#include "tap.h"

#define W(w) ((uint32_t)(w)*1000u)

static uint64_t at(double s)
{
    return ns_of_s(s);
}

/* Training of 60 s, validation of length_s under cap_mw, and training again. */
static double cycle(struct phase_book *b, double from_s, double length_s, uint32_t cap_mw)
{
    (void)phase_book_phase(b, UW_PHASE_TRAIN, at(from_s));
    phase_book_cap(b, 0, W(300), at(from_s + 0.05));
    (void)phase_book_phase(b, UW_PHASE_VALIDATE, at(from_s + 60));
    phase_book_cap(b, 0, cap_mw, at(from_s + 60.05));
    return from_s + 60 + length_s;
}

static void test_ran(void)
{
    struct phase_book b = {.phase = UW_PHASE_UNKNOWN};

    phase_book_cap(&b, 0, W(300), at(1));
    double s = cycle(&b, 10, 5, W(250));
    is_int(phase_book_ran(&b, 0), 0,
           "a phase that has not come before has run under none");
    phase_book_cap(&b, 0, W(240), at(s - 1));
    is_int(phase_book_ran(&b, 0), 0, "what it runs under counts from its end on");
    s = cycle(&b, s, 5, W(270));
    is_int(phase_book_ran(&b, 0), W(240), "the lowest cap of the time before");
    is_int(phase_book_ran(&b, 1), 0, "of that board");
    (void)phase_book_phase(&b, UW_PHASE_TRAIN, at(s));
    is_int(phase_book_ran(&b, 0), W(300),
           "training: not the cap that its begin found and that was lifted at once");
    phase_book_cap(&b, 0, W(300), at(s + 2));
    (void)phase_book_phase(&b, UW_PHASE_VALIDATE, at(s + 4));
    (void)phase_book_phase(&b, UW_PHASE_TRAIN, at(s + 8));
    is_int(phase_book_ran(&b, 0), W(270), "… but one that stayed longer");
    (void)phase_book_phase(&b, UW_PHASE_LOAD, at(s + 9));
    (void)phase_book_phase(&b, UW_PHASE_TRAIN, at(s + 9.5));
    (void)phase_book_phase(&b, UW_PHASE_LOAD, at(s + 10));
    is_int(phase_book_ran(&b, 0), W(300), "a phase in which no limit changed");
    (void)phase_book_phase(&b, UW_PHASE_UNKNOWN, at(s + 11));
    is_int(phase_book_ran(&b, 0), 0, "an unknown phase has run under none");
    (void)phase_book_phase(&b, 99, at(s + 12));
    ok(b.phase == UW_PHASE_UNKNOWN, "a phase that there is not is unknown");
}

static void test_length(void)
{
    struct phase_book b = {.phase = UW_PHASE_UNKNOWN};
    double s = 1;

    (void)phase_book_phase(&b, UW_PHASE_VALIDATE, at(0));
    (void)phase_book_phase(&b, UW_PHASE_TRAIN, at(s));
    (void)phase_book_phase(&b, UW_PHASE_VALIDATE, at(s + 1));
    ok(!phase_book_length(&b).known, "a phase whose begin was not seen has no length");
    ok(!phase_book_phase(&b, UW_PHASE_VALIDATE, at(s + 2)) && b.since_ns == at(s + 1),
       "the same phase again is no change");
    s = cycle(&b, s + 5, 7, W(300));
    ok(phase_book_length(&b).known && fabs(phase_book_length(&b).v - 4) < 1e-9,
       "the time from its begin to its end");
    s = cycle(&b, s, 40, W(300));
    s = cycle(&b, s, 8, W(300));
    ok(fabs(phase_book_length(&b).v - 7) < 1e-9, "the median: %.1f s",
       phase_book_length(&b).v);
    for (unsigned i = 0; i < 20; i++)
        s = cycle(&b, s, 2, W(300));
    ok(fabs(phase_book_length(&b).v - 2) < 1e-9, "of the last ones");
}

int main(void)
{
    test_ran();
    test_length();
    return done();
}
