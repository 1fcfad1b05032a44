/* ENTSO-E's day-ahead prices. */
#include "source-play.h"

#define TOKEN "5cd1c4f6-2172"
#define DOC(series)                                                                \
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"                                 \
    "<Publication_MarketDocument xmlns=\"urn:iec62325.351:tc57wg16:451-3:"         \
    "publicationdocument:7:3\"><mRID>1</mRID><type>A44</type>"                     \
    "<createdDateTime>2026-11-26T12:00:00Z</createdDateTime><period.timeInterval>" \
    "<start>2026-11-26T11:00Z</start><end>2026-11-26T15:00Z</end></"               \
    "period.timeInterval>" series "</Publication_MarketDocument>"
#define SERIES(head, curve, period)                                                \
    "<TimeSeries><mRID>1</mRID>" head "<contract_MarketAgreement.type>A01"         \
    "</contract_MarketAgreement.type><currency_Unit.name>EUR</currency_Unit.name>" \
    "<price_Measure_Unit.name>MWH</price_Measure_Unit.name><curveType>" curve      \
    "</curveType>" period "</TimeSeries>"
#define PERIOD(resolution, points)                                                       \
    "<Period><timeInterval><start>2026-11-26T11:00Z</start><end>2026-11-26T15:00Z</end>" \
    "</timeInterval><resolution>" resolution "</resolution>" points "</Period>"
#define P(position, price)                                         \
    "<Point><position>" position "</position><price.amount>" price \
    "</price.amount></Point>"
#define SEQUENCE(n)                                                  \
    "<classificationSequence_AttributeInstanceComponent.position>" n \
    "</classificationSequence_AttributeInstanceComponent.position>"
#define ACK(text)                                                             \
    "<?xml version=\"1.0\"?><Acknowledgement_MarketDocument xmlns=\"urn:x\">" \
    "<Reason><code>999</code><text>" text "</text></Reason>"                  \
    "</Acknowledgement_MarketDocument>"
#define FOUR P("1", "74.78") P("2", "-5") P("3", "0") P("4", "81.26")

