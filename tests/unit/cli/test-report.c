/* A report as text, CSV and page: from JSON as the ledger writes it, hostile names and
 * unknown figures among it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/auto.h"
#include "cli/report.h"
#include "tap.h"

#define TAIL                                                                             \
    "\"totals\":{\"attributed_j\":9e6,\"idle_j\":1e6,\"unattributed_j\":0,\"energy_j\":" \
    "1e7,\"gco2e\":1000,\"cost\":1.39,\"half_j\":1,\"meter_j\":1e7,\"difference_j\":0,"  \
    "\"difference\":0.00001,"                                                            \
    "\"holds\":true,\"method\":[\"counter\"]},\"gpus\":[],\"caps_piece_s\":60,\"caps\":" \
    "["                                                                                  \
    "{\"gpu\":0,\"uuid\":\"GPU-0\",\"points\":[[1767225600,200000,150000,250000],"       \
    "[1767225660,210000,210000,210000],[1767229260,210000,210000,210000]]}],\"days\":["  \
    "{\"day\":\"2026-01-01\",\"attributed_j\":9e6,\"idle_j\":1e6,\"unattributed_j\":0,"  \
    "\"energy_j\":1e7,\"meter_j\":1e7}],\"from\":\"1970-01-01T00:00:00Z\",\"to\":"       \
    "\"2026-01-02T00:00:00Z\",\"only_uid\":null,\"simulated\":true}"

static const char by_job[] =
    "{\"by\":\"job\",\"rows\":[{\"job\":7,\"name\":\"<script>alert(1)</"
    "script>\",\"user\":"
    "\"=HYPERLINK(\\\"x\\\")\",\"uid\":1000,\"energy_j\":9e6,\"half_j\":90000,\"gpu_s\":"
    "36000,\"mean_w\":250,\"saved_j\":null,\"saved\":null,\"saved_half\":null},"
    "{\"job\":8,\"name\":\"a,b\\nc\\u001b[31m \\\"d\\\"\",\"user\":\"anna\",\"uid\":1000,"
    "\"energy_j\":0,\"half_j\":0,\"gpu_s\":0,\"mean_w\":null,\"saved_j\":5000,\"saved\":"
    "0.18,\"saved_half\":0.012,\"slowdown\":1.04,\"slowdown_half\":0.01,\"looks\":9,"
    "\"model_saved\":0.191,\"model_slowdown\":1.05}]," TAIL;
static const char by_day[] =
    "{\"by\":\"day\",\"rows\":[{\"day\":\"2026-01-01\",\"attributed_j\":9e6,\"idle_j\":"
    "1e6,"
    "\"unattributed_j\":0,\"energy_j\":1e7,\"meter_j\":1e7}]," TAIL;
static const char by_user[] =
    "{\"by\":\"user\",\"gco2e_kwh\":360,\"price_kwh\":0.5,\"currency\":\"EUR\",\"rows\":["
    "{"
    "\"user\":\"\",\"uid\":4242,\"jobs\":3,\"energy_j\":3.6e6,\"gco2e\":360,\"cost\":0.5,"
    "\"half_j\":1,\"gpu_s\":1,\"mean_w\":1,\"saved_j\":null}]," TAIL;
#define CPU                                                                           \
    "\"cpu\":{\"attributed_j\":3.6e6,\"idle_j\":0,\"unattributed_j\":1.8e6,\"energy_" \
    "j\":"                                                                            \
    "5.4e6,\"half_j\":1,\"meter_j\":5.4e6,\"difference_j\":0,\"difference\":0,"       \
    "\"holds\":true,\"method\":[\"counter\"]},"
static const char by_cpu[] =
    "{\"by\":\"cpu\"," CPU
    "\"rows\":[{\"domain\":\"package-0\",\"kind\":\"package\",\"attributed_j\":3.6e6,"
    "\"idle_j\":0,\"unattributed_j\":1.8e6,\"energy_j\":5.4e6,\"meter_j\":5.4e6}]," TAIL;
static const char cpu_by_user[] =
    "{\"by\":\"user\"," CPU "\"rows\":[{\"user\":\"anna\",\"uid\":1000,\"jobs\":1,"
    "\"energy_j\":9e6,\"half_j\":1,\"gpu_s\":1,\"mean_w\":1,\"saved_j\":null,\"cpu_j\":3."
    "6e6}"
    "]," TAIL;
static const char empty[] =
    "{\"by\":\"user\",\"rows\":[],\"days\":[],\"caps\":[],\"gpus\":[],"
    "\"totals\":{\"attributed_j\":0,\"energy_j\":0,\"difference\":null,"
    "\"holds\":null},\"only_uid\":1000,\"from\":\"x\",\"to\":\"\"}";

typedef int (*view_fn)(const struct json_value *report, FILE *to, uw_error *err);

static char *show(const char *json, view_fn view)
{
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {{0}};
    char *text = NULL;
    size_t len = 0;

    int r = json_read("report", json, strlen(json), &doc, &err);
    if (r == 0)
        r = report_check(json_root(doc), &err);
    FILE *mem = open_memstream(&text, &len);
    if (r == 0 && mem)
        r = view(json_root(doc), mem, &err);
    if (mem)
        (void)fclose(mem);
    ok(r == 0, "a view is made %s", err.text);
    return text;
}

static void has(const char *text, const char *part)
{
    if (!ok(strstr(text, part) != NULL, "has '%s'", part))
        printf("# %.2000s\n", text);
}

static void has_not(const char *text, const char *part)
{
    ok(strstr(text, part) == NULL, "has no '%s'", part);
}

static void test_text(void)
{
    auto_(mem_free) char *job = show(by_job, report_text);
    auto_(mem_free) char *day = show(by_day, report_text);
    auto_(mem_free) char *user = show(by_user, report_text);
    auto_(mem_free) char *none = show(empty, report_text);
    auto_(mem_free) char *cpu = show(by_cpu, report_text);
    char *rest = NULL, *line;

    has(job, "Energy by job from the beginning to 2026-01-02 00:00 UTC\n");
    has(job, "SIMULATED");
    has(job, "18.0 ± 1.2 %");
    has(job, "\n  ±: half of the 95 % interval\n");
    has_not(day, "interval");
    has(job, "within 0.1 %");
    has_not(job, "\033");
    has_not(job, "nan");
    has(day, "2026-01-01                  2.500      0.278        0.000      2.778      "
             "2.778");
    has(user, "uid 4242");
    has(user, " g CO2e at 360 g/kWh");
    has_not(job, "CO2e");
    has(none, "No energy of jobs was recorded.");
    has(none, "Jobs of uid 1000 alone");
    has(none, "The meters recorded nothing.");
    has_not(none, "SIMULATED");
    has(cpu, "Energy by processor from ");
    has(cpu, "package-0                   1.000      0.000        0.500      1.500      "
             "1.500");
    has(cpu, "Processors and their memory, beside the GPUs:");
    has_not(job, "Processors");
    int longest = 0;
    rest = job;
    while ((line = strsep(&rest, "\n")) != NULL) {
        int n = 0;
        for (const char *c = line; *c; c++)
            n += ((unsigned char)*c & 0xc0) != 0x80;
        longest = n > longest ? n : longest;
    }
    ok(longest <= 80, "%d columns, 80 at most", longest);
}

/* What begins a formula in some spreadsheet, at the field's begin or behind a separator.
 */
