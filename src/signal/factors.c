/* Yearly carbon intensity of electricity by country, in g of CO2 equivalent a kWh over
 * the life cycle, for the electricity generated in the country.
 *
 * Origin: Our World in Data, "Carbon intensity of electricity generation", with data of
 * Ember and of the Energy Institute, CC BY 4.0; taken over on 2026-11-26.  Figures of
 * 2025 exist only for some countries.  Left out: small grids, where the rounding of the
 * generated energy affects the figure.
 */
#include "signal/factors.h"

#include <string.h>

#include "base/auto.h"

#define NONE -1.0
enum { FIRST_YEAR = 2024, YEARS = 2 };

static const struct {
    char country[3]; /* ISO 3166-1 */
    double g[YEARS]; /* from FIRST_YEAR on */
} factors[] = {
    /* clang-format off */
    {"AE", {467.51, NONE}}, {"AF", {131.31, NONE}}, {"AL", {25.18, NONE}}, {"AM", {240.31, 211.93}},
    {"AO", {185.38, NONE}}, {"AR", {344.83, 346}}, {"AT", {103.48, 116.91}}, {"AU", {553.83, 525.18}},
    {"AZ", {634.34, 631.9}}, {"BA", {601.03, 570.64}}, {"BD", {695.7, 696.13}}, {"BE", {126.96, 149.82}},
    {"BF", {562.13, NONE}}, {"BG", {278.85, 275.55}}, {"BH", {902.24, NONE}}, {"BJ", {584.16, NONE}},
    {"BN", {892.09, NONE}}, {"BO", {495.2, 481.29}}, {"BR", {106.06, 109.95}}, {"BT", {23.64, NONE}},
    {"BW", {851.31, NONE}}, {"BY", {329.55, 309.25}}, {"CA", {185.35, 190.72}}, {"CD", {27.64, NONE}},
    {"CG", {716.12, NONE}}, {"CH", {34.58, 39.22}}, {"CI", {405.01, NONE}}, {"CL", {259.87, 289.49}},
    {"CM", {225.9, NONE}}, {"CN", {555.4, 525.34}}, {"CO", {298.3, 186.81}}, {"CR", {25.46, 24.2}},
    {"CU", {642.82, NONE}}, {"CY", {511.23, 489}}, {"CZ", {414.23, 401.46}}, {"DE", {336.38, 329.65}},
    {"DK", {131.77, 114.41}}, {"DO", {567.62, 537.48}}, {"DZ", {632.94, NONE}}, {"EC", {203.61, 159.02}},
    {"EE", {343.45, 319.15}}, {"EG", {574.5, 563.23}}, {"ES", {146.22, 153.6}}, {"ET", {23.41, 23.08}},
    {"FI", {66.63, 57.47}}, {"FR", {40.48, 41.44}}, {"GA", {523.08, NONE}}, {"GB", {216.5, 217.41}},
    {"GE", {145.01, 145.93}}, {"GH", {468.89, NONE}}, {"GN", {181.14, NONE}}, {"GR", {321.65, 315.09}},
    {"GT", {301.46, NONE}}, {"GY", {644.93, NONE}}, {"HK", {675.48, NONE}}, {"HN", {322.12, NONE}},
    {"HR", {170.7, 158.5}}, {"HT", {534.88, NONE}}, {"HU", {184.47, 163.02}}, {"ID", {680.25, NONE}},
    {"IE", {270.91, 256.54}}, {"IL", {540.55, 492.69}}, {"IN", {705.4, 670.13}}, {"IQ", {683.1, NONE}},
    {"IR", {648.68, 659.53}}, {"IS", {27.82, NONE}}, {"IT", {281.4, 284.78}}, {"JM", {563.01, NONE}},
    {"JO", {529.79, NONE}}, {"JP", {483.43, 477.26}}, {"KE", {85.22, 95.44}}, {"KG", {119.21, 152.73}},
    {"KH", {538.76, 498.87}}, {"KP", {340.59, NONE}}, {"KR", {415.51, 417.06}}, {"KW", {635.2, 635.31}},
    {"KZ", {802.04, 805.32}}, {"LA", {232.08, NONE}}, {"LB", {389.51, NONE}}, {"LK", {378.44, 329.28}},
    {"LT", {116.37, 138.36}}, {"LU", {132.45, 123.38}}, {"LV", {134.28, 138.76}}, {"LY", {826.83, NONE}},
    {"MA", {594.81, 596.4}}, {"MD", {634.27, 633.12}}, {"ME", {422.1, 264.23}}, {"MG", {432.1, NONE}},
    {"MK", {510.3, 441.35}}, {"ML", {538.59, NONE}}, {"MM", {502.99, NONE}}, {"MN", {810.66, 816.31}},
    {"MR", {512.08, NONE}}, {"MT", {488.58, 484.02}}, {"MU", {642.23, NONE}}, {"MW", {54.65, NONE}},
    {"MX", {483.14, 474.02}}, {"MY", {600.44, 601.97}}, {"MZ", {129.36, NONE}}, {"NA", {48.78, NONE}},
    {"NG", {495.74, 455.71}}, {"NI", {300.89, NONE}}, {"NL", {250.72, 253.56}}, {"NO", {29.66, 28.11}},
    {"NP", {24.26, NONE}}, {"NZ", {112.02, 92.76}}, {"OM", {542.77, 544.47}}, {"PA", {221.15, NONE}},
    {"PE", {258.73, 238.25}}, {"PG", {513.74, NONE}}, {"PH", {621.73, 588.29}}, {"PK", {373.69, 346.56}},
    {"PL", {608.18, 588.6}}, {"PR", {656, 654.66}}, {"PT", {110.64, 127.91}}, {"PY", {24.76, 24.7}},
    {"QA", {581.69, 581.52}}, {"RO", {251.33, 250.75}}, {"RS", {666.4, 695.8}}, {"RU", {445.98, 449.73}},
    {"RW", {353.98, NONE}}, {"SA", {691.95, NONE}}, {"SD", {153.69, NONE}}, {"SE", {34.91, 35.26}},
    {"SG", {498.74, 497.09}}, {"SI", {230.4, 183.29}}, {"SK", {96.55, 94.85}}, {"SN", {539.97, NONE}},
    {"SR", {321.84, NONE}}, {"SV", {113.32, 139.32}}, {"SY", {706.19, NONE}}, {"TG", {422.54, NONE}},
    {"TH", {554.73, 545.74}}, {"TJ", {71.17, 72.56}}, {"TM", {1306.27, NONE}}, {"TN", {558.26, 560.29}},
    {"TR", {469.74, 474.74}}, {"TT", {681.68, NONE}}, {"TW", {635.19, 633.21}}, {"TZ", {345.02, NONE}},
    {"UG", {58.52, NONE}}, {"US", {383.78, 384.4}}, {"UY", {69.56, 80.4}}, {"UZ", {1040.12, 1000}},
    {"VE", {85.86, NONE}}, {"VN", {484.32, 460.73}}, {"XK", {924.67, 900.94}}, {"YE", {592.38, NONE}},
    {"ZA", {717.36, 699.29}}, {"ZM", {119.68, NONE}}, {"ZW", {384.02, NONE}},
    /* clang-format on */
};

static bool at_year(const double g[YEARS], unsigned *year, double *ret_g)
{
    for (unsigned i = YEARS; i-- > 0;) {
        if (g[i] < 0 || (*year && *year != FIRST_YEAR + i))
            continue;
        *year = FIRST_YEAR + i;
        *ret_g = g[i];
        return true;
    }
    return false;
}

bool factor_find(const char *country, unsigned *year, double *ret_g)
{
    for (size_t i = 0; i < n_elements(factors); i++)
        if (strcmp(factors[i].country, country) == 0)
            return at_year(factors[i].g, year, ret_g);
    return false;
}

const char *factor_country(size_t i)
{
    return i < n_elements(factors) ? factors[i].country : NULL;
}