/* clang-format off */
static const struct answer_case cases[] = {
    {"four hours", DOC(SERIES("", "A01", PERIOD("PT60M", FOUR))), SOURCE_VALUES,
     "price EUR/kWh: 11:00+60 0.07478, 12:00+60 -0.005, 13:00+60 0, 14:00+60 0.08126; "
     "price.forecast EUR/kWh: 12:00+60 -0.005, 13:00+60 0, 14:00+60 0.08126"},
    {"a missing position repeats", DOC(SERIES("", "A03", PERIOD("PT60M", P("1", "70") P("4", "80")))), SOURCE_VALUES,
     "price EUR/kWh: 11:00+180 0.07, 14:00+60 0.08; price.forecast EUR/kWh: 11:00+180 0.07, 14:00+60 0.08"},
    {"… up to the end", DOC(SERIES("", "A03", PERIOD("PT60M", P("1", "70") P("2", "80")))), SOURCE_VALUES,
     "price EUR/kWh: 11:00+60 0.07, 12:00+180 0.08; price.forecast EUR/kWh: 12:00+180 0.08"},
    {"without A03 it is unknown", DOC(SERIES("", "A01", PERIOD("PT60M", P("1", "70") P("4", "80")))), SOURCE_VALUES,
     "price EUR/kWh: 11:00+60 0.07, 12:00+120 ?, 14:00+60 0.08; price.forecast EUR/kWh: 12:00+120 ?, 14:00+60 0.08"},
    {"quarters of an hour", DOC(SERIES("", "A03", PERIOD("PT15M", P("1", "70") P("7", "80")))), SOURCE_VALUES,
     "price EUR/kWh: 11:00+90 0.07, 12:30+150 0.08; price.forecast EUR/kWh: 12:30+150 0.08"},
    {"the first auction, whatever their order",
     DOC(SERIES(SEQUENCE("2"), "A01", PERIOD("PT15M", P("1", "1"))) SERIES(SEQUENCE("1"), "A03", PERIOD("PT60M", P("1", "70")))),
     SOURCE_VALUES, "price EUR/kWh: 11:00+240 0.07; price.forecast EUR/kWh: 11:00+240 0.07"},
    {"the second auction alone", DOC(SERIES(SEQUENCE("2"), "A01", PERIOD("PT60M", FOUR))), SOURCE_NO_DATA, "no value is known"},
    {"its own zone", DOC(SERIES("<in_Domain.mRID>10Y1001A1001A82H</in_Domain.mRID>", "A01", PERIOD("PT60M", P("1", "70")))), SOURCE_VALUES,
     "price EUR/kWh: 11:00+60 0.07, 12:00+180 ?"},
    {"another zone", DOC(SERIES("<in_Domain.mRID>10YFR-RTE------C</in_Domain.mRID>", "A01", PERIOD("PT60M", FOUR))), SOURCE_BAD,
     "of another zone than 10Y1001A1001A82H"},
    {"no series", DOC(""), SOURCE_NO_DATA, "no value is known"},
    {"no data", ACK("No matching data found for Data item Day-ahead Prices [12.1.D]"), SOURCE_NO_DATA, "no prices are published"},
    {"another reason", ACK("Unexpected parameter"), SOURCE_BAD, "grid: it answers: Unexpected parameter"},
    {"a reason with the token", ACK("no right for " TOKEN), SOURCE_BAD, "grid: it answers: nothing"},
    {"two resolutions that differ",
     DOC(SERIES("", "A01", PERIOD("PT60M", FOUR)) SERIES("", "A01", PERIOD("PT15M", P("1", "1")))), SOURCE_BAD, "two values for one time"},
    {"no price", DOC(SERIES("", "A01", PERIOD("PT60M", "<Point><position>1</position></Point>"))), SOURCE_BAD, "a position has no price"},
    {"a word for a price", DOC(SERIES("", "A01", PERIOD("PT60M", P("1", "dear")))), SOURCE_BAD, "a position has no price"},
    {"a position outside", DOC(SERIES("", "A01", PERIOD("PT60M", P("5", "1")))), SOURCE_BAD, "outside 1..4"},
    {"position 0", DOC(SERIES("", "A01", PERIOD("PT60M", P("0", "1")))), SOURCE_BAD, "outside 1..4"},
    {"positions back", DOC(SERIES("", "A01", PERIOD("PT60M", P("2", "1") P("1", "1")))), SOURCE_BAD, "not in order"},
    {"a huge position", DOC(SERIES("", "A01", PERIOD("PT60M", P("18446744073709551615", "1")))), SOURCE_BAD, "not in order"},
    {"a position of no number", DOC(SERIES("", "A01", PERIOD("PT60M", P("x", "1")))), SOURCE_BAD, "'position' is not a number"},
    {"an unknown resolution", DOC(SERIES("", "A01", PERIOD("P1Y", FOUR))), SOURCE_BAD, "no time or no resolution"},
    {"a time of none", DOC(SERIES("", "A01", "<Period><timeInterval><start>now</start></timeInterval></Period>")), SOURCE_BAD, "'start' is not a time"},
    {"no currency", DOC("<TimeSeries><price_Measure_Unit.name>MWH</price_Measure_Unit.name>" PERIOD("PT60M", FOUR) "</TimeSeries>"), SOURCE_BAD, "a series has no currency"},
    {"another measure", DOC("<TimeSeries><currency_Unit.name>EUR</currency_Unit.name><price_Measure_Unit.name>MAW</price_Measure_Unit.name>" PERIOD("PT60M", FOUR) "</TimeSeries>"), SOURCE_BAD, "not of a MWH"},
    {"another document", "<GL_MarketDocument/>", SOURCE_BAD, "is not a document of prices"},
    {"a document type", "<!DOCTYPE a [<!ENTITY e \"x\">]><Publication_MarketDocument>&e;</Publication_MarketDocument>", SOURCE_BAD, "document type"},
    {"half", "<Publication_MarketDocument><TimeS", SOURCE_BAD, "not XML"},
    {"a page", "{\"error\":\"x\"}", SOURCE_BAD, "not XML"},
};
static const char *const wrong[] = {"DE", "10Y1001A1001A82G", "10Y1001A1001A82", "10y1001a1001a82h", "10YFR-RTE-----C", "10Y1001A1001A82&"};
/* clang-format on */

static struct play begin(void)
{
    struct play p = {.secret = TOKEN};

    (void)snprintf(p.c.zone, sizeof p.c.zone, "10Y1001A1001A82H");
    p.c.given = KEY_ZONE | KEY_KEY_FILE;
    p.c.provides = 3;
    (void)checked(&p, "entsoe");
    return p;
}

int main(void)
{
    struct play p = begin();

    for (size_t i = 0; i < n_elements(cases); i++)
        play_case(&p, &cases[i]);
    ok(ask_next(&p), "the prices");
    is_str(p.asked,
           "https://web-api.tp.entsoe.eu/api?documentType=A44&"
           "contract_MarketAgreement.type=A01&in_Domain=10Y1001A1001A82H&"
           "out_Domain=10Y1001A1001A82H&periodStart=202611251200&periodEnd=202611281200 "
           "+securityToken",
           "… of three days, the token apart from the URL");
    ok(answer(&p, 400, NULL, ACK("No matching data found")) == SOURCE_NO_DATA,
       "no data with status 400");
    (void)ask_next(&p);
    (void)ask_next(&p);
    ok(answer(&p, 401, NULL, "") == SOURCE_REFUSED, "a token that is refused");
    is_str(p.why, "grid: the key is refused (status 401)", "… in one line");
    for (size_t i = 0; i < n_elements(wrong); i++) {
        uw_error err = {""};
        (void)snprintf(p.c.zone, sizeof p.c.zone, "%s", wrong[i]);
        ok(source_check(&p.c, NULL, &err) == -EINVAL &&
               strstr(err.text, "is not the code of a bidding zone"),
           "%s is no zone", wrong[i]);
    }
    (void)snprintf(p.c.zone, sizeof p.c.zone, "10YFR-RTE------C");
    ok(source_check(&p.c, NULL, NULL) == 0, "France is one");
    return done();
}
