/* --query-gpu and --query-compute-apps: CSV. */
#ifndef SIM_SMI_CSV_H
#define SIM_SMI_CSV_H

#include "sim/smi/lib.h"

struct smi_format {
    bool header, units;
};

/* Parses "csv[,noheader][,nounits]".  SMI_OK, or an exit status with a message printed.
 */
int smi_csv_format(const char *text, struct smi_format *ret);

/* Prints the boards chosen, a row each, or their processes.  An exit status. */
int smi_csv_gpus(const struct smi *smi, const char *list,
                 const struct smi_format *format);
int smi_csv_apps(const struct smi *smi, const char *list,
                 const struct smi_format *format);

#endif