static void test_csv_formulas(void)
{
    /* clang-format off */
    static const struct { const char *json, *csv; } cases[] = {
        {"plain", "\nplain,"}, {"", "\n,"}, {"a=1", "\na=1,"}, {"3-4", "\n3-4,"},
        {"=1+1", "\n\"'=1+1\","}, {"+1", "\n\"'+1\","}, {"-1", "\n\"'-1\","}, {"@x", "\n\"'@x\","},
        {"\\t=1", "\n\"'\t=1\","}, {"\\r=1", "\n\"'\r=1\","}, {"\\n=1", "\n\"'\n=1\","},
        {"a;=1", "\n\"a;=1\","}, {"a\\t=1", "\n\"a\t=1\","}, {"=a,\\\"b", "\n\"'=a,\"\"b\","},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++) {
        char json[2000];
        (void)snprintf(json, sizeof json,
                       "{\"by\":\"label\",\"rows\":[{\"value\":\"%s\",\"jobs\":1,"
                       "\"energy_j\":-5}]," TAIL,
                       cases[i].json);
        auto_(mem_free) char *csv = show(json, report_csv);
        ok(strstr(csv, cases[i].csv), "field %zu is written as it has to be", i);
        ok(strstr(csv, ",1,-5,"), "and a number as a number");
    }
}

