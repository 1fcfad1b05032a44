/* The fields that --query-gpu, -q and -q -x show, by the names of --query-gpu. */
#ifndef SIM_SMI_FIELDS_H
#define SIM_SMI_FIELDS_H

#include "sim/smi/lib.h"

struct smi_field;

/* A field by its name or one of its other names; NULL: none. */
const struct smi_field *smi_field(const char *name);
/* The name under which its column stands, and its unit ("" or " [W]"'s "W"). */
const char *smi_field_name(const struct smi_field *field);
const char *smi_field_unit(const struct smi_field *field);
/* Its value on a board, without unit; a result of NVML. */
int smi_field_get(const struct smi_field *field, const struct smi *smi, nv_device dev,
                  char ret[SMI_TEXT]);

/* For a human: "12.30 W", or in brackets why there is no value. */
void smi_field_show(const struct smi_field *field, const struct smi *smi, nv_device dev,
                    bool units, char ret[SMI_TEXT]);
/* The text for a result that is not 0, as in a CSV row. */
const char *smi_no_value(int result);

/* Prints the names that --query-gpu knows, one a line. */
void smi_fields_print(FILE *to);

/* The time: "2026/11/27 02:03:04.567". */
void smi_stamp(char ret[SMI_TEXT]);
/* "Fri Nov 27 02:03:04 2026". */
void smi_date(char ret[SMI_TEXT]);

#endif
