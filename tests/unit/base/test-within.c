/* The digits of a figure are those of its half width. */
#include "base/within.h"

#include <math.h>

#include "base/auto.h"
#include "tap.h"

/* clang-format off */
static const struct {
    double v, half;
    const char *text;
} cases[] = {
    {24.50, 34.47, "25 ± 34"},          {1187.3, 243, "1190 ± 240"},
    {12.1345, 0.8349, "12.13 ± 0.83"},  {1.169334, 0.003405, "1.1693 ± 0.0034"},
    {213.0155, 298.394, "210 ± 300"},   {36.9, 51.6, "37 ± 52"},
    {0.2, 34, "0 ± 34"},                {-0.2, 34, "0 ± 34"},
    {-8.04, 0.96, "-8.04 ± 0.96"},      {5, 0.0996, "5.00 ± 0.10"},
    {5, 0.996, "5.0 ± 1.0"},            {5, 9.96, "5 ± 10"},
    {4, 99.6, "0 ± 100"},               {1e6, 4000, "1000000 ± 4000"},
    {0, 2, "0.0 ± 2.0"},                {12.3456, 0, "12.35"},
    {12.3456, NAN, "12.35"},            {12345.6, 0, "12346"},
};
/* clang-format on */

int main(void)
{
    char text[WITHIN_TEXT];

    for (size_t i = 0; i < n_elements(cases); i++)
        is_str(within_text(cases[i].v, cases[i].half, text), cases[i].text,
               cases[i].text);
    return done();
}