#define REVISED ",co2_revised_g,marginal_revised_g,money_revised"
#define CHARGES "co2_g,co2_covered,marginal_g,marginal_covered,money,money_covered"
#define SAVED                                                               \
    ",saved_co2_g,saved_co2_half_g,saved_marginal_g,saved_marginal_half_g," \
    "saved_money,saved_money_half"

/* Emissions of 13 of 16 parts of the energy, money of all. */
static const char charges[] =
    "{\"factors\":[{\"signal\":\"carbon\",\"source\":\"signals home (Our World in Data: "
    "DE 2024; CC BY "
    "4.0)\",\"estimated\":true}],\"by\":\"user\",\"money_currency\":\"EUR\",\"rows\":[{"
    "\"user\":\"anna\",\"energy_"
    "j\":"
    "3600000,\"co2_g\":12.5,\"co2_covered\":0.8125,\"marginal_g\":null,"
    "\"marginal_covered\":0,\"money\":-0.25,\"money_covered\":1,\"saved_co2_g\":1.5,"
    "\"saved_co2_half_g\":0.1}],\"gpus\":[],\"days\":[],\"caps\":[],\"totals\":{"
    "\"energy_j\":3600000,\"meter_j\":3600000,\"difference\":0,\"holds\":true,"
    "\"co2_g\":12.5,\"co2_booked_g\":13.25,\"co2_revised_g\":-0.75,"
    "\"co2_covered\":0.99999,\"marginal_g\":null,"
    "\"marginal_covered\":0,\"money\":-0.25,\"money_covered\":1}}";

static void test_charges(void)
{
    auto_(mem_free) char *text = show(charges, report_text);
    auto_(mem_free) char *html = show(charges, report_html);

    has(text, "user                    g CO2e covered      EUR covered saved g\n"
              "anna                     12.50  81.2 %   -0.250 100.0 %   1.500\n");
    has(text, "  emissions            12.50 g CO2e, of 99.9 % of the energy\n");
    has(text, "                      13.25 booked, revised by -0.75\n");
    has(text, "  cost                -0.250 EUR\n");
    has_not(text, "marg");
    has_not(text, "nan");
    has(html, "81.2 %");
    has(html, "<th>booked</th><th>revised by</th>");
    has(html, "<td>12.50</td><td>99.9 %</td><td>13.25</td><td>-0.75</td>");
    has(html,
        "<li>carbon: signals home (Our World in Data: DE 2024; CC BY 4.0), estimated");
    has(html, "<a href=\"https://creativecommons.org/licenses/by/4.0/\">");
    has(html, "<h2>Emissions and cost</h2>");
    has(text,
        "\nFactors:\n  carbon: signals home (Our World in Data: DE 2024; CC BY 4.0), "
        "estimated\n");
}

static void test_digits(void)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0, "0.000"},        {0.00603, "0.0060"}, {-0.25, "-0.250"},
                 {1e-6, "0.000001"},  {-1e-7, "0.000000"}, {12.345, "12.35"},
                 {0.012345, "0.012"}, {-1234.5, "-1234"},  {0.00012, "0.00012"}};
    char text[REPORT_TEXT];

    for (size_t i = 0; i < n_elements(cases); i++)
        ok(strcmp(report_amount(cases[i].v, report_digits(cases[i].v), text),
                  cases[i].text) == 0,
           "%g as %s, is %s", cases[i].v, cases[i].text, text);
    ok(strcmp(report_amount(-0.0004, 3, text), "0.000") == 0, "no negative zero");
}

static void test_csv(void)
{
    auto_(mem_free) char *charged = show(charges, report_csv);
    auto_(mem_free) char *job = show(by_job, report_csv);
    auto_(mem_free) char *user = show(by_user, report_csv);
    auto_(mem_free) char *cpu = show(by_cpu, report_csv);
    auto_(mem_free) char *beside = show(cpu_by_user, report_csv);

    has(cpu,
        "domain,kind,attributed_j,idle_j,unattributed_j,energy_j,meter_j," CHARGES REVISED
        ",money_currency,simulated\n"
        "package-0,package,3600000,0,1800000,5400000,5400000,,,,,,,,,,,1\n");
    has(beside, ",3600000,,,,,,,,,,,,,,,,,1\n");

    has(job,
        "job,name,user,uid,source,began,ended,energy_j,half_j,gpu_s,mean_w,goal,cap_mw,"
        "saved_j,saved_half_j,saved,saved_half,slowdown,slowdown_half,cpu_j,looks,"
        "model_saved,model_slowdown," CHARGES SAVED REVISED
        ",money_currency,simulated\n");
    has(job,
        "\n7,<script>alert(1)</script>,\"'=HYPERLINK(\"\"x\"\")\",1000,,,,9000000,90000,"
        "36000,250,,,,,,,,,,,,,,,,,,,,,,,,,,,,,1\n");
    has(job, ",0.18,0.012,1.04,0.01,,9,0.191,1.05,,,,,,,,,,,,,,,,,1\n"); /* both,
                                                                         measured first */
    has(job, "8,\"a,b\nc\033[31m \"\"d\"\"\",anna,"); /* data as it is: quoted */
    has(user, ",saved_half_j,cpu_j,gco2e,cost," CHARGES SAVED REVISED
              ",money_currency,simulated\n");
    has(user, ",360,0.5,,,,,,,,,,,,,,,,,1\n");
    has(charged, ",12.5,0.8125,,0,-0.25,1,1.5,0.1,,,,,,,,EUR,0\n");
}

