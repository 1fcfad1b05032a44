/* -q, -q -x and the summary that a bare nvidia-smi prints. */
#ifndef SIM_SMI_REPORT_H
#define SIM_SMI_REPORT_H

#include "sim/smi/lib.h"

/* The boards chosen, every field.  display: sections of -d, "MEMORY,POWER"; NULL: all. An
 * exit status.
 */
int smi_report_text(const struct smi *smi, const char *display);
int smi_report_xml(const struct smi *smi);

int smi_summary(const struct smi *smi);
/* -L */
int smi_list(const struct smi *smi);

#endif
