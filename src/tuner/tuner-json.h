/* A tuner's measurements as JSON, for the API and `run --json`. */
#ifndef TUNER_TUNER_JSON_H
#define TUNER_TUNER_JSON_H

#include "io/json.h"
#include "tuner/tuner.h"

/* The array "caps": each cap with its steps' time and energy. */
void tuner_caps_json(const struct tuner_report *r, struct json_out *o);

/* The unit of the job's progress: "progress", "period_s", "period_confidence",
 * "period_unknown", "busy".
 */
void tuner_progress_json(const struct tuner_report *r, struct json_out *o);

#endif