/* Columns of their own, and sums with what they cover. */
static void test_beside(void)
{
    static const char json[] =
        "{\"by\":\"user\",\"pue\":1.5,\"rows\":[{\"user\":\"anna\",\"jobs\":1,"
        "\"energy_j\":9e6,\"facility_j\":13.5e6,\"facility_co2_g\":null,\"market_g\":"
        "385,\"market_covered\":0.625,\"embodied_g\":72,\"embodied_covered\":1}],"
        "\"factors\":[{\"signal\":\"market\",\"source\":\"GO 17\",\"unit\":\"g/kWh\","
        "\"estimated\":false}],\"totals\":{\"energy_j\":1e7,\"facility_j\":15e6,"
        "\"facility_co2_g\":900,\"co2_covered\":0.9,\"market_g\":385,"
        "\"market_covered\":0.6255,\"embodied_g\":576,\"embodied_covered\":0.5,"
        "\"embodied_attributed_g\":432,\"embodied_idle_g\":144,"
        "\"embodied_unattributed_g\":0,\"difference\":0,\"holds\":true},\"gpus\":[],"
        "\"days\":[],\"caps\":[],\"from\":\"x\",\"to\":\"\"}";
    auto_(mem_free) char *text = show(json, report_text);
    auto_(mem_free) char *csv = show(json, report_csv);
    auto_(mem_free) char *page = show(json, report_html);
    auto_(mem_free) char *plain = show(by_user, report_text);

    has(text, "facility   fac. g market g covered embodied g covered\n");
    has(text, "3.750        -    385.0  62.5 %      72.00 100.0 %\n");
    has(text, "facility       4.167 kWh at a PUE of 1.5, 900.0 g CO2e, of 90.0 % of");
    has(text, "market-based   385.0 g CO2e, of 62.5 % of the energy\n");
    has(text, "embodied       576.0 g CO2e, of 50.0 % of the boards' time; to jobs");
    has(text, "market: GO 17\n");
    has(csv, ",facility_j,facility_co2_g,market_g,market_covered,embodied_g,"
             "embodied_covered,money_currency,simulated\n");
    has(csv, ",13500000,,385,0.625,72,1,,0\n");
    has(page, "<th>market g</th><th>covered</th><th>embodied g</th>");
    has(page, "market-based: 385.0 g CO2e, of 62.5 % of the energy.");
    has_not(plain, "market");
    has_not(plain, "embodied");
}

static void test_html(void)
{
    auto_(mem_free) char *job = show(by_job, report_html);
    auto_(mem_free) char *day = show(by_day, report_html);
    auto_(mem_free) char *user = show(by_user, report_html);
    auto_(mem_free) char *none = show(empty, report_html);
    auto_(mem_free) char *cpu = show(by_cpu, report_html);
    auto_(mem_free) char *beside = show(cpu_by_user, report_html);

    has(job, "<th>saved, measured</th><th>the model says</th>");
    has(job, "<td>19.1 %</td>");
    has(cpu, "<td>package-0</td>");
    has(beside, "<th>processors, kWh</th>");
    has(beside, "<td>1.000</td></tr>");
    has(beside, "<h2>Processors and their memory, beside the GPUs</h2>");
    has_not(user, "rocessors");

    has(job, "Caps in force over time");
    /* clang-format off */
    static const struct { const char *points, *piece_s; } timeless[] = {
        {"[]", "60"}, {"[[]]", "60"}, {"[5]", "60"}, {"[[1767225600,null,null,null]]", "60"},
        {"[[9000000000000000000,200000,150000,250000]]", "60"},
        {"[[1767225600,200000,150000,250000]]", "1e300"},
        {"[[1767225600,200000,150000,250000]]", "null"},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(timeless); i++) {
        char json[2000];
        (void)snprintf(
            json, sizeof json,
            "{\"by\":\"user\",\"rows\":[],\"days\":[],\"gpus\":[],\"totals\":{},\"from\":"
            "\"x\","
            "\"to\":\"\",\"caps\":[{\"gpu\":0,\"points\":%s}],\"caps_piece_s\":%s}",
            timeless[i].points, timeless[i].piece_s);
        auto_(mem_free) char *page = show(json, report_html);
        has_not(page, "Caps in force over time");
        has_not(page, "nan");
    }

    has_not(job, "<script");
    has(job, "&lt;script&gt;alert(1)");
    has(job, "SIMULATED.");
    has(job, "Caps in force over time");
    has(job, "Energy by day");
    has_not(job, "nan");
    has_not(job, "http://www.w3.org/1999"); /* nothing from elsewhere */
    has_not(day, "NaN");
    has(user, "<th>EUR</th>");
    has(none, "No energy of jobs was recorded.");
    has_not(none, "<svg");
    size_t svgs = 0;
    for (const char *at = job; (at = strstr(at, "<svg")) != NULL; at++)
        svgs++;
    is_int(svgs, 6, "three pictures in two widths");
}

/* Two keys; three days, the second without a factor for half of it, the third without
 * one; a negative price; more jobs than rows.
 */
static const char pairs[] =
    "{\"by\":\"label,day\",\"label\":\"team\",\"money_currency\":\"EUR\",\"only\":{"
    "\"user\":"
    "\"anna\",\"job\":7,\"label\":\"<b>\",\"value\":\"x\"},\"stack\":[{\"value\":\"<"
    "vision>\"},"
    "{\"value\":null}],\"rows\":[{\"value\":\"<vision>\",\"day\":\"2026-01-01\",\"jobs\":"
    "2,"
    "\"energy_j\":3.6e6,\"gpu_s\":3600,\"mean_w\":1000,\"saved_j\":-36e3,\"saved_half_"
    "j\":72e3,"
    "\"co2_g\":300,\"co2_covered\":1,\"saved_co2_g\":-3,\"saved_co2_half_g\":6},"
    "{\"value\":null,\"day\":\"2026-01-02\",\"jobs\":1,\"energy_j\":1.8e6,\"saved_j\":"
    "null}],"
    "\"jobs\":{\"saved_j\":-36e3,\"saved_half_j\":72e3,\"saved_co2_g\":-3,\"saved_co2_"
    "half_g\":"
    "6},\"rest\":{\"jobs\":3,\"energy_j\":36},\"gpus\":[],\"caps\":[],\"days\":["
    "{\"day\":\"2026-01-01\",\"attributed_j\":3.6e6,\"idle_j\":1,\"energy_j\":3600001,"
    "\"stack_j\":[3.6e6,0],\"co2_g\":300,\"co2_covered\":1,\"money\":-0.1,\"money_"
    "covered\":1},"
    "{\"day\":\"2026-01-02\",\"attributed_j\":3.6e6,\"energy_j\":3.6e6,\"stack_j\":[0,1."
    "8e6],"
    "\"co2_g\":150,\"co2_covered\":0.5,\"money\":0.2,\"money_covered\":1},"
    "{\"day\":\"2026-01-03\",\"attributed_j\":3.6e6,\"energy_j\":3.6e6,\"stack_j\":null,"
    "\"co2_g\":null,\"co2_covered\":0}],\"totals\":{\"energy_j\":10.8e6,\"co2_g\":450,"
    "\"co2_covered\":0.5,\"money\":0.1,\"money_covered\":0.6666,\"holds\":true,"
    "\"difference\":0},"
    "\"from\":\"x\",\"to\":\"\"}";

/* A saving far below its interval. */
static const char unsure[] =
    "{\"by\":\"user\",\"rows\":[{\"value\":\"anna\",\"jobs\":1,\"energy_j\":3.6e5,"
    "\"gpu_s\":3600,\"mean_w\":100,\"saved_j\":120,\"saved_half_j\":33e3}],"
    "\"jobs\":{\"saved_j\":120,\"saved_half_j\":33e3},\"gpus\":[],\"days\":[],\"caps\":[]"
    ","
    "\"totals\":{\"energy_j\":3.6e5,\"holds\":true,\"difference\":0},\"from\":\"x\","
    "\"to\":\"\"}";

static void test_unsure(void)
{
    auto_(mem_free) char *text = show(unsure, report_text);
    auto_(mem_free) char *html = show(unsure, report_html);

    has(text, "  saved          ~0 ± 9.2 Wh\n");
    has(html, "Saved by these jobs: ~0 ± 9.2 Wh");
    has(html, ">~0 ± 9.2 Wh<");
    has_not(html, " J<");
}

static void test_pairs(void)
{
    auto_(mem_free) char *text = show(pairs, report_text);
    auto_(mem_free) char *csv = show(pairs, report_csv);
    auto_(mem_free) char *html = show(pairs, report_html);

    has(text, "Energy by label team and day from ");
    has(text, "Only job 7 of anna with <b>=x alone; all sums but savings are of the "
              "whole node.");
    has(text,
        "team                 day          GPU hours   mean W         kWh      saved, "
        "kWh\n<vision>             2026-01-01        1.00   1000.0       1.000      ~0 ± "
        "0.020\n-                    2026-01-02 ");
    has(text, "  saved          ~0 ± 20 Wh, ~0 ± 6.0 g CO2e\n"
              "  ±: half of the 95 % interval; ~0: the saving is not "
              "distinguishable from zero\n");
    has(html, "is not distinguishable from zero");
    has(text, "of 50.0 % of the energy");
    has(csv, "value,day,jobs,energy_j,");
    has(csv, "\n(others),,3,36,");
    has_not(text, "nan");
    has_not(html, "nan");
    has_not(html, "inf");
    has_not(html, "<vision>");
    has(html, "&lt;vision&gt;, 01-01");
    has(html, "<title>Emissions by day, their intensity, and how much of the energy is "
              "covered</title>");
    has(html, "50.0 % of the energy covered; hatched");
    has(html, "Cost by day");
    has(html, "other jobs");
    has(html, "Saved by label team and day");
    has(html, "Saved by these jobs: ~0 ± 20 Wh");
    has(html, "<td>emissions, g CO2e</td><td>450.0</td><td>50.0 %</td>");
    size_t lines = 0;
    for (const char *at = html; (at = strstr(at, "s4\"")) != NULL; at++)
        lines++;
    ok(lines > 200, "days without a factor are hatched: %zu lines", lines);
}

static void test_columns(void)
{
    static const struct {
        const char *columns;
        int r;
        const char *head;
    } cases[] = {
        {"co2_g,energy_j", 0, "team      day         g CO2e    kWh\n"},
        {"all", 0, "saved g CO2e"},
        {"energy_j,nix", -EINVAL, "'nix'"},
        {"energy", -EINVAL, "'energy'"},
        {",", -EINVAL, "''"},
        {"day", -EINVAL, "no column 'day' to choose (names are always shown)"},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        auto_(json_free) struct json *doc = NULL;
        auto_(mem_free) char *text = NULL;
        uw_error err = {{0}};
        size_t len = 0;
        (void)json_read("x", pairs, strlen(pairs), &doc, &err);
        FILE *mem = open_memstream(&text, &len);
        is_int(report_text_of(json_root(doc), cases[i].columns, mem, &err), cases[i].r,
               "columns %s: %s", cases[i].columns, err.text);
        (void)fclose(mem);
        has(cases[i].r ? err.text : text, cases[i].head);
    }
}

static void test_no_report(void)
{
    static const char *const cases[] = {
        "[]", "{}", "{\"by\":\"job\"}",
        "{\"rows\":[],\"gpus\":[],\"days\":[],\"caps\":[]}",
        "{\"rows\":[],\"gpus\":[],\"days\":[],\"caps\":[],\"totals\":{}}"};

    for (size_t i = 0; i < n_elements(cases); i++) {
        auto_(json_free) struct json *doc = NULL;
        uw_error err = {{0}};
        (void)json_read("x", cases[i], strlen(cases[i]), &doc, &err);
        is_int(report_check(json_root(doc), &err), -EINVAL, "%s: %s", cases[i], err.text);
    }
}

int main(void)
{
    test_text();
    test_csv();
    test_charges();
    test_digits();
    test_csv_formulas();
    test_beside();
    test_html();
    test_unsure();
    test_pairs();
    test_columns();
    test_no_report();
    canvas_forget_fonts();
    return done();
}
